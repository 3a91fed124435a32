/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices in .npy files, for tests/kernels/test_matmul.py and bench/matmul.py: a line
 * on stdin is a command, its answer a line on stdout.
 *   matmul BUDGET TA TB WHERE A B C
 *       WHERE has three letters, for A, B and C: r (resident) or f (file).
 *       Answers: STRATEGY PLANNED_BYTES CLAIMED_BYTES SECONDS
 *   batch A B C
 *       Of rank 3: one product for each of the first axis; of B there may be one for all.
 *       Answers: SECONDS
 *   blas THREADS A B C
 *       A bare sgemm; of rank 3, in a loop. Answers: SECONDS */
#include <cblas.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "codec/npy/npy.h"
#include "exec/matmul/matmul.h"
#include "sys/file.h"

typedef struct file {
    int fd;
    pl_npy npy;
    char *data; /* NULL: stays in the file */
} file;

static char *words[16];
static pl_threads *threads;

static void fail(const char *what, const char *on)
{
    fprintf(stderr, "matmul_tool: %s: '%s'\n", what, on);
    exit(1);
}

static void check(int code, const pl_error *error, const char *on)
{
    if (code < 0)
        fail(error->message, on);
}

static void *allocate(uint64_t bytes)
{
    void *data = aligned_alloc(4096, (bytes / 4096 + 1) * 4096);
    if (!data)
        fail("no memory", "");
    memset(data, 0, bytes); /* touched now, not while it is measured */
    return data;
}

static file open_operand(const char *path, bool resident)
{
    pl_error error = {0};
    file f = {.fd = open(path, O_RDONLY | O_CLOEXEC)};
    if (f.fd < 0)
        fail("cannot open", path);
    check(pl_npy_read(f.fd, path, &f.npy, &error), &error, path);
    if (resident) {
        f.data = allocate(f.npy.data_bytes);
        if (pl_file_read(f.fd, f.data, f.npy.data_bytes, f.npy.data_offset) < 0)
            fail("cannot read", path);
    }
    return f;
}

static file open_result(const char *path, pl_dtype dtype, uint64_t item_bytes, pl_shape shape,
                        bool resident)
{
    char header[PL_NPY_HEADER_BYTES];
    pl_error error = {0};
    file f = {.fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)};
    int n = pl_npy_format(dtype, 0, &shape, header, &error);
    check(n, &error, path);
    f.npy = (pl_npy){.dtype = dtype, .shape = shape, .data_offset = (uint64_t)n};
    f.npy.item_bytes = (uint32_t)item_bytes;
    f.npy.data_bytes = item_bytes;
    for (int i = 0; i < shape.rank; i++)
        f.npy.data_bytes *= (uint64_t)shape.dims[i];
    if (f.fd < 0 || pl_file_write(f.fd, header, (size_t)n, 0) < 0 ||
        ftruncate(f.fd, (off_t)(f.npy.data_offset + f.npy.data_bytes)) < 0)
        fail("cannot write", path);
    if (resident)
        f.data = allocate(f.npy.data_bytes);
    return f;
}

static void close_operand(file *f)
{
    free(f->data);
    close(f->fd);
}

static void close_result(file *f, const char *path)
{
    if (f->data && pl_file_write(f->fd, f->data, f->npy.data_bytes, f->npy.data_offset) < 0)
        fail("cannot write", path);
    close_operand(f);
}

static pl_matrix matrix_of(const file *f, const char *name)
{
    return (pl_matrix){
        .where = f->data ? PL_MATRIX_RESIDENT : PL_MATRIX_FILE,
        .name = name,
        .data = f->data,
        .row_bytes = f->npy.shape.dims[1] * f->npy.item_bytes,
        .fd = f->fd,
        .offset = f->npy.data_offset,
    };
}

static double seconds_since(uint64_t start_ns)
{
    return (double)(pl_clock_monotonic_ns() - start_ns) / 1e9;
}

static pl_matmul_plan make_plan(const file *a, const file *b, const file *c)
{
    pl_error error = {0};
    pl_matmul_plan plan;
    pl_matmul_question q = {
        .dtype = a->npy.dtype,
        .m = c->npy.shape.dims[0],
        .n = c->npy.shape.dims[1],
        .a_transposed = atoi(words[2]),
        .b_transposed = atoi(words[3]),
        .a_resident = a->data,
        .b_resident = b->data,
        .c_resident = c->data,
        .budget_bytes = strtoull(words[1], NULL, 10),
        .n_threads = pl_threads_count(threads),
    };
    q.k = a->npy.shape.dims[q.a_transposed ? 0 : 1];
    check(pl_matmul_plan_make(&q, &plan, &error), &error, "plan");
    return plan;
}

static void do_matmul(void)
{
    const char *where = words[4];
    bool ta = atoi(words[2]), tb = atoi(words[3]);
    file a = open_operand(words[5], where[0] == 'r'), b = open_operand(words[6], where[1] == 'r');
    pl_shape shape = {2, {a.npy.shape.dims[ta], b.npy.shape.dims[!tb]}};
    file c = open_result(words[7], a.npy.dtype, a.npy.item_bytes, shape, where[2] == 'r');
    pl_matmul_plan plan = make_plan(&a, &b, &c);
    pl_memory_options options = {.cap_bytes = plan.question.budget_bytes};
    pl_memory *memory;
    pl_error error = {0};
    check(pl_memory_new(&options, &memory, &error), &error, "memory");
    pl_matmul_job job = {.a = matrix_of(&a, words[5]),
                         .b = matrix_of(strcmp(words[5], words[6]) == 0 ? &a : &b, words[6]),
                         .c = matrix_of(&c, words[7]),
                         .memory = memory,
                         .threads = threads,
                         .scratch_fd = pl_file_open_unnamed(".")};
    uint64_t start = pl_clock_monotonic_ns();
    check(pl_matmul_run(&plan, &job, &error), &error, words[7]);
    printf("%s %" PRIu64 " %" PRIu64 " %.6f\n", pl_matmul_strategy_name(plan.strategy),
           plan.scratch_bytes + plan.workspace_bytes, pl_memory_peak_bytes(memory),
           seconds_since(start));
    pl_memory_unref(memory);
    close(job.scratch_fd);
    close_operand(&a);
    close_operand(&b);
    close_result(&c, words[7]);
}

static void do_batch(void)
{
    pl_error error = {0};
    file a = open_operand(words[1], true), b = open_operand(words[2], true);
    const int64_t *ad = a.npy.shape.dims, *bd = b.npy.shape.dims;
    pl_shape shape = {3, {ad[0], ad[1], bd[2]}};
    file c = open_result(words[3], a.npy.dtype, a.npy.item_bytes, shape, true);
    int64_t item = a.npy.item_bytes;
    const pl_matmul_question question = {
        .dtype = a.npy.dtype, .m = ad[1], .n = bd[2], .k = ad[2], .n_threads = 2};
    pl_matmul_batch batch = {
        .question = &question,
        .a = a.data,
        .b = b.data,
        .c = c.data,
        .a_row_bytes = ad[2] * item,
        .b_row_bytes = bd[2] * item,
        .c_row_bytes = bd[2] * item,
        .rank = 1,
        .dims = {ad[0]},
        .a_strides = {ad[1] * ad[2] * item},
        .b_strides = {bd[0] == 1 ? 0 : bd[1] * bd[2] * item},
        .c_strides = {ad[1] * bd[2] * item},
    };
    uint64_t start = pl_clock_monotonic_ns();
    check(pl_matmul_batch_run(&batch, NULL, threads, (pl_stop){0}, &error), &error, words[3]);
    printf("%.6f\n", seconds_since(start));
    close_operand(&a);
    close_operand(&b);
    close_result(&c, words[3]);
}

static void do_blas(void)
{
    file a = open_operand(words[2], true), b = open_operand(words[3], true);
    int rank = a.npy.shape.rank;
    const int64_t *ad = a.npy.shape.dims + rank - 2, *bd = b.npy.shape.dims + rank - 2;
    int64_t count = rank == 3 ? a.npy.shape.dims[0] : 1;
    int m = (int)ad[0], k = (int)ad[1], n = (int)bd[1];
    pl_shape shape = {rank, {count, m, n}};
    if (rank == 2)
        shape = (pl_shape){2, {m, n}};
    file c = open_result(words[4], PL_F32, 4, shape, true);
    const float *from_a = (const float *)a.data, *from_b = (const float *)b.data;
    float *to = (float *)c.data;
    openblas_set_num_threads(atoi(words[1]));
    uint64_t start = pl_clock_monotonic_ns();
    for (int64_t i = 0; i < count; i++)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, from_a + i * m * k, k,
                    from_b + i * k * n, n, 0, to + i * m * n, n);
    printf("%.6f\n", seconds_since(start));
    close_operand(&a);
    close_operand(&b);
    close_result(&c, words[4]);
}

static const struct command {
    const char *name;
    void (*run)(void);
} commands[] = {{"matmul", do_matmul}, {"batch", do_batch}, {"blas", do_blas}};

int main(void)
{
    char line[8192];
    if (pl_threads_new(2, &threads, NULL) < 0)
        fail("no threads", "");
    while (fgets(line, sizeof line, stdin)) {
        int n = 0;
        for (char *word = strtok(line, " \n"); word && n < 15; word = strtok(NULL, " \n"))
            words[n++] = word;
        size_t i = 0;
        while (i < PL_COUNT_OF(commands) && (n == 0 || strcmp(commands[i].name, words[0]) != 0))
            i++;
        if (i == PL_COUNT_OF(commands))
            fail("no such command", n ? words[0] : "");
        commands[i].run();
        fflush(stdout);
    }
    pl_threads_free(threads);
    return 0;
}
