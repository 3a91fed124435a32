/* SPDX-License-Identifier: Apache-2.0 */
/* What is written is read back, what cannot be is refused, and no allocation that fails is lost. */
#include "faults.h"

#include <stdio.h>

#include "codec/image/image.h"
#include "plimsoll/picture.h"

enum { HEIGHT = 150, WIDTH = 130 }; /* of noise: several times the room that it begins with */

static uint8_t pixels[HEIGHT * WIDTH * 3];
static const pl_jpeg_options best = {
    .quality = 100, .full_colour = true, .x_density = 300, .y_density = 300};

static int begin(void **state)
{
    (void)state;
    srandom(1);
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)(random() >> 8);
    return 0;
}

static void read_back(const void *bytes, size_t n, int channels)
{
    static uint8_t found[sizeof pixels];
    pl_image image;
    pl_error error = {0};
    assert_int_equal(pl_image_header_of(bytes, n, channels, PL_IMAGE_U8, &image, &error), 0);
    assert_int_equal(image.height, HEIGHT);
    assert_int_equal(image.width, WIDTH);
    void *work = malloc(image.work_bytes + 1);
    assert_int_equal(pl_image_decode(bytes, n, &image, found, work, &error), 0);
    free(work);
    for (size_t i = 0; i < (size_t)HEIGHT * WIDTH * (size_t)channels; i++)
        assert_true(abs(found[i] - pixels[i]) <= 8);
}

static void what_is_written_is_read_back(void **state)
{
    (void)state;
    for (int channels = 1; channels <= 3; channels += 2)
        for (int i = 0; i < 4; i++) {
            pl_jpeg_options options = best;
            void *bytes = NULL;
            size_t n = 0;
            options.progressive = i & 1;
            options.small = i & 2;
            assert_int_equal(
                pl_jpeg_encode(pixels, HEIGHT, WIDTH, channels, &options, &bytes, &n, NULL), 0);
            read_back(bytes, n, channels);
            free(bytes);
        }
}

static void assert_refused(int64_t height, int64_t width, int channels, pl_jpeg_options options,
                           const char *why)
{
    pl_error error = {0};
    void *bytes = NULL;
    size_t n = 0;
    assert_int_equal(pl_jpeg_encode(pixels, height, width, channels, &options, &bytes, &n, &error),
                     -EINVAL);
    assert_null(bytes);
    assert_string_equal(error.message, why);
}

static void what_is_no_picture_or_option_is_refused(void **state)
{
    (void)state;
    pl_jpeg_options bad = best;
    assert_refused(0, 4, 1, best, "a JPEG has 1 to 65500 pixels a side, not 0 x 4");
    assert_refused(1, 65501, 1, best, "a JPEG has 1 to 65500 pixels a side, not 1 x 65501");
    assert_refused(4, 4, 2, best, "a JPEG has 1 or 3 channels, not 2");
    bad.quality = 101;
    assert_refused(4, 4, 1, bad, "a quality is 0 to 100, not 101");
    bad = best;
    bad.x_density = 0;
    assert_refused(4, 4, 1, bad, "densities are 1 to 65535, not 0 and 300");
    bad = best;
    bad.xmp = pixels;
    bad.xmp_bytes = 65505;
    assert_refused(4, 4, 1, bad, "XMP of 65505 bytes: at most 65504 fit");
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    fault_need_alloc();
    int n_failed = 0;
    bool hit = true;
    for (int number = 1; hit; number++) {
        void *bytes = NULL;
        size_t n = 0;
        pl_error error = {0};
        long live = fault_live;
        fault_alloc_begin(number);
        int r = pl_jpeg_encode(pixels, HEIGHT, WIDTH, 3, &best, &bytes, &n, &error);
        hit = fault_alloc_end();
        assert_int_equal(r, hit ? -ENOMEM : 0);
        assert_true(!hit || (error.message[0] && !bytes));
        n_failed += r < 0;
        if (r == 0)
            read_back(bytes, n, 3);
        free(bytes);
        assert_int_equal(fault_live, live);
    }
    assert_true(n_failed >= 3); /* the room, which grew twice */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_back),
        cmocka_unit_test(what_is_no_picture_or_option_is_refused),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests_name("jpeg_write", tests, begin, NULL);
}
