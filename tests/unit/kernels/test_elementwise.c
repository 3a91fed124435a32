/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise kernels and casts: the table, and what every kernel has to keep to, whatever it
 * computes. That the results are NumPy's is tested in tests/kernels/test_elementwise.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/isa.h"
#include "tensor/dtype.h"

enum { N_MAX = 200, LAST_DTYPE = PL_STRING };

static const size_t lengths[] = {0, 1, 2, 3, 5, 8, 13, 31, 32, 33, 63, 64, 65, 130, N_MAX};

static const char *name_of(pl_elementwise op)
{
    return pl_elementwise_info_of(op)->name;
}

static size_t bytes_of(pl_dtype dtype)
{
    return pl_dtype_info_of(dtype)->item_bytes;
}

/* Without a byte to spare, so that a sanitizer sees a step over either end. */
static void *block_of(size_t n_bytes)
{
    void *block = malloc(n_bytes ? n_bytes : 1);
    assert_non_null(block);
    return block;
}

/* Numbers of every kind, the same for the same seed: small ones, and any bits. bool is 0 or 1. */
static void fill(void *data, pl_dtype dtype, size_t n, uint32_t seed)
{
    uint8_t *bytes = data;
    for (size_t i = 0; i < n * bytes_of(dtype); i++) {
        seed = seed * 1664525 + 1013904223;
        bytes[i] = (uint8_t)(dtype == PL_BOOL ? seed >> 31 : seed >> 24);
    }
    for (size_t i = 0; i < n; i += 2) {
        float as_f32 = (float)(i % 7) - 2;
        double as_f64 = (double)(i % 7) - 2;
        if (dtype == PL_F32)
            memcpy(bytes + 4 * i, &as_f32, 4);
        else if (dtype == PL_F64)
            memcpy(bytes + 8 * i, &as_f64, 8);
    }
}

static pl_dtype operand_dtype(pl_elementwise op, pl_dtype dtype, int operand)
{
    return op == PL_ELEMENTWISE_where && operand == 0 ? PL_BOOL : dtype;
}

typedef struct operands {
    void *at[3];
} operands;

static operands make_operands(pl_elementwise op, pl_dtype dtype, unsigned repeated, size_t n)
{
    operands made = {0};
    for (int i = 0; i < pl_elementwise_info_of(op)->n_operands; i++) {
        pl_dtype its = operand_dtype(op, dtype, i);
        size_t count = repeated >> i & 1 ? 1 : n;
        made.at[i] = block_of(count * bytes_of(its));
        fill(made.at[i], its, count, (uint32_t)(op * 64 + i));
    }
    return made;
}

static void free_operands(operands *made)
{
    for (int i = 0; i < 3; i++)
        free(made->at[i]);
}

/* The result for strips of `n`, computed `piece` elements at a time; the caller frees it. */
static void *compute(pl_isa isa, pl_elementwise op, pl_dtype dtype, unsigned repeated, size_t n,
                     size_t piece)
{
    pl_elementwise_kernel kernel = pl_elementwise_find_for(isa, op, dtype, repeated);
    size_t out_bytes = bytes_of(pl_elementwise_result(op, dtype));
    operands in = make_operands(op, dtype, repeated, n);
    char *out = block_of(n * out_bytes);
    for (size_t i = 0; i < n || n == 0; i += piece) {
        const char *at[3];
        for (int k = 0; k < 3; k++)
            at[k] = !in.at[k] || repeated >> k & 1
                        ? in.at[k]
                        : (char *)in.at[k] + i * bytes_of(operand_dtype(op, dtype, k));
        kernel(out + i * out_bytes, at[0], at[1], at[2], piece < n - i ? piece : n - i);
        if (n == 0)
            break;
    }
    free_operands(&in);
    return out;
}

/* NaNs may differ in their bits where two meet: see elementwise.h. */
static void make_nans_one(void *data, pl_dtype dtype, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (dtype == PL_F32 && ((float *)data)[i] != ((float *)data)[i])
            ((float *)data)[i] = __builtin_nanf("");
        else if (dtype == PL_F64 && ((double *)data)[i] != ((double *)data)[i])
            ((double *)data)[i] = __builtin_nan("");
    }
}

static void assert_same(pl_elementwise op, pl_dtype dtype, void *a, void *b, size_t n)
{
    pl_dtype result = pl_elementwise_result(op, dtype);
    make_nans_one(a, result, n);
    make_nans_one(b, result, n);
    if (memcmp(a, b, n * bytes_of(result)) != 0)
        fail_msg("%s of %s, strips of %zu", name_of(op), pl_dtype_info_of(dtype)->name, n);
}

typedef void visitor(pl_isa isa, pl_elementwise op, pl_dtype dtype, unsigned repeated);

/* Every kernel there is on this machine. */
static void visit_kernels(visitor *visit)
{
    for (int isa = PL_ISA_PLAIN; isa <= (int)pl_isa_best(); isa++)
        for (int op = 0; op < PL_ELEMENTWISE_COUNT; op++)
            for (int dtype = 0; dtype <= LAST_DTYPE; dtype++)
                for (unsigned repeated = 0; repeated < 7; repeated++)
                    if (pl_elementwise_find_for(isa, op, dtype, repeated))
                        visit(isa, op, dtype, repeated);
}

static void every_name_leads_back_to_its_operation(void **state)
{
    (void)state;
    for (int op = 0; op < PL_ELEMENTWISE_COUNT; op++)
        assert_int_equal(pl_elementwise_by_name(name_of(op)), op);
    assert_int_equal(pl_elementwise_by_name("no such"), PL_ELEMENTWISE_COUNT);
}

static void a_kernel_exists_where_the_table_says_so_in_every_form_but_the_last(void **state)
{
    (void)state;
    for (int op = 0; op < PL_ELEMENTWISE_COUNT; op++)
        for (int dtype = 0; dtype <= LAST_DTYPE; dtype++) {
            bool taken = pl_elementwise_result(op, dtype) != PL_DTYPE_NONE;
            unsigned all = (1u << pl_elementwise_info_of(op)->n_operands) - 1;
            for (unsigned repeated = 0; repeated < 8; repeated++)
                if ((pl_elementwise_find(op, dtype, repeated) != NULL) != (taken && repeated < all))
                    fail_msg("%s of %s, repeated %u", name_of(op), pl_dtype_info_of(dtype)->name,
                             repeated);
        }
}

static void results_are_of_the_operands_dtype_or_bool(void **state)
{
    (void)state;
    assert_int_equal(pl_elementwise_result(PL_ELEMENTWISE_add, PL_I16), PL_I16);
    assert_int_equal(pl_elementwise_result(PL_ELEMENTWISE_less, PL_F64), PL_BOOL);
    assert_int_equal(pl_elementwise_result(PL_ELEMENTWISE_sin, PL_I32), PL_DTYPE_NONE);
    assert_int_equal(pl_elementwise_result(PL_ELEMENTWISE_add, PL_F16), PL_DTYPE_NONE);
    assert_int_equal(pl_elementwise_result(PL_ELEMENTWISE_where, PL_BF16), PL_BF16);
    assert_int_equal(pl_elementwise_result(PL_ELEMENTWISE_where, PL_STRING), PL_DTYPE_NONE);
}

static void check_lengths(pl_isa isa, pl_elementwise op, pl_dtype dtype, unsigned repeated)
{
    for (size_t i = 0; i < PL_COUNT_OF(lengths); i++) {
        void *whole = compute(isa, op, dtype, repeated, lengths[i], N_MAX);
        void *parts = compute(isa, op, dtype, repeated, lengths[i], 1);
        assert_same(op, dtype, whole, parts, lengths[i]);
        free(whole);
        free(parts);
    }
}

static void a_kernel_stays_in_its_strips_and_gives_the_same_for_any_length(void **state)
{
    (void)state;
    visit_kernels(check_lengths);
}

static void check_in_place(pl_isa isa, pl_elementwise op, pl_dtype dtype, unsigned repeated)
{
    void *apart = compute(isa, op, dtype, repeated, N_MAX, N_MAX);
    for (int i = 0; i < pl_elementwise_info_of(op)->n_operands; i++) {
        pl_dtype result = pl_elementwise_result(op, dtype);
        if (repeated >> i & 1 || operand_dtype(op, dtype, i) != result)
            continue;
        operands in = make_operands(op, dtype, repeated, N_MAX);
        pl_elementwise_find_for(isa, op, dtype, repeated)(in.at[i], in.at[0], in.at[1], in.at[2],
                                                          N_MAX);
        assert_same(op, dtype, apart, in.at[i], N_MAX);
        free_operands(&in);
    }
    free(apart);
}

static void the_output_may_be_any_of_the_operands(void **state)
{
    (void)state;
    visit_kernels(check_in_place);
}

static bool is_exact(pl_elementwise op)
{
    static const pl_elementwise inexact[] = {
        PL_ELEMENTWISE_exp,  PL_ELEMENTWISE_expm1, PL_ELEMENTWISE_log,   PL_ELEMENTWISE_log1p,
        PL_ELEMENTWISE_sin,  PL_ELEMENTWISE_cos,   PL_ELEMENTWISE_tan,   PL_ELEMENTWISE_asin,
        PL_ELEMENTWISE_acos, PL_ELEMENTWISE_atan,  PL_ELEMENTWISE_sinh,  PL_ELEMENTWISE_cosh,
        PL_ELEMENTWISE_tanh, PL_ELEMENTWISE_erf,   PL_ELEMENTWISE_erfc,  PL_ELEMENTWISE_sigmoid,
        PL_ELEMENTWISE_pow,  PL_ELEMENTWISE_atan2, PL_ELEMENTWISE_asinh, PL_ELEMENTWISE_acosh,
        PL_ELEMENTWISE_atanh};
    for (size_t i = 0; i < PL_COUNT_OF(inexact); i++)
        if (inexact[i] == op)
            return false;
    return true;
}

static void check_against_plain(pl_isa isa, pl_elementwise op, pl_dtype dtype, unsigned repeated)
{
    if (isa == PL_ISA_PLAIN || !is_exact(op))
        return;
    void *fast = compute(isa, op, dtype, repeated, N_MAX, N_MAX);
    void *plain = compute(PL_ISA_PLAIN, op, dtype, repeated, N_MAX, N_MAX);
    assert_same(op, dtype, fast, plain, N_MAX);
    free(fast);
    free(plain);
}

static void exact_operations_give_the_same_bits_by_any_instruction_set(void **state)
{
    (void)state;
    if (pl_isa_best() == PL_ISA_PLAIN) {
        print_message("this machine has one instruction set\n");
        skip();
    }
    visit_kernels(check_against_plain);
}

static void our_functions_give_the_same_bits_by_vectors_of_any_width(void **state)
{
    (void)state;
    static const pl_elementwise ours[] = {PL_ELEMENTWISE_sin,  PL_ELEMENTWISE_cos,
                                          PL_ELEMENTWISE_exp,  PL_ELEMENTWISE_log,
                                          PL_ELEMENTWISE_tanh, PL_ELEMENTWISE_sigmoid};
    if (pl_isa_best() < PL_ISA_AVX512) {
        print_message("this machine has no vectors of 512 bits\n");
        skip();
    }
    for (size_t i = 0; i < PL_COUNT_OF(ours); i++) {
        void *wide = compute(PL_ISA_AVX512, ours[i], PL_F32, 0, N_MAX, N_MAX);
        void *narrow = compute(PL_ISA_AVX2, ours[i], PL_F32, 0, N_MAX, N_MAX);
        assert_same(ours[i], PL_F32, wide, narrow, N_MAX);
        free(wide);
        free(narrow);
    }
}

static void mul_add_rounds_as_mul_and_add_do(void **state)
{
    (void)state;
    float x[N_MAX], y[N_MAX], z[N_MAX], apart[N_MAX], at_once[N_MAX];
    for (int i = 0; i < N_MAX; i++) {
        x[i] = 1 + (float)i * 0x1p-20f;
        y[i] = 1 - (float)i * 0x1p-21f;
        z[i] = -1;
    }
    pl_elementwise_find(PL_ELEMENTWISE_mul, PL_F32, 0)(apart, x, y, NULL, N_MAX);
    pl_elementwise_find(PL_ELEMENTWISE_add, PL_F32, 0)(apart, apart, z, NULL, N_MAX);
    pl_elementwise_find(PL_ELEMENTWISE_mul_add, PL_F32, 0)(at_once, x, y, z, N_MAX);
    assert_memory_equal(apart, at_once, sizeof apart);
    bool differs_from_fused = false;
    for (int i = 0; i < N_MAX; i++)
        differs_from_fused |= __builtin_fmaf(x[i], y[i], z[i]) != at_once[i];
    assert_true(differs_from_fused); /* or the values above could not tell */
}

static void a_cast_exists_between_all_numbers_and_stays_in_its_strips(void **state)
{
    (void)state;
    for (int from = 0; from <= LAST_DTYPE; from++)
        for (int to = 0; to <= LAST_DTYPE; to++) {
            pl_cast_kernel kernel = pl_cast_find(from, to);
            assert_int_equal(kernel != NULL, bytes_of(from) > 0 && bytes_of(to) > 0);
            for (size_t i = 0; kernel && i < PL_COUNT_OF(lengths); i++) {
                void *in = block_of(lengths[i] * bytes_of(from));
                void *out = block_of(lengths[i] * bytes_of(to));
                fill(in, from, lengths[i], 7);
                kernel(out, in, lengths[i]);
                free(in);
                free(out);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_name_leads_back_to_its_operation),
        cmocka_unit_test(a_kernel_exists_where_the_table_says_so_in_every_form_but_the_last),
        cmocka_unit_test(results_are_of_the_operands_dtype_or_bool),
        cmocka_unit_test(a_kernel_stays_in_its_strips_and_gives_the_same_for_any_length),
        cmocka_unit_test(the_output_may_be_any_of_the_operands),
        cmocka_unit_test(exact_operations_give_the_same_bits_by_any_instruction_set),
        cmocka_unit_test(our_functions_give_the_same_bits_by_vectors_of_any_width),
        cmocka_unit_test(mul_add_rounds_as_mul_and_add_do),
        cmocka_unit_test(a_cast_exists_between_all_numbers_and_stays_in_its_strips),
    };
    return cmocka_run_group_tests_name("elementwise", tests, NULL, NULL);
}
