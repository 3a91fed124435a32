/* SPDX-License-Identifier: Apache-2.0 */
#include "data/source/file_source.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "data/persist/state.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

typedef pl_file_source_stage reading_stage;

static const pl_reader_class *class_of(const pl_stage *stage)
{
    return ((const pl_file_source *)stage->dataset)->reader;
}

int pl_file_source_open(pl_stage *stage, pl_error *reterr)
{
    reading_stage *own = (reading_stage *)stage;
    own->reader = calloc(1, class_of(stage)->bytes);
    return own->reader ? 0 : pl_error_set(reterr, -ENOMEM, "out of memory for a reader");
}

static void close_reader(reading_stage *own)
{
    class_of(&own->base)->close(own->reader);
    memset(own->reader, 0, class_of(&own->base)->bytes);
    own->is_open = false;
}

static void close_file(reading_stage *own)
{
    if (own->is_open)
        close_reader(own);
    pl_origin_unref(PL_TAKE(own->origin));
}

void pl_file_source_close(pl_stage *stage)
{
    close_file((reading_stage *)stage);
    free(((reading_stage *)stage)->reader);
}

/* `bad` gets the origin of a file that cannot be opened. */
static int open_file(reading_stage *own, pl_element *bad, pl_error *reterr)
{
    int r = class_of(&own->base)->open(&own->base, own->reader, own->origin->path, reterr);
    own->is_open = r == 0;
    if (r == 0)
        return 0;
    close_reader(own);
    if (pl_pass_later(own->base.pass, r))
        return PL_RETRY_ALONE;
    r = pl_stage_fail_as(bad, &(pl_element){.origin = own->origin, .offset = -1}, r);
    close_file(own);
    return r;
}

static int set_file(reading_stage *own, const char *path, pl_error *reterr)
{
    own->origin = pl_origin_new(path);
    return own->origin ? 0
                       : pl_pass_fail(own->base.pass, -ENOMEM, reterr, "out of memory for a path");
}

/* The next path: 1, or 0 at the end. */
static int next_file(reading_stage *own, pl_element *bad, pl_error *reterr)
{
    pl_element element;
    pl_string string;
    char path[PATH_MAX];
    int r = pl_stage_next(own->base.inputs[0], &element, reterr);
    if (r <= 0)
        return r;
    element.n_items = 0; /* its elements will count */
    pl_tensor *tensor = pl_element_items(&element)[0].tensor;
    r = pl_tensor_pin_string(tensor, NULL, &string, reterr);
    if (r == 0) {
        bool fits = string.n < sizeof path && !memchr(string.data, 0, string.n);
        snprintf(path, sizeof path, "%.*s", fits ? (int)string.n : 0, (const char *)string.data);
        pl_tensor_unpin(tensor);
        if (!fits)
            r = pl_stage_fail(bad, NULL, -EINVAL, reterr, "a path of %zu bytes is invalid",
                              string.n);
    }
    pl_stage_dropped(&own->base, &element);
    if (r == 0)
        r = set_file(own, path, reterr);
    return r < 0 ? r : 1;
}

/* Reads an element that did not fit beside those made ahead again later. */
static int next_element(reading_stage *own, pl_element *ret_element, pl_error *reterr)
{
    const pl_reader_class *class = class_of(&own->base);
    pl_element element;
    uint64_t offset = 0;
    if (pl_element_init(&element, own->base.dataset->n_components) < 0)
        return pl_pass_fail(own->base.pass, -ENOMEM, reterr, "out of memory for an element");
    pl_file_position place = class->tell(own->reader);
    int r = class->next(&own->base, own->reader, pl_element_items(&element), &offset, reterr);
    bool later = pl_pass_later(own->base.pass, r);
    if (later)
        r = class->seek(own->reader, place, reterr);
    element.origin = pl_origin_ref(own->origin);
    element.offset = (int64_t)offset;
    if (r > 0) {
        *ret_element = element;
        return 1;
    }
    if (r < 0)
        r = pl_stage_fail_as(ret_element, &element, r);
    pl_element_clear(&element);
    if (r == 0 && later)
        return PL_RETRY_ALONE;
    if (r == 0 || (class->is_lost && class->is_lost(own->reader)))
        close_file(own);
    return r;
}

int pl_file_source_next(pl_stage *stage, pl_element *ret_element, pl_error *reterr)
{
    reading_stage *own = (reading_stage *)stage;
    for (;;) {
        int r = own->origin ? 1 : next_file(own, ret_element, reterr);
        if (r <= 0)
            return r;
        r = own->is_open ? 0 : open_file(own, ret_element, reterr);
        if (r < 0)
            return r;
        r = next_element(own, ret_element, reterr);
        if (r != 0)
            return r;
    }
}

/* ---- checkpoints ---- */

int pl_file_source_save(pl_stage *stage, pl_saver *saver, pl_error *reterr)
{
    reading_stage *own = (reading_stage *)stage;
    int64_t n = own->origin ? (int64_t)strlen(own->origin->path) : 0;
    int r = pl_save_int(saver, n, reterr);
    if (r < 0 || n == 0)
        return r;
    pl_file_position place = {0};
    if (own->is_open)
        place = class_of(stage)->tell(own->reader);
    r = pl_save_bytes(saver, own->origin->path, (size_t)n, reterr);
    if (r == 0)
        r = pl_save_bytes(saver, &place, sizeof place, reterr);
    return r;
}

int pl_file_source_restore(pl_stage *stage, pl_loader *loader, pl_error *reterr)
{
    reading_stage *own = (reading_stage *)stage;
    char path[PATH_MAX] = "";
    pl_file_position place;
    pl_element bad = {0};
    int64_t n;
    int r = pl_load_int(loader, 0, PATH_MAX - 1, &n, reterr);
    if (r < 0 || n == 0)
        return r;
    r = pl_load_bytes(loader, path, (size_t)n, reterr);
    if (r == 0)
        r = pl_load_bytes(loader, &place, sizeof place, reterr);
    if (r == 0)
        r = set_file(own, path, reterr);
    if (r == 0)
        r = open_file(own, &bad, reterr);
    pl_element_clear(&bad);
    /* A reader that was not open yet starts at the beginning when it is opened. */
    return r < 0 || place.offset == 0 ? r : class_of(stage)->seek(own->reader, place, reterr);
}

/* ---- making ---- */

int pl_file_source_make(const pl_dataset_class *class, const pl_reader_class *reader,
                        pl_dataset *paths, int n_components, pl_dataset **ret_dataset,
                        pl_error *reterr)
{
    const pl_spec *spec = &paths->spec[0];
    if (paths->n_components != 1 || spec->dtype != PL_STRING || spec->shape.rank > 0)
        return pl_error_set(reterr, -EINVAL,
                            "%s: takes paths, one string an element; '%s' has %d components of %s",
                            class->name, pl_dataset_name(paths), paths->n_components,
                            pl_dtype_info_of(spec->dtype)->name);
    int r = pl_dataset_make(class, paths->runtime, &paths, 1, n_components, ret_dataset, reterr);
    if (r < 0)
        return r;
    ((pl_file_source *)*ret_dataset)->reader = reader;
    ((pl_file_source *)*ret_dataset)->packing = PL_PACKING_AUTO;
    return 0;
}

int pl_file_source_unpack(pl_dataset *dataset, pl_compression compression, pl_dataset **ret_dataset,
                          pl_error *reterr)
{
    static const pl_packing packings[] = {
        [PL_COMPRESSION_AUTO] = PL_PACKING_AUTO,
        [PL_COMPRESSION_NONE] = PL_PACKING_NONE,
        [PL_COMPRESSION_GZIP] = PL_PACKING_GZIP,
        [PL_COMPRESSION_ZLIB] = PL_PACKING_ZLIB,
    };
    if ((unsigned)compression >= PL_COUNT_OF(packings)) {
        int r = pl_error_set(reterr, -EINVAL, "%s: %d is not a compression", dataset->class->name,
                             (int)compression);
        pl_dataset_unref(dataset);
        return r;
    }
    ((pl_file_source *)dataset)->packing = packings[compression];
    *ret_dataset = dataset;
    return 0;
}

const char *pl_file_source_compression(const pl_dataset *dataset)
{
    static const char *const names[] = {
        [PL_PACKING_NONE] = "none",
        [PL_PACKING_GZIP] = "gzip",
        [PL_PACKING_ZLIB] = "zlib",
        [PL_PACKING_AUTO] = NULL,
    };
    return names[((const pl_file_source *)dataset)->packing];
}

int pl_file_source_string(const pl_stage *stage, const void *bytes, size_t n, pl_item *ret_item,
                          pl_error *reterr)
{
    const pl_string string = {bytes, n};
    return pl_tensor_new_strings(stage->pass->runtime, &(pl_shape){0}, &string, "element",
                                 &ret_item->tensor, reterr);
}
