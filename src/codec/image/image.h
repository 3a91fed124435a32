/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes JPEG, PNG and BMP files: first the memory that the pixels need, from the header alone,
 * and then the pixels.
 *   channels  1 grey, 2 grey and alpha, 3 RGB, 4 RGB and alpha; 0: as the file has them
 *   sample    one channel of one pixel
 *   pixels    height x width x channels samples, row by row
 *   work      additional memory that the caller provides for decoding
 *   library   the most that the libraries allocate with malloc() meanwhile
 *
 * So a caller claims the memory before it is used: a small file that promises a huge picture costs
 * only the look at its header. Nothing in a file is trusted. A picture that a library warns of
 * counts as corrupt, unless the caller asks to recover: a partly made-up picture is worse than
 * none. EXIF's orientation is ignored, as in TensorFlow. Samples have TensorFlow's values: for
 * uint8, 16 bits are cut to their upper 8; for uint16, the 8 bits of a PNG are repeated (255 is
 * 65535), and those of other formats are shifted (255 is 65280); for float32, the largest is 1.
 *
 * Messages say what is wrong and at which byte; the caller adds the file. No globals; safe from any
 * thread. */
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
    pl_image_samples samples; /* as requested */
    int64_t height, width;    /* both at least 1 */
    int file_channels;        /* as stored in the file */
    bool is_cmyk;             /* a JPEG with four inks; its pixels are RGB all the same */
    int channels;             /* as requested; never 0 */
    bool recover;             /* set by the caller: makes up the missing part of a JPEG */
    uint64_t pixel_bytes;
    uint64_t work_bytes;
    uint64_t library_bytes;
} pl_image;

/* Parses the header; allocates nothing, and reads no more than it must. PL_EFORMAT: none of these
 * formats; PL_ECORRUPT: truncated, or inconsistent; -ENOTSUP: a kind that is not decoded; -EINVAL:
 * an impossible number of channels. */
PL_MUST_CHECK int pl_image_header(const void *bytes, size_t n, int channels, pl_image *ret_image,
                                  pl_error *reterr);

/* Does the same for samples other than bytes: pixels are aligned to the sample size. */
PL_MUST_CHECK int pl_image_header_of(const void *bytes, size_t n, int channels,
                                     pl_image_samples samples, pl_image *ret_image,
                                     pl_error *reterr);

/* Decodes the same bytes: `image` comes from pl_image_header(), `pixels` and `work` have the sizes
 * given there. PL_ECORRUPT, -ENOTSUP; -ENOMEM if the `library` memory cannot be allocated. */
PL_MUST_CHECK int pl_image_decode(const void *bytes, size_t n, const pl_image *image, void *pixels,
                                  void *work, pl_error *reterr);

/* Gives rows of bytes, from the first on, to callers that do not need the whole picture: those of a
 * JPEG one at a time, as they are decoded. `row` is valid until take() returns. */
typedef struct pl_image_rows {
    void (*take)(void *context, int64_t y, const uint8_t *row);
    void *context;
} pl_image_rows;

/* Returns the bytes that this needs instead of the pixels. */
uint64_t pl_image_rows_bytes(const pl_image *image);

/* Works as pl_image_decode(), for samples of bytes. On failure some rows may have been given. */
PL_MUST_CHECK int pl_image_decode_rows(const void *bytes, size_t n, const pl_image *image,
                                       const pl_image_rows *rows, void *room, void *work,
                                       pl_error *reterr);

/* Is it a picture of a known format that is not decoded? */
bool pl_image_is_foreign(const void *bytes, size_t n);

const char *pl_image_format_name(pl_image_format format);

#endif
