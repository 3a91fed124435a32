/* SPDX-License-Identifier: Apache-2.0 */
/* Stores many paths in little more than their bytes.
 *   chunk  64 KiB of claimed memory with consecutive paths, each with its NUL
 *   place  where a path begins: its chunk and the byte within it, in 32 bits
 *
 * So a path costs its bytes, its NUL and four more, and growing moves only places: paths stay where
 * they are. While paths are added it belongs to one thread; then any number of threads may read. */
#ifndef PL_DATA_SOURCE_PATHS_H
#define PL_DATA_SOURCE_PATHS_H

#include "tensor/memory.h"

typedef struct pl_paths {
    pl_memory *memory; /* borrowed */
    pl_block *chunks;
    size_t n_chunks, n_chunk_room;
    size_t n_last; /* bytes of the last chunk that are taken */
    uint32_t *places;
    size_t n, n_room;
    bool by_part; /* how they are sorted */
} pl_paths;

void pl_paths_init(pl_paths *paths, pl_memory *memory);
void pl_paths_done(pl_paths *paths); /* all zero is allowed */

/* Fails with PL_EBUDGET, -ENOMEM, -ENAMETOOLONG if it does not fit in a chunk, or PL_EFULL after 4
 * GiB of paths. */
PL_MUST_CHECK int pl_paths_add(pl_paths *paths, const char *path, pl_error *reterr);

/* Adds "folder/name"; with an empty folder, the name alone. */
PL_MUST_CHECK int pl_paths_add_below(pl_paths *paths, const char *folder, const char *name,
                                     pl_error *reterr);

/* Sorts them by their bytes, or part by part, as their folders' names are sorted ("a/x" before
 * "a-b/x"); and removes duplicates. */
void pl_paths_sort(pl_paths *paths, bool by_part);

/* Keeps `n` of them in their order, all equally likely: the same ones each time. */
void pl_paths_thin(pl_paths *paths, size_t n);

/* Forgets all of them, to begin again. */
void pl_paths_clear(pl_paths *paths);

/* Releases spare room, when no more are added. */
void pl_paths_close(pl_paths *paths);

const char *pl_paths_at(const pl_paths *paths, size_t number);

#endif
