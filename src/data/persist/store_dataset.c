/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets that are components: written with all their elements, and restored as datasets of a
 * store. */
#include <errno.h>
#include <inttypes.h>

#include "data/iterator/iterator.h"
#include "data/persist/store.h"

typedef struct elements_dataset {
    pl_dataset base;
    pl_store *store;
} elements_dataset;

typedef struct elements_stage {
    pl_stage base;
    pl_store_reader reader;
} elements_stage;

static void free_elements(pl_dataset *dataset)
{
    pl_store_unref(((elements_dataset *)dataset)->store);
}

static int open_elements(pl_stage *stage, pl_error *reterr)
{
    (void)reterr;
    pl_store_read_begin(&((elements_stage *)stage)->reader,
                        ((elements_dataset *)stage->dataset)->store);
    return 0;
}

static void close_elements(pl_stage *stage)
{
    pl_store_read_end(&((elements_stage *)stage)->reader);
}

static int next(pl_stage *stage, pl_element *ret_element, pl_error *reterr)
{
    int r = pl_store_read(&((elements_stage *)stage)->reader, stage->dataset, ret_element, reterr);
    return pl_pass_later(stage->pass, r) ? PL_RETRY_ALONE : r;
}

static int save(pl_stage *stage, pl_saver *saver, pl_error *reterr)
{
    return pl_save_int(saver, ((elements_stage *)stage)->reader.n_read, reterr);
}

static int restore(pl_stage *stage, pl_loader *loader, pl_error *reterr)
{
    int64_t n;
    int r = pl_load_int(loader, 0, stage->dataset->cardinality, &n, reterr);
    for (int64_t i = 0; r >= 0 && i < n; i++) {
        pl_element element;
        r = next(stage, &element, reterr);
        if (r > 0)
            pl_element_clear(&element);
    }
    return r < 0 ? r : 0;
}

static void describe(const pl_dataset *dataset, FILE *to)
{
    fprintf(to, "n=%" PRId64, dataset->cardinality);
}

static const pl_dataset_class elements_class = {
    .name = "elements",
    .dataset_bytes = sizeof(elements_dataset),
    .stage_bytes = sizeof(elements_stage),
    .free = free_elements,
    .open = open_elements,
    .next = next,
    .close = close_elements,
    .save = save,
    .restore = restore,
    .describe = describe,
};

int pl_store_dataset(pl_store *store, const pl_spec *specs, int n_components,
                     pl_dataset **ret_dataset, pl_error *reterr)
{
    pl_dataset *dataset;
    int r = pl_dataset_make(&elements_class, ((pl_saver *)store)->runtime, NULL, 0, n_components,
                            &dataset, reterr);
    for (int i = 0; r == 0 && i < n_components; i++)
        if (pl_spec_copy(&dataset->spec[i], &specs[i]) < 0) {
            pl_dataset_unref(dataset);
            r = pl_error_set(reterr, -ENOMEM, "out of memory for a dataset");
        }
    if (r < 0)
        return r;
    dataset->cardinality = pl_store_n(store);
    ((elements_dataset *)dataset)->store = pl_store_ref(store);
    *ret_dataset = dataset;
    return 0;
}

/* ---- as bytes: each element behind a 1, then a 0 ---- */

static int save_all(pl_saver *saver, pl_iterator *iterator, pl_error *reterr)
{
    uint8_t more;
    int r;
    do {
        pl_element element;
        int got = pl_iterator_pull(iterator, &element, reterr);
        if (got < 0)
            return got;
        more = got > 0;
        r = pl_save_bytes(saver, &more, 1, reterr);
        if (more && r == 0)
            r = pl_save_element(saver, &element, reterr);
        if (more)
            pl_element_clear(&element);
    } while (more && r == 0);
    return r;
}

int pl_store_save_dataset(pl_saver *saver, pl_dataset *dataset, pl_error *reterr)
{
    pl_iterator *iterator = NULL;
    pl_error error = {0};
    int r = dataset->cardinality == PL_CARDINALITY_INFINITE
                ? pl_error_set(&error, -EINVAL, "a component is a dataset without end: '%s'",
                               pl_dataset_name(dataset))
                : pl_iterator_new(dataset, &iterator, &error);
    if (r == 0)
        r = save_all(saver, iterator, &error);
    pl_iterator_free(iterator);
    if (r < 0)
        pl_error_move(reterr, &error);
    return r;
}

static int load_all(pl_loader *loader, const pl_dataset *dataset, pl_store *store, pl_error *reterr)
{
    for (;;) {
        uint8_t more;
        pl_element element;
        int r = pl_load_bytes(loader, &more, 1, reterr);
        if (r == 0 && more > 1)
            r = pl_load_refuse(reterr, "there is %u between elements", more);
        if (r < 0 || more == 0)
            return r;
        r = pl_load_element(loader, dataset, &element, reterr);
        if (r < 0)
            return r;
        r = pl_store_add(store, &element, reterr);
        pl_element_clear(&element);
        if (r < 0)
            return r;
    }
}

int pl_store_load_dataset(pl_loader *loader, const pl_spec *spec, pl_dataset **ret_dataset,
                          pl_error *reterr)
{
    pl_store *store;
    pl_dataset *dataset = NULL;
    int r = pl_store_new(loader->runtime, &store, reterr);
    if (r < 0)
        return r;
    r = pl_store_dataset(store, spec->of, spec->n_of, &dataset, reterr);
    if (r == 0)
        r = load_all(loader, dataset, store, reterr);
    pl_store_end(store);
    if (r < 0) {
        pl_dataset_unref(dataset);
    } else {
        dataset->cardinality = pl_store_n(store);
        *ret_dataset = dataset;
    }
    pl_store_unref(store);
    return r;
}
