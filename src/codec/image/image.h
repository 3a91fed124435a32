/* SPDX-License-Identifier: Apache-2.0 */
/* JPEG, PNG and BMP files: what their pixels cost, from the header alone, and the pixels.
 *   channels  1 grey, 2 grey and alpha, 3 RGB, 4 RGB and alpha; 0: as the file has them
 *   sample    one channel of one pixel
 *   pixels    height x width x channels samples, one row after the other
 *   work      memory that decoding is given beside
 *   library   what the libraries take from malloc() meanwhile, at most
 *
 * So whoever decodes claims first, and pays then: a small file that promises a huge picture costs
 * nothing but the look at its header. Nothing in a file is trusted. What a library warns of is
 * corrupt, unless it is told to recover: a picture of which a part is made up is worse than none.
 * EXIF's orientation is ignored, as TensorFlow does. Samples are what TensorFlow makes of them: for
 * uint8, 16 bits become their upper 8; for uint16, a PNG's 8 bits are repeated (255 is 65535), and
 * those of others are shifted (255 is 65280); for float32, the largest is 1.
 *
 * Messages say what is wrong and at which byte; the caller says with which file. No globals; safe
 * from any thread. */
#ifndef PL_CODEC_IMAGE_IMAGE_H
#define PL_CODEC_IMAGE_IMAGE_H

#include "base/base.h"
#include "plimsoll/error.h"

typedef enum pl_image_format {
    PL_IMAGE_JPEG,
    PL_IMAGE_PNG,
    PL_IMAGE_BMP,
} pl_image_format;

typedef enum pl_image_samples {
    PL_IMAGE_U8,
    PL_IMAGE_U16,
    PL_IMAGE_F32,
} pl_image_samples;

typedef struct pl_image {
    pl_image_format format;
    pl_image_samples samples; /* what is asked for */
    int64_t height, width;    /* both at least 1 */
    int file_channels;        /* what the file has */
    bool is_cmyk; /* a JPEG whose colours are four inks; its pixels are RGB all the same */
    int channels; /* what is asked for; never 0 */
    bool recover; /* for the caller to set: what is missing of a JPEG is made up */
    uint64_t pixel_bytes;
    uint64_t work_bytes;
    uint64_t library_bytes;
} pl_image;

/* Looks at the header; allocates nothing, and reads no more than it must. PL_EFORMAT: none of
 * these; PL_ECORRUPT: cut off, or it contradicts itself; -ENOTSUP: a kind that is not decoded;
 * -EINVAL: channels that there are not. */
PL_MUST_CHECK int pl_image_header(const void *bytes, size_t n, int channels, pl_image *ret_image,
                                  pl_error *reterr);

/* The same, for other samples than bytes: pixels are aligned to theirs. */
PL_MUST_CHECK int pl_image_header_of(const void *bytes, size_t n, int channels,
                                     pl_image_samples samples, pl_image *ret_image,
                                     pl_error *reterr);

/* Of the same bytes: `image` is what pl_image_header() made of them, `pixels` and `work` have as
 * many bytes as it says. PL_ECORRUPT, -ENOTSUP; -ENOMEM for want of `library`. */
PL_MUST_CHECK int pl_image_decode(const void *bytes, size_t n, const pl_image *image, void *pixels,
                                  void *work, pl_error *reterr);

/* Rows of bytes, from the first on, for whoever needs no picture whole: those of a JPEG as they are
 * decoded, one at a time. `row` is lent until take() returns. */
typedef struct pl_image_rows {
    void (*take)(void *context, int64_t y, const uint8_t *row);
    void *context;
} pl_image_rows;

/* What that needs instead of the pixels. */
uint64_t pl_image_rows_bytes(const pl_image *image);

/* pl_image_decode() of samples of bytes. Where it fails some rows may have been given. */
PL_MUST_CHECK int pl_image_decode_rows(const void *bytes, size_t n, const pl_image *image,
                                       const pl_image_rows *rows, void *room, void *work,
                                       pl_error *reterr);

/* Does it begin as a picture of a format that is known, and not decoded? */
bool pl_image_is_foreign(const void *bytes, size_t n);

const char *pl_image_format_name(pl_image_format format);

#endif
