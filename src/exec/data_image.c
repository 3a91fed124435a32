/* SPDX-License-Identifier: Apache-2.0 */
/* Images from strings: the header first, then the claim, then the pixels. See data.h. */
#include <inttypes.h>
#include <stdio.h>

#include "base/size.h"
#include "codec/image.h"
#include "exec/data.h"
#include "tensor/shape.h"
#include "tensor/strings.h"

static uint64_t needed_bytes(const pl_data_call *call, const pl_image *image, uint64_t file_bytes)
{
    uint64_t beside = pl_add_sat_u64(image->work_bytes, image->library_bytes);
    uint64_t made = pl_buffer_new_cost_bytes(call->runtime->pool, image->pixel_bytes);
    uint64_t decoded = pl_add_sat_u64(made, pl_memory_cost_bytes(beside));
    return pl_add_sat_u64(decoded, pl_memory_cost_bytes(file_bytes));
}

static PL_COLD int refuse(const pl_data_call *call, int code, const pl_image *image,
                          size_t file_bytes, pl_error *reterr)
{
    char of[160];
    snprintf(of, sizeof of,
             "a %s of %" PRId64 " x %" PRId64 " x %d pixels (%s) in a file of %s, with all that is "
             "needed to decode it,",
             pl_image_format_name(image->format), image->height, image->width, image->channels,
             PL_SIZE(image->pixel_bytes), PL_SIZE(file_bytes));
    return pl_data_not_promised(call, code, needed_bytes(call, image, file_bytes), of, reterr);
}

static int check_budget(const pl_data_call *call, const pl_image *image, size_t file_bytes,
                        pl_error *reterr)
{
    int r = pl_data_promise(call, needed_bytes(call, image, file_bytes));
    return r < 0 ? refuse(call, r, image, file_bytes, reterr) : 0;
}

/* The block stands for what the libraries take themselves, too: that part of it is never touched.
 */
static int decode_to(const pl_data_call *call, const pl_image *image, pl_string file, void *pixels,
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
    return r < 0 ? pl_data_fail(call, r, reterr, "%s", inner.message) : 0;
}

static pl_image_samples samples_of(pl_dtype dtype)
{
    return dtype == PL_F32 ? PL_IMAGE_F32 : dtype == PL_U16 ? PL_IMAGE_U16 : PL_IMAGE_U8;
}

static int decode(const pl_data_call *call, pl_string file, pl_tensor **ret_tensor,
                  pl_error *reterr)
{
    pl_image image;
    pl_error inner = {0};
    void *pixels;
    pl_tensor *tensor;
    int r = pl_image_header_of(file.data, file.n,
                               (int)call->node->attrs[PL_ATTR_decode_channels].value.i,
                               samples_of(call->node->dtype), &image, &inner);
    if (r < 0)
        return pl_data_fail(call, r, reterr, "%s", inner.message);
    image.recover = call->node->attrs[PL_ATTR_decode_try_recover_truncated].value.i != 0;
    r = check_budget(call, &image, file.n, reterr);
    const pl_shape shape = PL_SHAPE(image.height, image.width, image.channels);
    if (r == 0)
        r = pl_data_new(call, call->node->dtype, &shape, &tensor, &pixels, reterr);
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

int pl_data_decode(const pl_data_call *call, pl_tensor **ret_tensor, pl_error *reterr)
{
    pl_strings file;
    int r = pl_strings_pin(&file, call->inputs[0], reterr);
    if (r < 0)
        return r;
    r = decode(call, pl_strings_at(&file, 0), ret_tensor, reterr);
    pl_strings_unpin(&file);
    return r;
}
