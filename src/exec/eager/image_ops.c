/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes images from strings: the header first, then the claim, then the pixels. See
 * whole_ops.h. */
#include <inttypes.h>
#include <stdio.h>

#include "base/size.h"
#include "codec/image/image.h"
#include "exec/eager/whole_ops.h"
#include "tensor/shape.h"
#include "tensor/strings.h"

/* The memory to decode the whole picture. */
static uint64_t needed_bytes(const pl_eager_call *call, const pl_image *image, uint64_t file_bytes)
{
    uint64_t beside = pl_add_sat_u64(image->work_bytes, image->library_bytes);
    uint64_t made = pl_buffer_new_cost_bytes(call->runtime->pool, image->pixel_bytes);
    uint64_t decoded = pl_add_sat_u64(made, pl_memory_cost_bytes(beside));
    return pl_add_sat_u64(decoded, pl_memory_cost_bytes(file_bytes));
}

static PL_COLD int refuse(const pl_eager_call *call, int code, const pl_image *image,
                          size_t file_bytes, uint64_t needed, pl_error *reterr)
{
    char of[160];
    bool whole = needed == needed_bytes(call, image, file_bytes);
    snprintf(of, sizeof of,
             "a %s of %" PRId64 " x %" PRId64 " x %d pixels (%s) in a file of %s, with all that is "
             "needed to decode%s it,",
             pl_image_format_name(image->format), image->height, image->width, image->channels,
             PL_SIZE(image->pixel_bytes), PL_SIZE(file_bytes), whole ? "" : " and resize");
    return pl_eager_not_promised(call, code, needed, of, reterr);
}

static int check_budget(const pl_eager_call *call, const pl_image *image, size_t file_bytes,
                        uint64_t needed, pl_error *reterr)
{
    int r = pl_eager_promise(call, needed);
    return r < 0 ? refuse(call, r, image, file_bytes, needed, reterr) : 0;
}

/* A codec cannot decode the op's input. */
static PL_COLD int undecodable(const pl_eager_call *call, pl_error *why, pl_error *reterr)
{
    if (why->code == PL_ECORRUPT || why->code == PL_EFORMAT)
        pl_error_of_kind(why, PL_KIND_UNDECODABLE);
    pl_error_in_op(why, call->node->op->name, call->node->name);
    return pl_error_move(reterr, why);
}

/* The block also accounts for what the libraries allocate themselves: that part of it is never
 * touched. */
static int decode_to(const pl_eager_call *call, const pl_image *image, pl_string file, void *pixels,
                     pl_error *reterr)
{
    pl_block work = {0};
    pl_error inner = {0};
    int r = pl_memory_take(call->runtime->memory, image->work_bytes + image->library_bytes,
                           call->node->name, &work, reterr);
    if (r < 0)
        return r;
    r = pl_image_decode(file.data, file.n, image, pixels, work.data, &inner);
    pl_memory_give(call->runtime->memory, &work);
    return r < 0 ? undecodable(call, &inner, reterr) : 0;
}

static pl_image_samples samples_of(pl_dtype dtype)
{
    return dtype == PL_F32 ? PL_IMAGE_F32 : dtype == PL_U16 ? PL_IMAGE_U16 : PL_IMAGE_U8;
}

static int look_at(const pl_eager_call *call, pl_string file, pl_image *ret_image, pl_error *reterr)
{
    pl_error inner = {0};
    int r = pl_image_header_of(file.data, file.n,
                               (int)call->node->attrs[PL_ATTR_decode_channels].value.i,
                               samples_of(call->node->dtype), ret_image, &inner);
    if (r < 0)
        return undecodable(call, &inner, reterr);
    ret_image->recover = call->node->attrs[PL_ATTR_decode_try_recover_truncated].value.i != 0;
    return 0;
}

static int decode(const pl_eager_call *call, pl_string file, pl_tensor **ret_tensor,
                  pl_error *reterr)
{
    pl_image image;
    void *pixels;
    pl_tensor *tensor;
    int r = look_at(call, file, &image, reterr);
    if (r < 0)
        return r;
    r = check_budget(call, &image, file.n, needed_bytes(call, &image, file.n), reterr);
    const pl_shape shape = PL_SHAPE(image.height, image.width, image.channels);
    if (r == 0)
        r = pl_eager_new(call, call->node->dtype, &shape, &tensor, &pixels, reterr);
    if (r < 0)
        return r;
    r = decode_to(call, &image, file, pixels, reterr);
    pl_buffer_unpin(tensor->buffer);
    if (r == 0)
        *ret_tensor = tensor;
    else
        pl_tensor_unref(tensor);
    return r;
}

int pl_eager_decode(const pl_eager_call *call, pl_tensor **ret_tensor, pl_error *reterr)
{
    pl_strings file;
    int r = pl_strings_pin(&file, call->inputs[0], reterr);
    if (r < 0)
        return r;
    r = decode(call, pl_strings_at(&file, 0), ret_tensor, reterr);
    pl_strings_unpin(&file);
    return r;
}

/* ---- decode and resize ---- */

/* Two blocks besides the file and the result. One is used: tables and rows of the resize, then rows
 * of the picture. The other accounts for what the libraries allocate, as above. */
typedef struct beside {
    uint64_t resize_bytes, touched_bytes, work_bytes;
} beside;

static beside needed_beside(const pl_eager_call *call, const pl_image *image, const pl_shape *in,
                            const pl_shape *out)
{
    uint64_t resize_bytes = pl_eager_rows_bytes(call->node, in, out);
    return (beside){.resize_bytes = resize_bytes,
                    .touched_bytes = pl_add_sat_u64(resize_bytes, pl_image_rows_bytes(image)),
                    .work_bytes = pl_add_sat_u64(image->work_bytes, image->library_bytes)};
}

static int decode_through(const pl_eager_call *call, const pl_eager_call *decoding,
                          const pl_image *image, pl_string file, const pl_shape *in,
                          const pl_shape *out, void *made, pl_error *reterr)
{
    const beside needed = needed_beside(call, image, in, out);
    pl_memory *memory = call->runtime->memory;
    pl_block touched = {0}, work = {0};
    pl_error inner = {0};
    int r = pl_memory_take(memory, needed.touched_bytes, call->node->name, &touched, reterr);
    if (r == 0)
        r = pl_memory_take(memory, needed.work_bytes, decoding->node->name, &work, reterr);
    if (r == 0) {
        const pl_image_rows rows = {
            .take = pl_eager_rows_take,
            .context = pl_eager_rows_begin(call->node, in, out, touched.data, made),
        };
        r = pl_image_decode_rows(file.data, file.n, image, &rows,
                                 (char *)touched.data + needed.resize_bytes, work.data, &inner);
        if (r < 0)
            r = undecodable(decoding, &inner, reterr);
    }
    pl_memory_give(memory, &work);
    pl_memory_give(memory, &touched);
    return r;
}

static int decode_resized(const pl_eager_call *call, pl_string file, pl_tensor **ret_tensor,
                          pl_error *reterr)
{
    const int64_t *size = call->node->attrs[PL_ATTR_resize_size].value.values;
    pl_eager_call decoding = *call; /* errors name the picture */
    decoding.node = call->decoded;
    pl_image image;
    int64_t bytes;
    void *made;
    pl_tensor *tensor;
    int r = look_at(&decoding, file, &image, reterr);
    if (r < 0)
        return r;
    const pl_shape in = PL_SHAPE(image.height, image.width, image.channels);
    const pl_shape out = PL_SHAPE(size[0], size[1], image.channels);
    r = pl_tensor_size(call->node->dtype, &out, &bytes, reterr);
    if (r < 0)
        return r;
    const beside more = needed_beside(call, &image, &in, &out);
    const uint64_t costs[] = {file.n, more.touched_bytes, more.work_bytes};
    uint64_t needed = pl_buffer_new_cost_bytes(call->runtime->pool, (uint64_t)bytes);
    for (size_t i = 0; i < PL_COUNT_OF(costs); i++)
        needed = pl_add_sat_u64(needed, pl_memory_cost_bytes(costs[i]));
    /* Refuse any picture that would not fit whole, so that the result does not depend on the decoding
     * path. */
    needed = pl_max_u64(needed, needed_bytes(call, &image, file.n));
    r = check_budget(&decoding, &image, file.n, needed, reterr);
    if (r == 0)
        r = pl_eager_new(call, call->node->dtype, &out, &tensor, &made, reterr);
    if (r < 0)
        return r;
    r = decode_through(call, &decoding, &image, file, &in, &out, made, reterr);
    pl_buffer_unpin(tensor->buffer);
    if (r == 0)
        *ret_tensor = tensor;
    else
        pl_tensor_unref(tensor);
    return r;
}

int pl_eager_decode_resized(const pl_eager_call *call, pl_tensor **ret_tensor, pl_error *reterr)
{
    pl_strings file;
    int r = pl_strings_pin(&file, call->inputs[0], reterr);
    if (r < 0)
        return r;
    r = decode_resized(call, pl_strings_at(&file, 0), ret_tensor, reterr);
    pl_strings_unpin(&file);
    return r;
}
