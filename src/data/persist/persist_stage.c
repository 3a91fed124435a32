/* SPDX-License-Identifier: Apache-2.0 */
#include "data/persist/persist_stage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "data/persist/state.h"
#include "tensor/tensor.h"

enum mode { UNDECIDED, READING, WRITING, HANDING_ON, DONE };

/* In a checkpoint: a mode, and whether an element waits. */
enum { MODE_BITS = 7, HAS_WAITING = 8 };

static const pl_medium *medium_of(const pl_stage *stage)
{
    return ((const pl_persist_dataset *)stage->dataset)->medium;
}

int pl_persist_stage_open(pl_stage *stage, pl_error *reterr)
{
    pl_persist_stage *own = (pl_persist_stage *)stage;
    own->shelf = calloc(1, medium_of(stage)->shelf_bytes);
    return own->shelf ? 0
                      : pl_error_set(reterr, -ENOMEM, "out of memory for '%s'",
                                     pl_dataset_name(stage->dataset));
}

void pl_persist_stage_close(pl_stage *stage)
{
    pl_persist_stage *own = (pl_persist_stage *)stage;
    if (own->shelf)
        medium_of(stage)->close(own->shelf);
    free(own->shelf);
    pl_element_clear(&own->waiting);
}

static void clear_shelf(pl_stage *stage)
{
    pl_persist_stage *own = (pl_persist_stage *)stage;
    medium_of(stage)->close(own->shelf);
    memset(own->shelf, 0, medium_of(stage)->shelf_bytes);
}

static int end_pass(pl_stage *stage, int code, pl_error *reterr)
{
    pl_stage_locate(stage, code, reterr);
    return pl_pass_end(stage->pass, reterr);
}

/* ---- which way ---- */

static int begin_writing(pl_stage *stage, pl_error *reterr)
{
    pl_persist_stage *own = (pl_persist_stage *)stage;
    const pl_medium *medium = medium_of(stage);
    int r = medium->begin(stage, own->shelf, reterr);
    own->mode = r == -EBUSY ? HANDING_ON : WRITING;
    if (r < 0)
        return r == -EBUSY ? 0 : r;
    /* Another writer may have finished between our look and our lock. */
    void *look = calloc(1, medium->shelf_bytes);
    if (!look)
        return pl_error_set(reterr, -ENOMEM, "out of memory for '%s'",
                            pl_dataset_name(stage->dataset));
    if (medium->open(stage, look, reterr) == 0) {
        void *written = own->shelf;
        own->shelf = look;
        look = written;
        own->mode = READING;
    }
    medium->close(look);
    free(look);
    return 0;
}

static int decide(pl_stage *stage, pl_error *reterr)
{
    pl_persist_stage *own = (pl_persist_stage *)stage;
    const pl_medium *medium = medium_of(stage);
    int r = medium->open(stage, own->shelf, reterr);
    if (r == 0)
        own->mode = READING;
    if (r == -ENOENT)
        r = begin_writing(stage, reterr);
    if (r < 0) {
        own->mode = UNDECIDED;
        return pl_pass_later(stage->pass, r) ? PL_RETRY_ALONE : end_pass(stage, r, reterr);
    }
    if (own->mode == READING)
        return 0;
    pl_stage *input = NULL;
    r = pl_stage_open(stage->dataset->inputs[0], stage, &input, reterr);
    if (r == 0)
        pl_stage_set_input(stage, 0, input);
    return r < 0 && r != PL_REPORTED ? end_pass(stage, r, reterr) : r;
}

/* ---- next ---- */

static int read_one(pl_stage *stage, pl_element *ret_element, pl_error *reterr)
{
    pl_persist_stage *own = (pl_persist_stage *)stage;
    const pl_medium *medium = medium_of(stage);
    int r = medium->read(stage, own->shelf, ret_element, reterr);
    if (r > 0)
        return 1;
    pl_element tail = {0};
    if (r == 0)
        r = medium->tail(stage, own->shelf, &tail, reterr);
    if (r < 0)
        return pl_pass_later(stage->pass, r) ? PL_RETRY_ALONE : end_pass(stage, r, reterr);
    pl_stage_dropped(stage, &tail);
    own->mode = DONE;
    return 0;
}

/* The input has come to its end. */
static int complete(pl_stage *stage, pl_error *reterr)
{
    pl_persist_stage *own = (pl_persist_stage *)stage;
    pl_element tail = {0};
    pl_stage_gather_before(stage->inputs[0], &tail);
    int r = medium_of(stage)->end(stage, own->shelf, &tail, reterr);
    pl_stage_dropped(stage, &tail);
    own->mode = DONE;
    return r < 0 ? end_pass(stage, r, reterr) : 0;
}

static bool is_string(const pl_item *item)
{
    return item->tensor && item->tensor->dtype == PL_STRING;
}

static void unpin_strings(const pl_element *element, int n)
{
    for (int i = 0; i < n; i++)
        if (is_string(&pl_element_peek(element)[i]))
            pl_buffer_unpin(pl_element_peek(element)[i].tensor->buffer);
}

/* A file cannot go back by half an element: what may have been spilled, and is written in one
 * piece, is in memory before anything is written. */
static int pin_strings(const pl_element *element, pl_error *reterr)
{
    for (int i = 0; i < element->n; i++) {
        const pl_item *item = &pl_element_peek(element)[i];
        void *data;
        int r =
            is_string(item) ? pl_buffer_pin(item->tensor->buffer, PL_PIN_READ, &data, reterr) : 0;
        if (r < 0) {
            unpin_strings(element, i);
            return r;
        }
    }
    return 0;
}

static int add(pl_stage *stage, const pl_element *element, pl_error *reterr)
{
    int r = pin_strings(element, reterr);
    if (r < 0)
        return r;
    r = medium_of(stage)->add(stage, ((pl_persist_stage *)stage)->shelf, element, reterr);
    unpin_strings(element, element->n);
    return r;
}

/* The one that waits, if there is one. */
static int next_input(pl_stage *stage, pl_element *ret_element, pl_error *reterr)
{
    pl_persist_stage *own = (pl_persist_stage *)stage;
    if (own->waiting.n == 0 && !stage->inputs[0]) {
        int r = pl_error_set(reterr, PL_ECORRUPT,
                             "%s was restored from a checkpoint without the state of its input",
                             stage->dataset->class->name);
        return end_pass(stage, r, reterr);
    }
    if (own->waiting.n == 0)
        return pl_stage_next(stage->inputs[0], ret_element, reterr);
    *ret_element = own->waiting;
    own->waiting = (pl_element){0};
    return 1;
}

static int write_one(pl_stage *stage, pl_element *ret_element, pl_error *reterr)
{
    pl_persist_stage *own = (pl_persist_stage *)stage;
    int got = next_input(stage, ret_element, reterr);
    if (got == 0)
        return complete(stage, reterr);
    if (got == PL_RETRY_ALONE || (got < 0 && reterr->code == PL_CHECK_LIMIT))
        return got;
    if (got < 0) {
        clear_shelf(stage);
        own->mode = HANDING_ON;
        return got;
    }
    int r = add(stage, ret_element, reterr);
    if (r == 0)
        return 1;
    if (pl_pass_later(stage->pass, r)) {
        own->waiting = *ret_element;
        *ret_element = (pl_element){0};
        return PL_RETRY_ALONE;
    }
    pl_element_clear(ret_element);
    return end_pass(stage, r, reterr);
}

int pl_persist_stage_next(pl_stage *stage, pl_element *ret_element, pl_error *reterr)
{
    pl_persist_stage *own = (pl_persist_stage *)stage;
    int r = own->mode == UNDECIDED ? decide(stage, reterr) : 0;
    if (r < 0)
        return r;
    switch ((enum mode)own->mode) {
    case READING:
        return read_one(stage, ret_element, reterr);
    case WRITING:
        return write_one(stage, ret_element, reterr);
    case HANDING_ON:
        return next_input(stage, ret_element, reterr);
    default:
        return 0;
    }
}

/* ---- checkpoints ---- */

int pl_persist_stage_save(pl_stage *stage, pl_saver *saver, pl_error *reterr)
{
    pl_persist_stage *own = (pl_persist_stage *)stage;
    const pl_medium *medium = medium_of(stage);
    int mode = own->mode == WRITING && !medium->save_written ? HANDING_ON : own->mode;
    bool waits = own->waiting.n > 0;
    int r = pl_save_int(saver, mode | (waits ? HAS_WAITING : 0), reterr);
    if (r == 0 && waits)
        r = pl_save_element(saver, &own->waiting, reterr);
    if (r == 0 && mode == READING)
        r = medium->save_read(stage, own->shelf, saver, reterr);
    if (r == 0 && mode == WRITING)
        r = medium->save_written(stage, own->shelf, saver, reterr);
    return r;
}

/* The input, if it is open, is opened and restored by the caller. */
int pl_persist_stage_restore(pl_stage *stage, pl_loader *loader, pl_error *reterr)
{
    pl_persist_stage *own = (pl_persist_stage *)stage;
    const pl_medium *medium = medium_of(stage);
    int64_t mode;
    int r = pl_load_int(loader, 0, DONE | HAS_WAITING, &mode, reterr);
    if (r == 0 && (mode & MODE_BITS) > DONE)
        r = pl_load_refuse(reterr, "%s has no mode %d", stage->dataset->class->name, (int)mode);
    if (r == 0 && mode & HAS_WAITING)
        r = pl_load_element(loader, stage->dataset->inputs[0], &own->waiting, reterr);
    mode &= MODE_BITS;
    if (r == 0 && mode == READING)
        r = medium->restore_read(stage, own->shelf, loader, reterr);
    if (r == 0 && mode == WRITING)
        r = medium->restore_written
                ? medium->restore_written(stage, own->shelf, loader, reterr)
                : pl_load_refuse(reterr, "%s cannot go on writing", stage->dataset->class->name);
    if (r == 0)
        own->mode = (int)mode;
    return r;
}
