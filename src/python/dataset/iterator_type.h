/* SPDX-License-Identifier: Apache-2.0 */
/* plimsoll._core.Iterator: one pass over a Dataset, with elements packed by a Structure. Any number
 * of Python threads may use it: see pass.h. */
#ifndef PL_PYTHON_DATASET_ITERATOR_TYPE_H
#define PL_PYTHON_DATASET_ITERATOR_TYPE_H

#include "python/module/module.h"

/* The components of a dataset's only element, a list; takes over `set`. */
PyObject *iterator_only_element(pl_dataset *set);

/* Saves all elements to a folder: see pl_dataset_save(). */
PyObject *iterator_save_all(pl_dataset *set, const char *path, int64_t n_shards);

#endif
