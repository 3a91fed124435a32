/* SPDX-License-Identifier: Apache-2.0 */
/* Reports findings in the order of the walk, although files are checked in any order. For verify.c,
 * with its lock held. */
#ifndef PL_VERIFY_TELL_H
#define PL_VERIFY_TELL_H

#include "verify/slots.h"

typedef struct pl_verify_teller {
    const pl_verify_slots *slots;     /* borrowed, like the following */
    const pl_verify_options *options; /* their `tell` is called */
    pl_verify_summary *summary;       /* errors and warnings are counted here */
    size_t n_told;                    /* files before this one have been reported */
    struct pl_verify_schema *schema;  /* of the first TFRecord file */
    const char *schema_path;
    pl_error failure; /* the error of the options' `tell`: nothing more is reported */
} pl_verify_teller;

void pl_verify_teller_done(pl_verify_teller *teller);

/* Reports all finished files, from the first unreported one of the first `n` up to the first that
 * is not finished; with `all`, skips those that are not finished. Returns the error of the options'
 * `tell`, now or earlier. */
PL_MUST_CHECK int pl_verify_tell(pl_verify_teller *teller, size_t n, bool all, pl_error *reterr);

#endif
