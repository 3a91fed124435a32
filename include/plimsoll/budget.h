/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory this process and its children can really use.
 *   source      something that sets a limit: a cgroup, the machine, an rlimit, an environment
 *               variable, the user
 *   true limit  the smallest amount that the system's sources leave now
 *   reserve     memory kept free below the true limit, for requests that cannot safely be refused
 *   line        the most that may be claimed
 *
 *   line = true limit - reserve, or the user's request if that is smaller
 *
 * Swap is not counted: a program whose tensors are swapped out barely runs. Never allocates. */
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
 * measured in 54 runs under a 1 GiB cgroup. A budget below eight times this reserves an eighth. */
#define PL_BUDGET_RESERVE_BYTES (UINT64_C(80) << 20)

/* A line below this is refused: a Python with nothing imported has 8 MiB resident. */
#define PL_BUDGET_MIN_BYTES (UINT64_C(16) << 20)

enum { PL_BUDGET_SOURCES = 40 };

typedef struct pl_budget_source {
    char name[64];    /* "cgroup v2", "MemAvailable", "RLIMIT_AS", "MEM_LIMIT", "request" ... */
    char detail[256]; /* the file, variable or option: printable ASCII, and the tail of a long path
                       */
    bool present;     /* false: it sets no limit, and the numbers are 0 */
    uint64_t bytes;   /* what it leaves now */
    uint64_t limit_bytes; /* its limit, before subtracting what others use */
} pl_budget_source;

typedef struct pl_budget {
    uint64_t true_limit_bytes; /* 0: no source of the system could be read */
    uint64_t reserve_bytes;
    uint64_t line_bytes;
    bool cut;     /* the request exceeded the true limit less the reserve */
    int tightest; /* the source that sets the true limit; -1: none */
    int decisive; /* the source that sets the line: the tightest one or the request */
    int n_sources;
    pl_budget_source sources[PL_BUDGET_SOURCES];
} pl_budget;

typedef struct pl_budget_options {
    size_t size;              /* sizeof this struct; 0: as in version 0.1; see libplimsoll(3) */
    const char *root;         /* prefix of every path; NULL = the real system */
    const char *request_text; /* "2G", or "80%" of the true limit; NULL = all of it */
    uint64_t reserve_bytes;   /* 0 = PL_BUDGET_RESERVE_BYTES, or an eighth if that is less */
} pl_budget_options;

/* Reads every source. `options` may be NULL. PL_EFORMAT if the request is not a size; PL_EBUDGET if
 * less than PL_BUDGET_MIN_BYTES would be left. */
PL_API PL_MUST_CHECK int pl_budget_discover(const pl_budget_options *options, pl_budget *ret_budget,
                                            pl_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
