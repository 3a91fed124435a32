/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes are counted without overflow, and fit by NumPy's rules or are refused with both of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "tensor/shape.h"

static const int64_t big = INT64_C(1) << 32;

static void shapes_read_as_people_write_them(void **state)
{
    (void)state;
    assert_string_equal(PL_SHAPE_TEXT(&PL_SHAPE()), "[]");
    assert_string_equal(PL_SHAPE_TEXT(&PL_SHAPE(10, -1, 3)), "[10,?,3]");
    const int64_t m = INT64_MAX;
    const char *text = PL_SHAPE_TEXT(&PL_SHAPE(m, m, m, m, m, m, m, m));
    assert_int_equal(strlen(text), 8 * 19 + 9);
    assert_true(strlen(text) < PL_SHAPE_TEXT_BYTES);
}

static void what_cannot_be_a_shape_is_refused(void **state)
{
    (void)state;
    pl_error error = {0};
    pl_shape shape = PL_SHAPE(7);
    const int64_t dims[PL_RANK_MAX + 1] = {2, 0, -1};
    const int64_t negative[] = {3, -2};
    assert_int_equal(pl_shape_init(&shape, PL_RANK_MAX + 1, dims, &error), -EINVAL);
    assert_int_equal(pl_shape_init(&shape, -1, dims, &error), -EINVAL);
    assert_int_equal(pl_shape_init(&shape, 2, negative, &error), -EINVAL);
    assert_non_null(strstr(error.message, "axis 1 is -2"));
    assert_true(pl_shape_equal(&shape, &PL_SHAPE(7)));
    assert_int_equal(pl_shape_init(&shape, 3, dims, &error), 0);
    assert_true(pl_shape_equal(&shape, &PL_SHAPE(2, 0, -1)));
}

static void elements_and_bytes_are_counted(void **state)
{
    (void)state;
    int64_t n = -7;
    assert_int_equal(pl_shape_count(&PL_SHAPE(), &n, NULL), 0);
    assert_int_equal(n, 1);
    assert_int_equal(pl_shape_count(&PL_SHAPE(2, 3, 4), &n, NULL), 0);
    assert_int_equal(n, 24);
    assert_int_equal(pl_shape_bytes(&PL_SHAPE(2, 3, 4), 8, &n, NULL), 0);
    assert_int_equal(n, 192);
    assert_int_equal(pl_shape_count(&PL_SHAPE(2, 0, 4), &n, NULL), 0);
    assert_int_equal(n, 0);
    assert_int_equal(pl_shape_bytes(&PL_SHAPE(5), 0, &n, NULL), 0);
    assert_int_equal(n, 0);
    assert_int_equal(pl_shape_bytes(&PL_SHAPE(INT64_MAX), 1, &n, NULL), 0);
    assert_true(n == INT64_MAX);
}

static void a_size_that_overflows_is_refused_also_beside_a_zero(void **state)
{
    (void)state;
    int64_t n = -7;
    pl_error error = {0};
    assert_int_equal(pl_shape_count(&PL_SHAPE(big, big), &n, &error), -EOVERFLOW);
    assert_non_null(strstr(error.message, "[4294967296,4294967296]"));
    assert_int_equal(pl_shape_count(&PL_SHAPE(0, big, big), &n, NULL), -EOVERFLOW);
    assert_int_equal(pl_shape_count(&PL_SHAPE(big, big, 0), &n, NULL), -EOVERFLOW);
    assert_int_equal(pl_shape_bytes(&PL_SHAPE(big, big), 0, &n, NULL), -EOVERFLOW);
    assert_int_equal(pl_shape_bytes(&PL_SHAPE(INT64_MAX), 2, &n, NULL), -EOVERFLOW);
    assert_int_equal(pl_shape_bytes(&PL_SHAPE(1), UINT64_MAX, &n, NULL), -EOVERFLOW);
    assert_int_equal(n, -7);
}

static void an_unknown_size_is_not_counted(void **state)
{
    (void)state;
    int64_t n = -7;
    pl_error error = {0};
    assert_int_equal(pl_shape_count(&PL_SHAPE(2, -1), &n, &error), -EINVAL);
    assert_non_null(strstr(error.message, "[2,?]"));
    assert_int_equal(n, -7);
    assert_false(pl_shape_is_known(&PL_SHAPE(2, -1)));
    assert_true(pl_shape_is_known(&PL_SHAPE(2, 0)));
}

static void compatible_shapes_are_equal_as_far_as_is_known(void **state)
{
    (void)state;
    assert_true(pl_shape_compatible(&PL_SHAPE(-1, 3), &PL_SHAPE(2, -1)));
    assert_false(pl_shape_compatible(&PL_SHAPE(-1, 3), &PL_SHAPE(2, 4)));
    assert_false(pl_shape_compatible(&PL_SHAPE(3), &PL_SHAPE(1, 3)));
    assert_false(pl_shape_equal(&PL_SHAPE(-1, 3), &PL_SHAPE(2, 3)));
    assert_false(pl_shape_equal(&PL_SHAPE(3), &PL_SHAPE(3, 3)));
    assert_true(pl_shape_equal(&PL_SHAPE(-1, 3), &PL_SHAPE(-1, 3)));
}

static void merged_shapes_know_what_either_knew(void **state)
{
    (void)state;
    pl_error error = {0};
    pl_shape both = PL_SHAPE(9);
    assert_int_equal(pl_shape_merge(&PL_SHAPE(-1, 3, -1), &PL_SHAPE(2, -1, -1), &both, NULL), 0);
    assert_true(pl_shape_equal(&both, &PL_SHAPE(2, 3, -1)));
    assert_int_equal(pl_shape_merge(&both, &PL_SHAPE(2, 4, 5), &both, &error), -EINVAL);
    assert_string_equal(error.message, "shapes [2,3,?] and [2,4,5] differ: axis 1 is 3 and 4");
    assert_int_equal(pl_shape_merge(&both, &PL_SHAPE(2), &both, &error), -EINVAL);
    assert_string_equal(error.message, "shapes [2,3,?] and [2] differ: rank 3 and 1");
    assert_true(pl_shape_equal(&both, &PL_SHAPE(2, 3, -1)));
}

static void assert_broadcast(pl_shape a, pl_shape b, pl_shape wanted)
{
    pl_shape both;
    pl_error error = {0};
    for (int turn = 0; turn < 2; turn++) {
        if (pl_shape_broadcast(turn ? &b : &a, turn ? &a : &b, &both, &error) < 0)
            fail_msg("%s", error.message);
        if (!pl_shape_equal(&both, &wanted))
            fail_msg("%s and %s became %s", PL_SHAPE_TEXT(&a), PL_SHAPE_TEXT(&b),
                     PL_SHAPE_TEXT(&both));
    }
}

static void shapes_broadcast_as_in_numpy(void **state)
{
    (void)state;
    assert_broadcast(PL_SHAPE(), PL_SHAPE(), PL_SHAPE());
    assert_broadcast(PL_SHAPE(), PL_SHAPE(2, 3), PL_SHAPE(2, 3));
    assert_broadcast(PL_SHAPE(3), PL_SHAPE(2, 3), PL_SHAPE(2, 3));
    assert_broadcast(PL_SHAPE(2, 1), PL_SHAPE(1, 3), PL_SHAPE(2, 3));
    assert_broadcast(PL_SHAPE(1), PL_SHAPE(0), PL_SHAPE(0));
    assert_broadcast(PL_SHAPE(8, 1, 6, 1), PL_SHAPE(7, 1, 5), PL_SHAPE(8, 7, 6, 5));
}

static void an_unknown_dimension_broadcasts_to_what_it_must_be(void **state)
{
    (void)state;
    assert_broadcast(PL_SHAPE(-1), PL_SHAPE(1), PL_SHAPE(-1));
    assert_broadcast(PL_SHAPE(-1), PL_SHAPE(5), PL_SHAPE(5));
    assert_broadcast(PL_SHAPE(-1), PL_SHAPE(0), PL_SHAPE(0));
    assert_broadcast(PL_SHAPE(-1), PL_SHAPE(-1), PL_SHAPE(-1));
    assert_broadcast(PL_SHAPE(-1), PL_SHAPE(2, 1), PL_SHAPE(2, -1));
}

static void shapes_that_do_not_broadcast_are_named_with_axis_and_sizes(void **state)
{
    (void)state;
    pl_error error = {0};
    pl_shape both = PL_SHAPE(9);
    assert_int_equal(pl_shape_broadcast(&PL_SHAPE(10, 10), &PL_SHAPE(20, 20), &both, &error),
                     -EINVAL);
    assert_string_equal(error.message,
                        "shapes [10,10] and [20,20] do not broadcast: axis 0 is 10 and 20");
    assert_int_equal(pl_shape_broadcast(&PL_SHAPE(3, 4), &PL_SHAPE(2, 3, 5), &both, &error),
                     -EINVAL);
    assert_string_equal(error.message,
                        "shapes [3,4] and [2,3,5] do not broadcast: axis 2 is 4 and 5");
    assert_int_equal(pl_shape_broadcast(&PL_SHAPE(0), &PL_SHAPE(2), &both, NULL), -EINVAL);
    assert_true(pl_shape_equal(&both, &PL_SHAPE(9)));
}

static void strides_are_those_of_numpy(void **state)
{
    (void)state;
    int64_t strides[PL_RANK_MAX];
    pl_shape_strides(&PL_SHAPE(2, 3, 4), 8, strides);
    assert_memory_equal(strides, ((int64_t[]){96, 32, 8}), 24);
    pl_shape_strides_fortran(&PL_SHAPE(2, 3, 4), 8, strides);
    assert_memory_equal(strides, ((int64_t[]){8, 16, 48}), 24);
    pl_shape_strides(&PL_SHAPE(2, 0, 4), 4, strides);
    assert_memory_equal(strides, ((int64_t[]){16, 16, 4}), 24);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_read_as_people_write_them),
        cmocka_unit_test(what_cannot_be_a_shape_is_refused),
        cmocka_unit_test(elements_and_bytes_are_counted),
        cmocka_unit_test(a_size_that_overflows_is_refused_also_beside_a_zero),
        cmocka_unit_test(an_unknown_size_is_not_counted),
        cmocka_unit_test(compatible_shapes_are_equal_as_far_as_is_known),
        cmocka_unit_test(merged_shapes_know_what_either_knew),
        cmocka_unit_test(shapes_broadcast_as_in_numpy),
        cmocka_unit_test(an_unknown_dimension_broadcasts_to_what_it_must_be),
        cmocka_unit_test(shapes_that_do_not_broadcast_are_named_with_axis_and_sizes),
        cmocka_unit_test(strides_are_those_of_numpy),
    };
    return cmocka_run_group_tests_name("shape", tests, NULL, NULL);
}
