/* SPDX-License-Identifier: Apache-2.0 */
/* The results that are kept for each file until all have been checked. For verify.c, tell.c and
 * notes.c. */
#ifndef PL_VERIFY_SLOTS_H
#define PL_VERIFY_SLOTS_H

#define XXH_INLINE_ALL /* saves every command from loading one more library */
#include <xxhash.h>

#include "verify/verify.h"

struct pl_verify_schema;

typedef struct pl_verify_slot {
    uint64_t file_bytes;
    XXH128_hash_t head;              /* of its first PL_VERIFY_HEAD_BYTES */
    pl_verify_finding *finding;      /* until it is reported; NULL: none */
    struct pl_verify_schema *schema; /* until it is reported; NULL: none */
    uint32_t height, width;          /* of an image */
    uint8_t channels;                /* of an image: 1 to 4, as the file has them */
    uint8_t format;                  /* pl_verify_format */
    bool is_done;
    bool is_alike; /* as large as another, with its head: `head` is then of all of it */
} pl_verify_slot;

/* One slot per path. Slots do not move while more are made. */
typedef struct pl_verify_slots {
    pl_memory *memory; /* borrowed */
    pl_paths paths;
    pl_block *blocks; /* of PL_VERIFY_BLOCK_SLOTS slots each */
    size_t n_blocks;
} pl_verify_slots;

enum { PL_VERIFY_BLOCK_SLOTS = 4096 };

void pl_verify_slots_init(pl_verify_slots *slots, pl_memory *memory);
void pl_verify_slots_done(pl_verify_slots *slots);

/* Makes slots for all paths that have none yet. PL_EBUDGET, -ENOMEM. */
PL_MUST_CHECK int pl_verify_slots_make(pl_verify_slots *slots, pl_error *reterr);

static inline pl_verify_slot *pl_verify_slot_at(const pl_verify_slots *slots, size_t i)
{
    pl_verify_slot *block = slots->blocks[i / PL_VERIFY_BLOCK_SLOTS].data;
    return &block[i % PL_VERIFY_BLOCK_SLOTS];
}

/* Looks at all finished slots, once: it modifies them. Reports copies, images whose size or
 * channels differ from most, and folders that have far more files than their neighbours. `tell` is
 * the options'; counts in *n_notes. */
PL_MUST_CHECK int pl_verify_notes(const pl_verify_slots *slots, const pl_verify_options *options,
                                  uint64_t *n_notes, pl_error *reterr);

#endif
