/* SPDX-License-Identifier: Apache-2.0 */
/* See strips.h.
 *
 * The axes of a tile are merged where all operands allow it. If rows are then long, strips are cut
 * from them, and operands are read in place: each is a row, or one repeated element. If rows are
 * short, a strip spans many of them, and operands that are not contiguous are copied. */
#include "exec/step/strips.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "exec/step/lookahead.h"
#include "kernels/elementwise/cast.h"
#include "kernels/elementwise/elementwise.h"
#include "kernels/move/gather.h"
#include "tensor/dtype.h"

enum { INPUTS = 3 };

typedef enum way { POINTED, REPEATED, COPIED } way;

typedef struct operand {
    int instr;
    int64_t item_bytes;
    char *strip; /* to copy to; NULL: never needs a copy */
    /* for this tile: */
    way way;
    const char *data;
    int64_t strides[PL_RANK_MAX]; /* along the merged axes */
} operand;

typedef struct operation {
    const pl_instr *instr;
    pl_elementwise op;
    pl_dtype dtype;               /* of its inputs */
    int64_t item_bytes;           /* of its result */
    pl_cast_kernel cast;          /* or */
    pl_elementwise_kernel kernel; /* for operands that are repeated in this way: */
    unsigned repeated;
    int places[INPUTS]; /* operands come first, then operations */
    /* for this tile: */
    char *to;
    int64_t step_bytes;            /* that `to` moves for each element of the tile: 0 for a strip */
    int64_t operand_bytes[INPUTS]; /* that each of a strip moves its operands: 0 if repeated */
} operation;

typedef struct chain {
    operand *operands;
    operation *operations;
    int n_operands, n_operations;
    /* for this tile: */
    pl_lookahead ahead;
    const operand *streams[PL_LOOKAHEAD_STREAMS_MAX]; /* NULL: the last operation's result */
} chain;

/* One block holds all that it points to, because a step of ten elements allocates it, too. */
struct pl_strips {
    chain *chains;
    operand *operands;     /* of all chains */
    operation *operations; /* of all chains */
    const char **at;       /* where each place's strip is */
};

static pl_elementwise by_op[PL_N_OPS];
static pthread_once_t by_op_once = PTHREAD_ONCE_INIT;

static void fill_by_op(void)
{
    for (int i = 0; i < PL_N_OPS; i++)
        by_op[i] = pl_elementwise_by_name(pl_op_of((pl_op_id)i)->name);
    by_op[PL_OP_assign_add] = PL_ELEMENTWISE_add;
    by_op[PL_OP_assign_sub] = PL_ELEMENTWISE_sub;
}

/* ---- once for each frame ---- */

static int64_t item_bytes_of(const pl_instr *instr)
{
    return pl_dtype_info_of(instr->dtype)->item_bytes;
}

static const pl_instr *input_of(const pl_program *program, const pl_instr *instr, int i)
{
    return &program->instrs[program->inputs[instr->first_input + i]];
}

static void set_operands(chain *c, const pl_program *program, const pl_chain *of, char *scratch)
{
    int instrs[PL_CHAIN_OPERANDS_MAX];
    char *strip = scratch + of->operand_strips;
    c->n_operands = pl_chain_operands(program, of, instrs);
    for (int i = 0; i < c->n_operands; i++) {
        c->operands[i] =
            (operand){.instr = instrs[i], .item_bytes = item_bytes_of(&program->instrs[instrs[i]])};
        if (!pl_chain_may_copy(program, of, instrs[i]))
            continue;
        c->operands[i].strip = strip;
        strip += of->strip_bytes;
    }
}

static int place_of(const chain *c, const pl_program *program, int instr)
{
    for (int i = 0; i < c->n_operands; i++)
        if (c->operands[i].instr == instr)
            return i;
    for (int i = c->n_operations - 1; i >= 0; i--)
        if (c->operations[i].instr == &program->instrs[instr])
            return c->n_operands + i;
    return -1;
}

static operation operation_of(const pl_program *program, const pl_instr *instr)
{
    operation o = {.instr = instr, .item_bytes = item_bytes_of(instr)};
    o.dtype = input_of(program, instr, instr->n_inputs - 1)->dtype;
    if (instr->kind == PL_INSTR_CAST) {
        o.cast = pl_cast_find(o.dtype, instr->dtype);
        return o;
    }
    o.op = by_op[instr->node->op->id];
    if (o.op == PL_ELEMENTWISE_add && instr->n_inputs == 3)
        o.op = PL_ELEMENTWISE_mul_add;
    o.kernel = pl_elementwise_find(o.op, o.dtype, 0);
    return o;
}

static int set_operations(chain *c, const pl_program *program, int number, pl_error *reterr)
{
    const pl_chain *of = &program->chains[number];
    for (int i = of->first; i <= of->last; i++) {
        const pl_instr *instr = &program->instrs[i];
        if (instr->chain != number)
            continue;
        operation o = operation_of(program, instr);
        if (!o.cast && !o.kernel)
            return pl_error_set(reterr, -ENOTSUP, "%s '%s': there is no kernel for dtype %s",
                                instr->node->op->name, instr->node->name,
                                pl_dtype_info_of(o.dtype)->name);
        for (int k = 0; k < instr->n_inputs; k++)
            o.places[k] = place_of(c, program, program->inputs[instr->first_input + k]);
        c->operations[c->n_operations++] = o;
    }
    return 0;
}

static size_t count_operands(const pl_program *program)
{
    int instrs[PL_CHAIN_OPERANDS_MAX];
    size_t n = 0;
    for (int i = 0; i < program->n_chains; i++)
        n += (size_t)pl_chain_operands(program, &program->chains[i], instrs);
    return n;
}

/* malloc() has small blocks at hand for each thread; calloc() bypasses them. */
static pl_strips *alloc_strips(const pl_program *program)
{
    size_t n_chains = (size_t)program->n_chains, n_instrs = (size_t)program->n_instrs;
    size_t n_operands = count_operands(program), n_places = PL_CHAIN_OPERANDS_MAX + n_instrs;
    size_t bytes = sizeof(pl_strips) + n_chains * sizeof(chain) + n_operands * sizeof(operand) +
                   n_instrs * sizeof(operation) + n_places * sizeof(char *);
    pl_strips *s = malloc(bytes);
    if (!s)
        return NULL;
    memset(s, 0, bytes);
    s->chains = (chain *)(s + 1);
    s->operands = (operand *)(s->chains + n_chains);
    s->operations = (operation *)(s->operands + n_operands);
    s->at = (const char **)(s->operations + n_instrs);
    return s;
}

int pl_strips_init(pl_frame *frame, pl_error *reterr)
{
    const pl_program *program = &frame->step->program;
    if (program->n_chains == 0)
        return 0;
    pthread_once(&by_op_once, fill_by_op);
    pl_strips *s = frame->strips = alloc_strips(program);
    int r = s ? 0 : -ENOMEM, n_operations = 0, n_operands = 0;
    for (int i = 0; r == 0 && i < program->n_chains; i++) {
        chain *c = &s->chains[i];
        c->operands = s->operands + n_operands;
        c->operations = s->operations + n_operations;
        set_operands(c, program, &program->chains[i], frame->scratch);
        r = set_operations(c, program, i, reterr);
        n_operands += c->n_operands;
        n_operations += c->n_operations;
    }
    return r;
}

void pl_strips_done(pl_frame *frame)
{
    free(frame->strips);
}

/* ---- once for each tile ---- */

/* The tile with its axes merged. */
typedef struct walk {
    int rank;
    int64_t extent[PL_RANK_MAX];
    int64_t count, row; /* elements in all, and of the innermost axis */
    bool by_rows;       /* no strip goes over the end of a row */
} walk;

/* Sets strides along the axes of the box: an operand of another box repeats along axes that it
 * lacks, or where it is 1. */
static void set_strides(pl_frame *frame, operand *o, const pl_region *out)
{
    const pl_instr *instr = &frame->step->program.instrs[o->instr];
    const pl_region *in = &frame->regions[instr->box];
    const pl_register *reg = &frame->registers[o->instr];
    int n_new = out->rank - in->rank;
    o->data = reg->data;
    for (int i = 0; i < out->rank; i++)
        o->strides[i] = i < n_new || in->extent[i - n_new] == 1 ? 0 : reg->strides[i - n_new];
}

/* Goes outermost first: drops axes of 1, and merges an axis into the next one if its stride
 * continues where that ends. Merges in place: writes only where it has already read. */
static walk merge_axes(chain *c, const pl_region *out)
{
    walk w = {.count = pl_region_count(out)};
    for (int i = 0; i < out->rank; i++) {
        if (out->extent[i] == 1)
            continue;
        int last = w.rank - 1;
        bool joins = last >= 0;
        for (int k = 0; joins && k < c->n_operands; k++)
            joins = c->operands[k].strides[last] == c->operands[k].strides[i] * out->extent[i];
        if (!joins)
            w.extent[last = w.rank++] = out->extent[i];
        else
            w.extent[last] *= out->extent[i];
        for (int k = 0; k < c->n_operands; k++)
            c->operands[k].strides[last] = c->operands[k].strides[i];
    }
    if (w.rank == 0)
        w.extent[w.rank++] = 1;
    w.row = w.extent[w.rank - 1];
    w.by_rows = w.rank == 1 || w.row >= PL_STRIPS_LONG_ROW;
    return w;
}

/* Returns whether it is contiguous (its elements `item_bytes` apart). */
static bool is_regular(const operand *o, const walk *w, int64_t item_bytes)
{
    for (int i = w->rank - 1; i >= 0; i--) {
        if (o->strides[i] != item_bytes)
            return false;
        item_bytes *= w->extent[i];
    }
    return true;
}

static way way_of(const operand *o, const walk *w)
{
    if (w->count == 1)
        return POINTED;
    if (w->by_rows)
        return o->strides[w->rank - 1] == 0 ? REPEATED : POINTED;
    if (is_regular(o, w, 0))
        return REPEATED;
    return is_regular(o, w, o->item_bytes) ? POINTED : COPIED;
}

/* No kernel takes only repeated operands, so the first is then copied. */
static void choose_ways(chain *c, const walk *w)
{
    for (int i = 0; i < c->n_operands; i++)
        c->operands[i].way = way_of(&c->operands[i], w);
    for (int i = 0; i < c->n_operations; i++) {
        const operation *o = &c->operations[i];
        int n_repeated = 0;
        for (int k = 0; k < o->instr->n_inputs; k++)
            n_repeated += o->places[k] < c->n_operands && c->operands[o->places[k]].way == REPEATED;
        if (n_repeated == o->instr->n_inputs)
            c->operands[o->places[0]].way = COPIED;
    }
}

static void choose_kernels(chain *c, const pl_program *program)
{
    for (int i = 0; i < c->n_operations; i++) {
        operation *o = &c->operations[i];
        unsigned repeated = 0;
        for (int k = 0; k < o->instr->n_inputs; k++) {
            bool once = o->places[k] < c->n_operands && c->operands[o->places[k]].way == REPEATED;
            repeated |= (unsigned)once << k;
            o->operand_bytes[k] = once ? 0 : item_bytes_of(input_of(program, o->instr, k));
        }
        if (!o->cast && repeated != o->repeated) {
            o->kernel = pl_elementwise_find(o->op, o->dtype, repeated);
            o->repeated = repeated;
        }
    }
}

/* A whole result becomes a register like others. */
static void set_outputs(pl_frame *frame, chain *c, const pl_region *out)
{
    const pl_program *program = &frame->step->program;
    for (int i = 0; i < c->n_operations; i++) {
        operation *o = &c->operations[i];
        bool is_last = o->instr == &program->instrs[program->n_instrs - 1];
        pl_register *reg = &frame->registers[o->instr - program->instrs];
        bool whole = o->instr->whole && !(is_last && frame->taker);
        o->to = is_last && frame->target ? frame->target : frame->scratch + o->instr->slot;
        o->step_bytes = whole ? o->item_bytes : 0;
        reg->data = o->to;
        pl_region_packed_strides(out, (size_t)o->item_bytes, reg->strides);
    }
}

static bool is_large(const pl_box *box, const pl_instr *instr)
{
    int64_t bytes = item_bytes_of(instr);
    for (int i = 0; i < box->shape.rank; i++)
        bytes *= box->shape.dims[i];
    return (uint64_t)bytes >= PL_LOOKAHEAD_VALUE_BYTES;
}

/* Returns whether it is read from a value's own memory. Data made or copied for this tile is cached
 * already. */
static bool is_of_value(const pl_frame *frame, int at)
{
    const pl_program *program = &frame->step->program;
    const pl_instr *instr = &program->instrs[at];
    while (instr->kind == PL_INSTR_VIEW || instr->kind == PL_INSTR_PACK) {
        if (instr->slot != PL_NO_SLOT && frame->registers[at].data == frame->scratch + instr->slot)
            return false;
        at = program->inputs[instr->first_input];
        instr = &program->instrs[at];
    }
    return instr->kind == PL_INSTR_LOAD && is_large(&program->boxes[instr->box], instr);
}

/* Chooses no streams for a single operation: it reads sequentially, and the processor prefetches
 * that. */
static void choose_streams(const pl_frame *frame, chain *c, const pl_chain *of, bool is_taken)
{
    const pl_program *program = &frame->step->program;
    const operation *last = &c->operations[c->n_operations - 1];
    bool is_result = last->instr == &program->instrs[program->n_instrs - 1] && frame->step->direct;
    int64_t strip_bytes = 0;
    c->ahead = (pl_lookahead){.n_operations = c->n_operations, .is_taken = is_taken};
    for (int i = 0; c->n_operations + is_taken > 1 && i < c->n_operands; i++) {
        const operand *o = &c->operands[i];
        if (o->way != POINTED || !is_of_value(frame, o->instr))
            continue;
        c->streams[c->ahead.n_streams++] = o;
        strip_bytes += of->strip * o->item_bytes;
    }
    if (c->ahead.n_streams > 0 && is_result && is_large(&program->boxes[0], last->instr)) {
        c->streams[c->ahead.n_streams++] = NULL;
        strip_bytes += of->strip * last->item_bytes;
    }
    pl_lookahead_set_piece(&c->ahead, of->strip, strip_bytes);
}

/* ---- strips ---- */

/* Returns the bytes from the operand's first element to the one at `position`. */
static int64_t offset_of(const operand *o, const walk *w, int64_t position)
{
    int64_t offset = 0;
    for (int i = w->rank - 1; i > 0 && position > 0; i--) {
        offset += position % w->extent[i] * o->strides[i];
        position /= w->extent[i];
    }
    return offset + position * o->strides[0];
}

static const char *element_at(const operand *o, const walk *w, int64_t position)
{
    return o->data + offset_of(o, w, position);
}

static void copy_strip(const operand *o, const walk *w, int64_t from, int64_t n)
{
    char *to = o->strip;
    int64_t stride = o->strides[w->rank - 1];
    while (n > 0) {
        int64_t left = w->row - from % w->row, some = left < n ? left : n;
        const char *data = element_at(o, w, from);
        if (stride == 0)
            pl_fill(to, some, data, (size_t)o->item_bytes);
        else
            memcpy(to, data, (size_t)(some * o->item_bytes));
        to += some * o->item_bytes;
        from += some;
        n -= some;
    }
}

static void set_operand_strips(const chain *c, const walk *w, int64_t from, int64_t n,
                               const char **at)
{
    for (int i = 0; i < c->n_operands; i++) {
        const operand *o = &c->operands[i];
        if (o->way == COPIED)
            copy_strip(o, w, from, n);
        at[i] = o->way == COPIED ? o->strip : element_at(o, w, from);
    }
}

/* Prefetches the memory one strip ahead along with the n elements at `from`; at the end of a tile,
 * the memory after it, which often is the next tile. */
static void begin_ahead(chain *c, const pl_chain *of, const walk *w, int64_t from, int64_t n)
{
    const operation *last = &c->operations[c->n_operations - 1];
    int64_t then = from + of->strip, n_calls = pl_lookahead_n_calls(&c->ahead, n);
    for (int i = 0; i < c->ahead.n_streams; i++) {
        const operand *o = c->streams[i];
        uintptr_t at = o ? (uintptr_t)o->data + (uintptr_t)offset_of(o, w, then)
                         : (uintptr_t)last->to + (uintptr_t)(then * last->step_bytes);
        pl_lookahead_stream_begin(&c->ahead.streams[i], at,
                                  n * (o ? o->item_bytes : last->item_bytes), n_calls);
    }
}

static int64_t strip_from(const pl_frame *frame, const pl_chain *of, const walk *w, int64_t from,
                          bool is_taken)
{
    int64_t left = w->by_rows ? w->row - from % w->row : w->count - from;
    int64_t n = left < of->strip ? left : of->strip;
    return is_taken ? frame->taker->limit(frame->taker->context, from, n) : n;
}

/* Runs n elements of a strip, from `begin` on. */
static inline void run_piece(const operation *o, const char **at, char *to, int64_t begin,
                             int64_t n)
{
    const char *a = at[o->places[0]] + begin * o->operand_bytes[0];
    to += begin * o->item_bytes;
    if (o->cast)
        o->cast(to, a, (size_t)n);
    else
        o->kernel(to, a, at[o->places[1]] + begin * o->operand_bytes[1],
                  at[o->places[2]] + begin * o->operand_bytes[2], (size_t)n);
}

static void run_pieces(const operation *o, const char **at, char *to, int64_t n,
                       pl_lookahead *ahead)
{
    for (int64_t begin = 0; begin < n; begin += ahead->piece) {
        pl_lookahead_ask(ahead);
        run_piece(o, at, to, begin, n - begin < ahead->piece ? n - begin : ahead->piece);
    }
}

static void run_strip(chain *c, const char **at, int64_t from, int64_t n)
{
    for (int i = 0; i < c->n_operations; i++) {
        const operation *o = &c->operations[i];
        char *to = o->to + from * o->step_bytes;
        if (c->ahead.n_streams == 0)
            run_piece(o, at, to, 0, n);
        else
            run_pieces(o, at, to, n, &c->ahead);
        at[c->n_operands + i] = to;
    }
}

void pl_strips_run(pl_frame *frame, int number)
{
    const pl_program *program = &frame->step->program;
    const pl_chain *of = &program->chains[number];
    const pl_region *out = &frame->regions[of->box];
    chain *c = &frame->strips->chains[number];
    const char **at = frame->strips->at;
    bool is_taken = frame->taker && of->last == program->n_instrs - 1;
    for (int i = 0; i < c->n_operands; i++)
        set_strides(frame, &c->operands[i], out);
    walk w = merge_axes(c, out);
    choose_ways(c, &w);
    choose_kernels(c, program);
    set_outputs(frame, c, out);
    choose_streams(frame, c, of, is_taken);
    for (int64_t from = 0, n; from < w.count; from += n) {
        n = strip_from(frame, of, &w, from, is_taken);
        set_operand_strips(c, &w, from, n, at);
        if (c->ahead.n_streams > 0)
            begin_ahead(c, of, &w, from, n);
        run_strip(c, at, from, n);
        if (!is_taken)
            continue;
        pl_lookahead_ask(&c->ahead);
        frame->taker->take(frame->taker->context, at[c->n_operands + c->n_operations - 1], from, n);
    }
}
