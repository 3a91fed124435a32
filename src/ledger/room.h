/* SPDX-License-Identifier: Apache-2.0 */
/* Making room: idle memory of every process of the tree goes to disk before a request is refused.
 *   idle      bytes that a process could give back: tensors that are not in use at the moment, and
 *             memory kept for reuse. Each process publishes its number in its place of rooms[]
 *   mover     a thread of such a process, which answers calls
 *   call      a number, raised by a process that is about to be refused
 *   wanted    bytes that a process waits for
 *   answered  the last call that a process has dealt with: there was room for all wanted bytes, or
 *             nothing idle was left
 *   missed    the last call for which others gave up on a process: it is stopped, or too busy. They
 *             do not wait for it until it has answered a call again
 *   stuck     it could not move its idle bytes (say, the disk is full); it is not asked for a while
 *
 * No request is refused while a process that is neither missed nor stuck has something idle.
 *
 * Nothing here allocates or locks. pl_room_ask() is the one function of the ledger that waits: the
 * guard calls it from inside malloc(), in threads that hold no lock that a mover needs. */
#ifndef PL_LEDGER_ROOM_H
#define PL_LEDGER_ROOM_H

#include "ledger/ledger.h"

/* ---- a process that is about to be refused ---- */

/* Has room made for a claim of `bytes` by `owner`, and waits for it: as long as any process
 * moves something, and a few seconds for one that does not, unless it is stopped. False, at
 * once, if no process has anything to move. After true there may be room, or another process may
 * have taken it. */
PL_MUST_CHECK bool pl_room_ask(pl_ledger *ledger, pl_owner owner, uint64_t bytes);

/* Calls for room without waiting, after the line was passed. */
void pl_room_call(pl_ledger *ledger);

/* Returns the bytes that could be moved on request. */
uint64_t pl_room_idle_bytes(const pl_ledger *ledger);

/* ---- movers ---- */

/* Does this owner have a place for its idle bytes? The first PL_ROOMS - 1 of a run do. */
bool pl_room_is_own(pl_owner owner);

/* Adds `bytes` (negative to subtract) to the idle bytes. Only for owners with a place, like
 * pl_room_answer(). */
void pl_room_add_idle(pl_ledger *ledger, pl_owner owner, int64_t bytes);

/* Waits for a call that is not `seen`, and returns it. */
uint32_t pl_room_wait_for_call(pl_ledger *ledger, uint32_t seen);

/* Returns the bytes to be moved for all wanted bytes; 0: there is room. */
uint64_t pl_room_missing_bytes(const pl_ledger *ledger);

/* Reports to waiting processes that something is being moved. */
void pl_room_tell_progress(pl_ledger *ledger);

/* `is_stuck`: the idle bytes cannot be moved. */
void pl_room_answer(pl_ledger *ledger, pl_owner owner, uint32_t call, bool is_stuck);

/* ---- claim.c ---- */

/* Empties the place of a process that is gone. */
void pl_room_empty(pl_ledger *ledger, const pl_ledger_slot *slot);

#endif
