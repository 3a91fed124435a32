/* SPDX-License-Identifier: Apache-2.0 */
/* Components as bytes: scalars, tensors, strings, datasets; and their specs.
 *
 * A tensor that is in memory as it is to be written goes out straight from there; any other one
 * through a scratch of 64 KiB, wherever it lies. A tensor that is read gets memory of its own, or, if
 * that does not fit, a place in the spill file. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "data/persist/state.h"
#include "data/persist/store.h"
#include "tensor/dtype.h"
#include "tensor/region.h"
#include "tensor/shape.h"
#include "tensor/strings.h"
#include "tensor/tensor.h"

/* The first byte of a component: a dtype, with one of these; 0 alone is a dataset. */
enum { TAG_SCALAR = 0x80, TAG_HELD = 0x40, TAG_DTYPE = 0x3f };

enum { SCRATCH_BYTES = 64 * 1024, FEW_BYTES = 4096, SPEC_DEPTH_MOST = 16 };

/* ---- shapes ---- */

static int save_shape(pl_saver *saver, const pl_shape *shape, pl_error *reterr)
{
    int8_t rank = (int8_t)shape->rank;
    int r = pl_save_bytes(saver, &rank, 1, reterr);
    for (int i = 0; r == 0 && i < rank; i++)
        r = pl_save_int(saver, shape->dims[i], reterr);
    return r;
}

/* `least` is 0, or for specs, that may not know, -1. */
static int load_shape(pl_loader *loader, int64_t least, pl_shape *ret_shape, pl_error *reterr)
{
    int8_t rank;
    pl_shape shape = {0};
    int r = pl_load_bytes(loader, &rank, 1, reterr);
    if (r == 0 && (rank < least || rank > PL_RANK_MAX))
        r = pl_load_refuse(reterr, "a shape has %d axes", rank);
    if (r < 0)
        return r;
    shape.rank = rank;
    for (int i = 0; r == 0 && i < rank; i++)
        r = pl_load_int(loader, least, INT64_MAX, &shape.dims[i], reterr);
    if (r == 0)
        *ret_shape = shape;
    return r;
}

/* ---- tensors, written ---- */

static bool lies_in_order(const pl_tensor *tensor)
{
    int axes[PL_RANK_MAX];
    bool in_order = pl_tensor_order(tensor, axes);
    for (int i = 0; i < tensor->shape.rank; i++)
        in_order = in_order && axes[i] == i;
    return in_order;
}

static int save_straight(pl_saver *saver, pl_tensor *tensor, uint64_t bytes, pl_error *reterr)
{
    const void *data;
    int64_t strides[PL_RANK_MAX];
    int r = pl_tensor_pin(tensor, &data, strides, reterr);
    if (r < 0)
        return r;
    r = pl_save_bytes(saver, data, (size_t)bytes, reterr);
    pl_tensor_unpin(tensor);
    return r;
}

static int save_pieces(pl_saver *saver, pl_tensor *tensor, char *scratch, size_t n,
                       pl_error *reterr)
{
    uint64_t item_bytes = pl_dtype_info_of(tensor->dtype)->item_bytes;
    pl_region whole = pl_region_whole(&tensor->shape), tile;
    pl_region_tiles tiles;
    int r = pl_region_tiles_init(&tiles, &whole, item_bytes, n);
    while (r == 0 && pl_region_tiles_next(&tiles, &tile)) {
        r = pl_tensor_read(tensor, tile.begin, tile.extent, scratch, reterr);
        if (r == 0)
            r = pl_save_bytes(saver, scratch, (size_t)pl_region_count(&tile) * item_bytes, reterr);
    }
    return r;
}

static int save_numbers(pl_saver *saver, pl_tensor *tensor, pl_error *reterr)
{
    uint64_t bytes = pl_tensor_bytes(tensor);
    if (bytes <= FEW_BYTES) {
        char few[FEW_BYTES];
        return save_pieces(saver, tensor, few, sizeof few, reterr);
    }
    if (pl_buffer_pin_cost_bytes(tensor->buffer) == 0 && lies_in_order(tensor))
        return save_straight(saver, tensor, bytes, reterr);
    char *scratch = malloc(SCRATCH_BYTES);
    if (!scratch)
        return pl_error_set(reterr, -ENOMEM, "out of memory: cannot write a tensor");
    int r = save_pieces(saver, tensor, scratch, SCRATCH_BYTES, reterr);
    free(scratch);
    return r;
}

static int save_strings(pl_saver *saver, pl_tensor *tensor, pl_error *reterr)
{
    pl_strings strings;
    int r = pl_strings_pin(&strings, tensor, reterr);
    if (r < 0)
        return r;
    int64_t n_bytes = 0;
    for (int64_t i = 0; i < strings.n; i++)
        n_bytes += (int64_t)pl_strings_at(&strings, i).n;
    r = pl_save_int(saver, n_bytes, reterr);
    for (int64_t i = 0; r == 0 && i < strings.n; i++) {
        pl_string string = pl_strings_at(&strings, i);
        r = pl_save_int(saver, (int64_t)string.n, reterr);
        if (r == 0)
            r = pl_save_bytes(saver, string.data, string.n, reterr);
    }
    pl_strings_unpin(&strings);
    return r;
}

static int save_tensor(pl_saver *saver, pl_tensor *tensor, pl_error *reterr)
{
    int64_t number;
    int held = saver->hold ? saver->hold(saver, tensor, &number, reterr) : 0;
    if (held < 0)
        return held;
    uint8_t tag = (uint8_t)(tensor->dtype | (held ? TAG_HELD : 0));
    int r = pl_save_bytes(saver, &tag, 1, reterr);
    if (r < 0)
        return r;
    if (held)
        return pl_save_int(saver, number, reterr);
    r = save_shape(saver, &tensor->shape, reterr);
    if (r < 0)
        return r;
    return tensor->dtype == PL_STRING ? save_strings(saver, tensor, reterr)
                                      : save_numbers(saver, tensor, reterr);
}

/* ---- tensors, read ---- */

/* Bytes other than 0 and 1 in a bool would make the kernels' results undefined. */
static int check_bools(const char *bytes, size_t n, pl_error *reterr)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)bytes[i] > 1)
            return pl_load_refuse(reterr, "a bool is %u", (unsigned char)bytes[i]);
    return 0;
}

static int load_checked(pl_loader *loader, pl_dtype dtype, char *to, size_t n, pl_error *reterr)
{
    int r = pl_load_bytes(loader, to, n, reterr);
    return r == 0 && dtype == PL_BOOL ? check_bools(to, n, reterr) : r;
}

static int load_to_spill(pl_loader *loader, pl_dtype dtype, uint64_t bytes, pl_buffer **ret_buffer,
                         pl_error *reterr)
{
    pl_buffer *buffer;
    int r = pl_buffer_new_spilled(loader->runtime->pool, bytes, "element", &buffer, reterr);
    if (r < 0)
        return r;
    char *scratch = malloc(SCRATCH_BYTES);
    if (!scratch)
        r = pl_error_set(reterr, -ENOMEM, "out of memory: cannot read a tensor");
    for (uint64_t at = 0; r == 0 && at < bytes; at += SCRATCH_BYTES) {
        size_t n = (size_t)pl_min_u64(bytes - at, SCRATCH_BYTES);
        r = load_checked(loader, dtype, scratch, n, reterr);
        if (r == 0)
            r = pl_buffer_write(buffer, at, scratch, n, reterr);
    }
    free(scratch);
    if (r < 0)
        pl_buffer_unref(buffer);
    else
        *ret_buffer = buffer;
    return r;
}

static int load_buffer(pl_loader *loader, pl_dtype dtype, uint64_t bytes, pl_buffer **ret_buffer,
                       pl_error *reterr)
{
    pl_buffer *buffer;
    void *data;
    int r = pl_buffer_new(loader->runtime->pool, bytes, "element", &buffer, &data, reterr);
    if (r == PL_EBUDGET && bytes > 0)
        return load_to_spill(loader, dtype, bytes, ret_buffer, reterr);
    if (r < 0)
        return r;
    r = load_checked(loader, dtype, data, (size_t)bytes, reterr);
    pl_buffer_unpin(buffer);
    if (r < 0)
        pl_buffer_unref(buffer);
    else
        *ret_buffer = buffer;
    return r;
}

static int load_numbers(pl_loader *loader, pl_dtype dtype, const pl_shape *shape,
                        pl_tensor **ret_tensor, pl_error *reterr)
{
    int64_t bytes;
    pl_buffer *buffer = NULL;
    if (pl_tensor_size(dtype, shape, &bytes, NULL) < 0)
        return pl_load_refuse(reterr, "a tensor has shape %s", PL_SHAPE_TEXT(shape));
    int r = pl_load_check_left(loader, (uint64_t)bytes, reterr);
    if (r == 0)
        r = load_buffer(loader, dtype, (uint64_t)bytes, &buffer, reterr);
    return r < 0 ? r : pl_tensor_wrap(buffer, dtype, shape, NULL, 0, ret_tensor, reterr);
}

static int load_each(pl_loader *loader, pl_strings_maker *maker, int64_t n, int64_t n_bytes,
                     pl_error *reterr)
{
    int r = 0;
    for (int64_t i = 0, bytes; r == 0 && i < n; i++) {
        r = pl_load_int(loader, 0, n_bytes, &bytes, reterr);
        if (r == 0)
            r = pl_load_bytes(loader, pl_strings_add(maker, (size_t)bytes), (size_t)bytes, reterr);
        n_bytes -= r == 0 ? bytes : 0;
    }
    if (r == 0 && n_bytes != 0)
        r = pl_load_refuse(reterr, "strings have %lld bytes less than they should",
                           (long long)n_bytes);
    return r;
}

static int load_strings(pl_loader *loader, const pl_shape *shape, pl_tensor **ret_tensor,
                        pl_error *reterr)
{
    int64_t n, n_bytes;
    pl_strings_maker maker = {0};
    if (pl_shape_bytes(shape, sizeof(int64_t), &n, NULL) < 0)
        return pl_load_refuse(reterr, "a tensor has shape %s", PL_SHAPE_TEXT(shape));
    int r = pl_load_count(loader, &n_bytes, reterr);
    if (r == 0)
        r = pl_load_check_left(loader, pl_add_sat_u64((uint64_t)n, (uint64_t)n_bytes), reterr);
    if (r == 0)
        r = pl_strings_begin(&maker, loader->runtime, shape, (uint64_t)n_bytes, "element", reterr);
    if (r == 0)
        r = load_each(loader, &maker, n / (int64_t)sizeof(int64_t), n_bytes, reterr);
    if (r == 0)
        return pl_strings_end(&maker, ret_tensor, reterr);
    pl_strings_drop(&maker);
    return r;
}

static int load_held(pl_loader *loader, pl_tensor **ret_tensor, pl_error *reterr)
{
    int64_t number;
    int r = pl_load_count(loader, &number, reterr);
    if (r < 0)
        return r;
    pl_tensor *tensor = loader->held ? loader->held(loader, number) : NULL;
    if (!tensor)
        return pl_load_refuse(reterr, "there is no tensor %lld beside the bytes",
                              (long long)number);
    *ret_tensor = pl_tensor_ref(tensor);
    return 0;
}

static int load_tensor(pl_loader *loader, pl_dtype dtype, pl_tensor **ret_tensor, pl_error *reterr)
{
    pl_shape shape;
    int r = load_shape(loader, 0, &shape, reterr);
    if (r < 0)
        return r;
    return dtype == PL_STRING ? load_strings(loader, &shape, ret_tensor, reterr)
                              : load_numbers(loader, dtype, &shape, ret_tensor, reterr);
}

/* ---- items ---- */

int pl_save_item(pl_saver *saver, const pl_item *item, pl_error *reterr)
{
    if (item->tensor)
        return save_tensor(saver, item->tensor, reterr);
    uint8_t tag = item->dataset ? 0 : (uint8_t)(item->dtype | TAG_SCALAR);
    int r = pl_save_bytes(saver, &tag, 1, reterr);
    if (r < 0)
        return r;
    if (item->dataset)
        return pl_store_save_dataset(saver, item->dataset, reterr);
    return pl_save_bytes(saver, &item->bits, pl_dtype_info_of(item->dtype)->item_bytes, reterr);
}

static int load_by_tag(pl_loader *loader, uint8_t tag, const pl_spec *spec, pl_item *item,
                       pl_error *reterr)
{
    pl_dtype dtype = (pl_dtype)(tag & TAG_DTYPE);
    size_t item_bytes = pl_dtype_info_of(dtype)->item_bytes;
    bool known = dtype == PL_STRING ? !(tag & TAG_SCALAR) : item_bytes > 0 || tag == 0;
    if (!known || (tag & (TAG_SCALAR | TAG_HELD)) == (TAG_SCALAR | TAG_HELD))
        return pl_load_refuse(reterr, "a component begins with %#x", tag);
    if (tag & TAG_SCALAR) {
        *item = pl_item_scalar(dtype, 0);
        return load_checked(loader, dtype, (char *)&item->bits, item_bytes, reterr);
    }
    if (tag & TAG_HELD)
        return load_held(loader, &item->tensor, reterr);
    if (tag == 0)
        return pl_store_load_dataset(loader, spec, &item->dataset, reterr);
    return load_tensor(loader, dtype, &item->tensor, reterr);
}

int pl_load_item(pl_loader *loader, const pl_spec *spec, int component, pl_item *ret_item,
                 pl_error *reterr)
{
    uint8_t tag;
    pl_item item = {0};
    pl_error error = {0};
    int r = pl_load_bytes(loader, &tag, 1, reterr);
    if (r == 0 && (tag == 0) != (spec->dtype == PL_DTYPE_NONE))
        r = pl_load_refuse(reterr, "component %d is a %s", component, tag ? "tensor" : "dataset");
    if (r == 0)
        r = load_by_tag(loader, tag, spec, &item, reterr);
    if (r == 0 && pl_spec_check(spec, &item, component, &error) < 0)
        r = pl_load_refuse(reterr, "%s", error.message);
    if (r < 0)
        pl_item_clear(&item);
    else
        *ret_item = item;
    return r;
}

/* ---- specs ---- */

int pl_save_specs(pl_saver *saver, const pl_spec *specs, int n, pl_error *reterr)
{
    int r = pl_save_int(saver, n, reterr);
    for (int i = 0; r == 0 && i < n; i++) {
        r = pl_save_int(saver, specs[i].dtype, reterr);
        if (r == 0 && specs[i].dtype == PL_DTYPE_NONE)
            r = pl_save_specs(saver, specs[i].of, specs[i].n_of, reterr);
        else if (r == 0)
            r = save_shape(saver, &specs[i].shape, reterr);
    }
    return r;
}

static int load_specs(pl_loader *loader, int depth, pl_spec **ret_specs, int *ret_n,
                      pl_error *reterr);

static int load_spec(pl_loader *loader, int depth, pl_spec *spec, pl_error *reterr)
{
    int64_t dtype;
    int r = pl_load_int(loader, 0, PL_STRING, &dtype, reterr);
    if (r < 0)
        return r;
    spec->dtype = (pl_dtype)dtype;
    if (spec->dtype != PL_DTYPE_NONE)
        return load_shape(loader, -1, &spec->shape, reterr);
    pl_spec *of = NULL;
    r = load_specs(loader, depth + 1, &of, &spec->n_of, reterr);
    spec->of = of;
    return r;
}

static int load_specs(pl_loader *loader, int depth, pl_spec **ret_specs, int *ret_n,
                      pl_error *reterr)
{
    int64_t n;
    int r = pl_load_int(loader, 0, INT32_MAX, &n, reterr);
    if (r == 0)
        r = depth > SPEC_DEPTH_MOST ? pl_load_refuse(reterr, "datasets of datasets of datasets...")
                                    : pl_load_check_left(loader, (uint64_t)n * 8, reterr);
    if (r < 0)
        return r;
    pl_spec *specs = calloc((size_t)n + 1, sizeof *specs);
    if (!specs)
        return pl_error_set(reterr, -ENOMEM, "out of memory for %lld components", (long long)n);
    for (int64_t i = 0; r == 0 && i < n; i++)
        r = load_spec(loader, depth, &specs[i], reterr);
    if (r < 0) {
        for (int64_t i = 0; i < n; i++)
            pl_spec_clear(&specs[i]);
        free(specs);
        return r;
    }
    *ret_specs = specs;
    *ret_n = (int)n;
    return 0;
}

int pl_load_specs(pl_loader *loader, pl_spec **ret_specs, int *ret_n, pl_error *reterr)
{
    return load_specs(loader, 0, ret_specs, ret_n, reterr);
}
