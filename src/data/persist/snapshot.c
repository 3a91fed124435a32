/* SPDX-License-Identifier: Apache-2.0 */
/* Folders of elements: a stage that writes one and later reads it, a call that writes one, and a
 * source that reads one. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "data/core/dataset_text.h"
#include "data/iterator/iterator.h"
#include "data/persist/folder.h"
#include "data/persist/persist_stage.h"

static int check_arguments(const char *what, const char *path, int64_t n_shards, pl_error *reterr)
{
    if (!*path)
        return pl_error_set(reterr, -EINVAL, "%s: the path is empty", what);
    if (n_shards < 1 || n_shards > PL_FOLDER_SHARDS_MOST)
        return pl_error_set(reterr, -EINVAL, "%s: %" PRId64 " shards, not within 1 and %d", what,
                            n_shards, PL_FOLDER_SHARDS_MOST);
    return 0;
}

/* ---- the stage ---- */

typedef struct snapshot_dataset {
    pl_persist_dataset base;
    char *path;
    char *tree; /* of the input */
    int64_t n_shards;
} snapshot_dataset;

typedef struct snapshot_shelf {
    pl_folder_reader reader;
    pl_folder_writer writer;
} snapshot_shelf;

static snapshot_dataset *snapshot_of(const pl_stage *stage)
{
    return (snapshot_dataset *)stage->dataset;
}

static int look(pl_stage *stage, snapshot_shelf *shelf, pl_error *reterr)
{
    const snapshot_dataset *own = snapshot_of(stage);
    int r = pl_folder_open(&shelf->reader, stage->pass->runtime, own->path, reterr);
    if (r == 0)
        r = pl_tree_compare(shelf->reader.info.tree, own->tree, own->path, reterr);
    if (r < 0)
        pl_folder_close(&shelf->reader);
    return r;
}

static int open_shelf(pl_stage *stage, void *shelf, pl_error *reterr)
{
    int r = look(stage, shelf, reterr);
    return r == PL_ECORRUPT || r == -EINVAL || r == PL_EVERSION ? -ENOENT : r;
}

static int read_shelf(pl_stage *stage, void *shelf, pl_element *ret_element, pl_error *reterr)
{
    return pl_folder_next(&((snapshot_shelf *)shelf)->reader, stage->dataset, ret_element, reterr);
}

static int begin_shelf(pl_stage *stage, void *shelf, pl_error *reterr)
{
    const snapshot_dataset *own = snapshot_of(stage);
    return pl_folder_begin(&((snapshot_shelf *)shelf)->writer, stage->dataset->inputs[0], own->path,
                           own->n_shards, reterr);
}

static int add_shelf(pl_stage *stage, void *shelf, const pl_element *element, pl_error *reterr)
{
    (void)stage;
    return pl_folder_add(&((snapshot_shelf *)shelf)->writer, element, reterr);
}

static int end_shelf(pl_stage *stage, void *shelf, const pl_element *tail, pl_error *reterr)
{
    (void)stage;
    return pl_folder_end(&((snapshot_shelf *)shelf)->writer, tail, reterr);
}

static int tail_of_shelf(pl_stage *stage, void *shelf, pl_element *ret_tail, pl_error *reterr)
{
    (void)stage, (void)reterr;
    pl_folder_info *info = &((snapshot_shelf *)shelf)->reader.info;
    *ret_tail = info->tail;
    info->tail = (pl_element){0};
    return 0;
}

static void close_shelf(void *shelf)
{
    pl_folder_close(&((snapshot_shelf *)shelf)->reader);
    pl_folder_drop(&((snapshot_shelf *)shelf)->writer);
}

static int save_read(pl_stage *stage, void *shelf, pl_saver *saver, pl_error *reterr)
{
    (void)stage;
    return pl_folder_save(&((snapshot_shelf *)shelf)->reader, saver, reterr);
}

static int restore_read(pl_stage *stage, void *shelf, pl_loader *loader, pl_error *reterr)
{
    int r = look(stage, shelf, reterr);
    return r < 0 ? r : pl_folder_restore(&((snapshot_shelf *)shelf)->reader, loader, reterr);
}

static const pl_medium in_a_folder = {
    .shelf_bytes = sizeof(snapshot_shelf),
    .open = open_shelf,
    .read = read_shelf,
    .begin = begin_shelf,
    .add = add_shelf,
    .end = end_shelf,
    .tail = tail_of_shelf,
    .close = close_shelf,
    .save_read = save_read,
    .restore_read = restore_read,
};

static void free_snapshot(pl_dataset *dataset)
{
    free(((snapshot_dataset *)dataset)->path);
    free(((snapshot_dataset *)dataset)->tree);
}

static void describe_snapshot(const pl_dataset *dataset, FILE *to)
{
    const snapshot_dataset *own = (const snapshot_dataset *)dataset;
    fprintf(to, "'%s', n_shards=%" PRId64, own->path, own->n_shards);
}

static const pl_dataset_class snapshot_class = {
    .name = "snapshot",
    .dataset_bytes = sizeof(snapshot_dataset),
    .stage_bytes = sizeof(pl_persist_stage),
    .opens_inputs = true,
    .free = free_snapshot,
    .open = pl_persist_stage_open,
    .next = pl_persist_stage_next,
    .close = pl_persist_stage_close,
    .save = pl_persist_stage_save,
    .restore = pl_persist_stage_restore,
    .describe = describe_snapshot,
};

int pl_dataset_snapshot(pl_dataset *input, const char *path, int64_t n_shards,
                        pl_dataset **ret_dataset, pl_error *reterr)
{
    PL_NOT_NULL(input, reterr);
    PL_NOT_NULL(path, reterr);
    PL_NOT_NULL(ret_dataset, reterr);
    pl_dataset *dataset;
    int r = check_arguments("snapshot", path, n_shards, reterr);
    if (r == 0)
        r = pl_dataset_make_over(&snapshot_class, input, &dataset, reterr);
    if (r < 0)
        return r;
    snapshot_dataset *own = (snapshot_dataset *)dataset;
    own->base.medium = &in_a_folder;
    own->n_shards = n_shards;
    own->path = strdup(path);
    r = own->path ? pl_tree_text(input, &own->tree, reterr)
                  : pl_error_set(reterr, -ENOMEM, "out of memory for a snapshot");
    if (r < 0)
        pl_dataset_unref(dataset);
    else
        *ret_dataset = dataset;
    return r;
}

/* ---- save ---- */

static int write_all(pl_folder_writer *writer, pl_iterator *iterator, pl_error *reterr)
{
    int r;
    pl_element element;
    pl_bad_count carried = {0};
    while ((r = pl_iterator_pull(iterator, &element, reterr)) > 0) {
        carried.n_bad += element.n_bad;
        carried.n_items += (uint64_t)element.n_items;
        r = pl_folder_add(writer, &element, reterr);
        pl_element_clear(&element);
        if (r < 0)
            return r;
    }
    pl_bad_count all = pl_iterator_bad_count(iterator);
    const pl_element tail = {.n_items = (int64_t)(all.n_items - carried.n_items),
                             .n_bad = (uint32_t)(all.n_bad - carried.n_bad),
                             .offset = -1};
    return r < 0 ? r : pl_folder_end(writer, &tail, reterr);
}

static int save_rest(pl_iterator *iterator, const char *path, int64_t n_shards, pl_error *reterr)
{
    pl_dataset *dataset = iterator->dataset;
    pl_folder_writer writer = {0};
    int r = check_arguments("save", path, n_shards, reterr);
    if (r == 0 && dataset->cardinality == PL_CARDINALITY_INFINITE)
        r = pl_error_set(reterr, -EINVAL, "save: '%s' has no end: take() some of it",
                         pl_dataset_name(dataset));
    if (r == 0)
        r = pl_folder_begin(&writer, dataset, path, n_shards, reterr);
    if (r == 0)
        r = write_all(&writer, iterator, reterr);
    pl_folder_drop(&writer);
    return r;
}

int pl_iterator_save_rest(pl_iterator *iterator, const char *path, int64_t n_shards,
                          pl_error *reterr)
{
    PL_NOT_NULL(iterator, reterr);
    PL_NOT_NULL(path, reterr);
    pl_error error = {0};
    int r = save_rest(iterator, path, n_shards, &error);
    if (r < 0)
        pl_error_move(reterr, &error);
    return r;
}

int pl_dataset_save(pl_dataset *dataset, const char *path, int64_t n_shards, pl_error *reterr)
{
    PL_NOT_NULL(dataset, reterr);
    PL_NOT_NULL(path, reterr);
    pl_iterator *iterator = NULL;
    int r = pl_iterator_new(dataset, &iterator, reterr);
    if (r == 0)
        r = pl_iterator_save_rest(iterator, path, n_shards, reterr);
    pl_iterator_free(iterator);
    return r;
}

/* ---- load ---- */

typedef struct load_dataset {
    pl_dataset base;
    char *path;
    char run[PL_FOLDER_RUN_BYTES];
} load_dataset;

typedef struct load_stage {
    pl_stage base;
    pl_folder_reader reader;
} load_stage;

static void free_load(pl_dataset *dataset)
{
    free(((load_dataset *)dataset)->path);
}

static int open_load(pl_stage *stage, pl_error *reterr)
{
    const load_dataset *own = (const load_dataset *)stage->dataset;
    pl_folder_reader *reader = &((load_stage *)stage)->reader;
    int r = pl_folder_open(reader, stage->pass->runtime, own->path, reterr);
    if (r == 0 && strcmp(reader->info.run, own->run) != 0)
        r = pl_error_set(reterr, -EINVAL,
                         "'%s' was written anew since it was looked at: load it again", own->path);
    return r;
}

static void close_load(pl_stage *stage)
{
    pl_folder_close(&((load_stage *)stage)->reader);
}

static int next_load(pl_stage *stage, pl_element *ret_element, pl_error *reterr)
{
    pl_folder_reader *reader = &((load_stage *)stage)->reader;
    int r = pl_folder_next(reader, stage->dataset, ret_element, reterr);
    if (r == 0 && reader->info.tail.n_items > 0)
        pl_stage_dropped(stage, &reader->info.tail);
    if (r >= 0)
        return r;
    pl_stage_locate(stage, r, reterr);
    return pl_pass_end(stage->pass, reterr);
}

static int save_load(pl_stage *stage, pl_saver *saver, pl_error *reterr)
{
    return pl_folder_save(&((load_stage *)stage)->reader, saver, reterr);
}

static int restore_load(pl_stage *stage, pl_loader *loader, pl_error *reterr)
{
    return pl_folder_restore(&((load_stage *)stage)->reader, loader, reterr);
}

static void describe_load(const pl_dataset *dataset, FILE *to)
{
    const load_dataset *own = (const load_dataset *)dataset;
    fprintf(to, "'%s', run=%s", own->path, own->run);
}

static const pl_dataset_class load_class = {
    .name = "load",
    .dataset_bytes = sizeof(load_dataset),
    .stage_bytes = sizeof(load_stage),
    .free = free_load,
    .open = open_load,
    .next = next_load,
    .close = close_load,
    .save = save_load,
    .restore = restore_load,
    .describe = describe_load,
};

static int make_load(pl_runtime *runtime, const char *path, const pl_folder_info *info,
                     pl_dataset **ret_dataset, pl_error *reterr)
{
    pl_dataset *dataset;
    int r = pl_dataset_make(&load_class, runtime, NULL, 0, info->n_components, &dataset, reterr);
    if (r < 0)
        return r;
    load_dataset *own = (load_dataset *)dataset;
    bool made = (own->path = strdup(path)) != NULL;
    for (int i = 0; made && i < info->n_components; i++)
        made = pl_spec_copy(&dataset->spec[i], &info->specs[i]) == 0;
    if (!made) {
        pl_dataset_unref(dataset);
        return pl_error_set(reterr, -ENOMEM, "out of memory for a dataset");
    }
    memcpy(own->run, info->run, sizeof own->run);
    dataset->cardinality = info->n_elements;
    *ret_dataset = dataset;
    return 0;
}

int pl_dataset_load(pl_runtime *runtime, const char *path, pl_dataset **ret_dataset,
                    pl_error *reterr)
{
    PL_NOT_NULL(runtime, reterr);
    PL_NOT_NULL(path, reterr);
    PL_NOT_NULL(ret_dataset, reterr);
    pl_folder_info info;
    int r = pl_folder_look(runtime, path, &info, reterr);
    if (r == -ENOENT)
        return pl_error_set(reterr, r, "load: '%s' has no complete dataset in it", path);
    if (r < 0)
        return r;
    r = make_load(runtime, path, &info, ret_dataset, reterr);
    pl_folder_forget(&info);
    return r;
}
