/* SPDX-License-Identifier: Apache-2.0 */
/* See number.h. Floats of up to 19 digits, and an exponent of ten of at most 27 either way, are
 * computed exactly: 5^27 < 2^64, so their product with the digits has 128 bits, and their quotient
 * is had to 63 bits, with a remainder that says whether there is more. One rounding, then. These
 * are all that programs write for values of everyday size; the rest is left to the C library. */
#include "codec/number.h"

#include <errno.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned __int128 wide;

enum { DIGITS_MAX = 19, FIVES_MAX = 27 };

static const uint64_t powers_of_five[FIVES_MAX + 1] = {
    1,
    5,
    25,
    125,
    625,
    3125,
    15625,
    78125,
    390625,
    1953125,
    9765625,
    48828125,
    244140625,
    1220703125,
    6103515625,
    30517578125,
    152587890625,
    762939453125,
    3814697265625,
    19073486328125,
    95367431640625,
    476837158203125,
    2384185791015625,
    11920928955078125,
    59604644775390625,
    298023223876953125,
    1490116119384765625,
    7450580596923828125,
};

typedef struct text_range {
    const char *at, *end;
} text_range;

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static text_range trimmed(const char *text, size_t n)
{
    text_range t = {text, text + n};
    while (t.at < t.end && is_blank(*t.at))
        t.at++;
    while (t.at < t.end && is_blank(t.end[-1]))
        t.end--;
    return t;
}

static bool take_sign(text_range *t)
{
    bool negative = t->at < t->end && *t->at == '-';
    t->at += t->at < t->end && (*t->at == '-' || *t->at == '+');
    return negative;
}

/* ---- integers ---- */

int pl_number_i64(const char *text, size_t n, int64_t *ret_value)
{
    text_range t = trimmed(text, n);
    bool negative = take_sign(&t), overflow = false;
    if (t.at == t.end)
        return PL_EFORMAT;
    int64_t value = 0; /* below zero, where one number more fits */
    for (; t.at < t.end; t.at++) {
        if (!is_digit(*t.at))
            return PL_EFORMAT;
        overflow |= __builtin_mul_overflow(value, 10, &value);
        overflow |= __builtin_sub_overflow(value, *t.at - '0', &value);
    }
    if (overflow || (!negative && value == INT64_MIN))
        return -ERANGE;
    *ret_value = negative ? value : -value;
    return 0;
}

int pl_number_i32(const char *text, size_t n, int32_t *ret_value)
{
    int64_t value;
    int r = pl_number_i64(text, n, &value);
    if (r < 0)
        return r;
    if (value < INT32_MIN || value > INT32_MAX)
        return -ERANGE;
    *ret_value = (int32_t)value;
    return 0;
}

/* ---- floats ---- */

/* digits * 10^exponent */
typedef struct decimal {
    uint64_t digits;
    int exponent;
    bool negative;
} decimal;

/* Digits up to something else, appended to d->digits, of which there are *n then; zeros in front of
 * all others are none. What is past DIGITS_MAX is counted only. */
static const char *take_digits(const char *at, const char *end, decimal *d, int *n)
{
    for (; at < end && is_digit(*at) && *n <= DIGITS_MAX; at++) {
        if (*n < DIGITS_MAX)
            d->digits = 10 * d->digits + (uint64_t)(*at - '0');
        *n += d->digits != 0;
    }
    return at;
}

/* The exponent behind an 'e', of at most three digits: false if it is none. */
static bool take_exponent(text_range *t, decimal *d)
{
    t->at++;
    bool negative = take_sign(t);
    int value = 0;
    const char *begin = t->at;
    for (; t->at < t->end && is_digit(*t->at) && t->at - begin < 4; t->at++)
        value = 10 * value + (*t->at - '0');
    d->exponent += negative ? -value : value;
    return t->at > begin;
}

/* Is the whole text a decimal number that can be computed here? False says nothing else about it.
 */
static bool read_decimal(text_range t, decimal *ret_decimal)
{
    decimal d = {0};
    int n = 0;
    if (t.end - t.at > PL_NUMBER_TEXT_BYTES)
        return false;
    d.negative = take_sign(&t);
    const char *begin = t.at;
    t.at = take_digits(t.at, t.end, &d, &n);
    bool any = t.at > begin;
    if (t.at < t.end && *t.at == '.') {
        begin = ++t.at;
        t.at = take_digits(t.at, t.end, &d, &n);
        d.exponent = -(int)(t.at - begin);
        any |= t.at > begin;
    }
    if (!any || n > DIGITS_MAX)
        return false;
    if (t.at < t.end && (*t.at == 'e' || *t.at == 'E') && !take_exponent(&t, &d))
        return false;
    *ret_decimal = d;
    return t.at == t.end && d.exponent >= -FIVES_MAX && d.exponent <= FIVES_MAX;
}

/* mantissa * 2^exponent, and more below that if `inexact`, rounded to so many bits. The mantissa's
 * top bit is set; exponents are far from the ends of a double's range. */
static double rounded(uint64_t mantissa, int exponent, bool inexact, int n_bits)
{
    const uint64_t half = UINT64_C(1) << 63;
    uint64_t kept = mantissa >> (64 - n_bits), rest = mantissa << n_bits;
    bool up = rest > half || (rest == half && (inexact || (kept & 1)));
    uint64_t scale_bits = (uint64_t)(1023 + exponent + 64 - n_bits) << 52;
    double scale;
    memcpy(&scale, &scale_bits, sizeof scale);
    return (double)(int64_t)(kept + up) * scale; /* exact: at most 53 bits, times a power of two */
}

static double times_five(uint64_t digits, int exponent, int n_bits)
{
    wide product = (wide)digits * powers_of_five[exponent];
    uint64_t high = (uint64_t)(product >> 64);
    int shift = high ? __builtin_clzll(high) : 64 + __builtin_clzll((uint64_t)product);
    product <<= shift;
    return rounded((uint64_t)(product >> 64), 64 - shift + exponent, (uint64_t)product != 0,
                   n_bits);
}

static double by_five(uint64_t digits, int exponent, int n_bits)
{
    uint64_t divisor = powers_of_five[-exponent];
    int shift = __builtin_clzll(digits), divisor_shift = __builtin_clzll(divisor);
    divisor <<= divisor_shift;
    wide dividend = (wide)(digits << shift) << 63;
    uint64_t quotient = (uint64_t)(dividend / divisor); /* between 2^62 and 2^64 */
    bool inexact = (uint64_t)dividend != quotient * divisor;
    int small = quotient >> 63 == 0;
    return rounded(quotient << small, divisor_shift - shift - 63 - small + exponent, inexact,
                   n_bits);
}

static double compute(decimal d, int n_bits)
{
    double value = 0;
    if (d.digits != 0)
        value = d.exponent < 0 ? by_five(d.digits, d.exponent, n_bits)
                               : times_five(d.digits, d.exponent, n_bits);
    return d.negative ? -value : value;
}

/* The C library's, in the language that has a point. Hexadecimal numbers and "nan(...)" are C's
 * own. glibc's newlocale() hands out a constant for "C": nothing is allocated. */
static int read_by_library(text_range t, float *ret_f32, double *ret_f64)
{
    char text[PL_NUMBER_TEXT_BYTES + 1], *end;
    size_t n = (size_t)(t.end - t.at);
    if (n == 0 || n > PL_NUMBER_TEXT_BYTES || memchr(t.at, '\0', n))
        return PL_EFORMAT;
    memcpy(text, t.at, n);
    text[n] = '\0';
    if (strspn(text, "0123456789+-.eEinfINFatyATY") != n)
        return PL_EFORMAT;
    locale_t plain = newlocale(LC_ALL_MASK, "C", NULL);
    if (!plain)
        return -ENOMEM;
    errno = 0;
    float narrow = ret_f32 ? strtof_l(text, &end, plain) : 0;
    double value = ret_f32 ? (double)narrow : strtod_l(text, &end, plain);
    bool overflow = errno == ERANGE && isinf(value);
    freelocale(plain);
    if (*end != '\0')
        return PL_EFORMAT;
    if (overflow)
        return -ERANGE;
    if (ret_f32)
        *ret_f32 = narrow;
    else
        *ret_f64 = value;
    return 0;
}

int pl_number_f64(const char *text, size_t n, double *ret_value)
{
    decimal d;
    text_range t = trimmed(text, n);
    if (!read_decimal(t, &d))
        return read_by_library(t, NULL, ret_value);
    *ret_value = compute(d, DBL_MANT_DIG);
    return 0;
}

int pl_number_f32(const char *text, size_t n, float *ret_value)
{
    decimal d;
    text_range t = trimmed(text, n);
    if (!read_decimal(t, &d))
        return read_by_library(t, ret_value, NULL);
    double value = compute(d, FLT_MANT_DIG);
    if (fabs(value) > (double)FLT_MAX)
        return -ERANGE;
    *ret_value = (float)value;
    return 0;
}
