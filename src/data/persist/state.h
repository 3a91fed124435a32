/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a pass, and elements, as bytes: a sequence of numbers, byte strings and elements.
 * Little-endian; docs/dataset-files.md has every byte.
 *   window  the bytes that a saver or loader has in memory; longer data goes through it in pieces
 *   held    a tensor that is stored by reference, beside the bytes (only in memory: see store.h)
 *
 * The window's owner knows where the bytes go to or come from: files (record_file.h) or memory
 * (store.h). Input is not trusted: an impossible value is PL_ECORRUPT. Belongs to one thread. */
#ifndef PL_DATA_PERSIST_STATE_H
#define PL_DATA_PERSIST_STATE_H

#include "data/core/claimed_array.h"
#include "data/core/stage.h"

struct pl_saver {
    char *at, *end;                                 /* room that is left in the window */
    int (*more)(pl_saver *saver, pl_error *reterr); /* makes room, of at least one byte */
    /* 1: took a reference, with a number; 0: write its bytes. NULL: write all. */
    int (*hold)(pl_saver *saver, pl_tensor *tensor, int64_t *ret_number, pl_error *reterr);
    pl_runtime *runtime;
    pl_origin *origin; /* of the element before */
};

struct pl_loader {
    const char *at, *end;                             /* what is left of the window */
    int (*more)(pl_loader *loader, pl_error *reterr); /* refills it; PL_ECORRUPT at the end */
    uint64_t behind_bytes; /* bytes that may follow the window, at most */
    pl_tensor *(*held)(pl_loader *loader, int64_t number); /* borrowed; NULL: there is none */
    pl_runtime *runtime;
    pl_origin *origin;
};

/* The longest path or message that is read. */
enum { PL_STATE_PATH_MOST = 64 * 1024 };

/* Free what a saver or loader has allocated. */
void pl_saver_done(pl_saver *saver);
void pl_loader_done(pl_loader *loader);

PL_MUST_CHECK int pl_save_int(pl_saver *saver, int64_t value, pl_error *reterr);
PL_MUST_CHECK int pl_save_bytes(pl_saver *saver, const void *bytes, size_t n, pl_error *reterr);
PL_MUST_CHECK int pl_save_text(pl_saver *saver, const char *text, pl_error *reterr);
PL_MUST_CHECK int pl_save_element(pl_saver *saver, const pl_element *element, pl_error *reterr);

/* Saves an element that may be empty. */
PL_MUST_CHECK int pl_save_waiting(pl_saver *saver, const pl_element *element, pl_error *reterr);

/* Saves an error; code 0: none. */
PL_MUST_CHECK int pl_save_error(pl_saver *saver, const pl_error *error, pl_error *reterr);

/* Saves a stage that is not an input of its dataset, with all stages below it. */
PL_MUST_CHECK int pl_save_stage(pl_saver *saver, pl_stage *stage, pl_error *reterr);

/* Loads a number in [least, most]; PL_ECORRUPT if it is outside. */
PL_MUST_CHECK int pl_load_int(pl_loader *loader, int64_t least, int64_t most, int64_t *ret_value,
                              pl_error *reterr);

/* A count: at least 0, and at most half the type's range, so that neither counting on nor adding two
 * of them can overflow. */
#define PL_COUNT_MOST (INT64_MAX / 2)
PL_MUST_CHECK int pl_load_count(pl_loader *loader, int64_t *ret_count, pl_error *reterr);

/* Loads exactly as many bytes as were saved. */
PL_MUST_CHECK int pl_load_bytes(pl_loader *loader, void *bytes, size_t n, pl_error *reterr);

/* Loads at most `most` bytes; the caller frees the text with free(). */
PL_MUST_CHECK int pl_load_text(pl_loader *loader, size_t most, char **ret_text, pl_error *reterr);

/* Loads an element that matches the specs of `dataset`; if that is NULL, one without components,
 * which has only counts and an origin. */
PL_MUST_CHECK int pl_load_element(pl_loader *loader, const pl_dataset *dataset,
                                  pl_element *ret_element, pl_error *reterr);
PL_MUST_CHECK int pl_load_waiting(pl_loader *loader, const pl_dataset *dataset,
                                  pl_element *ret_element, pl_error *reterr);
/* Appends an element of `dataset` to an array of elements; `what` names the claim for its room. */
PL_MUST_CHECK int pl_load_to_array(pl_loader *loader, const pl_dataset *dataset,
                                   pl_claimed_array *array, const char *what, pl_error *reterr);
PL_MUST_CHECK int pl_load_error(pl_loader *loader, pl_error *ret_error, pl_error *reterr);

/* Restores a stage that was just opened. */
PL_MUST_CHECK int pl_load_stage(pl_loader *loader, pl_stage *stage, pl_error *reterr);

/* Fails with PL_ECORRUPT, for an impossible value. */
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

/* PL_ECORRUPT if fewer than `bytes` can follow: checked before anything is allocated for them. */
PL_MUST_CHECK int pl_load_check_left(const pl_loader *loader, uint64_t bytes, pl_error *reterr);

#endif
