/* SPDX-License-Identifier: Apache-2.0 */
/* See size.h. Fractions are computed in integers, so that "1.1G" is the same everywhere. */
#include "base/size.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

__extension__ typedef unsigned __int128 wide;

static const char unit_letters[] = "KMGTPE";
static const uint64_t max_bytes = UINT64_C(1) << 63;

/* A decimal number: digits / scale. */
typedef struct decimal {
    uint64_t digits;
    uint64_t scale;
} decimal;

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool push_digit(decimal *number, char c)
{
    return !__builtin_mul_overflow(number->digits, UINT64_C(10), &number->digits) &&
           !__builtin_add_overflow(number->digits, (uint64_t)(c - '0'), &number->digits);
}

/* Parses "12" or "12.5", with digits on both sides of the point. Returns the rest of the text, or
 * NULL. */
static const char *parse_decimal(const char *text, decimal *ret_number)
{
    decimal number = {.scale = 1};
    const char *p = text;
    for (; is_digit(*p); p++)
        if (!push_digit(&number, *p))
            return NULL;
    if (p == text)
        return NULL;
    if (*p == '.') {
        if (!is_digit(*++p))
            return NULL;
        for (; is_digit(*p); p++) {
            if (!push_digit(&number, *p) ||
                __builtin_mul_overflow(number.scale, UINT64_C(10), &number.scale))
                return NULL;
        }
    }
    *ret_number = number;
    return p;
}

static char to_upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

/* Parses "", "B", "k", "kB", "kiB" and so on, in either case. Returns 0 for an unknown unit. */
static uint64_t parse_unit(const char *text)
{
    uint64_t unit = 1;
    const char *letter = *text ? strchr(unit_letters, to_upper(*text)) : NULL;
    if (letter) {
        unit <<= 10 * (letter - unit_letters + 1);
        text++;
        if (to_upper(text[0]) == 'I' && to_upper(text[1]) == 'B')
            text++;
    }
    if (to_upper(*text) == 'B')
        text++;
    return *text ? 0 : unit;
}

static int refuse(const char *text, uint64_t whole_bytes, pl_error *reterr)
{
    return pl_error_set(reterr, PL_EFORMAT,
                        "'%.60s' is not a size: write bytes, or 512M, 1.5G, 2GiB%s", text,
                        whole_bytes > 0 ? ", or a share such as 80%" : "");
}

int pl_size_parse(const char *text, uint64_t whole_bytes, uint64_t *ret_bytes, pl_error *reterr)
{
    decimal number;
    const char *rest = parse_decimal(text, &number);
    if (!rest)
        return refuse(text, whole_bytes, reterr);

    wide bytes;
    if (strcmp(rest, "%") == 0 && whole_bytes > 0) {
        if (number.digits > (wide)number.scale * 100)
            return pl_error_set(reterr, PL_EFORMAT, "'%.60s' is more than the whole", text);
        bytes = (wide)number.digits * whole_bytes / number.scale / 100;
    } else {
        uint64_t unit = parse_unit(rest);
        if (unit == 0 || (unit == 1 && number.scale > 1))
            return refuse(text, whole_bytes, reterr);
        bytes = (wide)number.digits * unit / number.scale;
    }
    if (bytes == 0)
        return pl_error_set(reterr, PL_EFORMAT, "'%.60s' is 0 bytes", text);
    if (bytes > max_bytes)
        return pl_error_set(reterr, PL_EFORMAT, "'%.60s' is more than 8E, the largest size", text);
    *ret_bytes = (uint64_t)bytes;
    return 0;
}

/* Returns bytes / unit in tenths, after adding `more` for rounding. Cannot wrap: the remainder is
 * below 2^60. */
static uint64_t tenths_of(uint64_t bytes, uint64_t unit, uint64_t more)
{
    return bytes / unit * 10 + (bytes % unit * 10 + more) / unit;
}

static const char *format(uint64_t bytes, bool up, char text[PL_SIZE_TEXT_BYTES])
{
    if (bytes < PL_KIB) {
        snprintf(text, PL_SIZE_TEXT_BYTES, "%" PRIu64 " B", bytes);
        return text;
    }
    uint64_t unit = PL_KIB, tenths;
    const char *letter = unit_letters;
    /* Moves on to the next unit, so that 1023.95 KiB becomes 1.0 MiB, not 1024.0 KiB. Ends at EiB:
     * 2^64 bytes are 16 EiB. */
    while ((tenths = tenths_of(bytes, unit, up ? unit - 1 : unit / 2)) >= 10240) {
        unit <<= 10;
        letter++;
    }
    snprintf(text, PL_SIZE_TEXT_BYTES, "%u.%c %ciB", (unsigned)tenths / 10,
             '0' + (char)(tenths % 10), *letter);
    return text;
}

const char *pl_size_format(uint64_t bytes, char text[PL_SIZE_TEXT_BYTES])
{
    return format(bytes, false, text);
}

const char *pl_size_format_up(uint64_t bytes, char text[PL_SIZE_TEXT_BYTES])
{
    return format(bytes, true, text);
}
