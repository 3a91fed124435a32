/* SPDX-License-Identifier: Apache-2.0 */
/* Elements as they pass through the stages.
 *   item    a component: a tensor, a dataset, or a scalar without a tensor yet. Numbers that flow
 *           from a range to a batch never get one
 *   origin  the file that an element was read from; shared by all elements of the file
 *   items   the number of source elements that went into this one: those of its batch, and those
 *           before it that were filtered out or bad
 *
 * An element owns its items, and is moved by assignment: the source is not used again. All zero is
 * an empty element. Belongs to one thread at a time. */
#ifndef PL_DATA_CORE_ELEMENT_H
#define PL_DATA_CORE_ELEMENT_H

#include <string.h>

#include "plimsoll/dataset.h"
#include "tensor/dtype.h"
#include "tensor/runtime.h"

typedef struct pl_item {
    pl_tensor *tensor;
    pl_dataset *dataset;
    uint64_t bits;  /* of a scalar: its bytes, lowest first */
    pl_dtype dtype; /* of a scalar; else PL_DTYPE_NONE */
} pl_item;

typedef struct pl_origin {
    _Atomic int n_refs;
    char path[];
} pl_origin;

/* The bad elements before this one: see policy.h. */
typedef struct pl_bad pl_bad;

/* Most elements have an input and a label. */
enum { PL_ELEMENT_FEW = 2 };

typedef struct pl_element {
    int n;
    uint32_t n_bad; /* among the items */
    int64_t n_items;
    pl_item few[PL_ELEMENT_FEW];
    pl_item *many; /* more than few: all of them */
    pl_origin *origin;
    int64_t offset; /* in the file; -1: none */
    pl_bad *bad;
    uint64_t draw; /* for the call that it waits for: see pl_bound_function_draw(); 0: none */
} pl_element;

static inline pl_item *pl_element_items(pl_element *element)
{
    return element->n > PL_ELEMENT_FEW ? element->many : element->few;
}

static inline const pl_item *pl_element_peek(const pl_element *element)
{
    return element->n > PL_ELEMENT_FEW ? element->many : element->few;
}

int pl_element_init_many(pl_element *element);

/* Makes an element with room for `n` components, empty, that counts as one item of a source. Fails
 * with -ENOMEM. */
PL_MUST_CHECK static inline int pl_element_init(pl_element *element, int n)
{
    *element = (pl_element){.n = n, .n_items = 1, .offset = -1};
    return n <= PL_ELEMENT_FEW ? 0 : pl_element_init_many(element);
}

static inline void pl_item_clear(pl_item *item)
{
    if (item->tensor)
        pl_tensor_unref(item->tensor);
    if (item->dataset)
        pl_dataset_unref(item->dataset);
    *item = (pl_item){0};
}

void pl_element_clear_rest(pl_element *element);

/* Releases everything; the element is then empty. */
static inline void pl_element_clear(pl_element *element)
{
    pl_item *items = pl_element_items(element);
    for (int i = 0; i < element->n; i++)
        pl_item_clear(&items[i]);
    if (element->many || element->origin || element->bad)
        pl_element_clear_rest(element);
    *element = (pl_element){0};
}

/* Makes a second reference to the same tensors and datasets, which counts no items. Fails with
 * -ENOMEM. */
PL_MUST_CHECK int pl_element_share(const pl_element *element, pl_element *ret_element);

/* Parts of the next two: counts and origin, and the chain of bad elements. */
static inline void pl_element_pass_rest(pl_element *from, pl_element *to)
{
    to->n_items += from->n_items;
    to->n_bad += from->n_bad;
    from->n_items = 0;
    from->n_bad = 0;
    if (!to->origin) {
        to->origin = PL_TAKE(from->origin);
        to->offset = from->offset;
    }
}

void pl_element_join_bad(pl_element *earlier, pl_element *later, pl_element *to);

/* Call if `to` is made of `from`, among others: moves origin, counts and bad elements of `from` to
 * it, after those that it has. */
static inline void pl_element_pass_on(pl_element *from, pl_element *to)
{
    if (from->bad)
        pl_element_join_bad(to, from, to);
    pl_element_pass_rest(from, to);
}

/* pl_element_pass_on() where the bad elements of `from` come before those of `to`. */
static inline void pl_element_put_before(pl_element *from, pl_element *to)
{
    if (from->bad)
        pl_element_join_bad(from, to, to);
    pl_element_pass_rest(from, to);
}

/* For sources that did not read a file themselves: makes the first text that looks like a file name
 * the origin, so that later errors name it. */
void pl_element_name(pl_element *element);

/* Returns the bytes of its tensors, including those over a file that has not been read yet. */
static inline uint64_t pl_element_bytes(const pl_element *element)
{
    const pl_item *items = pl_element_peek(element);
    uint64_t bytes = 0;
    for (int i = 0; i < element->n; i++)
        if (items[i].tensor)
            bytes += pl_tensor_bytes(items[i].tensor);
    return bytes;
}

static inline pl_item pl_item_scalar(pl_dtype dtype, uint64_t bits)
{
    return (pl_item){.dtype = dtype, .bits = bits};
}

/* Returns PL_DTYPE_NONE for a dataset. */
static inline pl_dtype pl_item_dtype(const pl_item *item)
{
    return item->tensor ? pl_tensor_dtype(item->tensor) : item->dtype;
}

/* For a tensor or scalar. */
static inline pl_shape pl_item_shape(const pl_item *item)
{
    return item->tensor ? *pl_tensor_shape(item->tensor) : (pl_shape){0};
}

/* Makes a tensor for a scalar. */
PL_MUST_CHECK int pl_item_settle(pl_item *item, pl_runtime *runtime, pl_error *reterr);

/* Copies the elements of a tensor or scalar, not strings, contiguously. */
PL_MUST_CHECK static inline int pl_item_read(const pl_item *item, void *data, pl_error *reterr)
{
    static const int64_t nowhere[PL_RANK_MAX];
    if (item->tensor)
        return pl_tensor_read(item->tensor, nowhere, pl_tensor_shape(item->tensor)->dims, data,
                              reterr);
    memcpy(data, &item->bits, pl_dtype_info_of(item->dtype)->item_bytes);
    return 0;
}

/* Returns NULL if out of memory. */
pl_origin *pl_origin_new(const char *path);
pl_origin *pl_origin_ref(pl_origin *origin);
void pl_origin_unref(pl_origin *origin); /* NULL is allowed */

#endif
