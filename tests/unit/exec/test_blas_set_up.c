/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernels OpenBLAS is made to use, and what becomes of its threads: exec/matmul/blas_set_up.h. */
#include <cblas.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../emulated.h"
#include "exec/matmul/blas.h"
#include "exec/matmul/blas_set_up.h"
#include "kernels/isa.h"
#include "sys/proc.h"
#include "util/blas_kernels.h"

extern void gotoblas_dynamic_init(void) __attribute__((weak));
extern void gotoblas_dynamic_quit(void) __attribute__((weak));

static void only_old_kernels_are_replaced(void **state)
{
    (void)state;
    assert_string_equal(pl_blas_better_kernels("Prescott", true, true), "SkylakeX");
    assert_string_equal(pl_blas_better_kernels("Prescott", true, false), "Haswell");
    assert_string_equal(pl_blas_better_kernels("Sandybridge", true, false), "Haswell");
    assert_null(pl_blas_better_kernels("Prescott", false, false));
    assert_null(pl_blas_better_kernels("Zen", true, true));
    assert_null(pl_blas_better_kernels("Haswell", true, true));
    assert_null(pl_blas_better_kernels("Cooperlake", true, true));
    assert_null(pl_blas_better_kernels("a name of years to come", true, true));
}

/* As OpenBLAS does it for a processor that it does not know. */
static void choose_old_kernels(void)
{
    if (!gotoblas_dynamic_init || !gotoblas_dynamic_quit || pl_isa_best() == PL_ISA_PLAIN) {
        print_message("there is nothing to choose from\n");
        skip();
    }
    assert_int_equal(setenv("OPENBLAS_CORETYPE", "Prescott", 1), 0);
    gotoblas_dynamic_quit();
    gotoblas_dynamic_init();
    assert_string_equal(pl_blas_kernels(), "Prescott");
}

static uint64_t n_threads(void)
{
    pl_proc_stat stat;
    assert_int_equal(pl_proc_stat_read(getpid(), &stat), 0);
    return stat.n_threads;
}

static void skip_with_other_threads(void)
{
    SKIP_UNDER_QEMU("its /proc/self/stat has 0 threads");
    if (n_threads() > (uint64_t)openblas_get_num_threads()) {
        print_message("a sanitizer has a thread of its own\n");
        skip();
    }
}

static void check_product(void)
{
    enum { N = 150 }; /* more than a block each way, on any processor */
    static float a[N][N], b[N][N], c[N][N];
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            a[i][j] = (float)((i + 2 * j) % 7);
            b[i][j] = (float)((3 * i + j) % 5);
        }
    const pl_gemm gemm = {.dtype = PL_F32,
                          .m = N,
                          .n = N,
                          .k = N,
                          .a = a,
                          .b = b,
                          .c = c,
                          .a_row_bytes = sizeof a[0],
                          .b_row_bytes = sizeof b[0],
                          .c_row_bytes = sizeof c[0]};
    pl_blas_gemm(&gemm);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            float sum = 0; /* of small integers: exact in any order */
            for (int p = 0; p < N; p++)
                sum += a[i][p] * b[p][j];
            assert_true(c[i][j] == sum);
        }
}

static void a_processor_gets_the_kernels_it_has_registers_for(void **state)
{
    (void)state;
    skip_with_other_threads();
    choose_old_kernels();
    check_product();
    unsetenv("OPENBLAS_CORETYPE");
    pl_blas_set_up();
    const char *wanted = pl_isa_best() == PL_ISA_AVX512 ? "SkylakeX" : "Haswell";
    assert_string_equal(pl_blas_kernels(), wanted);
    assert_string_equal(getenv("OPENBLAS_CORETYPE"), wanted); /* for processes that follow */
    check_product();
}

/* They are there when a product wants them, and not before. */
static void workers_end_and_begin_again(void **state)
{
    (void)state;
    skip_with_other_threads();
    pl_blas_use use;
    assert_int_equal(pl_blas_use_begin(&use, NULL, 2, 0, NULL), 0);
    check_product();
    pl_blas_use_end(&use);
    if (n_threads() == 1) {
        print_message("on one processor OpenBLAS has no threads\n");
        skip();
    }
    pl_blas_set_up();
    assert_int_equal(n_threads(), 1);
    assert_int_equal(pl_blas_use_begin(&use, NULL, 2, 0, NULL), 0);
    check_product();
    pl_blas_use_end(&use);
    assert_int_equal(n_threads(), 2);
}

static void what_the_user_chose_stays(void **state)
{
    (void)state;
    choose_old_kernels();
    pl_blas_set_up();
    assert_string_equal(pl_blas_kernels(), "Prescott");
}

static void *wait_for_the_end(void *end)
{
    pthread_mutex_lock(end);
    pthread_mutex_unlock(end);
    return NULL;
}

static void other_threads_may_be_inside(void **state)
{
    (void)state;
    choose_old_kernels();
    unsetenv("OPENBLAS_CORETYPE");
    pthread_mutex_t end = PTHREAD_MUTEX_INITIALIZER;
    pthread_t thread;
    pthread_mutex_lock(&end);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_the_end, &end), 0);
    pl_blas_set_up();
    assert_string_equal(pl_blas_kernels(), "Prescott");
    assert_null(getenv("OPENBLAS_CORETYPE"));
    pthread_mutex_unlock(&end);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_old_kernels_are_replaced),
        cmocka_unit_test(a_processor_gets_the_kernels_it_has_registers_for),
        cmocka_unit_test(workers_end_and_begin_again),
        cmocka_unit_test(what_the_user_chose_stays),
        cmocka_unit_test(other_threads_may_be_inside),
    };
    return cmocka_run_group_tests_name("blas_set_up", tests, NULL, NULL);
}
