/* SPDX-License-Identifier: Apache-2.0 */
/* A dataset as text, by which files made of it recognise it.
 *
 * A line for each source and stage, with each input indented below it: class, parameters and specs.
 * Datasets made by the same calls have the same text in every process. Callbacks and values of
 * tensors do not show in it. */
#ifndef PL_DATA_CORE_DATASET_TEXT_H
#define PL_DATA_CORE_DATASET_TEXT_H

#include "data/core/stage.h"

/* To free(). -ENOMEM. */
PL_MUST_CHECK int pl_tree_text(const pl_dataset *dataset, char **ret_text, pl_error *reterr);

/* Where two texts differ: -EINVAL, with both lines, for the file at `path`; 0 if they do not. */
PL_MUST_CHECK int pl_tree_compare(const char *of_file, const char *of_dataset, const char *path,
                                  pl_error *reterr);

enum { PL_TREE_TEXT_MOST = 16 * 1024 * 1024 };

#endif
