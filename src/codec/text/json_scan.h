/* SPDX-License-Identifier: Apache-2.0 */
/* Is it JSON (RFC 8259)? Scanned a piece at a time, and nothing is made of it: a document of any
 * size takes the few bytes below, where a parser keeps all of it, and jansson several times as
 * much.
 *   value  what a document is one of; of JSON lines there is one in each line, or none
 *   depth  of arrays and objects within each other: JSON_DEPTH_MAX at most, about what Python reads
 *
 * Strings must be UTF-8; escapes of lone surrogates are let pass, as Python does. NaN and Infinity,
 * which Python writes, are no JSON. Behind a fault nothing is scanned. Never allocates; one thread
 * at a time for each. */
#ifndef PL_CODEC_TEXT_JSON_SCAN_H
#define PL_CODEC_TEXT_JSON_SCAN_H

#include "base/base.h"

enum { PL_JSON_DEPTH_MAX = 1024 };

typedef struct pl_json_scan {
    uint64_t offset;   /* of the next byte; after a fault, where it is */
    uint64_t line;     /* 1: the first */
    const char *fault; /* NULL: none */
    bool lines;        /* JSON lines */
    /* For json_scan.c: */
    int state, after_string;
    const char *literal; /* what is left of it */
    int n_hex;
    uint8_t utf8[4]; /* a character that the piece ended in */
    int n_utf8;
    uint64_t n_values;
    bool line_has_value;
    uint32_t depth;
    uint64_t is_object[PL_JSON_DEPTH_MAX / 64]; /* a bit for each level */
} pl_json_scan;

void pl_json_scan_init(pl_json_scan *scan, bool lines);

/* False: there is a fault in these bytes, or was in some before. */
bool pl_json_scan_go_on(pl_json_scan *scan, const void *bytes, size_t n);

/* Nothing follows. False: something is missing. */
bool pl_json_scan_end(pl_json_scan *scan);

#endif
