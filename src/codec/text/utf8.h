/* SPDX-License-Identifier: Apache-2.0 */
/* Is it UTF-8? As Unicode has it: no overlong forms, no surrogates, nothing past U+10FFFF; what
 * Python's strict decoder takes. Pure; safe from any thread. */
#ifndef PL_CODEC_TEXT_UTF8_H
#define PL_CODEC_TEXT_UTF8_H

#include "base/base.h"

/* How many bytes are valid, from the first on: `n` if all are, else where the first bad sequence
 * begins. *ret_cut (may be NULL) says whether that one is only cut off: with more bytes behind it
 * it may yet be valid. */
size_t pl_utf8_valid_bytes(const void *bytes, size_t n, bool *ret_cut);

/* 3 if the bytes begin with the mark that some programs put before UTF-8, else 0. */
static inline size_t pl_utf8_mark_bytes(const void *bytes, size_t n)
{
    const uint8_t *b = bytes;
    return n >= 3 && b[0] == 0xef && b[1] == 0xbb && b[2] == 0xbf ? 3 : 0;
}

#endif
