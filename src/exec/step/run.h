/* SPDX-License-Identifier: Apache-2.0 */
/* One run of a plan, from inside: its values, its steps, and the tiles of a step.
 *   frame  the state of one worker: regions of boxes, registers, its scratch
 *
 * A run belongs to one thread; the workers of a step read it and write tiles of their own. */
#ifndef PL_EXEC_STEP_RUN_H
#define PL_EXEC_STEP_RUN_H

#include <pthread.h>

#include "base/stop.h"
#include "exec/npy/npy_tensor.h"
#include "plan/plan.h"
#include "plimsoll/session.h"
#include "tensor/runtime.h"
#include "tensor/tensor.h"

/* Where a value is now. */
typedef struct pl_live_value {
    char *data; /* in memory, its first element; NULL: elsewhere */
    int64_t strides[PL_RANK_MAX];
    pl_block block;         /* in memory, for this run only */
    void *on_device;        /* OpenCL's buffer of a value that stays there; NULL: none */
    pl_buffer *buffer;      /* kept, spilled or from outside */
    uint64_t offset;        /* of the first element in the buffer or file */
    int order[PL_RANK_MAX]; /* of axes in the buffer, if it is permuted */
    bool pinned;
    int fd; /* of its .npy file, which is `file`'s; -1: none */
    const char *path;
    pl_npy_file *file; /* the run's; NULL: it is not saved to a file */
} pl_live_value;

typedef struct pl_run {
    pl_runtime *runtime;
    const pl_plan *plan;
    pl_live_value *values; /* as the plan's */
    const pl_run_options *options;
    const _Atomic int *cancelled; /* set by the session */
    const char *after_eager_ops;  /* reported as done if there are no steps; NULL: not reported */
    int step;
    int device;            /* on which memory is claimed, from 0 */
    uint64_t device_bytes; /* claimed there */
    int direct_fd;         /* of the file that the step writes, for direct access; negative: none */
    pthread_mutex_t telling; /* held during a callback; other threads skip theirs */
    double told;             /* telling; the largest fraction reported so far */
} pl_run;

typedef struct pl_register {
    char *data;
    int64_t strides[PL_RANK_MAX];
} pl_register;

typedef struct pl_strips pl_strips;
struct pl_strip_taker;
struct pl_seats;

typedef struct pl_frame {
    pl_run *run;
    const pl_step *step;
    char *scratch;
    pl_region *regions; /* by box; one block with the two that follow */
    bool *needed;       /* by box: false if this tile needs none of it */
    pl_register *registers;
    char *target; /* where the last instruction writes: in the value if the step is direct, or in
                   * scratch, aligned as in its file */
    pl_strips *strips;                  /* strips.h; NULL: there are no chains */
    const struct pl_strip_taker *taker; /* of the last instruction's strips; NULL: it is whole */
    struct pl_seats *seats;             /* seats.h; NULL: there are as many threads as frames */
    pl_error error;
} pl_frame;

/* ---- values.c ---- */

/* Makes room for the value of a step, and releases it. session_run.c sets values from outside,
 * which are pinned while a step uses them. */
PL_MUST_CHECK int pl_run_make_value(pl_run *run, int value, pl_error *reterr);
void pl_run_drop_value(pl_run *run, int value);
PL_MUST_CHECK int pl_run_pin_uses(pl_run *run, const pl_step *step, pl_error *reterr);
void pl_run_unpin_uses(pl_run *run, const pl_step *step);

/* Reads a region in a dense shape from a value that is not in memory. */
PL_MUST_CHECK int pl_run_read(const pl_live_value *value, const pl_shape *shape, size_t item_bytes,
                              const pl_region *region, void *data, pl_error *reterr);

/* pl_run_read() for a value whose axes lie in another order. It is read as it lies; *ret_strides
 * describe the result. */
PL_MUST_CHECK int pl_run_read_permuted(const pl_live_value *value, const pl_shape *shape,
                                       size_t item_bytes, const pl_region *region, void *data,
                                       int64_t strides[PL_RANK_MAX], pl_error *reterr);

/* Puts op and node before the message of what failed, which may be in *reterr. */
int pl_run_name_error(const pl_node *node, int code, const pl_error *why, pl_error *reterr);

/* Returns where in its page of the file the region begins, if it is written in one piece; else
 * -1. */
int64_t pl_run_in_page(const pl_run *run, int value, const pl_region *region);

/* Stores the packed elements of a region in the value. */
PL_MUST_CHECK int pl_run_store(pl_run *run, int value, const pl_region *region, const void *data,
                               pl_error *reterr);

/* ---- tile.c ---- */

/* Fails with -ENOMEM, or -ENOTSUP for an op that has no kernel. */
PL_MUST_CHECK int pl_frame_init(pl_frame *frame, pl_run *run, const pl_step *step, char *scratch,
                                pl_error *reterr);
void pl_frame_done(pl_frame *frame);

/* Computes the program in `tile`, a region of box 0. *ret_data is the result, packed: in the
 * frame's scratch until the next one, or at frame->target; with a taker there is none. Errors name
 * op and node. */
PL_MUST_CHECK int pl_tile_compute(pl_frame *frame, const pl_region *tile, const char **ret_data);

/* ---- steps.c, reduce_step.c ---- */

PL_MUST_CHECK int pl_run_steps(pl_run *run, pl_error *reterr);
PL_MUST_CHECK int pl_run_reduce(pl_run *run, const pl_step *step, pl_frame *frames, char *shared,
                                pl_error *reterr);

/* long_rows.c */
PL_MUST_CHECK int pl_run_long_rows(pl_run *run, const pl_step *step, pl_frame *frames,
                                   pl_error *reterr);

/* matmul_step.c: a step that is a product; it takes memory itself. */
PL_MUST_CHECK int pl_run_product(pl_run *run, const pl_step *step, pl_error *reterr);

/* Reports this fraction of the step: calls back, if a callback is set and no other thread is in
 * it. */
void pl_run_tell(pl_run *run, double fraction);

/* Reports 1, once the run, its files and its variables are done. */
void pl_run_tell_end(const pl_run *run);

/* Returns whether this thread is inside a progress callback. */
bool pl_run_is_telling(void);

/* Fails with -ECANCELED if it was asked to stop. Called before each tile. */
PL_MUST_CHECK int pl_run_check(const pl_run *run);

/* pl_run_check() for code that does not know runs. */
pl_stop pl_run_stop(const pl_run *run);

/* Runs parts of a step in parallel; returns the error of the first part that failed. */
typedef int pl_run_part(pl_frame *frame, int64_t part, void *context);
PL_MUST_CHECK int pl_run_parallel(pl_run *run, pl_frame *frames, int n_frames, int64_t n_parts,
                                  pl_run_part *part, void *context, pl_error *reterr);

/* ---- ops: one instruction each, on packed inputs or, pl_takes_strides(), with strides ---- */

typedef struct pl_op_call {
    pl_frame *frame;
    const pl_instr *instr;
    const pl_region *out; /* the region to make */
    char *to;             /* packed */
    char *work;
} pl_op_call;

static inline const pl_instr *pl_call_input(const pl_op_call *call, int i)
{
    const pl_program *program = &call->frame->step->program;
    return &program->instrs[program->inputs[call->instr->first_input + i]];
}

static inline const char *pl_call_data(const pl_op_call *call, int i)
{
    const pl_program *program = &call->frame->step->program;
    return call->frame->registers[program->inputs[call->instr->first_input + i]].data;
}

static inline const int64_t *pl_call_strides(const pl_op_call *call, int i)
{
    const pl_program *program = &call->frame->step->program;
    return call->frame->registers[program->inputs[call->instr->first_input + i]].strides;
}

static inline const pl_region *pl_call_region(const pl_op_call *call, int i)
{
    return &call->frame->regions[pl_call_input(call, i)->box];
}

static inline bool pl_call_needs(const pl_op_call *call, int i)
{
    return call->frame->needed[pl_call_input(call, i)->box];
}

PL_MUST_CHECK int pl_op_generate(const pl_op_call *call);
PL_MUST_CHECK int pl_op_move(const pl_op_call *call);
PL_MUST_CHECK int pl_op_row(const pl_op_call *call);
PL_MUST_CHECK int pl_op_matmul(const pl_op_call *call);

/* Converts a number in an attribute to one element of a dtype. */
void pl_element_of(const pl_attr *number, pl_dtype dtype, void *element);

/* The strides of a packed region's elements. */
void pl_region_packed_strides(const pl_region *region, size_t item_bytes,
                              int64_t strides[PL_RANK_MAX]);

#endif
