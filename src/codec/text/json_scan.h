/* SPDX-License-Identifier: Apache-2.0 */
/* Checks piece by piece that a text is JSON (RFC 8259), without building a value: a document of any
 * size takes the few bytes below, while a parser keeps all of it, and jansson several times as
 * much.
 *   value  a document has one; JSON lines have one in each line, or none
 *   depth  the nesting of arrays and objects: JSON_DEPTH_MAX at most, about Python's limit
 *
 * Strings must be UTF-8; escapes of lone surrogates are accepted, as in Python. NaN and Infinity,
 * which Python writes, are not JSON. Nothing is scanned after an error. Never allocates; one thread
 * at a time for each. */
#ifndef PL_CODEC_TEXT_JSON_SCAN_H
#define PL_CODEC_TEXT_JSON_SCAN_H

#include "base/base.h"

enum { PL_JSON_DEPTH_MAX = 1024 };

typedef struct pl_json_scan {
    uint64_t offset;   /* of the next byte; after an error, its place */
    uint64_t line;     /* from 1 */
    const char *fault; /* NULL: none */
    bool lines;        /* the text is JSON lines */
    /* For json_scan.c: */
    int state, after_string;
    const char *literal; /* its remaining characters */
    int n_hex;
    uint8_t utf8[4]; /* a character that the piece cut off */
    int n_utf8;
    uint64_t n_values;
    bool line_has_value;
    uint32_t depth;
    uint64_t is_object[PL_JSON_DEPTH_MAX / 64]; /* a bit for each level */
} pl_json_scan;

void pl_json_scan_init(pl_json_scan *scan, bool lines);

/* Scans the next bytes. False: they contain an error, or earlier ones did. */
bool pl_json_scan_go_on(pl_json_scan *scan, const void *bytes, size_t n);

/* Ends the text. False: something is missing. */
bool pl_json_scan_end(pl_json_scan *scan);

#endif
