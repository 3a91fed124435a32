/* SPDX-License-Identifier: Apache-2.0 */
/* Passes in files. The stages of a pass, one after the other, each before its inputs:
 *   class, elements made, passes ever begun, what went before the next element, the class's own
 *   state; then for each input whether it is open, and if so that one. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "data/core/dataset_text.h"
#include "data/iterator/iterator.h"
#include "data/persist/record_file.h"

enum { CLASS_NAME_MOST = 64 };

/* ---- stages ---- */

static const char *saved_class(const pl_stage *stage)
{
    return stage->dataset->class->is_window ? "elements" : stage->dataset->class->name;
}

static int save_own(pl_saver *saver, pl_stage *stage, pl_error *reterr)
{
    const pl_dataset_class *class = stage->dataset->class;
    if (class->is_window)
        return pl_save_int(saver, stage->n_next, reterr);
    return class->save ? class->save(stage, saver, reterr) : 0;
}

int pl_save_stage(pl_saver *saver, pl_stage *stage, pl_error *reterr)
{
    int r = pl_save_text(saver, saved_class(stage), reterr);
    if (r == 0)
        r = pl_save_int(saver, stage->n_next, reterr);
    if (r == 0)
        r = pl_save_int(saver, (int64_t)atomic_load(&stage->dataset->n_passes), reterr);
    if (r == 0)
        r = pl_save_element(saver, &stage->before, reterr);
    if (r == 0)
        r = save_own(saver, stage, reterr);
    for (int i = 0; r == 0 && i < stage->dataset->n_inputs; i++) {
        r = pl_save_int(saver, stage->inputs[i] != NULL, reterr);
        if (r == 0 && stage->inputs[i])
            r = pl_save_stage(saver, stage->inputs[i], reterr);
    }
    return r;
}

static int check_class(pl_loader *loader, const pl_stage *stage, pl_error *reterr)
{
    char *name;
    int r = pl_load_text(loader, CLASS_NAME_MOST, &name, reterr);
    if (r < 0)
        return r;
    if (strcmp(name, saved_class(stage)) != 0)
        r = pl_load_refuse(reterr, "there is another stage's state where that of %s should be",
                           stage->dataset->class->name);
    free(name);
    return r;
}

/* Passes that this process has begun count as well, if they are more. */
static int load_n_passes(pl_loader *loader, pl_dataset *dataset, pl_error *reterr)
{
    int64_t saved;
    int r = pl_load_count(loader, &saved, reterr);
    uint64_t now = atomic_load(&dataset->n_passes);
    while (r == 0 && now < (uint64_t)saved &&
           !atomic_compare_exchange_weak(&dataset->n_passes, &now, (uint64_t)saved))
        ;
    return r;
}

static int load_input(pl_loader *loader, pl_stage *stage, int i, pl_error *reterr)
{
    int64_t is_open, least = stage->dataset->class->opens_inputs ? 0 : 1;
    int r = pl_load_int(loader, least, 1, &is_open, reterr);
    if (r == 0 && is_open && !stage->inputs[i])
        r = pl_stage_open(stage->dataset->inputs[i], stage, &stage->inputs[i], reterr);
    if (r == 0 && is_open)
        return pl_load_stage(loader, stage->inputs[i], reterr);
    if (r == 0)
        pl_stage_close(PL_TAKE(stage->inputs[i]));
    return r;
}

int pl_load_stage(pl_loader *loader, pl_stage *stage, pl_error *reterr)
{
    const pl_dataset_class *class = stage->dataset->class;
    int64_t place;
    int r = check_class(loader, stage, reterr);
    if (r == 0)
        r = pl_load_count(loader, &stage->n_next, reterr);
    if (r == 0)
        r = load_n_passes(loader, stage->dataset, reterr);
    pl_element_clear(&stage->before);
    if (r == 0)
        r = pl_load_element(loader, NULL, &stage->before, reterr);
    if (r == 0 && class->is_window)
        r = pl_load_int(loader, 0, 0, &place, reterr); /* these come back as others */
    else if (r == 0 && class->restore)
        r = class->restore(stage, loader, reterr);
    for (int i = 0; r == 0 && i < stage->dataset->n_inputs; i++)
        r = load_input(loader, stage, i, reterr);
    return r;
}

/* ---- files ---- */

static int save_all(pl_saver *saver, const pl_iterator *iterator, const char *tree,
                    pl_error *reterr)
{
    const pl_element bads = {.offset = -1, .bad = iterator->bads}; /* borrowed */
    int r = pl_save_text(saver, tree, reterr);
    if (r == 0)
        r = pl_save_int(saver, (int64_t)iterator->count.n_bad, reterr);
    if (r == 0)
        r = pl_save_int(saver, (int64_t)iterator->count.n_items, reterr);
    if (r == 0)
        r = pl_save_element(saver, &bads, reterr);
    return r < 0 ? r : pl_save_stage(saver, iterator->first, reterr);
}

static int write_file(const pl_iterator *iterator, const char *path, pl_error *reterr)
{
    pl_record_file_writer writer = {0};
    char *tree;
    int r = pl_tree_text(iterator->dataset, &tree, reterr);
    if (r < 0)
        return r;
    r = pl_record_file_begin(&writer, iterator->pass.runtime, path, PL_RECORD_FILE_CHECKPOINT,
                             reterr);
    if (r == 0)
        r = save_all(&writer.saver, iterator, tree, reterr);
    if (r == 0)
        r = pl_record_file_end(&writer, reterr);
    pl_record_file_drop(&writer);
    free(tree);
    return r;
}

static int check_tree(pl_loader *loader, const pl_dataset *dataset, const char *path,
                      pl_error *reterr)
{
    char *there = NULL, *here = NULL;
    int r = pl_load_text(loader, PL_TREE_TEXT_MOST, &there, reterr);
    if (r == 0)
        r = pl_tree_text(dataset, &here, reterr);
    if (r == 0)
        r = pl_tree_compare(there, here, path, reterr);
    free(there);
    free(here);
    return r;
}

static int load_all(pl_record_file_reader *reader, pl_iterator *iterator, pl_error *reterr)
{
    pl_loader *loader = &reader->loader;
    int64_t n_bad, n_items;
    pl_element bads = {0};
    int r = check_tree(loader, iterator->dataset, reader->path, reterr);
    if (r == 0)
        r = pl_load_count(loader, &n_bad, reterr);
    if (r == 0)
        r = pl_load_count(loader, &n_items, reterr);
    if (r == 0)
        r = pl_load_element(loader, NULL, &bads, reterr);
    if (r == 0)
        r = pl_load_stage(loader, iterator->first, reterr);
    if (r == 0)
        r = pl_record_file_check_end(reader, reterr);
    if (r == 0) {
        iterator->count = (pl_bad_count){(uint64_t)n_bad, (uint64_t)n_items};
        iterator->bads = pl_bad_join(iterator->bads, PL_TAKE(bads.bad));
    }
    pl_element_clear(&bads);
    return r;
}

static int read_file(pl_iterator *iterator, const char *path, pl_error *reterr)
{
    pl_record_file_reader reader;
    int r = pl_record_file_open(&reader, iterator->pass.runtime, path, PL_RECORD_FILE_CHECKPOINT,
                                reterr);
    if (r < 0)
        return r;
    r = pl_record_file_fail(path, load_all(&reader, iterator, reterr), reterr);
    pl_record_file_close(&reader);
    return r;
}

/* ---- the pass at rest ---- */

/* The pool's threads leave the stages between two elements; nobody else is in one, because next()
 * and this belong to one thread. */
static int save_at_rest(pl_iterator *iterator, const char *path, pl_error *reterr)
{
    int r = pl_iterator_check_lost(iterator, reterr);
    if (r < 0)
        return r;
    if (pl_pass_is_over(&iterator->pass)) /* what hangs in it would be waited for */
        return pl_pass_over(&iterator->pass, reterr);
    pl_worker_pool_pause(iterator->pass.pool);
    r = pl_pass_is_over(&iterator->pass) ? pl_pass_over(&iterator->pass, reterr)
                                         : write_file(iterator, path, reterr);
    pl_worker_pool_resume(iterator->pass.pool);
    return r;
}

int pl_iterator_save(pl_iterator *iterator, const char *path, pl_error *reterr)
{
    PL_NOT_NULL(iterator, reterr);
    PL_NOT_NULL(path, reterr);
    pl_error error = {0};
    int r = save_at_rest(iterator, path, &error);
    r = r == PL_REPORTED ? error.code : r;
    if (r < 0)
        pl_error_move(reterr, &error);
    return r;
}

int pl_iterator_restore(pl_iterator *iterator, const char *path, pl_error *reterr)
{
    PL_NOT_NULL(iterator, reterr);
    PL_NOT_NULL(path, reterr);
    pl_error error = {0};
    pl_pass_set_mode(&iterator->pass,
                     PL_PASS_ALONE); /* nobody is at work: what does not fit fails */
    int r =
        iterator->first->n_next == 0 && iterator->count.n_items == 0
            ? read_file(iterator, path, &error)
            : pl_error_set(&error, -EINVAL,
                           "cannot restore '%s' into a pass that has begun: make a new one", path);
    pl_pass_set_mode(&iterator->pass, PL_PASS_SHARED);
    if (r == PL_REPORTED)
        r = error.code;
    if (r < 0) {
        pl_pass_end(&iterator->pass, &error);
        pl_error_move(reterr, &error);
    }
    return r;
}
