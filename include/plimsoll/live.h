/* SPDX-License-Identifier: Apache-2.0 */
/* What is live in a runtime, and what it takes: for finding out who holds memory.
 *   entry   a tensor that somebody has, the value of a constant or variable, a session that is not
 *           closed, or a run that is under way
 *   name    of a constant or variable its node's; of a tensor that a run gave, its node's too; of
 *           others, what they were called when they were made. Of a session, "session 1"
 *   scope   the beginning of a name, up to its last '/'; of a file there is none
 *   shared  its bytes are those of another entry, and counted there: a view, a tensor that is also
 *           a variable
 *
 *   the total of a scope = sum of bytes of its tensors, constants and variables that are not shared
 *
 * A list is how things were when it was made, and the caller's. Making one is safe from any thread,
 * while others run; what begins or ends meanwhile may or may not be in it. */
#ifndef PLIMSOLL_LIVE_H
#define PLIMSOLL_LIVE_H

#include "plimsoll/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum pl_live_kind {
    PL_LIVE_VARIABLE,
    PL_LIVE_CONSTANT,
    PL_LIVE_TENSOR,
    PL_LIVE_SESSION, /* bytes: of its variables */
    PL_LIVE_RUN,     /* bytes: the most that it will claim; 0 while it is being planned */
} pl_live_kind;

typedef enum pl_live_where {
    PL_LIVE_NOWHERE, /* sessions and runs */
    PL_LIVE_MEMORY,
    PL_LIVE_SPILL, /* moved out: it comes back when it is used */
    PL_LIVE_FILE,  /* a window on a file of the user's */
} pl_live_where;

typedef struct pl_live_entry {
    pl_live_kind kind;
    pl_live_where where;
    const char *name;
    const char *scope; /* "": none */
    uint64_t session;  /* its number: of a session, run or variable; else 0 */
    pl_dtype dtype;    /* of elements; PL_DTYPE_NONE for sessions and runs */
    pl_shape shape;
    uint64_t bytes;
    bool shared;
    bool pinned;             /* in memory because somebody uses it now */
    int n_refs;              /* how often it would have to be given back */
    const pl_tensor *tensor; /* which one, to compare with: it may be gone; NULL: not one */
} pl_live_entry;

typedef struct pl_live_total {
    const char *scope;
    int n; /* entries that are counted */
    uint64_t memory_bytes, spill_bytes, file_bytes;
} pl_live_total;

typedef struct pl_live pl_live;

/* What is in a scope ("loss": all whose names begin with "loss/"; "" or NULL: everything). Ordered
 * by kind, scope and name. -ENOMEM; -ECHILD for the runtime of another process. */
PL_API PL_MUST_CHECK int pl_live_new(pl_runtime *runtime, const char *scope, pl_live **ret_live,
                                     pl_error *reterr);
PL_API void pl_live_free(pl_live *live); /* NULL is allowed */

PL_API int pl_live_n_entries(const pl_live *live);
PL_API const pl_live_entry *pl_live_entry_at(const pl_live *live, int i); /* NULL past the end */

/* By scope, in the order of their names. */
PL_API int pl_live_n_totals(const pl_live *live);
PL_API const pl_live_total *pl_live_total_at(const pl_live *live, int i);

/* A table for people, or JSON: to free(). NULL for want of memory. */
PL_API char *pl_live_text(const pl_live *live, bool as_json);

#ifdef __cplusplus
}
#endif
#endif
