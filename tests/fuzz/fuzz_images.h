/* SPDX-License-Identifier: Apache-2.0 */
/* What fuzz_bmp.c, fuzz_jpeg.c and fuzz_png.c have in common: any bytes as an image are refused,
 * with a message, or decoded to what the header promised, within the work that it asked for. */
#ifndef TESTS_FUZZ_FUZZ_IMAGES_H
#define TESTS_FUZZ_FUZZ_IMAGES_H

#include "codec/image/image.h"
#include "fuzz.h"

/* Larger pictures take time, and find nothing more. */
enum { PIXEL_BYTES_MAX = 1 << 18 };

static long n_decoded, n_refused; /* 0 of either would make the test worthless */

static void check_result(int r, const pl_error *error)
{
    REQUIRE(r <= 0);
    if (r < 0)
        check_message(r, error);
}

/* Rows as they should come. */
typedef struct rows_wanted {
    const uint8_t *pixels; /* NULL: they are not known */
    size_t row_bytes;
    int64_t next, height;
} rows_wanted;

static inline void take_row(void *context, int64_t y, const uint8_t *row)
{
    rows_wanted *wanted = context;
    REQUIRE(y == wanted->next++ && y < wanted->height);
    if (wanted->pixels)
        REQUIRE(memcmp(row, wanted->pixels + (size_t)y * wanted->row_bytes, wanted->row_bytes) ==
                0);
}

/* Row by row it is the same, or refused as well: `r` and `pixels` are what it came to. */
static void try_rows(const uint8_t *bytes, size_t n, const pl_image *image, int r,
                     const uint8_t *pixels, uint8_t *work)
{
    rows_wanted wanted = {.pixels = r == 0 ? pixels : NULL,
                          .row_bytes = (size_t)(image->width * image->channels),
                          .height = image->height};
    const pl_image_rows rows = {take_row, &wanted};
    pl_error error = {0};
    uint8_t *room = malloc(pl_image_rows_bytes(image));
    REQUIRE(room);
    REQUIRE(pl_image_decode_rows(bytes, n, image, &rows, room, work, &error) == r);
    REQUIRE(r < 0 || wanted.next == image->height);
    check_result(r, &error);
    free(room);
}

/* Blocks of their own, so that a sanitizer sees the first byte behind each. The length decides
 * which samples are asked for: all that is decoded is decoded to each of them, sooner or later. */
static void try_image(const uint8_t *bytes, size_t n, int channels)
{
    pl_image image;
    pl_error error = {0};
    const pl_image_samples samples =
        (pl_image_samples[]){PL_IMAGE_U8, PL_IMAGE_U16, PL_IMAGE_F32}[n % 3];
    const uint64_t sample_bytes = UINT64_C(1) << n % 3;
    int r = pl_image_header_of(bytes, n, channels, samples, &image, &error);
    check_result(r, &error);
    n_refused += r < 0;
    if (r < 0 || pl_add_sat_u64(image.pixel_bytes, image.work_bytes) > PIXEL_BYTES_MAX)
        return;
    REQUIRE(image.height > 0 && image.width > 0 && image.channels > 0 && image.channels <= 4);
    REQUIRE(channels == 0 || image.channels == channels);
    REQUIRE(image.pixel_bytes ==
            (uint64_t)(image.height * image.width * image.channels) * sample_bytes);
    uint8_t *pixels = malloc(image.pixel_bytes), *work = malloc(image.work_bytes + 1);
    REQUIRE(pixels && work);
    error = (pl_error){0};
    r = pl_image_decode(bytes, n, &image, pixels, work, &error);
    check_result(r, &error);
    n_refused += r < 0;
    n_decoded += r == 0;
    if (samples == PL_IMAGE_U8)
        try_rows(bytes, n, &image, r, pixels, work);
    free(pixels);
    free(work);
}

/* A file with a few bytes changed, moved or cut off. */
static inline size_t damage(uint8_t *file, size_t n)
{
    for (long left = random() % 4; left >= 0; left--)
        switch (random() % 4) {
        case 0:
            file[(size_t)random() % n] = (uint8_t)random();
            break;
        case 1:
            file[(size_t)random() % n] ^= (uint8_t)(1 << random() % 8);
            break;
        case 2: {
            size_t from = (size_t)random() % n, to = (size_t)random() % n;
            size_t room = n - (from > to ? from : to);
            memmove(file + to, file + from, (size_t)random() % (room + 1));
            break;
        }
        default:
            n = random() % 8 ? n : 1 + (size_t)random() % n;
        }
    return n;
}

#endif
