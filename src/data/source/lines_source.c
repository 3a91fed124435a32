/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of text files, as strings. */
#include "data/reader/text_reader.h"
#include "data/source/file_source.h"

static int open_lines(const pl_stage *stage, void *reader, const char *path, pl_error *reterr)
{
    const pl_text_options options = {.packing = pl_file_source_packing(stage)};
    return pl_text_reader_init(reader, path, &options, stage->pass->runtime->memory, reterr);
}

static void close_lines(void *reader)
{
    pl_text_reader_done(reader);
}

static int next_line(const pl_stage *stage, void *reader, pl_item *items, uint64_t *ret_offset,
                     pl_error *reterr)
{
    pl_string line;
    pl_text_place place = pl_text_reader_tell(reader);
    int r = pl_text_reader_next(reader, &line, &place, reterr);
    *ret_offset = place.offset;
    if (r <= 0)
        return r;
    r = pl_file_source_string(stage, line.data, line.n, &items[0], reterr);
    return r < 0 ? r : 1;
}

static pl_file_position tell(const void *reader)
{
    pl_text_place place = pl_text_reader_tell(reader);
    return (pl_file_position){place.offset, place.line};
}

static int seek(void *reader, pl_file_position place, pl_error *reterr)
{
    return pl_text_reader_seek(reader, (pl_text_place){place.offset, place.number}, reterr);
}

static const pl_reader_class lines_reader = {
    .bytes = sizeof(pl_text_reader),
    .open = open_lines,
    .close = close_lines,
    .next = next_line,
    .tell = tell,
    .seek = seek,
};

static void describe(const pl_dataset *dataset, FILE *to)
{
    const char *compression = pl_file_source_compression(dataset);
    if (compression)
        fprintf(to, "compression=%s", compression);
}

static const pl_dataset_class lines_class = {.name = "lines",
                                             .dataset_bytes = sizeof(pl_file_source),
                                             .describe = describe,
                                             PL_FILE_SOURCE_CLASS};

int pl_dataset_lines(pl_dataset *paths, pl_compression compression, pl_dataset **ret_dataset,
                     pl_error *reterr)
{
    PL_NOT_NULL(paths, reterr);
    PL_NOT_NULL(ret_dataset, reterr);
    pl_dataset *dataset;
    int r = pl_file_source_make(&lines_class, &lines_reader, paths, 1, &dataset, reterr);
    if (r < 0)
        return r;
    dataset->spec[0] = (pl_spec){.dtype = PL_STRING};
    return pl_file_source_unpack(dataset, compression, ret_dataset, reterr);
}
