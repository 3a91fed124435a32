/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of elements that lie anywhere: the same in memory and in the spill file, whatever fails on
 * the way leaves nothing, and a process that has passed the line can still give an array away. */
#include "lives.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/elementwise/cast.h"
#include "tensor/dtype.h"
#include "tensor/runtime.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

/* In f64 6.9 MiB, in f32 3.4: more than the cap of one runtime, and several windows. */
enum { PLANES = 3, ROWS = 500, COLUMNS = 601, N = PLANES * ROWS * COLUMNS };
#define CAP_BYTES  (2 * PL_MIB)
#define WIDE_BYTES (64 * PL_MIB)

static double numbers[N + 1];
static char folder[64];
static pl_runtime *runtime;
static pl_error error;

static int begin_with(uint64_t cap_bytes)
{
    strcpy(folder, "/tmp/plimsoll-elements-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    for (int i = 0; i < N + 1; i++)
        numbers[i] = (double)(i * 37 % 1001) / 7;
    fault_io_reset();
    const pl_runtime_options options = {
        .cap_bytes = cap_bytes, .spill_directory = folder, .n_threads = 2};
    return pl_runtime_new(&options, &runtime, &error);
}

static int begin(void **state)
{
    (void)state;
    return begin_with(CAP_BYTES);
}

static int begin_wide(void **state)
{
    (void)state;
    return begin_with(WIDE_BYTES);
}

static pl_pool_state pool_state(void)
{
    pl_pool_state now;
    pl_pool_state_read(runtime->pool, &now);
    return now;
}

static int finish(void **state)
{
    (void)state;
    fault_io_reset();
    assert_int_equal(pl_runtime_claimed_bytes(runtime), 0);
    assert_int_equal(pool_state().spilled_bytes, 0);
    assert_int_equal(pl_pool_check(runtime->pool, &error), 0);
    pl_runtime_unref(PL_TAKE(runtime));
    return rmdir(folder);
}

static const pl_elements all = {.dtype = PL_F64, .shape = {3, {PLANES, ROWS, COLUMNS}}};

static pl_elements in_order(void)
{
    pl_elements elements = all;
    elements.data = numbers;
    return elements;
}

static pl_tensor *copy_of(const pl_elements *elements, pl_dtype dtype)
{
    pl_tensor *tensor;
    if (pl_tensor_new_from(runtime, dtype, &elements->shape, elements, NULL, "copy", &tensor,
                           &error) < 0)
        fail_msg("%s", error.message);
    return tensor;
}

static enum pl_where where_is(pl_tensor *tensor)
{
    return pl_buffer_look(tensor->buffer).where;
}

/* One by one, by hand. */
static void assert_copied(pl_tensor *tensor, const pl_elements *elements)
{
    size_t item_bytes = pl_dtype_info_of(tensor->dtype)->item_bytes;
    const pl_shape *shape = &elements->shape;
    const int64_t begin_at[PL_RANK_MAX] = {0};
    char *found = malloc((size_t)N * item_bytes), expected[8];
    int64_t dense[PL_RANK_MAX], i = 0;
    pl_cast_kernel cast = pl_cast_find(elements->dtype, tensor->dtype);
    pl_shape_strides(shape, 8, dense);
    const int64_t *strides = elements->strides ? elements->strides : dense;
    assert_int_equal(pl_tensor_read(tensor, begin_at, tensor->shape.dims, found, &error), 0);
    for (int64_t a = 0; a < shape->dims[0]; a++)
        for (int64_t b = 0; b < shape->dims[1]; b++)
            for (int64_t c = 0; c < shape->dims[2]; c++, i++) {
                double from;
                memcpy(&from,
                       (const char *)elements->data + a * strides[0] + b * strides[1] +
                           c * strides[2],
                       sizeof from);
                cast(expected, &from, 1);
                if (memcmp(expected, found + (size_t)i * item_bytes, item_bytes) != 0)
                    fail_msg("element %d is another", (int)i);
            }
    free(found);
}

/* In order, misaligned, backwards, every second, axes in other orders, one repeated. */
static void check_layouts(pl_dtype dtype, enum pl_where where)
{
    const int64_t s = 8, r = COLUMNS * s, p = ROWS * r;
    const struct {
        int64_t dims[3], strides[3], first;
    } layouts[] = {
        {{PLANES, ROWS, COLUMNS}, {p, r, s}, 0},
        {{PLANES, ROWS, COLUMNS}, {p, r, s}, 3},
        {{PLANES, ROWS, COLUMNS}, {-p, r, -s}, (PLANES - 1) * p + (COLUMNS - 1) * s},
        {{PLANES, ROWS, COLUMNS / 2}, {p, r, 2 * s}, s},
        {{COLUMNS, PLANES, ROWS}, {s, p, r}, 0},
        {{COLUMNS, ROWS, PLANES}, {s, r, p}, 0},
        {{PLANES, COLUMNS, ROWS}, {0, s, r}, p},
    };
    for (size_t i = 0; i < PL_COUNT_OF(layouts); i++) {
        pl_elements elements = {.dtype = PL_F64,
                                .shape = {.rank = 3},
                                .strides = layouts[i].strides,
                                .data = (const char *)numbers + layouts[i].first};
        memcpy(elements.shape.dims, layouts[i].dims, sizeof layouts[i].dims);
        pl_tensor *tensor = copy_of(&elements, dtype);
        if (pl_tensor_bytes(tensor) > CAP_BYTES)
            assert_int_equal(where_is(tensor), where);
        assert_copied(tensor, &elements);
        pl_tensor_unref(tensor);
    }
}

static void every_layout_is_copied_in_memory(void **state)
{
    (void)state;
    check_layouts(PL_F64, PL_RESIDENT);
    check_layouts(PL_F32, PL_RESIDENT);
    check_layouts(PL_I16, PL_RESIDENT);
    assert_int_equal(fault_io.n_writes, 0);
}

static void every_layout_is_copied_to_the_spill_file(void **state)
{
    (void)state;
    check_layouts(PL_F64, PL_SPILLED);
    check_layouts(PL_F32, PL_SPILLED);
    check_layouts(PL_BF16, PL_SPILLED);
    assert_true(fault_io.n_writes > 0);
    assert_true(pl_runtime_peak_bytes(runtime) <= CAP_BYTES);
}

static void a_spilled_copy_claims_a_window_and_comes_when_there_is_room(void **state)
{
    (void)state;
    const pl_shape half = PL_SHAPE(N / 2);
    const pl_elements elements = {.dtype = PL_F64, .shape = half, .data = numbers};
    pl_tensor *pinned, *copy;
    const void *data;
    int64_t strides[PL_RANK_MAX];
    pinned = copy_of(
        &(pl_elements){.dtype = PL_F64, .shape = PL_SHAPE(PL_MIB / 8), .data = numbers}, PL_F64);
    assert_int_equal(pl_tensor_pin(pinned, &data, strides, &error), 0);
    uint64_t before = pl_runtime_claimed_bytes(runtime);
    copy = copy_of(&elements, PL_F32); /* 1.7 MiB, and 1 is left */
    assert_int_equal(where_is(copy), PL_SPILLED);
    assert_int_equal(pl_runtime_claimed_bytes(runtime), before);
    assert_true(pl_runtime_peak_bytes(runtime) <= before + PL_MEMORY_WINDOW_BYTES);
    pl_tensor_unpin(pinned);
    assert_int_equal(pl_tensor_pin(copy, &data, strides, &error), 0);
    assert_int_equal(where_is(copy), PL_RESIDENT);
    for (int i = 0; i < N / 2; i++)
        assert_true(((const float *)data)[i] == (float)numbers[i]);
    pl_tensor_unpin(copy);
    pl_tensor_unref(copy);
    pl_tensor_unref(pinned);
}

static void nothing_is_evicted_for_what_has_no_room_even_so(void **state)
{
    (void)state;
    const pl_elements elements = in_order(),
                      some = {.dtype = PL_F64, .shape = PL_SHAPE(PL_MIB / 8), .data = numbers};
    pl_tensor *idle = copy_of(&some, PL_F64), *copy = copy_of(&elements, PL_F32);
    assert_int_equal(where_is(copy), PL_SPILLED);
    assert_int_equal(where_is(idle), PL_RESIDENT);
    pl_tensor_unref(copy);
    pl_tensor_unref(idle);
}

static void another_shape_has_as_many_elements(void **state)
{
    (void)state;
    const int64_t strides[] = {8, COLUMNS * 8};
    const pl_elements turned = {
        .dtype = PL_F64, .shape = PL_SHAPE(COLUMNS, ROWS), .strides = strides, .data = numbers};
    pl_tensor *tensor = NULL;
    const pl_shape flat = PL_SHAPE(COLUMNS * ROWS), more = PL_SHAPE(COLUMNS * ROWS + 1);
    assert_int_equal(
        pl_tensor_new_from(runtime, PL_F32, &flat, &turned, NULL, NULL, &tensor, &error), 0);
    float second;
    assert_int_equal(pl_tensor_read(tensor, (int64_t[]){1}, (int64_t[]){1}, &second, &error), 0);
    assert_true(second == (float)numbers[COLUMNS]);
    pl_tensor_unref(tensor);
    assert_int_equal(
        pl_tensor_new_from(runtime, PL_F32, &more, &turned, NULL, NULL, &tensor, &error), -EINVAL);
    assert_non_null(strstr(error.message, "they are 300500, and it has 300501"));
    assert_int_equal(
        pl_tensor_new_from(runtime, PL_STRING, &flat, &turned, NULL, NULL, &tensor, &error),
        -EINVAL);
    const pl_elements none = {.dtype = PL_F64, .shape = PL_SHAPE(0, 5)};
    assert_int_equal(
        pl_tensor_new_from(runtime, PL_F32, &none.shape, &none, NULL, NULL, &tensor, &error), 0);
    assert_int_equal(pl_tensor_bytes(tensor), 0);
    pl_tensor_unref(tensor);
}

static int copy_with(const pl_copy_options *options)
{
    const pl_elements elements = in_order();
    pl_tensor *tensor = NULL;
    int r = pl_tensor_new_from(runtime, PL_F32, &all.shape, &elements, options, "copy", &tensor,
                               &error);
    if (r < 0)
        assert_null(tensor);
    pl_tensor_unref(tensor);
    return r;
}

static void who_cannot_wait_for_a_disk_is_refused(void **state)
{
    (void)state;
    assert_int_equal(copy_with(&(pl_copy_options){.never_spilled = true}), PL_EBUDGET);
    assert_int_equal(fault_io.n_reserves + fault_io.n_writes, 0);
}

static void what_is_cancelled_leaves_nothing(void **state)
{
    (void)state;
    assert_int_equal(copy_with(&(pl_copy_options){.cancel = &(int){1}}), -ECANCELED);
    assert_string_equal(error.message, "making 'copy' was cancelled");
}

/* Each write fails in turn, as a disk that goes bad half way. */
static void a_disk_that_fails_is_told_and_leaves_nothing(void **state)
{
    (void)state;
    int n_failed = 0;
    for (int n_before = 0;; n_before++, n_failed++) {
        fault_io_reset();
        fault_io.write_error = EIO;
        fault_io.n_before = n_before;
        int r = copy_with(NULL);
        if (r == 0)
            break;
        assert_int_equal(r, -EIO);
        assert_non_null(strstr(error.message, "of the spill file in '"));
        assert_int_equal(pl_runtime_claimed_bytes(runtime), 0);
        assert_int_equal(pool_state().spilled_bytes, 0);
    }
    assert_true(n_failed >= 7); /* as many windows as there are */
}

static void a_disk_without_room_is_a_budget_without(void **state)
{
    (void)state;
    fault_io.reserve_error = ENOSPC;
    assert_int_equal(copy_with(NULL), PL_EBUDGET);
    assert_non_null(
        strstr(error.message, "no room for 3.4 MiB for 'copy': 2.0 MiB of the 2.0 MiB"));
    assert_non_null(strstr(error.message, "cannot be spilled, because cannot spill 3.4 MiB to '"));
    assert_int_equal(pl_runtime_claimed_bytes(runtime), 0);
}

static int live(uint64_t *ret_sum, pl_error *reterr)
{
    pl_runtime *own;
    pl_tensor *tensor = NULL;
    const pl_elements elements = in_order();
    const pl_runtime_options options = {
        .cap_bytes = CAP_BYTES, .spill_directory = folder, .n_threads = 1};
    int r = pl_runtime_new(&options, &own, reterr);
    if (r < 0)
        return r;
    r = pl_tensor_new_from(own, PL_F32, &all.shape, &elements, NULL, "copy", &tensor, reterr);
    float last = 0;
    if (r == 0)
        r = pl_tensor_read(tensor, (int64_t[]){PLANES - 1, ROWS - 1, COLUMNS - 1},
                           (int64_t[]){1, 1, 1}, &last, reterr);
    *ret_sum = (uint64_t)(last * 1000);
    pl_tensor_unref(tensor);
    pl_runtime_unref(own);
    return r;
}

static void every_allocation_fails_once(void **state)
{
    (void)state;
    const whole_life life = {.live = live, .n_errors_least = 5};
    live_through_failures(&life);
}

/* ---- a process that has passed the line ---- */

/* What a program has on its own, touched. */
static void *use(size_t n)
{
    void *data = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(data != MAP_FAILED);
    memset(data, 1, n);
    return data;
}

/* A budget of 256 MiB has 32 of reserve. */
#define LINE_BYTES (256 * PL_MIB)

static int begin_at_line(size_t own_bytes, void **ret_own)
{
    *ret_own = use(own_bytes);
    pl_runtime_unref(PL_TAKE(runtime));
    const pl_runtime_options options = {
        .budget_text = "256M", .spill_directory = folder, .n_threads = 1};
    return pl_runtime_new(&options, &runtime, &error);
}

static void skip_with_a_sanitizer(void)
{
    if (!FAULT_ALLOC_WORKS) {
        print_message("a sanitizer's own memory would be on the line as well\n");
        skip();
    }
}

static void past_the_line_an_array_can_be_given_away(void **state)
{
    (void)state;
    skip_with_a_sanitizer();
    void *own;
    assert_int_equal(begin_at_line(LINE_BYTES, &own), 0);
    assert_int_equal(pl_runtime_left_bytes(runtime), 0);
    const pl_elements elements = {.dtype = PL_F64, .shape = PL_SHAPE(PL_MIB), .data = own};
    pl_tensor *tensor = copy_of(&elements, PL_F32);
    assert_int_equal(where_is(tensor), PL_SPILLED);
    assert_int_equal(pl_runtime_claimed_bytes(runtime), 0);
    assert_int_equal(pl_runtime_peak_bytes(runtime), PL_MEMORY_WINDOW_BYTES);
    munmap(own, LINE_BYTES);
    const void *data;
    int64_t strides[PL_RANK_MAX];
    assert_int_equal(pl_tensor_pin(tensor, &data, strides, &error), 0);
    pl_tensor_unpin(tensor);
    pl_tensor_unref(tensor);
    assert_int_equal(pl_runtime_left_bytes(runtime) > 200 * PL_MIB, 1);
}

static void past_the_reserve_nothing_can(void **state)
{
    (void)state;
    skip_with_a_sanitizer();
    void *own;
    assert_int_equal(begin_at_line(LINE_BYTES, &own), 0);
    void *more = use(100 * PL_MIB);
    const pl_elements elements = {.dtype = PL_F64, .shape = PL_SHAPE(PL_MIB), .data = own};
    pl_tensor *tensor = NULL;
    assert_int_equal(pl_tensor_new_from(runtime, PL_F32, &elements.shape, &elements, NULL, "copy",
                                        &tensor, &error),
                     PL_EBUDGET);
    assert_non_null(strstr(error.message, "no room for 4.0 MiB for 'copy': 0 B of the 256.0 MiB"));
    assert_non_null(strstr(error.message, "because no room for 512.0 KiB for 'copy'"));
    munmap(more, 100 * PL_MIB);
    munmap(own, LINE_BYTES);
}

#define CASE(name)      cmocka_unit_test_setup_teardown(name, begin, finish)
#define WIDE_CASE(name) cmocka_unit_test_setup_teardown(name, begin_wide, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WIDE_CASE(every_layout_is_copied_in_memory),
        CASE(every_layout_is_copied_to_the_spill_file),
        CASE(a_spilled_copy_claims_a_window_and_comes_when_there_is_room),
        CASE(nothing_is_evicted_for_what_has_no_room_even_so),
        WIDE_CASE(another_shape_has_as_many_elements),
        CASE(who_cannot_wait_for_a_disk_is_refused),
        CASE(what_is_cancelled_leaves_nothing),
        WIDE_CASE(what_is_cancelled_leaves_nothing),
        CASE(a_disk_that_fails_is_told_and_leaves_nothing),
        CASE(a_disk_without_room_is_a_budget_without),
        CASE(every_allocation_fails_once),
        CASE(past_the_line_an_array_can_be_given_away),
        CASE(past_the_reserve_nothing_can),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
