/* SPDX-License-Identifier: Apache-2.0 */
/* plimsoll._core.Iterator: one pass over a Dataset, whose elements are packed by a Structure. Any
 * number of Python's threads may use it: see pass.h. */
#ifndef PL_PYTHON_DATASET_ITERATOR_TYPE_H
#define PL_PYTHON_DATASET_ITERATOR_TYPE_H

#include "python/module/module.h"

/* The components of the one element of a dataset, a list; takes over `set`. */
PyObject *iterator_only_element(pl_dataset *set);

/* All elements, to a folder: see pl_dataset_save(). */
PyObject *iterator_save_all(pl_dataset *set, const char *path, int64_t n_shards);

#endif
