/* SPDX-License-Identifier: Apache-2.0 */
/* `plimsoll doctor`: finds problems with this machine before a run meets them.
 *   facts     what was read, once, about the examined Python, its packages and the system
 *   check     a function from facts to findings; doctor.c has the table. Checks read only facts and
 *             environment variables, so they behave the same on a made-up machine
 * Nothing that is examined is imported or changed. Allocates; one thread. */
#ifndef PL_PREFLIGHT_DOCTOR_H
#define PL_PREFLIGHT_DOCTOR_H

#include "base/base.h"
#include "preflight/blas.h"
#include "preflight/cpu_features.h"
#include "preflight/findings.h"
#include "preflight/gpu.h"
#include "preflight/installation.h"
#include "preflight/interpreter.h"
#include "preflight/libraries.h"
#include "preflight/packages.h"
#include "preflight/rules.h"
#include "preflight/system.h"

typedef struct pl_doctor_options {
    const char *root;            /* prefix of every path; NULL = this system */
    const char *python;          /* NULL: the one on PATH */
    const char *rules;           /* path of doctor.csv */
    unsigned n_workers;          /* 0: as many as processors */
    const char *program, *guard; /* this command's own; NULL: see installation.h */
} pl_doctor_options;

typedef struct pl_doctor_facts {
    const char *root; /* "" = this system */
    bool python_asked;
    int python_code; /* 0: `python` is valid; else the error, with `python_error` */
    pl_error python_error;
    pl_rules rules;
    pl_interpreter python;
    pl_packages packages;
    pl_libraries libraries;
    pl_installation installation;
    pl_cpu_features processor;
    pl_blas_facts blas;
    pl_gpu gpu;
    pl_system system;
} pl_doctor_facts;

/* Fails only if the rules cannot be read or memory runs out; everything else becomes a finding. */
PL_MUST_CHECK int pl_doctor_gather(const pl_doctor_options *options, pl_doctor_facts *ret_facts,
                                   pl_error *reterr);
void pl_doctor_done(pl_doctor_facts *facts);

/* Runs every check, in the order of the table. -ENOMEM. */
PL_MUST_CHECK int pl_doctor_examine(const pl_doctor_facts *facts, pl_findings *ret_findings,
                                    pl_error *reterr);

#endif
