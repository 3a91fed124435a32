/* SPDX-License-Identifier: Apache-2.0 */
/* Parses a JPEG's markers up to its first scan: its size, and the memory that libjpeg will need. */
#include <errno.h>
#include <inttypes.h>

#include "codec/image/image_private.h"

/* The memory that libjpeg needs for any picture: tables, the state of Huffman codes, its
 * objects. */
#define FIXED_BYTES (256 * PL_KIB)

/* The rows that it keeps of each component, in the size of the picture: at most 4 x 12 for
 * upsampling with context, and some more for colours. */
enum { ROWS_KEPT = 64 };

enum {
    SOF0 = 0xc0,
    DHT = 0xc4,
    JPG = 0xc8,
    DAC = 0xcc,
    SOF15 = 0xcf,
    RST0 = 0xd0,
    SOI = 0xd8,
    EOI = 0xd9,
    SOS = 0xda,
    TEM = 0x01,
    COMPONENTS_MAX = 4
};

typedef struct frame {
    int n_components;
    uint32_t height, width;
    uint8_t kind; /* the marker */
    uint8_t h[COMPONENTS_MAX], v[COMPONENTS_MAX];
} frame;

static int cut_off(size_t n, pl_error *reterr)
{
    pl_error_set(reterr, PL_ECORRUPT,
                 "the JPEG is cut off: it ends after %zu bytes, within its header", n);
    pl_error_at_byte(reterr, n);
    return PL_ECORRUPT;
}

static int contradicts(size_t at, const char *what, pl_error *reterr)
{
    pl_error_set(reterr, PL_ECORRUPT, "the JPEG is corrupt at byte %zu: %s", at, what);
    pl_error_at_byte(reterr, at);
    return PL_ECORRUPT;
}

static bool is_frame(uint8_t marker)
{
    return marker >= SOF0 && marker <= SOF15 && marker != DHT && marker != JPG && marker != DAC;
}

/* Accepts baseline, extended, progressive, and the last two with arithmetic coding. */
static bool is_decoded(uint8_t marker)
{
    unsigned kind = marker - SOF0;
    return kind <= 2 || kind == 9 || kind == 10;
}

static bool is_progressive(uint8_t marker)
{
    return marker == SOF0 + 2 || marker == SOF0 + 10;
}

/* `at` is the position of the marker's length. */
static int read_frame(const uint8_t *bytes, size_t at, size_t length, uint8_t marker, frame *ret,
                      pl_error *reterr)
{
    const uint8_t *p = bytes + at;
    if (length < 8)
        return contradicts(at, "its frame has no components", reterr);
    frame f = {.kind = marker,
               .height = pl_big_u16(p + 3),
               .width = pl_big_u16(p + 5),
               .n_components = p[7]};
    if (!is_decoded(marker))
        return pl_error_set(
            reterr, -ENOTSUP,
            "it is a JPEG of a rare kind (lossless or hierarchical, SOF%d): save it "
            "as a usual one",
            marker - SOF0);
    if (p[2] != 8)
        return pl_error_set(reterr, -ENOTSUP, "it is a JPEG with %u bits a sample: 8 are decoded",
                            p[2]);
    if (f.height == 0 || f.width == 0)
        return contradicts(at, "its height or width is 0", reterr);
    if (length < 8 + 3 * (size_t)f.n_components)
        return contradicts(at, "its frame is too short for its components", reterr);
    if (f.n_components != 1 && f.n_components != 3 && f.n_components != 4)
        return pl_error_set(reterr, -ENOTSUP,
                            "it is a JPEG with %d components: 1, 3 and 4 are "
                            "decoded",
                            f.n_components);
    for (int i = 0; i < f.n_components; i++) {
        f.h[i] = p[9 + 3 * i] >> 4;
        f.v[i] = p[9 + 3 * i] & 15;
        if (f.h[i] < 1 || f.h[i] > 4 || f.v[i] < 1 || f.v[i] > 4)
            return contradicts(at + 9 + 3 * (size_t)i, "a sampling factor is not 1 to 4", reterr);
    }
    *ret = f;
    return 0;
}

static int max_of(const uint8_t *values, int n)
{
    int max = 1;
    for (int i = 0; i < n; i++)
        max = values[i] > max ? values[i] : max;
    return max;
}

/* For a picture in several scans, libjpeg keeps all coefficients: 128 bytes for each block of 8 x 8
 * samples. */
static uint64_t coefficient_bytes(const frame *f)
{
    uint64_t h_max = (uint64_t)max_of(f->h, f->n_components), bytes = 0;
    uint64_t v_max = (uint64_t)max_of(f->v, f->n_components);
    uint64_t n_across = (f->width + 8 * h_max - 1) / (8 * h_max);
    uint64_t n_down = (f->height + 8 * v_max - 1) / (8 * v_max);
    for (int i = 0; i < f->n_components; i++)
        bytes += n_across * f->h[i] * n_down * f->v[i] * 128;
    return bytes + bytes / 8; /* row pointers, and the unused ends of its pools */
}

static void describe(const frame *f, bool several_scans, pl_image *image)
{
    image->height = f->height;
    image->width = f->width;
    image->file_channels = f->n_components == 1 ? 1 : 3;
    image->is_cmyk = f->n_components == 4;
    image->channels = image->channels ? image->channels : image->file_channels;
    uint64_t row_bytes = ((uint64_t)f->width + 64) * (uint64_t)f->n_components;
    image->work_bytes = row_bytes;
    image->library_bytes = FIXED_BYTES + row_bytes * ROWS_KEPT +
                           (several_scans || is_progressive(f->kind) ? coefficient_bytes(f) : 0);
}

/* Moves *at past the marker. 0: there is none. */
static uint8_t next_marker(const uint8_t *bytes, size_t n, size_t *at)
{
    while (*at < n && bytes[*at] == 0xff && *at + 1 < n && bytes[*at + 1] == 0xff)
        *at += 1; /* fill bytes */
    if (*at + 2 > n || bytes[*at] != 0xff)
        return 0;
    *at += 2;
    return bytes[*at - 1];
}

int pl_jpeg_header(const uint8_t *bytes, size_t n, pl_image *image, pl_error *reterr)
{
    frame f = {0};
    if (image->channels == 2 || image->channels == 4)
        return pl_error_set(reterr, -EINVAL, "%d channels of a JPEG, which has no alpha: 0, 1 or 3",
                            image->channels);
    for (size_t at = 2;;) {
        size_t begin = at;
        uint8_t marker = next_marker(bytes, n, &at);
        if (marker == 0 && at + 2 > n)
            return cut_off(n, reterr);
        if (marker == 0 || marker == EOI)
            return contradicts(begin, marker ? "it ends before its picture" : "no marker", reterr);
        if (marker == TEM || (marker >= RST0 && marker <= SOI))
            continue; /* markers without a length */
        size_t length = at + 2 > n ? 2 : pl_big_u16(bytes + at);
        if (length < 2)
            return contradicts(at, "a marker's length is less than 2", reterr);
        if (at + length > n || at + 2 > n)
            return cut_off(n, reterr);
        if (is_frame(marker) && f.n_components == 0) {
            int r = read_frame(bytes, at, length, marker, &f, reterr);
            if (r < 0)
                return r;
        }
        if (marker == SOS && f.n_components == 0)
            return contradicts(begin, "its scan begins before its frame", reterr);
        if (marker == SOS) {
            describe(&f, length < 3 || bytes[at + 2] < f.n_components, image);
            return 0;
        }
        at += length;
    }
}
