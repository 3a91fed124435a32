/* SPDX-License-Identifier: Apache-2.0 */
/* See fixed_text.h. */
#include <string.h>

#include "sys/fixed_text.h"

pl_fixed_text pl_fixed_text_begin(char *storage, size_t size)
{
    if (size > 0)
        storage[0] = '\0';
    return (pl_fixed_text){.start = storage, .size = size, .overflow = size == 0};
}

void pl_fixed_text_add_n(pl_fixed_text *text, const char *bytes, size_t n)
{
    if (text->overflow || n >= text->size - text->length) {
        text->overflow = true;
        return;
    }
    memcpy(text->start + text->length, bytes, n);
    text->length += n;
    text->start[text->length] = '\0';
}

void pl_fixed_text_add(pl_fixed_text *text, const char *string)
{
    pl_fixed_text_add_n(text, string, strlen(string));
}

void pl_fixed_text_add_u64(pl_fixed_text *text, uint64_t number)
{
    char digits[20]; /* UINT64_MAX has 20 */
    size_t first = sizeof digits;
    do {
        digits[--first] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    pl_fixed_text_add_n(text, digits + first, sizeof digits - first);
}

bool pl_fixed_text_take_u64(const char **cursor, uint64_t *ret_number)
{
    const char *p = *cursor;
    uint64_t number = 0;
    if (*p < '0' || *p > '9')
        return false;
    for (; *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(number, UINT64_C(10), &number) ||
            __builtin_add_overflow(number, (uint64_t)(*p - '0'), &number))
            return false;
    *cursor = p;
    *ret_number = number;
    return true;
}

bool pl_fixed_text_find_u64(const char *text, const char *key, uint64_t *ret_number)
{
    size_t key_length = strlen(key);
    for (const char *line = text; line && *line;) {
        const char *value = line + key_length;
        if (strncmp(line, key, key_length) == 0 && (*value == ' ' || *value == '\t')) {
            value += strspn(value, " \t");
            return pl_fixed_text_take_u64(&value, ret_number);
        }
        const char *end = strchr(line, '\n');
        line = end ? end + 1 : NULL;
    }
    return false;
}
