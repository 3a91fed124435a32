/* SPDX-License-Identifier: Apache-2.0 */
/* A pass in a file. The pass is at rest: no thread is in any of its stages. */
#ifndef PL_DATA_PERSIST_CHECKPOINT_H
#define PL_DATA_PERSIST_CHECKPOINT_H

#include "data/core/iterator.h"

PL_MUST_CHECK int pl_checkpoint_write(const pl_iterator *iterator, const char *path,
                                      pl_error *reterr);

/* Into a pass that was just begun. */
PL_MUST_CHECK int pl_checkpoint_read(pl_iterator *iterator, const char *path, pl_error *reterr);

#endif
