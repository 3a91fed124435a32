/* SPDX-License-Identifier: Apache-2.0 */
/* Stores its input's elements in memory, or in a file: see persist_stage.h for when. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "data/core/dataset_text.h"
#include "data/persist/element_file.h"
#include "data/persist/persist_stage.h"
#include "data/persist/store.h"

typedef struct cache_dataset {
    pl_persist_dataset base;
    char *path; /* NULL: in memory */
    char *tree; /* of the input, for the file */
    pthread_mutex_t mu;
    pl_store *store; /* mu; complete, or NULL */
    pl_element tail; /* mu; behind the store's last element: only counts */
} cache_dataset;

static cache_dataset *cache_of(const pl_stage *stage)
{
    return (cache_dataset *)stage->dataset;
}

static void free_cache(pl_dataset *dataset)
{
    cache_dataset *own = (cache_dataset *)dataset;
    free(own->path);
    free(own->tree);
    pl_store_unref(own->store);
    pl_element_clear(&own->tail);
    pthread_mutex_destroy(&own->mu);
}

/* ---- in memory ---- */

typedef struct memory_shelf {
    pl_store_reader reader;
    pl_store *store; /* being filled */
    bool complete;   /* it has all elements, and can be read */
} memory_shelf;

static int open_memory(pl_stage *stage, void *shelf, pl_error *reterr)
{
    (void)reterr;
    cache_dataset *own = cache_of(stage);
    pthread_mutex_lock(&own->mu);
    bool there = own->store != NULL;
    if (there)
        pl_store_read_begin(&((memory_shelf *)shelf)->reader, own->store);
    pthread_mutex_unlock(&own->mu);
    return there ? 0 : -ENOENT;
}

static int read_memory(pl_stage *stage, void *shelf, pl_element *ret_element, pl_error *reterr)
{
    return pl_store_read(&((memory_shelf *)shelf)->reader, stage->dataset, ret_element, reterr);
}

static int begin_memory(pl_stage *stage, void *shelf, pl_error *reterr)
{
    return pl_store_new(stage->pass->runtime, &((memory_shelf *)shelf)->store, reterr);
}

/* Only counts: the origin is no longer needed. */
static void copy_tail(const pl_element *from, pl_element *to)
{
    *to = (pl_element){.n_items = from->n_items, .n_bad = from->n_bad, .offset = -1};
    to->bad = pl_bad_copy(from->bad);
}

/* If two passes each filled a store, the first one counts. */
static void publish(cache_dataset *own, pl_store *store, const pl_element *tail)
{
    pthread_mutex_lock(&own->mu);
    if (!own->store) {
        own->store = pl_store_ref(store);
        copy_tail(tail, &own->tail);
    }
    pthread_mutex_unlock(&own->mu);
}

static int tell_no_room(int code, pl_error *reterr)
{
    pl_error_reword(reterr, "%s; give the cache a file", pl_error_reason(reterr));
    return code;
}

/* A consumer that takes as many elements as the dataset has need not ask for its end: an epoch of so many
 * steps does not. */
static int add_memory(pl_stage *stage, void *shelf, const pl_element *element, pl_error *reterr)
{
    memory_shelf *own = shelf;
    if (own->complete) /* it has more than it said */
        return 0;
    int r = pl_store_add(own->store, element, reterr);
    if (r < 0)
        return r == PL_EBUDGET ? tell_no_room(r, reterr) : r;
    own->complete = pl_store_n(own->store) == stage->dataset->cardinality;
    if (own->complete) {
        pl_store_end(own->store);
        publish(cache_of(stage), own->store, &(pl_element){0});
    }
    return 0;
}

static int end_memory(pl_stage *stage, void *shelf, const pl_element *tail, pl_error *reterr)
{
    (void)reterr;
    memory_shelf *own = shelf;
    if (!own->complete) {
        pl_store_end(own->store);
        publish(cache_of(stage), own->store, tail);
    }
    pl_store_unref(PL_TAKE(own->store));
    return 0;
}

static int tail_of_memory(pl_stage *stage, void *shelf, pl_element *ret_tail, pl_error *reterr)
{
    (void)shelf, (void)reterr;
    cache_dataset *own = cache_of(stage);
    pthread_mutex_lock(&own->mu);
    copy_tail(&own->tail, ret_tail);
    pthread_mutex_unlock(&own->mu);
    return 0;
}

static void close_memory(void *shelf)
{
    memory_shelf *own = shelf;
    pl_store_read_end(&own->reader);
    pl_store_unref(PL_TAKE(own->store));
}

static int save_memory_read(pl_stage *stage, void *shelf, pl_saver *saver, pl_error *reterr)
{
    memory_shelf *own = shelf;
    cache_dataset *cache = cache_of(stage);
    int r = pl_save_int(saver, own->reader.n_read, reterr);
    pthread_mutex_lock(&cache->mu);
    if (r == 0)
        r = pl_save_element(saver, &cache->tail, reterr);
    pthread_mutex_unlock(&cache->mu);
    return r < 0 ? r : pl_store_save(own->reader.store, stage->dataset, saver, reterr);
}

static int skip(pl_stage *stage, memory_shelf *own, int64_t n, pl_error *reterr)
{
    if (n > pl_store_n(own->reader.store))
        return pl_load_refuse(reterr, "a cache of %lld elements was read up to %lld",
                              (long long)pl_store_n(own->reader.store), (long long)n);
    int r = 0;
    for (int64_t i = 0; r >= 0 && i < n; i++) {
        pl_element element;
        r = read_memory(stage, own, &element, reterr);
        if (r > 0)
            pl_element_clear(&element);
    }
    return r < 0 ? r : 0;
}

static int restore_memory_read(pl_stage *stage, void *shelf, pl_loader *loader, pl_error *reterr)
{
    memory_shelf *own = shelf;
    int64_t n_read;
    pl_element tail = {0};
    pl_store *store = NULL;
    int r = pl_load_count(loader, &n_read, reterr);
    if (r == 0)
        r = pl_load_element(loader, NULL, &tail, reterr);
    if (r == 0)
        r = pl_store_load(loader, stage->dataset, &store, reterr);
    if (r == 0) {
        pl_store_end(store);
        publish(cache_of(stage), store, &tail);
        pl_store_read_begin(&own->reader, store);
        r = skip(stage, own, n_read, reterr);
    }
    pl_element_clear(&tail);
    pl_store_unref(store);
    return r;
}

static int save_memory_written(pl_stage *stage, void *shelf, pl_saver *saver, pl_error *reterr)
{
    return pl_store_save(((memory_shelf *)shelf)->store, stage->dataset, saver, reterr);
}

static int restore_memory_written(pl_stage *stage, void *shelf, pl_loader *loader, pl_error *reterr)
{
    return pl_store_load(loader, stage->dataset, &((memory_shelf *)shelf)->store, reterr);
}

static const pl_medium in_memory = {
    .shelf_bytes = sizeof(memory_shelf),
    .open = open_memory,
    .read = read_memory,
    .begin = begin_memory,
    .add = add_memory,
    .end = end_memory,
    .tail = tail_of_memory,
    .close = close_memory,
    .save_read = save_memory_read,
    .restore_read = restore_memory_read,
    .save_written = save_memory_written,
    .restore_written = restore_memory_written,
};

/* ---- in a file ---- */

typedef struct file_shelf {
    pl_element_reader reader;
    pl_element_writer writer;
} file_shelf;

static int look(pl_stage *stage, file_shelf *shelf, pl_error *reterr)
{
    cache_dataset *own = cache_of(stage);
    return pl_element_reader_open(&shelf->reader, stage->pass->runtime, own->path, own->tree,
                                  reterr);
}

/* A file that is incomplete, of another dataset or of another version is replaced. Any other file is
 * the user's, and stays. */
static int open_file(pl_stage *stage, void *shelf, pl_error *reterr)
{
    int r = look(stage, shelf, reterr);
    return r == PL_ECORRUPT || r == -EINVAL || r == PL_EVERSION ? -ENOENT : r;
}

static int read_file(pl_stage *stage, void *shelf, pl_element *ret_element, pl_error *reterr)
{
    return pl_element_reader_next(&((file_shelf *)shelf)->reader, stage->dataset, ret_element,
                                  reterr);
}

static int begin_file(pl_stage *stage, void *shelf, pl_error *reterr)
{
    const cache_dataset *own = cache_of(stage);
    return pl_element_writer_begin(&((file_shelf *)shelf)->writer, stage->pass->runtime, own->path,
                                   own->tree, false, reterr);
}

static int add_file(pl_stage *stage, void *shelf, const pl_element *element, pl_error *reterr)
{
    (void)stage;
    return pl_element_writer_add(&((file_shelf *)shelf)->writer, element, reterr);
}

static int end_file(pl_stage *stage, void *shelf, const pl_element *tail, pl_error *reterr)
{
    (void)stage;
    return pl_element_writer_end(&((file_shelf *)shelf)->writer, tail, reterr);
}

static int tail_of_file(pl_stage *stage, void *shelf, pl_element *ret_tail, pl_error *reterr)
{
    (void)stage, (void)reterr;
    pl_element_reader *reader = &((file_shelf *)shelf)->reader;
    *ret_tail = reader->tail;
    reader->tail = (pl_element){0};
    return 0;
}

static void close_file(void *shelf)
{
    pl_element_reader_close(&((file_shelf *)shelf)->reader);
    pl_element_writer_drop(&((file_shelf *)shelf)->writer);
}

static int save_file_read(pl_stage *stage, void *shelf, pl_saver *saver, pl_error *reterr)
{
    (void)stage;
    return pl_element_reader_save(&((file_shelf *)shelf)->reader, saver, reterr);
}

static int restore_file_read(pl_stage *stage, void *shelf, pl_loader *loader, pl_error *reterr)
{
    int r = look(stage, shelf, reterr);
    return r < 0 ? r : pl_element_reader_restore(&((file_shelf *)shelf)->reader, loader, reterr);
}

static const pl_medium in_a_file = {
    .shelf_bytes = sizeof(file_shelf),
    .open = open_file,
    .read = read_file,
    .begin = begin_file,
    .add = add_file,
    .end = end_file,
    .tail = tail_of_file,
    .close = close_file,
    .save_read = save_file_read,
    .restore_read = restore_file_read,
};

/* ---- the dataset ---- */

static void describe(const pl_dataset *dataset, FILE *to)
{
    const char *path = ((const cache_dataset *)dataset)->path;
    fprintf(to, path ? "'%s'" : "in memory", path);
}

static const pl_dataset_class cache_class = {
    .name = "cache",
    .dataset_bytes = sizeof(cache_dataset),
    .stage_bytes = sizeof(pl_persist_stage),
    .opens_inputs = true,
    .free = free_cache,
    .open = pl_persist_stage_open,
    .next = pl_persist_stage_next,
    .close = pl_persist_stage_close,
    .save = pl_persist_stage_save,
    .restore = pl_persist_stage_restore,
    .describe = describe,
};

int pl_dataset_cache(pl_dataset *input, const char *path, pl_dataset **ret_dataset,
                     pl_error *reterr)
{
    PL_NOT_NULL(input, reterr);
    PL_NOT_NULL(ret_dataset, reterr);
    pl_dataset *dataset;
    if (path && !*path)
        return pl_error_set(reterr, -EINVAL, "cache: the path is empty; none is for memory");
    int r = pl_dataset_make_over(&cache_class, input, &dataset, reterr);
    if (r < 0)
        return r;
    cache_dataset *own = (cache_dataset *)dataset;
    own->base.medium = path ? &in_a_file : &in_memory;
    pthread_mutex_init(&own->mu, NULL);
    if (path && !(own->path = strdup(path)))
        r = pl_error_set(reterr, -ENOMEM, "out of memory for a cache");
    if (r == 0 && path)
        r = pl_tree_text(input, &own->tree, reterr);
    if (r < 0)
        pl_dataset_unref(dataset);
    else
        *ret_dataset = dataset;
    return r;
}
