/* SPDX-License-Identifier: Apache-2.0 */
/* Packs the attributes of an expr into one piece of memory: see expr.h.
 *
 * For each attribute that was given, in the order in which the op declares them, the bytes hold a
 * header (place, type and length), then the value, padded to 8 bytes. A number keeps the type that
 * it was given with: 1 and 1.0 are different attributes. */
#include <stdlib.h>
#include <string.h>

#include "program/expr.h"

typedef struct head {
    int32_t place, type;
    int64_t n;
} head;

static size_t payload_bytes(const pl_attr *attr)
{
    switch (attr->type) {
    case PL_ATTR_SHAPE:
    case PL_ATTR_INTS:
        return attr->n > 0 ? (size_t)attr->n * sizeof(int64_t) : 0;
    case PL_ATTR_STRING:
        return attr->value.text ? (strlen(attr->value.text) + 8) / 8 * 8 : 0;
    default:
        return sizeof(int64_t);
    }
}

/* Returns the unpacked attribute. Its lists and texts point behind the header. */
static pl_attr write_one(const pl_attr *attr, int place, char *to)
{
    pl_attr copy = *attr;
    const head first = {.place = place, .type = attr->type, .n = attr->n};
    memcpy(to, &first, sizeof first);
    char *payload = to + sizeof first;
    switch (attr->type) {
    case PL_ATTR_SHAPE:
    case PL_ATTR_INTS:
        if (attr->n > 0 && attr->value.values) {
            memcpy(payload, attr->value.values, payload_bytes(attr));
            copy.value.values = (const int64_t *)payload;
        }
        break;
    case PL_ATTR_STRING:
        if (!attr->value.text)
            break;
        memset(payload, 0, payload_bytes(attr));
        memcpy(payload, attr->value.text, strlen(attr->value.text));
        copy.value.text = payload;
        break;
    case PL_ATTR_DTYPE: {
        int64_t dtype = attr->value.dtype;
        memcpy(payload, &dtype, sizeof dtype);
        break;
    }
    default:
        memcpy(payload, &attr->value, sizeof(int64_t));
    }
    return copy;
}

static pl_attrs *pack(const pl_op *op, const pl_attr *const *by_place)
{
    size_t n_bytes = 0;
    int n_attrs = 0;
    for (int i = 0; i < op->n_attrs; i++)
        if (by_place[i]) {
            n_attrs++;
            n_bytes += sizeof(head) + payload_bytes(by_place[i]);
        }
    pl_attrs *made = malloc(sizeof *made + (size_t)n_attrs * sizeof *made->attrs + n_bytes);
    if (!made)
        return NULL;
    char *bytes = (char *)&made->attrs[n_attrs];
    *made = (pl_attrs){.n_refs = 1, .n_attrs = n_attrs, .n_bytes = n_bytes, .bytes = bytes};
    for (int i = 0, k = 0; i < op->n_attrs; i++)
        if (by_place[i]) {
            made->attrs[k] = write_one(by_place[i], i, bytes);
            made->attrs[k++].name = op->attrs[i].name;
            bytes += sizeof(head) + payload_bytes(by_place[i]);
        }
    return made;
}

static int place_of(const pl_op *op, const char *name)
{
    for (int i = 0; name && i < op->n_attrs; i++)
        if (op->attrs[i].name == name || strcmp(op->attrs[i].name, name) == 0)
            return i;
    return -1;
}

/* Inference finds values of the wrong type. */
int pl_attrs_pack(int op, const char *name, const pl_attr *attrs, int n_attrs, pl_attrs **ret,
                  pl_error *reterr)
{
    const pl_op *found = pl_op_of((pl_op_id)op);
    const pl_attr *by_place[PL_ATTRS_MAX] = {NULL};
    *ret = NULL;
    for (int i = 0; i < n_attrs; i++) {
        int place = place_of(found, attrs[i].name);
        if (place < 0 || by_place[place]) {
            pl_attr values[PL_ATTRS_MAX];
            return pl_attrs_resolve(found, name ? name : found->name, attrs, n_attrs, values,
                                    reterr);
        }
        by_place[place] = &attrs[i];
    }
    *ret = n_attrs > 0 ? pack(found, by_place) : NULL;
    return *ret || n_attrs <= 0
               ? 0
               : pl_error_set(reterr, -ENOMEM, "%s: out of memory for its attributes", found->name);
}

int pl_attrs_with_stream(int op, const pl_attrs *attrs, uint64_t stream, pl_attrs **ret,
                         pl_error *reterr)
{
    pl_attr others[PL_ATTRS_MAX];
    int n = 0;
    for (int i = 0; attrs && i < attrs->n_attrs; i++)
        if (strcmp(attrs->attrs[i].name, "stream") != 0)
            others[n++] = attrs->attrs[i];
    others[n++] = pl_attr_int("stream", (int64_t)stream);
    return pl_attrs_pack(op, NULL, others, n, ret, reterr);
}

pl_attrs *pl_attrs_ref(pl_attrs *attrs)
{
    if (attrs)
        atomic_fetch_add_explicit(&attrs->n_refs, 1, memory_order_relaxed);
    return attrs;
}

void pl_attrs_unref(pl_attrs *attrs)
{
    if (attrs && atomic_fetch_sub_explicit(&attrs->n_refs, 1, memory_order_acq_rel) == 1)
        free(attrs);
}
