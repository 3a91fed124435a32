/* SPDX-License-Identifier: Apache-2.0 */
/* Parses numbers: what Python's int() and float() accept of plain ASCII, including blanks at the
 * ends, but no underscores. A number that does not fit the dtype is refused; a float that is too
 * large becomes infinite. See whole_ops.h. */
#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "exec/eager/whole_ops.h"
#include "kernels/elementwise/cast.h"
#include "tensor/dtype.h"
#include "tensor/strings.h"

/* Nobody writes a number longer than this. */
enum { TEXT_BYTES = 512 };

typedef struct parser {
    const pl_eager_call *call;
    locale_t plain; /* the decimal separator is a point, whatever the program's language */
    pl_kind kind;
    size_t item_bytes;
    pl_cast_kernel narrow; /* to the dtype, from the type that was parsed */
} parser;

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Hexadecimal numbers and "nan(...)" are valid in C, but not in Python. */
static bool is_plain(const char *text)
{
    return strspn(text, "0123456789+-.eEinfINFatyATY") == strlen(text);
}

static bool read_float(const parser *p, const char *text, void *to)
{
    char *end;
    float narrow;
    double value;
    if (!is_plain(text) || *text == '\0')
        return false;
    if (p->call->node->dtype == PL_F64) {
        value = strtod_l(text, &end, p->plain);
        memcpy(to, &value, sizeof value);
    } else {
        narrow = strtof_l(text, &end, p->plain);
        p->narrow(to, &narrow, 1);
    }
    return *end == '\0';
}

static bool fits(const parser *p, int64_t value)
{
    unsigned bits = (unsigned)p->item_bytes * 8;
    if (bits == 64)
        return true;
    if (p->kind == PL_KIND_UNSIGNED)
        return value >= 0 && (uint64_t)value >> bits == 0;
    return value >= -(INT64_C(1) << (bits - 1)) && value < INT64_C(1) << (bits - 1);
}

static bool read_integer(const parser *p, const char *text, void *to)
{
    char *end;
    bool wide = p->kind == PL_KIND_UNSIGNED && p->item_bytes == 8;
    if (strspn(text, "0123456789+-") != strlen(text) || *text == '\0')
        return false;
    errno = 0;
    int64_t value;
    if (wide)
        value = (int64_t)strtoull(text, &end, 10);
    else
        value = strtoll(text, &end, 10);
    bool negative = wide && *text == '-' && value != 0;
    if (errno != 0 || *end != '\0' || negative || (!wide && !fits(p, value)))
        return false;
    memcpy(to, &value, p->item_bytes); /* little-endian */
    return true;
}

static int refuse(const parser *p, int64_t number, const char *text, pl_error *reterr)
{
    char some[41] = {0};
    for (size_t i = 0; i < sizeof some - 1 && text[i]; i++)
        some[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
    return pl_eager_fail(p->call, -EINVAL, reterr, "string %" PRId64 ", '%s', is no %s", number,
                         some, pl_dtype_info_of(p->call->node->dtype)->name);
}

static int read_one(const parser *p, pl_string s, int64_t number, void *to, pl_error *reterr)
{
    char text[TEXT_BYTES];
    const char *begin = s.data, *end = begin + s.n;
    while (begin < end && is_blank(*begin))
        begin++;
    while (begin < end && is_blank(end[-1]))
        end--;
    size_t n = (size_t)(end - begin);
    bool whole = n < sizeof text && !memchr(begin, '\0', n);
    n = n < sizeof text ? n : sizeof text - 1;
    memcpy(text, begin, n);
    text[n] = '\0';
    if (whole && (p->kind == PL_KIND_FLOAT ? read_float(p, text, to) : read_integer(p, text, to)))
        return 0;
    return refuse(p, number, text, reterr);
}

static int read_all(const parser *p, const pl_strings *in, char *to, pl_error *reterr)
{
    for (int64_t i = 0; i < in->n; i++) {
        int r = read_one(p, pl_strings_at(in, i), i, to + (size_t)i * p->item_bytes, reterr);
        if (r < 0)
            return r;
    }
    return 0;
}

int pl_eager_string_to_number(const pl_eager_call *call, pl_tensor **ret_tensor, pl_error *reterr)
{
    pl_dtype dtype = call->node->dtype;
    const pl_dtype_info *info = pl_dtype_info_of(dtype);
    parser p = {call, newlocale(LC_ALL_MASK, "C", NULL), info->kind, info->item_bytes,
                pl_cast_find(PL_F32, dtype)};
    pl_strings in = {0};
    pl_tensor *tensor = NULL;
    void *data;
    int r = p.plain ? 0 : pl_eager_fail(call, -ENOMEM, reterr, "out of memory");
    if (r == 0)
        r = pl_strings_pin(&in, call->inputs[0], reterr);
    if (r == 0)
        r = pl_eager_new_promised(call, dtype, &call->inputs[0]->shape, &tensor, &data, reterr);
    if (r == 0) {
        r = read_all(&p, &in, data, reterr);
        pl_buffer_unpin(tensor->buffer);
    }
    pl_strings_unpin(&in);
    if (p.plain)
        freelocale(p.plain);
    if (r == 0)
        *ret_tensor = tensor;
    else
        pl_tensor_unref(tensor);
    return r;
}
