/* SPDX-License-Identifier: Apache-2.0 */
/* Names of files that form samples, as WebDataset lays them out: "train/0017.seg.png".
 *   key        all up to the first dot of the last part of the path: "train/0017"
 *   extension  what is behind that dot, in lower case: "seg.png"
 *
 * Files of one sample have one key, and are behind each other. A file whose name begins with a dot
 * or has none is part of no sample; nor is what is in a folder, or called, "__..__": that is for
 * remarks on the whole archive. Pure; safe from any thread. */
#ifndef PL_CODEC_ARCHIVE_SAMPLE_NAME_H
#define PL_CODEC_ARCHIVE_SAMPLE_NAME_H

#include "base/base.h"

typedef struct pl_sample_name {
    size_t n_key;       /* the first bytes of the name */
    size_t n_extension; /* the last ones: name + n_key + 1 */
} pl_sample_name;

/* False: it is part of no sample. */
bool pl_sample_name_split(const char *name, size_t n, pl_sample_name *ret_name);

/* Lower case of ASCII, as extensions are compared. */
static inline char pl_sample_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

#endif
