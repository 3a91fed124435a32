/* SPDX-License-Identifier: Apache-2.0 */
/* Ops on strings, with the semantics of Python's bytes. A first pass measures results that are
 * strings, and a second writes them. See whole_ops.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "exec/eager/whole_ops.h"
#include "tensor/shape.h"
#include "tensor/strings.h"

/* The bytes that bytes.strip() and bytes.split() treat as blank. */
static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static void copy_to(char *to, pl_string s)
{
    if (s.n > 0)
        memcpy(to, s.data, s.n);
}

/* ---- a part of each ---- */

typedef pl_string part_of(const pl_eager_call *call, pl_string s);

static int map(const pl_eager_call *call, part_of *part, const pl_strings *in,
               pl_tensor **ret_tensor, pl_error *reterr)
{
    pl_strings_maker maker;
    uint64_t n_bytes = 0;
    for (int64_t i = 0; i < in->n; i++)
        n_bytes += part(call, pl_strings_at(in, i)).n;
    int r = pl_eager_begin_strings(call, &maker, &in->tensor->shape, n_bytes, reterr);
    if (r < 0)
        return r;
    for (int64_t i = 0; i < in->n; i++) {
        pl_string s = part(call, pl_strings_at(in, i));
        copy_to(pl_strings_add(&maker, s.n), s);
    }
    return pl_strings_end(&maker, ret_tensor, reterr);
}

static int map_pinned(const pl_eager_call *call, part_of *part, pl_tensor **ret_tensor,
                      pl_error *reterr)
{
    pl_strings in;
    int r = pl_strings_pin(&in, call->inputs[0], reterr);
    if (r < 0)
        return r;
    r = map(call, part, &in, ret_tensor, reterr);
    pl_strings_unpin(&in);
    return r;
}

static pl_string stripped(const pl_eager_call *call, pl_string s)
{
    const char *begin = s.data, *end = begin + s.n;
    (void)call;
    while (begin < end && is_blank(*begin))
        begin++;
    while (begin < end && is_blank(end[-1]))
        end--;
    return (pl_string){begin, (size_t)(end - begin)};
}

static pl_string cut(const pl_eager_call *call, pl_string s)
{
    int64_t start = call->node->attrs[PL_ATTR_substr_start].value.i, n = (int64_t)s.n;
    int64_t length = call->node->attrs[PL_ATTR_substr_length].value.i;
    start = start < -n ? 0 : start < 0 ? n + start : start > n ? n : start;
    length = length < n - start ? length : n - start;
    return (pl_string){(const char *)s.data + start, (size_t)length};
}

int pl_eager_string_strip(const pl_eager_call *call, pl_tensor **ret_tensor, pl_error *reterr)
{
    return map_pinned(call, stripped, ret_tensor, reterr);
}

int pl_eager_string_substr(const pl_eager_call *call, pl_tensor **ret_tensor, pl_error *reterr)
{
    int64_t length = call->node->attrs[PL_ATTR_substr_length].value.i;
    if (length < 0)
        return pl_eager_fail(call, -EINVAL, reterr, "'length' is %" PRId64 ": it is 0 or more",
                             length);
    return map_pinned(call, cut, ret_tensor, reterr);
}

int pl_eager_string_length(const pl_eager_call *call, pl_tensor **ret_tensor, pl_error *reterr)
{
    pl_strings in;
    void *data;
    int r = pl_strings_pin(&in, call->inputs[0], reterr);
    if (r < 0)
        return r;
    r = pl_eager_new_promised(call, PL_I64, &call->inputs[0]->shape, ret_tensor, &data, reterr);
    if (r == 0) {
        for (int64_t i = 0; i < in.n; i++)
            ((int64_t *)data)[i] = (int64_t)pl_strings_at(&in, i).n;
        pl_buffer_unpin((*ret_tensor)->buffer);
    }
    pl_strings_unpin(&in);
    return r;
}

/* ---- splitting ---- */

/* Yields the next part of what is left; false when there is none. */
typedef struct splitter {
    const char *at, *end;
    const char *separator;
    size_t n_separator;
    bool done;
} splitter;

static splitter split_begin(const pl_eager_call *call, pl_string s)
{
    const char *separator = call->node->attrs[PL_ATTR_split_separator].value.text;
    return (splitter){s.data, (const char *)s.data + s.n, separator, strlen(separator), false};
}

static bool next_word(splitter *s, pl_string *ret_part)
{
    while (s->at < s->end && is_blank(*s->at))
        s->at++;
    const char *begin = s->at;
    while (s->at < s->end && !is_blank(*s->at))
        s->at++;
    *ret_part = (pl_string){begin, (size_t)(s->at - begin)};
    return s->at > begin;
}

static bool next_part(splitter *s, pl_string *ret_part)
{
    if (s->n_separator == 0)
        return next_word(s, ret_part);
    if (s->done)
        return false;
    const char *found = memmem(s->at, (size_t)(s->end - s->at), s->separator, s->n_separator);
    *ret_part = (pl_string){s->at, (size_t)((found ? found : s->end) - s->at)};
    s->done = !found;
    s->at = found ? found + s->n_separator : s->end;
    return true;
}

static int split(const pl_eager_call *call, pl_string whole, pl_tensor **ret_tensor,
                 pl_error *reterr)
{
    pl_strings_maker maker;
    pl_string part;
    int64_t n = 0;
    uint64_t n_bytes = 0;
    for (splitter s = split_begin(call, whole); next_part(&s, &part); n++)
        n_bytes += part.n;
    const pl_shape shape = PL_SHAPE(n);
    int r = pl_eager_begin_strings(call, &maker, &shape, n_bytes, reterr);
    if (r < 0)
        return r;
    for (splitter s = split_begin(call, whole); next_part(&s, &part);)
        copy_to(pl_strings_add(&maker, part.n), part);
    return pl_strings_end(&maker, ret_tensor, reterr);
}

int pl_eager_string_split(const pl_eager_call *call, pl_tensor **ret_tensor, pl_error *reterr)
{
    pl_strings in;
    int r = pl_strings_pin(&in, call->inputs[0], reterr);
    if (r < 0)
        return r;
    r = split(call, pl_strings_at(&in, 0), ret_tensor, reterr);
    pl_strings_unpin(&in);
    return r;
}

/* ---- several inputs, broadcast ---- */

/* Returns the element of a smaller shape that is repeated at element `number` of the result. */
static int64_t repeated_at(const pl_shape *out, int64_t number, const pl_shape *in)
{
    int64_t at = 0, stride = 1;
    for (int i = out->rank - 1, k = in->rank - 1; k >= 0; i--, k--) {
        int64_t coordinate = number % out->dims[i];
        number /= out->dims[i];
        at += in->dims[k] == 1 ? 0 : coordinate * stride;
        stride *= in->dims[k];
    }
    return at;
}

typedef struct several {
    pl_strings *inputs;
    int n_inputs;
    pl_shape shape; /* of the result */
    int64_t n;
} several;

static pl_string at_input(const several *s, int i, int64_t number)
{
    const pl_strings *in = &s->inputs[i];
    return pl_strings_at(in, repeated_at(&s->shape, number, &in->tensor->shape));
}

static void several_done(several *s)
{
    for (int i = 0; s->inputs && i < s->n_inputs; i++)
        pl_strings_unpin(&s->inputs[i]);
    free(s->inputs);
}

static int several_init(several *s, const pl_eager_call *call, pl_error *reterr)
{
    *s = (several){.n_inputs = call->node->n_inputs, .shape = call->inputs[0]->shape};
    s->inputs = calloc((size_t)s->n_inputs, sizeof *s->inputs);
    int r = s->inputs ? 0 : pl_eager_fail(call, -ENOMEM, reterr, "out of memory");
    for (int i = 0; r == 0 && i < s->n_inputs; i++) {
        r = pl_shape_broadcast(&s->shape, &call->inputs[i]->shape, &s->shape, reterr);
        if (r == 0)
            r = pl_strings_pin(&s->inputs[i], call->inputs[i], reterr);
    }
    if (r == 0)
        r = pl_shape_count(&s->shape, &s->n, reterr);
    if (r < 0)
        several_done(s);
    return r;
}

static int join(const pl_eager_call *call, const several *s, pl_tensor **ret_tensor,
                pl_error *reterr)
{
    pl_strings_maker maker;
    const char *separator = call->node->attrs[PL_ATTR_join_separator].value.text;
    size_t n_separator = strlen(separator);
    uint64_t n_bytes = (uint64_t)s->n * (uint64_t)(s->n_inputs - 1) * n_separator;
    for (int64_t at = 0; at < s->n; at++)
        for (int i = 0; i < s->n_inputs; i++)
            n_bytes += at_input(s, i, at).n;
    int r = pl_eager_begin_strings(call, &maker, &s->shape, n_bytes, reterr);
    if (r < 0)
        return r;
    for (int64_t at = 0; at < s->n; at++) {
        size_t n = (size_t)(s->n_inputs - 1) * n_separator;
        for (int i = 0; i < s->n_inputs; i++)
            n += at_input(s, i, at).n;
        char *to = pl_strings_add(&maker, n);
        for (int i = 0; i < s->n_inputs; i++) {
            pl_string part = at_input(s, i, at);
            copy_to(to, part);
            to += part.n;
            if (i + 1 < s->n_inputs && n_separator > 0)
                memcpy(to, separator, n_separator);
            to += i + 1 < s->n_inputs ? n_separator : 0;
        }
    }
    return pl_strings_end(&maker, ret_tensor, reterr);
}

int pl_eager_string_join(const pl_eager_call *call, pl_tensor **ret_tensor, pl_error *reterr)
{
    several s;
    int r = several_init(&s, call, reterr);
    if (r < 0)
        return r;
    r = join(call, &s, ret_tensor, reterr);
    several_done(&s);
    return r;
}

int pl_eager_compare(const pl_eager_call *call, pl_tensor **ret_tensor, pl_error *reterr)
{
    several s;
    void *data;
    bool wanted = call->node->op->id == PL_OP_equal;
    int r = several_init(&s, call, reterr);
    if (r < 0)
        return r;
    r = pl_eager_new_promised(call, PL_BOOL, &s.shape, ret_tensor, &data, reterr);
    for (int64_t at = 0; r == 0 && at < s.n; at++) {
        pl_string a = at_input(&s, 0, at), b = at_input(&s, 1, at);
        bool same = a.n == b.n && (a.n == 0 || memcmp(a.data, b.data, a.n) == 0);
        ((uint8_t *)data)[at] = same == wanted;
    }
    if (r == 0)
        pl_buffer_unpin((*ret_tensor)->buffer);
    several_done(&s);
    return r;
}
