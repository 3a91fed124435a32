/* SPDX-License-Identifier: Apache-2.0 */
/* Programs: what computes one tile of a step.
 *   box       a region that is needed: of the step's own tile (box 0), or of what an input must
 *             give for another box. Which elements it has is known only when the tile is
 *   bound     extents that no box of this kind ever passes, whichever the tile
 *   instr     makes one register: elements of one box. Inputs come before what uses them
 *   register  a pointer and strides; its bytes are in a slot, or in a value that is in memory
 *   slot      a place in the worker's scratch; shared by registers that are not needed at once
 *   packed    the register's elements lie one after the other
 *   chain     elementwise instructions of one box, run together when the last of them is due: over
 *             strips, so short that all of a chain's stay in the first-level cache
 *   operand   a register that a chain reads and does not make
 *   whole     a chain's register that others read: it has a slot for all of its box, the others
 *             have one for a strip
 *
 * Nodes whose boxes are always the same share one: a chain of elementwise ops has a single box, and
 * its regions are computed once for each tile. Made by one thread, and then only read. */
#ifndef PL_PLAN_PROGRAM_H
#define PL_PLAN_PROGRAM_H

#include "graph/node.h"
#include "tensor/region.h"

typedef enum pl_instr_kind {
    PL_INSTR_LOAD,        /* of a value: where it lies, or read from disk into the slot */
    PL_INSTR_GENERATE,    /* packed: fill, range, random */
    PL_INSTR_VIEW,        /* the input's pointer with other strides */
    PL_INSTR_PACK,        /* the input, packed: as it is, or copied into the slot */
    PL_INSTR_ELEMENTWISE, /* all that follow: packed, of inputs that are: but pl_takes_strides() */
    PL_INSTR_CAST,
    PL_INSTR_MOVE, /* concat, pad, tile, gather, one_hot, and reshapes of nodes that are not values */
    PL_INSTR_ROW,
    PL_INSTR_MATMUL,
    PL_INSTR_INSIDE, /* part of another instruction: nothing is left to do */
} pl_instr_kind;

#define PL_NO_SLOT UINT64_MAX

typedef struct pl_instr {
    pl_instr_kind kind;
    const pl_node *node; /* that it computes; of a cast or pack, that it is for */
    pl_dtype dtype;      /* of the register */
    int box;
    int first_input, n_inputs; /* in the program's inputs */
    int value;                 /* of a load: the number of the value's node */
    int earlier;               /* the one before of the same node; -1: none */
    uint64_t slot, slot_bytes; /* offset in the scratch, or PL_NO_SLOT */
    uint64_t work;             /* behind the register in the slot: what ROW and MOVE need beside */
    int chain;                 /* -1: none */
    int strip;                 /* of one in a chain, its number there; -1: none */
    bool whole;                /* of one in a chain */
    bool lazy;                 /* of a pack: only chains read it, which take rows where they lie */
} pl_instr;

enum { PL_CHAIN_OPERANDS_MAX = 16 };

typedef struct pl_chain {
    int box, first, last;    /* instructions; those between that belong to it name it */
    int n_strips;            /* of its registers, but those that are whole */
    int item_bytes;          /* of the largest element in it */
    int64_t strip;           /* elements; from here on: the layout's */
    uint64_t strip_bytes;    /* of each slot for a strip */
    uint64_t operand_strips; /* where operands have theirs, one behind the other */
} pl_chain;

typedef struct pl_box {
    int parent; /* -1: the tile itself */
    const pl_node *node;
    int input;       /* of the node, that this is a box of */
    pl_shape shape;  /* that it lies in */
    pl_region bound; /* extents only */
} pl_box;

typedef struct pl_program {
    pl_instr *instrs;
    int *inputs;
    pl_box *boxes;
    pl_chain *chains;
    int n_instrs, n_inputs, n_boxes, n_chains;
    int room_instrs, room_inputs, room_boxes;
    bool transposes; /* some axis comes to lie elsewhere: square tiles then */
} pl_program;

/* The values around a program; by number of the node. */
typedef struct pl_program_context {
    const pl_shape *shapes;
    const bool *stored; /* is a value: loaded, not computed */
    const bool *dense;  /* and its elements lie one after the other: reshapes are free */
    int *newest;        /* scratch for the builder: all -1 before and after */
} pl_program_context;

/* Computes `node` (a root: computed although it is stored) in box 0; or, `as_input`, its value as
 * part of another's step, packed. -ENOMEM; -ENOTSUP for an op that cannot be run. */
PL_MUST_CHECK int pl_program_build(pl_program *program, const pl_program_context *context,
                                   const pl_node *node, bool as_input, pl_error *reterr);
void pl_program_done(pl_program *program);

/* The dtype that the op is computed in: that of its node, or f32 for halves. */
pl_dtype pl_program_compute_dtype(pl_dtype dtype);

/* Where a value is that is loaded; by number of its node. */
typedef enum pl_residence {
    PL_IN_MEMORY, /* pointed at: it has no slot */
    PL_DENSE,     /* the same, and its elements lie one after the other */
    PL_ON_DISK,   /* read into the slot, where it is packed */
    PL_PERMUTED,  /* the same, but its axes are in another order there */
} pl_residence;
typedef pl_residence pl_program_residence(const void *context, int value);

/* Where the last register goes. */
typedef enum pl_result {
    PL_RESULT_WHOLE,
    PL_RESULT_DISK,   /* whole, with room to lie as in its file does */
    PL_RESULT_DIRECT, /* written to where it belongs: it has no slot */
    PL_RESULT_STRIPS, /* only strips of it are needed, one after the other */
} pl_result;

/* Sets all bounds and slots for tiles of at most `extent`. *ret_bytes is the scratch that a worker
 * needs, a multiple of 64; UINT64_MAX if that cannot be counted. -ENOMEM. */
PL_MUST_CHECK int pl_program_layout(pl_program *program, const pl_shape *shapes,
                                    const int64_t *extent, pl_result result,
                                    pl_program_residence *residence, const void *context,
                                    uint64_t *ret_bytes);

/* Is a row op computed along columns, where its axis is not the last? Else its rows are turned. */
bool pl_row_goes_by_columns(const pl_node *row);

/* Does the op read this input where it lies, with strides? Others find theirs packed. */
bool pl_takes_strides(const pl_node *node, int i);

/* Does every region of these extents lie in one piece in the shape? */
bool pl_is_in_one_piece(const pl_shape *shape, const int64_t *extent);

/* ---- chain.c ---- */

/* Finds all chains of a program that is otherwise complete. -ENOMEM. */
PL_MUST_CHECK int pl_program_find_chains(pl_program *program);

/* The operands of a chain, in a fixed order; returns how many. */
int pl_chain_operands(const pl_program *program, const pl_chain *chain,
                      int operands[PL_CHAIN_OPERANDS_MAX]);

/* May this operand have to be copied, strip by strip? Then it has a slot for that. */
bool pl_chain_may_copy(const pl_program *program, const pl_chain *chain, int operand);

/* Sets strips and their slots, from `base` on. Returns where they end. */
uint64_t pl_chain_layout(pl_program *program, int chain, uint64_t base, pl_result result);

/* The largest extents that input `i` of the node can be asked for. */
pl_region pl_bound_of_input(const pl_node *node, const pl_shape *shapes, const pl_region *bound,
                            int i);

#endif
