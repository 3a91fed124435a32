/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the files in a folder, to free(). NULL: out of memory. */
#ifndef PL_DATA_PERSIST_FOLDER_NAMES_H
#define PL_DATA_PERSIST_FOLDER_NAMES_H

#include <inttypes.h>
#include <stdio.h>

#define PL_FOLDER_SHARD_END ".shard"

static inline char *pl_folder_metadata_path(const char *folder)
{
    char *path;
    return asprintf(&path, "%s/metadata", folder) < 0 ? NULL : path;
}

static inline char *pl_folder_shard_path(const char *folder, const char *run, int64_t shard,
                                         int64_t n_shards)
{
    char *path;
    int n = asprintf(&path, "%s/%s-%05" PRId64 "-of-%05" PRId64 PL_FOLDER_SHARD_END, folder, run,
                     shard, n_shards);
    return n < 0 ? NULL : path;
}

#endif
