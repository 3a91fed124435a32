/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept of each file until all have been looked at. For verify.c and notes.c. */
#ifndef PL_VERIFY_SLOTS_H
#define PL_VERIFY_SLOTS_H

#define XXH_INLINE_ALL /* a library less to load, whichever command is run */
#include <xxhash.h>

#include "verify/verify.h"

struct pl_verify_schema;

typedef struct pl_verify_slot {
    uint64_t file_bytes;
    XXH128_hash_t head;              /* of its first PL_VERIFY_HEAD_BYTES */
    pl_verify_finding *finding;      /* until it is told; NULL: none */
    struct pl_verify_schema *schema; /* likewise */
    uint32_t height, width;          /* of an image */
    uint8_t format;                  /* pl_verify_format */
    bool is_done;
} pl_verify_slot;

typedef struct pl_verify_slots {
    const pl_paths *paths;
    const uint32_t *chosen; /* of the paths; NULL: all */
    pl_verify_slot *slots;
    size_t n;
} pl_verify_slots;

static inline const char *pl_verify_path_at(const pl_verify_slots *slots, size_t i)
{
    return pl_paths_at(slots->paths, slots->chosen ? slots->chosen[i] : i);
}

/* Tells of copies, of images that have other sizes than most, and of folders that have far more
 * files than their neighbours. `tell` is the options'; *n_notes counts. */
PL_MUST_CHECK int pl_verify_notes(const pl_verify_slots *slots, const pl_verify_options *options,
                                  uint64_t *n_notes, pl_error *reterr);

#endif
