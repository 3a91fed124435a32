/* SPDX-License-Identifier: Apache-2.0 */
/* See tar_header.h. POSIX (ustar) defines the fields of a header; binary numbers are GNU's. */
#include "codec/archive/tar_header.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "codec/archive/tar.h"

typedef struct field {
    size_t at, n;
} field;

static const field name_field = {0, 100}, size_field = {124, 12}, sum_field = {148, 8},
                   magic_field = {257, 6}, prefix_field = {345, 155};
enum { TYPE_AT = 156, MORE_MAP_AT = 482 };

/* Reads octal digits, with blanks before and blanks or NULs after them; no digits mean 0. */
static bool read_octal(const uint8_t *at, size_t n, uint64_t *ret_value)
{
    const uint8_t *end = at + n;
    uint64_t value = 0;
    while (at < end && *at == ' ')
        at++;
    for (; at < end && *at >= '0' && *at <= '7'; at++)
        value = value << 3 | (uint64_t)(*at - '0');
    while (at < end && *at == ' ')
        at++;
    *ret_value = value;
    return at == end || *at == '\0';
}

/* Reads the same, or a binary number after a byte of 0x80. */
static bool read_number(const uint8_t *bytes, field f, uint64_t *ret_value)
{
    const uint8_t *at = bytes + f.at;
    if (*at < 0x80)
        return read_octal(at, f.n, ret_value);
    if (*at != 0x80)
        return false; /* negative, or far too large */
    uint64_t value = 0;
    for (size_t i = 1; i < f.n; i++) {
        if (value >> 55 != 0)
            return false;
        value = value << 8 | at[i];
    }
    *ret_value = value;
    return true;
}

/* Sums all bytes, with blanks for the checksum itself. Some programs used signed bytes. */
static bool sum_is_right(const uint8_t *bytes, uint64_t written, uint64_t *ret_sum)
{
    uint64_t sum = 0;
    int64_t of_signed = 0;
    for (size_t i = 0; i < PL_TAR_BLOCK_BYTES; i++) {
        bool is_sum = i >= sum_field.at && i < sum_field.at + sum_field.n;
        uint8_t byte = is_sum ? ' ' : bytes[i];
        sum += byte;
        of_signed += (int8_t)byte;
    }
    *ret_sum = sum;
    return written == sum || (int64_t)written == of_signed;
}

static bool is_zero(const uint8_t *bytes)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, PL_TAR_BLOCK_BYTES - 1) == 0;
}

static void add_name(const uint8_t *bytes, field f, pl_tar_header *header)
{
    size_t n = strnlen((const char *)bytes + f.at, f.n);
    memcpy(header->name + header->n_name, bytes + f.at, n);
    header->n_name += n;
}

static void read_name(const uint8_t *bytes, pl_tar_header *header)
{
    header->n_name = 0;
    /* GNU writes "ustar " there, and uses the place of the prefix for something else. */
    if (memcmp(bytes + magic_field.at, "ustar", magic_field.n) == 0)
        add_name(bytes, prefix_field, header);
    if (header->n_name > 0)
        header->name[header->n_name++] = '/';
    add_name(bytes, name_field, header);
    header->name[header->n_name] = '\0';
}

int pl_tar_header_parse(const uint8_t *bytes, pl_tar_header *ret_header)
{
    uint64_t written, sum;
    char *problem = ret_header->problem;
    if (is_zero(bytes))
        return 0;
    if (!read_octal(bytes + sum_field.at, sum_field.n, &written)) {
        snprintf(problem, sizeof ret_header->problem,
                 "no header of a tar entry: it has no checksum");
        return PL_ECORRUPT;
    }
    if (!sum_is_right(bytes, written, &sum)) {
        snprintf(problem, sizeof ret_header->problem,
                 "a header with a wrong checksum: %" PRIu64 " is written, its bytes are %" PRIu64,
                 written, sum);
        return PL_ECORRUPT;
    }
    if (!read_number(bytes, size_field, &ret_header->size)) {
        snprintf(problem, sizeof ret_header->problem, "a header with a size that is not a number");
        return PL_ECORRUPT;
    }
    read_name(bytes, ret_header);
    ret_header->type = (char)bytes[TYPE_AT];
    ret_header->more_map = bytes[MORE_MAP_AT] != 0;
    return 1;
}

bool pl_tar_decimal(const char *text, size_t n, uint64_t *ret_value)
{
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9' || value > (INT64_MAX - 9) / 10)
            return false;
        value = 10 * value + (uint64_t)(text[i] - '0');
    }
    *ret_value = value;
    return n > 0;
}

const char *pl_tar_attribute_next(const char *text, size_t n, pl_tar_attribute *ret_attribute)
{
    const char *blank = memchr(text, ' ', n < 20 ? n : 20);
    uint64_t length;
    if (!blank || !pl_tar_decimal(text, (size_t)(blank - text), &length) || length > n)
        return NULL;
    const char *end = text + length, *key = blank + 1;
    if (key >= end || end[-1] != '\n')
        return NULL;
    const char *equals = memchr(key, '=', (size_t)(end - key));
    if (!equals)
        return NULL;
    *ret_attribute = (pl_tar_attribute){key, equals + 1, (size_t)(equals - key),
                                        (size_t)(end - 1 - (equals + 1))};
    return end;
}
