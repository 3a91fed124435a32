/* SPDX-License-Identifier: Apache-2.0 */
/* See number.h. Floats of up to 19 digits, with an exponent of ten between -27 and 27, are computed
 * here, most of them with one division of doubles. For the others: 5^27 < 2^64, so their product
 * with the digits has 128 bits, and their quotient is computed to 63 bits, with a remainder that
 * says whether there is more. Then comes a single rounding. These cover all numbers of everyday
 * size that programs write; the rest is left to the C library. */
#include "codec/text/number.h"

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
    text = n > 0 ? text : ""; /* NULL is allowed then, but must not be added to */
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

/* ---- digits ---- */

/* Parses eight digits at once, if they are digits: all bytes are 0x30..0x39; then tens and ones are
 * combined in pairs, by products whose parts do not overlap. Little-endian. */
static bool are_digits(uint64_t text)
{
    return ((text & UINT64_C(0xf0f0f0f0f0f0f0f0)) |
            ((text + UINT64_C(0x0606060606060606)) & UINT64_C(0xf0f0f0f0f0f0f0f0)) >> 4) ==
           UINT64_C(0x3333333333333333);
}

static uint64_t value_of_eight(uint64_t text)
{
    const uint64_t outer = UINT64_C(0x000000ff000000ff);
    text -= UINT64_C(0x3030303030303030);
    text = 10 * text + (text >> 8);
    return ((text & outer) * UINT64_C(0x000f424000000064) +
            (text >> 16 & outer) * UINT64_C(0x0000271000000001)) >>
           32;
}

/* Appends digits up to another character to *digits; more than DIGITS_MAX make it meaningless. */
static inline const char *take_digits(const char *at, const char *end, uint64_t *digits)
{
    uint64_t value = *digits, eight;
    for (; end - at >= 8; at += 8) {
        memcpy(&eight, at, 8);
        if (!are_digits(eight))
            break;
        value = 100000000 * value + value_of_eight(eight);
    }
    for (unsigned digit; at < end && (digit = (unsigned char)*at - '0') < 10u; at++)
        value = 10 * value + digit;
    *digits = value;
    return at;
}

/* Counts the digits, of `n` with a point somewhere, that are not leading zeros. */
static ptrdiff_t significant(const char *at, ptrdiff_t n)
{
    for (; n > 0 && (*at == '0' || *at == '.'); at++)
        n -= *at == '0';
    return n;
}

/* ---- integers ---- */

int pl_number_i64(const char *text, size_t n, int64_t *ret_value)
{
    text_range t = trimmed(text, n);
    bool negative = take_sign(&t);
    const char *begin = t.at;
    uint64_t value = 0;
    if (take_digits(begin, t.end, &value) != t.end || begin == t.end)
        return PL_EFORMAT;
    if (t.end - begin > DIGITS_MAX && significant(begin, t.end - begin) > DIGITS_MAX)
        return -ERANGE;
    if (value > (uint64_t)INT64_MAX + negative)
        return -ERANGE;
    *ret_value = (int64_t)(negative ? -value : value);
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

/* Takes the exponent after an 'e', of at most three digits: false if it is malformed. */
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

/* Is the whole text a decimal number that can be computed here? False does not mean that it is
 * bad. */
static bool read_decimal(text_range t, decimal *ret_decimal)
{
    decimal d = {0};
    if (t.end - t.at > PL_NUMBER_TEXT_BYTES)
        return false;
    d.negative = take_sign(&t);
    const char *begin = t.at;
    t.at = take_digits(t.at, t.end, &d.digits);
    ptrdiff_t n = t.at - begin;
    if (t.at < t.end && *t.at == '.') {
        const char *point = t.at++;
        t.at = take_digits(t.at, t.end, &d.digits);
        d.exponent = -(int)(t.at - point - 1);
        n += t.at - point - 1;
    }
    if (n == 0 || (n > DIGITS_MAX && significant(begin, n) > DIGITS_MAX))
        return false;
    if (t.at < t.end && (*t.at == 'e' || *t.at == 'E') && !take_exponent(&t, &d))
        return false;
    *ret_decimal = d;
    return t.at == t.end && d.exponent >= -FIVES_MAX && d.exponent <= FIVES_MAX;
}

/* Rounds mantissa * 2^exponent, plus a little more if `inexact`, to so many bits. The mantissa's
 * top bit is set; exponents are far from the limits of a double. */
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

/* The powers of ten that are exact in a double. */
static const double powers_of_ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                       1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                       1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* If digits and power are exact doubles, their product or quotient is rounded once: most
 * numbers. */
static inline bool compute_quickly(decimal d, double *ret_value)
{
    const int most = (int)PL_COUNT_OF(powers_of_ten) - 1;
    if (d.digits > UINT64_C(1) << 53 || d.exponent < -most || d.exponent > most)
        return false;
    double value = (double)(int64_t)d.digits;
    value = d.exponent < 0 ? value / powers_of_ten[-d.exponent] : value * powers_of_ten[d.exponent];
    *ret_value = d.negative ? -value : value;
    return true;
}

/* Is it halfway between two float32? Then the bits rounded off before matter. */
static inline bool is_halfway(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (bits & ((UINT64_C(1) << 29) - 1)) == UINT64_C(1) << 28;
}

/* Calls the C library, in the C locale, which uses a point. Hexadecimal numbers and "nan(...)" are
 * C's own. glibc's newlocale() returns a constant for "C": nothing is allocated. */
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
    if (!compute_quickly(d, ret_value))
        *ret_value = compute(d, DBL_MANT_DIG);
    return 0;
}

int pl_number_f32(const char *text, size_t n, float *ret_value)
{
    decimal d;
    text_range t = trimmed(text, n);
    if (!read_decimal(t, &d))
        return read_by_library(t, ret_value, NULL);
    double value;
    if (!compute_quickly(d, &value) || is_halfway(value))
        value = compute(d, FLT_MANT_DIG);
    if (fabs(value) > (double)FLT_MAX)
        return -ERANGE;
    *ret_value = (float)value;
    return 0;
}
