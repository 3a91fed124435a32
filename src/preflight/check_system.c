/* SPDX-License-Identifier: Apache-2.0 */
/* Checks thread counts against processors, file limits, disk space, and preloaded libraries. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "preflight/checks.h"
#include "preflight/sysroot.h"
#include "sys/fixed_text.h"

/* ---- threads ---- */

static void check_variable(const pl_doctor_facts *facts, pl_findings *findings, const char *name)
{
    const char *text = getenv(name), *cursor = text;
    unsigned usable = facts->system.cpu.n_usable;
    uint64_t n = 0;
    if (text == NULL || text[0] == '\0')
        return;
    /* OMP_NUM_THREADS can be "4,2": one number per nesting level. */
    if (!pl_fixed_text_take_u64(&cursor, &n) || (*cursor != '\0' && *cursor != ',')) {
        pl_say(findings, PL_FINDING_WARN, "%s='%.40s' is not a number of threads, and is ignored",
               name, text);
        pl_fix(findings, "export %s=%u", name, usable);
    } else if (n > usable) {
        pl_say(findings, PL_FINDING_WARN,
               "%s=%" PRIu64 " is more than the %u processor%s available: threads wait for each "
               "other, and work takes longer than with %u",
               name, n, usable, usable == 1 ? "" : "s", usable);
        pl_fix(findings, "export %s=%u", name, usable);
    }
}

void pl_check_threads(const pl_doctor_facts *facts, pl_findings *findings)
{
    static const char *const variables[] = {
        "OMP_NUM_THREADS",        "MKL_NUM_THREADS",        "OPENBLAS_NUM_THREADS",
        "BLIS_NUM_THREADS",       "NUMEXPR_NUM_THREADS",    "NUMBA_NUM_THREADS",
        "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS",
    };
    const pl_cpu *cpu = &facts->system.cpu;
    const char *set = getenv(variables[0]);
    for (size_t i = 0; i < PL_COUNT_OF(variables); i++)
        check_variable(facts, findings, variables[i]);
    if ((set == NULL || set[0] == '\0') && cpu->n_usable < cpu->n_allowed) {
        pl_say(findings, PL_FINDING_WARN,
               "%u processors are visible, but a quota allows only the time of %u: libraries start "
               "%u threads, which the quota then stops together",
               cpu->n_allowed, cpu->n_usable, cpu->n_allowed);
        pl_fix(findings, "export OMP_NUM_THREADS=%u", cpu->n_usable);
    }
    if (pl_findings_silent(findings))
        pl_say(findings, PL_FINDING_OK, "%u processor%s, and no variable asks for more threads",
               cpu->n_usable, cpu->n_usable == 1 ? "" : "s");
}

/* ---- files ---- */

/* Each batch that a worker prepares holds descriptors, and so does each file it reads. */
enum { FILES_BASE = 256, FILES_PER_WORKER = 64, FILES_LEAST = 64 };

void pl_check_files(const pl_doctor_facts *facts, pl_findings *findings)
{
    const pl_system *system = &facts->system;
    uint64_t wanted = FILES_BASE + (uint64_t)FILES_PER_WORKER * system->n_workers;
    if (system->open_files == 0) {
        pl_say(findings, PL_FINDING_OK, "the limit on open files cannot be read");
    } else if (system->open_files >= wanted) {
        pl_say(findings, PL_FINDING_OK, "the limit on open files is high enough for %u workers",
               system->n_workers);
    } else {
        bool few = system->open_files < FILES_LEAST;
        pl_say(findings, few ? PL_FINDING_FAIL : PL_FINDING_WARN,
               "%" PRIu64 " files can be open at once, but %u workers need %" PRIu64
               ": they fail with 'Too many open files' or 'received 0 items of ancdata'",
               system->open_files, system->n_workers, wanted);
        pl_fix(findings,
               system->open_files_hard >= wanted
                   ? "ulimit -n %" PRIu64
                   : "raise the hard limit to %" PRIu64
                     " (nofile in /etc/security/limits.conf, LimitNOFILE= of a unit)",
               wanted);
    }
}

/* ---- disk ---- */

void pl_check_disk(const pl_doctor_facts *facts, pl_findings *findings)
{
    const pl_disk_facts *disk = &facts->system.disk;
    uint64_t line = facts->system.memory.budget.line_bytes, limit = facts->system.file_bytes;
    if (disk->folder[0] == '\0' || !disk->writable) {
        pl_say(findings, PL_FINDING_FAIL,
               "'%s' is not writable: tensors that do not fit in memory cannot be spilled",
               disk->folder[0] ? disk->folder : "/var/tmp");
        pl_fix(findings, "export PLIMSOLL_SPILL=DIR, a folder on a disk");
    } else if (disk->space.in_memory) {
        pl_say(findings, PL_FINDING_WARN,
               "'%s' is in memory, not on a disk: spilling tensors there frees nothing",
               disk->folder);
        pl_fix(findings, "export PLIMSOLL_SPILL=DIR, a folder on a disk");
    } else if (disk->space.free_bytes < line) {
        pl_say(
            findings, PL_FINDING_WARN,
            "'%s' has only %s free, and a run can use %s of memory: not all of it can be spilled",
            disk->folder, PL_SIZE(disk->space.free_bytes), PL_SIZE(line));
        pl_fix(findings, "make room there, or export PLIMSOLL_SPILL=DIR on a larger disk");
    } else if (limit > 0 && limit < line) {
        pl_say(findings, PL_FINDING_WARN,
               "a file can have %s at most (ulimit -f): no more than that can be spilled",
               PL_SIZE(limit));
        pl_fix(findings, "ulimit -f unlimited");
    } else {
        pl_say(findings, PL_FINDING_OK, "'%s' has %s free for tensors that do not fit in memory",
               disk->folder, PL_SIZE(disk->space.free_bytes));
    }
}

/* ---- preload ---- */

static bool name_has(const char *path, const char *const *parts, size_t n)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    for (size_t i = 0; i < n; i++)
        if (strncmp(name, parts[i], strlen(parts[i])) == 0)
            return true;
    return false;
}

static void check_preloaded(const pl_doctor_facts *facts, pl_findings *findings, const char *path)
{
    static const char *const sanitizers[] = {"libasan", "libtsan", "libmsan", "liblsan",
                                             "libclang_rt"};
    static const char *const allocators[] = {"libjemalloc", "libtcmalloc", "libmimalloc"};
    static const char *const guards[] = {"libplimsoll-guard"};
    /* $LIB and $PLATFORM: only the loader knows the path */
    bool has_token = strchr(path, '$') != NULL;
    if (name_has(path, guards, PL_COUNT_OF(guards))) {
        pl_say(findings, PL_FINDING_OK,
               "the guard is preloaded: this already runs under 'plimsoll run'");
    } else if (strchr(path, '/') != NULL && !has_token && !pl_sysroot_is_file(facts->root, path)) {
        pl_say(findings, PL_FINDING_WARN,
               "'%s' should be preloaded but does not exist: ld.so prints an error for every "
               "program, and goes on without it",
               path);
        pl_fix(findings, "remove it from LD_PRELOAD (or /etc/ld.so.preload)");
    } else if (name_has(path, sanitizers, PL_COUNT_OF(sanitizers))) {
        pl_say(findings, PL_FINDING_FAIL,
               "'%s' is preloaded and must come first, but plimsoll run puts its guard first: the "
               "program will not start",
               path);
        pl_fix(findings, "run the sanitizer without plimsoll run, or unset LD_PRELOAD");
    } else if (name_has(path, allocators, PL_COUNT_OF(allocators))) {
        pl_say(findings, PL_FINDING_OK,
               "'%s' stays the allocator beneath the guard; its large C++ arrays are counted as "
               "they are touched",
               path);
    } else {
        pl_say(findings, PL_FINDING_OK, "'%s' stays preloaded, behind the guard", path);
    }
}

static void check_list(const pl_doctor_facts *facts, pl_findings *findings, const char *list)
{
    static const char between[] = ": \t\n";
    while (*(list += strspn(list, between)) != '\0') {
        char path[PATH_MAX];
        size_t n = strcspn(list, between);
        if (pl_format(path, sizeof path, "%.*s", (int)n, list))
            check_preloaded(facts, findings, path);
        list += n;
    }
}

void pl_check_preload(const pl_doctor_facts *facts, pl_findings *findings)
{
    check_list(facts, findings, facts->system.preload);
    check_list(facts, findings, facts->system.preload_file);
    if (pl_findings_silent(findings))
        pl_say(findings, PL_FINDING_OK, "nothing is preloaded that conflicts with the guard");
}
