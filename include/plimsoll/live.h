/* SPDX-License-Identifier: Apache-2.0 */
/* Lists all live objects of a runtime with their sizes, to find out what holds memory.
 *   entry   a tensor that somebody has, the value of a constant or variable, a session that is not
 *           closed, or a run in progress
 *   name    for a constant, a variable or a tensor from a run, its node's; for other tensors, the
 *           name they were made with; for a session, "session 1"
 *   scope   the beginning of a name, up to its last '/'; a file has no scope
 *   shared  its bytes belong to another entry, and are counted there: a view, a tensor that is also
 *           a variable
 *
 *   the total of a scope = sum of bytes of its tensors, constants and variables that are not shared
 *
 * A list is a snapshot, owned by the caller. Making one is safe from any thread, while others run;
 * objects that begin or end meanwhile may or may not be in it. */
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
    PL_LIVE_SESSION, /* bytes: its variables */
    PL_LIVE_RUN,     /* bytes: the most it will claim; 0 while it is being planned */
} pl_live_kind;

typedef enum pl_live_where {
    PL_LIVE_NOWHERE, /* sessions and runs */
    PL_LIVE_MEMORY,
    PL_LIVE_SPILL, /* on disk: read back when it is used */
    PL_LIVE_FILE,  /* a window on a user's file */
} pl_live_where;

typedef struct pl_live_entry {
    pl_live_kind kind;
    pl_live_where where;
    const char *name;
    const char *scope; /* "": none */
    uint64_t session;  /* the number of the session, of a session, run or variable; else 0 */
    pl_dtype dtype;    /* PL_DTYPE_NONE for sessions and runs */
    pl_shape shape;
    uint64_t bytes;
    bool shared;
    bool pinned;             /* in memory because it is in use */
    int n_refs;              /* references that are held */
    const pl_tensor *tensor; /* only for comparing: it may have been freed; NULL: not a tensor */
} pl_live_entry;

typedef struct pl_live_total {
    const char *scope;
    int n; /* number of entries counted */
    uint64_t memory_bytes, spill_bytes, file_bytes;
} pl_live_total;

typedef struct pl_live pl_live;

/* Lists a scope ("loss": all names that begin with "loss/"; "" or NULL: everything), ordered by
 * kind, scope and name. -ENOMEM; -ECHILD if the runtime belongs to another process. */
PL_API PL_MUST_CHECK int pl_live_new(pl_runtime *runtime, const char *scope, pl_live **ret_live,
                                     pl_error *reterr);
PL_API void pl_live_free(pl_live *live); /* NULL is allowed */

PL_API int pl_live_n_entries(const pl_live *live);
PL_API const pl_live_entry *pl_live_entry_at(const pl_live *live, int i); /* NULL past the end */

/* Totals by scope, sorted by name. */
PL_API int pl_live_n_totals(const pl_live *live);
PL_API const pl_live_total *pl_live_total_at(const pl_live *live, int i);

/* Returns a table for people, or JSON, to free(). NULL if out of memory. */
PL_API char *pl_live_text(const pl_live *live, bool as_json);

#ifdef __cplusplus
}
#endif
#endif
