/* SPDX-License-Identifier: Apache-2.0 */
/* Puts a number before each element. Bad elements have numbers as well, so that the others' do not
 * depend on them. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "data/core/stage.h"
#include "data/persist/state.h"

typedef struct enumerate_dataset {
    pl_dataset base;
    int64_t start;
} enumerate_dataset;

typedef struct enumerate_stage {
    pl_stage base;
    int64_t n; /* elements so far */
} enumerate_stage;

static int number(pl_stage *stage, int64_t at, pl_element *element, pl_element *ret_element,
                  pl_error *reterr)
{
    pl_element made;
    int r = pl_element_init(&made, element->n + 1);
    if (r < 0) {
        pl_element_clear(element);
        return pl_pass_fail(stage->pass, r, reterr, "out of memory for an element");
    }
    made.n_items = 0;
    uint64_t start = (uint64_t)((const enumerate_dataset *)stage->dataset)->start;
    pl_item *to = pl_element_items(&made), *from = pl_element_items(element);
    to[0] = pl_item_scalar(PL_I64, start + (uint64_t)at);
    memcpy(&to[1], from, (size_t)element->n * sizeof *from);
    memset(from, 0, (size_t)element->n * sizeof *from);
    pl_element_pass_on(element, &made);
    pl_element_clear(element);
    *ret_element = made;
    return 1;
}

static int next(pl_stage *stage, pl_element *ret_element, pl_error *reterr)
{
    enumerate_stage *own = (enumerate_stage *)stage;
    pl_element element;
    int r = pl_stage_next(stage->inputs[0], &element, reterr);
    if (r == 0 || r == PL_RETRY_ALONE || (r < 0 && pl_pass_is_over(stage->pass)))
        return r;
    int64_t at = own->n++;
    if (r > 0)
        return number(stage, at, &element, ret_element, reterr);
    if (pl_policy_may_skip(stage->policy, reterr->code))
        return pl_stage_fail_as(ret_element, NULL, reterr->code);
    return r;
}

static int get(pl_stage *stage, int64_t at, pl_element *ret_element, pl_error *reterr)
{
    pl_element element;
    int r = pl_stage_get(stage->inputs[0], at, &element, reterr);
    return r > 0 ? number(stage, at, &element, ret_element, reterr) : r;
}

static int save(pl_stage *stage, pl_saver *saver, pl_error *reterr)
{
    return pl_save_int(saver, ((enumerate_stage *)stage)->n, reterr);
}

static int restore(pl_stage *stage, pl_loader *loader, pl_error *reterr)
{
    return pl_load_count(loader, &((enumerate_stage *)stage)->n, reterr);
}

static void describe(const pl_dataset *dataset, FILE *to)
{
    fprintf(to, "start=%" PRId64, ((const enumerate_dataset *)dataset)->start);
}

static const pl_dataset_class enumerate_class = {
    .name = "enumerate",
    .dataset_bytes = sizeof(enumerate_dataset),
    .stage_bytes = sizeof(enumerate_stage),
    .next = next,
    .get = get,
    .save = save,
    .restore = restore,
    .describe = describe,
    .in_step = true,
};

int pl_dataset_enumerate(pl_dataset *input, int64_t start, pl_dataset **ret_dataset,
                         pl_error *reterr)
{
    PL_NOT_NULL(input, reterr);
    PL_NOT_NULL(ret_dataset, reterr);
    pl_dataset *dataset;
    int r = pl_dataset_make(&enumerate_class, input->runtime, &input, 1, input->n_components + 1,
                            &dataset, reterr);
    if (r < 0)
        return r;
    dataset->cardinality = input->cardinality;
    dataset->spec[0] = (pl_spec){.dtype = PL_I64};
    for (int i = 0; r == 0 && i < input->n_components; i++)
        r = pl_spec_copy(&dataset->spec[i + 1], &input->spec[i]);
    if (r < 0) {
        pl_dataset_unref(dataset);
        return pl_error_set(reterr, r, "out of memory for a dataset");
    }
    ((enumerate_dataset *)dataset)->start = start;
    *ret_dataset = dataset;
    return 0;
}
