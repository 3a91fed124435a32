/* SPDX-License-Identifier: Apache-2.0 */
/* Checks memory: how much a run can really use, which limit decides, and how the system behaves
 * when memory runs out. */
#include <inttypes.h>
#include <string.h>

#include "base/size.h"
#include "preflight/checks.h"

/* Importing TensorFlow or PyTorch takes nearly half of this before the first tensor. */
static const uint64_t little_bytes = PL_GIB;

/* Two batches ahead, each of 64 images of 224 x 224 x 3 float32 numbers: DataLoader's default. */
static const uint64_t shm_per_worker_bytes = UINT64_C(2) * 64 * 224 * 224 * 3 * 4;

static const char *known(const pl_doctor_facts *facts, const char *subject)
{
    const pl_rule *rule = pl_rules_next(&facts->rules, NULL, "system", subject, "0");
    return rule != NULL ? rule->says : "";
}

void pl_check_memory(const pl_doctor_facts *facts, pl_findings *findings)
{
    const pl_memory_facts *memory = &facts->system.memory;
    const pl_budget *budget = &memory->budget;
    if (memory->budget_code < 0) {
        pl_say(findings, PL_FINDING_FAIL, "%s: plimsoll run will not start any command",
               memory->budget_error.message);
        pl_fix(findings, "stop programs that use memory, or raise the limit (plimsoll budget shows "
                         "which one decides)");
        return;
    }
    const pl_budget_source *source = &budget->sources[budget->tightest];
    bool little = budget->line_bytes < little_bytes;
    bool by_group = strncmp(source->name, "cgroup", 6) == 0;
    const char *wsl = memory->wsl ? known(facts, "memory") : "";
    pl_say(findings, little ? PL_FINDING_WARN : PL_FINDING_OK,
           "a run can use %s: %s of %s (%s %.200s) less a reserve of %s%s%s%s%s%s",
           PL_SIZE(budget->line_bytes), PL_SIZE(source->bytes), PL_SIZE(source->limit_bytes),
           source->name, source->detail, PL_SIZE(budget->reserve_bytes),
           by_group ? "; programs that ask for the machine's memory see " : "",
           by_group ? PL_SIZE(memory->total_bytes) : "",
           little ? "; importing a framework alone can take half a GiB" : "", *wsl ? "; " : "",
           wsl);
    if (little)
        pl_fix(findings, "raise the limit in %.200s, or stop programs that use memory",
               source->detail);
}

void pl_check_overcommit(const pl_doctor_facts *facts, pl_findings *findings)
{
    const pl_memory_facts *memory = &facts->system.memory;
    uint64_t left = pl_sub_sat_u64(memory->commit_limit_bytes, memory->committed_bytes);
    if (memory->overcommit == 2) {
        pl_say(findings, left < little_bytes ? PL_FINDING_FAIL : PL_FINDING_WARN,
               "vm.overcommit_memory is 2 and %s of %s are already committed: CUDA and other "
               "programs that reserve far more than they touch get ENOMEM although memory is free",
               PL_SIZE(memory->committed_bytes), PL_SIZE(memory->commit_limit_bytes));
        pl_fix(findings, "sysctl vm.overcommit_memory=0");
        return;
    }
    pl_say(findings, PL_FINDING_OK, "%s",
           memory->overcommit < 0 ? "the kernel's overcommit setting cannot be read"
           : memory->overcommit == 1
               ? "the kernel grants any amount of memory, and kills when it is touched; plimsoll "
                 "run refuses the request instead"
               : "the kernel grants more memory than there is, and kills when it is touched; "
                 "plimsoll run refuses the request instead");
}

void pl_check_swap(const pl_doctor_facts *facts, pl_findings *findings)
{
    const pl_memory_facts *memory = &facts->system.memory;
    uint64_t used = pl_sub_sat_u64(memory->swap_total_bytes, memory->swap_free_bytes);
    if (memory->swap_total_bytes == 0) {
        pl_say(findings, PL_FINDING_OK,
               "no swap: a process that does not fit is killed at once, not slowed down");
    } else if (used > memory->swap_total_bytes / 2) {
        pl_say(findings, PL_FINDING_WARN,
               "%s of %s of swap are in use: a program whose tensors are swapped out barely runs",
               PL_SIZE(used), PL_SIZE(memory->swap_total_bytes));
        pl_fix(findings,
               "stop programs that use memory, or run under a budget: plimsoll run -- COMMAND");
    } else {
        pl_say(findings, PL_FINDING_OK,
               "%s of swap, %s in use; a budget counts memory only, so tensors stay out of swap",
               PL_SIZE(memory->swap_total_bytes), PL_SIZE(used));
    }
}

void pl_check_shm(const pl_doctor_facts *facts, pl_findings *findings)
{
    const pl_shm_facts *shm = &facts->system.shm;
    unsigned n = facts->system.n_workers;
    uint64_t wanted = n * shm_per_worker_bytes;
    const char *docker = shm->total_bytes <= 64 * PL_MIB ? known(facts, "shm") : "";
    if (!shm->there || !shm->writable) {
        pl_say(findings, PL_FINDING_FAIL,
               "/dev/shm %s: DataLoader workers and multiprocessing queues will fail at their "
               "first batch",
               shm->there ? "is not writable" : "does not exist");
        pl_fix(findings, "mount -t tmpfs -o mode=1777 tmpfs /dev/shm");
    } else if (shm->free_bytes < wanted) {
        pl_say(findings, PL_FINDING_WARN,
               "/dev/shm has %s free of %s, but %u workers with two batches of 64 images each need "
               "%s: they will die of SIGBUS%s%s",
               PL_SIZE(shm->free_bytes), PL_SIZE(shm->total_bytes), n, PL_SIZE(wanted),
               *docker ? "; " : "", docker);
        uint64_t mib = (wanted + PL_MIB - 1) / PL_MIB;
        pl_fix(findings,
               "docker run --shm-size=%" PRIu64
               "m (or --ipc=host), or: mount -o remount,size=%" PRIu64 "m /dev/shm",
               mib, mib);
    } else {
        pl_say(findings, PL_FINDING_OK, "/dev/shm has %s free of %s: enough for %u workers",
               PL_SIZE(shm->free_bytes), PL_SIZE(shm->total_bytes), n);
    }
}

void pl_check_huge_pages(const pl_doctor_facts *facts, pl_findings *findings)
{
    const pl_memory_facts *memory = &facts->system.memory;
    uint64_t kept = 0;
    if (__builtin_mul_overflow(memory->n_huge_free, memory->huge_page_bytes, &kept))
        kept = 0;
    if (kept > memory->total_bytes / 10) {
        pl_say(
            findings, PL_FINDING_WARN,
            "%s are reserved for huge pages that nothing uses: frameworks cannot use that memory",
            PL_SIZE(kept));
        pl_fix(findings, "sysctl vm.nr_hugepages=%" PRIu64,
               pl_sub_sat_u64(memory->n_huge_pages, memory->n_huge_free));
    } else if (strcmp(memory->huge, "always") == 0 && strcmp(memory->defrag, "always") == 0) {
        pl_say(findings, PL_FINDING_WARN,
               "the kernel compacts memory to make a huge page for every request: allocations "
               "stall for milliseconds, and a forked worker copies 2 MiB to change a byte");
        pl_fix(findings,
               "echo madvise > /sys/kernel/mm/transparent_hugepage/defrag (and .../enabled)");
    } else {
        pl_say(findings, PL_FINDING_OK, "transparent huge pages: %s; %s reserved",
               memory->huge[0] ? memory->huge : "none", PL_SIZE(kept));
    }
}

void pl_check_oom_group(const pl_doctor_facts *facts, pl_findings *findings)
{
    const pl_memory_facts *memory = &facts->system.memory;
    const char *says = known(facts, "oom-group");
    if (memory->oom_group[0] == '\0') {
        pl_say(findings, PL_FINDING_OK, "an OOM kill ends one process, not its whole cgroup");
        return;
    }
    pl_say(findings, PL_FINDING_WARN,
           "memory.oom.group is set for '%.200s': one OOM kill ends every process in it, including "
           "the supervisor and a notebook server (the record stays)%s%s",
           memory->oom_group, *says ? ". " : "", says);
    pl_fix(findings,
           "stay below the limit: plimsoll run -- COMMAND; or echo 0 > %.160s/memory.oom.group",
           memory->oom_group);
}
