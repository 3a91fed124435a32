/* SPDX-License-Identifier: Apache-2.0 */
/* The budget shared by every process under one line.
 *   line      the bytes that may be claimed: limit_bytes
 *   reserve   bytes above the line, for requests that cannot safely be refused
 *   claim     bytes that one owner has asked for and not yet released
 *   measured  bytes that a process was seen to use, and that no claim covers
 *   charged   sum of all claims and all measured bytes
 *   owner     a process of the tree: a slot of the ledger, identified by pid and start time
 *
 * Invariants, at every instant and in every process:
 *   - a refusable claim never takes charged over the line;
 *   - a claim of any kind never takes charged over the line plus the reserve;
 *   - with all owners at rest, charged = sum over owners of claimed + measured;
 *   - the charges of a dead process are released by the next process that reclaims.
 * A ledger is a mapped file: it can be read after everyone has died.
 *
 * Safe from any thread and any process. Nothing here allocates, locks, or waits: the guard calls it
 * from inside malloc(). */
#ifndef PLIMSOLL_LEDGER_H
#define PLIMSOLL_LEDGER_H

#include <stdint.h>

#include "plimsoll/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pl_ledger pl_ledger;

/* A process's place in the ledger: an index, valid in the process that joined. */
typedef int32_t pl_owner;

enum pl_claim_kind {
    PL_CLAIM_REFUSABLE, /* stops at the line */
    PL_CLAIM_RESERVE,   /* stops at the line plus the reserve */
};

typedef struct pl_ledger_params {
    uint64_t limit_bytes;
    uint64_t reserve_bytes;
} pl_ledger_params;

/* Creates the file `path` (it must not exist), with all of its space allocated, and maps it. */
PL_API PL_MUST_CHECK int pl_ledger_create(const char *path, const pl_ledger_params *params,
                                          pl_ledger **ret_ledger, pl_error *reterr);

/* Maps an existing ledger. PL_EVERSION, PL_ECORRUPT or -errno if the file is not a ledger, has
 * another version, or is shorter than it says. A read-only ledger may not be claimed from. */
PL_API PL_MUST_CHECK int pl_ledger_open(const char *path, int writable, pl_ledger **ret_ledger,
                                        pl_error *reterr);

/* Maps the ledger of the run that this process is in ($PLIMSOLL_LEDGER); -ENOENT outside a run. */
PL_API PL_MUST_CHECK int pl_ledger_open_run(pl_ledger **ret_ledger, pl_error *reterr);

/* Unmaps. Claims stay: they belong to the process, not to the mapping. NULL is allowed. */
PL_API void pl_ledger_close(pl_ledger *ledger);

/* Takes a slot for the calling process, or returns the one it has (an exec keeps pid and start
 * time: with `fresh`, a process that joins again starts from zero). PL_EFULL if none of the 32,768
 * slots is free; -EXDEV in another pid namespace than the ledger was made in, where pids name other
 * processes; -ENOENT if /proc is not mounted; -EMFILE if the process's identity cannot be read
 * there. */
PL_API PL_MUST_CHECK int pl_ledger_join(pl_ledger *ledger, int fresh, pl_owner *ret_owner);

/* Releases all that is charged to the owner, and its slot. */
PL_API void pl_ledger_leave(pl_ledger *ledger, pl_owner owner);

/* Claims `bytes`. PL_EBUDGET, with nothing charged, if the limit of that kind would be exceeded. */
PL_API PL_MUST_CHECK int pl_ledger_claim(pl_ledger *ledger, pl_owner owner, uint64_t bytes,
                                         enum pl_claim_kind kind);

/* Releases part or all of what the owner claimed. */
PL_API void pl_ledger_release(pl_ledger *ledger, pl_owner owner, uint64_t bytes);

/* Sets how many bytes the caller, which is the owner, uses beyond its claims, in place of the last
 * report. The memory is already in use, so it is charged even beyond every limit. */
PL_API void pl_ledger_measure(pl_ledger *ledger, pl_owner owner, uint64_t bytes);

/* Releases what dead processes held, and corrects what a process killed inside an operation left
 * uncounted. Any process may call it; the supervisor does. Returns the number of slots freed. */
PL_API int pl_ledger_reclaim(pl_ledger *ledger);

PL_API uint64_t pl_ledger_charged_bytes(const pl_ledger *ledger);
PL_API uint64_t pl_ledger_limit_bytes(const pl_ledger *ledger);
PL_API uint64_t pl_ledger_reserve_bytes(const pl_ledger *ledger);
PL_API uint64_t pl_ledger_peak_bytes(const pl_ledger *ledger);

/* Moves the line. Existing charges stay. */
PL_API void pl_ledger_set_limit_bytes(pl_ledger *ledger, uint64_t limit_bytes);

/* Writes a mark of the caller's (a notebook cell, an epoch) into the record; cut at 67 bytes. */
PL_API void pl_ledger_mark(pl_ledger *ledger, const char *text);

/* Checks every invariant. Returns 0, or PL_ECORRUPT with the first one broken. The sum is compared
 * only if every owner is at rest. */
PL_API PL_MUST_CHECK int pl_ledger_check(const pl_ledger *ledger, pl_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
