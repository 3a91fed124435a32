/* SPDX-License-Identifier: Apache-2.0 */
/* Findings are told in the order of the walk, whatever order files are looked at in. For verify.c,
 * with its lock held. */
#ifndef PL_VERIFY_TELL_H
#define PL_VERIFY_TELL_H

#include "verify/slots.h"

typedef struct pl_verify_teller {
    const pl_verify_slots *slots;     /* borrowed, as what follows */
    const pl_verify_options *options; /* whose `tell` it is */
    pl_verify_summary *summary;       /* errors and warnings are counted in */
    size_t n_told;                    /* files before this one are told */
    struct pl_verify_schema *schema;  /* of the first TFRecord file */
    const char *schema_path;
    pl_error failure; /* of the options' `tell`: nothing is told any more */
} pl_verify_teller;

void pl_verify_teller_done(pl_verify_teller *teller);

/* What is done from the first file on that is not told yet, of the first `n` files; with `all`,
 * whatever is done of them. What the options' `tell` failed with, now or before. */
PL_MUST_CHECK int pl_verify_tell(pl_verify_teller *teller, size_t n, bool all, pl_error *reterr);

#endif
