/* SPDX-License-Identifier: Apache-2.0 */
/* Records of one size, between a head and a foot that are skipped, as strings. */
#include <errno.h>
#include <inttypes.h>

#include "data/reader/file_window.h"
#include "data/source/file_source.h"
#include "tensor/strings.h"

typedef struct fixed_dataset {
    pl_file_source base;
    uint64_t head_bytes, record_bytes, foot_bytes;
} fixed_dataset;

typedef struct fixed_reader {
    pl_file_window window;
    bool lost;
} fixed_reader;

static int open_fixed(const pl_stage *stage, void *reader, const char *path, pl_error *reterr)
{
    fixed_reader *fixed = reader;
    int r = pl_file_window_init(&fixed->window, path, pl_file_source_packing(stage), 0,
                                stage->pass->runtime->memory, reterr);
    if (r < 0)
        return r;
    return pl_file_window_seek(&fixed->window, ((const fixed_dataset *)stage->dataset)->head_bytes,
                               reterr);
}

static void close_fixed(void *reader)
{
    pl_file_window_done(&((fixed_reader *)reader)->window);
}

static int tell_short(const fixed_dataset *own, fixed_reader *fixed, uint64_t left,
                      pl_error *reterr)
{
    fixed->lost = true;
    pl_error_set(reterr, PL_ECORRUPT,
                 "%" PRIu64 " bytes are left, which are not a record of %" PRIu64
                 " and a foot of %" PRIu64,
                 left, own->record_bytes, own->foot_bytes);
    pl_error_of_kind(reterr, PL_KIND_PARTIAL_RECORD);
    return PL_ECORRUPT;
}

/* 1: a record follows; 0: only the foot does. For a large record, only its beginning and the file's
 * length are checked; a packed file's length is unknown, and reading finds out. */
static int look(const fixed_dataset *own, fixed_reader *fixed, pl_error *reterr)
{
    uint64_t whole = pl_add_sat_u64(own->record_bytes, own->foot_bytes);
    uint64_t need = whole > PL_MIB ? own->foot_bytes + 1 : whole;
    int r = pl_file_window_more(&fixed->window, need, reterr);
    uint64_t left = fixed->window.n;
    if (r == 0 && need < whole && left >= need)
        r = pl_file_window_most_left(&fixed->window, &left, reterr);
    if (r < 0) {
        fixed->lost = true;
        return r;
    }
    if (left >= whole)
        return 1;
    return left == own->foot_bytes ? 0 : tell_short(own, fixed, left, reterr);
}

/* Is a foot left behind the record that was read? Else that one has bytes of it. */
static int check_foot(const fixed_dataset *own, fixed_reader *fixed, pl_error *reterr)
{
    int r = pl_file_window_more(&fixed->window, own->foot_bytes, reterr);
    if (r == 0 && fixed->window.n < own->foot_bytes)
        r = tell_short(own, fixed, own->record_bytes + fixed->window.n, reterr);
    fixed->lost |= r < 0;
    return r;
}

static int next_fixed(const pl_stage *stage, void *reader, pl_item *items, uint64_t *ret_offset,
                      pl_error *reterr)
{
    const fixed_dataset *own = (const fixed_dataset *)stage->dataset;
    fixed_reader *fixed = reader;
    pl_strings_maker maker = {0};
    *ret_offset = fixed->window.offset;
    int r = look(own, fixed, reterr);
    if (r <= 0)
        return r;
    r = pl_strings_begin(&maker, stage->pass->runtime, &(pl_shape){0}, own->record_bytes, "record",
                         reterr);
    if (r < 0) { /* costs this record */
        uint64_t behind = pl_add_sat_u64(fixed->window.offset, own->record_bytes);
        fixed->lost = pl_file_window_seek(&fixed->window, behind, NULL) < 0;
        return r;
    }
    r = pl_file_window_read(&fixed->window, pl_strings_add(&maker, own->record_bytes),
                            own->record_bytes, reterr);
    if (r == 0)
        r = check_foot(own, fixed, reterr);
    if (r < 0) {
        pl_strings_drop(&maker);
        fixed->lost = true;
        return r;
    }
    r = pl_strings_end(&maker, &items[0].tensor, reterr);
    return r < 0 ? r : 1;
}

static bool is_lost(const void *reader)
{
    return ((const fixed_reader *)reader)->lost;
}

static pl_file_position tell(const void *reader)
{
    return (pl_file_position){((const fixed_reader *)reader)->window.offset, 0};
}

static int seek(void *reader, pl_file_position place, pl_error *reterr)
{
    fixed_reader *fixed = reader;
    int r = pl_file_window_seek(&fixed->window, place.offset, reterr);
    fixed->lost = r < 0;
    return r;
}

static const pl_reader_class fixed_of = {
    .bytes = sizeof(fixed_reader),
    .open = open_fixed,
    .close = close_fixed,
    .next = next_fixed,
    .is_lost = is_lost,
    .tell = tell,
    .seek = seek,
};

static void describe(const pl_dataset *dataset, FILE *to)
{
    const fixed_dataset *own = (const fixed_dataset *)dataset;
    fprintf(to, "head=%" PRIu64 ", record=%" PRIu64 ", foot=%" PRIu64, own->head_bytes,
            own->record_bytes, own->foot_bytes);
    const char *compression = pl_file_source_compression(dataset);
    if (compression)
        fprintf(to, ", compression=%s", compression);
}

static const pl_dataset_class fixed_class = {.name = "fixed_records",
                                             .dataset_bytes = sizeof(fixed_dataset),
                                             .describe = describe,
                                             PL_FILE_SOURCE_CLASS};

int pl_dataset_fixed_records(pl_dataset *paths, uint64_t head_bytes, uint64_t record_bytes,
                             uint64_t foot_bytes, pl_compression compression,
                             pl_dataset **ret_dataset, pl_error *reterr)
{
    PL_NOT_NULL(paths, reterr);
    PL_NOT_NULL(ret_dataset, reterr);
    if (record_bytes == 0 || record_bytes > INT64_MAX || head_bytes > INT64_MAX ||
        foot_bytes > INT64_MAX)
        return pl_error_set(reterr, -EINVAL,
                            "fixed_records: records of %" PRIu64 " bytes, a head of %" PRIu64
                            " and a foot of %" PRIu64 ": a record has at least 1, and none 2^63",
                            record_bytes, head_bytes, foot_bytes);
    pl_dataset *dataset;
    int r = pl_file_source_make(&fixed_class, &fixed_of, paths, 1, &dataset, reterr);
    if (r < 0)
        return r;
    fixed_dataset *own = (fixed_dataset *)dataset;
    own->base.base.spec[0] = (pl_spec){.dtype = PL_STRING};
    own->head_bytes = head_bytes;
    own->record_bytes = record_bytes;
    own->foot_bytes = foot_bytes;
    return pl_file_source_unpack(dataset, compression, ret_dataset, reterr);
}
