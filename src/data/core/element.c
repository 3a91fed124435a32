/* SPDX-License-Identifier: Apache-2.0 */
#include "data/core/element.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "data/core/policy.h"
#include "tensor/dtype.h"

int pl_element_init_many(pl_element *element)
{
    element->many = calloc((size_t)element->n, sizeof *element->many);
    if (element->many)
        return 0;
    *element = (pl_element){0};
    return -ENOMEM;
}

void pl_element_clear_rest(pl_element *element)
{
    free(element->many);
    pl_origin_unref(element->origin);
    pl_bad_free(element->bad);
}

int pl_element_share(const pl_element *element, pl_element *ret_element)
{
    pl_element copy;
    int r = pl_element_init(&copy, element->n);
    if (r < 0)
        return r;
    const pl_item *from = pl_element_peek(element);
    pl_item *to = pl_element_items(&copy);
    for (int i = 0; i < element->n; i++) {
        to[i] = from[i];
        if (to[i].tensor)
            pl_tensor_ref(to[i].tensor);
        if (to[i].dataset)
            pl_dataset_ref(to[i].dataset);
    }
    copy.n_items = 0;
    copy.origin = element->origin ? pl_origin_ref(element->origin) : NULL;
    copy.offset = element->offset;
    *ret_element = copy;
    return 0;
}

void pl_element_join_bad(pl_element *earlier, pl_element *later, pl_element *to)
{
    to->bad = pl_bad_join(PL_TAKE(earlier->bad), PL_TAKE(later->bad));
}

int pl_item_settle(pl_item *item, pl_runtime *runtime, pl_error *reterr)
{
    if (item->tensor || item->dataset)
        return 0;
    pl_tensor *tensor;
    int r = pl_tensor_new(runtime, item->dtype, &(pl_shape){0}, &item->bits, "element", &tensor,
                          reterr);
    if (r == 0)
        *item = (pl_item){.tensor = tensor};
    return r;
}

/* Returns whether it has a slash, or an extension of up to eight letters and digits, and no control
 * characters. */
static bool is_file_name(const char *text, size_t n)
{
    bool has_folder = false, has_ending = false;
    size_t n_ending = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < ' ')
            return false;
        has_folder = has_folder || c == '/';
        has_ending = c == '.' ? i > 0 : has_ending && isalnum(c);
        n_ending = c == '.' ? 0 : n_ending + 1;
    }
    return n > 0 && n < PATH_MAX && (has_folder || (has_ending && n_ending - 1 < 8));
}

void pl_element_name(pl_element *element)
{
    const pl_item *items = pl_element_peek(element);
    for (int i = 0; i < element->n && !element->origin; i++) {
        pl_tensor *tensor = items[i].tensor;
        pl_string text;
        if (!tensor || pl_tensor_dtype(tensor) != PL_STRING || pl_tensor_shape(tensor)->rank != 0 ||
            pl_tensor_pin_string(tensor, NULL, &text, NULL) < 0)
            continue;
        char name[PATH_MAX];
        if (is_file_name(text.data, text.n)) {
            memcpy(name, text.data, text.n);
            name[text.n] = '\0';
            element->origin = pl_origin_new(name); /* out of memory: it stays unknown */
            element->offset = -1;
        }
        pl_tensor_unpin(tensor);
    }
}

pl_origin *pl_origin_new(const char *path)
{
    size_t n = strlen(path) + 1;
    pl_origin *origin = malloc(sizeof *origin + n);
    if (!origin)
        return NULL;
    atomic_init(&origin->n_refs, 1);
    memcpy(origin->path, path, n);
    return origin;
}

pl_origin *pl_origin_ref(pl_origin *origin)
{
    atomic_fetch_add_explicit(&origin->n_refs, 1, memory_order_relaxed);
    return origin;
}

void pl_origin_unref(pl_origin *origin)
{
    if (origin && atomic_fetch_sub_explicit(&origin->n_refs, 1, memory_order_acq_rel) == 1)
        free(origin);
}
