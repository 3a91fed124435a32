/* SPDX-License-Identifier: Apache-2.0 */
/* Writes JPEGs: see plimsoll/picture.h. libjpeg-turbo reports errors by a jump, as in jpeg.c. */
#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

#include "plimsoll/picture.h"

#include "base/base.h"

static const char xmp_name[] = "http://ns.adobe.com/xap/1.0/"; /* the NUL is part of it */

enum { MARKER_BYTES_MAX = 65533, FIRST_BYTES = 16 * 1024 };

typedef struct picture {
    const uint8_t *pixels;
    int64_t height, width;
    int channels;
} picture;

typedef struct encoder {
    struct jpeg_compress_struct jpeg;
    struct jpeg_error_mgr errors;
    jmp_buf out;
    int code;
    char why[JMSG_LENGTH_MAX];
    /* Our own, because jpeg_mem_dest() forgets what it has allocated when it fails. */
    struct jpeg_destination_mgr destination;
    uint8_t *bytes;
    size_t n, room;
} encoder;

static void give_up(j_common_ptr jpeg)
{
    encoder *e = jpeg->client_data;
    e->code = jpeg->err->msg_code == JERR_OUT_OF_MEMORY ? -ENOMEM : -EINVAL;
    jpeg->err->format_message(jpeg, e->why);
    longjmp(e->out, 1);
}

static void stay_silent(j_common_ptr jpeg)
{
    (void)jpeg;
}

/* Adds more room after the part that libjpeg has filled. */
static void add_room(encoder *e, size_t more)
{
    uint8_t *bytes = realloc(e->bytes, e->room + more);
    if (!bytes) {
        e->code = -ENOMEM;
        strcpy(e->why, "no memory for the file");
        longjmp(e->out, 1);
    }
    e->bytes = bytes;
    e->destination.next_output_byte = bytes + e->room;
    e->destination.free_in_buffer = more;
    e->room += more;
}

static void begin_file(j_compress_ptr jpeg)
{
    add_room(jpeg->client_data, FIRST_BYTES);
}

static boolean go_on(j_compress_ptr jpeg)
{
    encoder *e = jpeg->client_data;
    add_room(e, e->room);
    return TRUE;
}

static void end_file(j_compress_ptr jpeg)
{
    encoder *e = jpeg->client_data;
    e->n = e->room - e->destination.free_in_buffer;
}

static void set_options(struct jpeg_compress_struct *jpeg, const pl_jpeg_options *options)
{
    jpeg_set_defaults(jpeg);
    jpeg_set_quality(jpeg, options->quality, TRUE);
    jpeg->optimize_coding = options->small;
    if (options->progressive)
        jpeg_simple_progression(jpeg);
    if (jpeg->num_components == 3)
        jpeg->comp_info[0].h_samp_factor = jpeg->comp_info[0].v_samp_factor =
            options->full_colour ? 1 : 2;
    jpeg->density_unit = options->per_cm ? 2 : 1;
    jpeg->X_density = (UINT16)options->x_density;
    jpeg->Y_density = (UINT16)options->y_density;
}

static void write_xmp(struct jpeg_compress_struct *jpeg, const pl_jpeg_options *options)
{
    const uint8_t *packet = options->xmp;
    if (options->xmp_bytes == 0)
        return;
    jpeg_write_m_header(jpeg, JPEG_APP0 + 1, (unsigned)(sizeof xmp_name + options->xmp_bytes));
    for (size_t i = 0; i < sizeof xmp_name; i++)
        jpeg_write_m_byte(jpeg, xmp_name[i]);
    for (size_t i = 0; i < options->xmp_bytes; i++)
        jpeg_write_m_byte(jpeg, packet[i]);
}

/* A function of its own, because local variables of a function that is jumped back into may be
 * lost. */
static void attempt(encoder *e, const picture *p, const pl_jpeg_options *options)
{
    struct jpeg_compress_struct *jpeg = &e->jpeg;
    size_t row_bytes = (size_t)p->width * (size_t)p->channels;
    if (setjmp(e->out) != 0)
        return;
    jpeg_create_compress(jpeg);
    e->destination = (struct jpeg_destination_mgr){
        .init_destination = begin_file, .empty_output_buffer = go_on, .term_destination = end_file};
    jpeg->dest = &e->destination;
    jpeg->image_width = (JDIMENSION)p->width;
    jpeg->image_height = (JDIMENSION)p->height;
    jpeg->input_components = p->channels;
    jpeg->in_color_space = p->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    set_options(jpeg, options);
    jpeg_start_compress(jpeg, TRUE);
    write_xmp(jpeg, options);
    while (jpeg->next_scanline < jpeg->image_height) {
        /* libjpeg's type lacks const, but it only reads. */
        JSAMPROW row = (JSAMPROW)(uintptr_t)(p->pixels + jpeg->next_scanline * row_bytes);
        jpeg_write_scanlines(jpeg, &row, 1);
    }
    jpeg_finish_compress(jpeg);
}

static int check(const picture *p, const pl_jpeg_options *options, pl_error *reterr)
{
    if (p->height < 1 || p->width < 1 || p->height > PL_JPEG_SIDE_MAX ||
        p->width > PL_JPEG_SIDE_MAX)
        return pl_error_set(reterr, -EINVAL, "a JPEG has 1 to %d pixels a side, not %lld x %lld",
                            PL_JPEG_SIDE_MAX, (long long)p->height, (long long)p->width);
    if (p->channels != 1 && p->channels != 3)
        return pl_error_set(reterr, -EINVAL, "a JPEG has 1 or 3 channels, not %d", p->channels);
    if (options->quality < 0 || options->quality > 100)
        return pl_error_set(reterr, -EINVAL, "a quality is 0 to 100, not %d", options->quality);
    if (options->x_density < 1 || options->y_density < 1 || options->x_density > UINT16_MAX ||
        options->y_density > UINT16_MAX)
        return pl_error_set(reterr, -EINVAL, "densities are 1 to %d, not %d and %d", UINT16_MAX,
                            options->x_density, options->y_density);
    if (options->xmp_bytes > MARKER_BYTES_MAX - sizeof xmp_name)
        return pl_error_set(reterr, -EINVAL, "XMP of %zu bytes: at most %zu fit",
                            options->xmp_bytes, MARKER_BYTES_MAX - sizeof xmp_name);
    return 0;
}

int pl_jpeg_encode(const uint8_t *pixels, int64_t height, int64_t width, int channels,
                   const pl_jpeg_options *options, void **ret_bytes, size_t *ret_n,
                   pl_error *reterr)
{
    PL_NOT_NULL(pixels, reterr);
    PL_NOT_NULL(options, reterr);
    PL_NOT_NULL(ret_bytes, reterr);
    PL_NOT_NULL(ret_n, reterr);
    PL_TAKE_OPTIONS(pl_jpeg_options, options, xmp_bytes, reterr);
    PL_NOT_NULL_IF(options->xmp_bytes > 0, options->xmp, reterr);
    const picture p = {pixels, height, width, channels};
    int r = check(&p, options, reterr);
    if (r < 0)
        return r;
    encoder e = {0};
    e.jpeg.err = jpeg_std_error(&e.errors);
    e.errors.error_exit = give_up;
    e.errors.output_message = stay_silent;
    e.jpeg.client_data = &e;
    attempt(&e, &p, options);
    jpeg_destroy_compress(&e.jpeg);
    if (e.code < 0) {
        free(e.bytes);
        return pl_error_set(reterr, e.code, "a JPEG of %lld x %lld cannot be written: %s",
                            (long long)height, (long long)width, e.why);
    }
    *ret_bytes = e.bytes;
    *ret_n = e.n;
    return 0;
}
