/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes images, for tests/kernels. One command a line on stdin, one answer a line on stdout:
 * "ok ..." or "refused CODE why".
 *   decode CHANNELS PATH OUT    says height, width, channels, bytes of work and of libraries; OUT
 *                               has the pixels
 *   cut CHANNELS PATH           decodes the file cut off at every byte: says how many of these were
 *                               refused, and how long the first is that was not
 *   flip CHANNELS PATH N        changes one to eight bits in N ways: says how many were refused
 *   time CHANNELS PATH N        decodes it N times: says the milliseconds of the fastest */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "codec/image/image.h"

static char *words[8];
static pl_error error;

static uint8_t *read_all(const char *path, size_t *ret_n)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        exit(1);
    }
    fseek(file, 0, SEEK_END);
    *ret_n = (size_t)ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(*ret_n + 1);
    if (fread(bytes, 1, *ret_n, file) != *ret_n)
        exit(1);
    fclose(file);
    return bytes;
}

/* From blocks that have not a byte too many, so that a sanitizer sees the first behind them. */
static int decode(const uint8_t *bytes, size_t n, int channels, pl_image *image, uint8_t **pixels)
{
    uint8_t *own = malloc(n ? n : 1);
    memcpy(own, bytes, n);
    error = (pl_error){0};
    *pixels = NULL;
    int r = pl_image_header(own, n, channels, image, &error);
    if (r == 0 && image->pixel_bytes + image->work_bytes > (64u << 20))
        r = pl_error_set(&error, PL_EBUDGET, "too large for this tool");
    if (r == 0) {
        uint8_t *work = malloc(image->work_bytes);
        *pixels = malloc(image->pixel_bytes);
        r = pl_image_decode(own, n, image, *pixels, work, &error);
        free(work);
    }
    free(own);
    if (r < 0 && (error.code != r || error.message[0] == '\0')) {
        fprintf(stderr, "image_tool: a failure without its message\n");
        exit(1);
    }
    return r;
}

static int do_decode(const uint8_t *bytes, size_t n, int channels)
{
    pl_image image;
    uint8_t *pixels;
    int r = decode(bytes, n, channels, &image, &pixels);
    if (r == 0) {
        FILE *out = fopen(words[3], "wb");
        fwrite(pixels, 1, image.pixel_bytes, out);
        fclose(out);
        printf("ok %" PRId64 " %" PRId64 " %d %" PRIu64 " %" PRIu64, image.height, image.width,
               image.channels, image.work_bytes, image.library_bytes);
    }
    free(pixels);
    return r;
}

static void do_cut(const uint8_t *bytes, size_t n, int channels)
{
    pl_image image;
    uint8_t *pixels;
    size_t n_refused = 0, first_taken = n;
    for (size_t length = 0; length < n; length++) {
        if (decode(bytes, length, channels, &image, &pixels) < 0)
            n_refused++;
        else if (first_taken == n)
            first_taken = length;
        free(pixels);
    }
    printf("ok %zu %zu", n_refused, first_taken);
}

static void do_flip(uint8_t *bytes, size_t n, int channels, int n_rounds)
{
    int n_refused = 0;
    uint8_t *copy = malloc(n);
    srandom(7);
    for (int i = 0; i < n_rounds; i++) {
        pl_image image;
        uint8_t *pixels;
        memcpy(copy, bytes, n);
        for (long k = random() % 8; k >= 0; k--)
            copy[(size_t)random() % n] ^= (uint8_t)(1 << random() % 8);
        n_refused += decode(copy, n, channels, &image, &pixels) < 0;
        free(pixels);
    }
    free(copy);
    printf("ok %d", n_refused);
}

static void do_time(const uint8_t *bytes, size_t n, int channels, int n_rounds)
{
    pl_image image;
    double best = 1e9;
    if (pl_image_header(bytes, n, channels, &image, &error) < 0)
        exit(1);
    uint8_t *pixels = malloc(image.pixel_bytes), *work = malloc(image.work_bytes);
    for (int i = 0; i < n_rounds; i++) {
        struct timespec begin, end;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        if (pl_image_decode(bytes, n, &image, pixels, work, &error) < 0)
            exit(1);
        clock_gettime(CLOCK_MONOTONIC, &end);
        double ms =
            (double)(end.tv_sec - begin.tv_sec) * 1e3 + (double)(end.tv_nsec - begin.tv_nsec) / 1e6;
        best = ms < best ? ms : best;
    }
    free(pixels);
    free(work);
    printf("ok %.3f", best);
}

int main(void)
{
    static char line[4096];
    while (fgets(line, sizeof line, stdin)) {
        int n_words = 0, r = 0;
        size_t n;
        for (char *next = strtok(line, " \n"); next && n_words < 8; next = strtok(NULL, " \n"))
            words[n_words++] = next;
        uint8_t *bytes = read_all(words[2], &n);
        int channels = atoi(words[1]);
        if (strcmp(words[0], "decode") == 0)
            r = do_decode(bytes, n, channels);
        else if (strcmp(words[0], "cut") == 0)
            do_cut(bytes, n, channels);
        else if (strcmp(words[0], "flip") == 0)
            do_flip(bytes, n, channels, atoi(words[3]));
        else
            do_time(bytes, n, channels, atoi(words[3]));
        if (r < 0)
            printf("refused %s %s", pl_error_name(r), error.message);
        putchar('\n');
        fflush(stdout);
        free(bytes);
    }
    return 0;
}
