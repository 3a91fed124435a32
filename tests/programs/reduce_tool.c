/* SPDX-License-Identifier: Apache-2.0 */
/* Runs kernels on arrays in .npy files, for tests/kernels: one command per line of stdin, and
 * an answer for each on stdout: "ok", but where something else is
 * said. Arrays have two axes where nothing else is said.
 *   isa plain|avx2
 *   reduce OP rows|columns TILE_ROWS TILE_COLUMNS DDOF IN OUT     in tiles, by two sets of partials
 *   means rows|columns IN OUT                                     those of a variance
 *   scan rows|columns EXCLUSIVE REVERSE TILE IN OUT
 *   softmax LOG whole|rows|columns TILE IN OUT
 *   sort|argsort DESCENDING IN OUT
 *   top_k DESCENDING K IN VALUES INDICES
 *   random uniform|normal|truncated DTYPE SEED STREAM FIRST N TILE OUT
 *   integers DTYPE LOW RANGE SEED STREAM FIRST N TILE OUT
 *   range DTYPE VALUES FIRST N TILE OUT                           VALUES: a file of start and step
 *   axis tile|edge|reflect|symmetric BEFORE N IN OUT
 *   gather INDICES IN OUT                                         or "out of range AT" */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codec/npy/npy.h"
#include "kernels/elementwise/random.h"
#include "kernels/isa_table.h"
#include "kernels/move/gather.h"
#include "kernels/reduce/reduce.h"
#include "kernels/row/scan.h"
#include "kernels/row/softmax.h"
#include "kernels/row/sort.h"
#include "tensor/dtype.h"

typedef struct array {
    pl_dtype dtype;
    int64_t rows, columns, item_bytes;
    char *data;
} array;

static char *words[16];
static const char *answer;
static char answer_text[64];

static void fail(const char *what, const char *on)
{
    fprintf(stderr, "reduce_tool: %s: '%s'\n", what, on);
    exit(1);
}

static void *allocate(int64_t bytes)
{
    void *data = malloc(bytes > 0 ? (size_t)bytes : 1);
    if (data == NULL)
        fail("no memory", "");
    return data;
}

static array array_new(pl_dtype dtype, int64_t rows, int64_t columns)
{
    int64_t item_bytes = pl_dtype_info_of(dtype)->item_bytes;
    return (array){dtype, rows, columns, item_bytes, allocate(rows * columns * item_bytes)};
}

static array load(const char *path)
{
    pl_npy npy;
    pl_error error = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || pl_npy_read(fd, path, &npy, &error) < 0)
        fail("cannot read", path);
    int64_t rows = npy.shape.rank == 2 ? npy.shape.dims[0] : 1;
    array in = array_new(npy.dtype, rows, npy.shape.dims[npy.shape.rank - 1]);
    if (pread(fd, in.data, npy.data_bytes, (off_t)npy.data_offset) != (ssize_t)npy.data_bytes)
        fail("cannot read the data of", path);
    close(fd);
    return in;
}

static void store(const char *path, array out)
{
    char header[PL_NPY_HEADER_BYTES];
    pl_error error = {0};
    pl_shape shape = {.rank = 2, .dims = {out.rows, out.columns}};
    int n = pl_npy_format(out.dtype, 0, &shape, header, &error);
    FILE *file = fopen(path, "we");
    size_t bytes = (size_t)(out.rows * out.columns * out.item_bytes);
    if (n < 0 || file == NULL || fwrite(header, 1, (size_t)n, file) != (size_t)n ||
        fwrite(out.data, 1, bytes, file) != bytes || fclose(file) != 0)
        fail("cannot write", path);
    free(out.data);
}

static int64_t number(int i)
{
    return strtoll(words[i], NULL, 10);
}

static int choice(int i, const char *const *names)
{
    for (int k = 0; names[k]; k++)
        if (strcmp(words[i], names[k]) == 0)
            return k;
    fail("not known", words[i]);
    return -1;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static const char *const ways[] = {"rows", "columns", NULL};
static const char *const ops[] = {"sum", "mean",   "prod",   "max",       "min",      "any",
                                  "all", "argmax", "argmin", "logsumexp", "variance", NULL};

static pl_partials partials_new(pl_reduce reduce, int64_t n)
{
    pl_partials partials = {allocate(n * (int64_t)pl_reduce_bytes(reduce)), n};
    pl_reduce_init(reduce, partials, 0, n);
    return partials;
}

static void reduce_tile(pl_reduce reduce, bool columns, const array *in, int64_t row,
                        int64_t column, int64_t rows, int64_t n_columns, pl_partials partials)
{
    pl_reduce_tile tile = {.data = in->data + (row * in->columns + column) * in->item_bytes,
                           .row_bytes = in->columns * in->item_bytes,
                           .n_rows = rows,
                           .n_columns = n_columns,
                           .first_index = columns ? row : column,
                           .index_step = 1};
    if (columns)
        pl_reduce_columns(reduce, &tile, partials, column);
    else
        pl_reduce_rows(reduce, &tile, partials, row);
}

/* The tiles from the last to the first, in turn to two sets of partials: nothing may depend on it.
 */
static pl_partials reduce_tiles(pl_reduce reduce, bool columns, const array *in, int64_t tile_rows,
                                int64_t tile_columns)
{
    int64_t n = columns ? in->columns : in->rows, turn = 0;
    pl_partials sets[2] = {partials_new(reduce, n), partials_new(reduce, n)};
    for (int64_t row = (in->rows - 1) / tile_rows * tile_rows; row >= 0; row -= tile_rows)
        for (int64_t column = (in->columns - 1) / tile_columns * tile_columns; column >= 0;
             column -= tile_columns)
            reduce_tile(reduce, columns, in, row, column, least(tile_rows, in->rows - row),
                        least(tile_columns, in->columns - column), sets[turn++ % 2]);
    pl_reduce_merge(reduce, sets[0], 0, sets[1], 0, n);
    free(sets[1].data);
    return sets[0];
}

static void do_reduce(void)
{
    array in = load(words[6]);
    pl_reduce reduce = {(pl_reduce_op)choice(1, ops), in.dtype};
    bool columns = choice(2, ways);
    pl_partials partials = reduce_tiles(reduce, columns, &in, number(3), number(4));
    array out = array_new(pl_reduce_result(reduce), 1, partials.n);
    pl_reduce_finish(reduce, partials, 0, partials.n, (double)number(5), out.data);
    store(words[7], out);
    free(partials.data);
    free(in.data);
}

static void do_means(void)
{
    array in = load(words[2]);
    pl_reduce reduce = {PL_REDUCE_VARIANCE, in.dtype};
    pl_partials partials = reduce_tiles(reduce, choice(1, ways), &in, 7, 5);
    array out = array_new(pl_reduce_result(reduce), 1, partials.n);
    pl_reduce_finish_means(reduce, partials, 0, partials.n, out.data);
    store(words[3], out);
    free(partials.data);
    free(in.data);
}

static void do_scan(void)
{
    array in = load(words[5]);
    bool columns = choice(1, ways);
    pl_scan scan = {in.dtype, number(2), number(3)};
    array out = array_new(pl_scan_result(in.dtype), in.rows, in.columns);
    int64_t length = columns ? in.rows : in.columns, step = number(4), n = length / step + 1;
    void *carry = calloc((size_t)(in.rows + in.columns + 1), 8);
    for (int64_t k = 0; k < n; k++) {
        int64_t from = (scan.reverse ? n - 1 - k : k) * step, size = least(step, length - from);
        int64_t at = columns ? from * in.columns : from;
        pl_scan_tile tile = {in.data + at * in.item_bytes, out.data + at * out.item_bytes,
                             in.columns * in.item_bytes,   in.columns * out.item_bytes,
                             columns ? size : in.rows,     columns ? in.columns : size};
        (columns ? pl_scan_columns : pl_scan_rows)(scan, &tile, carry);
    }
    free(carry);
    store(words[6], out);
    free(in.data);
}

static void do_softmax(void)
{
    static const char *const how[] = {"whole", "rows", "columns", NULL};
    array in = load(words[4]), out = array_new(in.dtype, in.rows, in.columns);
    pl_reduce reduce = {PL_REDUCE_LOGSUMEXP, in.dtype};
    bool log = number(1), columns = choice(2, how) == 2;
    int64_t step = number(3), row_bytes = in.columns * in.item_bytes;
    pl_partials partials = reduce_tiles(reduce, columns, &in, step, step);
    pl_softmax_tile tile = {in.data, out.data, row_bytes, row_bytes, in.rows, in.columns};
    if (choice(2, how) == 0)
        pl_softmax_rows(in.dtype, log, &tile);
    else
        (columns ? pl_softmax_columns_by : pl_softmax_rows_by)(in.dtype, log, &tile, partials, 0);
    store(words[5], out);
    free(partials.data);
    free(in.data);
}

static void do_sort(void)
{
    array in = load(words[2]);
    bool places = strcmp(words[0], "argsort") == 0;
    array out = array_new(places ? PL_I64 : in.dtype, in.rows, in.columns);
    pl_sort sort = {.dtype = in.dtype, .descending = number(1)};
    int64_t n = in.columns;
    void *scratch = allocate((int64_t)(places ? pl_argsort_scratch_bytes(in.dtype, n)
                                              : pl_sort_scratch_bytes(in.dtype, n)));
    for (int64_t r = 0; r < in.rows; r++) {
        const void *from = in.data + r * n * in.item_bytes;
        void *to = out.data + r * n * out.item_bytes;
        if (places)
            pl_argsort_row(sort, from, n, to, scratch);
        else
            pl_sort_row(sort, from, n, to, scratch);
    }
    free(scratch);
    store(words[3], out);
    free(in.data);
}

static void do_top_k(void)
{
    int64_t k = number(2);
    array in = load(words[3]);
    array values = array_new(in.dtype, in.rows, k), places = array_new(PL_I64, in.rows, k);
    void *scratch = allocate((int64_t)pl_top_k_scratch_bytes(in.dtype, in.columns, k));
    for (int64_t r = 0; r < in.rows; r++)
        pl_top_k_row((pl_sort){.dtype = in.dtype, .descending = number(1)},
                     in.data + r * in.columns * in.item_bytes, in.columns, k, 0,
                     values.data + r * k * in.item_bytes, (int64_t *)places.data + r * k, scratch);
    free(scratch);
    store(words[4], values);
    store(words[5], places);
    free(in.data);
}

static void do_random(void)
{
    static const char *const distributions[] = {"uniform", "normal", "truncated", NULL};
    pl_distribution distribution = (pl_distribution)choice(1, distributions);
    pl_random random = {strtoull(words[3], NULL, 10), strtoull(words[4], NULL, 10)};
    uint64_t first = strtoull(words[5], NULL, 10);
    array out = array_new(pl_dtype_by_name(words[2]), 1, number(6));
    for (int64_t from = 0, step = number(7); from < out.columns; from += step)
        pl_random_floats(random, distribution, out.dtype, first + (uint64_t)from,
                         least(step, out.columns - from), out.data + from * out.item_bytes);
    store(words[8], out);
}

static void do_integers(void)
{
    pl_random random = {strtoull(words[4], NULL, 10), strtoull(words[5], NULL, 10)};
    uint64_t low = (uint64_t)number(2), range = strtoull(words[3], NULL, 10);
    uint64_t first = strtoull(words[6], NULL, 10);
    array out = array_new(pl_dtype_by_name(words[1]), 1, number(7));
    for (int64_t from = 0, step = number(8); from < out.columns; from += step)
        pl_random_integers(random, out.dtype, low, range, first + (uint64_t)from,
                           least(step, out.columns - from), out.data + from * out.item_bytes);
    store(words[9], out);
}

static void do_range(void)
{
    array values = load(words[2]), out = array_new(values.dtype, 1, number(4));
    for (int64_t from = 0, step = number(5); from < out.columns; from += step)
        pl_range(out.dtype, values.data, values.data + values.item_bytes, number(3) + from,
                 least(step, out.columns - from), out.data + from * out.item_bytes);
    store(words[6], out);
    free(values.data);
}

static void gather(const array *in, const int64_t *map, int64_t n, const char *path)
{
    array out = array_new(in->dtype, n, in->columns);
    int64_t row_bytes = in->columns * in->item_bytes;
    pl_gather_rows(out.data, row_bytes, in->data, row_bytes, row_bytes, map, n, 0);
    store(path, out);
}

static void do_axis(void)
{
    static const char *const modes[] = {"tile", "edge", "reflect", "symmetric", NULL};
    array in = load(words[4]);
    int64_t n = number(3), *map = allocate(n * 8), half = n / 2;
    pl_gather_mode mode = (pl_gather_mode)choice(1, modes);
    pl_gather_axis(mode, 0, half, number(2), in.rows, map);
    pl_gather_axis(mode, half, n - half, number(2), in.rows, map + half);
    gather(&in, map, n, words[5]);
    free(map);
    free(in.data);
}

static void do_gather(void)
{
    array indices = load(words[1]), in = load(words[2]);
    int64_t *map = allocate(indices.columns * 8);
    int64_t bad = pl_gather_map(indices.dtype, indices.data, indices.columns, in.rows, map);
    if (bad < 0) {
        gather(&in, map, indices.columns, words[3]);
    } else {
        (void)snprintf(answer_text, sizeof answer_text, "out of range %" PRId64, bad);
        answer = answer_text;
    }
    free(map);
    free(indices.data);
    free(in.data);
}

static void do_isa(void)
{
    static const char *const names[] = {"plain", "avx2", NULL};
    pl_isa_limit((pl_isa)choice(1, names));
}

static const struct command {
    const char *name;
    void (*run)(void);
} commands[] = {
    {"isa", do_isa},         {"reduce", do_reduce},     {"means", do_means},  {"scan", do_scan},
    {"softmax", do_softmax}, {"sort", do_sort},         {"argsort", do_sort}, {"top_k", do_top_k},
    {"random", do_random},   {"integers", do_integers}, {"range", do_range},  {"axis", do_axis},
    {"gather", do_gather},
};

int main(void)
{
    char line[8192];
    while (fgets(line, sizeof line, stdin)) {
        int n = 0;
        for (char *word = strtok(line, " \n"); word && n < 15; word = strtok(NULL, " \n"))
            words[n++] = word;
        size_t i = 0;
        while (i < PL_COUNT_OF(commands) && (n == 0 || strcmp(commands[i].name, words[0]) != 0))
            i++;
        if (i == PL_COUNT_OF(commands))
            fail("no such command", n ? words[0] : "");
        answer = "ok";
        commands[i].run();
        puts(answer);
    }
    return 0;
}
