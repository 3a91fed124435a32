/* SPDX-License-Identifier: Apache-2.0 */
/* Parses tf.train.Example records with the datasets' own reader, between graphs. */
#include <errno.h>
#include <stdlib.h>

#include "program/expr.h"

typedef struct parse {
    pl_routine base;
    pl_function function[2]; /* for one record, and for a list of them; one that cannot be needed
                                is empty. Both have an output for each feature */
} parse;

/* TensorFlow reports a malformed record as an invalid argument. */
static int as_argument(int code, pl_error *reterr)
{
    if (code != PL_ECORRUPT || !reterr)
        return code == PL_ECORRUPT ? -EINVAL : code;
    pl_error_in_op(reterr, "parse_examples", NULL);
    pl_error_reword(reterr, "could not parse a tf.train.Example: %s", pl_error_reason(reterr));
    reterr->code = -EINVAL;
    return -EINVAL;
}

static int run(pl_routine *base, pl_evaluator *evaluator, pl_tensor *const *inputs,
               pl_tensor **outputs, const pl_run_options *options, pl_error *reterr)
{
    const parse *self = (parse *)base;
    int rank = pl_tensor_shape(inputs[0])->rank, n = base->n_outputs;
    const pl_function *parser = &self->function[rank != 0];
    (void)evaluator;
    (void)options;
    if (rank > 1)
        return pl_error_set(reterr, -EINVAL,
                            "parse_examples: records of rank %d: 0 or 1 is expected", rank);
    if (!parser->call)
        return pl_error_set(reterr, -EINVAL,
                            "parse_examples: features of any length are parsed record by record");
    pl_value input = {.tensor = inputs[0]};
    pl_value *values = calloc((size_t)n + 1, sizeof *values);
    if (!values)
        return pl_error_set(reterr, -ENOMEM, "out of memory to parse records");
    int r = parser->call(parser->context, &input, 1, values, n, reterr);
    for (int i = 0; i < n; i++)
        if (r == 0)
            outputs[i] = values[i].tensor;
        else
            pl_tensor_unref(values[i].tensor);
    free(values);
    return as_argument(r, reterr);
}

static void free_parse(pl_routine *base)
{
    parse *self = (parse *)base;
    for (int i = 0; i < 2; i++)
        if (self->function[i].release)
            self->function[i].release(self->function[i].context);
    free(self);
}

static const pl_routine_class parse_class = {.run = run, .free = free_parse};

static int make_functions(parse *self, pl_runtime *runtime, int rank,
                          const pl_feature_spec *features, int n, pl_error *reterr)
{
    bool any_length = false;
    int r = 0;
    for (int i = 0; i < n; i++)
        any_length |= features[i].variable;
    for (int i = 0; r == 0 && i < 2; i++)
        if (rank == PL_RANK_UNKNOWN ? i == 0 || !any_length : i == (rank > 0))
            r = pl_examples_function(runtime, features, n, i == 1, &self->function[i], reterr);
    return r;
}

static void set_outputs(parse *self, const pl_shape *records)
{
    for (int i = 0; i < self->base.n_outputs; i++) {
        const pl_spec *spec = &self->function[records->rank > 0].output_specs[i];
        pl_type *type = &self->base.outputs[i];
        *type = (pl_type){spec->dtype, spec->shape};
        if (records->rank == PL_RANK_UNKNOWN)
            type->shape.rank = PL_RANK_UNKNOWN;
        else if (records->rank == 1 && spec->shape.rank > 0)
            type->shape.dims[0] = records->dims[0];
    }
}

int pl_expr_parse_examples(pl_runtime *runtime, pl_expr *records, const pl_feature_spec *features,
                           int n_features, pl_expr **ret_items, pl_error *reterr)
{
    PL_NOT_NULL(runtime, reterr);
    PL_NOT_NULL(records, reterr);
    PL_NOT_NULL_IF(n_features > 0, features, reterr);
    PL_NOT_NULL_IF(n_features > 0, ret_items, reterr);
    const pl_type type = pl_expr_type(records);
    parse *self = calloc(1, sizeof *self);
    int r = pl_routine_init(self ? &self->base : NULL, &parse_class, "parse_examples", 1,
                            n_features, reterr);
    if (r < 0)
        return r;
    r = make_functions(self, runtime, type.shape.rank, features, n_features, reterr);
    if (r < 0) {
        pl_routine_unref(&self->base);
        return r;
    }
    set_outputs(self, &type.shape);
    return pl_expr_call(&self->base, &records, 1, 0, ret_items, reterr);
}
