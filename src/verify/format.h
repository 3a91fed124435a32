/* SPDX-License-Identifier: Apache-2.0 */
/* Recognises the format of a file by its content.
 *   format   the format of its bytes. Texts of any kind begin alike: the name first decides between
 *            CSV and JSON, then the beginning
 *   promise  the format that its name suggests
 *
 * Pure; safe from any thread. */
#ifndef PL_VERIFY_FORMAT_H
#define PL_VERIFY_FORMAT_H

#include "base/base.h"

/* Every format. X(format, name, check): the check is declared in file.h; NULL: the content is not
 * checked. `--format` accepts those between UNKNOWN and GZIP. */
#define PL_VERIFY_FORMATS(X)                                                                       \
    X(UNKNOWN, "unknown", NULL) /* no known format: not checked */                                 \
    X(NPY, "npy", pl_verify_npy)                                                                   \
    X(NPZ, "npz", pl_verify_npz)                                                                   \
    X(TFRECORD, "tfrecord", pl_verify_records)                                                     \
    X(JPEG, "jpeg", pl_verify_image)                                                               \
    X(PNG, "png", pl_verify_image)                                                                 \
    X(BMP, "bmp", pl_verify_image)                                                                 \
    X(TEXT, "text", pl_verify_text)                                                                \
    X(CSV, "csv", pl_verify_csv)                                                                   \
    X(TAR, "tar", pl_verify_tar)                                                                   \
    X(JSON, "json", pl_verify_json)                                                                \
    X(GZIP, "gzip", NULL)                  /* packed, and the content is not checked */            \
    X(PICTURE, "picture", pl_verify_image) /* of a format that is not decoded: GIF, WebP, TIFF */

typedef enum pl_verify_format {
#define PL_VERIFY_ENUM(format, name, check) PL_VERIFY_##format,
    PL_VERIFY_FORMATS(PL_VERIFY_ENUM)
#undef PL_VERIFY_ENUM
        PL_VERIFY_N_FORMATS, /* how many there are */
} pl_verify_format;

/* Is it decoded as an image? For other pictures the check reports that they are not. */
static inline bool pl_verify_is_image(pl_verify_format format)
{
    return format == PL_VERIFY_JPEG || format == PL_VERIFY_PNG || format == PL_VERIFY_BMP ||
           format == PL_VERIFY_PICTURE;
}

/* Returns "npy", "tfrecord" and so on; "unknown". */
const char *pl_verify_format_name(pl_verify_format format);

/* Finds a format by name; false if there is none with that name. */
bool pl_verify_format_parse(const char *name, pl_verify_format *ret_format);

/* Returns the format that a file's name promises; ignores ".gz" at its end. PL_VERIFY_UNKNOWN:
 * none. */
pl_verify_format pl_verify_promise(const char *path);

/* Does the name promise several JSON values, one after the other? */
bool pl_verify_promises_json_lines(const char *path);

/* Recognises the format by the first bytes of the file, unpacked; `is_all` if there are no more.
 * The promise of its name decides where bytes cannot. */
pl_verify_format pl_verify_sniff(const void *bytes, size_t n, bool is_all,
                                 pl_verify_format promise);

/* Guesses the delimiter of a CSV: the most frequent of , ; tab | in its first line. */
char pl_verify_delimiter(const char *bytes, size_t n);

#endif
