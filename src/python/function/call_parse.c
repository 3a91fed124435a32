/* SPDX-License-Identifier: Apache-2.0 */
/* tf.train.Example records, parsed by the library, in a graph. */
#include <errno.h>
#include <stdlib.h>

#include "python/convert/convert.h"
#include "python/function/call_make.h"
#include "python/module/failure.h"
#include "python/program/program.h"

typedef struct parse {
    call base;
    pl_function function[2]; /* of one record, of a list of them; an output for each feature. Where
                                it is known which it will be, the other is not there */
} parse;

/* A record that is none is an invalid argument, as TensorFlow sees it. */
static int as_argument(int code, pl_error *reterr)
{
    if (code != PL_ECORRUPT)
        return code;
    pl_error_in_op(reterr, "parse_examples", NULL);
    pl_error_reword(reterr, "could not parse a tf.train.Example: %s", pl_error_reason(reterr));
    reterr->code = -EINVAL;
    return -EINVAL;
}

static int run(call *base, pl_tensor *const *inputs, pl_tensor **outputs, const run_state *state,
               pl_error *reterr)
{
    const parse *self = (parse *)base;
    int rank = pl_tensor_shape(inputs[0])->rank, n = base->n_outputs;
    const pl_function *parser = &self->function[rank != 0];
    (void)state;
    if (rank > 1)
        return pl_error_set(reterr, -EINVAL,
                            "parse_examples: records of rank %d: 0 or 1 is expected", rank);
    if (!parser->call)
        return pl_error_set(reterr, -EINVAL,
                            "parse_examples: features of any length are parsed record by record");
    pl_value input = {.tensor = inputs[0]};
    pl_value *values = calloc((size_t)n + 1, sizeof *values);
    if (!values)
        return pl_error_set(reterr, -ENOMEM, "no memory to parse records");
    int r = parser->call(parser->context, &input, 1, values, n, reterr);
    for (int i = 0; i < n; i++)
        if (r == 0)
            outputs[i] = values[i].tensor;
        else
            pl_tensor_unref(values[i].tensor);
    free(values);
    return as_argument(r, reterr);
}

static void free_parse(call *base)
{
    parse *self = (parse *)base;
    for (int i = 0; i < 2; i++)
        if (self->function[i].release)
            self->function[i].release(self->function[i].context);
    free(self);
}

static const call_class parse_class = {.name = "parse_examples", .run = run, .free = free_parse};

/* ---- making ---- */

/* The fallback is borrowed from a node that is evaluated here. */
static int feature_of(PyObject *item, pl_feature_spec *feature)
{
    PyObject *shape, *dtype, *fallback;
    if (!PyArg_ParseTuple(item, "sOOO;a feature is (name, dtype, shape, default)", &feature->name,
                          &dtype, &shape, &fallback))
        return -1;
    int number = convert_dtype(dtype);
    if (number <= 0) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "a feature has a dtype");
        return -1;
    }
    feature->dtype = (pl_dtype)number;
    feature->variable = shape == Py_None;
    if (!feature->variable && convert_shape(shape, &feature->shape) < 0)
        return -1;
    if (fallback == Py_None)
        return 0;
    if (!tensor_check(fallback)) {
        PyErr_SetString(PyExc_TypeError, "a feature's default is a Tensor");
        return -1;
    }
    tensor *node = (tensor *)fallback;
    if (evaluate(&node, 1) < 0)
        return -1;
    feature->fallback = node->value;
    return 0;
}

static parse *make(const pl_feature_spec *features, int n, const tensor *records)
{
    parse *self = calloc(1, sizeof *self);
    pl_runtime *runtime = module_runtime();
    pl_error error = {0};
    if (!self || !runtime || call_init(&self->base, &parse_class, 1, n) < 0) {
        free(self);
        return runtime ? (parse *)PyErr_NoMemory() : NULL;
    }
    int rank = records->type.shape.rank;
    bool any_length = false;
    for (int i = 0; i < n; i++)
        any_length |= features[i].variable;
    for (int i = 0; i < 2; i++) {
        if (rank == PL_RANK_UNKNOWN ? i == 1 && any_length : i != (rank > 0))
            continue;
        if (pl_examples_function(runtime, features, n, i == 1, &self->function[i], &error) < 0) {
            call_unref(&self->base);
            return (parse *)failure_raise(&error);
        }
    }
    for (int i = 0; i < n; i++) {
        const pl_spec *spec = &self->function[rank > 0].output_specs[i];
        self->base.outputs[i] = (pl_type){spec->dtype, spec->shape};
        if (rank == PL_RANK_UNKNOWN)
            self->base.outputs[i].shape.rank = PL_RANK_UNKNOWN;
        else if (rank == 1 && spec->shape.rank > 0)
            self->base.outputs[i].shape.dims[0] = records->type.shape.dims[0];
    }
    return self;
}

const char call_parse_doc[] =
    "parse_examples(records, features, name=None) -> list of tensors\n\n"
    "One tensor for each feature, (name, dtype, shape, default), of tf.train.Example records: a\n"
    "scalar string, or a list of them. A shape of None: any number of values.";

PyObject *call_parse(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"records", "features", "name", NULL};
    PyObject *records, *list, *name = NULL, *items = NULL;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|O:parse_examples", names, &records, &list,
                                     &name) ||
        arguments_name(name, &name) < 0)
        return NULL;
    PyObject *specs = PySequence_Fast(list, "features is a sequence");
    int n = specs ? (int)PySequence_Fast_GET_SIZE(specs) : 0, r = specs ? 0 : -1;
    pl_feature_spec *features = PyMem_Calloc((size_t)n + 1, sizeof *features);
    tensor *node = r == 0 && features ? convert_to_node(records, PL_STRING, PL_STRING) : NULL;
    for (int i = 0; node && r == 0 && i < n; i++)
        r = feature_of(PySequence_Fast_GET_ITEM(specs, i), &features[i]);
    if (node && r == 0) {
        parse *self = make(features, n, node);
        items = self ? tensor_call(&self->base, &node, 1, name) : NULL;
    }
    if (!features)
        PyErr_NoMemory();
    Py_XDECREF((PyObject *)node);
    PyMem_Free(features);
    Py_XDECREF(specs);
    return items;
}
