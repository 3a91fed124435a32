/* SPDX-License-Identifier: Apache-2.0 */
#include "data/persist/element_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "data/core/dataset_text.h"

/* ---- writing ---- */

int pl_element_writer_begin(pl_element_writer *writer, pl_runtime *runtime, const char *path,
                            const char *label, bool in_place, pl_error *reterr)
{
    *writer = (pl_element_writer){0};
    int r =
        in_place
            ? pl_record_file_create(&writer->file, runtime, path, PL_RECORD_FILE_ELEMENTS, reterr)
            : pl_record_file_begin(&writer->file, runtime, path, PL_RECORD_FILE_ELEMENTS, reterr);
    if (r == 0)
        r = pl_save_text(&writer->file.saver, label, reterr);
    if (r < 0)
        pl_element_writer_drop(writer);
    return r;
}

int pl_element_writer_add(pl_element_writer *writer, const pl_element *element, pl_error *reterr)
{
    int r = pl_save_bytes(&writer->file.saver, "\1", 1, reterr);
    if (r == 0)
        r = pl_save_element(&writer->file.saver, element, reterr);
    writer->n += r == 0;
    return r;
}

int pl_element_writer_end(pl_element_writer *writer, const pl_element *tail, pl_error *reterr)
{
    static const pl_element nothing;
    pl_saver *saver = &writer->file.saver;
    int r = pl_save_bytes(saver, "\0", 1, reterr);
    if (r == 0)
        r = pl_save_int(saver, writer->n, reterr);
    if (r == 0)
        r = pl_save_element(saver, tail ? tail : &nothing, reterr);
    if (r == 0)
        r = pl_record_file_end(&writer->file, reterr);
    pl_element_writer_drop(writer);
    return r;
}

void pl_element_writer_drop(pl_element_writer *writer)
{
    pl_record_file_drop(&writer->file);
}

/* ---- reading ---- */

static int check_label(pl_element_reader *reader, const char *label, pl_error *reterr)
{
    char *there;
    int r = pl_load_text(&reader->file.loader, PL_TREE_TEXT_MOST, &there, reterr);
    if (r < 0)
        return pl_record_file_fail(reader->file.path, r, reterr);
    r = pl_tree_compare(there, label, reader->file.path, reterr);
    free(there);
    return r;
}

int pl_element_reader_open(pl_element_reader *reader, pl_runtime *runtime, const char *path,
                           const char *label, pl_error *reterr)
{
    *reader = (pl_element_reader){0};
    int r = pl_record_file_open(&reader->file, runtime, path, PL_RECORD_FILE_ELEMENTS, reterr);
    if (r == 0)
        r = check_label(reader, label, reterr);
    if (r < 0)
        pl_element_reader_close(reader);
    return r;
}

void pl_element_reader_close(pl_element_reader *reader)
{
    pl_record_file_close(&reader->file);
    pl_element_clear(&reader->tail);
}

static int read_tail(pl_element_reader *reader, pl_error *reterr)
{
    pl_loader *loader = &reader->file.loader;
    int64_t n;
    int r = pl_load_int(loader, reader->n, reader->n, &n, reterr);
    if (r == 0)
        r = pl_load_element(loader, NULL, &reader->tail, reterr);
    if (r == 0)
        r = pl_record_file_check_end(&reader->file, reterr);
    reader->ended = r == 0;
    return r;
}

static int read_next(pl_element_reader *reader, const pl_dataset *dataset, pl_element *ret_element,
                     pl_error *reterr)
{
    pl_loader *loader = &reader->file.loader;
    uint8_t more;
    int r = pl_load_bytes(loader, &more, 1, reterr);
    if (r == 0 && more > 1)
        r = pl_load_refuse(reterr, "there is %u between elements", more);
    if (r < 0)
        return r;
    if (more == 0)
        return read_tail(reader, reterr);
    r = pl_load_element(loader, dataset, ret_element, reterr);
    if (r < 0)
        return r;
    reader->n++;
    return 1;
}

int pl_element_reader_next(pl_element_reader *reader, const pl_dataset *dataset,
                           pl_element *ret_element, pl_error *reterr)
{
    if (reader->ended)
        return 0;
    pl_record_file_mark mark = pl_record_file_mark_of(&reader->file);
    int r = read_next(reader, dataset, ret_element, reterr);
    if (r == PL_EBUDGET) {
        pl_error went_back = {0};
        r = pl_record_file_go_back(&reader->file, mark, &went_back);
        return r < 0 ? pl_error_move(reterr, &went_back) : PL_EBUDGET;
    }
    return r < 0 ? pl_record_file_fail(reader->file.path, r, reterr) : r;
}

/* ---- places ---- */

int pl_element_reader_save(const pl_element_reader *reader, pl_saver *saver, pl_error *reterr)
{
    int r = pl_save_int(saver, reader->n, reterr);
    if (r == 0)
        r = pl_save_int(saver, reader->ended, reterr);
    return r < 0 ? r : pl_record_file_save_position(&reader->file, saver, reterr);
}

int pl_element_reader_restore(pl_element_reader *reader, pl_loader *loader, pl_error *reterr)
{
    int64_t n, ended;
    int r = pl_load_count(loader, &n, reterr);
    if (r == 0)
        r = pl_load_int(loader, 0, 1, &ended, reterr);
    if (r == 0)
        r = pl_record_file_load_position(&reader->file, loader, reterr);
    if (r < 0)
        return r;
    reader->n = n;
    reader->ended = ended;
    return 0;
}
