/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes JPEG with libjpeg-turbo, which only jpeg_write.c also uses. It reports errors by a jump:
 * no function that is jumped over owns anything. */
#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

#include "codec/image/image_private.h"

/* Progressive files of a few bytes can ask for any number of passes over a large picture. */
enum { SCANS_MAX = 500 };

typedef struct decoder {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    jmp_buf out;
    size_t n;
    bool recover; /* continues after warnings, and past the end of the bytes */
    int code;
    char why[JMSG_LENGTH_MAX];
} decoder;

static decoder *decoder_of(j_common_ptr jpeg)
{
    return (decoder *)jpeg->client_data;
}

/* ---- what libjpeg calls ---- */

static void give_up(j_common_ptr jpeg)
{
    decoder *d = decoder_of(jpeg);
    d->code = jpeg->err->msg_code == JERR_OUT_OF_MEMORY ? -ENOMEM : PL_ECORRUPT;
    if (jpeg->err->msg_code == JERR_NO_BACKING_STORE)
        d->code = -ENOMEM; /* over max_memory_to_use */
    jpeg->err->format_message(jpeg, d->why);
    longjmp(d->out, 1);
}

/* A level below 0 is a warning: a part of the picture would be made up. The rest is chatter. */
static void hear(j_common_ptr jpeg, int level)
{
    if (level < 0 && !decoder_of(jpeg)->recover)
        give_up(jpeg);
}

static void stay_silent(j_common_ptr jpeg)
{
    (void)jpeg;
}

static void nothing_to_do(j_decompress_ptr jpeg)
{
    (void)jpeg;
}

static boolean end_of_bytes(j_decompress_ptr jpeg)
{
    static const JOCTET end[] = {0xff, JPEG_EOI};
    decoder *d = decoder_of((j_common_ptr)jpeg);
    if (d->recover) { /* the library then leaves the rest grey */
        jpeg->src->next_input_byte = end;
        jpeg->src->bytes_in_buffer = sizeof end;
        return TRUE;
    }
    d->code = PL_ECORRUPT;
    strcpy(d->why, "it is cut off");
    longjmp(d->out, 1);
}

static void skip(j_decompress_ptr jpeg, long n)
{
    if (n <= 0)
        return;
    if ((size_t)n > jpeg->src->bytes_in_buffer) {
        jpeg->src->bytes_in_buffer = 0;
        end_of_bytes(jpeg);
        return;
    }
    jpeg->src->next_input_byte += n;
    jpeg->src->bytes_in_buffer -= (size_t)n;
}

static void count_scans(j_common_ptr jpeg)
{
    decoder *d = decoder_of(jpeg);
    if (d->jpeg.input_scan_number <= SCANS_MAX)
        return;
    d->code = PL_ECORRUPT;
    snprintf(d->why, sizeof d->why, "it has more than %d scans", SCANS_MAX);
    longjmp(d->out, 1);
}

/* ---- the picture ---- */

static void begin(decoder *d, const uint8_t *bytes, size_t n, const pl_image *image)
{
    jpeg_create_decompress(&d->jpeg);
    d->jpeg.mem->max_memory_to_use = (long)image->library_bytes;
    d->source = (struct jpeg_source_mgr){
        .next_input_byte = bytes,
        .bytes_in_buffer = n,
        .init_source = nothing_to_do,
        .fill_input_buffer = end_of_bytes,
        .skip_input_data = skip,
        .resync_to_restart = jpeg_resync_to_restart,
        .term_source = nothing_to_do,
    };
    d->jpeg.src = &d->source;
    d->progress.progress_monitor = count_scans;
    d->jpeg.progress = &d->progress;
}

/* Adobe's programs, which write such files, store inks inverted. */
static void from_inks(const uint8_t *cmyk, int64_t width, bool upside_down, uint8_t *rgb)
{
    for (int64_t x = 0; x < width; x++, cmyk += 4, rgb += 3) {
        unsigned k = upside_down ? cmyk[3] : 255u - cmyk[3];
        for (int i = 0; i < 3; i++)
            rgb[i] = (uint8_t)(k * (upside_down ? cmyk[i] : 255u - cmyk[i]) / 255);
    }
}

static void read_inks(decoder *d, const pl_image *image, uint8_t *row, uint8_t *work)
{
    jpeg_read_scanlines(&d->jpeg, (JSAMPARRAY)&work, 1);
    bool upside_down = d->jpeg.saw_Adobe_marker;
    if (image->channels == 3) {
        from_inks(work, image->width, upside_down, row);
        return;
    }
    for (int64_t x = 0; x < image->width; x++) {
        uint8_t rgb[3];
        from_inks(work + 4 * x, 1, upside_down, rgb);
        row[x] = pl_grey_of(rgb);
    }
}

uint64_t pl_jpeg_rows_bytes(uint64_t row_bytes)
{
    return PL_JPEG_ROWS * ((row_bytes + 15) / 16 * 16) + 32;
}

/* Passes a few rows at a time: a row just written is not ready at once. No row begins at a multiple
 * of 16: there libjpeg-turbo writes past the caches, and reading it back from memory takes three
 * times as long as all of a resize. */
static void pass_rows(decoder *d, const pl_image_rows *rows, size_t row_bytes, uint8_t *room)
{
    uint8_t *first = (uint8_t *)(((uintptr_t)room + 15) / 16 * 16) + 8, *at[PL_JPEG_ROWS];
    for (int i = 0; i < PL_JPEG_ROWS; i++)
        at[i] = first + (size_t)i * ((row_bytes + 15) / 16 * 16);
    int64_t y = d->jpeg.output_scanline;
    unsigned n = jpeg_read_scanlines(&d->jpeg, at, PL_JPEG_ROWS);
    for (unsigned i = 0; i < n; i++)
        rows->take(rows->context, y + i, at[i]);
}

static void pass_inks(decoder *d, const pl_image *image, const pl_image_rows *rows, uint8_t *room,
                      uint8_t *work)
{
    int64_t y = d->jpeg.output_scanline;
    read_inks(d, image, room, work);
    rows->take(rows->context, y, room);
}

static void decode(decoder *d, const pl_image *image, const pl_image_rows *rows, uint8_t *pixels,
                   uint8_t *work)
{
    jpeg_read_header(&d->jpeg, TRUE);
    bool inks = d->jpeg.num_components == 4;
    d->jpeg.out_color_space = inks ? JCS_CMYK : image->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_start_decompress(&d->jpeg);
    if (d->jpeg.output_width != image->width || d->jpeg.output_height != image->height) {
        d->code = PL_ECORRUPT;
        strcpy(d->why, "it has two sizes");
        longjmp(d->out, 1);
    }
    size_t row_bytes = (size_t)image->width * (size_t)image->channels;
    while (d->jpeg.output_scanline < d->jpeg.output_height) {
        uint8_t *row = pixels + (rows ? 0 : d->jpeg.output_scanline * row_bytes);
        if (rows && inks)
            pass_inks(d, image, rows, row, work);
        else if (rows)
            pass_rows(d, rows, row_bytes, row);
        else if (inks)
            read_inks(d, image, row, work);
        else
            jpeg_read_scanlines(&d->jpeg, (JSAMPARRAY)&row, 1);
    }
    jpeg_finish_decompress(&d->jpeg); /* up to the end marker */
}

/* A function of its own, because local variables of a function that is jumped back into may be
 * lost. */
static void attempt(decoder *d, const uint8_t *bytes, const pl_image *image,
                    const pl_image_rows *rows, uint8_t *pixels, uint8_t *work)
{
    if (setjmp(d->out) != 0)
        return;
    begin(d, bytes, d->n, image);
    decode(d, image, rows, pixels, work);
}

int pl_jpeg_decode(const uint8_t *bytes, size_t n, const pl_image *image, const pl_image_rows *rows,
                   uint8_t *pixels, uint8_t *work, pl_error *reterr)
{
    decoder d = {.n = n, .recover = image->recover};
    d.jpeg.err = jpeg_std_error(&d.errors);
    d.errors.error_exit = give_up;
    d.errors.emit_message = hear;
    d.errors.output_message = stay_silent;
    d.jpeg.client_data = &d;
    attempt(&d, bytes, image, rows, pixels, work);
    size_t at = n - d.source.bytes_in_buffer;
    jpeg_destroy_decompress(&d.jpeg);
    if (d.code == -ENOMEM)
        return pl_error_set(reterr, -ENOMEM, "out of memory to decode a JPEG: %s", d.why);
    if (d.code < 0) {
        pl_error_set(reterr, d.code, "the JPEG is corrupt at byte %zu of %zu: %s", at, n, d.why);
        pl_error_at_byte(reterr, at);
    }
    return d.code;
}
