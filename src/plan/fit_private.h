/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by fit.c, which decides, fit_memory.c, which counts, and fit_refuse.c, which explains
 * refusals. */
#ifndef PL_PLAN_FIT_PRIVATE_H
#define PL_PLAN_FIT_PRIVATE_H

#include "plan/plan.h"

typedef struct pl_fitter {
    pl_plan *plan;
    const pl_plan_request *request;
    pl_error *reterr;    /* of errors other than PL_EBUDGET */
    uint64_t *in_memory; /* values at each step */
    uint64_t slab_bytes; /* of small kept values */
    int first_small;     /* the step that makes the first of them */
    int *next;           /* use of each value, from some step on */
    int restart;         /* the first step that the last spill has changed */
} pl_fitter;

/* ---- fit_memory.c ---- */

/* Returns whether the value is small and kept: it then shares a slab with others. */
bool pl_fit_is_in_slab(const pl_fitter *f, const pl_plan_value *value);

/* Returns the first step from `s` on that reads or makes the value; n_steps if none does. */
int pl_fit_next_use(const pl_plan *plan, int value, int s);

/* Counts the memory of values at each step. */
void pl_fit_count_values(pl_fitter *f);

/* Counts the memory of kept values, and of the largest one that must be pinned again to be written.
 * *ret_largest may be -1. */
uint64_t pl_fit_count_end(pl_fitter *f, int *ret_largest);

/* ---- fit.c ---- */

bool pl_fit_can_spill(const pl_fitter *f, const pl_plan_value *value);
bool pl_fit_is_small_source(const pl_plan_value *value);

/* *ret_bytes is the least scratch of a step. Returns 0, or an error. */
PL_MUST_CHECK int pl_fit_smallest_scratch(pl_fitter *f, pl_step *step, uint64_t *ret_bytes);

/* Cuts rows that were whole until now. Returns 1, or 0 if they cannot be cut, or -ENOMEM. */
PL_MUST_CHECK int pl_fit_cut_rows(pl_fitter *f, pl_step *step);

/* ---- fit_refuse.c ---- */

/* Fails with -ENOSPC if more is spilled at a time than the disk has room for. */
PL_MUST_CHECK int pl_fit_count_disk(pl_fitter *f, pl_error *reterr);

/* Fails with PL_EBUDGET and the smallest budget that would do, or -ENOSPC and the disk space. */
PL_MUST_CHECK int pl_fit_refuse(pl_fitter *f, pl_error *reterr);

#endif
