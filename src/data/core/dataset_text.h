/* SPDX-License-Identifier: Apache-2.0 */
/* A dataset as text, by which its files recognise it.
 *
 * A line for each source and stage, with each input indented below it: class, parameters and specs.
 * Datasets made by the same calls have the same text in every process. It does not contain
 * callbacks or values of tensors. */
#ifndef PL_DATA_CORE_DATASET_TEXT_H
#define PL_DATA_CORE_DATASET_TEXT_H

#include "data/core/stage.h"

/* The caller frees the text with free(). Fails with -ENOMEM. */
PL_MUST_CHECK int pl_tree_text(const pl_dataset *dataset, char **ret_text, pl_error *reterr);

/* Returns 0 if the texts are equal; else -EINVAL, with the differing lines, for the file at
 * `path`. */
PL_MUST_CHECK int pl_tree_compare(const char *of_file, const char *of_dataset, const char *path,
                                  pl_error *reterr);

enum { PL_TREE_TEXT_MOST = 16 * 1024 * 1024 };

#endif
