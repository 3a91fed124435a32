/* SPDX-License-Identifier: Apache-2.0 */
/* What fuzz_jpeg.c and fuzz_png.c have in common: any bytes as an image are refused, with a
 * message, or decoded to what the header promised, within the work that it asked for. */
#ifndef TESTS_FUZZ_FUZZ_IMAGES_H
#define TESTS_FUZZ_FUZZ_IMAGES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* A mistake of the decoder's or of this program's. Not assert(): it must hold in every build. */
#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* Larger pictures take time, and find nothing more. */
enum { PIXEL_BYTES_MAX = 1 << 18 };

static long n_decoded, n_refused; /* 0 of either would make the test worthless */

static void check_message(int r, const pl_error *error)
{
    REQUIRE(r <= 0);
    REQUIRE(r == 0 || (error->code == r && error->message[0] != '\0'));
    for (const char *c = error->message; r < 0 && *c; c++)
        REQUIRE(*c >= ' ' && *c <= '~'); /* no byte of the file reaches a terminal raw */
}

/* Blocks of their own, so that a sanitizer sees the first byte behind each. */
static void try_image(const uint8_t *bytes, size_t n, int channels)
{
    pl_image image;
    pl_error error = {0};
    int r = pl_image_header(bytes, n, channels, &image, &error);
    check_message(r, &error);
    n_refused += r < 0;
    if (r < 0 || image.pixel_bytes + image.work_bytes > PIXEL_BYTES_MAX)
        return;
    REQUIRE(image.height > 0 && image.width > 0 && image.channels > 0 && image.channels <= 4);
    REQUIRE(channels == 0 || image.channels == channels);
    REQUIRE(image.pixel_bytes == (uint64_t)(image.height * image.width * image.channels));
    uint8_t *pixels = malloc(image.pixel_bytes), *work = malloc(image.work_bytes + 1);
    REQUIRE(pixels && work);
    error = (pl_error){0};
    r = pl_image_decode(bytes, n, &image, pixels, work, &error);
    check_message(r, &error);
    n_refused += r < 0;
    n_decoded += r == 0;
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
