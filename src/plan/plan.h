/* SPDX-License-Identifier: Apache-2.0 */
/* Plans: the steps in which a graph runs, where each value lies, and how much memory that takes.
 *   value    a node's elements as a whole: given from outside, or made by a step
 *   step     makes one value, tile by tile; other nodes are computed inside it, and never exist
 *            whole
 *   place    where a value lies: in memory, or on disk, from which it is read as needed
 *   kept     outlives the run: a value that was fetched, or assigned to a variable
 *   scratch  the memory of a step besides values: some for each worker, and some that workers share
 *   ahead    an extra worker beyond the number of threads, in a step that reads or writes files:
 *            while one waits for the disk, another computes. The first thing dropped when the
 *            budget is short
 *   own      values in memory that the run made before its plan
 *   peak     the most memory that the run claims, including own values and values from outside that
 *            it pins
 *   library  the memory that BLAS takes for itself, and never frees. The budget always includes it,
 *            whether resident already or not, so that a plan does not depend on earlier products.
 *            The resident part is not claimed again, and does not count towards the peak
 *
 *   peak <= fitted = own + max over steps of (values in memory at that step + its scratch
 *                                             + its library) <= budget
 *
 * Plans are made from descriptions alone: no clock, no globals, and no I/O except that a device may
 * be queried. The same inputs give the same plan. A plan is constant once made. */
#ifndef PL_PLAN_PLAN_H
#define PL_PLAN_PLAN_H

#include "plan/program.h"
#include "tensor/spill.h"

typedef enum pl_place {
    PL_PLACE_MEMORY,
    PL_PLACE_SPILL,  /* the spill file; of a value from outside: wherever it is, read in parts */
    PL_PLACE_FILE,   /* the .npy file that the caller named */
    PL_PLACE_DEVICE, /* the device whose steps make and read it */
} pl_place;

/* A value from outside: of a placeholder, constant, variable or file. */
typedef struct pl_plan_source {
    const pl_node *node;
    pl_shape shape;
    bool resident;  /* in memory now, so that pinning it costs nothing more */
    bool permuted;  /* its axes lie in another order */
    bool swapped;   /* namely the last two, and no others */
    bool scattered; /* neither permuted nor dense: it must be pinned to be read */
    /* The object that is pinned with it: the whole value that it is a view of, or for a small one,
     * the slab that it shares. NULL: it is pinned alone. */
    const void *holder;
    uint64_t holder_bytes;
    bool own; /* its holder is part of the request's own_bytes */
} pl_plan_source;

typedef struct pl_plan_fetch {
    const pl_node *node;
    bool to_file;
} pl_plan_fetch;

/* A device other than the CPU, with what it reports about itself, which never changes. `context` is
 * passed to the functions. */
typedef struct pl_plan_device {
    const char *name; /* "/GPU:0" */
    uint64_t budget_bytes;
    uint64_t largest_bytes; /* of one buffer */
    bool unified;           /* its memory is the host's, so its buffers are claimed here, too */
    /* Returns whether it can run the node, which is elementwise or a product. */
    bool (*takes)(const void *context, const pl_node *node);
    /* Returns the memory that a product of m x k and k x n needs besides its matrices. May have to
     * open the device, so it can fail. */
    int (*workspace)(const void *context, const pl_node *node, int64_t m, int64_t n, int64_t k,
                     uint64_t *ret_bytes, pl_error *reterr);
    const void *context;
} pl_plan_device;

typedef struct pl_plan_request {
    const pl_graph *graph;
    const pl_plan_fetch *fetches;
    int n_fetches;
    const pl_plan_source *sources;
    int n_sources;
    uint64_t budget_bytes;
    uint64_t own_bytes;  /* that the run has in memory, to its end: part of its peak */
    pl_spill_room disk;  /* for what is spilled */
    uint64_t slab_bytes; /* the slab size for kept values of up to small_bytes; 0: no slabs */
    uint64_t small_bytes;
    /* The workspace of BLAS for each worker of a product with this many rows; a pure function.
     * NULL: BLAS is not used. */
    uint64_t (*library_bytes)(pl_dtype dtype, int64_t rows);
    uint64_t library_there_bytes; /* that BLAS has already: not claimed again */
    const pl_plan_device *devices;
    int n_devices;
    bool strict;          /* placement */
    uint64_t cache_bytes; /* that a worker's scratch should fit; 0: 256 KiB */
    int n_threads;
} pl_plan_request;

typedef enum pl_step_kind {
    PL_STEP_TILES,     /* tiles of the result, each on its own */
    PL_STEP_REDUCE,    /* tiles of the input, folded */
    PL_STEP_LONG_ROWS, /* tiles of the input, along rows that do not fit: see long_rows.h */
    PL_STEP_MATMUL,    /* a product of matrices as a whole: see product.h */
    PL_STEP_DEVICE,    /* tiles of the result, on a device: see device_work.h */
} pl_step_kind;

typedef struct pl_plan_value {
    const pl_node *node;
    uint64_t bytes;
    pl_place place;
    bool from_outside, kept, permuted, swapped, scattered;
    bool resident;      /* from outside, and in memory when the run begins */
    bool own;           /* the same, and counted whether a step uses it or not */
    bool saved;         /* from outside, to be saved to a file, and pinned to be written there */
    const void *holder; /* of one from outside, as in its source */
    uint64_t holder_bytes;
    int born, last_use; /* steps; born -1: from outside; else last_use is n_steps if it is kept */
} pl_plan_value;

/* Returns whether it comes into memory for the run. It then stays from its first use to its
 * last. */
static inline bool pl_value_arrives(const pl_plan_value *value)
{
    return value->from_outside && !value->resident && value->place == PL_PLACE_MEMORY;
}

typedef struct pl_product pl_product;

typedef struct pl_step {
    const pl_node *node;
    int value; /* that it makes */
    pl_step_kind kind;
    struct pl_device_work *work; /* of PL_STEP_DEVICE, which has no program */
    pl_program program;          /* of the result; of a reduction or long rows, of its input */
    int64_t extent[PL_RANK_MAX]; /* of a tile, in the shape of the program's box 0 */
    int64_t n_tiles;
    int n_chunks;      /* of a reduction: parts that each result is made of, if several */
    bool direct;       /* tiles are written where they belong */
    bool folds_strips; /* of a reduction: its input is never whole, not even a tile of it */
    int n_workers;
    int n_ahead;            /* extra workers, because this many wait for the disk */
    uint64_t worker_bytes;  /* scratch of each: of the program, then `tile_bytes` */
    uint64_t tile_bytes;    /* of a reduction or long rows: state and results of one tile */
    uint64_t shared_bytes;  /* of a reduction in chunks: their partials; of a product: all */
    uint64_t library_bytes; /* of all workers */
    uint64_t stash_bytes;   /* of long rows: what each worker puts on disk temporarily */
    uint64_t whole_bytes;   /* of long rows: the least scratch in which whole rows would fit */
    pl_product *product;    /* may be NULL, and is only used by a step of that kind */
    int *uses;              /* values that it reads */
    int n_uses;
    const char *why;         /* why it is a step of its own */
    const pl_node *why_node; /* may be NULL */
    uint64_t peak_bytes;     /* during it */
    uint64_t disk_bytes;     /* spilled by its end */
    double flops;
} pl_step;

typedef enum pl_fallback_why {
    PL_FALLBACK_MISSING, /* there is no such device */
    PL_FALLBACK_OP,      /* it cannot run the op */
    PL_FALLBACK_ROOM,    /* its budget is too small for the smallest tile */
} pl_fallback_why;

/* Nodes that were placed elsewhere but are computed on the CPU, all for one reason. */
typedef struct pl_fallback {
    const pl_node *node; /* the first */
    int n_nodes;
    pl_fallback_why why;
    uint64_t needed_bytes, budget_bytes; /* of PL_FALLBACK_ROOM: of its first node */
} pl_fallback;

typedef struct pl_plan {
    int n_nodes;
    uint8_t *device_of; /* by number of the node: 0 is the CPU, then the request's. NULL: none
                           was placed elsewhere than on the CPU */
    pl_fallback *fallbacks;
    int n_fallbacks;
    bool displaced;   /* while it is made: a step was too large for its device, choose again */
    pl_shape *shapes; /* by number of the node */
    int *value_of;    /* by number of the node; -1: it has none */
    const int *order; /* while it is made: nodes of the steps; NULL: in the order of nodes */
    pl_plan_value *values;
    int n_values;
    pl_step *steps;
    int n_steps;
    uint64_t budget_bytes;
    uint64_t
        end_bytes; /* claimed when the steps are done, and results not yet in files are written */
    uint64_t peak_bytes;
    uint64_t fitted_bytes; /* the peak if BLAS had nothing yet: the number that was fitted */
    uint64_t disk_bytes;
    /* If the plan is refused: a budget that would do, as far as one plan can know, and the node
     * that decides it, or NULL. */
    uint64_t least_bytes;
    const pl_node *refused;
    double flops;
} pl_plan;

/* Makes a plan. Fails with PL_EBUDGET if nothing fits, with the op that decides and the smallest
 * budget that would do (to a 64th, found by planning for other budgets, unless there are more than
 * 1000 steps); -ENOSPC, with the disk space; -ENOTSUP for an op that sessions cannot run; -EINVAL
 * for shapes that do not fit, or a node that was not fed; -ENODEV or -ENOTSUP if strict placement
 * is impossible; -ENOMEM. */
PL_MUST_CHECK int pl_plan_new(const pl_plan_request *request, pl_plan **ret_plan, pl_error *reterr);

/* NULL is allowed. */
void pl_plan_free(pl_plan *plan);

/* Returns a table, or JSON, which the caller frees with free(). NULL if out of memory. */
char *pl_plan_explain(const pl_plan *plan, bool as_json);

/* ---- between the files of this folder ---- */

/* choose.c: chooses which nodes are values, and why. `plan` has shapes; adds values and steps. */
PL_MUST_CHECK int pl_plan_choose(pl_plan *plan, const pl_plan_request *request, pl_error *reterr);

/* Workers on a step: how many at a time, and how many ahead of them. */
typedef struct pl_step_workers {
    int n_workers;
    bool ahead;
} pl_step_workers;

/* tiles.c: cuts a step into tiles at a level: 0 is best, and each further level about halves them.
 * *ret_bytes is what scratch and library claim. Returns 1; 0 if there is no smaller level; -ENOMEM,
 * or an error of the step's device. */
PL_MUST_CHECK int pl_step_tiles(pl_plan *plan, pl_step *step, const pl_plan_request *request,
                                int level, pl_step_workers workers, uint64_t *ret_bytes,
                                pl_error *reterr);

/* More would only queue at the disk. */
enum { PL_STEP_AHEAD_MAX = 8 };

/* The number of workers, including those ahead. */
static inline int pl_step_n_frames(const pl_step *step)
{
    return step->n_workers + step->n_ahead;
}

/* Returns whether a step only moves elements from memory to memory. It is then cut so that both
 * sides have long rows: moves.c. */
bool pl_step_only_moves(const pl_plan *plan, const pl_step *step);
void pl_cut_move(const pl_step *step, int level, int64_t *extent);

/* fit.c: chooses places of values and levels of steps so that all fits. */
PL_MUST_CHECK int pl_plan_fit(pl_plan *plan, const pl_plan_request *request, pl_error *reterr);

#endif
