/* SPDX-License-Identifier: Apache-2.0 */
/* An iterator from inside: a pass, its stages, and what its consumer has got. Belongs to the
 * consumer, but for pass and stages, which whoever pulls has as well: see watchdog_thread.h. */
#ifndef PL_DATA_CORE_ITERATOR_H
#define PL_DATA_CORE_ITERATOR_H

#include "data/ahead/watchdog_thread.h"
#include "data/core/stage.h"

struct pl_iterator {
    pl_pass pass;
    pl_dataset *dataset;
    pl_stage *first;
    pl_watchdog_thread *watchdog; /* NULL: the consumer pulls himself */
    pl_bad_count count;
    pl_bad *bads;                /* the first of them */
    uint64_t begun_ns, ended_ns; /* the first call of next(), and the one that met the end; or 0 */
    pl_sampled_clock clock;
    uint64_t inside_ns; /* in next() */
};

/* For those inside who want elements as they are, with what they were read from and what they
 * count. As pl_iterator_next(), with an error that is never NULL. */
PL_MUST_CHECK int pl_iterator_pull(pl_iterator *iterator, pl_element *ret_element,
                                   pl_error *reterr);

#endif
