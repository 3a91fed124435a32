/* SPDX-License-Identifier: Apache-2.0 */
/* See spill.h. */
#include "tensor/spill.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "sys/file.h"

/* The file grows by an eighth, within these bounds: fallocate() costs a transaction of the file
 * system's journal, and a disk that is nearly full should not be filled for nothing. */
#define GROW_LEAST_BYTES (4 * PL_MIB)
#define GROW_MOST_BYTES  (256 * PL_MIB)

/* Free bytes at the end of the file go back to the disk when they are half of it, down to this. */
#define KEEP_BYTES (64 * PL_MIB)

struct pl_spill {
    char *directory; /* constant; NULL: there is none */
    bool is_memory;  /* constant; the folder is memory, and nobody named it */
    uint64_t limit_bytes;
    pthread_mutex_t mu;    /* leaf lock; held while the file is opened and grown, not during I/O */
    pl_extents extents;    /* mu */
    _Atomic int fd;        /* written under mu, once; -1: no file yet */
    _Atomic int direct;    /* the same; -1: none */
    atomic_bool no_direct; /* it was refused: never again */
};

/* ---- where ---- */

static bool is_usable(const char *directory, pl_file_space *ret_space)
{
    return directory && *directory && access(directory, W_OK | X_OK) == 0 &&
           pl_file_space_at(directory, ret_space) == 0;
}

/* A folder in memory is reported only if there is no other. */
static const char *find_directory(bool *ret_is_memory)
{
    const char *const candidates[] = {getenv("TMPDIR"), "/var/tmp", "/tmp"};
    const char *in_memory = NULL;
    for (size_t i = 0; i < PL_COUNT_OF(candidates); i++) {
        pl_file_space space;
        if (!is_usable(candidates[i], &space))
            continue;
        if (!space.in_memory)
            return candidates[i];
        if (!in_memory)
            in_memory = candidates[i];
    }
    *ret_is_memory = in_memory != NULL;
    return in_memory;
}

static const char *choose_directory(const char *directory, bool *ret_is_memory)
{
    const char *named = directory ? directory : getenv(PL_SPILL_VARIABLE);
    return named && *named ? named : find_directory(ret_is_memory);
}

int pl_spill_new(const char *directory, uint64_t limit_bytes, pl_spill **ret_spill,
                 pl_error *reterr)
{
    pl_spill *spill = calloc(1, sizeof *spill);
    if (!spill)
        return pl_error_set(reterr, -ENOMEM, "no memory for a spill file");
    const char *chosen = choose_directory(directory, &spill->is_memory);
    spill->directory = chosen ? strdup(chosen) : NULL;
    if (chosen && !spill->directory) {
        free(spill);
        return pl_error_set(reterr, -ENOMEM, "no memory for a spill file");
    }
    spill->limit_bytes = limit_bytes ? limit_bytes : UINT64_MAX;
    spill->fd = spill->direct = -1;
    pthread_mutex_init(&spill->mu, NULL);
    pl_extents_init(&spill->extents, PL_FILE_DIRECT_BYTES);
    *ret_spill = spill;
    return 0;
}

void pl_spill_free(pl_spill *spill)
{
    if (!spill)
        return;
    if (spill->direct >= 0)
        close(spill->direct);
    if (spill->fd >= 0)
        close(spill->fd);
    pl_extents_done(&spill->extents);
    pthread_mutex_destroy(&spill->mu);
    free(spill->directory);
    free(spill);
}

const char *pl_spill_directory(const pl_spill *spill)
{
    return spill->directory;
}

int pl_spill_fd(const pl_spill *spill)
{
    return spill->fd;
}

/* ---- places ---- */

static int open_file(pl_spill *spill, pl_error *reterr)
{
    if (spill->fd >= 0)
        return 0;
    if (!spill->directory)
        return pl_error_set(reterr, -ENOENT, "no folder to spill to: set $%s", PL_SPILL_VARIABLE);
    if (spill->is_memory)
        return pl_error_set(reterr, -ENOSPC,
                            "'%s' is in memory (tmpfs), so spilling there frees nothing: set $%s "
                            "to a folder on a disk",
                            spill->directory, PL_SPILL_VARIABLE);
    int fd = pl_file_open_unnamed(spill->directory);
    if (fd < 0)
        return pl_error_set(reterr, fd,
                            "cannot create a spill file in '%s': %s; set $%s to another folder",
                            spill->directory, pl_error_text(fd), PL_SPILL_VARIABLE);
    spill->direct = pl_file_open_direct(fd);
    spill->fd = fd;
    return 0;
}

/* Returns by how much the file must grow for an extent of `bytes` at its end. */
static uint64_t missing_bytes(const pl_spill *spill, uint64_t bytes)
{
    return bytes - pl_extents_tail_bytes(&spill->extents);
}

/* Returns whether the limit forbids that growth, counting free pieces inside the file. */
static bool is_over_limit(const pl_spill *spill, uint64_t more_bytes)
{
    return more_bytes > pl_sub_sat_u64(spill->limit_bytes, spill->extents.end_bytes);
}

static int refuse(const pl_spill *spill, int code, uint64_t bytes, pl_error *reterr)
{
    uint64_t used = spill->extents.end_bytes - spill->extents.free_bytes;
    if (code == -ENOMEM)
        return pl_error_set(reterr, code, "no memory to spill %s", PL_SIZE(bytes));
    if (code == -ENOSPC && is_over_limit(spill, missing_bytes(spill, bytes)))
        return pl_error_set(reterr, code,
                            "cannot spill %s to '%s', which already holds %s: the limit is %s; "
                            "raise the runtime's spill_limit_bytes",
                            PL_SIZE(bytes), spill->directory, PL_SIZE(used),
                            PL_SIZE(spill->limit_bytes));
    return pl_error_set(
        reterr, code,
        "cannot spill %s to '%s', which already holds %s: %s; set $%s to another folder",
        PL_SIZE(bytes), spill->directory, PL_SIZE(used), pl_error_text(code), PL_SPILL_VARIABLE);
}

/* Without fallocate() a full disk shows up when the bytes are written, and they stay where they
 * are. */
static int grow_by(pl_spill *spill, uint64_t bytes)
{
    int r = pl_file_reserve(spill->fd, spill->extents.end_bytes, bytes);
    if (r < 0 && r != -EOPNOTSUPP)
        return r;
    return pl_extents_grow(&spill->extents, bytes);
}

/* Extends the file for an extent of `bytes` at its end, by more than needed if possible. */
static int grow(pl_spill *spill, uint64_t bytes)
{
    uint64_t end = spill->extents.end_bytes;
    uint64_t needed = missing_bytes(spill, bytes);
    uint64_t more = pl_clamp_u64(end / 8, GROW_LEAST_BYTES, GROW_MOST_BYTES);
    if (is_over_limit(spill, needed))
        return -ENOSPC;
    more =
        pl_min_u64(more, (spill->limit_bytes - end) / PL_FILE_DIRECT_BYTES * PL_FILE_DIRECT_BYTES);
    int r = -ENOSPC;
    if (more > needed)
        r = grow_by(spill, more);
    return r == 0 ? 0 : grow_by(spill, needed);
}

static int reserve(pl_spill *spill, uint64_t bytes, pl_extent *ret_extent)
{
    int r = pl_extents_take(&spill->extents, bytes, ret_extent);
    if (r != -ENOSPC)
        return r;
    r = grow(spill, bytes);
    return r < 0 ? r : pl_extents_take(&spill->extents, bytes, ret_extent);
}

int pl_spill_reserve(pl_spill *spill, uint64_t bytes, pl_extent *ret_extent, pl_error *reterr)
{
    if (bytes > INT64_MAX - PL_FILE_DIRECT_BYTES)
        return pl_error_set(reterr, -EFBIG, "cannot spill %" PRIu64 " bytes", bytes);
    bytes = (bytes + PL_FILE_DIRECT_BYTES - 1) / PL_FILE_DIRECT_BYTES * PL_FILE_DIRECT_BYTES;
    pthread_mutex_lock(&spill->mu);
    int r = open_file(spill, reterr);
    if (r == 0) {
        r = reserve(spill, bytes, ret_extent);
        if (r < 0)
            refuse(spill, r, bytes, reterr);
    }
    pthread_mutex_unlock(&spill->mu);
    return r;
}

/* If the cut fails the file stays longer than necessary; growing then finds the space there. */
void pl_spill_release(pl_spill *spill, pl_extent extent)
{
    pthread_mutex_lock(&spill->mu);
    pl_extents *extents = &spill->extents;
    pl_extents_give(extents, extent);
    if (extents->end_bytes > KEEP_BYTES && pl_extents_tail_bytes(extents) > extents->end_bytes / 2)
        (void)!pl_file_cut(spill->fd, pl_extents_shrink(extents, KEEP_BYTES));
    pthread_mutex_unlock(&spill->mu);
}

uint64_t pl_spill_used_bytes(pl_spill *spill)
{
    pthread_mutex_lock(&spill->mu);
    uint64_t used = spill->extents.end_bytes - spill->extents.free_bytes;
    pthread_mutex_unlock(&spill->mu);
    return used;
}

/* Free space inside the file counts although it can be in pieces: the planner's spills are large,
 * and the largest piece is usually at the end. */
pl_spill_room pl_spill_look_for_room(pl_spill *spill)
{
    pl_file_space space = {0};
    pl_spill_room room = {.directory = spill->directory, .limit_bytes = spill->limit_bytes};
    if (spill->is_memory)
        room.bound = PL_SPILL_MEMORY_BOUND;
    else if (!spill->directory || pl_file_space_at(spill->directory, &space) < 0)
        room.bound = PL_SPILL_NO_FOLDER;
    if (room.bound != PL_SPILL_DISK_BOUND)
        return room;
    pthread_mutex_lock(&spill->mu);
    room.used_bytes = spill->extents.end_bytes - spill->extents.free_bytes;
    uint64_t on_disk = pl_add_sat_u64(space.free_bytes, spill->extents.free_bytes);
    pthread_mutex_unlock(&spill->mu);
    uint64_t of_limit = pl_sub_sat_u64(spill->limit_bytes, room.used_bytes);
    room.bound = of_limit < on_disk ? PL_SPILL_LIMIT_BOUND : PL_SPILL_DISK_BOUND;
    room.bytes = pl_min_u64(on_disk, of_limit);
    return room;
}

static int write_room(const pl_spill_room *room, char *text, size_t n)
{
    const char *folder = room->directory ? room->directory : "";
    switch (room->bound) {
    case PL_SPILL_LIMIT_BOUND:
        return snprintf(text, n,
                        "the limit of %s on what is spilled leaves %s: raise the runtime's "
                        "spill_limit_bytes",
                        PL_SIZE(room->limit_bytes), PL_SIZE(room->bytes));
    case PL_SPILL_MEMORY_BOUND:
        return snprintf(text, n,
                        "'%s' is memory (tmpfs), where nothing is: set %s to a folder on a disk",
                        folder, PL_SPILL_VARIABLE);
    case PL_SPILL_NO_FOLDER:
        return snprintf(text, n, "there is no folder%s%s%s for it: set %s to one",
                        *folder ? " '" : "", folder, *folder ? "'" : "", PL_SPILL_VARIABLE);
    case PL_SPILL_DISK_BOUND:
        break;
    }
    return snprintf(text, n, "the disk%s%s%s has room for %s: set %s to a folder with more",
                    *folder ? " of '" : "", folder, *folder ? "'" : "", PL_SIZE(room->bytes),
                    PL_SPILL_VARIABLE);
}

const char *pl_spill_room_text(const pl_spill_room *room, char text[PL_ERROR_MESSAGE_BYTES])
{
    (void)write_room(room, text, PL_ERROR_MESSAGE_BYTES);
    return text;
}

/* ---- bytes ---- */

/* Returns how many bytes from the start of [data, data + n) can bypass the page cache. */
static size_t direct_part(const pl_spill *spill, uint64_t offset, const void *data, size_t n)
{
    bool aligned = ((uintptr_t)data | offset) % PL_FILE_DIRECT_BYTES == 0;
    return spill->direct >= 0 && !spill->no_direct && aligned && n >= PL_SPILL_DIRECT_BYTES
               ? n - n % PL_FILE_DIRECT_BYTES
               : 0;
}

/* Some file systems accept the flag and refuse the call. */
static int read_in(pl_spill *spill, uint64_t offset, void *data, size_t n)
{
    size_t direct = direct_part(spill, offset, data, n);
    int r = direct ? pl_file_read(spill->direct, data, direct, offset) : 0;
    if (r == -EINVAL) {
        spill->no_direct = true;
        direct = 0;
    } else if (r < 0) {
        return r;
    }
    return pl_file_read(spill->fd, (char *)data + direct, n - direct, offset + direct);
}

int pl_spill_write(pl_spill *spill, uint64_t offset, const void *data, size_t n, pl_error *reterr)
{
    int direct = n < PL_SPILL_DIRECT_BYTES || spill->no_direct ? -1 : spill->direct;
    int r = pl_file_write_straight(spill->fd, direct, data, n, offset);
    if (r == -EINVAL && direct >= 0) {
        spill->no_direct = true;
        r = pl_file_write(spill->fd, data, n, offset);
    }
    if (r < 0)
        return pl_error_set(reterr, r,
                            "cannot write %zu bytes at %" PRIu64 " of the spill file in '%s': %s",
                            n, offset, spill->directory, pl_error_text(r));
    return 0;
}

static int cannot_read(const pl_spill *spill, int code, uint64_t offset, size_t n, pl_error *reterr)
{
    return pl_error_set(reterr, code,
                        "cannot read %zu bytes at %" PRIu64 " of the spill file in '%s': %s", n,
                        offset, spill->directory, pl_error_text(code));
}

int pl_spill_read(pl_spill *spill, uint64_t offset, void *data, size_t n, pl_error *reterr)
{
    int r = read_in(spill, offset, data, n);
    return r < 0 ? cannot_read(spill, r, offset, n, reterr) : 0;
}

int pl_spill_read_around(pl_spill *spill, uint64_t offset, void *room, size_t n, void **ret_data,
                         pl_error *reterr)
{
    int direct = spill->no_direct ? -1 : spill->direct;
    int r = pl_file_read_around(spill->fd, direct, room, n, offset, ret_data);
    return r < 0 ? cannot_read(spill, r, offset, n, reterr) : 0;
}
