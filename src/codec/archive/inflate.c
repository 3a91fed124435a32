/* SPDX-License-Identifier: Apache-2.0 */
/* See inflate.h. Uses ISA-L, which no other file uses: it inflates about twice as fast as zlib
 * (docs/records.md), and its state is a struct of fixed size that the caller places. libdeflate,
 * which reads PNGs, needs the whole input and output at once. */
#include "codec/archive/inflate.h"

#include <assert.h>
#include <inttypes.h>
#include <isa-l/igzip_lib.h>
#include <stdalign.h>

#include "codec/archive/gzip_head.h"

/* A match of 258 bytes takes at least two bits. */
#define MOST_PER_BYTE 1032

struct pl_inflate {
    struct inflate_state state;
    pl_gzip_head head;
    pl_packing packing;
    uint64_t n_in, n_out; /* bytes taken and given since the beginning */
    enum {
        FIRST,  /* nothing taken yet */
        HEAD,   /* in a member's header */
        WITHIN, /* in a member's data */
        BETWEEN,
        PADDING, /* zeros after the last member */
        FAILED,
    } where;
};

static_assert(alignof(struct pl_inflate) <= 64, "the room is aligned to 64");

/* ---- packings ---- */

static bool begins_as_zlib(const uint8_t *at)
{
    pl_gzip_head head = {0};
    return !pl_zlib_head_take(&head, at[0]) && !pl_zlib_head_take(&head, at[1]);
}

pl_packing pl_packing_guess(const void *bytes, size_t n)
{
    const uint8_t *at = bytes;
    if (n >= 2 && at[0] == 0x1f && at[1] == 0x8b)
        return PL_PACKING_GZIP;
    return n >= 2 && begins_as_zlib(at) ? PL_PACKING_ZLIB : PL_PACKING_NONE;
}

const char *pl_packing_name(pl_packing packing)
{
    static const char *const names[] = {[PL_PACKING_NONE] = "none",
                                        [PL_PACKING_GZIP] = "gzip",
                                        [PL_PACKING_ZLIB] = "zlib",
                                        [PL_PACKING_AUTO] = "auto"};
    return names[packing];
}

uint64_t pl_packing_most_bytes(pl_packing packing, uint64_t n)
{
    uint64_t most;
    if (packing == PL_PACKING_NONE)
        return n;
    return __builtin_mul_overflow(n, (uint64_t)MOST_PER_BYTE, &most) ? UINT64_MAX : most;
}

/* ---- faults ---- */

static int refuse(pl_inflate *inflate, const char *what, pl_error *reterr)
{
    inflate->where = FAILED;
    pl_error_set(reterr, PL_ECORRUPT,
                 "its %s data %s, at packed byte %" PRIu64 " and unpacked byte %" PRIu64,
                 pl_packing_name(inflate->packing), what, inflate->n_in, inflate->n_out);
    pl_error_at_byte(reterr, inflate->n_in);
    return PL_ECORRUPT;
}

static const char *fault_of(int result)
{
    switch (result) {
    case ISAL_INCORRECT_CHECKSUM:
        return "is corrupt: a checksum does not match";
    case ISAL_INVALID_LOOKBACK:
        return "is corrupt: it repeats what was never there";
    default:
        return "is corrupt: it cannot be inflated";
    }
}

/* ---- inflating ---- */

size_t pl_inflate_bytes(void)
{
    return sizeof(pl_inflate);
}

pl_inflate *pl_inflate_begin(void *room, pl_packing packing)
{
    pl_inflate *inflate = room;
    assert(packing == PL_PACKING_GZIP || packing == PL_PACKING_ZLIB);
    inflate->packing = packing;
    inflate->n_in = inflate->n_out = 0;
    inflate->where = FIRST;
    return inflate;
}

static void begin_member(pl_inflate *inflate)
{
    isal_inflate_init(&inflate->state);
    inflate->state.crc_flag =
        inflate->packing == PL_PACKING_GZIP ? ISAL_GZIP_NO_HDR_VER : ISAL_ZLIB_NO_HDR_VER;
    inflate->head = (pl_gzip_head){0};
    inflate->where = HEAD;
}

static void take(pl_inflate *inflate, pl_inflate_piece *piece, size_t n)
{
    piece->in += n;
    piece->n_in -= n;
    inflate->n_in += n;
}

/* Takes zeros; they may fill the last block of a tape, or of an archive. */
static int take_padding(pl_inflate *inflate, pl_inflate_piece *piece, pl_error *reterr)
{
    size_t n = 0;
    while (n < piece->n_in && piece->in[n] == 0)
        n++;
    take(inflate, piece, n);
    return piece->n_in > 0 ? refuse(inflate, "has something else behind it", reterr) : 0;
}

/* Looks between members. 1: one begins; 0: there is nothing to do. */
static int begin_next(pl_inflate *inflate, pl_inflate_piece *piece, pl_error *reterr)
{
    if (piece->n_in == 0)
        return 0;
    bool is_first = inflate->where == FIRST;
    bool begins = inflate->packing == PL_PACKING_GZIP && piece->in[0] == 0x1f;
    if (is_first || (inflate->where == BETWEEN && begins)) {
        begin_member(inflate);
        return 1;
    }
    inflate->where = PADDING;
    return take_padding(inflate, piece, reterr);
}

/* Cuts a size to the library's 32 bits. */
static uint32_t cut(size_t n)
{
    return (uint32_t)pl_min_u64(n, PL_GIB);
}

/* Returns 1 when data follows; 0 when more of the header is needed. */
static int take_head(pl_inflate *inflate, pl_inflate_piece *piece, pl_error *reterr)
{
    while (piece->n_in > 0 && inflate->head.part != PL_GZIP_DATA) {
        uint8_t byte = *piece->in;
        const char *fault = inflate->packing == PL_PACKING_GZIP
                                ? pl_gzip_head_take(&inflate->head, byte)
                                : pl_zlib_head_take(&inflate->head, byte);
        if (fault)
            return refuse(inflate, fault, reterr);
        take(inflate, piece, 1);
    }
    if (inflate->head.part != PL_GZIP_DATA)
        return 0;
    inflate->where = WITHIN;
    return 1;
}

/* Ends a member. The library may have taken bytes from behind it: as many as fit into its bit
 * buffer beside the checksum at the end. With gzip, checksum and length fill that buffer, so there
 * are no such bytes, and nothing to give back. */
static int end_member(pl_inflate *inflate, pl_error *reterr)
{
    const struct inflate_state *state = &inflate->state;
    inflate->where = BETWEEN;
    if (state->read_in_length >= 8 && state->read_in != 0)
        return refuse(inflate, "has something else behind it", reterr);
    return 1;
}

/* ISA-L 2.30's Adler-32 for arm64 reads 32 bytes past its input if that has 32 or more: they must
 * be readable, so we leave some of the room for the next time. */
static uint32_t room_to_fill(const pl_inflate *inflate, size_t n)
{
    enum { LOADED = 32 };
    uint32_t room = cut(n);
#if defined(__aarch64__)
    if (inflate->packing == PL_PACKING_ZLIB && room >= LOADED)
        return room >= 2 * LOADED ? room - LOADED : LOADED - 1;
#else
    (void)inflate;
#endif
    return room;
}

/* Inflates within a member. 1: it made progress; 0: it needs more input or room. */
static int inflate_some(pl_inflate *inflate, pl_inflate_piece *piece, pl_error *reterr)
{
    struct inflate_state *state = &inflate->state;
    uint32_t n_in = cut(piece->n_in), n_out = room_to_fill(inflate, piece->n_out);
    state->next_in = (uint8_t *)(uintptr_t)piece->in; /* the library only reads it */
    state->avail_in = n_in;
    state->next_out = piece->out;
    state->avail_out = n_out;
    int result = isal_inflate(state);
    n_out -= state->avail_out;
    n_in -= state->avail_in;
    take(inflate, piece, n_in);
    piece->out += n_out;
    piece->n_out -= n_out;
    inflate->n_out += n_out;
    bool stands_still = n_in == 0 && n_out == 0;
    if (result < 0 || (stands_still && piece->n_in > 0 && piece->n_out > 0))
        return refuse(inflate, fault_of(result), reterr);
    return state->block_state == ISAL_BLOCK_FINISH ? end_member(inflate, reterr) : !stands_still;
}

static int step(pl_inflate *inflate, pl_inflate_piece *piece, pl_error *reterr)
{
    switch (inflate->where) {
    case FAILED:
        return refuse(inflate, "is corrupt: it failed before", reterr);
    case HEAD:
        return take_head(inflate, piece, reterr);
    case WITHIN:
        return inflate_some(inflate, piece, reterr);
    default:
        return begin_next(inflate, piece, reterr);
    }
}

int pl_inflate_go_on(pl_inflate *inflate, pl_inflate_piece *piece, pl_error *reterr)
{
    int r;
    do
        r = step(inflate, piece, reterr);
    while (r > 0);
    if (r < 0 || piece->n_out == 0 || !piece->last)
        return r < 0 ? r : 1;
    if (inflate->where < BETWEEN)
        return refuse(inflate, "is cut off", reterr);
    return 0;
}
