/* SPDX-License-Identifier: Apache-2.0 */
/* Checks UTF-8 as Unicode defines it: no overlong forms, no surrogates, nothing over U+10FFFF; the
 * same as Python's strict decoder. Pure; safe from any thread. */
#ifndef PL_CODEC_TEXT_UTF8_H
#define PL_CODEC_TEXT_UTF8_H

#include "base/base.h"

/* Returns how many of the first bytes are valid: `n` if all are, else the offset of the first bad
 * sequence. *ret_cut (may be NULL) says whether that one is only cut off: more bytes could make it
 * valid. */
size_t pl_utf8_valid_bytes(const void *bytes, size_t n, bool *ret_cut);

/* Returns 3 if the bytes begin with a byte order mark, else 0. */
static inline size_t pl_utf8_mark_bytes(const void *bytes, size_t n)
{
    const uint8_t *b = bytes;
    return n >= 3 && b[0] == 0xef && b[1] == 0xbb && b[2] == 0xbf ? 3 : 0;
}

#endif
