/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices: every strategy gives what a plain loop gives, within the plan's memory, and
 * whatever fails beneath is an error that leaves nothing behind. Integers are compared exactly, so
 * that a wrong place shows; floats hold integers small enough for every sum to be exact. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cblas.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "../sanitized.h"
#include "exec/matmul/matmul.h"
#include "exec/matmul/matmul_product.h"
#include "exec/matmul/panel_io.h"
#include "faults.h"
#include "sys/file.h"
#include "tensor/dtype.h"

static pl_memory *memory;
static pl_threads *threads;

/* OpenBLAS ends the process when it gets no memory: no allocation of its own fails here. */
void cblas_sgemm(CBLAS_LAYOUT order, CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k,
                 float alpha, const float *a, int lda, const float *b, int ldb, float beta,
                 float *c, int ldc)
{
    static __typeof__(cblas_sgemm) *real;
    int fail_at = fault_alloc.fail_at;
    fault_alloc.fail_at = 0;
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "cblas_sgemm");
    real(order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    fault_alloc.fail_at = fail_at;
}

/* The one that the next open() gets: the same again, if every file was closed. */
static int lowest_free_descriptor(void)
{
    int fd = dup(0);
    assert_true(fd >= 0);
    close(fd);
    return fd;
}

static int set_up(void **state)
{
    (void)state;
    fault_io_reset();
    const pl_memory_options options = {.cap_bytes = 256 * PL_MIB};
    if (pl_memory_new(&options, &memory, NULL) < 0)
        return -1;
    return pl_threads_new(2, &threads, NULL);
}

static int tear_down(void **state)
{
    (void)state;
    fault_io_reset();
    assert_int_equal(pl_memory_claimed_bytes(memory), 0);
    pl_threads_free(threads);
    pl_memory_unref(memory);
    return 0;
}

/* ---- matrices ---- */

/* Where a matrix of a test is: in memory with gaps between rows, in a file at an odd place, or
 * computed. */
typedef struct matrix {
    pl_dtype dtype;
    int64_t rows, columns;
    int64_t *values; /* the truth, as it is stored */
    pl_matrix where;
} matrix;

static UNWATCHED int64_t value_at(int64_t seed, int64_t i)
{
    uint64_t x = (uint64_t)(seed * 1000003 + i) * UINT64_C(0x9e3779b97f4a7c15);
    return (int64_t)(x >> 60) - 7;
}

static void put(pl_dtype dtype, void *data, int64_t i, int64_t value)
{
    switch (dtype) {
    case PL_F32:
        ((float *)data)[i] = (float)value;
        break;
    case PL_F64:
        ((double *)data)[i] = (double)value;
        break;
    case PL_I8:
        ((int8_t *)data)[i] = (int8_t)value;
        break;
    case PL_U16:
        ((uint16_t *)data)[i] = (uint16_t)value;
        break;
    case PL_I32:
        ((int32_t *)data)[i] = (int32_t)value;
        break;
    default:
        ((int64_t *)data)[i] = value;
    }
}

/* As it reads back, so that what wraps around is compared as such. */
static int64_t get(pl_dtype dtype, const void *data, int64_t i)
{
    switch (dtype) {
    case PL_F32:
        return (int64_t)((const float *)data)[i];
    case PL_F64:
        return (int64_t)((const double *)data)[i];
    case PL_I8:
        return ((const int8_t *)data)[i];
    case PL_U16:
        return ((const uint16_t *)data)[i];
    case PL_I32:
        return ((const int32_t *)data)[i];
    default:
        return ((const int64_t *)data)[i];
    }
}

static int64_t item_of(pl_dtype dtype)
{
    return pl_dtype_info_of(dtype)->item_bytes;
}

static int fill_rows(void *context, int64_t row, int64_t n_rows, void *data, pl_error *reterr)
{
    const matrix *m = context;
    if (row + n_rows > m->rows)
        return pl_error_set(reterr, -EINVAL, "rows %d to %d of %d", (int)row, (int)(row + n_rows),
                            (int)m->rows);
    for (int64_t i = 0; i < n_rows * m->columns; i++)
        put(m->dtype, data, i, m->values[row * m->columns + i]);
    return 0;
}

#define GAP       3   /* elements behind each row in memory */
#define ODD_PLACE 128 /* as NumPy's header leaves it */

static int new_file(void)
{
    char path[] = "/tmp/plimsoll-matmul-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    unlink(path);
    return fd;
}

static void write_all(int fd, const void *data, uint64_t n, uint64_t offset)
{
    assert_int_equal(syscall(SYS_pwrite64, fd, data, n, offset), n);
}

static void place_in_file(matrix *m)
{
    uint64_t bytes = (uint64_t)(m->rows * m->columns * item_of(m->dtype));
    void *data = calloc(1, bytes + 1);
    for (int64_t i = 0; i < m->rows * m->columns; i++)
        put(m->dtype, data, i, m->values[i]);
    m->where.fd = new_file();
    m->where.offset = ODD_PLACE;
    write_all(m->where.fd, data, bytes, ODD_PLACE);
    free(data);
}

static void place_in_memory(matrix *m)
{
    int64_t row = m->columns + GAP;
    m->where.row_bytes = row * item_of(m->dtype);
    m->where.data = calloc((size_t)(m->rows * row) + 1, (size_t)item_of(m->dtype));
    for (int64_t r = 0; r < m->rows; r++)
        for (int64_t c = 0; c < m->columns; c++)
            put(m->dtype, m->where.data, r * row + c, m->values[r * m->columns + c]);
}

static UNWATCHED matrix new_matrix(pl_dtype dtype, int64_t rows, int64_t columns, int64_t seed,
                                   pl_matrix_where where)
{
    matrix m = {.dtype = dtype, .rows = rows, .columns = columns};
    m.values = calloc((size_t)(rows * columns) + 1, sizeof *m.values);
    bool is_unsigned = pl_dtype_info_of(dtype)->kind == PL_KIND_UNSIGNED;
    for (int64_t i = 0; i < rows * columns; i++)
        m.values[i] = value_at(seed, i) + (is_unsigned ? 60007 : 0);
    m.where = (pl_matrix){.where = where, .name = "x", .fd = -1, .fill = fill_rows};
    if (where == PL_MATRIX_FILE)
        place_in_file(&m);
    if (where == PL_MATRIX_RESIDENT)
        place_in_memory(&m);
    return m;
}

static void free_matrix(matrix *m)
{
    free(m->values);
    free(m->where.data);
    if (m->where.fd >= 0)
        close(m->where.fd);
}

/* ---- products ---- */

typedef struct product {
    pl_dtype dtype;
    int64_t m, n, k;
    bool ta, tb;
    pl_matrix_where a, b, c;
    uint64_t budget;
    int strategy; /* that must come out; -1: any */
    bool b_is_a;
} product;

typedef struct run {
    product p;
    pl_matmul_plan plan;
    matrix a, b, c;
    pl_matmul_job job;
} run;

static pl_matmul_question question_of(const product *p)
{
    return (pl_matmul_question){
        .dtype = p->dtype,
        .m = p->m,
        .n = p->n,
        .k = p->k,
        .a_transposed = p->ta,
        .b_transposed = p->tb,
        .a_resident = p->a == PL_MATRIX_RESIDENT,
        .b_resident = p->b == PL_MATRIX_RESIDENT,
        .c_resident = p->c == PL_MATRIX_RESIDENT,
        .b_is_a = p->b_is_a,
        .budget_bytes = p->budget,
        .n_threads = 2,
    };
}

static void begin(run *r, product p)
{
    pl_error error = {0};
    pl_matmul_question q = question_of(&p);
    *r = (run){.p = p};
    if (pl_matmul_plan_make(&q, &r->plan, &error) < 0)
        fail_msg("%d x %d x %d: %s", (int)p.m, (int)p.n, (int)p.k, error.message);
    if (p.strategy >= 0)
        assert_string_equal(pl_matmul_strategy_name(r->plan.strategy),
                            pl_matmul_strategy_name((pl_matmul_strategy)p.strategy));
    assert_true(r->plan.scratch_bytes + r->plan.workspace_bytes <= p.budget);
    r->a = new_matrix(p.dtype, p.ta ? p.k : p.m, p.ta ? p.m : p.k, 1, p.a);
    r->b = new_matrix(p.dtype, p.tb ? p.n : p.k, p.tb ? p.k : p.n, p.b_is_a ? 1 : 2, p.b);
    r->c = new_matrix(p.dtype, p.m, p.n, 3, p.c);
    r->job = (pl_matmul_job){.a = r->a.where,
                             .b = r->b.where,
                             .c = r->c.where,
                             .memory = memory,
                             .threads = threads,
                             .scratch_fd = pl_file_open_unnamed("/tmp")};
    r->job.a.name = "left";
    r->job.b.name = "right";
    r->job.c.name = "result";
    r->job.a.context = &r->a;
    r->job.b.context = &r->b;
}

static void end(run *r)
{
    free_matrix(&r->a);
    free_matrix(&r->b);
    free_matrix(&r->c);
    close(r->job.scratch_fd);
}

/* The sums modulo 2^64, row by row, so that the compiler makes vectors of it. */
static UNWATCHED uint64_t *sums_of(const run *r)
{
    int64_t m = r->p.m, n = r->p.n, k = r->p.k;
    uint64_t *sums = calloc((size_t)(m * n) + 1, sizeof *sums);
    for (int64_t i = 0; i < m; i++)
        for (int64_t p = 0; p < k; p++) {
            uint64_t a = (uint64_t)r->a.values[r->p.ta ? p * m + i : i * k + p];
            for (int64_t j = 0; j < n; j++)
                sums[i * n + j] += a * (uint64_t)r->b.values[r->p.tb ? j * k + p : p * n + j];
        }
    return sums;
}

/* A sum as the dtype holds it. */
static int64_t wrapped(pl_dtype dtype, uint64_t sum)
{
    char bytes[8];
    put(dtype, bytes, 0, (int64_t)sum);
    return get(dtype, bytes, 0);
}

static void *result_rows(run *r, int64_t *ret_row)
{
    uint64_t bytes = (uint64_t)(r->p.m * r->p.n * item_of(r->p.dtype));
    *ret_row = r->p.n + (r->p.c == PL_MATRIX_RESIDENT ? GAP : 0);
    if (r->p.c == PL_MATRIX_RESIDENT)
        return r->c.where.data;
    void *data = r->c.where.data = malloc(bytes + 1);
    assert_int_equal(syscall(SYS_pread64, r->c.where.fd, data, bytes, ODD_PLACE), bytes);
    return data;
}

static void assert_product(run *r)
{
    int64_t row, n = r->p.n;
    void *data = result_rows(r, &row);
    uint64_t *sums = sums_of(r);
    for (int64_t i = 0; i < r->p.m; i++) {
        for (int64_t j = 0; j < n; j++) {
            int64_t is = get(r->p.dtype, data, i * row + j);
            int64_t should_be = wrapped(r->p.dtype, sums[i * n + j]);
            if (is != should_be)
                fail_msg("%s, %s: row %d, column %d of %d x %d x %d is %ld, not %ld",
                         pl_dtype_info_of(r->p.dtype)->name,
                         pl_matmul_strategy_name(r->plan.strategy), (int)i, (int)j, (int)r->p.m,
                         (int)n, (int)r->p.k, (long)is, (long)should_be);
        }
        for (int64_t j = n; j < row; j++)
            assert_int_equal(get(r->p.dtype, data, i * row + j), 0);
    }
    free(sums);
}

static void check(product p)
{
    run r;
    pl_error error = {0};
    begin(&r, p);
    int first_free = lowest_free_descriptor();
    if (pl_matmul_run(&r.plan, &r.job, &error) < 0)
        fail_msg("%s", error.message);
    assert_int_equal(lowest_free_descriptor(), first_free);
    assert_int_equal(pl_memory_claimed_bytes(memory), 0);
    assert_product(&r);
    end(&r);
}

/* ---- tests ---- */

static const pl_dtype dtypes[] = {PL_F32, PL_F64, PL_I8, PL_U16, PL_I32, PL_I64};

static void a_product_in_memory_is_the_plain_loops(void **state)
{
    (void)state;
    const int64_t sizes[][3] = {{1, 1, 1},    {37, 19, 53}, {64, 64, 64}, {1, 70, 130},
                                {70, 1, 130}, {5, 6, 0},    {0, 5, 3},    {5, 0, 3}};
    for (size_t d = 0; d < PL_COUNT_OF(dtypes); d++)
        for (size_t i = 0; i < PL_COUNT_OF(sizes); i++)
            for (int t = 0; t < 4; t++)
                check((product){dtypes[d], sizes[i][0], sizes[i][1], sizes[i][2], t & 1, t & 2,
                                PL_MATRIX_RESIDENT, PL_MATRIX_RESIDENT, PL_MATRIX_RESIDENT,
                                64 * PL_MIB, PL_MATMUL_WHOLE});
}

static void a_matrix_times_itself_is_the_plain_loops(void **state)
{
    (void)state;
    for (int t = 0; t < 2; t++) {
        run r;
        pl_error error = {0};
        begin(&r, (product){PL_F32, 150, 150, 70, t, !t, PL_MATRIX_RESIDENT, PL_MATRIX_RESIDENT,
                            PL_MATRIX_RESIDENT, 64 * PL_MIB, PL_MATMUL_WHOLE});
        free_matrix(&r.b);
        r.b = new_matrix(PL_F32, r.a.rows, r.a.columns, 1, PL_MATRIX_COMPUTED);
        r.job.b = r.job.a;
        memset(r.c.where.data, 0xff,
               (size_t)(150 * r.c.where.row_bytes)); /* NaN: all overwritten */
        for (int64_t i = 0; i < 150; i++)
            for (int64_t j = 150; j < 150 + GAP; j++)
                put(PL_F32, r.c.where.data, i * (150 + GAP) + j, 0);
        if (pl_matmul_run(&r.plan, &r.job, &error) < 0)
            fail_msg("%s", error.message);
        assert_product(&r);
        end(&r);
    }
}

/* What BLAS needs at least, and something for buffers: these make strips of a few rows. */
static uint64_t small_budget(uint64_t buffers)
{
    return pl_matmul_workspace_bytes(PL_F32, 16, 2) + buffers;
}

bool pl_matmul_plan_tiles(pl_matmul_plan *plan); /* matmul_plan_private.h */

/* In tiles, also where the planner would take strips for so few rows. */
static void check_symmetric(pl_dtype dtype, bool ta, pl_matrix_where a, pl_matrix_where c)
{
    run r;
    pl_error error = {0};
    int64_t m = item_of(dtype) < 4 ? 613 : 331; /* so that there are several */
    begin(&r, (product){dtype, m, m, 13, ta, !ta, a, a, c, small_budget(PL_MIB), -1, true});
    r.plan = (pl_matmul_plan){.question = r.plan.question};
    assert_true(pl_matmul_plan_tiles(&r.plan) && r.plan.symmetric);
    assert_true(r.plan.tile_rows < m && r.plan.flops < 2.0 * (double)(m * m * 13));
    if (pl_matmul_run(&r.plan, &r.job, &error) < 0)
        fail_msg("%s", error.message);
    assert_product(&r);
    end(&r);
}

static void a_matrix_times_itself_that_is_too_large_is_the_plain_loops(void **state)
{
    (void)state;
    const pl_dtype some[] = {PL_F32, PL_F64, PL_I8, PL_U16}; /* one of each size */
    for (size_t d = 0; d < PL_COUNT_OF(some); d++)
        for (int t = 0; t < 2; t++)
            for (int a = 0; a < 3; a++)
                for (int c = a == PL_MATRIX_RESIDENT; c < 2; c++)
                    if (d == 0 || a == PL_MATRIX_FILE)
                        check_symmetric(some[d], t, (pl_matrix_where)a, (pl_matrix_where)c);
}

/* As matrices have it that BLAS is not given whole. */
static void a_product_in_several_calls_is_the_plain_loops(void **state)
{
    (void)state;
    for (int t = 0; t < 4; t++) {
        run r;
        begin(&r, (product){PL_F32, 150, 150, 70, t & 1, !(t & 1), PL_MATRIX_RESIDENT,
                            PL_MATRIX_RESIDENT, PL_MATRIX_RESIDENT, 64 * PL_MIB, -1});
        pl_gemm g = {.dtype = PL_F32,
                     .m = 150,
                     .n = 150,
                     .k = 70,
                     .a = r.a.where.data,
                     .b = r.b.where.data,
                     .c = r.c.where.data,
                     .a_row_bytes = r.a.where.row_bytes,
                     .b_row_bytes = r.b.where.row_bytes,
                     .c_row_bytes = r.c.where.row_bytes,
                     .a_transposed = r.p.ta,
                     .b_transposed = r.p.tb,
                     .rows_at_once = 40};
        pl_blas_use use;
        assert_int_equal(pl_blas_use_begin(&use, memory, 2, PL_MIB, NULL), 0);
        if (t & 2)
            memcpy(r.b.values, r.a.values, 150 * 70 * sizeof *r.a.values);
        (t & 2 ? pl_product_square : pl_product_run)(threads, &g);
        pl_blas_use_end(&use);
        assert_product(&r);
        end(&r);
    }
}

typedef struct asked {
    int n_times, n_most;
    double last;
} asked;

static bool goes_on(void *context, double fraction)
{
    asked *a = context;
    assert_true(a->n_times == 0 ? fraction == 0 : fraction > a->last && fraction < 1);
    a->last = fraction;
    return a->n_times++ < a->n_most;
}

/* As it is where it is cut into strips for the workspace, but that somebody is asked in between. */
static void a_matrix_times_itself_is_made_in_parts(void **state)
{
    (void)state;
    for (int t = 0; t < 4; t++) {
        run r;
        begin(&r,
              (product){t & 2 ? PL_F64 : PL_F32, 150, 150, 70, t & 1, !(t & 1), PL_MATRIX_RESIDENT,
                        PL_MATRIX_RESIDENT, PL_MATRIX_RESIDENT, 64 * PL_MIB, -1, true});
        pl_gemm g = {.dtype = r.p.dtype,
                     .m = 150,
                     .n = 150,
                     .k = 70,
                     .a = r.a.where.data,
                     .c = r.c.where.data,
                     .a_row_bytes = r.a.where.row_bytes,
                     .c_row_bytes = r.c.where.row_bytes,
                     .a_transposed = r.p.ta};
        asked all = {.n_most = 100}, some = {.n_most = 2};
        pl_blas_use use;
        assert_int_equal(pl_blas_use_begin(&use, memory, 2, PL_MIB, NULL), 0);
        /* four strips: one block on the diagonal each, and two or four left of it, all twice */
        const pl_product_part part = {.rows = 40, .columns = 80, .inner = 35};
        assert_true(pl_product_square_in_parts(threads, &g, &part, goes_on, &all));
        assert_int_equal(all.n_times, 2 * (4 + 1 + 1 + 2));
        assert_product(&r);
        assert_false(pl_product_square_in_parts(threads, &g, &part, goes_on, &some));
        assert_int_equal(some.n_times, 3);
        pl_blas_use_end(&use);
        end(&r);
    }
}

static void a_product_is_made_in_parts(void **state)
{
    static const pl_dtype kinds[] = {PL_F32, PL_F64, PL_I32};
    (void)state;
    for (int t = 0; t < 12; t++) {
        run r;
        begin(&r, (product){kinds[t / 4], 150, 130, 70, t & 1, t & 2, PL_MATRIX_RESIDENT,
                            PL_MATRIX_RESIDENT, PL_MATRIX_RESIDENT, 64 * PL_MIB, -1});
        pl_gemm g = {.dtype = r.p.dtype,
                     .m = 150,
                     .n = 130,
                     .k = 70,
                     .a = r.a.where.data,
                     .b = r.b.where.data,
                     .c = r.c.where.data,
                     .a_row_bytes = r.a.where.row_bytes,
                     .b_row_bytes = r.b.where.row_bytes,
                     .c_row_bytes = r.c.where.row_bytes,
                     .a_transposed = r.p.ta,
                     .b_transposed = r.p.tb};
        const pl_product_part part = {.rows = 40, .columns = 50, .inner = 20};
        asked all = {.n_most = 100}, some = {.n_most = 5};
        pl_blas_use use;
        assert_int_equal(pl_blas_use_begin(&use, memory, 2, PL_MIB, NULL), 0);
        assert_true(pl_product_run_in_parts(threads, &g, &part, goes_on, &all));
        assert_int_equal(all.n_times, 4 * 3 * 3);
        assert_product(&r);
        assert_false(pl_product_run_in_parts(threads, &g, &part, goes_on, &some));
        assert_int_equal(some.n_times, 6);
        pl_blas_use_end(&use);
        end(&r);
    }
}

static void strips_from_files_are_the_plain_loops(void **state)
{
    (void)state;
    for (int tb = 0; tb < 2; tb++)
        for (uint64_t buffers = PL_MIB; buffers < 8 * PL_MIB; buffers *= 2)
            check((product){PL_F32, 700, 350, 260, false, tb, PL_MATRIX_FILE, PL_MATRIX_FILE,
                            PL_MATRIX_FILE, small_budget(buffers), PL_MATMUL_STRIPS});
}

/* Each of the matrices in each place, with the transposes; what the planner then takes. Not for all
 * dtypes: a place does not know which it holds. */
static void every_place_of_the_matrices_gives_the_same(void **state)
{
    (void)state;
    for (int d = 0; d < (SANITIZED ? 1 : 2); d++)
        for (int i = 0; i < 18; i++)
            for (int t = 0; t < 4; t++)
                check((product){d ? PL_U16 : PL_F32, 211, 117, 190, t & 1, t & 2,
                                (pl_matrix_where)(i % 3), (pl_matrix_where)(i / 3 % 3),
                                (pl_matrix_where)(i / 9), small_budget(PL_MIB + PL_MIB / 4), -1});
}

static void an_operand_that_lies_across_is_cut_into_tiles(void **state)
{
    (void)state;
    for (int tb = 0; tb < 2; tb++)
        for (uint64_t buffers = PL_MIB + PL_MIB / 2; buffers < 8 * PL_MIB; buffers *= 2)
            check((product){PL_F32, 400, 310, 333, true, tb, PL_MATRIX_FILE, PL_MATRIX_FILE,
                            PL_MATRIX_FILE, small_budget(buffers), PL_MATMUL_TILES});
}

/* Wider than it is worth to keep whole rows. */
static void a_small_budget_for_wide_matrices_takes_tiles(void **state)
{
    (void)state;
    check((product){PL_F64, 200, 1900, 1700, false, false, PL_MATRIX_FILE, PL_MATRIX_FILE,
                    PL_MATRIX_FILE, small_budget(PL_MIB + PL_MIB / 2), PL_MATMUL_TILES});
}

static void nothing_summed_up_is_zero_in_a_file_too(void **state)
{
    (void)state;
    for (int ta = 0; ta < 2; ta++)
        check((product){PL_F32, 40, 30, 0, ta, false, PL_MATRIX_FILE, PL_MATRIX_FILE,
                        PL_MATRIX_FILE, small_budget(4 * PL_MIB), PL_MATMUL_STRIPS});
}

/* The peak of one product; BLAS's workspace is resident from the tests before, and not claimed. */
static void check_peak(product p)
{
    pl_memory *outer = memory;
    pl_memory_options options = {.cap_bytes = p.budget};
    assert_int_equal(pl_memory_new(&options, &memory, NULL), 0);
    run r;
    begin(&r, p);
    assert_int_equal(pl_matmul_run(&r.plan, &r.job, NULL), 0);
    uint64_t peak = pl_memory_peak_bytes(memory);
    assert_true(peak <= r.plan.scratch_bytes);
    assert_true(peak > r.plan.scratch_bytes - r.plan.scratch_bytes / 8);
    end(&r);
    pl_memory_unref(memory);
    memory = outer;
}

static void what_is_claimed_is_what_was_planned(void **state)
{
    (void)state;
    check((product){PL_F32, 2000, 3, 3, false, false, PL_MATRIX_RESIDENT, PL_MATRIX_RESIDENT,
                    PL_MATRIX_RESIDENT, 64 * PL_MIB, PL_MATMUL_WHOLE});
    for (int ta = 0; ta < 2; ta++)
        for (uint64_t buffers = PL_MIB; buffers < 6 * PL_MIB; buffers += buffers / 3) {
            check_peak((product){PL_F32, 600, 500, 400, ta, false, PL_MATRIX_FILE, PL_MATRIX_FILE,
                                 PL_MATRIX_FILE, small_budget(buffers), -1});
            check_peak((product){PL_F32, 20, 30, 5000, ta, true, PL_MATRIX_FILE, PL_MATRIX_FILE,
                                 PL_MATRIX_FILE, small_budget(buffers), -1});
        }
}

static void a_budget_that_is_too_small_is_refused_with_the_one_that_would_do(void **state)
{
    (void)state;
    pl_error error = {0};
    pl_matmul_plan plan;
    product p = {PL_F32,         9000,           9000,           9000,   false, false,
                 PL_MATRIX_FILE, PL_MATRIX_FILE, PL_MATRIX_FILE, PL_MIB, -1};
    pl_matmul_question q = question_of(&p);
    assert_int_equal(pl_matmul_plan_make(&q, &plan, &error), PL_EBUDGET);
    assert_non_null(strstr(error.message, "the smallest tiling needs "));
    assert_non_null(strstr(error.message, "there are 1.0 MiB"));
    q.dtype = PL_BF16;
    assert_int_equal(pl_matmul_plan_make(&q, &plan, &error), -ENOTSUP);
    assert_non_null(strstr(error.message, "bfloat16"));
}

/* Every budget from the least on has a plan, and more memory never means more reading. */
static void plans_hold_their_budget_whatever_it_is(void **state)
{
    (void)state;
    for (int t = 0; t < 4; t++) {
        uint64_t read = UINT64_MAX;
        bool possible = false;
        for (uint64_t budget = PL_MIB; budget < 2 * PL_GIB; budget += budget / 3) {
            pl_matmul_plan plan;
            product p = {PL_F32,         10000,          10000,          10000,  t & 1, t & 2,
                         PL_MATRIX_FILE, PL_MATRIX_FILE, PL_MATRIX_FILE, budget, -1};
            pl_matmul_question q = question_of(&p);
            int r = pl_matmul_plan_make(&q, &plan, NULL);
            assert_true(r == 0 || !possible);
            if (r < 0)
                continue;
            assert_true(plan.scratch_bytes + plan.workspace_bytes <= budget);
            assert_true(plan.read_bytes >= 2 * UINT64_C(400000000));
            assert_true(plan.read_bytes <= read || plan.strategy == PL_MATMUL_STRIPS);
            read = plan.read_bytes;
            possible = true;
        }
        assert_true(possible);
    }
}

static const product faulty[] = {
    {PL_F32, 400, 360, 250, false, false, PL_MATRIX_FILE, PL_MATRIX_FILE, PL_MATRIX_FILE, 0, -1},
    {PL_F32, 400, 360, 250, true, false, PL_MATRIX_FILE, PL_MATRIX_FILE, PL_MATRIX_FILE, 0, -1},
};

static void each_read_and_write_that_fails_is_an_error(void **state)
{
    (void)state;
    for (size_t i = 0; i < PL_COUNT_OF(faulty); i++)
        for (int writes = 0; writes < 2; writes++)
            for (int n = 0, hit = true; hit; n += 3) { /* until there are no more */
                run r;
                pl_error error = {0};
                product p = faulty[i];
                p.budget = small_budget(PL_MIB);
                begin(&r, p);
                fault_io.n_before = n;
                *(writes ? &fault_io.write_error : &fault_io.read_error) = EIO;
                int result = pl_matmul_run(&r.plan, &r.job, &error);
                hit = writes ? fault_io.n_writes > n : fault_io.n_reads > n;
                fault_io_reset();
                assert_int_equal(result, hit ? -EIO : 0);
                if (hit)
                    assert_non_null(strstr(error.message, writes ? "cannot write" : "cannot read"));
                assert_int_equal(pl_memory_claimed_bytes(memory), 0);
                end(&r);
            }
}

static void short_and_interrupted_calls_go_on(void **state)
{
    (void)state;
    for (size_t i = 0; i < PL_COUNT_OF(faulty); i++) {
        product p = faulty[i];
        p.budget = small_budget(PL_MIB);
        fault_io.most_bytes = 12288;
        fault_io.n_interruptions = 20;
        check(p);
        fault_io.most_bytes = 5000; /* not even whole pages */
        check(p);
        fault_io_reset();
    }
}

static void a_file_that_was_cut_off_is_an_error(void **state)
{
    (void)state;
    for (size_t i = 0; i < PL_COUNT_OF(faulty); i++) {
        run r;
        pl_error error = {0};
        product p = faulty[i];
        p.budget = small_budget(PL_MIB);
        begin(&r, p);
        assert_int_equal(ftruncate(r.b.where.fd, ODD_PLACE + 360 * 200 * 4), 0);
        assert_int_equal(pl_matmul_run(&r.plan, &r.job, &error), PL_ECORRUPT);
        assert_non_null(strstr(error.message, "of 'right'"));
        assert_int_equal(pl_memory_claimed_bytes(memory), 0);
        end(&r);
    }
}

static void each_allocation_that_fails_is_an_error(void **state)
{
    (void)state;
    fault_need_alloc();
    for (size_t i = 0; i < PL_COUNT_OF(faulty); i++)
        for (int n = 1;; n++) {
            run r;
            product p = faulty[i];
            p.budget = small_budget(PL_MIB);
            begin(&r, p);
            fault_alloc_begin(n);
            int result = pl_matmul_run(&r.plan, &r.job, NULL);
            bool hit = fault_alloc_end();
            assert_int_equal(pl_memory_claimed_bytes(memory), 0);
            if (!hit)
                assert_int_equal(result, 0);
            if (result == 0)
                assert_product(&r); /* without threads for reading it is done all the same */
            end(&r);
            if (!hit)
                break;
            assert_true(n < 100);
        }
}

static void the_threads_that_read_see_their_own_faults_and_no_other_signals(void **state)
{
    (void)state;
    product p = faulty[0];
    p.budget = small_budget(PL_MIB);
    fault_io_reset();
    check(p);
    assert_true(fault_io.n_apart > 0);
    assert_int_equal(fault_io.n_deaf, 0);
}

static int cancelled;

static bool is_cancelled(const void *context)
{
    (void)context;
    return __atomic_load_n(&cancelled, __ATOMIC_RELAXED) != 0;
}

static void cancel_halfway(void *context, double fraction)
{
    *(double *)context = fraction;
    if (fraction >= 0.5)
        __atomic_store_n(&cancelled, 1, __ATOMIC_RELAXED);
}

static void cancel_at_once(void *context, double fraction)
{
    *(double *)context = fraction;
    __atomic_store_n(&cancelled, 1, __ATOMIC_RELAXED);
}

static void a_cancelled_product_ends_between_steps(void **state)
{
    (void)state;
    double fraction = 0;
    run r;
    product p = faulty[0];
    p.budget = small_budget(PL_MIB);
    begin(&r, p);
    r.job.stop = (pl_stop){is_cancelled, NULL};
    r.job.progress = cancel_halfway;
    r.job.progress_context = &fraction;
    cancelled = 0;
    assert_int_equal(pl_matmul_run(&r.plan, &r.job, NULL), -ECANCELED);
    assert_true(fraction >= 0.5 && fraction < 1);
    assert_int_equal(pl_memory_claimed_bytes(memory), 0);
    end(&r);
}

/* Large enough that it is made in parts. */
static void a_matrix_times_itself_can_be_cancelled_half_way(void **state)
{
    (void)state;
    enum { SIDE = 4100, INNER = 2000 };
    double fraction = 0;
    float *a = calloc(SIDE * INNER, sizeof *a), *c = malloc((size_t)SIDE * SIDE * sizeof *c);
    product p = {PL_F32,
                 SIDE,
                 SIDE,
                 INNER,
                 false,
                 true,
                 PL_MATRIX_RESIDENT,
                 PL_MATRIX_RESIDENT,
                 PL_MATRIX_RESIDENT,
                 PL_GIB,
                 PL_MATMUL_WHOLE,
                 true};
    const pl_matmul_question q = question_of(&p);
    pl_matmul_plan plan;
    assert_int_equal(pl_matmul_plan_make(&q, &plan, NULL), 0);
    const pl_matrix left = {.where = PL_MATRIX_RESIDENT, .data = a, .row_bytes = INNER * sizeof *a};
    pl_matmul_job job = {
        .a = left,
        .b = left,
        .c = {.where = PL_MATRIX_RESIDENT, .data = c, .row_bytes = SIDE * sizeof *c},
        .threads = threads,
        .stop = {is_cancelled, NULL},
        .progress = cancel_at_once,
        .progress_context = &fraction};
    cancelled = 0;
    c[(size_t)SIDE * SIDE - 1] = 77;
    assert_int_equal(pl_matmul_run(&plan, &job, NULL), -ECANCELED);
    assert_true(fraction > 0 && fraction < 1 && c[0] == 0 && c[(size_t)SIDE * SIDE - 1] == 77);
    free(a);
    free(c);
}

static bool stops_after_some(const void *context)
{
    int *n_left = (int *)context;
    return (*n_left)-- <= 0;
}

/* Asked once when it begins; then operands are copied to blocks, in bands. */
static void a_cancelled_product_ends_while_operands_are_copied(void **state)
{
    (void)state;
    int n_writes[] = {0, 0, 0}, n_asked[] = {1, 2, 1000000};
    for (int i = 0; i < 3; i++) {
        run r;
        begin(&r, (product){PL_F64, 200, 1900, 1700, false, false, PL_MATRIX_FILE, PL_MATRIX_FILE,
                            PL_MATRIX_FILE, small_budget(PL_MIB + PL_MIB / 2), PL_MATMUL_TILES});
        r.job.stop = (pl_stop){stops_after_some, &n_asked[i]};
        fault_io_reset();
        assert_int_equal(pl_matmul_run(&r.plan, &r.job, NULL), i < 2 ? -ECANCELED : 0);
        n_writes[i] = fault_io.n_writes;
        assert_int_equal(pl_memory_claimed_bytes(memory), 0);
        end(&r);
    }
    assert_int_equal(n_writes[0], 0);
    assert_in_range(n_writes[1], 1, n_writes[2] / 8);
}

/* ---- batches ---- */

typedef struct shapes {
    int64_t m, n, k;
    bool ta, tb;
} shapes;

/* 3 x 4 products; the left operand is the same along the first axis, the right one along both if
 * `one_right`. */
static void check_batch(pl_dtype dtype, shapes s, bool one_right)
{
    int64_t item = item_of(dtype), a_one = s.m * s.k, b_one = s.k * s.n, c_one = s.m * s.n;
    matrix a = new_matrix(dtype, 12, a_one, 1, PL_MATRIX_COMPUTED);
    matrix b = new_matrix(dtype, 12, b_one, 2, PL_MATRIX_COMPUTED);
    void *data[3] = {malloc((size_t)(12 * a_one * item) + 1),
                     malloc((size_t)(12 * b_one * item) + 1),
                     malloc((size_t)(12 * c_one * item) + 1)};
    assert_int_equal(fill_rows(&a, 0, 12, data[0], NULL), 0);
    assert_int_equal(fill_rows(&b, 0, 12, data[1], NULL), 0);
    int64_t a_first = one_right ? 4 : 0, b_each = one_right ? 0 : 1;
    const pl_matmul_question question = {.dtype = dtype,
                                         .m = s.m,
                                         .n = s.n,
                                         .k = s.k,
                                         .a_transposed = s.ta,
                                         .b_transposed = s.tb,
                                         .n_threads = 2};
    pl_matmul_batch batch = {
        .question = &question,
        .a = data[0],
        .b = data[1],
        .c = data[2],
        .a_row_bytes = (s.ta ? s.m : s.k) * item,
        .b_row_bytes = (s.tb ? s.k : s.n) * item,
        .c_row_bytes = s.n * item,
        .rank = 2,
        .dims = {3, 4},
        .a_strides = {a_first * a_one * item, a_one * item},
        .b_strides = {4 * b_each * b_one * item, b_each * b_one * item},
        .c_strides = {4 * c_one * item, c_one * item},
    };
    assert_int_equal(pl_matmul_batch_run(&batch, memory, threads, (pl_stop){0}, NULL), 0);
    for (int64_t i = 0; i < 12; i++) {
        int64_t a_at = a_first ? i : i % 4, b_at = b_each * i;
        run r = {.p = {.dtype = dtype, .m = s.m, .n = s.n, .k = s.k, .ta = s.ta, .tb = s.tb}};
        r.a.values = a.values + a_at * a_one;
        r.b.values = b.values + b_at * b_one;
        uint64_t *sums = sums_of(&r);
        for (int64_t e = 0; e < c_one; e++)
            assert_int_equal(get(dtype, data[2], i * c_one + e), wrapped(dtype, sums[e]));
        free(sums);
    }
    for (int i = 0; i < 3; i++)
        free(data[i]);
    free(a.values);
    free(b.values);
}

static void a_batch_is_the_plain_loops_also_where_operands_repeat(void **state)
{
    (void)state;
    const shapes all[] = {{7, 5, 9, false, false}, {7, 5, 9, true, false},
                          {7, 5, 9, false, true},  {1, 1, 1, true, true},
                          {5, 4, 0, false, false}, {0, 4, 3, false, false}};
    for (size_t d = 0; d < PL_COUNT_OF(dtypes); d++)
        for (size_t i = 0; i < PL_COUNT_OF(all); i++)
            for (int one_right = 0; one_right < 2; one_right++)
                check_batch(dtypes[d], all[i], one_right);
    check_batch(PL_F32, (shapes){260, 258, 257, false, false}, false);
    assert_int_equal(pl_memory_claimed_bytes(memory), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_product_in_memory_is_the_plain_loops),
        cmocka_unit_test(a_matrix_times_itself_is_the_plain_loops),
        cmocka_unit_test(a_matrix_times_itself_that_is_too_large_is_the_plain_loops),
        cmocka_unit_test(a_product_in_several_calls_is_the_plain_loops),
        cmocka_unit_test(a_matrix_times_itself_is_made_in_parts),
        cmocka_unit_test(a_product_is_made_in_parts),
        cmocka_unit_test(strips_from_files_are_the_plain_loops),
        cmocka_unit_test(every_place_of_the_matrices_gives_the_same),
        cmocka_unit_test(an_operand_that_lies_across_is_cut_into_tiles),
        cmocka_unit_test(a_small_budget_for_wide_matrices_takes_tiles),
        cmocka_unit_test(nothing_summed_up_is_zero_in_a_file_too),
        cmocka_unit_test(what_is_claimed_is_what_was_planned),
        cmocka_unit_test(a_budget_that_is_too_small_is_refused_with_the_one_that_would_do),
        cmocka_unit_test(plans_hold_their_budget_whatever_it_is),
        cmocka_unit_test(each_read_and_write_that_fails_is_an_error),
        cmocka_unit_test(short_and_interrupted_calls_go_on),
        cmocka_unit_test(a_file_that_was_cut_off_is_an_error),
        cmocka_unit_test(each_allocation_that_fails_is_an_error),
        cmocka_unit_test(the_threads_that_read_see_their_own_faults_and_no_other_signals),
        cmocka_unit_test(a_cancelled_product_ends_between_steps),
        cmocka_unit_test(a_matrix_times_itself_can_be_cancelled_half_way),
        cmocka_unit_test(a_cancelled_product_ends_while_operands_are_copied),
        cmocka_unit_test(a_batch_is_the_plain_loops_also_where_operands_repeat),
    };
    return cmocka_run_group_tests_name("matmul", tests, set_up, tear_down);
}
