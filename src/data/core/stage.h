/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets and their passes from inside.
 *   class   what a kind of source or stage does; one table of functions each, in a file of its own
 *   stage   a dataset within a pass: its place, its buffers, and the stages of its inputs
 *   pass    all stages of one iterator, and what they share
 *
 * A class describes itself in a dataset (`base` is the first member of its own struct) and runs as
 * a stage (the same). A stage is pulled: next() makes one element, from those that it pulls of its
 * inputs. It is called by one thread at a time, which need not be the same one: whoever pulls from
 * several threads has a lock of its own around it.
 *
 * Rules for a class:
 *   - next() returns 1 and an element, 0 at the end (and ever after), or a negative code for an
 *     element that is bad, see pl_stage_fail(); it must then be able to go on with the next one.
 *     Where the input's pull is negative it returns that as it is, with nothing lost of what it had
 *     gathered.
 *   - What an element is made of passes its n_items, n_bad, bad and origin on to it, with
 *     pl_element_pass_on(); what drops one hands it to pl_stage_dropped().
 *   - Bytes that it gathers are tensors of the runtime, so they are claimed.
 *   - It runs ahead only through pl_headway (prefetch_budget.h) and pl_crew (worker_pool.h).
 *   - save() writes what restore(), on a stage that was just opened, needs to go on at the same
 *     place, without its inputs: these are saved by the pass. A stage whose inputs come and go
 *     (flat_map) writes that as well: see pl_save_stage(). */
#ifndef PL_DATA_CORE_STAGE_H
#define PL_DATA_CORE_STAGE_H

#include "data/core/element.h"
#include "data/core/pass.h"
#include "data/core/profile.h"

typedef struct pl_stage pl_stage;
typedef struct pl_saver pl_saver;   /* state.h */
typedef struct pl_loader pl_loader; /* state.h */

/* Those of elements that are read several at once, at most. */
enum { PL_BLOCK_COMPONENTS = 16 };

/* A stage asks its input on the stack: up to 520 bytes for each were measured, and a thread has
 * 8 MiB. */
enum { PL_DATASET_DEPTH_MAX = 8192 };

/* All stages of a pass are open at once, and nobody claims what they are made of: 350 bytes each
 * were measured. A dataset that has another twice opens it twice, so that twenty lines that join
 * one with itself would be a million. */
enum { PL_DATASET_STAGES_MAX = 131072 };

typedef struct pl_dataset_class {
    const char *name;
    size_t dataset_bytes, stage_bytes; /* of its own structs; all zero at first */
    /* Its inputs are NULL at first: it opens them with pl_stage_open() when it needs them. */
    bool opens_inputs;
    /* A dataset that elements have as a component. A checkpoint brings it back as "elements" (see
     * store.h), so that of a stage on it only the place is saved. */
    bool is_window;
    void (*free)(pl_dataset *dataset); /* what its struct holds; may be NULL, as all but next() */
    int (*open)(pl_stage *stage, pl_error *reterr);
    int (*next)(pl_stage *stage, pl_element *ret_element, pl_error *reterr);
    void (*close)(pl_stage *stage); /* also of one that open() failed on */
    int (*save)(pl_stage *stage, pl_saver *saver, pl_error *reterr);
    int (*restore)(pl_stage *stage, pl_loader *loader, pl_error *reterr);
    /* The element at a place, in any order; of a dataset whose cardinality is known. What shuffles
     * such a source keeps places instead of elements. Does not touch next()'s own place. That of a
     * stage asks its first input: see pl_dataset_has_places(). */
    int (*get)(pl_stage *stage, int64_t at, pl_element *ret_element, pl_error *reterr);
    /* Writes up to `n` of the next elements, each component one after the other to its to[i], and
     * moves behind them. How many it has written; the next one is to be had by next(), also where
     * it is bad: then that tells. Of elements whose specs say all of their shapes, and that have no
     * strings, and few components. */
    int64_t (*read_block)(pl_stage *stage, int64_t n, char *const *to);
    bool (*may_read_block)(const pl_stage *stage); /* has it any so? NULL: always */
    /* The same of those at the given places, all or none, for a class with get(). Does not touch
     * next()'s own place. */
    bool (*read_places)(pl_stage *stage, const int64_t *places, int64_t n, char *const *to);
    /* Its parameters, as text, for fingerprints and explain: "n=32, drop_remainder". */
    void (*describe)(const pl_dataset *dataset, FILE *to);
    /* Its inputs go side by side, place by place. None skips a bad element alone, unless it says so
     * itself: the stage is handed the error, and drops what lies beside it as well. */
    bool in_step;
    /* It makes one element of all of its input's: a bad one is told by its index there. */
    bool of_all;
} pl_dataset_class;

struct pl_dataset {
    const pl_dataset_class *class;
    _Atomic int n_refs;
    pl_runtime *runtime;
    char *name; /* NULL: the class's */
    pl_spec *spec;
    int n_components;
    int64_t cardinality;
    pl_dataset **inputs; /* all that are known when it is made */
    int n_inputs;
    int depth;                    /* 1 + the largest of its inputs'; at most PL_DATASET_DEPTH_MAX */
    int n_stages;                 /* 1 + all of its inputs'; at most PL_DATASET_STAGES_MAX */
    _Atomic uint64_t n_passes;    /* ever opened: shuffles count them */
    _Atomic uint64_t n_iterators; /* ever made of it */
};

struct pl_stage {
    pl_dataset *dataset;
    pl_pass *pass;
    pl_stage *parent;  /* who pulls; NULL: the iterator */
    pl_stage **inputs; /* opened with it, n_inputs of the dataset; NULL: one is not open. Later
                          changed by pl_stage_set_input() only: explain looks at them */
    const pl_policy *policy; /* for elements that are bad here */
    int64_t n_next;          /* elements that were made, bad ones included: the next one's index */
    uint64_t round;          /* which opening within the pass it is: see pl_stage_open_round() */
    pl_element before;       /* has no items: counts what went before the next element */
    uint64_t n_asked;        /* bad ones of `before` that the options were asked of */
    bool opened;             /* open() went well */
    bool ended;              /* next() gave 0 last */
    pl_stage *earlier, *later; /* the pass's mu; of its list of stages */
    pl_sampled_clock clock;
    pl_profile profile;
};

/* ---- for constructors ---- */

/* A dataset over inputs, with room for `n_components` specs, to be filled in; its cardinality is
 * unknown. All inputs are of one runtime. */
PL_MUST_CHECK int pl_dataset_make(const pl_dataset_class *class, pl_runtime *runtime,
                                  pl_dataset *const *inputs, int n_inputs, int n_components,
                                  pl_dataset **ret_dataset, pl_error *reterr);

/* The same over one input, with its components, specs and cardinality. */
PL_MUST_CHECK int pl_dataset_make_over(const pl_dataset_class *class, pl_dataset *input,
                                       pl_dataset **ret_dataset, pl_error *reterr);

/* Copies a spec, with what it is `of`; into one that is empty. -ENOMEM. */
PL_MUST_CHECK int pl_spec_copy(pl_spec *to, const pl_spec *from);
void pl_spec_clear(pl_spec *spec);

/* Of one element's component, which is no string and has a shape that is known. */
uint64_t pl_spec_bytes(const pl_spec *spec);

/* Can a component of this spec be this? -EINVAL and which of both is what. */
PL_MUST_CHECK int pl_spec_check(const pl_spec *spec, const pl_item *item, int component,
                                pl_error *reterr);

/* ---- for classes ---- */

/* The next element of a stage: its class's next(), with the profile kept, errors told in full, and
 * the policy applied. */
PL_MUST_CHECK int pl_stage_next(pl_stage *stage, pl_element *ret_element, pl_error *reterr);

/* class->get(), alike: 1, or 0 for a bad element that was skipped. -ENOTSUP if it has none. */
PL_MUST_CHECK int pl_stage_get(pl_stage *stage, int64_t at, pl_element *ret_element,
                               pl_error *reterr);

/* Has it its elements in any order? Then it knows how many, too. */
bool pl_dataset_has_places(const pl_dataset *dataset);

/* Can it, as far as is known, give several elements at once, see class->read_block()? */
bool pl_stage_has_block(const pl_stage *stage);

/* class->read_block(), with all that is counted; what they are made of is passed on to `made_of`.
 */
PL_MUST_CHECK int64_t pl_stage_read_block(pl_stage *stage, int64_t n, char *const *to,
                                          pl_element *made_of);

/* class->read_places(), alike: false if it has none. */
PL_MUST_CHECK bool pl_stage_read_places(pl_stage *stage, const int64_t *places, int64_t n,
                                        char *const *to);

/* Opens a stage and its inputs, below `parent`; closes them. What was counted but not passed on yet
 * becomes the parent's. */
PL_MUST_CHECK int pl_stage_open(pl_dataset *dataset, pl_stage *parent, pl_stage **ret_stage,
                                pl_error *reterr);
PL_MUST_CHECK int pl_stage_open_first(pl_dataset *dataset, pl_pass *pass, pl_stage **ret_stage,
                                      pl_error *reterr); /* below nobody */
void pl_stage_close(pl_stage *stage);                    /* NULL is allowed */

/* The same of what is opened several times within a pass, `number` from 1 on. All below it has a
 * round of its own then, which is the same whatever the threads: shuffles draw by it. */
PL_MUST_CHECK int pl_stage_open_round(pl_dataset *dataset, pl_stage *parent, uint64_t number,
                                      pl_stage **ret_stage, pl_error *reterr);

/* An element ends here (it was filtered away): what it counts is passed on by the next one. Clears
 * it. */
void pl_stage_dropped(pl_stage *stage, pl_element *element);

/* Another stage in an input's place; that which was there is closed. For whoever opens inputs while
 * others may look on. */
void pl_stage_set_input(pl_stage *stage, int input, pl_stage *opened);

/* What it counts is passed on by the next one that the stage makes; the element itself is kept. */
void pl_stage_counted(pl_stage *stage, pl_element *element);

/* At the end of a stage: what it and those below it have counted, and no element has carried on.
 * One that has not ended (a take above it did) counts what nobody will get, and may be at work. */
void pl_stage_gather_before(pl_stage *stage, pl_element *to);

/* For a class's next(): the element that `input` (may be NULL) would have become is bad. Leaves
 * there what the input was read from, for the message: the stage's name and index and the file are
 * put before it by pl_stage_next(). Returns the code. */
PL_MUST_CHECK int pl_stage_fail(pl_element *ret_element, const pl_element *input, int code,
                                pl_error *reterr, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* The same for an error that is in *reterr already. */
PL_MUST_CHECK int pl_stage_fail_as(pl_element *ret_element, const pl_element *input, int code);

/* The same, where `input` ends here: what it counts beside itself is passed on. Clears it. */
PL_MUST_CHECK int pl_stage_spoil(pl_stage *stage, pl_element *input, pl_element *ret_element,
                                 int code);

/* For an error in *reterr that is not of one element: names the stage. */
void pl_stage_locate(const pl_stage *stage, int code, pl_error *reterr);

#endif
