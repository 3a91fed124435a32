/* SPDX-License-Identifier: Apache-2.0 */
/* An iterator from inside: a pass, its stages, and counts of what the consumer got. Belongs to the
 * consumer, except that under a watchdog another thread uses pass and stages: see
 * watchdog_thread.h. */
#ifndef PL_DATA_ITERATOR_ITERATOR_H
#define PL_DATA_ITERATOR_ITERATOR_H

#include "data/core/stage.h"
#include "data/iterator/watchdog_thread.h"

struct pl_iterator {
    pl_pass pass;
    pl_dataset *dataset;
    pl_stage *first;
    pl_watchdog_thread *watchdog; /* NULL: the consumer pulls itself */
    pl_bad_count count;
    pl_bad *bads; /* the first of them */
    uint64_t begun_ns,
        ended_ns; /* of the first call of next(), and of the one that met the end; or 0 */
    pl_sampled_clock clock;
    uint64_t inside_ns; /* in next() */
};

/* pl_iterator_next() that returns the element, with its origin and counts. `reterr` is not NULL. */
PL_MUST_CHECK int pl_iterator_pull(pl_iterator *iterator, pl_element *ret_element,
                                   pl_error *reterr);

/* Fails with PL_REPORTED in a forked child, which lacks its threads. */
PL_MUST_CHECK int pl_iterator_check_lost(const pl_iterator *iterator, pl_error *reterr);

#endif
