/* SPDX-License-Identifier: Apache-2.0 */
/* Room that can be made: what is idle goes to disk before anybody is refused, in every process of
 * the tree.
 *   idle      bytes that a process could give back: tensors that nobody uses at the moment, and
 *             what is kept to be used again. It says in its own place of rooms[] how many they are
 *   mover     a thread of such a process, which answers calls
 *   call      a number, raised by whoever is about to be refused
 *   wanted    bytes that somebody waits for
 *   answered  the last call that a process has dealt with: there was room for all that is wanted,
 *             or nothing idle was left
 *   missed    the last call that a process was given up on: it is stopped, or too busy. Nobody
 *             waits for it until it has answered one again
 *   stuck     it could not move what is idle (the disk is full, say), and is not asked for a while
 *
 * Nobody who asks is refused while a process has something idle that is neither missed nor stuck.
 *
 * Nothing here allocates or locks. pl_room_ask() is the one function of the ledger that waits: the
 * guard calls it from inside malloc(), in threads that hold no lock that a mover needs. */
#ifndef PL_LEDGER_ROOM_H
#define PL_LEDGER_ROOM_H

#include "ledger/ledger.h"

/* ---- who is about to be refused ---- */

/* Has room made for a claim of `bytes` by `owner`, and waits for it: as long as anybody moves, and
 * a few seconds for one that does not, unless it is stopped. False, at once, if nobody has
 * anything that could be moved. After true there may be room, or somebody else may have it. */
PL_MUST_CHECK bool pl_room_ask(pl_ledger *ledger, pl_owner owner, uint64_t bytes);

/* The same without waiting, for whoever saw the line passed. */
void pl_room_call(pl_ledger *ledger);

/* What could be moved if it were asked for. */
uint64_t pl_room_idle_bytes(const pl_ledger *ledger);

/* ---- movers ---- */

/* Has this owner a place where it can tell what is idle? The first PL_ROOMS - 1 of a run have. */
bool pl_room_is_own(pl_owner owner);

/* `bytes` more (or fewer, when negative) are idle. For owners with a place, as is answering. */
void pl_room_add_idle(pl_ledger *ledger, pl_owner owner, int64_t bytes);

/* Waits for a call that is not `seen`, and returns it. */
uint32_t pl_room_wait_for_call(pl_ledger *ledger, uint32_t seen);

/* What has to be moved for all that is wanted; 0: there is room. */
uint64_t pl_room_missing_bytes(const pl_ledger *ledger);

/* Something is being moved, for whoever waits for it. */
void pl_room_tell_progress(pl_ledger *ledger);

/* `is_stuck`: what is idle cannot be moved. */
void pl_room_answer(pl_ledger *ledger, pl_owner owner, uint32_t call, bool is_stuck);

/* ---- claim.c ---- */

/* Its process is gone. */
void pl_room_empty(pl_ledger *ledger, const pl_ledger_slot *slot);

#endif
