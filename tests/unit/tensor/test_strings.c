/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of strings: made, viewed, read, evicted, and refused where numbers are wanted. */
#include "faults.h"

#include <string.h>

#include "tensor/shape.h"
#include "tensor/strings.h"

static pl_runtime *runtime;
static pl_error error;

static int begin(void **state)
{
    (void)state;
    const pl_runtime_options options = {.cap_bytes = 4 * PL_MIB, .n_threads = 1};
    return pl_runtime_new(&options, &runtime, &error);
}

static int end(void **state)
{
    (void)state;
    assert_int_equal(pl_runtime_claimed_bytes(runtime), 0);
    pl_runtime_unref(PL_TAKE(runtime));
    return 0;
}

#define STRING_CASE(function) cmocka_unit_test_setup_teardown(function, begin, end)

static const pl_string six[] = {{"one", 3}, {NULL, 0},       {"three\0!", 7},
                                {"4", 1},   {"fivefive", 8}, {"six", 3}};

static pl_tensor *must_make(pl_shape shape, const pl_string *strings)
{
    pl_tensor *tensor = NULL;
    if (pl_tensor_new_strings(runtime, &shape, strings, "texts", &tensor, &error) < 0)
        fail_msg("%s", error.message);
    return tensor;
}

static void is_at(pl_tensor *tensor, int64_t i, int64_t k, pl_string wanted)
{
    pl_string got;
    const int64_t at[] = {i, k};
    assert_int_equal(pl_tensor_pin_string(tensor, at, &got, &error), 0);
    assert_int_equal(got.n, wanted.n);
    if (wanted.n > 0)
        assert_memory_equal(got.data, wanted.data, wanted.n);
    pl_tensor_unpin(tensor);
}

static void strings_are_kept_as_they_are(void **state)
{
    (void)state;
    pl_tensor *tensor = must_make(PL_SHAPE(2, 3), six);
    assert_int_equal(pl_tensor_dtype(tensor), PL_STRING);
    assert_int_equal(pl_tensor_bytes(tensor), 7 * 8 + 22);
    for (int i = 0; i < 6; i++)
        is_at(tensor, i / 3, i % 3, six[i]);
    pl_tensor_unref(tensor);

    tensor = must_make(PL_SHAPE(), &six[4]); /* a scalar, and none at all */
    is_at(tensor, 0, 0, six[4]);
    pl_tensor_unref(tensor);
    tensor = must_make(PL_SHAPE(0, 3), NULL);
    assert_int_equal(pl_tensor_bytes(tensor), 8);
    pl_tensor_unref(tensor);
}

static void views_of_strings_share_them(void **state)
{
    (void)state;
    pl_tensor *tensor = must_make(PL_SHAPE(2, 3), six), *turned, *cut;
    assert_int_equal(pl_tensor_transpose(tensor, (int[]){1, 0}, &turned, &error), 0);
    assert_int_equal(pl_tensor_slice(turned, (int64_t[]){2, 1}, (int64_t[]){-2, 1},
                                     (int64_t[]){2, 1}, &cut, &error),
                     0);
    for (int i = 0; i < 6; i++)
        is_at(turned, i % 3, i / 3, six[i]);
    is_at(cut, 0, 0, six[5]);
    is_at(cut, 1, 0, six[3]);

    pl_strings strings;
    assert_int_equal(pl_strings_pin(&strings, cut, &error), 0);
    assert_int_equal(strings.n, 2);
    assert_int_equal(pl_strings_at(&strings, 0).n, 3);
    assert_int_equal(pl_strings_at(&strings, 1).n, 1);
    pl_strings_unpin(&strings);
    pl_tensor_unref(tensor);
    pl_tensor_unref(turned);
    pl_tensor_unref(cut);
}

static void is_refused(int r, const char *message)
{
    assert_int_equal(r, -EINVAL);
    assert_string_equal(error.message, message);
}

static void what_is_for_numbers_is_refused(void **state)
{
    (void)state;
    const void *data;
    int64_t strides[PL_RANK_MAX], at[] = {2, 0};
    const int64_t none[] = {0, 0}, all[] = {2, 3};
    pl_string string;
    char room[64];
    const pl_shape shape = PL_SHAPE(2, 3);
    pl_tensor *tensor = must_make(shape, six), *other = NULL;
    const char *how = "'texts' holds strings: read them with pl_tensor_pin_string()";
    is_refused(pl_tensor_pin(tensor, &data, strides, &error), how);
    is_refused(pl_tensor_read(tensor, none, all, room, &error), how);
    is_refused(pl_tensor_new(runtime, PL_STRING, &shape, six, "x", &other, &error),
               "strings have no fixed size: make them with pl_tensor_new_strings()");
    is_refused(pl_tensor_pin_string(tensor, at, &string, &error),
               "'texts' [2,3] has no element 2 on axis 0");
    at[0] = -1;
    is_refused(pl_tensor_pin_string(tensor, at, &string, &error),
               "'texts' [2,3] has no element -1 on axis 0");
    pl_tensor_unref(tensor);
    assert_int_equal(pl_tensor_new(runtime, PL_U8, &PL_SHAPE(3), "abc", "bytes", &other, &error),
                     0);
    is_refused(pl_tensor_pin_string(other, none, &string, &error), "'bytes' does not hold strings");
    pl_tensor_unref(other);
}

/* Four of a MiB each in a budget of four, with what else there is. */
static void strings_are_evicted_and_come_back(void **state)
{
    (void)state;
    pl_tensor *tensors[6];
    char *text = malloc(PL_MIB);
    for (int i = 0; i < 6; i++) {
        memset(text, 'a' + i, PL_MIB);
        const pl_string strings[] = {{text, PL_MIB / 2}, {text, PL_MIB / 2 - 100}};
        tensors[i] = must_make(PL_SHAPE(2, 1), strings);
    }
    pl_pool_state pool;
    pl_pool_state_read(runtime->pool, &pool);
    assert_true(pool.n_out > 0);
    for (int i = 0; i < 6; i++) {
        memset(text, 'a' + i, PL_MIB);
        is_at(tensors[i], 1, 0, (pl_string){text, PL_MIB / 2 - 100});
        pl_tensor_unref(tensors[i]);
    }
    const pl_string much[] = {{text, PL_MIB}, {text, PL_MIB}, {text, PL_MIB}, {text, PL_MIB}};
    pl_tensor *none = NULL;
    assert_int_equal(pl_tensor_new_strings(runtime, &PL_SHAPE(4), much, "too much", &none, &error),
                     PL_EBUDGET);
    assert_non_null(strstr(error.message, "'too much'"));
    free(text);
}

static void every_allocation_of_strings_may_fail(void **state)
{
    (void)state;
    fault_need_alloc();
    for (int number = 1;; number++) {
        pl_tensor *tensor = NULL;
        fault_alloc_begin(number);
        int r = pl_tensor_new_strings(runtime, &PL_SHAPE(6), six, "texts", &tensor, &error);
        bool hit = fault_alloc_end();
        assert_true(r == 0 ? tensor != NULL : tensor == NULL);
        pl_tensor_unref(tensor);
        if (!hit)
            break;
        assert_int_equal(r, -ENOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STRING_CASE(strings_are_kept_as_they_are),
        STRING_CASE(views_of_strings_share_them),
        STRING_CASE(what_is_for_numbers_is_refused),
        STRING_CASE(strings_are_evicted_and_come_back),
        STRING_CASE(every_allocation_of_strings_may_fail),
    };
    return cmocka_run_group_tests_name("strings", tests, NULL, NULL);
}
