/* SPDX-License-Identifier: Apache-2.0 */
/* The records of CSV files: a component for each column. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "data/reader/csv_reader.h"
#include "data/source/file_source.h"
#include "tensor/strings.h"

typedef struct csv_dataset {
    pl_file_source base;
    pl_csv_format format; /* what it points to is in `texts` and the arrays */
    pl_csv_column *columns;
    int64_t *selected;
    char **texts; /* defaults, and na_value as the last */
    bool header;
} csv_dataset;

typedef struct csv_source_reader {
    pl_csv_reader reader;
    pl_csv_value *values;
} csv_source_reader;

static const csv_dataset *of(const pl_stage *stage)
{
    return (const csv_dataset *)stage->dataset;
}

static int open_csv(const pl_stage *stage, void *reader, const char *path, pl_error *reterr)
{
    csv_source_reader *own = reader;
    const pl_csv_options options = {.packing = pl_file_source_packing(stage),
                                    .header = of(stage)->header};
    own->values = calloc((size_t)of(stage)->format.n_columns, sizeof *own->values);
    if (!own->values)
        return pl_error_set(reterr, -ENOMEM, "out of memory for a record");
    return pl_csv_reader_init(&own->reader, path, &of(stage)->format, &options,
                              stage->pass->runtime->memory, reterr);
}

static void close_csv(void *reader)
{
    csv_source_reader *own = reader;
    pl_csv_reader_done(&own->reader);
    free(own->values);
}

static int text_item(const pl_stage *stage, const pl_csv_field *text, pl_item *ret_item,
                     pl_error *reterr)
{
    pl_strings_maker maker = {0};
    size_t n = pl_csv_text_bytes(text);
    int r = pl_strings_begin(&maker, stage->pass->runtime, &(pl_shape){0}, n, "field", reterr);
    if (r < 0)
        return r;
    pl_csv_text_copy(text, pl_strings_add(&maker, n));
    return pl_strings_end(&maker, &ret_item->tensor, reterr);
}

static int next_csv(const pl_stage *stage, void *reader, pl_item *items, uint64_t *ret_offset,
                    pl_error *reterr)
{
    csv_source_reader *own = reader;
    const pl_csv_format *format = &of(stage)->format;
    pl_text_place place = pl_csv_reader_tell(&own->reader);
    int r = pl_csv_reader_next(&own->reader, own->values, &place, reterr);
    *ret_offset = place.offset;
    if (r <= 0)
        return r;
    r = 0;
    for (int i = 0; r == 0 && i < format->n_columns; i++)
        if (format->columns[i].dtype == PL_STRING)
            r = text_item(stage, &own->values[i].text, &items[i], reterr);
        else
            items[i] = pl_item_scalar(format->columns[i].dtype, own->values[i].bits);
    return r < 0 ? r : 1;
}

static pl_file_position tell(const void *reader)
{
    pl_text_place place = pl_csv_reader_tell(&((const csv_source_reader *)reader)->reader);
    return (pl_file_position){place.offset, place.line};
}

static int seek(void *reader, pl_file_position place, pl_error *reterr)
{
    return pl_csv_reader_seek(&((csv_source_reader *)reader)->reader,
                              (pl_text_place){place.offset, place.number}, reterr);
}

static const pl_reader_class csv_of = {
    .bytes = sizeof(csv_source_reader),
    .open = open_csv,
    .close = close_csv,
    .next = next_csv,
    .tell = tell,
    .seek = seek,
};

static void free_csv(pl_dataset *dataset)
{
    csv_dataset *own = (csv_dataset *)dataset;
    for (int i = 0; own->texts && i <= dataset->n_components; i++)
        free(own->texts[i]);
    free(own->texts);
    free(own->columns);
    free(own->selected);
}

static void describe(const pl_dataset *dataset, FILE *to)
{
    const csv_dataset *own = (const csv_dataset *)dataset;
    fprintf(to, "columns=%d, delimiter='%c'%s", own->format.n_columns, own->format.delimiter,
            own->header ? ", header" : "");
    const char *compression = pl_file_source_compression(dataset);
    if (compression)
        fprintf(to, ", compression=%s", compression);
}

static const pl_dataset_class csv_class = {.name = "csv",
                                           .dataset_bytes = sizeof(csv_dataset),
                                           .free = free_csv,
                                           .describe = describe,
                                           PL_FILE_SOURCE_CLASS};

/* A copy of a text, kept by the dataset. */
static int keep(csv_dataset *own, int at, pl_string text, pl_string *ret_kept)
{
    own->texts[at] = malloc(text.n + 1);
    if (!own->texts[at])
        return -ENOMEM;
    memcpy(own->texts[at], text.n > 0 ? text.data : "", text.n);
    *ret_kept = (pl_string){own->texts[at], text.n};
    return 0;
}

static int set_columns(csv_dataset *own, const pl_csv_layout *layout)
{
    size_t n = (size_t)layout->n_columns;
    own->columns = calloc(n, sizeof *own->columns);
    own->texts = calloc(n + 1, sizeof(char *));
    own->selected = layout->selected ? calloc(n, sizeof *own->selected) : NULL;
    if (!own->columns || !own->texts || (layout->selected && !own->selected))
        return -ENOMEM;
    if (layout->selected)
        memcpy(own->selected, layout->selected, n * sizeof *own->selected);
    int r = keep(own, (int)n, layout->na_value, &own->format.na_value);
    for (size_t i = 0; r == 0 && i < n; i++) {
        const pl_csv_default *from = &layout->columns[i];
        own->columns[i] =
            (pl_csv_column){.dtype = from->dtype, .required = from->required, .bits = from->bits};
        r = keep(own, (int)i, from->text, &own->columns[i].text);
    }
    own->format.columns = own->columns;
    own->format.selected = own->selected;
    own->format.n_columns = layout->n_columns;
    own->format.delimiter = layout->delimiter ? layout->delimiter : ',';
    own->format.plain_quotes = layout->plain_quotes;
    own->header = layout->header;
    return r;
}

int pl_dataset_csv(pl_dataset *paths, const pl_csv_layout *layout, pl_dataset **ret_dataset,
                   pl_error *reterr)
{
    PL_NOT_NULL(paths, reterr);
    PL_NOT_NULL(layout, reterr);
    PL_NOT_NULL(ret_dataset, reterr);
    PL_TAKE_OPTIONS(pl_csv_layout, layout, compression, reterr);
    if (layout->n_columns < 1)
        return pl_error_set(reterr, -EINVAL, "csv: %d columns", layout->n_columns);
    pl_dataset *dataset;
    int r = pl_file_source_make(&csv_class, &csv_of, paths, layout->n_columns, &dataset, reterr);
    if (r < 0)
        return r;
    csv_dataset *own = (csv_dataset *)dataset;
    r = set_columns(own, layout);
    if (r < 0)
        pl_error_set(reterr, r, "out of memory for a dataset");
    else
        r = pl_csv_check(&own->format, reterr);
    if (r < 0) {
        pl_dataset_unref(dataset);
        return r;
    }
    for (int i = 0; i < layout->n_columns; i++)
        dataset->spec[i] = (pl_spec){.dtype = layout->columns[i].dtype};
    return pl_file_source_unpack(dataset, layout->compression, ret_dataset, reterr);
}
