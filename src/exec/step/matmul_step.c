/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a step that is a product of matrices: finds where operands and result are, and calls
 * matmul.h. Values on disk are read and written there, bypassing the pool, unless the pool has them
 * in memory now: then their rows are read from it. */
#include <string.h>

#include "exec/matmul/matmul.h"
#include "exec/step/run.h"
#include "plan/product.h"
#include "tensor/dtype.h"
#include "tensor/pool.h"

/* The place of an operand's or the result's matrices. */
typedef struct place {
    pl_matrix matrix;  /* the first */
    pl_buffer *buffer; /* whose rows are read */
    uint64_t offset;   /* of the matrix in it */
    bool in_file;      /* of the buffer: to be released */
} place;

typedef struct product_run {
    pl_run *run;
    const pl_step *step;
    const pl_product *product;
    place a, b, c;
    pl_extent scratch;
    int64_t at; /* the present product of the batch */
} product_run;

static pl_spill *spill_of(const product_run *p)
{
    return p->run->runtime->pool->spill;
}

/* ---- where they are ---- */

static int fill_rows(void *context, int64_t row, int64_t n_rows, void *data, pl_error *reterr)
{
    const place *from = context;
    uint64_t row_bytes = (uint64_t)from->matrix.row_bytes;
    return pl_buffer_read(from->buffer, from->offset + (uint64_t)row * row_bytes, data,
                          (uint64_t)n_rows * row_bytes, reterr);
}

/* For messages: the name of the file that it is in, if it is a user's. */
static const char *name_of(const product_run *p, int number)
{
    const pl_live_value *value = &p->run->values[number];
    const char *path = value->buffer ? pl_buffer_path(value->buffer) : NULL;
    return path ? path : value->fd >= 0 ? value->path : p->run->plan->values[number].node->name;
}

static void find_place(const product_run *p, int number, int64_t row_bytes, place *ret_place)
{
    const pl_live_value *value = &p->run->values[number];
    pl_matrix *matrix = &ret_place->matrix;
    *matrix = (pl_matrix){.where = PL_MATRIX_RESIDENT,
                          .name = name_of(p, number),
                          .data = value->data,
                          .row_bytes = row_bytes,
                          .fd = value->fd,
                          .offset = value->offset};
    if (value->data)
        return;
    matrix->where = PL_MATRIX_FILE;
    if (value->fd >= 0)
        return;
    ret_place->buffer = value->buffer;
    ret_place->in_file = pl_buffer_begin_file(value->buffer, &matrix->fd, &matrix->offset);
    if (ret_place->in_file) {
        matrix->offset += value->offset;
        return;
    }
    ret_place->offset = value->offset;
    *matrix = (pl_matrix){.where = PL_MATRIX_COMPUTED,
                          .name = matrix->name,
                          .row_bytes = row_bytes,
                          .fill = fill_rows,
                          .context = ret_place};
}

static int begin(product_run *p, pl_error *reterr)
{
    const pl_product *product = p->product;
    const pl_matmul_question *q = &product->question;
    int64_t item = pl_dtype_info_of(q->dtype)->item_bytes;
    find_place(p, product->a.value, (q->a_transposed ? q->m : q->k) * item, &p->a);
    find_place(p, product->b.value, (q->b_transposed ? q->k : q->n) * item, &p->b);
    find_place(p, p->step->value, q->n * item, &p->c);
    uint64_t disk_bytes = product->plan.scratch_disk_bytes;
    return disk_bytes == 0
               ? 0
               : pl_chunk_reserve_copy(p->run->runtime->pool, disk_bytes, &p->scratch, reterr);
}

static void end(product_run *p)
{
    place *const places[] = {&p->a, &p->b, &p->c};
    for (size_t i = 0; i < PL_COUNT_OF(places); i++)
        if (places[i]->in_file)
            pl_buffer_end_file(places[i]->buffer);
    if (p->scratch.bytes > 0)
        pl_spill_release(spill_of(p), p->scratch);
}

/* ---- products ---- */

static void tell(void *context, double fraction)
{
    const product_run *p = context;
    pl_run_tell(p->run, ((double)p->at + fraction) / (double)p->product->n_products);
}

static int64_t offset_at(const pl_product *q, int64_t index, const int64_t *strides)
{
    int64_t offset = 0;
    for (int i = q->rank - 1; i >= 0; i--) {
        offset += index % q->dims[i] * strides[i];
        index /= q->dims[i];
    }
    return offset;
}

static int64_t c_matrix_bytes(const pl_product *p)
{
    return p->question.m * p->question.n * pl_dtype_info_of(p->question.dtype)->item_bytes;
}

/* Returns the matrix that lies `offset` bytes after the first. */
static pl_matrix matrix_at(place *from, int64_t offset)
{
    pl_matrix matrix = from->matrix;
    if (matrix.where == PL_MATRIX_RESIDENT)
        matrix.data = (char *)matrix.data + offset;
    matrix.offset += (uint64_t)offset;
    return matrix;
}

static int run_one(product_run *p, pl_error *reterr)
{
    const pl_product *q = p->product;
    int64_t c_bytes = c_matrix_bytes(q);
    int64_t a_offset = offset_at(q, p->at, q->a.strides);
    int64_t b_offset = offset_at(q, p->at, q->b.strides);
    place a = p->a, b = p->b; /* fill_rows() reads at this position */
    a.matrix.context = &a;
    b.matrix.context = &b;
    a.offset += (uint64_t)a_offset;
    b.offset += (uint64_t)b_offset;
    const pl_matmul_job job = {
        .a = matrix_at(&a, a_offset),
        .b = matrix_at(&b, b_offset),
        .c = matrix_at(&p->c, p->at * c_bytes),
        .memory = p->run->runtime->memory,
        .threads = p->run->runtime->threads,
        .scratch_fd = p->scratch.bytes > 0 ? pl_spill_fd(spill_of(p)) : -1,
        .scratch_offset = p->scratch.offset,
        .stop = pl_run_stop(p->run),
        .progress = tell,
        .progress_context = p,
    };
    return pl_matmul_run(&q->plan, &job, reterr);
}

static int run_batch(product_run *p, pl_error *reterr)
{
    const pl_product *q = p->product;
    int64_t c_bytes = c_matrix_bytes(q);
    pl_matmul_batch batch = {
        .question = &q->plan.question,
        .a = p->a.matrix.data,
        .b = p->b.matrix.data,
        .c = p->c.matrix.data,
        .a_row_bytes = p->a.matrix.row_bytes,
        .b_row_bytes = p->b.matrix.row_bytes,
        .c_row_bytes = p->c.matrix.row_bytes,
        .rank = q->rank,
    };
    memcpy(batch.dims, q->dims, sizeof batch.dims);
    memcpy(batch.a_strides, q->a.strides, sizeof batch.a_strides);
    memcpy(batch.b_strides, q->b.strides, sizeof batch.b_strides);
    for (int i = q->rank - 1; i >= 0; i--) {
        batch.c_strides[i] = c_bytes;
        c_bytes *= q->dims[i];
    }
    return pl_matmul_batch_run(&batch, p->run->runtime->memory, p->run->runtime->threads,
                               pl_run_stop(p->run), reterr);
}

static int run_all(product_run *p, pl_error *reterr)
{
    if (p->product->as_batch)
        return run_batch(p, reterr);
    int r = 0;
    for (p->at = 0; p->at < p->product->n_products && r == 0; p->at++)
        r = run_one(p, reterr);
    return r;
}

int pl_run_product(pl_run *run, const pl_step *step, pl_error *reterr)
{
    product_run p = {.run = run, .step = step, .product = step->product};
    pl_error error = {0};
    int r = begin(&p, &error);
    if (r == 0)
        r = run_all(&p, &error);
    end(&p);
    if (r == 0) {
        pl_run_tell(run, 1);
        return 0;
    }
    return pl_run_name_error(step->node, r, &error, reterr);
}
