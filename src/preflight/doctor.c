/* SPDX-License-Identifier: Apache-2.0 */
/* See doctor.h. */
#include "preflight/doctor.h"

#include <errno.h>

#include "preflight/checks.h"

static const struct {
    const char *name;
    pl_check *make;
} checks[] = {
    {"plimsoll", pl_check_plimsoll},
    {"python", pl_check_python},
    {"packages", pl_check_packages},
    {"versions", pl_check_versions},
    {"requirements", pl_check_requirements},
    {"processor", pl_check_processor},
    {"openmp", pl_check_openmp},
    {"blas", pl_check_blas},
    {"libc", pl_check_libc},
    {"gpu", pl_check_gpu},
    {"cuda", pl_check_cuda},
    {"memory", pl_check_memory},
    {"overcommit", pl_check_overcommit},
    {"swap", pl_check_swap},
    {"shm", pl_check_shm},
    {"hugepages", pl_check_huge_pages},
    {"oom-group", pl_check_oom_group},
    {"threads", pl_check_threads},
    {"files", pl_check_files},
    {"disk", pl_check_disk},
    {"preload", pl_check_preload},
};

/* Without a Python the package lists stay empty. */
static int gather_python(const pl_doctor_options *options, pl_doctor_facts *facts)
{
    facts->python_asked = options->python != NULL;
    facts->python_code =
        pl_interpreter_find(facts->root, options->python, &facts->python, &facts->python_error);
    if (facts->python_code < 0) {
        facts->python = (pl_interpreter){.kind = ""};
        return facts->python_code == -ENOMEM ? -ENOMEM : 0;
    }
    return pl_packages_find(facts->root, &facts->python, &facts->packages);
}

int pl_doctor_gather(const pl_doctor_options *options, pl_doctor_facts *ret_facts, pl_error *reterr)
{
    pl_doctor_facts *facts = ret_facts; /* it is large: filled in place, and emptied on failure */
    *facts =
        (pl_doctor_facts){.root = options->root != NULL ? options->root : "", .python.kind = ""};
    int r = pl_rules_load(options->rules, &facts->rules, reterr);
    if (r < 0)
        return r;
    pl_cpu_features_read(facts->root, &facts->processor);
    r = gather_python(options, facts);
    if (r == 0)
        r = pl_libraries_find(facts->root, &facts->python, &facts->packages,
                              facts->processor.machine, &facts->libraries);
    if (r == 0)
        r = pl_blas_facts_read(facts->root, &facts->python, &facts->packages, &facts->blas);
    if (r < 0) {
        pl_doctor_done(facts);
        return pl_error_set(reterr, r, "out of memory while reading the packages");
    }
    pl_installation_find(facts->root, options->program, options->guard, &facts->python,
                         &facts->installation);
    pl_gpu_read(facts->root, &facts->gpu);
    pl_system_read(facts->root, options->n_workers, &facts->system);
    return 0;
}

void pl_doctor_done(pl_doctor_facts *facts)
{
    pl_libraries_done(&facts->libraries);
    pl_packages_done(&facts->packages);
    pl_interpreter_done(&facts->python);
    pl_rules_done(&facts->rules);
}

int pl_doctor_examine(const pl_doctor_facts *facts, pl_findings *ret_findings, pl_error *reterr)
{
    pl_findings findings = {0};
    for (size_t i = 0; i < PL_COUNT_OF(checks); i++) {
        findings.check = checks[i].name;
        checks[i].make(facts, &findings);
    }
    if (findings.failed) {
        pl_findings_done(&findings);
        return pl_error_set(reterr, -ENOMEM, "out of memory for the findings");
    }
    *ret_findings = findings;
    return 0;
}
