/* SPDX-License-Identifier: Apache-2.0 */
/* What a file is, by what is in it.
 *   format   what its bytes are. Text of any kind begins alike: whether it is meant to be CSV or
 *            JSON, the name tells first, then how it begins
 *   promise  what its name says that it is
 *
 * Pure; safe from any thread. */
#ifndef PL_VERIFY_FORMAT_H
#define PL_VERIFY_FORMAT_H

#include "base/base.h"

typedef enum pl_verify_format {
    PL_VERIFY_UNKNOWN, /* nothing that is known here: not looked into */
    PL_VERIFY_NPY,
    PL_VERIFY_NPZ,
    PL_VERIFY_TFRECORD,
    PL_VERIFY_JPEG,
    PL_VERIFY_PNG,
    PL_VERIFY_BMP,
    PL_VERIFY_TEXT,
    PL_VERIFY_CSV,
    PL_VERIFY_TAR,
    PL_VERIFY_JSON,
    PL_VERIFY_GZIP,    /* packed, and what is within is not looked into */
    PL_VERIFY_PICTURE, /* of a format that is not decoded: GIF, WebP, TIFF... */
} pl_verify_format;

enum { PL_VERIFY_N_FORMATS = PL_VERIFY_PICTURE + 1 };

/* Is it decoded as an image? A picture that is not is told so. */
static inline bool pl_verify_is_image(pl_verify_format format)
{
    return format == PL_VERIFY_JPEG || format == PL_VERIFY_PNG || format == PL_VERIFY_BMP ||
           format == PL_VERIFY_PICTURE;
}

/* "npy", "tfrecord" and so on; "unknown". */
const char *pl_verify_format_name(pl_verify_format format);

/* False if nobody calls a format so. */
bool pl_verify_format_parse(const char *name, pl_verify_format *ret_format);

/* What the name of a file promises; ".gz" at its end is passed over. PL_VERIFY_UNKNOWN: nothing. */
pl_verify_format pl_verify_promise(const char *path);

/* Does the name say that one JSON value follows another? */
bool pl_verify_promises_json_lines(const char *path);

/* By the first bytes of the file, unpacked; `is_all` if there are no more. What its name promises
 * settles what bytes cannot. */
pl_verify_format pl_verify_sniff(const void *bytes, size_t n, bool is_all,
                                 pl_verify_format promise);

/* The delimiter of a CSV: the one of , ; tab | that its first line has most of. */
char pl_verify_delimiter(const char *bytes, size_t n);

#endif
