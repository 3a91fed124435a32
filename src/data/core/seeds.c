/* SPDX-License-Identifier: Apache-2.0 */
#include "data/core/seeds.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

struct pl_seeds {
    struct pl_seeds *next;
    pl_dataset *dataset;
    pl_seed seed;
};

/* Call with the pass's mu held. */
static struct pl_seeds *find(pl_pass *pass, const pl_dataset *dataset)
{
    for (struct pl_seeds *at = pass->seeds; at; at = at->next)
        if (at->dataset == dataset)
            return at;
    return NULL;
}

/* Adds a seed for a dataset that the pass begins with. Returns NULL if out of memory. */
static struct pl_seeds *add(pl_pass *pass, pl_dataset *dataset, uint64_t seed)
{
    struct pl_seeds *taken = malloc(sizeof *taken);
    if (!taken)
        return NULL;
    uint64_t number = atomic_fetch_add_explicit(&dataset->n_passes, 1, memory_order_relaxed);
    *taken = (struct pl_seeds){pass->seeds, pl_dataset_ref(dataset), {seed, number}};
    pass->seeds = taken;
    return taken;
}

int pl_seed_take(pl_pass *pass, pl_dataset *dataset, uint64_t seed, pl_seed *ret_seed,
                 pl_error *reterr)
{
    pthread_mutex_lock(&pass->mu);
    const struct pl_seeds *taken = find(pass, dataset);
    bool known = taken || pass->opened;
    if (!known)
        taken = add(pass, dataset, seed);
    *ret_seed = taken ? taken->seed : (pl_seed){seed, pass->number};
    pthread_mutex_unlock(&pass->mu);
    return taken || known ? 0 : pl_error_set(reterr, -ENOMEM, "out of memory for a seed");
}

void pl_seed_set(pl_pass *pass, const pl_dataset *dataset, pl_seed seed)
{
    pthread_mutex_lock(&pass->mu);
    struct pl_seeds *taken = find(pass, dataset);
    if (taken)
        taken->seed = seed;
    pthread_mutex_unlock(&pass->mu);
}

uint64_t pl_seed_pass_number(pl_pass *pass)
{
    pthread_mutex_lock(&pass->mu);
    uint64_t number = pass->number;
    pthread_mutex_unlock(&pass->mu);
    return number;
}

void pl_seed_set_pass_number(pl_pass *pass, uint64_t number)
{
    pthread_mutex_lock(&pass->mu);
    pass->number = number;
    pthread_mutex_unlock(&pass->mu);
}

void pl_seeds_free(struct pl_seeds *seeds)
{
    while (seeds) {
        struct pl_seeds *next = seeds->next;
        pl_dataset_unref(seeds->dataset);
        free(seeds);
        seeds = next;
    }
}

int pl_seed_random(uint64_t *ret_seed, pl_error *reterr)
{
    uint64_t bits;
    if (getrandom(&bits, sizeof bits, 0) != (ssize_t)sizeof bits)
        return pl_error_set(reterr, -errno, "no random seed from the system");
    *ret_seed = bits;
    return 0;
}
