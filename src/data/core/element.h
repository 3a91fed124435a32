/* SPDX-License-Identifier: Apache-2.0 */
/* Elements on their way through the stages.
 *   item    a component: a tensor, a dataset, or a scalar that has no tensor yet. Numbers that
 *           flow from a range to a batch never get one
 *   origin  the file that an element was read from; shared by all elements of the file
 *   items   elements of sources that went into this one: those of its batch, those that were
 *           filtered away or were bad before it
 *
 * An element owns what it holds. It is moved by assignment: whoever gave it away forgets it. All
 * zero is an element without anything. Belongs to one thread at a time. */
#ifndef PL_DATA_CORE_ELEMENT_H
#define PL_DATA_CORE_ELEMENT_H

#include "plimsoll/dataset.h"
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

/* What is known of the bad elements before this one: see policy.h. */
typedef struct pl_bad pl_bad;

/* Most elements have an input and a label. */
enum { PL_ELEMENT_FEW = 2 };

typedef struct pl_element {
    int n;
    uint32_t n_bad; /* of the items */
    int64_t n_items;
    pl_item few[PL_ELEMENT_FEW];
    pl_item *many; /* more than few: all of them */
    pl_origin *origin;
    int64_t offset; /* in the file; -1: none */
    pl_bad *bad;
    uint64_t draw; /* of the call that it waits for: see pl_bound_function_draw(); 0: of none */
} pl_element;

static inline pl_item *pl_element_items(pl_element *element)
{
    return element->n > PL_ELEMENT_FEW ? element->many : element->few;
}

static inline const pl_item *pl_element_peek(const pl_element *element)
{
    return element->n > PL_ELEMENT_FEW ? element->many : element->few;
}

/* Room for `n` components, empty; one item of a source. -ENOMEM. */
PL_MUST_CHECK int pl_element_init(pl_element *element, int n);

/* Lets go of everything; the element is empty then. */
void pl_element_clear(pl_element *element);

/* Another of the same: shares tensors and datasets, but counts no items. -ENOMEM. */
PL_MUST_CHECK int pl_element_share(const pl_element *element, pl_element *ret_element);

/* Where the element comes from, and what went before it, become another's, which is made of it and
 * of what it has already: `from` is the later one. */
void pl_element_pass_on(pl_element *from, pl_element *to);

/* The same, where `from` is the earlier one: what went before an element. */
void pl_element_put_before(pl_element *from, pl_element *to);

/* Of a source that has its components from elsewhere: the first text among them that reads like the
 * name of a file becomes its origin, so that what fails further on names it. */
void pl_element_name(pl_element *element);

/* Bytes that its tensors have; a tensor over a file that is not read yet counts as well. */
uint64_t pl_element_bytes(const pl_element *element);

static inline pl_item pl_item_scalar(pl_dtype dtype, uint64_t bits)
{
    return (pl_item){.dtype = dtype, .bits = bits};
}

pl_dtype pl_item_dtype(const pl_item *item); /* PL_DTYPE_NONE: a dataset */
pl_shape pl_item_shape(const pl_item *item); /* of a tensor or scalar */

/* Gives a scalar its tensor. */
PL_MUST_CHECK int pl_item_settle(pl_item *item, pl_runtime *runtime, pl_error *reterr);

/* Copies the elements of a tensor or scalar, which is no string, one after the other. */
PL_MUST_CHECK int pl_item_read(const pl_item *item, void *data, pl_error *reterr);

void pl_item_clear(pl_item *item);

/* NULL for want of memory. */
pl_origin *pl_origin_new(const char *path);
pl_origin *pl_origin_ref(pl_origin *origin);
void pl_origin_unref(pl_origin *origin); /* NULL is allowed */

#endif
