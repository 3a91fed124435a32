/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures to batches with nothing but the libraries: what bench/images.c is held against. Threads
 * take pictures in turn, decode them with libjpeg-turbo into a buffer of their own, and write them,
 * resized by two taps, or antialiased, to their place in the batch. Nothing is checked, claimed, or
 * ahead of the batch.
 *   images_bare ANTIALIAS THREADS FILE...
 * Prints pictures, seconds, CPU seconds. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jpeglib.h>

enum { SIZE = 256, BATCH = 32, FILE_BYTES = 1 << 22, PIXEL_BYTES = 1 << 24 };

static char **paths;
static bool antialias;
static int n_paths;
static _Atomic int next_path;
static float *batches[2]; /* that are filled in turn: more than one may be under way */

static double now(clockid_t clock)
{
    struct timespec at;
    clock_gettime(clock, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

typedef struct tap {
    int lower, upper;
    float lerp;
} tap;

static void set_taps(int n_in, tap *taps)
{
    for (int i = 0; i < SIZE; i++) {
        float at = ((float)i + 0.5f) * ((float)n_in / SIZE) - 0.5f;
        int lower = at < 0 ? 0 : (int)at;
        taps[i] =
            (tap){lower, lower + 1 < n_in ? lower + 1 : n_in - 1, at < 0 ? 0 : at - (float)lower};
    }
}

static void widen(const unsigned char *row, const tap *taps, float *out)
{
    for (int x = 0; x < SIZE; x++) {
        const unsigned char *a = row + taps[x].lower * 3, *b = row + taps[x].upper * 3;
        for (int c = 0; c < 3; c++)
            out[x * 3 + c] = a[c] + (float)(b[c] - a[c]) * taps[x].lerp;
    }
}

static void resize(const unsigned char *pixels, int height, int width, float *out)
{
    tap across[SIZE], down[SIZE];
    float rows[2][SIZE * 3], *top = rows[0], *bottom = rows[1];
    int is[2] = {-1, -1};
    set_taps(width, across);
    set_taps(height, down);
    for (int y = 0; y < SIZE; y++) {
        if (is[1] == down[y].lower) {
            float *swap = top;
            top = bottom, bottom = swap;
            is[0] = is[1], is[1] = -1;
        }
        if (is[0] != down[y].lower)
            widen(pixels + (size_t)(is[0] = down[y].lower) * (size_t)width * 3, across, top);
        if (is[1] != down[y].upper)
            widen(pixels + (size_t)(is[1] = down[y].upper) * (size_t)width * 3, across, bottom);
        for (int i = 0; i < SIZE * 3; i++)
            out[y * SIZE * 3 + i] = top[i] + (bottom[i] - top[i]) * down[y].lerp;
    }
}

/* As above, of all pixels that one of the result covers, by their nearness. */
typedef struct span {
    int begin, n;
    float weights[64];
} span;

static void set_spans(int n_in, span *spans)
{
    float scale = (float)n_in / SIZE, width = scale > 1 ? scale : 1;
    for (int i = 0; i < SIZE; i++) {
        float at = ((float)i + 0.5f) * scale - 0.5f, sum = 0;
        int begin = (int)ceilf(at - width), end = (int)floorf(at + width) + 1;
        begin = begin < 0 ? 0 : begin;
        end = end > n_in ? n_in : end;
        spans[i] = (span){begin, end - begin, {0}};
        for (int k = begin; k < end; k++)
            sum += spans[i].weights[k - begin] = 1 - fabsf((float)k - at) / width;
        for (int k = 0; k < spans[i].n; k++)
            spans[i].weights[k] /= sum;
    }
}

static void resize_antialiased(const unsigned char *pixels, int height, int width, float *out,
                               float *wide)
{
    span across[SIZE], down[SIZE];
    set_spans(width, across);
    set_spans(height, down);
    for (int y = 0; y < height; y++) {
        const unsigned char *row = pixels + (size_t)y * (size_t)width * 3;
        float *to = wide + (size_t)y * SIZE * 3;
        for (int x = 0; x < SIZE; x++) {
            const unsigned char *at = row + across[x].begin * 3;
            float sums[3] = {0};
            for (int k = 0; k < across[x].n; k++)
                for (int c = 0; c < 3; c++)
                    sums[c] += at[k * 3 + c] * across[x].weights[k];
            memcpy(to + x * 3, sums, sizeof sums);
        }
    }
    for (int y = 0; y < SIZE; y++) {
        float *to = out + (size_t)y * SIZE * 3;
        memset(to, 0, sizeof *to * SIZE * 3);
        for (int k = 0; k < down[y].n; k++) {
            const float *from = wide + (size_t)(down[y].begin + k) * SIZE * 3;
            for (int i = 0; i < SIZE * 3; i++)
                to[i] += from[i] * down[y].weights[k];
        }
    }
}

static int decode(const unsigned char *file, size_t n, unsigned char *pixels, int *ret_width)
{
    struct jpeg_decompress_struct info;
    struct jpeg_error_mgr errors;
    info.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&info);
    jpeg_mem_src(&info, file, n);
    jpeg_read_header(&info, TRUE);
    info.out_color_space = JCS_RGB;
    jpeg_start_decompress(&info);
    int height = (int)info.output_height;
    *ret_width = (int)info.output_width;
    while (info.output_scanline < info.output_height) {
        unsigned char *row = pixels + (size_t)info.output_scanline * info.output_width * 3;
        jpeg_read_scanlines(&info, &row, 1);
    }
    jpeg_finish_decompress(&info);
    jpeg_destroy_decompress(&info);
    return height;
}

static void *work(void *context)
{
    unsigned char *file = malloc(FILE_BYTES), *pixels = malloc(PIXEL_BYTES);
    float *wide = malloc(PIXEL_BYTES);
    (void)context;
    for (int i; (i = atomic_fetch_add(&next_path, 1)) < n_paths;) {
        FILE *from = fopen(paths[i], "rb");
        size_t n = fread(file, 1, FILE_BYTES, from);
        fclose(from);
        int width, height = decode(file, n, pixels, &width);
        float *to = batches[i / BATCH % 2] + (size_t)(i % BATCH) * SIZE * SIZE * 3;
        if (antialias)
            resize_antialiased(pixels, height, width, to, wide);
        else
            resize(pixels, height, width, to);
    }
    free(file);
    free(pixels);
    free(wide);
    return NULL;
}

int main(int argc, char **argv)
{
    antialias = atoi(argv[1]);
    int n_threads = atoi(argv[2]);
    pthread_t threads[64];
    paths = argv + 3;
    n_paths = argc - 3;
    for (int i = 0; i < 2; i++)
        batches[i] = malloc(sizeof(float) * BATCH * SIZE * SIZE * 3);
    double begin = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 0; i < n_threads; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < n_threads; i++)
        pthread_join(threads[i], NULL);
    printf("%d %.6f %.6f\n", n_paths, now(CLOCK_MONOTONIC) - begin,
           now(CLOCK_PROCESS_CPUTIME_ID) - cpu);
    return 0;
}
