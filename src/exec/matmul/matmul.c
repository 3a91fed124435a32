/* SPDX-License-Identifier: Apache-2.0 */
/* See matmul.h. */
#include "exec/matmul/matmul.h"

#include <assert.h>
#include <errno.h>

#include "exec/matmul/matmul_private.h"
#include "sys/file.h"
#include "tensor/dtype.h"

static_assert(PL_MATMUL_PAGE_BYTES == PL_FILE_DIRECT_BYTES &&
                  PL_MATMUL_BOUNCE_BYTES == PL_PANEL_THREADS * PL_PANEL_BOUNCE_BYTES &&
                  PL_MATMUL_REQUEST_BYTES >= sizeof(pl_panel_request),
              "the planner counts what is used here");

/* ---- everything in memory ---- */

static bool is_square(const pl_matmul_question *q, const pl_matmul_job *job)
{
    return job->a.data == job->b.data && job->a.row_bytes == job->b.row_bytes &&
           q->a_transposed != q->b_transposed && q->m == q->n;
}

static bool go_on(void *context, double fraction)
{
    const pl_matmul_job *job = context;
    if (job->progress && fraction > 0)
        job->progress(job->progress_context, fraction);
    return !pl_must_stop(job->stop);
}

static int run_whole(const pl_matmul_plan *plan, const pl_matmul_job *job, pl_error *reterr)
{
    const pl_matmul_question *q = &plan->question;
    pl_gemm g = {
        .dtype = q->dtype,
        .m = q->m,
        .n = q->n,
        .k = q->k,
        .a = job->a.data,
        .b = job->b.data,
        .c = job->c.data,
        .a_row_bytes = job->a.row_bytes,
        .b_row_bytes = job->b.row_bytes,
        .c_row_bytes = job->c.row_bytes,
        .a_transposed = q->a_transposed,
        .b_transposed = q->b_transposed,
    };
    const pl_product_part part = pl_product_part_of(job->threads, &g);
    if (!(is_square(q, job) ? pl_product_square_in_parts
                            : pl_product_run_in_parts)(job->threads, &g, &part, go_on, (void *)job))
        return pl_error_set(reterr, -ECANCELED, "cancelled");
    if (job->progress)
        job->progress(job->progress_context, 1);
    return 0;
}

/* ---- in parts ---- */

static int copy_operand(pl_matmul_state *s, const pl_matrix *matrix, bool right, uint64_t *end)
{
    pl_panel_stream *stream = right ? &s->b : &s->a;
    stream->in_blocks = true;
    stream->blocks = pl_matmul_blocks_of(s->plan, right);
    stream->offset = *end;
    *end += pl_matmul_blocks_disk_bytes(&stream->blocks);
    return pl_matmul_copy_to_blocks(s, matrix, &stream->blocks, stream->offset);
}

/* Copies a matrix that is multiplied by itself only once. */
static void share_blocks(pl_matmul_state *s)
{
    s->b.in_blocks = true;
    s->b.blocks = s->a.blocks;
    s->b.offset = s->a.offset;
}

/* Resident matrices stay where they are. */
static int prepare_tiles(pl_matmul_state *s)
{
    uint64_t end = s->job->scratch_offset;
    s->a_streams = s->job->a.where != PL_MATRIX_RESIDENT;
    s->b_streams = s->job->b.where != PL_MATRIX_RESIDENT;
    int r = s->a_streams ? copy_operand(s, &s->job->a, false, &end) : 0;
    if (r == 0 && s->b_streams && s->plan->symmetric)
        share_blocks(s);
    else if (r == 0 && s->b_streams)
        r = copy_operand(s, &s->job->b, true, &end);
    if (s->plan->c_in_blocks) {
        s->c_blocks = pl_matmul_blocks_of_c(s->plan);
        s->c_blocks_offset = end;
    }
    return r;
}

static void prepare_strips(pl_matmul_state *s)
{
    const pl_matmul_question *q = &s->plan->question;
    s->a_stays = s->job->a.where != PL_MATRIX_RESIDENT;
    s->b_streams = s->job->b.where != PL_MATRIX_RESIDENT;
    s->b.n_rows = q->b_transposed ? q->n : q->k;
    s->b.piece_rows = s->plan->panel_rows;
    s->b.row_bytes = (uint64_t)(q->b_transposed ? q->k : q->n) * s->item_bytes;
    s->b.offset = s->job->b.offset;
}

static int start_stream(pl_matmul_state *s, pl_panel_stream *stream)
{
    uint64_t bytes = (uint64_t)stream->piece_rows * stream->row_bytes;
    if (stream->in_blocks)
        bytes = stream->blocks.block_bytes;
    if (stream->in_blocks || stream->matrix->where == PL_MATRIX_FILE)
        stream->file =
            pl_panel_file_open(stream->in_blocks ? s->job->scratch_fd : stream->matrix->fd);
    return pl_panel_stream_init(s, stream, bytes);
}

static int start_all(pl_matmul_state *s)
{
    const pl_matmul_plan *p = s->plan;
    uint64_t rows = (uint64_t)p->tile_rows;
    s->c_stays = s->job->c.where != PL_MATRIX_RESIDENT;
    int r = s->a_streams ? start_stream(s, &s->a) : 0;
    if (r == 0 && s->b_streams)
        r = start_stream(s, &s->b);
    if (r == 0 && s->a_stays)
        r = pl_strip_init(s, &s->a_strip, &s->job->a,
                          rows * (uint64_t)p->question.k * s->item_bytes, s->job->a.name);
    if (r == 0 && s->c_stays)
        r = pl_strip_init(s, &s->c_strip, p->c_in_blocks ? &s->scratch : &s->job->c,
                          rows * (uint64_t)p->tile_columns * s->item_bytes, s->job->c.name);
    return r;
}

static void end_streams(pl_matmul_state *s)
{
    pl_panel_stream_done(s, &s->a);
    pl_panel_stream_done(s, &s->b);
    pl_strip_done(s, &s->a_strip);
    pl_strip_done(s, &s->c_strip);
}

/* Ends requests under way before their memory is freed. */
static void end_all(pl_matmul_state *s)
{
    pl_panel_io_free(s->io);
    end_streams(s);
    pl_memory_give(s->job->memory, &s->bounce);
}

/* No request is under way any more. */
static int put_in_place(pl_matmul_state *s)
{
    end_streams(s);
    return pl_matmul_copy_from_blocks(s, &s->job->c, &s->c_blocks, s->c_blocks_offset);
}

static int run_in_parts(const pl_matmul_plan *plan, const pl_matmul_job *job, pl_error *reterr)
{
    const pl_panel_file none = {-1, -1};
    pl_matmul_state s = {
        .plan = plan,
        .job = job,
        .reterr = reterr,
        .item_bytes = pl_dtype_info_of(plan->question.dtype)->item_bytes,
        .a = {.matrix = &job->a, .file = none},
        .b = {.matrix = &job->b, .file = none},
        .scratch = {.where = PL_MATRIX_FILE, .name = "scratch", .fd = job->scratch_fd},
        .a_strip = {.file = none},
        .c_strip = {.file = none},
    };
    int r = pl_memory_take(job->memory, PL_MATMUL_BOUNCE_BYTES, "reading ahead", &s.bounce, reterr);
    if (r == 0)
        r = pl_panel_io_new(s.bounce.data, &s.io, reterr);
    if (r == 0 && plan->strategy == PL_MATMUL_TILES)
        r = prepare_tiles(&s);
    else if (r == 0)
        prepare_strips(&s);
    if (r == 0)
        r = start_all(&s);
    if (r == 0)
        r = pl_matmul_pass(&s);
    if (r == 0 && plan->c_in_blocks)
        r = put_in_place(&s);
    end_all(&s);
    return r;
}

/* ---- either ---- */

static bool agrees(const pl_matmul_plan *plan, const pl_matmul_job *job)
{
    const pl_matmul_question *q = &plan->question;
    return q->a_resident == (job->a.where == PL_MATRIX_RESIDENT) &&
           q->b_resident == (job->b.where == PL_MATRIX_RESIDENT) &&
           q->c_resident == (job->c.where == PL_MATRIX_RESIDENT) &&
           job->c.where != PL_MATRIX_COMPUTED;
}

int pl_matmul_run(const pl_matmul_plan *plan, const pl_matmul_job *job, pl_error *reterr)
{
    if (!agrees(plan, job))
        return pl_error_set(reterr, -EINVAL, "the matrices are not where the plan has them");
    if (plan->question.m == 0 || plan->question.n == 0)
        return 0;
    if (pl_must_stop(job->stop))
        return pl_error_set(reterr, -ECANCELED, "cancelled");
    pl_blas_use use;
    int r = pl_blas_use_begin(&use, job->memory, plan->question.n_threads, plan->workspace_bytes,
                              reterr);
    if (r < 0)
        return r;
    r = plan->strategy == PL_MATMUL_WHOLE ? run_whole(plan, job, reterr)
                                          : run_in_parts(plan, job, reterr);
    pl_blas_use_end(&use);
    return r;
}
