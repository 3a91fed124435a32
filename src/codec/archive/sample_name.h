/* SPDX-License-Identifier: Apache-2.0 */
/* Splits the names of files that form samples, as in WebDataset: "train/0017.seg.png".
 *   key        everything up to the first dot in the last part of the path: "train/0017"
 *   extension  everything after that dot, in lower case: "seg.png"
 *
 * The files of a sample have the same key and follow each other. A file whose name begins with a
 * dot or has none does not belong to a sample; nor do a file or folder named "__..__" and the files
 * in it: they hold remarks on the whole archive. Pure; safe from any thread. */
#ifndef PL_CODEC_ARCHIVE_SAMPLE_NAME_H
#define PL_CODEC_ARCHIVE_SAMPLE_NAME_H

#include "base/base.h"

typedef struct pl_sample_name {
    size_t n_key;       /* of the start of the name */
    size_t n_extension; /* of the end: at name + n_key + 1 */
} pl_sample_name;

/* Splits a name. False: it does not belong to a sample. */
bool pl_sample_name_split(const char *name, size_t n, pl_sample_name *ret_name);

/* Converts ASCII to lower case, as extensions are compared. */
static inline char pl_sample_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

#endif
