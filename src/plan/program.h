/* SPDX-License-Identifier: Apache-2.0 */
/* Programs: the instructions that compute one tile of a step.
 *   box       a region that is needed: the step's own tile (box 0), or the part of an input that
 *             another box needs. Its place is known only once the tile is
 *   bound     extents that the box never exceeds, whichever the tile
 *   instr     makes one register: the elements of one box. Inputs come before their users
 *   register  a pointer and strides; its bytes are in a slot, or in a value that is in memory
 *   slot      a place in the worker's scratch, shared by registers that are not needed at the same
 *             time
 *   packed    the register's elements lie one after the other
 *   chain     elementwise instructions of one box that run together when the last of them is due,
 *             over strips so short that all of a chain's strips stay in the first-level cache
 *   operand   a register that a chain reads and does not make
 *   whole     said of a chain's register that instructions outside it read: it has a slot for its
 *             whole box; the others have a slot for a strip
 *
 * Nodes whose boxes are always the same share one: a chain of elementwise ops has a single box, and
 * its regions are computed once for each tile. One thread makes a program; after that it is
 * read-only. */
#ifndef PL_PLAN_PROGRAM_H
#define PL_PLAN_PROGRAM_H

#include "graph/node.h"
#include "tensor/region.h"

typedef enum pl_instr_kind {
    PL_INSTR_LOAD,        /* reads a value where it lies, or from disk into the slot */
    PL_INSTR_GENERATE,    /* packed: fill, range, random */
    PL_INSTR_VIEW,        /* the input's pointer with other strides */
    PL_INSTR_PACK,        /* the input, packed: as it is, or copied into the slot */
    PL_INSTR_ELEMENTWISE, /* from here on: packed, of packed inputs, but see pl_takes_strides() */
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
    int earlier;               /* the previous register of the same node; -1: none */
    uint64_t slot, slot_bytes; /* offset in the scratch, or PL_NO_SLOT */
    uint64_t work;             /* after the register in the slot: extra room for ROW and MOVE */
    int chain;                 /* -1: none */
    int strip;                 /* of one in a chain, its number there; -1: none */
    bool whole;                /* of one in a chain */
    bool lazy;                 /* of a pack: only chains read it, which read rows in place */
} pl_instr;

enum { PL_CHAIN_OPERANDS_MAX = 16 };

typedef struct pl_chain {
    int box, first, last;    /* instructions; those in between that belong to it name it */
    int n_strips;            /* of its registers, but those that are whole */
    int item_bytes;          /* of the largest element in it */
    int64_t strip;           /* elements; from here on: the layout's */
    uint64_t strip_bytes;    /* of each slot for a strip */
    uint64_t operand_strips; /* where operands have theirs, one after the other */
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

/* The values that a program reads, by number of the node. */
typedef struct pl_program_context {
    const pl_shape *shapes;
    const bool *stored; /* is a value: loaded, not computed */
    const bool *dense;  /* the same, and its elements are contiguous, so that reshapes are free */
    int *newest;        /* scratch for the builder: all -1 before and after */
} pl_program_context;

/* Builds a program that computes `node` in box 0, even if it is stored; or, with `as_input`, its
 * value as part of another node's step, packed. Fails with -ENOMEM, or -ENOTSUP for an op that
 * cannot run. */
PL_MUST_CHECK int pl_program_build(pl_program *program, const pl_program_context *context,
                                   const pl_node *node, bool as_input, pl_error *reterr);
void pl_program_done(pl_program *program);

/* Returns the dtype that the op is computed in: its node's, or f32 for halves. */
pl_dtype pl_program_compute_dtype(pl_dtype dtype);

/* Where a loaded value lies; by number of its node. */
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
    PL_RESULT_DISK,   /* whole, with room to lie in its page as in the file */
    PL_RESULT_DIRECT, /* written straight to its place: it has no slot */
    PL_RESULT_STRIPS, /* only strips of it are needed, one after the other */
} pl_result;

/* Sets all bounds and slots for tiles of at most `extent`. *ret_bytes is the scratch that a worker
 * needs, a multiple of 64; UINT64_MAX if it overflows. Fails with -ENOMEM. */
PL_MUST_CHECK int pl_program_layout(pl_program *program, const pl_shape *shapes,
                                    const int64_t *extent, pl_result result,
                                    pl_program_residence *residence, const void *context,
                                    uint64_t *ret_bytes);

/* Returns whether a row op is computed along columns, its axis not being the last. Otherwise its
 * rows are transposed. */
bool pl_row_goes_by_columns(const pl_node *row);

/* Returns whether the op reads this input in place, with strides. Other inputs are packed. */
bool pl_takes_strides(const pl_node *node, int i);

/* Returns whether every region of these extents is contiguous in the shape. */
bool pl_is_in_one_piece(const pl_shape *shape, const int64_t *extent);

/* ---- chain.c ---- */

/* Finds all chains of a program that is otherwise complete. Fails with -ENOMEM. */
PL_MUST_CHECK int pl_program_find_chains(pl_program *program);

/* Lists the operands of a chain, in a fixed order; returns how many. */
int pl_chain_operands(const pl_program *program, const pl_chain *chain,
                      int operands[PL_CHAIN_OPERANDS_MAX]);

/* Returns whether this operand may have to be copied, strip by strip. It then has a slot for
 * that. */
bool pl_chain_may_copy(const pl_program *program, const pl_chain *chain, int operand);

/* Sets strips and their slots, from offset `base`. Returns the offset where they end. */
uint64_t pl_chain_layout(pl_program *program, int chain, uint64_t base, pl_result result);

/* The largest extents that input `i` of the node can be asked for. */
pl_region pl_bound_of_input(const pl_node *node, const pl_shape *shapes, const pl_region *bound,
                            int i);

#endif
