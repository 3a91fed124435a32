/* SPDX-License-Identifier: Apache-2.0 */
/* The spill file, which holds values that do not fit in memory.
 *   file    has no name: gone with the process, however that ends. Made on demand
 *   extent  a place in it, whose disk space is reserved before anything is written
 *   room    what may still be reserved: of the limit, and of the disk
 *   bound   which of the two is short, or why there is no room at all
 *
 * The folder is the caller's, else $PLIMSOLL_SPILL; else the first of $TMPDIR, /var/tmp and /tmp
 * that is not in memory (tmpfs). If all of them are, nothing is spilled, because that would free
 * nothing; a folder that was named explicitly is used as it is.
 *
 * From PL_SPILL_DIRECT_BYTES on, aligned bytes bypass the page cache if the file system can: what
 * is spilled because memory is short should not be cached there. Safe from any thread, except for
 * two writers, or a writer and a reader, of the same bytes. */
#ifndef PL_TENSOR_SPILL_H
#define PL_TENSOR_SPILL_H

#include "base/base.h"
#include "tensor/extents.h"

#define PL_SPILL_VARIABLE     "PLIMSOLL_SPILL"
#define PL_SPILL_DIRECT_BYTES (512 * PL_KIB)

typedef struct pl_spill pl_spill;

typedef enum pl_spill_bound {
    PL_SPILL_DISK_BOUND,
    PL_SPILL_LIMIT_BOUND,  /* from the runtime's options */
    PL_SPILL_MEMORY_BOUND, /* only folders in memory (tmpfs) were found */
    PL_SPILL_NO_FOLDER,    /* none was found, or the named one is unusable */
} pl_spill_bound;

/* A snapshot of the numbers. */
typedef struct pl_spill_room {
    uint64_t bytes;
    pl_spill_bound bound;
    uint64_t limit_bytes, used_bytes; /* of PL_SPILL_LIMIT_BOUND */
    const char *directory;            /* lives as long as the spill file; NULL: none */
} pl_spill_room;

/* `directory` may be NULL; limit_bytes 0: the free disk space. Fails only with -ENOMEM: a missing
 * folder is reported when it is needed. */
PL_MUST_CHECK int pl_spill_new(const char *directory, uint64_t limit_bytes, pl_spill **ret_spill,
                               pl_error *reterr);
void pl_spill_free(pl_spill *spill);

/* Reserves an extent, rounded up to pages. -ENOSPC at the limit, or on a full disk; -EFBIG at the
 * process's limit on file sizes; errors of opening the file. */
PL_MUST_CHECK int pl_spill_reserve(pl_spill *spill, uint64_t bytes, pl_extent *ret_extent,
                                   pl_error *reterr);
void pl_spill_release(pl_spill *spill, pl_extent extent);

/* Writes or reads `n` bytes at `offset` of the file completely, or fails with an error that names
 * file, offset and bytes. */
PL_MUST_CHECK int pl_spill_write(pl_spill *spill, uint64_t offset, const void *data, size_t n,
                                 pl_error *reterr);
PL_MUST_CHECK int pl_spill_read(pl_spill *spill, uint64_t offset, void *data, size_t n,
                                pl_error *reterr);

/* Reads to an address inside `room`: see pl_file_read_around(). */
PL_MUST_CHECK int pl_spill_read_around(pl_spill *spill, uint64_t offset, void *room, size_t n,
                                       void **ret_data, pl_error *reterr);

uint64_t pl_spill_used_bytes(pl_spill *spill);

/* Returns the room at this moment: others write to the same disk. 0 bytes if nothing can be
 * spilled. */
pl_spill_room pl_spill_look_for_room(pl_spill *spill);

/* Describes what is short, with numbers, and what to change: "the disk of '/tmp' has room for 2.0
 * MiB: set ...". Returns `text`. */
const char *pl_spill_room_text(const pl_spill_room *room, char text[PL_ERROR_MESSAGE_BYTES]);
#define PL_SPILL_ROOM_TEXT(room) pl_spill_room_text((room), (char[PL_ERROR_MESSAGE_BYTES]){0})

/* Returns the descriptor, for callers that move the bytes of their extent; -1: nothing was reserved
 * yet. */
int pl_spill_fd(const pl_spill *spill);

/* Returns the folder, or NULL. */
const char *pl_spill_directory(const pl_spill *spill);

#endif
