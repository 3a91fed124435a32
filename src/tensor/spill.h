/* SPDX-License-Identifier: Apache-2.0 */
/* The spill file: where values go that memory has no room for.
 *   file    has no name: gone with the process, however that ends. Made when it is first needed
 *   extent  a place in it, whose disk space is taken before anything is written there
 *   room    what may still be reserved: of the limit, and of the disk
 *   bound   which of the two is short, or why there is no room at all
 *
 * The folder is the caller's, else $PLIMSOLL_SPILL; else the first of $TMPDIR, /var/tmp and /tmp
 * that is not memory itself (tmpfs). Where only memory is to be had nothing is spilled, because
 * nothing would leave memory by it; a folder that somebody named is used as it is.
 *
 * From PL_SPILL_DIRECT_BYTES on, aligned bytes go past the page cache where the file system can:
 * what is spilled for want of memory should not be cached there. Safe from any thread, but not two
 * writers, or a writer and a reader, of the same bytes. */
#ifndef PL_TENSOR_SPILL_H
#define PL_TENSOR_SPILL_H

#include "base/base.h"
#include "tensor/extents.h"

#define PL_SPILL_VARIABLE     "PLIMSOLL_SPILL"
#define PL_SPILL_DIRECT_BYTES (512 * PL_KIB)

typedef struct pl_spill pl_spill;

typedef enum pl_spill_bound {
    PL_SPILL_DISK_BOUND,
    PL_SPILL_LIMIT_BOUND,  /* what the runtime's options say */
    PL_SPILL_MEMORY_BOUND, /* only memory (tmpfs) was found to spill to */
    PL_SPILL_NO_FOLDER,    /* none was found, or what was named is none */
} pl_spill_bound;

/* Numbers of one moment. */
typedef struct pl_spill_room {
    uint64_t bytes;
    pl_spill_bound bound;
    uint64_t limit_bytes, used_bytes; /* of PL_SPILL_LIMIT_BOUND */
    const char *directory;            /* lives as long as the spill file; NULL: none */
} pl_spill_room;

/* `directory` may be NULL; limit_bytes 0: what the disk has. -ENOMEM only: that there is no folder
 * is told when it is needed. */
PL_MUST_CHECK int pl_spill_new(const char *directory, uint64_t limit_bytes, pl_spill **ret_spill,
                               pl_error *reterr);
void pl_spill_free(pl_spill *spill);

/* Takes a place of so many bytes, rounded up to pages. -ENOSPC at the limit, or on a full disk;
 * -EFBIG at the process's limit on file sizes; what opening the file gave. */
PL_MUST_CHECK int pl_spill_reserve(pl_spill *spill, uint64_t bytes, pl_extent *ret_extent,
                                   pl_error *reterr);
void pl_spill_release(pl_spill *spill, pl_extent extent);

/* `n` bytes at `offset` of the file, all of them or an error that names file, offset and bytes. */
PL_MUST_CHECK int pl_spill_write(pl_spill *spill, uint64_t offset, const void *data, size_t n,
                                 pl_error *reterr);
PL_MUST_CHECK int pl_spill_read(pl_spill *spill, uint64_t offset, void *data, size_t n,
                                pl_error *reterr);

/* The same, to somewhere in `room`: see pl_file_read_around(). */
PL_MUST_CHECK int pl_spill_read_around(pl_spill *spill, uint64_t offset, void *room, size_t n,
                                       void **ret_data, pl_error *reterr);

uint64_t pl_spill_used_bytes(pl_spill *spill);

/* As things stand: others write to the same disk. 0 bytes where nothing can be spilled. */
pl_spill_room pl_spill_look_for_room(pl_spill *spill);

/* Says what is short, with its numbers, and what to change: "the disk of '/tmp' has room for 2.0
 * MiB: set ...". Returns `text`. */
const char *pl_spill_room_text(const pl_spill_room *room, char text[PL_ERROR_MESSAGE_BYTES]);
#define PL_SPILL_ROOM_TEXT(room) pl_spill_room_text((room), (char[PL_ERROR_MESSAGE_BYTES]){0})

/* The file, for those who move the bytes of an extent of theirs; -1: nothing was reserved yet. */
int pl_spill_fd(const pl_spill *spill);

/* The folder; NULL if there is none. */
const char *pl_spill_directory(const pl_spill *spill);

#endif
