/* SPDX-License-Identifier: Apache-2.0 */
/* What `plimsoll check` is held against: the same files, read by as many threads, and nothing else.
 *   check_bare files THREADS     opens, reads and closes each
 *   check_bare jpeg THREADS      decodes each with libjpeg-turbo
 *   check_bare records THREADS   reads each with the pipeline's reader of records
 * Paths come from stdin, a line each. Prints files, seconds, CPU seconds.
 *   check_bare make N BYTES >FILE   makes a TFRecord file of N Examples of so many bytes */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <jpeglib.h>

#include "codec/record/example.h"
#include "codec/record/tfrecord.h"
#include "data/reader/record_reader.h"

enum { FILE_BYTES = 1 << 22, PIXEL_BYTES = 1 << 24 };

static char **paths;
static size_t n_paths;
static _Atomic size_t next_path;
static pl_memory *memory;

static double now(clockid_t clock)
{
    struct timespec at;
    clock_gettime(clock, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static void fail(const char *what)
{
    fprintf(stderr, "check_bare: %s\n", what);
    exit(1);
}

static size_t read_file(const char *path, unsigned char *bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, bytes, FILE_BYTES);
    if (n < 0)
        fail(path);
    close(fd);
    return (size_t)n;
}

static void *read_files(void *unused)
{
    unsigned char *bytes = malloc(FILE_BYTES);
    for (size_t i; (i = next_path++) < n_paths;)
        read_file(paths[i], bytes);
    free(bytes);
    return unused;
}

static void *decode_files(void *unused)
{
    unsigned char *bytes = malloc(FILE_BYTES), *pixels = malloc(PIXEL_BYTES);
    struct jpeg_error_mgr errors;
    struct jpeg_decompress_struct jpeg = {.err = jpeg_std_error(&errors)};
    jpeg_create_decompress(&jpeg);
    for (size_t i; (i = next_path++) < n_paths;) {
        jpeg_mem_src(&jpeg, bytes, read_file(paths[i], bytes));
        jpeg_read_header(&jpeg, TRUE);
        jpeg_start_decompress(&jpeg);
        while (jpeg.output_scanline < jpeg.output_height) {
            JSAMPROW row = pixels + (size_t)jpeg.output_scanline * jpeg.output_width * 3;
            jpeg_read_scanlines(&jpeg, &row, 1);
        }
        jpeg_finish_decompress(&jpeg);
    }
    jpeg_destroy_decompress(&jpeg);
    free(bytes);
    free(pixels);
    return unused;
}

static void *read_records(void *unused)
{
    for (size_t i; (i = next_path++) < n_paths;) {
        pl_record_reader *reader;
        pl_record record;
        pl_error error = {0};
        if (pl_record_reader_new(paths[i], PL_PACKING_NONE, 0, memory, &reader, &error) < 0)
            fail(error.message);
        int r;
        while ((r = pl_record_reader_next(reader, &record, &error)) > 0)
            ;
        if (r < 0)
            fail(error.message);
        pl_record_reader_free(reader);
    }
    return unused;
}

static void read_paths(void)
{
    char *line = NULL;
    size_t room = 0, n_room = 0;
    for (ssize_t n; (n = getline(&line, &room, stdin)) > 0;) {
        line[n - 1] = '\0';
        if (n_paths == n_room)
            paths = realloc(paths, (n_room = 2 * n_room + 64) * sizeof *paths);
        paths[n_paths++] = strdup(line);
    }
    free(line);
}

static void make(int n, size_t image_bytes)
{
    char *image = calloc(1, image_bytes);
    uint8_t *example = malloc(image_bytes + 256), *record = malloc(image_bytes + 512);
    pl_string text = {image, image_bytes};
    pl_feature_values features[2] = {
        {.name = {"image", 5}, .kind = PL_FEATURE_BYTES, .n_values = 1, .bytes = &text},
        {.name = {"label", 5}, .kind = PL_FEATURE_INT64S, .n_values = 1},
    };
    pl_example_values values = {.n_features = 2, .features = features};
    for (int64_t i = 0; i < n; i++) {
        for (size_t at = 0; at < image_bytes; at++)
            image[at] = (char)((at + (size_t)i) * 2654435761u >> 13);
        features[1].int64s = &i;
        size_t n_example = (size_t)(pl_example_write(&values, example) - example);
        fwrite(record, 1, (size_t)(pl_tfrecord_write(example, n_example, record) - record), stdout);
    }
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "make") == 0) {
        make(atoi(argv[2]), (size_t)atoll(argv[3]));
        return 0;
    }
    if (argc != 3)
        fail("usage: check_bare files|jpeg|records THREADS <PATHS");
    void *(*work)(void *) = *argv[1] == 'f'   ? read_files
                            : *argv[1] == 'j' ? decode_files
                                              : read_records;
    int n = atoi(argv[2]);
    pthread_t threads[64];
    pl_error error = {0};
    if (pl_memory_new(NULL, &memory, &error) < 0)
        fail(error.message);
    read_paths();
    double begin = now(CLOCK_MONOTONIC), begin_cpu = now(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 1; i < n; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    work(NULL);
    for (int i = 1; i < n; i++)
        pthread_join(threads[i], NULL);
    printf("%zu %.6f %.6f\n", n_paths, now(CLOCK_MONOTONIC) - begin,
           now(CLOCK_PROCESS_CPUTIME_ID) - begin_cpu);
    return 0;
}
