/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a text file to its end, for bench/text.py: text KIND PATH [COLUMNS]
 *   lines   its lines
 *   csv     its records; COLUMNS is a letter each: i l f d s
 *   tar     its files' data
 *   read    its bytes, in the same windows: what the others cannot go below
 * Says the CPU seconds, and what was found. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "data/reader/csv_reader.h"
#include "data/reader/tar_reader.h"
#include "data/reader/text_reader.h"

static pl_memory *memory;
static pl_error error;

static void must(int r)
{
    if (r >= 0)
        return;
    fprintf(stderr, "text: %s\n", error.message);
    exit(1);
}

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static long read_bytes(const char *path)
{
    pl_file_window window;
    long sum = 0;
    must(pl_file_window_init(&window, path, PL_PACKING_AUTO, 0, memory, &error));
    while (!window.is_last) {
        pl_file_window_take(&window, window.n);
        must(pl_file_window_more(&window, 1, &error));
        sum += (long)window.n;
    }
    pl_file_window_done(&window);
    return sum;
}

static long read_lines(const char *path)
{
    pl_text_reader reader;
    pl_string line;
    pl_text_place place;
    long sum = 0;
    int r;
    must(pl_text_reader_init(&reader, path, NULL, memory, &error));
    while ((r = pl_text_reader_next(&reader, &line, &place, &error)) > 0)
        sum += (long)line.n + 1;
    must(r);
    pl_text_reader_done(&reader);
    return sum;
}

static long read_csv(const char *path, const char *letters)
{
    static const pl_dtype dtypes[128] = {
        ['i'] = PL_I32, ['l'] = PL_I64, ['f'] = PL_F32, ['d'] = PL_F64, ['s'] = PL_STRING};
    pl_csv_column columns[64] = {0};
    pl_csv_value values[64];
    pl_csv_format format = {
        .delimiter = ',', .columns = columns, .n_columns = (int)strlen(letters)};
    pl_csv_reader reader;
    pl_text_place place;
    long sum = 0;
    int r;
    for (int i = 0; i < format.n_columns; i++)
        columns[i].dtype = dtypes[(unsigned char)letters[i]];
    must(pl_csv_reader_init(&reader, path, &format, &(pl_csv_options){.header = true}, memory,
                            &error));
    while ((r = pl_csv_reader_next(&reader, values, &place, &error)) > 0)
        sum++;
    must(r);
    pl_csv_reader_done(&reader);
    return sum;
}

static long read_tar(const char *path)
{
    static char data[1 << 20];
    pl_tar_reader reader;
    pl_tar_entry entry;
    long sum = 0;
    int r;
    must(pl_tar_reader_init(&reader, path, PL_PACKING_AUTO, 0, memory, &error));
    while ((r = pl_tar_reader_next(&reader, &entry, &error)) > 0)
        if (entry.is_file && entry.data_bytes <= sizeof data) {
            must(pl_tar_reader_read(&reader, data, &error));
            sum += (long)entry.data_bytes;
        }
    must(r);
    pl_tar_reader_done(&reader);
    return sum;
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    must(pl_memory_new(NULL, &memory, &error));
    double begin = cpu_s();
    long found = strcmp(argv[1], "csv") == 0     ? read_csv(argv[2], argv[3])
                 : strcmp(argv[1], "lines") == 0 ? read_lines(argv[2])
                 : strcmp(argv[1], "tar") == 0   ? read_tar(argv[2])
                                                 : read_bytes(argv[2]);
    printf("%.6f %ld\n", cpu_s() - begin, found);
    pl_memory_unref(memory);
    return 0;
}
