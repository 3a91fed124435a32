/* SPDX-License-Identifier: Apache-2.0 */
/* Checks native code: processor instructions, libc, OpenMP runtimes, and the kernels that BLAS
 * selects. */
#include <stdlib.h>
#include <string.h>

#include "preflight/checks.h"
#include "preflight/sysroot.h"
#include "preflight/version.h"
#include "util/blas_kernels.h"

/* ---- processor ---- */

static void say_missing(const pl_doctor_facts *facts, pl_findings *findings,
                        const pl_package *package, const char *needs, uint32_t bits,
                        const char *what_happens)
{
    char missing[160];
    pl_say(findings, PL_FINDING_FAIL, "%s %s needs %s but this processor lacks %s: %s",
           package->name, package->version, needs,
           pl_cpu_features_missing(&facts->processor, bits, missing, sizeof missing), what_happens);
    pl_fix(findings,
           "use a build that does not need it (conda-forge, your distribution's, your own) or "
           "another machine; in a virtual machine, expose the host's processor (QEMU: -cpu host)");
}

static void check_rules(const pl_doctor_facts *facts, pl_findings *findings,
                        const pl_package *package)
{
    const char *const here[] = {facts->processor.machine};
    const char *framework = pl_rules_framework(&facts->rules, package->name);
    for (const pl_rule *rule = NULL;
         (rule = pl_rules_next(&facts->rules, rule, "cpu", framework, package->version));) {
        uint32_t bits = pl_cpu_feature_bits(rule->needs);
        if (pl_rule_is_for(rule, here, 1) && (bits & ~facts->processor.bits) != 0)
            say_missing(facts, findings, package, rule->needs, bits, rule->says);
    }
}

static void check_notes(const pl_doctor_facts *facts, pl_findings *findings,
                        const pl_library_need *need)
{
    static const char *const levels[] = {NULL, "x86-64-v2", "x86-64-v3", "x86-64-v4"};
    for (size_t i = PL_COUNT_OF(levels) - 1; i > 0; i--) {
        uint32_t bits = pl_cpu_feature_bits(levels[i]);
        if (!(need->x86_levels >> i & 1) || (bits & ~facts->processor.bits) == 0 ||
            strcmp(facts->processor.machine, "x86_64") != 0)
            continue;
        say_missing(facts, findings, need->package, levels[i], bits,
                    "its own libraries say that they need it, and will end with SIGILL");
        return;
    }
}

/* Returns the highest x86-64 ABI level that the processor supports. */
static const char *level_of(const pl_cpu_features *processor)
{
    static const char *const levels[] = {"x86-64-v4", "x86-64-v3", "x86-64-v2"};
    for (size_t i = 0; i < PL_COUNT_OF(levels); i++)
        if ((pl_cpu_feature_bits(levels[i]) & ~processor->bits) == 0)
            return levels[i];
    return processor->machine;
}

void pl_check_processor(const pl_doctor_facts *facts, pl_findings *findings)
{
    for (const pl_package *package = NULL; (package = pl_next_package(facts, package));)
        if (package->wheel)
            check_rules(facts, findings, package);
    for (size_t i = 0; i < facts->libraries.n_needs; i++)
        check_notes(facts, findings, &facts->libraries.needs[i]);
    if (pl_findings_silent(findings))
        pl_say(findings, PL_FINDING_OK,
               "this processor (%s) has the instructions that the installed builds need",
               level_of(&facts->processor));
}

/* ---- OpenMP ---- */

/* LLVM's and Intel's OpenMP are one runtime under two names: loading a second copy aborts. */
static bool is_llvm(const pl_openmp_runtime *runtime)
{
    return strcmp(runtime->family, "libgomp") != 0;
}

static void name_runtimes(const pl_libraries *libraries, char *text, size_t n)
{
    char longer[400];
    text[0] = '\0';
    for (size_t i = 0; i < libraries->n_runtimes; i++) {
        const pl_openmp_runtime *runtime = &libraries->runtimes[i];
        if (pl_format(
                longer, sizeof longer, "%s%s%s (%s%s)", text, i > 0 ? ", " : "", runtime->family,
                runtime->path[0] ? "bundled with " : "the system's, used by ", runtime->owner) &&
            strlen(longer) < n)
            strcpy(text, longer);
    }
}

void pl_check_openmp(const pl_doctor_facts *facts, pl_findings *findings)
{
    const pl_libraries *libraries = &facts->libraries;
    char names[400];
    size_t n_llvm = 0, n = libraries->n_runtimes;
    for (size_t i = 0; i < n; i++)
        n_llvm += is_llvm(&libraries->runtimes[i]);
    name_runtimes(libraries, names, sizeof names);
    if (n_llvm > 1) {
        pl_say(findings, PL_FINDING_FAIL,
               "%zu OpenMP runtimes, %s: a program that imports both kinds aborts with 'OMP: Error "
               "#15'",
               n, names);
        pl_fix(findings, "install the packages from one source, so that they share a runtime (all "
                         "with pip, or all with conda and nomkl or llvm-openmp)");
    } else if (n > 1) {
        pl_say(findings, PL_FINDING_WARN,
               "%zu OpenMP runtimes, %s: in one process each starts its own threads, and they "
               "compete for the processors%s",
               n, names, n_llvm > 0 ? "; gcc's and LLVM's together are known to hang" : "");
        pl_fix(findings, "export OMP_NUM_THREADS=%u, or use the second one in a separate process",
               facts->system.cpu.n_usable > 1 ? facts->system.cpu.n_usable / 2 : 1);
    } else {
        pl_say(findings, PL_FINDING_OK, n == 1 ? "one OpenMP runtime: %s" : "no OpenMP runtime%s",
               names);
    }
}

/* ---- BLAS ---- */

/* OpenBLAS treats a processor newer than itself as one from 2004. */
static const char *better_kernels(const pl_doctor_facts *facts)
{
    const uint32_t avx2 = pl_cpu_feature_bits("avx2") | pl_cpu_feature_bits("fma");
    const uint32_t avx512 = pl_cpu_feature_bits("x86-64-v4");
    uint32_t has = facts->processor.bits;
    return pl_blas_better_kernels(facts->blas.kernels, (has & avx2) == avx2,
                                  (has & avx512) == avx512);
}

void pl_check_blas(const pl_doctor_facts *facts, pl_findings *findings)
{
    const pl_blas_facts *blas = &facts->blas;
    const char *better = better_kernels(facts), *chosen = getenv("OPENBLAS_CORETYPE");
    if (blas->library[0] && !blas->asked)
        pl_say(findings, PL_FINDING_OK,
               "the kernels of NumPy's OpenBLAS are unknown: it must be loaded to ask, and the "
               "doctor loads nothing %s",
               facts->root[0] ? "below --root" : "chosen by a .python-version");
    else if (!blas->kernels[0])
        pl_say(findings, PL_FINDING_OK,
               blas->library[0] ? "NumPy uses a BLAS other than OpenBLAS"
                                : "NumPy's OpenBLAS was not found");
    else if (better && chosen)
        pl_say(findings, PL_FINDING_WARN,
               "OPENBLAS_CORETYPE=%.40s makes OpenBLAS use kernels for %s: on this processor, "
               "those for %s multiply matrices several times faster",
               chosen, blas->kernels, better);
    else if (better)
        pl_say(findings, PL_FINDING_WARN,
               "OpenBLAS does not recognise this processor and uses kernels for %s: NumPy "
               "multiplies matrices several times slower than it could",
               blas->kernels);
    else
        pl_say(findings, PL_FINDING_OK, "OpenBLAS uses kernels for %s", blas->kernels);
    if (blas->kernels[0] && better)
        pl_fix(findings, "export OPENBLAS_CORETYPE=%s, or install a newer OpenBLAS", better);
}

/* ---- libc ---- */

/* Reads the glibc version from the wheel's tag (manylinux_2_28, manylinux2014), for packages whose
 * libraries do not state it. */
static bool tag_libc(const char *tag, char version[16])
{
    static const char *const old[][2] = {
        {"manylinux2014", "2.17"}, {"manylinux2010", "2.12"}, {"manylinux1", "2.5"}};
    const char *many = strstr(tag, "manylinux_");
    if (many != NULL) {
        many += strlen("manylinux_");
        size_t major = strspn(many, "0123456789"), minor;
        if (many[major] != '_')
            return false;
        minor = strspn(many + major + 1, "0123456789");
        return pl_format(version, 16, "%.*s.%.*s", (int)major, many, (int)minor, many + major + 1);
    }
    for (size_t i = 0; i < PL_COUNT_OF(old); i++)
        if (strstr(tag, old[i][0]) != NULL)
            return pl_format(version, 16, "%s", old[i][1]);
    return false;
}

static bool rule_libc(const pl_doctor_facts *facts, const pl_package *package, char version[16])
{
    const char *framework = pl_rules_framework(&facts->rules, package->name);
    const pl_rule *rule = pl_rules_next(&facts->rules, NULL, "libc", framework, package->version);
    return package->wheel && rule != NULL && pl_format(version, 16, "%s", rule->needs + 2);
}

static void check_package_libc(const pl_doctor_facts *facts, pl_findings *findings,
                               const pl_library_need *need)
{
    const pl_libraries *libraries = &facts->libraries;
    const pl_package *package = need->package;
    char version[16], range[24];
    const char *who = "its wheel's tag";
    if (need->glibc[0] != '\0') {
        strcpy(version, need->glibc);
        who = strrchr(need->glibc_file, '/') != NULL ? strrchr(need->glibc_file, '/') + 1 : "it";
    } else if (!tag_libc(package->tag, version) && !rule_libc(facts, package, version)) {
        return;
    }
    pl_format(range, sizeof range, ">=%s", version);
    if (libraries->musl) {
        pl_say(findings, PL_FINDING_FAIL,
               "%s %s needs glibc %s (%s) but this system has musl: it cannot be loaded",
               package->name, package->version, version, who);
        pl_fix(findings, "use a system with glibc (Debian instead of Alpine)");
    } else if (pl_version_in(libraries->glibc, range) == 0) {
        pl_say(findings, PL_FINDING_FAIL,
               "%s %s needs glibc %s (%s) but this system has %s: the import fails with \"version "
               "'GLIBC_%s' not found\"",
               package->name, package->version, version, who, libraries->glibc, version);
        pl_fix(findings, "use a newer system or container, or an older %s", package->name);
    }
}

void pl_check_libc(const pl_doctor_facts *facts, pl_findings *findings)
{
    const pl_libraries *libraries = &facts->libraries;
    for (size_t i = 0; i < libraries->n_needs; i++) {
        const pl_library_need *need = &libraries->needs[i];
        check_package_libc(facts, findings, need);
        if (need->other_machine[0] != '\0') {
            pl_say(findings, PL_FINDING_FAIL,
                   "%s %s has libraries for %s but this machine is %s: they cannot be loaded",
                   need->package->name, need->package->version, need->other_machine,
                   facts->processor.machine);
            pl_fix(findings, "%s -m pip install --force-reinstall %s", facts->python.path,
                   need->package->name);
        }
    }
    if (pl_findings_silent(findings))
        pl_say(findings, PL_FINDING_OK, "%s%s is new enough for the %zu native libraries checked",
               libraries->glibc[0] ? "glibc " : "the system's libc", libraries->glibc,
               libraries->n_read);
}
