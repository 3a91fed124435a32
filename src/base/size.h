/* SPDX-License-Identifier: Apache-2.0 */
/* Byte sizes in the form that people read and write. Pure; never allocates. */
#ifndef PL_BASE_SIZE_H
#define PL_BASE_SIZE_H

#include "base/base.h"

#define PL_SIZE_TEXT_BYTES 24

/* Parses "1536", "512M", "1.5G", "2GiB", "4k" (powers of 1024) and, when `whole_bytes` is not 0,
 * "80%" of it. White space, signs, "0" and anything over 2^63 are refused with PL_EFORMAT and a
 * message that shows the text and the accepted forms. */
PL_MUST_CHECK int pl_size_parse(const char *text, uint64_t whole_bytes, uint64_t *ret_bytes,
                                pl_error *reterr);

/* Writes "0 B", "980 B", "7.8 GiB", "512.0 MiB": with one decimal from KiB on. Returns `text`. */
const char *pl_size_format(uint64_t bytes, char text[PL_SIZE_TEXT_BYTES]);

/* Does the same as an expression for printf arguments. The text lives until the end of the
 * enclosing block. */
#define PL_SIZE(bytes) pl_size_format((bytes), (char[PL_SIZE_TEXT_BYTES]){0})

/* Rounds up, so that parsing the text again gives no less. For messages such as "give at least
 * ...". */
const char *pl_size_format_up(uint64_t bytes, char text[PL_SIZE_TEXT_BYTES]);
#define PL_SIZE_UP(bytes) pl_size_format_up((bytes), (char[PL_SIZE_TEXT_BYTES]){0})

#endif
