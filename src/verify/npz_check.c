/* SPDX-License-Identifier: Apache-2.0 */
/* Checks an .npz file, or any zip: unpacks every file in it and checks its checksum; for an array
 * also header and length. A member is passed to the inflater as if it were a gzip file: a header,
 * its data (as stored blocks, if it is not deflated), and at the end its checksum and length, so
 * that the inflater checks them as it always does. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "codec/archive/inflate.h"
#include "codec/archive/zip.h"
#include "codec/npy/npy.h"
#include "codec/text/excerpt.h"
#include "verify/file.h"
#include "verify/npy_values.h"

enum {
    PIECE_BYTES = 64 * 1024,
    STORED_BYTES = 65535,        /* the limit of a stored block */
    UNPACKED_BYTES = 128 * 1024, /* more than an .npy header */
    DIRECTORY_BYTES_MAX = 16 * 1024 * 1024,
};

typedef struct member {
    pl_verify_file *file;
    const pl_zip_entry *entry;
    uint64_t data_offset;
    uint64_t done; /* packed bytes given to the inflater */
    enum { HEAD, BLOCK, DATA, FOOT, OVER } part;
    uint32_t block_left; /* of a stored block */
    uint64_t unpacked;
    bool is_npy, has_npy;
    pl_npy npy;
    pl_npy_values values;
    pl_error why; /* about its header */
} member;

static int read_at(pl_verify_file *file, void *to, size_t n, uint64_t offset, pl_error *reterr)
{
    ssize_t got = pread(file->fd, to, n, (off_t)offset);
    if (got == (ssize_t)n)
        return 0;
    int code = got < 0 ? -errno : PL_ECORRUPT;
    pl_error_set(reterr, code, "%zu bytes cannot be read here: %s", n,
                 got < 0 ? strerror(errno) : "it is cut off");
    pl_error_at_offset(reterr, offset);
    return code;
}

static void put_u32(uint8_t *to, uint32_t number)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(number >> 8 * i);
}

static size_t put_block(member *m, uint8_t *to)
{
    uint64_t left = m->entry->packed_bytes - m->done;
    uint16_t n = (uint16_t)pl_min_u64(left, STORED_BYTES);
    m->block_left = n;
    to[0] = left <= STORED_BYTES; /* is it the last one? */
    to[1] = (uint8_t)n;
    to[2] = (uint8_t)(n >> 8);
    to[3] = (uint8_t)~to[1];
    to[4] = (uint8_t)~to[2];
    return 5;
}

/* Makes the next piece of the gzip file for this member; *ret_n 0: its end. */
static int next_piece(member *m, uint8_t *to, size_t *ret_n, pl_error *reterr)
{
    static const uint8_t head[10] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255};
    bool stored = m->entry->method != PL_ZIP_DEFLATED;
    uint64_t left = m->entry->packed_bytes - m->done;
    size_t n = 0;
    int r = 0;
    switch (m->part) {
    case HEAD:
        memcpy(to, head, n = sizeof head);
        m->part = stored ? BLOCK : DATA;
        break;
    case BLOCK:
        n = put_block(m, to);
        m->part = DATA;
        break;
    case DATA:
        n = (size_t)pl_min_u64(stored ? m->block_left : left, PIECE_BYTES);
        r = read_at(m->file, to, n, m->data_offset + m->done, reterr);
        m->done += n;
        m->part = m->done == m->entry->packed_bytes ? FOOT : stored ? BLOCK : DATA;
        if (n > 0 || r < 0)
            break;
        m->part = FOOT; /* it has no bytes at all */
        __attribute__((fallthrough));
    case FOOT:
        put_u32(to, m->entry->crc);
        put_u32(to + 4, (uint32_t)m->entry->unpacked_bytes);
        n = 8;
        m->part = OVER;
        break;
    case OVER:
        break;
    }
    *ret_n = n;
    return r;
}

/* Takes unpacked bytes: the first ones are the header. `n` is UNPACKED_BYTES, or all that is
 * left. */
static void take_unpacked(member *m, const uint8_t *bytes, size_t n)
{
    if (m->is_npy && m->unpacked == 0)
        m->has_npy = pl_npy_parse(bytes, n, m->entry->unpacked_bytes, NULL, &m->npy, &m->why) == 0;
    if (m->has_npy && m->file->want_values)
        pl_npy_values_add(&m->values, &m->npy, m->unpacked, bytes, n);
    m->unpacked += n;
}

static int unpack(member *m, uint8_t *room, pl_inflate *inflate, pl_error *reterr)
{
    uint8_t *out = room + PIECE_BYTES;
    pl_inflate_piece piece = {.out = out, .n_out = UNPACKED_BYTES};
    for (int r = 1; r > 0;) {
        if (piece.n_in == 0 && m->part != OVER) {
            piece.in = room;
            r = next_piece(m, room, &piece.n_in, reterr);
            piece.last = m->part == OVER;
        }
        if (r >= 0)
            r = pl_inflate_go_on(inflate, &piece, reterr);
        if (r >= 0 && (piece.n_out == 0 || r == 0)) {
            take_unpacked(m, out, UNPACKED_BYTES - piece.n_out);
            piece.out = out;
            piece.n_out = UNPACKED_BYTES;
        }
        if (r > 0 && m->unpacked > m->entry->unpacked_bytes)
            return pl_error_set(reterr, PL_ECORRUPT, "more bytes than the directory promises");
        if (r > 0)
            r = pl_verify_go_on(m->file, reterr) < 0 ? -ECANCELED : 1;
        if (r <= 0)
            return r;
    }
    return 0;
}

static bool ends_in_npy(const pl_zip_entry *entry)
{
    return entry->n_name >= 4 && memcmp(entry->name + entry->n_name - 4, ".npy", 4) == 0;
}

static void report_array(member *m)
{
    pl_excerpt name = pl_excerpt_of(m->entry->name, m->entry->n_name);
    if (m->is_npy && !m->has_npy)
        pl_verify_report(m->file, m->why.code == -ENOTSUP ? PL_VERIFY_WARNING : PL_VERIFY_ERROR,
                         m->data_offset, "'%s': %s", name.text, m->why.message);
    if (m->has_npy)
        pl_verify_count(m->file, m->npy.data_bytes);
    if (m->has_npy && m->file->want_values && (m->values.n_nan || m->values.n_inf))
        pl_verify_report(
            m->file, PL_VERIFY_WARNING, m->data_offset,
            "'%s': %" PRIu64 " of %" PRIu64 " values are NaN, %" PRIu64 " are infinite", name.text,
            m->values.n_nan, m->npy.data_bytes / m->npy.item_bytes, m->values.n_inf);
}

static int check_member(pl_verify_file *file, const pl_zip_entry *entry, uint8_t *room,
                        pl_error *reterr)
{
    uint8_t local[PL_ZIP_LOCAL_BYTES];
    member m = {.file = file, .entry = entry, .is_npy = ends_in_npy(entry)};
    pl_error why = {0};
    int r = read_at(file, local, sizeof local, entry->local_offset, &why);
    if (r == 0)
        r = pl_zip_data_offset(entry, local, file->file_bytes, &m.data_offset, &why);
    if (r == 0)
        r = unpack(&m, room + pl_inflate_bytes(), pl_inflate_begin(room, PL_PACKING_GZIP), &why);
    if (r == 0 && m.unpacked != entry->unpacked_bytes)
        r = pl_error_set(&why, PL_ECORRUPT, "%" PRIu64 " bytes, the directory promises %" PRIu64,
                         m.unpacked, entry->unpacked_bytes);
    else if (r == PL_ECORRUPT && m.data_offset > 0 &&
             m.unpacked <= entry->unpacked_bytes) /* gzip's checksums mean nothing here */
        pl_error_set(&why, r,
                     "its data is corrupt: checksum, length or packing is another than the "
                     "directory's");
    if (r == -ECANCELED)
        return pl_error_move(reterr, &why);
    if (r < 0)
        pl_verify_report(file, PL_VERIFY_ERROR, entry->local_offset, "'%s': %s",
                         pl_excerpt_of(entry->name, entry->n_name).text, why.message);
    else
        report_array(&m);
    return 0;
}

static int check_members(pl_verify_file *file, const pl_zip_directory *directory,
                         const uint8_t *bytes, uint8_t *room, pl_error *reterr)
{
    pl_zip_entry entry;
    pl_error why = {0};
    size_t at = 0;
    int r;
    while ((r = pl_zip_next(directory, bytes, &at, &entry, &why)) != 0) {
        if (r > 0)
            r = check_member(file, &entry, room, reterr);
        else
            pl_verify_report(file, PL_VERIFY_ERROR, directory->offset + at, "%s", why.message);
        if (r < 0 && r != -ENOTSUP)
            return r == PL_ECORRUPT ? 0 : r;
    }
    return 0;
}

/* Runs before anything is unpacked. Stops at a corrupt entry, which the later loop reports. */
static int check_apart(pl_verify_file *file, const pl_zip_directory *directory,
                       const uint8_t *bytes, pl_error *why)
{
    pl_zip_entry entry;
    size_t at = 0, n = 0;
    int r;
    pl_block *block = &file->room->pixels;
    uint64_t most = directory->bytes / PL_ZIP_ENTRY_BYTES;
    r = pl_verify_room_for(file, block, most * sizeof(pl_zip_place) + 1, "its directory", why);
    if (r < 0)
        return r;
    pl_zip_place *places = block->data;
    while ((r = pl_zip_next(directory, bytes, &at, &entry, NULL)) > 0 || r == -ENOTSUP)
        if (r > 0)
            places[n++] = pl_zip_place_of(&entry);
    return pl_zip_check_apart(directory, places, n, why);
}

/* Claims directory and work in one block: the inflater's room, its pieces, the directory. */
static int check_zip(pl_verify_file *file, pl_error *why, pl_error *reterr)
{
    pl_zip_directory directory;
    pl_block *block = &file->room->bytes;
    size_t n_tail = (size_t)pl_min_u64(file->file_bytes, PL_ZIP_TAIL_BYTES);
    uint64_t inflate_bytes = (pl_inflate_bytes() + 63) & ~UINT64_C(63);
    uint64_t work_bytes = inflate_bytes + PIECE_BYTES + UNPACKED_BYTES;
    int r = pl_verify_room_for(file, block, work_bytes + PL_ZIP_TAIL_BYTES, "unpacking", why);
    if (r == 0)
        r = read_at(file, block->data, n_tail, file->file_bytes - n_tail, why);
    if (r == 0)
        r = pl_zip_find_directory(block->data, n_tail, file->file_bytes, &directory, why);
    if (r == 0 && directory.bytes > DIRECTORY_BYTES_MAX)
        r = pl_error_set(why, PL_ECORRUPT, "a directory of %" PRIu64 " bytes: at most %d are read",
                         directory.bytes, DIRECTORY_BYTES_MAX);
    if (r == 0)
        r = pl_verify_room_for(file, block, work_bytes + directory.bytes, "unpacking", why);
    uint8_t *bytes = (uint8_t *)block->data + work_bytes;
    if (r == 0)
        r = read_at(file, bytes, directory.bytes, directory.offset, why);
    if (r == 0)
        r = check_apart(file, &directory, bytes, why);
    return r < 0 ? r : check_members(file, &directory, bytes, block->data, reterr);
}

int pl_verify_npz(pl_verify_file *file, pl_error *reterr)
{
    pl_error why = {0};
    int r = check_zip(file, &why, reterr);
    return why.code < 0 ? pl_verify_report_error(file, PL_VERIFY_NO_OFFSET, &why, reterr) : r;
}
