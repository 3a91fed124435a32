/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a JPEG, PNG or BMP: first its header, then all of its pixels. */
#include <errno.h>
#include <inttypes.h>

#include "base/size.h"
#include "codec/image/image.h"
#include "verify/file.h"

/* Twice Pillow's warning level; from there on it refuses. */
#define MOST_PIXELS UINT64_C(178956970)

static int decode(pl_verify_file *file, const void *bytes, size_t n, const pl_image *image,
                  pl_error *reterr)
{
    uint64_t work_at = (image->pixel_bytes + 63) & ~UINT64_C(63);
    pl_block *room = &file->room->pixels;
    int r = pl_verify_room_for(file, room, work_at + image->work_bytes, "the pixels", reterr);
    return r < 0
               ? r
               : pl_image_decode(bytes, n, image, room->data, (char *)room->data + work_at, reterr);
}

/* Other formats, such as GIF or WebP, cannot be checked here: nothing is wrong with the file except
 * that no dataset reads it. */
static bool is_decoded(pl_verify_format format)
{
    return pl_verify_is_image(format) && format != PL_VERIFY_PICTURE;
}

int pl_verify_image_bytes(pl_verify_file *file, const void *bytes, size_t n, uint64_t offset,
                          const char *where, pl_error *reterr)
{
    pl_image image;
    pl_error why = {0};
    int r = pl_image_header(bytes, n, 0, &image, &why);
    if (r == 0 && (uint64_t)image.height * (uint64_t)image.width > MOST_PIXELS) {
        pl_verify_report(file, PL_VERIFY_ERROR, offset,
                         "%s%zu bytes promise %" PRId64 " x %" PRId64
                         " pixels (%s): a decompression bomb",
                         where, n, image.width, image.height, PL_SIZE(image.pixel_bytes));
        return 0; /* not an element: nobody will decode it, so a plan must not count it */
    }
    if (r == 0)
        pl_verify_count(file, image.pixel_bytes);
    if (r == 0 && !file->want_size_only)
        r = decode(file, bytes, n, &image, &why);
    if (r == -ENOMEM)
        return pl_error_move(reterr, &why);
    if (r < 0) {
        bool may_be_good = !is_decoded(file->format) && pl_image_is_foreign(bytes, n);
        pl_verify_report_fault(file, may_be_good ? PL_VERIFY_NOTE : PL_VERIFY_ERROR, offset, where,
                               &why);
        return 0;
    }
    file->height = image.height;
    file->width = image.width;
    file->channels = image.file_channels;
    if (image.is_cmyk)
        pl_verify_report(file, PL_VERIFY_WARNING, offset,
                         "%sits colours are inks (CMYK): TensorFlow and browsers show others than "
                         "were meant; save it as RGB",
                         where);
    return 0;
}

/* Is its header within the head? It is, unless much other data comes first. */
static bool is_measured_by_head(const pl_verify_file *file)
{
    pl_image image;
    return file->want_size_only && pl_image_header(file->head, file->n_head, 0, &image, NULL) == 0;
}

int pl_verify_image(pl_verify_file *file, pl_error *reterr)
{
    const uint8_t *bytes;
    pl_error why = {0};
    if (is_measured_by_head(file))
        return pl_verify_image_bytes(file, file->head, file->n_head, 0, "", reterr);
    int r = pl_verify_all_bytes(file, &bytes, &why);
    if (r < 0)
        return pl_verify_report_error(file, PL_VERIFY_NO_OFFSET, &why, reterr);
    return pl_verify_image_bytes(file, bytes, file->file_bytes, 0, "", reterr);
}
