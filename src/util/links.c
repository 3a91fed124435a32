/* SPDX-License-Identifier: Apache-2.0 */
/* See links.h. */
#include "util/links.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "util/fork.h"

struct pl_links {
    pthread_mutex_t mu;
    pl_link *first; /* mu */
    /* The process that lock and list belong to, and the one that is renewing them. */
    _Atomic uint32_t generation, renewing;
};

pl_links *pl_links_new(void)
{
    pl_links *links = pl_fork_watch() < 0 ? NULL : calloc(1, sizeof *links);
    if (!links)
        return NULL;
    pthread_mutex_init(&links->mu, NULL);
    links->generation = links->renewing = pl_fork_generation();
    return links;
}

/* In a forked child, the first thread to come makes a new lock: the copied one may stay locked
 * forever. */
static void renew(pl_links *links, uint32_t generation)
{
    uint32_t claimed = atomic_load(&links->renewing);
    if (atomic_load(&links->generation) == generation)
        return;
    if (claimed == generation ||
        !atomic_compare_exchange_strong(&links->renewing, &claimed, generation)) {
        while (atomic_load(&links->generation) != generation)
            sched_yield();
        return;
    }
    pthread_mutex_init(&links->mu, NULL);
    links->first = NULL;
    atomic_store(&links->generation, generation);
}

pl_link *pl_links_lock(pl_links *links)
{
    renew(links, pl_fork_generation());
    pthread_mutex_lock(&links->mu);
    return links->first;
}

void pl_links_unlock(pl_links *links)
{
    pthread_mutex_unlock(&links->mu);
}

void pl_links_add(pl_links *links, pl_link *link)
{
    link->before = NULL;
    link->after = pl_links_lock(links);
    link->generation = pl_fork_generation();
    link->is_in = true;
    if (link->after)
        link->after->before = link;
    links->first = link;
    pl_links_unlock(links);
}

void pl_links_remove(pl_links *links, pl_link *link)
{
    pl_links_lock(links);
    if (link->is_in && link->generation == pl_fork_generation()) {
        if (link->before)
            link->before->after = link->after;
        else
            links->first = link->after;
        if (link->after)
            link->after->before = link->before;
    }
    link->is_in = false;
    pl_links_unlock(links);
}

void pl_links_free(pl_links *links)
{
    if (!links)
        return;
    for (;;) {
        pl_link *link = pl_links_lock(links);
        if (link && link->ends)
            link->ends->hold(link);
        pl_links_unlock(links);
        if (!link || !link->ends)
            break;
        link->ends->end(link);
    }
    pthread_mutex_destroy(&links->mu);
    free(links);
}
