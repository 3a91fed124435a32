/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a TFRecord file: the checksums of every record and, if the first is an Example, that all
 * have its features. */
#include <errno.h>
#include <inttypes.h>

#include "data/reader/record_reader.h"
#include "verify/schema.h"

/* Gives the record's bytes: in the window, or, for a large one, in the thread's room. */
static int bytes_of(pl_verify_file *file, pl_record_reader *reader, const pl_record *record,
                    const uint8_t **ret_data, pl_error *reterr)
{
    *ret_data = record->data;
    if (record->data)
        return 0;
    int r = pl_verify_room_for(file, &file->room->bytes, record->data_bytes, "a record", reterr);
    if (r == 0)
        r = pl_record_reader_read(reader, file->room->bytes.data, reterr);
    *ret_data = file->room->bytes.data;
    return r;
}

static void report_difference(pl_verify_file *file, pl_verify_severity severity,
                              const pl_record *record, const char *text)
{
    pl_error why = {0};
    pl_error_set(&why, PL_EFORMAT, "%s", text);
    pl_error_at_record(&why, record->place.index, record->place.offset);
    pl_verify_report_place(file, severity, &why);
}

static int check_example(pl_verify_file *file, const pl_record *record, const uint8_t *data)
{
    char text[PL_VERIFY_DIFFERENCE_BYTES];
    if (record->place.index == 0) {
        int r = pl_verify_schema_new(data, record->data_bytes, &file->schema);
        return r < 0 ? r : 0;
    }
    if (!file->schema)
        return 0;
    pl_verify_severity severity =
        pl_verify_schema_compare(file->schema, data, record->data_bytes, text);
    if (severity != PL_VERIFY_GOOD)
        report_difference(file, severity, record, text);
    return 0;
}

/* Returns 1 to go on, 0 at the end. */
static int check_next(pl_verify_file *file, pl_record_reader *reader, pl_error *reterr)
{
    pl_record record = {.place = pl_record_reader_tell(reader)};
    const uint8_t *data = NULL;
    pl_error why = {0};
    int r = pl_record_reader_next(reader, &record, &why);
    if (r == 0)
        return 0;
    if (r > 0)
        r = bytes_of(file, reader, &record, &data, &why);
    if (r < 0) {
        bool lost =
            pl_record_reader_is_lost(reader) || (why.code != PL_ECORRUPT && why.code != PL_EBUDGET);
        r = pl_verify_report_error(file, record.place.offset, &why, reterr);
        return r < 0 ? r : !lost;
    }
    pl_verify_count(file, record.data_bytes);
    if (file->want_size_only)
        return 1;
    r = check_example(file, &record, data);
    return r < 0 ? pl_error_set(reterr, r, "no memory for the features of '%s'", file->path) : 1;
}

int pl_verify_records(pl_verify_file *file, pl_error *reterr)
{
    pl_record_reader *reader;
    pl_error why = {0};
    pl_packing packing = file->is_packed ? PL_PACKING_GZIP : PL_PACKING_NONE;
    int r = pl_record_reader_new(file->path, packing, 0, file->memory, &reader, &why);
    if (r < 0)
        return pl_verify_report_error(file, PL_VERIFY_NO_OFFSET, &why, reterr);
    while ((r = check_next(file, reader, reterr)) > 0)
        if ((r = pl_verify_go_on(file, reterr)) < 0)
            break;
    pl_record_reader_free(reader);
    return r;
}
