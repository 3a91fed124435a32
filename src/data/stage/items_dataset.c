/* SPDX-License-Identifier: Apache-2.0 */
#include "data/stage/items_dataset.h"

#include <errno.h>
#include <inttypes.h>

typedef struct items_dataset {
    pl_dataset base;
    pl_claimed_array items;
} items_dataset;

typedef struct items_stage {
    pl_stage base;
    int64_t at;
} items_stage;

void pl_claimed_array_clear_items(pl_claimed_array *items)
{
    for (int64_t i = 0; i < items->n; i++)
        pl_item_clear(pl_claimed_array_at(items, i));
    pl_claimed_array_clear(items);
}

static void free_held(pl_dataset *dataset)
{
    pl_claimed_array_clear_items(&((items_dataset *)dataset)->items);
}

static int get(pl_stage *stage, int64_t at, pl_element *ret_element, pl_error *reterr)
{
    (void)reterr;
    const pl_item *item = pl_claimed_array_at(&((items_dataset *)stage->dataset)->items, at);
    int r = pl_element_init(ret_element, 1);
    if (r < 0)
        return r;
    ret_element->n_items = 0;
    ret_element->few[0] = *item;
    if (item->tensor)
        pl_tensor_ref(item->tensor);
    if (item->dataset)
        pl_dataset_ref(item->dataset);
    return 1;
}

static int next(pl_stage *stage, pl_element *ret_element, pl_error *reterr)
{
    items_stage *own = (items_stage *)stage;
    return own->at == stage->dataset->cardinality ? 0 : get(stage, own->at++, ret_element, reterr);
}

static void describe(const pl_dataset *dataset, FILE *to)
{
    fprintf(to, "n=%" PRId64, dataset->cardinality);
}

static const pl_dataset_class items_class = {
    .name = "held",
    .is_window = true,
    .dataset_bytes = sizeof(items_dataset),
    .stage_bytes = sizeof(items_stage),
    .free = free_held,
    .next = next,
    .get = get,
    .describe = describe,
};

int pl_dataset_held(pl_runtime *runtime, const pl_spec *spec, pl_claimed_array *items,
                    pl_dataset **ret_dataset, pl_error *reterr)
{
    pl_dataset *dataset = NULL;
    int r = pl_dataset_make(&items_class, runtime, NULL, 0, 1, &dataset, reterr);
    if (r == 0 && pl_spec_copy(&dataset->spec[0], spec) < 0)
        r = pl_error_set(reterr, -ENOMEM, "out of memory for a dataset");
    if (r < 0) {
        pl_claimed_array_clear_items(items);
        pl_dataset_unref(dataset);
        return r;
    }
    dataset->cardinality = items->n;
    ((items_dataset *)dataset)->items = *items;
    *items = (pl_claimed_array){0};
    *ret_dataset = dataset;
    return 0;
}
