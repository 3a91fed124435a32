/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory this process and its children can really have.
 *   source      somebody who sets a limit: a cgroup, the machine, an rlimit, an environment
 *               variable, the user
 *   true limit  the smallest of what the system's sources let us have, now
 *   reserve     kept free below the true limit, for requests that cannot safely be refused
 *   line        what may be claimed
 *
 *   line = true limit - reserve, or the user's request where that is smaller
 *
 * Swap is not counted: a program that swaps its tensors is as good as stopped. Never allocates. */
#ifndef PLIMSOLL_BUDGET_H
#define PLIMSOLL_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plimsoll/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Enough to format a traceback, let a cell fail and go on, with NumPy, pandas and torch loaded:
 * measured in 54 runs under a 1 GiB cgroup. A budget under eight times this gives an eighth. */
#define PL_BUDGET_RESERVE_BYTES (UINT64_C(80) << 20)

/* A line below this is refused: a Python with nothing imported has 8 MiB resident. */
#define PL_BUDGET_MIN_BYTES (UINT64_C(16) << 20)

enum { PL_BUDGET_SOURCES = 40 };

typedef struct pl_budget_source {
    char name[64];    /* "cgroup v2", "MemAvailable", "RLIMIT_AS", "MEM_LIMIT", "request" ... */
    char detail[256]; /* the file, variable or option: printable ASCII, and the tail of a long path
                       */
    bool present;     /* false: asked, and it sets no limit. The numbers are then 0 */
    uint64_t bytes;   /* what it lets us have, now */
    uint64_t limit_bytes; /* its limit before what others use is taken off */
} pl_budget_source;

typedef struct pl_budget {
    uint64_t true_limit_bytes; /* 0: no source of the system could be read */
    uint64_t reserve_bytes;
    uint64_t line_bytes;
    bool cut;     /* the request was larger than the true limit less the reserve */
    int tightest; /* the source that sets the true limit; -1: none */
    int decisive; /* the source that sets the line: the tightest one or the request */
    int n_sources;
    pl_budget_source sources[PL_BUDGET_SOURCES];
} pl_budget;

typedef struct pl_budget_options {
    size_t size;              /* of this struct, as it was compiled; 0: as in 0.1: libplimsoll(3) */
    const char *root;         /* stands before every path; NULL = the real system */
    const char *request_text; /* "2G", or "80%" of the true limit; NULL = as much as there is */
    uint64_t reserve_bytes;   /* 0 = PL_BUDGET_RESERVE_BYTES, or an eighth if that is less */
} pl_budget_options;

/* Asks every source. `options` may be NULL. PL_EFORMAT for a request that is no size; PL_EBUDGET
 * when less than PL_BUDGET_MIN_BYTES would be left. */
PL_API PL_MUST_CHECK int pl_budget_discover(const pl_budget_options *options, pl_budget *ret_budget,
                                            pl_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
