/* SPDX-License-Identifier: Apache-2.0 */
/* Stages that store their input's elements: the first pass writes them, later ones read them and do
 * not even open the input.
 *   medium   where they are stored: memory, a file, a folder
 *   shelf    a medium's reader or writer within a pass
 *
 * A pass decides at its first next(). It reads a complete copy of this dataset, if there is one;
 * else it writes one, unless another pass is writing: then it passes its input through. A copy is
 * kept only if its pass reached the end and reported no bad element: errors are not stored, nor is
 * a copy that lacks the bad element. If writing fails, the pass ends: a cache that silently
 * computes everything again would be worse.
 *
 * A restored pass that was writing passes its input through; only a copy in memory is in the
 * checkpoint, and is continued. */
#ifndef PL_DATA_PERSIST_PERSIST_STAGE_H
#define PL_DATA_PERSIST_PERSIST_STAGE_H

#include "data/core/stage.h"

typedef struct pl_medium {
    size_t shelf_bytes; /* all zero at first */
    /* To read: -ENOENT without a complete copy of this dataset; other errors end the pass. */
    int (*open)(pl_stage *stage, void *shelf, pl_error *reterr);
    /* After PL_EBUDGET the same element is next. */
    int (*read)(pl_stage *stage, void *shelf, pl_element *ret_element, pl_error *reterr);
    /* To write: -EBUSY if another pass writes. */
    int (*begin)(pl_stage *stage, void *shelf, pl_error *reterr);
    /* On PL_EBUDGET nothing changes. Strings are in memory. */
    int (*add)(pl_stage *stage, void *shelf, const pl_element *element, pl_error *reterr);
    int (*end)(pl_stage *stage, void *shelf, const pl_element *tail, pl_error *reterr);
    /* Counts behind the last element, once read() gave 0. */
    int (*tail)(pl_stage *stage, void *shelf, pl_element *ret_tail, pl_error *reterr);
    void (*close)(void *shelf); /* reader or writer; removes an incomplete copy */
    int (*save_read)(pl_stage *stage, void *shelf, pl_saver *saver, pl_error *reterr);
    int (*restore_read)(pl_stage *stage, void *shelf, pl_loader *loader, pl_error *reterr);
    int (*save_written)(pl_stage *stage, void *shelf, pl_saver *saver, pl_error *reterr);
    int (*restore_written)(pl_stage *stage, void *shelf, pl_loader *loader, pl_error *reterr);
} pl_medium;

/* The first member of a dataset of such a class. */
typedef struct pl_persist_dataset {
    pl_dataset base;
    const pl_medium *medium;
} pl_persist_dataset;

typedef struct pl_persist_stage {
    pl_stage base;
    int mode;
    void *shelf;
    pl_element waiting; /* not added yet: it did not fit */
} pl_persist_stage;

/* For the class's table: opens_inputs is true, and stage_bytes that of the struct above. */
int pl_persist_stage_open(pl_stage *stage, pl_error *reterr);
int pl_persist_stage_next(pl_stage *stage, pl_element *ret_element, pl_error *reterr);
void pl_persist_stage_close(pl_stage *stage);
int pl_persist_stage_save(pl_stage *stage, pl_saver *saver, pl_error *reterr);
int pl_persist_stage_restore(pl_stage *stage, pl_loader *loader, pl_error *reterr);

#endif
