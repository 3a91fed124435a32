/* SPDX-License-Identifier: Apache-2.0 */
/* Elements in memory, in order: caches, and datasets that are components of elements.
 *   chunk  a buffer with elements as bytes (state.h): claimed, and spilled when room is needed
 *   held   a larger tensor, stored by reference: readers share it instead of copying it
 *
 * So a million numbers cost some ten bytes each, and large tensors only their own bytes. One thread
 * fills a store; from pl_store_end() on it is constant, and any number of threads may read it.
 * Reference-counted. */
#ifndef PL_DATA_PERSIST_STORE_H
#define PL_DATA_PERSIST_STORE_H

#include "data/persist/state.h"

typedef struct pl_store pl_store;

/* -ENOMEM. */
PL_MUST_CHECK int pl_store_new(pl_runtime *runtime, pl_store **ret_store, pl_error *reterr);
pl_store *pl_store_ref(pl_store *store);
void pl_store_unref(pl_store *store); /* NULL is allowed */

/* Appends a copy. On PL_EBUDGET the store is unchanged. */
PL_MUST_CHECK int pl_store_add(pl_store *store, const pl_element *element, pl_error *reterr);

/* Marks the store as complete. */
void pl_store_end(pl_store *store);

int64_t pl_store_n(const pl_store *store);

typedef struct pl_store_reader {
    pl_loader loader;
    pl_store *store; /* NULL: nothing is being read */
    int64_t n_read;
    int next_chunk;    /* the one before it is pinned */
    size_t skip_bytes; /* of the next one: they were read already */
} pl_store_reader;

/* From the first element on. The thread that fills a store may read it before it is complete. */
void pl_store_read_begin(pl_store_reader *reader, pl_store *store);
void pl_store_read_end(pl_store_reader *reader);

/* 1; 0 at the end. `dataset` has the elements' specs. PL_EBUDGET leaves the reader unchanged. */
PL_MUST_CHECK int pl_store_read(pl_store_reader *reader, const pl_dataset *dataset,
                                pl_element *ret_element, pl_error *reterr);

/* Saves all elements as bytes, or loads them into a new store. */
PL_MUST_CHECK int pl_store_save(pl_store *store, const pl_dataset *dataset, pl_saver *saver,
                                pl_error *reterr);
PL_MUST_CHECK int pl_store_load(pl_loader *loader, const pl_dataset *dataset, pl_store **ret_store,
                                pl_error *reterr);

/* Makes a dataset of the store's elements: "elements". */
PL_MUST_CHECK int pl_store_dataset(pl_store *store, const pl_spec *specs, int n_components,
                                   pl_dataset **ret_dataset, pl_error *reterr);

/* Saves a component that is a dataset, with all its elements; it is restored as a dataset of a
 * store. Fails with -EINVAL for an infinite one. */
PL_MUST_CHECK int pl_store_save_dataset(pl_saver *saver, pl_dataset *dataset, pl_error *reterr);
PL_MUST_CHECK int pl_store_load_dataset(pl_loader *loader, const pl_spec *spec,
                                        pl_dataset **ret_dataset, pl_error *reterr);

#endif
