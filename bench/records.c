/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a TFRecord file once, in one of several ways, and says how many records and bytes of data
 * there were, and the seconds of processor time:
 *   reader PATH WINDOW   the reader of src/data, with both sums of each record
 *   bare PATH WINDOW     what a program written for nothing else does: read a window, step from
 *                        length to length, look at no sum
 *   sums PATH WINDOW     the same, and then the sums: the least that the reader could do
 *   table PATH WINDOW    that by table, without the processor's instruction
 *   zlib PATH WINDOW     unpacks a gzip file with zlib, and looks at nothing
 *   unpack PATH WINDOW   the same with codec/archive/inflate.h
 *   make PATH 0          makes such a file: of stdin, a MiB is data, and what follows the lengths
 * of its records, 4 bytes each */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "codec/archive/inflate.h"
#include "codec/record/crc32c.h"
#include "codec/record/tfrecord.h"
#include "data/reader/byte_stream.h"
#include "data/reader/record_reader.h"

static uint64_t n_records, n_bytes;

typedef uint32_t sum(uint32_t crc, const void *bytes, size_t n);

static void fail(const char *what)
{
    fprintf(stderr, "records: %s\n", what);
    exit(1);
}

static pl_memory *new_memory(void)
{
    pl_memory *memory;
    pl_error error = {0};
    if (pl_memory_new(NULL, &memory, &error) < 0)
        fail(error.message);
    return memory;
}

static void read_with_reader(const char *path, size_t window_bytes)
{
    pl_memory *memory = new_memory();
    pl_record_reader *reader;
    pl_record record;
    pl_error error = {0};
    int r = pl_record_reader_new(path, PL_PACKING_AUTO, window_bytes, memory, &reader, &error);
    if (r < 0)
        fail(error.message);
    while ((r = pl_record_reader_next(reader, &record, &error)) > 0) {
        n_records++;
        n_bytes += record.data_bytes;
    }
    if (r < 0)
        fail(error.message);
    pl_record_reader_free(reader);
    pl_memory_unref(memory);
}

static void read_bare(const char *path, size_t window_bytes, sum *sum_of)
{
    int fd = open(path, O_RDONLY);
    uint8_t *window = malloc(window_bytes);
    size_t there = 0;
    if (fd < 0 || !window)
        fail("cannot open the file");
    for (;;) {
        ssize_t got = read(fd, window + there, window_bytes - there);
        if (got <= 0)
            break;
        there += (size_t)got;
        size_t at = 0;
        while (there - at >= 16) {
            uint64_t n;
            uint32_t stored;
            memcpy(&n, window + at, 8);
            if (n > there - at - 16)
                break;
            memcpy(&stored, window + at + 12 + n, 4);
            if (sum_of && (pl_crc32c_mask(sum_of(0, window + at + 12, n)) != stored))
                fail("a sum is another");
            n_records++;
            n_bytes += n;
            at += n + 16;
        }
        memmove(window, window + at, there - at);
        there -= at;
    }
    free(window);
    close(fd);
}

static void unpack(const char *path, size_t window_bytes)
{
    pl_memory *memory = new_memory();
    pl_byte_stream stream;
    pl_error error = {0};
    uint8_t *window = malloc(window_bytes);
    size_t n = 1;
    int r = pl_byte_stream_init(&stream, path, memory, &error);
    if (r == 0)
        r = pl_byte_stream_unpack(&stream, PL_PACKING_GZIP, &error);
    while (r == 0 && n > 0)
        if ((r = pl_byte_stream_read(&stream, window, window_bytes, &n, &error)) == 0)
            n_bytes += n;
    if (r < 0)
        fail(error.message);
    pl_byte_stream_done(&stream);
    pl_memory_unref(memory);
    free(window);
}

static void unpack_with_zlib(const char *path, size_t window_bytes)
{
    gzFile file = gzopen(path, "rb");
    uint8_t *window = malloc(window_bytes);
    int n;
    if (!file || !window)
        fail("cannot open the file");
    gzbuffer(file, 65536);
    while ((n = gzread(file, window, (unsigned)window_bytes)) > 0)
        n_bytes += (uint64_t)n;
    gzclose(file);
    free(window);
}

static void make(const char *path)
{
    static uint8_t data[PL_MIB], record[PL_MIB + PL_TFRECORD_FRAME_BYTES];
    static char written[4 * PL_MIB];
    FILE *file = fopen(path, "wb");
    uint32_t n;
    if (!file || fread(data, 1, sizeof data, stdin) != sizeof data)
        fail("cannot make the file");
    /* Large writes make large pages in the cache, as reading ahead does; from many small ones it is
     * read at half the speed. */
    setvbuf(file, written, _IOFBF, sizeof written);
    while (fread(&n, sizeof n, 1, stdin) == 1) {
        uint64_t at = n_bytes % (PL_MIB - n);
        size_t n_record = (size_t)(pl_tfrecord_write(data + at, n, record) - record);
        if (fwrite(record, 1, n_record, file) != n_record)
            fail("cannot write the file");
        n_bytes += n;
        n_records++;
    }
    fclose(file);
}

static double cpu_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        fail("usage: records MODE PATH WINDOW");
    const char *mode = argv[1], *path = argv[2];
    size_t window_bytes = strtoull(argv[3], NULL, 10);
    double begin = cpu_s();
    if (strcmp(mode, "reader") == 0)
        read_with_reader(path, window_bytes);
    else if (strcmp(mode, "bare") == 0)
        read_bare(path, window_bytes, NULL);
    else if (strcmp(mode, "sums") == 0)
        read_bare(path, window_bytes, pl_crc32c);
    else if (strcmp(mode, "table") == 0)
        read_bare(path, window_bytes, pl_crc32c_by_table);
    else if (strcmp(mode, "unpack") == 0)
        unpack(path, window_bytes);
    else if (strcmp(mode, "zlib") == 0)
        unpack_with_zlib(path, window_bytes);
    else if (strcmp(mode, "make") == 0)
        make(path);
    else
        fail("no such mode");
    printf("%" PRIu64 " %" PRIu64 " %.6f\n", n_records, n_bytes, cpu_s() - begin);
    return 0;
}
