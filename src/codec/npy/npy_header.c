/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the literal in an .npy header: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3),
 * }, in any order and spacing, with either kind of quotes. This is not all of Python: headers from
 * NumPy or another sane program contain no escapes, expressions or nesting, so these are refused.
 * Every step checks for the end of the text first; nothing is recursive. */
#include "codec/npy/npy_header.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "tensor/dtype.h"

/* The rest of the text, and the data for a message. */
typedef struct scan {
    const char *at;
    const char *end;
    const char *begin;
    bool python2; /* versions up to 2.0 may have Python 2's long integers: 10L */
    pl_error *reterr;
} scan;

/* A piece of the text. */
typedef struct piece {
    const char *at;
    size_t n;
} piece;

/* A part of the text for a message: at most 40 bytes, printable. */
typedef struct excerpt {
    char text[41];
} excerpt;

static excerpt excerpt_of(piece p)
{
    excerpt some = {0};
    for (size_t i = 0; i < p.n && i < sizeof some.text - 1; i++)
        some.text[i] = p.at[i] >= ' ' && p.at[i] <= '~' ? p.at[i] : '?';
    return some;
}

/* NumPy's kinds without a dtype here, and advice for each. */
static const struct {
    char kind;
    const char *what;
    const char *way_out;
} foreign[] = {
    {'U', "unicode text", "save numpy.char.encode(a, 'utf-8')"},
    {'O', "Python objects", "save them as numbers or bytes: a.astype(float), a.astype('S')"},
    {'c', "complex numbers", "save a.real and a.imag"},
    {'M', "dates", "save a.view('int64')"},
    {'m', "time differences", "save a.view('int64')"},
    {'f', "floats of another size", "save a.astype('float64')"},
    {'g', "long doubles", "save a.astype('float64')"},
    {'V', "raw records", "save a.view('uint8'), or each field in a file of its own"},
};

static int refuse(scan *s, const char *what)
{
    excerpt here = excerpt_of((piece){s->at, (size_t)(s->end - s->at)});
    pl_error_set(s->reterr, PL_EFORMAT,
                 "its .npy header is malformed: %s expected at byte %td, before '%s'", what,
                 s->at - s->begin, here.text);
    pl_error_at_byte(s->reterr, (uint64_t)(s->at - s->begin));
    return PL_EFORMAT;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static void skip_blanks(scan *s)
{
    while (s->at < s->end && is_blank(*s->at))
        s->at++;
}

/* Returns the next character that is not blank, or NUL at the end: no header contains NUL. */
static char peek(scan *s)
{
    skip_blanks(s);
    return s->at < s->end ? *s->at : '\0';
}

static bool take(scan *s, char c)
{
    if (c == '\0' || peek(s) != c)
        return false;
    s->at++;
    return true;
}

static bool take_word(scan *s, const char *word)
{
    size_t n = strlen(word);
    skip_blanks(s);
    if ((size_t)(s->end - s->at) < n || memcmp(s->at, word, n) != 0)
        return false;
    s->at += n;
    return true;
}

/* Takes 'text' or "text", on one line and without escapes; Python 2 programs write u'text'. */
static bool take_string(scan *s, piece *ret_text)
{
    char first = peek(s);
    const char *at = s->at + (first == 'u' || first == 'U');
    if (at >= s->end || (*at != '\'' && *at != '"'))
        return false;
    const char *begin = at + 1, *end = memchr(begin, *at, (size_t)(s->end - begin));
    if (!end)
        return false;
    for (const char *c = begin; c < end; c++)
        if (*c == '\\' || *c == '\n' || *c == '\r')
            return false;
    *ret_text = (piece){begin, (size_t)(end - begin)};
    s->at = end + 1;
    return true;
}

static bool same(piece p, const char *text)
{
    return p.n == strlen(text) && memcmp(p.at, text, p.n) == 0;
}

/* Parses digits; false if there are no digits, or for a number over 2^63 - 1. Python has no 010. */
static bool digits(piece p, int64_t *ret_number)
{
    int64_t number = 0;
    if (p.n == 0 || (p.n > 1 && p.at[0] == '0'))
        return false;
    for (size_t i = 0; i < p.n; i++)
        if (!is_digit(p.at[i]) || __builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, p.at[i] - '0', &number))
            return false;
    *ret_number = number;
    return true;
}

static int take_dim(scan *s, int64_t *ret_dim)
{
    skip_blanks(s);
    const char *begin = s->at, *end = begin;
    while (end < s->end && is_digit(*end))
        end++;
    if (!digits((piece){begin, (size_t)(end - begin)}, ret_dim))
        return refuse(s, "a dimension from 0 to 2^63 - 1");
    s->at = end;
    if (s->python2)
        take(s, 'L');
    return 0;
}

/* Takes (), (3,), (3, 4) or (3, 4,). (3) would be a number. */
static int take_shape(scan *s, pl_shape *ret_shape)
{
    pl_shape shape = {0};
    bool comma = true;
    if (!take(s, '('))
        return refuse(s, "a tuple, the shape,");
    while (peek(s) != ')') {
        int64_t dim = 0;
        if (!comma)
            return refuse(s, "',' or ')'");
        int r = take_dim(s, &dim);
        if (r < 0)
            return r;
        if (shape.rank == PL_RANK_MAX)
            return pl_error_set(s->reterr, -ENOTSUP,
                                "it has more than %d dimensions: reshape it before it is saved",
                                PL_RANK_MAX);
        shape.dims[shape.rank++] = dim;
        comma = take(s, ',');
    }
    if (shape.rank == 1 && !comma)
        return refuse(s, "',' after the only dimension");
    s->at++;
    *ret_shape = shape;
    return 0;
}

static int take_order(scan *s, bool *ret_fortran)
{
    if (take_word(s, "True"))
        *ret_fortran = true;
    else if (take_word(s, "False"))
        *ret_fortran = false;
    else
        return refuse(s, "True or False, fortran_order,");
    return 0;
}

static int refuse_descr(scan *s, piece descr, const char *what, const char *way_out)
{
    return pl_error_set(s->reterr, -ENOTSUP, "it holds %s (dtype %s): %s", what,
                        excerpt_of(descr).text, way_out);
}

static int refuse_foreign(scan *s, piece descr, char kind)
{
    for (size_t i = 0; i < PL_COUNT_OF(foreign); i++)
        if (foreign[i].kind == kind)
            return refuse_descr(s, descr, foreign[i].what, foreign[i].way_out);
    return refuse_descr(s, descr, "elements that are not understood",
                        "save it as one of bool, int8 to int64, uint8 to uint64, float16 to "
                        "float64, or bytes ('S')");
}

/* Returns the dtype of "f4" or, without a byte order before it, of "float32". NumPy's two raw bytes
 * (V2) are a bfloat16, because bfloat16 is saved in this form. */
static pl_dtype dtype_of(piece type, bool ordered)
{
#define CASE(number, constant, dtype_name, descr, bytes, kind)                                     \
    if (constant != PL_STRING && same(type, &(descr)[1]))                                          \
        return constant;                                                                           \
    if (constant != PL_STRING && constant != PL_BF16 && !ordered && same(type, dtype_name))        \
        return constant;
    PL_DTYPE_TABLE(CASE)
#undef CASE
    return same(type, "?") ? PL_BOOL : PL_DTYPE_NONE;
}

/* Parses "<f4", ">i8", "|S12", "=u2", "f4". */
static int understand_descr(scan *s, piece descr, pl_npy *npy)
{
    bool ordered = descr.n > 0 && memchr("<>=|", descr.at[0], 4) != NULL;
    piece type = {descr.at + ordered, descr.n - ordered};
    piece width = {type.at + 1, type.n - (type.n > 0)};
    int64_t item_bytes;
    if (type.n > 0 && type.at[0] == 'S' && digits(width, &item_bytes) && item_bytes <= INT32_MAX) {
        npy->dtype = PL_STRING;
        npy->item_bytes = (uint32_t)item_bytes;
        npy->swap = false;
        return 0;
    }
    npy->dtype = dtype_of(type, ordered);
    if (npy->dtype == PL_DTYPE_NONE)
        return refuse_foreign(s, descr, type.n > 0 ? type.at[0] : '\0');
    npy->item_bytes = pl_dtype_info_of(npy->dtype)->item_bytes;
    npy->swap = descr.at[0] == '>' && npy->item_bytes > 1;
    return 0;
}

/* Returns the text from here to the closing bracket, for a message; brackets in names are
 * harmless. */
static piece bracketed(const scan *s)
{
    const char *at = s->at;
    int depth = 0;
    while (at < s->end) {
        depth += (*at == '[' || *at == '(') - (*at == ']' || *at == ')');
        at++;
        if (depth == 0)
            break;
    }
    return (piece){s->at, (size_t)(at - s->at)};
}

static int take_descr(scan *s, pl_npy *npy)
{
    piece descr;
    char first = peek(s);
    if (first == '[' || first == '(')
        return refuse_descr(s, bracketed(s), "records", "save each field in a file of its own");
    if (!take_string(s, &descr))
        return refuse(s, "a string, the dtype,");
    return understand_descr(s, descr, npy);
}

/* The keys, as bits of a set of those seen. */
enum { DESCR = 1, ORDER = 2, SHAPE = 4, ALL_KEYS = 7 };

/* Takes one key with its value. Returns the key, or a failure. */
static int take_entry(scan *s, pl_npy *npy)
{
    piece key;
    const char *where = peek(s) ? s->at : s->end;
    if (!take_string(s, &key))
        return refuse(s, "a key in quotes");
    if (!take(s, ':'))
        return refuse(s, "':'");
    int r;
    if (same(key, "descr"))
        return (r = take_descr(s, npy)) < 0 ? r : DESCR;
    if (same(key, "fortran_order"))
        return (r = take_order(s, &npy->fortran_order)) < 0 ? r : ORDER;
    if (same(key, "shape"))
        return (r = take_shape(s, &npy->shape)) < 0 ? r : SHAPE;
    s->at = where;
    return refuse(s, "descr, fortran_order or shape");
}

int pl_npy_header_parse(const char *text, size_t n, pl_npy *npy, pl_error *reterr)
{
    scan s = {text, text + n, text, npy->version < 3, reterr};
    int seen = 0;
    bool comma = true;
    if (!take(&s, '{'))
        return refuse(&s, "'{'");
    while (peek(&s) != '}') {
        if (!comma)
            return refuse(&s, "',' or '}'");
        int key = take_entry(&s, npy);
        if (key < 0)
            return key;
        seen |= key;
        comma = take(&s, ',');
    }
    if (seen != ALL_KEYS)
        return refuse(&s, !(seen & DESCR) ? "descr" : !(seen & ORDER) ? "fortran_order" : "shape");
    s.at++;
    skip_blanks(&s);
    return s.at < s.end ? refuse(&s, "nothing more") : 0;
}
