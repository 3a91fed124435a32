/* SPDX-License-Identifier: Apache-2.0 */
/* See zip.h; the numbers are those of PKWARE's APPNOTE 6.3. */
#include "codec/archive/zip.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "codec/text/excerpt.h"

enum { END_BYTES = 22, LOCATOR_BYTES = 20, END64_BYTES = 56 };

static uint16_t u16_at(const uint8_t *at)
{
    return (uint16_t)(at[0] | at[1] << 8);
}

static uint32_t u32_at(const uint8_t *at)
{
    return u16_at(at) | (uint32_t)u16_at(at + 2) << 16;
}

static uint64_t u64_at(const uint8_t *at)
{
    return u32_at(at) | (uint64_t)u32_at(at + 4) << 32;
}

static bool is_signed(const uint8_t *at, const char *with)
{
    return memcmp(at, with, 4) == 0;
}

/* Reads the record before the end of a large file: its numbers replace those that did not fit. */
static int read_end64(const uint8_t *tail, size_t end, uint64_t tail_offset,
                      pl_zip_directory *directory, pl_error *reterr)
{
    if (end < LOCATOR_BYTES || !is_signed(tail + end - LOCATOR_BYTES, "PK\x06\x07"))
        return 0;
    uint64_t offset = u64_at(tail + end - LOCATOR_BYTES + 8);
    if (offset < tail_offset || offset - tail_offset > end - LOCATOR_BYTES ||
        end - LOCATOR_BYTES - (offset - tail_offset) < END64_BYTES ||
        !is_signed(tail + (offset - tail_offset), "PK\x06\x06"))
        return pl_error_set(
            reterr, PL_ECORRUPT,
            "the zip's end for large files is not at byte %" PRIu64 ", where it should be", offset);
    const uint8_t *at = tail + (offset - tail_offset);
    directory->n_entries = u64_at(at + 32);
    directory->bytes = u64_at(at + 40);
    directory->offset = u64_at(at + 48);
    return 0;
}

int pl_zip_find_directory(const void *tail, size_t n, uint64_t file_bytes,
                          pl_zip_directory *ret_directory, pl_error *reterr)
{
    const uint8_t *bytes = tail;
    size_t end = n;
    for (size_t i = n >= END_BYTES ? n - END_BYTES + 1 : 0; i-- > 0 && end == n;)
        if (is_signed(bytes + i, "PK\x05\x06") && u16_at(bytes + i + 20) == n - i - END_BYTES)
            end = i;
    if (end == n)
        return pl_error_set(reterr, PL_ECORRUPT,
                            "the zip is cut off: its directory, which is at the end, is missing");
    pl_zip_directory directory = {
        .n_entries = u16_at(bytes + end + 10),
        .bytes = u32_at(bytes + end + 12),
        .offset = u32_at(bytes + end + 16),
    };
    int r = read_end64(bytes, end, file_bytes - n, &directory, reterr);
    if (r < 0)
        return r;
    if (directory.offset > file_bytes || directory.bytes > file_bytes - directory.offset)
        return pl_error_set(reterr, PL_ECORRUPT,
                            "the zip's directory, %" PRIu64 " bytes at byte %" PRIu64
                            ", is not within its %" PRIu64 " bytes",
                            directory.bytes, directory.offset, file_bytes);
    *ret_directory = directory;
    return 0;
}

/* Numbers that did not fit are in an extra field, in this order, and only those. */
static bool read_extra64(const uint8_t *extra, size_t n, pl_zip_entry *entry)
{
    uint64_t *const numbers[] = {&entry->unpacked_bytes, &entry->packed_bytes,
                                 &entry->local_offset};
    while (n >= 4) {
        size_t length = u16_at(extra + 2), used = 0;
        if (length > n - 4)
            return false;
        for (size_t i = 0; u16_at(extra) == 1 && i < PL_COUNT_OF(numbers); i++) {
            if (*numbers[i] != UINT32_MAX)
                continue;
            if (length - used < 8)
                return false;
            *numbers[i] = u64_at(extra + 4 + used);
            used += 8;
        }
        extra += 4 + length;
        n -= 4 + length;
    }
    return true;
}

static int refuse_entry(const pl_zip_directory *directory, size_t at, pl_error *reterr)
{
    pl_error_set(reterr, PL_ECORRUPT, "the zip's directory is corrupt at byte %" PRIu64,
                 directory->offset + at);
    pl_error_at_byte(reterr, directory->offset + at);
    return PL_ECORRUPT;
}

int pl_zip_next(const pl_zip_directory *directory, const void *bytes, size_t *at,
                pl_zip_entry *ret_entry, pl_error *reterr)
{
    const uint8_t *from = (const uint8_t *)bytes + *at;
    size_t left = directory->bytes - *at;
    if (left == 0)
        return 0;
    if (left < PL_ZIP_ENTRY_BYTES || !is_signed(from, "PK\x01\x02"))
        return refuse_entry(directory, *at, reterr);
    size_t n_name = u16_at(from + 28), n_extra = u16_at(from + 30);
    size_t length = PL_ZIP_ENTRY_BYTES + n_name + n_extra + u16_at(from + 32);
    pl_zip_entry entry = {
        .name = (const char *)from + PL_ZIP_ENTRY_BYTES,
        .n_name = n_name,
        .method = u16_at(from + 10),
        .crc = u32_at(from + 16),
        .packed_bytes = u32_at(from + 20),
        .unpacked_bytes = u32_at(from + 24),
        .local_offset = u32_at(from + 42),
    };
    if (length > left || !read_extra64(from + PL_ZIP_ENTRY_BYTES + n_name, n_extra, &entry))
        return refuse_entry(directory, *at, reterr);
    *at += length;
    if ((u16_at(from + 8) & 1) || (entry.method != 0 && entry.method != PL_ZIP_DEFLATED))
        return pl_error_set(reterr, -ENOTSUP, "'%s' is %s", pl_excerpt_of(entry.name, n_name).text,
                            u16_at(from + 8) & 1 ? "encrypted"
                                                 : "packed in another way than "
                                                   "zip's usual one");
    *ret_entry = entry;
    return 1;
}

pl_zip_place pl_zip_place_of(const pl_zip_entry *entry)
{
    uint64_t data = pl_add_sat_u64(entry->local_offset, PL_ZIP_LOCAL_BYTES);
    return (pl_zip_place){entry->local_offset, pl_add_sat_u64(data, entry->packed_bytes)};
}

static int compare_places(const void *a, const void *b)
{
    const pl_zip_place *one = a, *other = b;
    return (one->begin > other->begin) - (one->begin < other->begin);
}

int pl_zip_check_apart(const pl_zip_directory *directory, pl_zip_place *places, size_t n,
                       pl_error *reterr)
{
    if (n == 0)
        return 0;
    qsort(places, n, sizeof *places, compare_places);
    for (size_t i = 0; i + 1 < n; i++)
        if (places[i].end > places[i + 1].begin)
            return pl_error_set(reterr, PL_ECORRUPT,
                                "the files at bytes %" PRIu64 " and %" PRIu64
                                " of the zip share bytes, as in a decompression bomb",
                                places[i].begin, places[i + 1].begin);
    if (places[n - 1].end > directory->offset)
        return pl_error_set(reterr, PL_ECORRUPT,
                            "the file at byte %" PRIu64 " of the zip reaches into its directory",
                            places[n - 1].begin);
    return 0;
}

int pl_zip_data_offset(const pl_zip_entry *entry, const void *local, uint64_t file_bytes,
                       uint64_t *ret_offset, pl_error *reterr)
{
    const uint8_t *at = local;
    uint64_t offset = entry->local_offset + PL_ZIP_LOCAL_BYTES + u16_at(at + 26) + u16_at(at + 28);
    if (!is_signed(at, "PK\x03\x04"))
        return pl_error_set(reterr, PL_ECORRUPT, "there is no file at byte %" PRIu64 " of the zip",
                            entry->local_offset);
    if (offset > file_bytes || entry->packed_bytes > file_bytes - offset)
        return pl_error_set(reterr, PL_ECORRUPT,
                            "its %" PRIu64 " bytes at byte %" PRIu64 " are not within the zip",
                            entry->packed_bytes, offset);
    *ret_offset = offset;
    return 0;
}
