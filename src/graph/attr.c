/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes: made by the caller, checked against the op's specs, copied into the node. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "graph/node.h"
#include "tensor/dtype.h"

pl_attr pl_attr_int(const char *name, int64_t value)
{
    return (pl_attr){.name = name, .type = PL_ATTR_INT, .value.i = value};
}

pl_attr pl_attr_float(const char *name, double value)
{
    return (pl_attr){.name = name, .type = PL_ATTR_FLOAT, .value.f = value};
}

pl_attr pl_attr_bool(const char *name, bool value)
{
    return (pl_attr){.name = name, .type = PL_ATTR_BOOL, .value.i = value};
}

pl_attr pl_attr_dtype(const char *name, pl_dtype value)
{
    return (pl_attr){.name = name, .type = PL_ATTR_DTYPE, .value.dtype = value};
}

pl_attr pl_attr_shape(const char *name, const pl_shape *shape)
{
    if (!shape)
        return (pl_attr){.name = name, .type = PL_ATTR_SHAPE, .n = -1}; /* refused with its node */
    return (pl_attr){
        .name = name, .type = PL_ATTR_SHAPE, .n = shape->rank, .value.values = shape->dims};
}

pl_attr pl_attr_ints(const char *name, const int64_t *values, int n)
{
    return (pl_attr){.name = name, .type = PL_ATTR_INTS, .n = n, .value.values = values};
}

pl_attr pl_attr_string(const char *name, const char *text)
{
    return (pl_attr){.name = name, .type = PL_ATTR_STRING, .value.text = text};
}

static const char *type_name(pl_attr_type type)
{
    static const char *const names[] = {
        [PL_ATTR_NONE] = "nothing",
        [PL_ATTR_INT] = "an integer",
        [PL_ATTR_FLOAT] = "a float",
        [PL_ATTR_BOOL] = "a bool",
        [PL_ATTR_DTYPE] = "a dtype",
        [PL_ATTR_SHAPE] = "a shape",
        [PL_ATTR_INTS] = "a list of integers",
        [PL_ATTR_STRING] = "a string",
        [PL_ATTR_NUMBER] = "a number",
    };
    return (unsigned)type < PL_COUNT_OF(names) ? names[type] : "something unknown";
}

static int spec_by_name(const pl_op *op, const char *name)
{
    for (int k = 0; name && k < op->n_attrs; k++)
        if (strcmp(op->attrs[k].name, name) == 0)
            return k;
    return -1;
}

/* "axes, keepdims", as far as there is room. */
static const char *list_names(const pl_op *op, char text[128])
{
    size_t used = 0;
    text[0] = '\0';
    for (int k = 0; k < op->n_attrs; k++) {
        size_t n = strlen(op->attrs[k].name);
        if (used + n + 3 > 128)
            break;
        if (k > 0) {
            memcpy(text + used, ", ", 2);
            used += 2;
        }
        memcpy(text + used, op->attrs[k].name, n + 1);
        used += n;
    }
    return text;
}

static int unknown_attr(const pl_op *op, const char *name, const pl_attr *attr, pl_error *reterr)
{
    char names[128];
    return pl_error_set(reterr, -EINVAL, "%s '%.120s': there is no attribute '%.60s': it takes %s",
                        op->name, name, attr->name ? attr->name : "",
                        op->n_attrs > 0 ? list_names(op, names) : "none");
}

static bool type_fits(pl_attr_type wanted, pl_attr_type given)
{
    if (wanted == PL_ATTR_NUMBER)
        return given == PL_ATTR_INT || given == PL_ATTR_FLOAT;
    return wanted == given;
}

/* Returns what is wrong with a value of the right type; NULL if nothing. */
static const char *value_problem(const pl_attr *attr)
{
    if (attr->type == PL_ATTR_DTYPE && pl_dtype_info_of(attr->value.dtype)->kind == PL_KIND_NONE)
        return "that is not a dtype";
    if (attr->type == PL_ATTR_STRING && !attr->value.text)
        return "the string is NULL";
    if (attr->type != PL_ATTR_SHAPE && attr->type != PL_ATTR_INTS)
        return NULL;
    if (attr->n < 0 || (attr->n > 0 && !attr->value.values))
        return "the list is NULL, or its length is negative";
    if (attr->type == PL_ATTR_INTS)
        return NULL;
    if (attr->n > PL_RANK_MAX)
        return "a shape has at most 8 dimensions";
    for (int i = 0; i < attr->n; i++)
        if (attr->value.values[i] < PL_UNKNOWN)
            return "a dimension is less than -1";
    return NULL;
}
static_assert(PL_RANK_MAX == 8, "a message above says so");

static int take(const pl_op *op, const char *name, const pl_attr *attr, pl_attr *ret_value,
                pl_error *reterr)
{
    const pl_attr_spec *spec = &op->attrs[spec_by_name(op, attr->name)];
    if (!type_fits(spec->type, attr->type))
        return pl_error_set(reterr, -EINVAL, "%s '%.120s': attribute '%s' is %s: it takes %s",
                            op->name, name, spec->name, type_name(attr->type),
                            type_name(spec->type));
    const char *problem = value_problem(attr);
    if (problem)
        return pl_error_set(reterr, -EINVAL, "%s '%.120s': attribute '%s': %s", op->name, name,
                            spec->name, problem);
    *ret_value = *attr;
    ret_value->name = spec->name; /* the caller's name may not live as long */
    if (attr->type == PL_ATTR_BOOL)
        ret_value->value.i = attr->value.i != 0;
    return 0;
}

int pl_attrs_resolve(const pl_op *op, const char *name, const pl_attr *given, int n_given,
                     pl_attr *values, pl_error *reterr)
{
    bool seen[PL_ATTRS_MAX] = {false};
    for (int k = 0; k < op->n_attrs; k++) {
        values[k] = op->attrs[k].fallback;
        values[k].name = op->attrs[k].name;
    }
    for (int i = 0; i < n_given; i++) {
        int k = spec_by_name(op, given[i].name);
        if (k < 0)
            return unknown_attr(op, name, &given[i], reterr);
        if (seen[k])
            return pl_error_set(reterr, -EINVAL, "%s '%.120s': attribute '%s' is given twice",
                                op->name, name, op->attrs[k].name);
        seen[k] = true;
        int r = take(op, name, &given[i], &values[k], reterr);
        if (r < 0)
            return r;
    }
    for (int k = 0; k < op->n_attrs; k++)
        if (op->attrs[k].required && !seen[k])
            return pl_error_set(reterr, -EINVAL, "%s '%.120s': attribute '%s' is missing: %s, %s",
                                op->name, name, op->attrs[k].name, type_name(op->attrs[k].type),
                                op->attrs[k].doc);
    return 0;
}

static size_t list_bytes(const pl_attr *value)
{
    if (value->type == PL_ATTR_SHAPE || value->type == PL_ATTR_INTS)
        return (size_t)value->n * sizeof(int64_t);
    if (value->type == PL_ATTR_STRING)
        return (strlen(value->value.text) + 8) / 8 * 8;
    return 0;
}

size_t pl_attrs_extra_bytes(const pl_attr *values, int n)
{
    size_t bytes = 0;
    for (int k = 0; k < n; k++)
        bytes += list_bytes(&values[k]);
    return bytes;
}

void pl_attrs_copy(const pl_attr *values, int n, pl_attr *to, char *extra)
{
    for (int k = 0; k < n; k++) {
        to[k] = values[k];
        size_t bytes = list_bytes(&values[k]);
        if (values[k].type == PL_ATTR_INTS || values[k].type == PL_ATTR_SHAPE)
            to[k].value.values = NULL; /* nothing stays borrowed, even for an empty list */
        if (bytes == 0)
            continue;
        if (values[k].type == PL_ATTR_STRING) {
            memcpy(extra, values[k].value.text, strlen(values[k].value.text) + 1);
            to[k].value.text = extra;
        } else {
            memcpy(extra, values[k].value.values, bytes);
            to[k].value.values = (const int64_t *)extra;
        }
        extra += bytes;
    }
}

const pl_attr *pl_node_attr(const pl_node *node, const char *name)
{
    PL_NULL_GIVES(node, NULL);
    PL_NULL_GIVES(name, NULL);
    int k = spec_by_name(node->op, name);
    return k < 0 ? NULL : &node->attrs[k];
}
