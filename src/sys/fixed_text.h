/* SPDX-License-Identifier: Apache-2.0 */
/* Builds paths and reads numbers without stdio: snprintf may allocate and strtoull accepts white
 * space and signs, but callers run inside malloc() and read text from outside. */
#ifndef PL_SYS_FIXED_TEXT_H
#define PL_SYS_FIXED_TEXT_H

#include "base/base.h"

/* Text in the caller's storage, always NUL-terminated. `overflow` is set once something did not
 * fit: a path that was cut is useless, so check it before use. */
typedef struct pl_fixed_text {
    char *start;
    size_t size;
    size_t length;
    bool overflow;
} pl_fixed_text;

pl_fixed_text pl_fixed_text_begin(char *storage, size_t size);
void pl_fixed_text_add(pl_fixed_text *text, const char *string);
void pl_fixed_text_add_n(pl_fixed_text *text, const char *bytes, size_t n);
void pl_fixed_text_add_u64(pl_fixed_text *text, uint64_t number);

/* Reads the decimal digits at *cursor and moves it behind them. False, without moving it, when
 * there is no digit or the number does not fit. */
bool pl_fixed_text_take_u64(const char **cursor, uint64_t *ret_number);

/* Finds the number after `key` and white space, on the line that begins with exactly that key:
 * "oom_kill 3", "MemTotal:  12 kB" (key "MemTotal:"). False when there is no such line. */
bool pl_fixed_text_find_u64(const char *text, const char *key, uint64_t *ret_number);

#endif
