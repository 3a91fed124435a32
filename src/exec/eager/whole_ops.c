/* SPDX-License-Identifier: Apache-2.0 */
/* See whole_ops.h. Dispatches ops to their functions, and has those on files and raw bytes. */
#include "exec/eager/whole_ops.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "sys/file.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "tensor/strings.h"

bool pl_is_eager(const pl_node *node)
{
    if (node->op->op_class == PL_CLASS_SOURCE)
        return false;
    if (node->op->op_class == PL_CLASS_DATA || node->dtype == PL_STRING)
        return true;
    for (int i = 0; i < node->n_inputs; i++)
        if (node->inputs[i]->dtype == PL_STRING)
            return true;
    return false;
}

int pl_eager_fail(const pl_eager_call *call, int code, pl_error *reterr, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    pl_error_vset(reterr, code, format, arguments);
    va_end(arguments);
    pl_error_in_op(reterr, call->node->op->name, call->node->name);
    return code;
}

static int does_not_fit(const pl_eager_call *call, uint64_t bytes, const char *of, pl_error *reterr)
{
    return pl_eager_fail(call, PL_EBUDGET, reterr,
                         "%s needs %s; the budget is %s: give at least %s", of, PL_SIZE(bytes),
                         PL_SIZE(call->budget_bytes), PL_SIZE(bytes));
}

int pl_eager_must_fit(const pl_eager_call *call, uint64_t bytes, const char *of, pl_error *reterr)
{
    return bytes <= call->budget_bytes ? 0 : does_not_fit(call, bytes, of, reterr);
}

int pl_eager_promise(const pl_eager_call *call, uint64_t bytes)
{
    if (bytes > call->budget_bytes)
        return PL_EBUDGET;
    int r = pl_admission_begin(call->admission, bytes);
    return r > 0 ? 0 : r < 0 ? r : PL_EBUDGET;
}

int pl_eager_not_promised(const pl_eager_call *call, int code, uint64_t bytes, const char *of,
                          pl_error *reterr)
{
    if (code == -ECANCELED)
        return pl_eager_fail(call, code, reterr, "the run was cancelled");
    return code == PL_EBUDGET ? does_not_fit(call, bytes, of, reterr) : code;
}

int pl_eager_check_budget(const pl_eager_call *call, uint64_t bytes, const char *of,
                          pl_error *reterr)
{
    int r = pl_eager_promise(call, bytes);
    return r < 0 ? pl_eager_not_promised(call, r, bytes, of, reterr) : 0;
}

/* Counts a buffer once, even if several inputs lie in it. */
uint64_t pl_eager_input_bytes(const pl_eager_call *call)
{
    uint64_t bytes = 0;
    for (int i = 0; i < call->node->n_inputs; i++) {
        int k = 0;
        while (k < i && call->inputs[k]->buffer != call->inputs[i]->buffer)
            k++;
        if (k == i && call->inputs[i]->dtype == PL_STRING)
            bytes = pl_add_sat_u64(bytes,
                                   pl_memory_cost_bytes(pl_buffer_bytes(call->inputs[i]->buffer)));
    }
    return bytes;
}

static int check_made(const pl_eager_call *call, uint64_t bytes, pl_error *reterr)
{
    bytes = pl_add_sat_u64(pl_buffer_new_cost_bytes(call->runtime->pool, bytes),
                           pl_eager_input_bytes(call));
    return pl_eager_check_budget(call, bytes, "what it reads and makes", reterr);
}

int pl_eager_begin_strings(const pl_eager_call *call, pl_strings_maker *maker,
                           const pl_shape *shape, uint64_t n_bytes, pl_error *reterr)
{
    int64_t n;
    int r = pl_shape_count(shape, &n, reterr);
    if (r == 0)
        r = check_made(call, pl_strings_buffer_bytes(n, n_bytes), reterr);
    return r < 0 ? r
                 : pl_strings_begin(maker, call->runtime, shape, n_bytes, call->node->name, reterr);
}

int pl_eager_new_promised(const pl_eager_call *call, pl_dtype dtype, const pl_shape *shape,
                          pl_tensor **ret_tensor, void **ret_data, pl_error *reterr)
{
    int64_t bytes;
    int r = pl_tensor_size(dtype, shape, &bytes, reterr);
    if (r == 0)
        r = check_made(call, (uint64_t)bytes, reterr);
    return r < 0 ? r : pl_eager_new(call, dtype, shape, ret_tensor, ret_data, reterr);
}

int pl_eager_new(const pl_eager_call *call, pl_dtype dtype, const pl_shape *shape,
                 pl_tensor **ret_tensor, void **ret_data, pl_error *reterr)
{
    int64_t bytes;
    pl_buffer *buffer;
    int r = pl_tensor_size(dtype, shape, &bytes, reterr);
    if (r == 0)
        r = pl_buffer_new(call->runtime->pool, (uint64_t)bytes, call->node->name, &buffer, ret_data,
                          reterr);
    if (r < 0)
        return r;
    pl_buffer *pinned = buffer; /* the wrapper releases it on failure */
    r = pl_tensor_wrap(pl_buffer_ref(buffer), dtype, shape, NULL, 0, ret_tensor, reterr);
    if (r < 0)
        pl_buffer_unpin(pinned);
    pl_buffer_unref(buffer);
    return r;
}

/* ---- files ---- */

static int path_of(const pl_eager_call *call, pl_string name, char path[PATH_MAX], pl_error *reterr)
{
    if (name.n >= PATH_MAX || memchr(name.data, '\0', name.n))
        return pl_eager_fail(call, -EINVAL, reterr, "a name of %zu bytes%s cannot be a file's",
                             name.n, name.n < PATH_MAX ? ", one of them NUL," : "");
    memcpy(path, name.data, name.n);
    path[name.n] = '\0';
    return 0;
}

static int file_failed(const pl_eager_call *call, const char *path, int code, pl_error *reterr)
{
    const char *why = code == -EINVAL ? "it is not a regular file" : pl_error_text(code);
    int r = pl_eager_fail(call, code, reterr, "cannot read '%.200s': %s", path, why);
    pl_error_names_file(reterr, path);
    return r;
}

static int open_named(const pl_eager_call *call, pl_string name, char path[PATH_MAX],
                      uint64_t *ret_bytes, pl_error *reterr)
{
    int r = path_of(call, name, path, reterr);
    if (r < 0)
        return r;
    int fd = pl_file_open_regular(path, ret_bytes);
    return fd < 0 ? file_failed(call, path, fd, reterr) : fd;
}

static PL_COLD int refuse_files(const pl_eager_call *call, int code, const pl_strings *names,
                                const uint64_t *sizes, int64_t largest, uint64_t cost,
                                pl_error *reterr)
{
    char path[PATH_MAX], of[PATH_MAX + 64];
    int r = path_of(call, pl_strings_at(names, largest), path, reterr);
    if (r < 0)
        return r;
    snprintf(of, sizeof of, "'%.200s', which has %s%s,", path, PL_SIZE(sizes[largest]),
             names->n > 1 ? ", with the other files" : "");
    return pl_eager_not_promised(call, code, cost, of, reterr);
}

static int check_files(const pl_eager_call *call, const pl_strings *names, const uint64_t *sizes,
                       int64_t largest, uint64_t bytes, pl_error *reterr)
{
    uint64_t cost =
        pl_buffer_new_cost_bytes(call->runtime->pool, pl_strings_buffer_bytes(names->n, bytes));
    cost = pl_add_sat_u64(cost, pl_buffer_bytes(names->tensor->buffer));
    cost = pl_add_sat_u64(cost, (uint64_t)names->n * sizeof *sizes);
    int r = pl_eager_promise(call, cost);
    return r < 0 ? refuse_files(call, r, names, sizes, largest, cost, reterr) : 0;
}

/* Measures all files into sizes[i]. A single one stays open: *ret_fd. */
static int measure(const pl_eager_call *call, const pl_strings *names, uint64_t *sizes,
                   uint64_t *ret_bytes, int *ret_fd, pl_error *reterr)
{
    char path[PATH_MAX];
    uint64_t bytes = 0;
    int64_t largest = 0;
    for (int64_t i = 0; i < names->n; i++) {
        int fd = open_named(call, pl_strings_at(names, i), path, &sizes[i], reterr);
        if (fd < 0)
            return fd;
        if (names->n == 1)
            *ret_fd = fd;
        else
            close(fd);
        bytes = pl_add_sat_u64(bytes, sizes[i]);
        largest = sizes[i] > sizes[largest] ? i : largest;
    }
    *ret_bytes = bytes;
    return names->n > 0 ? check_files(call, names, sizes, largest, bytes, reterr) : 0;
}

/* Reads and closes the open file. */
static int read_one(const pl_eager_call *call, pl_string name, int fd, uint64_t bytes, char *to,
                    pl_error *reterr)
{
    char path[PATH_MAX];
    uint64_t bytes_now;
    if (fd < 0)
        fd = open_named(call, name, path, &bytes_now, reterr);
    if (fd < 0)
        return fd;
    int r = pl_file_read(fd, to, (size_t)bytes, 0);
    close(fd);
    if (r == 0)
        return 0;
    int named = path_of(call, name, path, reterr);
    return named < 0 ? named : file_failed(call, path, r, reterr);
}

static int read_all(const pl_eager_call *call, const pl_strings *names, uint64_t *sizes,
                    pl_tensor **ret_tensor, pl_error *reterr)
{
    uint64_t bytes;
    int fd = -1;
    pl_strings_maker maker;
    int r = measure(call, names, sizes, &bytes, &fd, reterr);
    if (r == 0)
        r = pl_strings_begin(&maker, call->runtime, &names->tensor->shape, bytes, call->node->name,
                             reterr);
    if (r < 0) {
        if (fd >= 0)
            close(fd);
        return r;
    }
    for (int64_t i = 0; r == 0 && i < names->n; i++)
        r = read_one(call, pl_strings_at(names, i), fd, sizes[i],
                     pl_strings_add(&maker, (size_t)sizes[i]), reterr);
    if (r == 0)
        return pl_strings_end(&maker, ret_tensor, reterr);
    pl_strings_drop(&maker);
    return r;
}

static int read_file(const pl_eager_call *call, pl_tensor **ret_tensor, pl_error *reterr)
{
    pl_strings names = {0};
    pl_block sizes = {0};
    int r = pl_eager_must_fit(call, pl_eager_input_bytes(call), "what it reads", reterr);
    if (r == 0)
        r = pl_strings_pin(&names, call->inputs[0], reterr);
    if (r == 0)
        r = pl_memory_take(call->runtime->memory, (uint64_t)names.n * sizeof(uint64_t),
                           call->node->name, &sizes, reterr);
    if (r == 0)
        r = read_all(call, &names, sizes.data, ret_tensor, reterr);
    pl_memory_give(call->runtime->memory, &sizes);
    pl_strings_unpin(&names);
    return r;
}

/* ---- raw bytes ---- */

/* Returns how many elements each string holds; all must hold equally many. */
static int count_raw(const pl_eager_call *call, const pl_strings *strings, int64_t *ret_n,
                     pl_error *reterr)
{
    size_t item_bytes = pl_dtype_info_of(call->node->dtype)->item_bytes;
    size_t first = strings->n > 0 ? pl_strings_at(strings, 0).n : 0;
    for (int64_t i = 0; i < strings->n; i++) {
        size_t n = pl_strings_at(strings, i).n;
        if (n != first)
            return pl_eager_fail(call, -EINVAL, reterr,
                                 "string %" PRId64 " has %zu bytes, and the first %zu: all must "
                                 "have as many",
                                 i, n, first);
    }
    if (first % item_bytes != 0)
        return pl_eager_fail(call, -EINVAL, reterr,
                             "%zu bytes are not a whole number of %s, which have %zu", first,
                             pl_dtype_info_of(call->node->dtype)->name, item_bytes);
    *ret_n = (int64_t)(first / item_bytes);
    return 0;
}

static int decode_strings(const pl_eager_call *call, const pl_strings *strings,
                          pl_tensor **ret_tensor, pl_error *reterr)
{
    int64_t n = 0;
    void *data;
    pl_shape shape = call->inputs[0]->shape;
    int r = count_raw(call, strings, &n, reterr);
    if (r < 0)
        return r;
    shape.dims[shape.rank++] = n;
    r = pl_eager_new_promised(call, call->node->dtype, &shape, ret_tensor, &data, reterr);
    if (r < 0)
        return r;
    for (int64_t i = 0; i < strings->n; i++) {
        pl_string s = pl_strings_at(strings, i);
        if (s.n > 0)
            memcpy((char *)data + (size_t)i * s.n, s.data, s.n);
    }
    if (call->node->dtype == PL_BOOL)
        for (int64_t i = 0; i < strings->n * n; i++)
            ((uint8_t *)data)[i] = ((uint8_t *)data)[i] != 0;
    pl_buffer_unpin((*ret_tensor)->buffer);
    return 0;
}

static int decode_raw(const pl_eager_call *call, pl_tensor **ret_tensor, pl_error *reterr)
{
    pl_strings strings;
    int r = pl_strings_pin(&strings, call->inputs[0], reterr);
    if (r < 0)
        return r;
    r = decode_strings(call, &strings, ret_tensor, reterr);
    pl_strings_unpin(&strings);
    return r;
}

/* ---- dispatch ---- */

/* Finds the function of an op that measures what it makes from strings, and claims it as a promise.
 * NULL: the op has none. */
typedef int run_op(const pl_eager_call *call, pl_tensor **ret_tensor, pl_error *reterr);

static run_op *plain_op(const pl_node *node)
{
    switch (node->op->id) {
    case PL_OP_decode_raw:
        return decode_raw;
    case PL_OP_string_length:
        return pl_eager_string_length;
    case PL_OP_string_join:
        return pl_eager_string_join;
    case PL_OP_string_split:
        return pl_eager_string_split;
    case PL_OP_string_strip:
        return pl_eager_string_strip;
    case PL_OP_string_substr:
        return pl_eager_string_substr;
    case PL_OP_string_to_number:
        return pl_eager_string_to_number;
    case PL_OP_equal:
    case PL_OP_not_equal:
        return pl_eager_compare;
    default:
        return NULL;
    }
}

static int run_plain(const pl_eager_call *call, run_op *run, pl_tensor **ret_tensor,
                     pl_error *reterr)
{
    int r = pl_eager_must_fit(call, pl_eager_input_bytes(call), "what it reads", reterr);
    return r < 0 ? r : run(call, ret_tensor, reterr);
}

int pl_eager_op_run(const pl_eager_call *call, pl_tensor **ret_tensor, pl_error *reterr)
{
    run_op *plain = plain_op(call->node);
    if (plain)
        return run_plain(call, plain, ret_tensor, reterr);
    switch (call->node->op->id) {
    case PL_OP_read_file:
        return read_file(call, ret_tensor, reterr);
    case PL_OP_decode_jpeg:
    case PL_OP_decode_png:
    case PL_OP_decode_image:
        return pl_eager_decode(call, ret_tensor, reterr);
    case PL_OP_resize:
        return call->decoded ? pl_eager_decode_resized(call, ret_tensor, reterr)
                             : pl_eager_resize(call, ret_tensor, reterr);
    case PL_OP_identity:
        *ret_tensor = pl_tensor_ref(call->inputs[0]);
        return 0;
    case PL_OP_assign:
        *ret_tensor = pl_tensor_ref(call->inputs[1]);
        return 0;
    default:
        return pl_eager_move(call, ret_tensor, reterr);
    }
}
