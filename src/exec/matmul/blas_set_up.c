/* SPDX-License-Identifier: Apache-2.0 */
/* See blas_set_up.h. */
#include "exec/matmul/blas_set_up.h"

#include <cblas.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/isa.h"
#include "sys/proc.h"
#include "util/blas_kernels.h"

/* OpenBLAS's own symbols, declared in none of its headers: one chooses kernels, and is exported by
 * all builds with kernels for several processors; the others end its workers, in builds that start
 * threads of their own. In other builds they are NULL. */
extern void gotoblas_dynamic_init(void) __attribute__((weak));
extern void gotoblas_dynamic_quit(void) __attribute__((weak));
extern int blas_thread_shutdown_(void) __attribute__((weak));
extern int blas_server_avail __attribute__((weak)); /* nonzero: there are workers */
extern int blas_num_threads __attribute__((weak));  /* including the caller */

const char *pl_blas_kernels(void)
{
    return openblas_get_corename();
}

/* The values of OpenBLAS 0.3.21's tables; AMD's and Intel's processors with AVX2 have the same. */
int64_t pl_blas_depth(pl_dtype dtype)
{
    if (strcmp(pl_blas_kernels(), "SkylakeX") == 0)
        return dtype == PL_F32 ? 448 : 384;
    return dtype == PL_F32 ? 320 : 256;
}

/* Returns whether no thread can be inside OpenBLAS, because there are only the caller and its
 * workers. */
static bool is_alone(void)
{
    if (!&blas_server_avail || !&blas_num_threads)
        return false;
    uint64_t n_workers = blas_server_avail ? (uint64_t)blas_num_threads - 1 : 0;
    pl_proc_stat stat;
    return pl_proc_stat_read(getpid(), &stat) == 0 && stat.n_threads <= 1 + n_workers;
}

static void choose_kernels(void)
{
    if (!gotoblas_dynamic_init || !gotoblas_dynamic_quit || getenv("OPENBLAS_CORETYPE"))
        return;
    pl_isa isa = pl_isa_best();
    const char *better =
        pl_blas_better_kernels(pl_blas_kernels(), isa >= PL_ISA_AVX2, isa >= PL_ISA_AVX512);
    if (!better || setenv("OPENBLAS_CORETYPE", better, 1) < 0)
        return;
    gotoblas_dynamic_quit();
    gotoblas_dynamic_init();
}

void pl_blas_set_up(void)
{
    if (!is_alone())
        return;
    choose_kernels();
    if (blas_thread_shutdown_)
        (void)blas_thread_shutdown_();
}
