/* SPDX-License-Identifier: Apache-2.0 */
/* Stages that keep their input's elements: the first pass writes them, the next ones read them, and
 * the input is not even opened then.
 *   medium   where they are kept: memory, a file, a folder
 *   shelf    what a medium has of a pass: its reader or its writer
 *
 * A pass decides when its first element is asked for. It reads if there is a complete copy of this
 * dataset; else it writes one, unless somebody else does so now: then it hands its input on. What a
 * pass writes counts only when that pass came to its end without a bad element that was told: an
 * error is not kept, and the copy that lacks the element is not either. Where writing fails, the
 * pass ends: what was said to be kept must not quietly be made anew each time.
 *
 * A checkpoint of a pass that writes goes on as one that hands on, but in memory, where what was
 * kept so far is in the checkpoint. */
#ifndef PL_DATA_PERSIST_PERSIST_STAGE_H
#define PL_DATA_PERSIST_PERSIST_STAGE_H

#include "data/core/stage.h"

typedef struct pl_medium {
    size_t shelf_bytes; /* all zero at first */
    /* To read: -ENOENT if there is nothing complete of this dataset; other errors end the pass. */
    int (*open)(pl_stage *stage, void *shelf, pl_error *reterr);
    /* After PL_EBUDGET the same element is next. */
    int (*read)(pl_stage *stage, void *shelf, pl_element *ret_element, pl_error *reterr);
    /* To write: -EBUSY if somebody else does. */
    int (*begin)(pl_stage *stage, void *shelf, pl_error *reterr);
    /* After PL_EBUDGET it is as if nobody had asked. Strings are in memory. */
    int (*add)(pl_stage *stage, void *shelf, const pl_element *element, pl_error *reterr);
    int (*end)(pl_stage *stage, void *shelf, const pl_element *tail, pl_error *reterr);
    /* What was counted behind the last element, once read() gave 0. */
    int (*tail)(pl_stage *stage, void *shelf, pl_element *ret_tail, pl_error *reterr);
    void (*close)(void *shelf); /* whatever it is; an incomplete copy is gone then */
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
    pl_element waiting; /* was not added yet: there was no room */
} pl_persist_stage;

/* For the class's table: opens_inputs is true, and stage_bytes that of the struct above. */
int pl_persist_stage_open(pl_stage *stage, pl_error *reterr);
int pl_persist_stage_next(pl_stage *stage, pl_element *ret_element, pl_error *reterr);
void pl_persist_stage_close(pl_stage *stage);
int pl_persist_stage_save(pl_stage *stage, pl_saver *saver, pl_error *reterr);
int pl_persist_stage_restore(pl_stage *stage, pl_loader *loader, pl_error *reterr);

#endif
