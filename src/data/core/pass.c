/* SPDX-License-Identifier: Apache-2.0 */
#include "data/core/pass.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>

#include "data/core/stage.h"
#include "sys/cpu.h"

static int n_processors(void)
{
    pl_cpu cpu;
    return pl_cpu_read("", &cpu) < 0 ? 1 : (int)cpu.n_usable;
}

/* Gathers the options of a pass: each from the outermost dataset that sets it, else 0. */
static void gather_options(const pl_dataset *dataset, pl_dataset_options *ret_options)
{
    const pl_dataset_options *own = dataset->options;
    if (own) {
        if (ret_options->watchdog_ms == 0)
            ret_options->watchdog_ms = own->watchdog_ms;
        if (ret_options->budget_bytes == 0)
            ret_options->budget_bytes = own->budget_bytes;
        if (ret_options->n_threads == 0)
            ret_options->n_threads = own->n_threads;
        ret_options->nondeterministic |= own->nondeterministic;
    }
    for (int i = 0; i < dataset->n_inputs; i++)
        gather_options(dataset->inputs[i], ret_options);
}

int pl_pass_init(pl_pass *pass, pl_dataset *dataset, pl_error *reterr)
{
    pl_dataset_options options = {0};
    gather_options(dataset, &options);
    int n_threads = options.n_threads > 0 ? options.n_threads : n_processors();
    *pass = (pl_pass){
        .runtime = dataset->runtime,
        .nondeterministic = options.nondeterministic,
        .watchdog_ns = options.watchdog_ms * PL_NS_PER_MS,
        .number = atomic_fetch_add_explicit(&dataset->n_iterators, 1, memory_order_relaxed),
        .generation = pl_fork_generation(),
    };
    int r = pl_worker_pool_new(n_threads, &pass->pool, reterr);
    if (r < 0)
        return r;
    pl_prefetch_budget_init(&pass->prefetch_budget, dataset->runtime->memory, options.budget_bytes);
    pthread_mutex_init(&pass->mu, NULL);
    return 0;
}

void pl_pass_done(pl_pass *pass)
{
    if (!pass->pool)
        return;
    pl_worker_pool_free(PL_TAKE(pass->pool));
    pl_seeds_free(PL_TAKE(pass->seeds));
    pl_error_done(&pass->failed);
    pthread_mutex_destroy(&pass->mu);
}

int pl_pass_over(pl_pass *pass, pl_error *reterr)
{
    pl_error_done(reterr); /* freeing a payload may take other locks, so not under ours */
    pthread_mutex_lock(&pass->mu);
    if (pass->failed.code != 0)
        pl_error_copy(reterr, &pass->failed);
    else
        pl_error_set(reterr, -ECANCELED, "the pass was cancelled");
    pthread_mutex_unlock(&pass->mu);
    return PL_REPORTED;
}

int pl_pass_end(pl_pass *pass, const pl_error *error)
{
    pthread_mutex_lock(&pass->mu);
    if (pass->failed.code == 0)
        pl_error_copy(&pass->failed, error);
    pthread_mutex_unlock(&pass->mu);
    __atomic_store_n(&pass->over, 1, __ATOMIC_RELEASE);
    return PL_REPORTED;
}

int pl_pass_fail(pl_pass *pass, int code, pl_error *reterr, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    pl_error_vset(reterr, code, format, arguments);
    va_end(arguments);
    return pl_pass_end(pass, reterr);
}
