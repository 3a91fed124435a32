/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a pass in a file: numbers, bytes and elements, in the order that the stages wrote
 * them. Nothing that is read is trusted: what cannot be is PL_ECORRUPT. Belongs to one thread. */
#ifndef PL_DATA_STATE_H
#define PL_DATA_STATE_H

#include "data/stage.h"

PL_MUST_CHECK int pl_save_int(pl_saver *saver, int64_t value, pl_error *reterr);
PL_MUST_CHECK int pl_save_bytes(pl_saver *saver, const void *bytes, size_t n, pl_error *reterr);
PL_MUST_CHECK int pl_save_element(pl_saver *saver, const pl_element *element, pl_error *reterr);

/* A stage that is no input of its dataset, with all below it. */
PL_MUST_CHECK int pl_save_stage(pl_saver *saver, pl_stage *stage, pl_error *reterr);

/* Within [least, most], or PL_ECORRUPT. */
PL_MUST_CHECK int pl_load_int(pl_loader *loader, int64_t least, int64_t most, int64_t *ret_value,
                              pl_error *reterr);

/* Exactly so many bytes as were saved. */
PL_MUST_CHECK int pl_load_bytes(pl_loader *loader, void *bytes, size_t n, pl_error *reterr);

/* One that the specs of `dataset` allow. */
PL_MUST_CHECK int pl_load_element(pl_loader *loader, const pl_dataset *dataset,
                                  pl_element *ret_element, pl_error *reterr);
PL_MUST_CHECK int pl_load_stage(pl_loader *loader, pl_stage *stage, pl_error *reterr);

#endif
