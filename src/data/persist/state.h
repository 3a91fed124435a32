/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a pass, and elements, as bytes: numbers, bytes and elements, in the order that they
 * were written in. Little-endian; docs/dataset-files.md has every byte.
 *   window  the bytes that a saver or loader has in memory; what is longer goes through it piece by
 *           piece
 *   held    a tensor that is kept as it is, beside the bytes (only in memory: see store.h)
 *
 * Where the bytes go to, or come from, is the window's owner's: files in record_file.h, memory in store.h.
 * Nothing that is read is trusted: what cannot be is PL_ECORRUPT. Belongs to one thread. */
#ifndef PL_DATA_PERSIST_STATE_H
#define PL_DATA_PERSIST_STATE_H

#include "data/core/claimed_array.h"
#include "data/core/stage.h"

struct pl_saver {
    char *at, *end;                                 /* room that is left in the window */
    int (*more)(pl_saver *saver, pl_error *reterr); /* makes room, of at least one byte */
    /* Takes a reference and tells its number: 1; or 0: it is to be written. NULL: all are. */
    int (*hold)(pl_saver *saver, pl_tensor *tensor, int64_t *ret_number, pl_error *reterr);
    pl_runtime *runtime;
    pl_origin *origin; /* of the element before */
};

struct pl_loader {
    const char *at, *end;                             /* what is left of the window */
    int (*more)(pl_loader *loader, pl_error *reterr); /* the next one; PL_ECORRUPT at the end */
    uint64_t behind_bytes;                            /* the window: no more than these */
    pl_tensor *(*held)(pl_loader *loader, int64_t number); /* borrowed; NULL: there is none */
    pl_runtime *runtime;
    pl_origin *origin;
};

/* The longest path or message that is read. */
enum { PL_STATE_PATH_MOST = 64 * 1024 };

/* What the two have gathered themselves. */
void pl_saver_done(pl_saver *saver);
void pl_loader_done(pl_loader *loader);

PL_MUST_CHECK int pl_save_int(pl_saver *saver, int64_t value, pl_error *reterr);
PL_MUST_CHECK int pl_save_bytes(pl_saver *saver, const void *bytes, size_t n, pl_error *reterr);
PL_MUST_CHECK int pl_save_text(pl_saver *saver, const char *text, pl_error *reterr);
PL_MUST_CHECK int pl_save_element(pl_saver *saver, const pl_element *element, pl_error *reterr);

/* The same of one that may be empty. */
PL_MUST_CHECK int pl_save_waiting(pl_saver *saver, const pl_element *element, pl_error *reterr);

/* An error; code 0: none. */
PL_MUST_CHECK int pl_save_error(pl_saver *saver, const pl_error *error, pl_error *reterr);

/* A stage that is no input of its dataset, with all below it. */
PL_MUST_CHECK int pl_save_stage(pl_saver *saver, pl_stage *stage, pl_error *reterr);

/* Within [least, most], or PL_ECORRUPT. */
PL_MUST_CHECK int pl_load_int(pl_loader *loader, int64_t least, int64_t most, int64_t *ret_value,
                              pl_error *reterr);

/* What was counted: at least 0, and no more than half of what the type holds, so that whoever
 * counts on from it, or adds two of them, cannot pass its end. */
#define PL_COUNT_MOST (INT64_MAX / 2)
PL_MUST_CHECK int pl_load_count(pl_loader *loader, int64_t *ret_count, pl_error *reterr);

/* Exactly so many bytes as were saved. */
PL_MUST_CHECK int pl_load_bytes(pl_loader *loader, void *bytes, size_t n, pl_error *reterr);

/* At most `most` bytes; to free(). */
PL_MUST_CHECK int pl_load_text(pl_loader *loader, size_t most, char **ret_text, pl_error *reterr);

/* One that the specs of `dataset` allow; with NULL only what has no components: what went before,
 * or where a bad one was read from. */
PL_MUST_CHECK int pl_load_element(pl_loader *loader, const pl_dataset *dataset,
                                  pl_element *ret_element, pl_error *reterr);
PL_MUST_CHECK int pl_load_waiting(pl_loader *loader, const pl_dataset *dataset,
                                  pl_element *ret_element, pl_error *reterr);
/* One of `dataset`, to the end of an array of elements; `what` its room is claimed for. */
PL_MUST_CHECK int pl_load_to_array(pl_loader *loader, const pl_dataset *dataset,
                                   pl_claimed_array *array, const char *what, pl_error *reterr);
PL_MUST_CHECK int pl_load_error(pl_loader *loader, pl_error *ret_error, pl_error *reterr);

/* Into a stage that was just opened. */
PL_MUST_CHECK int pl_load_stage(pl_loader *loader, pl_stage *stage, pl_error *reterr);

/* PL_ECORRUPT, for whoever reads what cannot be. */
PL_MUST_CHECK int pl_load_refuse(pl_error *reterr, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- single items, and tensors as bytes: state_tensor.c ---- */

PL_MUST_CHECK int pl_save_item(pl_saver *saver, const pl_item *item, pl_error *reterr);
PL_MUST_CHECK int pl_load_item(pl_loader *loader, const pl_spec *spec, int component,
                               pl_item *ret_item, pl_error *reterr);

/* Specs of `n` components. */
PL_MUST_CHECK int pl_save_specs(pl_saver *saver, const pl_spec *specs, int n, pl_error *reterr);

/* To be cleared one by one and freed. */
PL_MUST_CHECK int pl_load_specs(pl_loader *loader, pl_spec **ret_specs, int *ret_n,
                                pl_error *reterr);

/* Can so many bytes still follow? Else PL_ECORRUPT: nobody allocates for what is not there. */
PL_MUST_CHECK int pl_load_check_left(const pl_loader *loader, uint64_t bytes, pl_error *reterr);

#endif
