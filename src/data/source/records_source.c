/* SPDX-License-Identifier: Apache-2.0 */
/* The records of TFRecord files, as strings. */
#include <assert.h>
#include <errno.h>

#include "codec/record/crc32c.h"
#include "codec/record/tfrecord.h"
#include "data/reader/record_reader.h"
#include "data/source/file_source.h"
#include "tensor/strings.h"

typedef struct records_reader {
    pl_record_reader *reader;
} records_reader;

static int open_records(const pl_stage *stage, void *reader, const char *path, pl_error *reterr)
{
    return pl_record_reader_new(path, pl_file_source_packing(stage), 0,
                                stage->pass->runtime->memory, &((records_reader *)reader)->reader,
                                reterr);
}

static void close_records(void *reader)
{
    pl_record_reader_free(((records_reader *)reader)->reader);
}

/* A large record is read directly into its tensor. */
static int read_large(const pl_stage *stage, pl_record_reader *reader, const pl_record *record,
                      pl_item *ret_item, pl_error *reterr)
{
    pl_strings_maker maker = {0};
    int r = pl_strings_begin(&maker, stage->pass->runtime, &(pl_shape){0}, record->data_bytes,
                             "record", reterr);
    if (r < 0)
        return r;
    r = pl_record_reader_read(reader, pl_strings_add(&maker, record->data_bytes), reterr);
    if (r == 0)
        return pl_strings_end(&maker, &ret_item->tensor, reterr);
    pl_strings_drop(&maker);
    return r;
}

static int next_record(const pl_stage *stage, void *reader, pl_item *items, uint64_t *ret_offset,
                       pl_error *reterr)
{
    pl_record_reader *records = ((records_reader *)reader)->reader;
    pl_record record = {.place = pl_record_reader_tell(records)};
    int r = pl_record_reader_next(records, &record, reterr);
    *ret_offset = record.place.offset;
    if (r <= 0)
        return r;
    r = record.data
            ? pl_file_source_string(stage, record.data, record.data_bytes, &items[0], reterr)
            : read_large(stage, records, &record, &items[0], reterr);
    return r < 0 ? r : 1;
}

static bool is_lost(const void *reader)
{
    return pl_record_reader_is_lost(((const records_reader *)reader)->reader);
}

static pl_file_position tell(const void *reader)
{
    pl_record_place place = pl_record_reader_tell(((const records_reader *)reader)->reader);
    return (pl_file_position){place.offset, place.index};
}

static int seek(void *reader, pl_file_position place, pl_error *reterr)
{
    return pl_record_reader_seek(((records_reader *)reader)->reader,
                                 (pl_record_place){place.offset, place.number}, reterr);
}

static const pl_reader_class records_of = {
    .bytes = sizeof(records_reader),
    .open = open_records,
    .close = close_records,
    .next = next_record,
    .is_lost = is_lost,
    .tell = tell,
    .seek = seek,
};

static void describe(const pl_dataset *dataset, FILE *to)
{
    const char *compression = pl_file_source_compression(dataset);
    fprintf(to, "compression=%s", compression ? compression : "auto");
}

static const pl_dataset_class records_class = {.name = "records",
                                               .dataset_bytes = sizeof(pl_file_source),
                                               .describe = describe,
                                               PL_FILE_SOURCE_CLASS};

int pl_dataset_records(pl_dataset *paths, pl_compression compression, pl_dataset **ret_dataset,
                       pl_error *reterr)
{
    PL_NOT_NULL(paths, reterr);
    PL_NOT_NULL(ret_dataset, reterr);
    pl_dataset *dataset;
    int r = pl_file_source_make(&records_class, &records_of, paths, 1, &dataset, reterr);
    if (r < 0)
        return r;
    dataset->spec[0] = (pl_spec){.dtype = PL_STRING};
    return pl_file_source_unpack(dataset, compression, ret_dataset, reterr);
}

void pl_record_frame(const void *data, size_t n, uint8_t head[PL_RECORD_HEAD_BYTES],
                     uint8_t foot[PL_RECORD_FOOT_BYTES])
{
    if (n > 0 && data == NULL)
        return;
    PL_NULL_DOES_NOTHING(head);
    PL_NULL_DOES_NOTHING(foot);
    static_assert(PL_RECORD_HEAD_BYTES == PL_TFRECORD_HEAD_BYTES &&
                      PL_RECORD_FOOT_BYTES == PL_TFRECORD_FOOT_BYTES,
                  "the public header knows the frame");
    pl_tfrecord_write_head(n, head);
    pl_tfrecord_write_foot(pl_crc32c(0, data, n), foot);
}
