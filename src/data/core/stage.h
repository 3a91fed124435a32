/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets and their passes from inside.
 *   class   a kind of source or stage: a table of functions, in its own file
 *   stage   a dataset at work in a pass: its position, its buffers, and the stages of its inputs
 *   pass    all stages of one iterator, with the state that they share
 *
 * A class has a struct for its datasets and one for its stages, each with `base` as first member. A
 * stage is pulled: its next() makes one element from elements that it pulls from its inputs. It is
 * called by one thread at a time, not always the same one; a stage that is pulled by several
 * threads has its input behind a lock.
 *
 * Rules for a class:
 *   - next() returns 1 and an element, 0 at the end (and in all later calls), or a negative code
 *     for a bad element, see pl_stage_fail(); the next call then continues with the next one. If
 *     pulling the input fails, next() returns that code unchanged, and loses nothing that it has
 *     gathered.
 *   - An element that is made of others takes over their n_items, n_bad, bad and origin, with
 *     pl_element_pass_on(); a stage that drops one calls pl_stage_dropped().
 *   - Bytes that it gathers are in tensors of the runtime, so they are claimed.
 *   - It makes elements ahead only through pl_ahead (data/ahead/ahead.h).
 *   - save() writes what restore() needs on a stage that was just opened, to go on at the same place.
 *     The pass saves the inputs, but a stage whose inputs come and go (flat_map) writes them
 *     itself: see pl_save_stage(). */
#ifndef PL_DATA_CORE_STAGE_H
#define PL_DATA_CORE_STAGE_H

#include "base/clock.h"
#include "data/core/element.h"
#include "data/core/pass.h"
#include "data/core/profile.h"

typedef struct pl_stage pl_stage;
typedef struct pl_saver pl_saver;   /* state.h */
typedef struct pl_loader pl_loader; /* state.h */

/* The most components of elements that are read several at once. */
enum { PL_BLOCK_COMPONENTS = 16 };

/* A stage pulls its input on the stack: up to 520 bytes each (measured), of a thread's 8 MiB. */
enum { PL_DATASET_DEPTH_MAX = 8192 };

/* All stages of a pass are open at once, and their structs are not charged to the budget (350 bytes
 * each, measured). A dataset with two references to another opens it twice: twenty lines that each
 * concatenate a dataset with itself would make a million stages. */
enum { PL_DATASET_STAGES_MAX = 131072 };

typedef struct pl_dataset_class {
    const char *name;
    size_t dataset_bytes, stage_bytes; /* of its structs, which are zeroed */
    /* It opens its inputs itself, with pl_stage_open(), when it needs them. */
    bool opens_inputs;
    /* A dataset that is a component of elements. A checkpoint restores it as "elements" (store.h),
     * so only the position of a stage over it is saved. */
    bool is_window;
    void (*free)(
        pl_dataset *dataset); /* frees what its struct owns; may be NULL, like all but next() */
    int (*open)(pl_stage *stage, pl_error *reterr);
    int (*next)(pl_stage *stage, pl_element *ret_element, pl_error *reterr);
    void (*close)(pl_stage *stage); /* also if open() failed */
    int (*save)(pl_stage *stage, pl_saver *saver, pl_error *reterr);
    int (*restore)(pl_stage *stage, pl_loader *loader, pl_error *reterr);
    /* Random access, for a dataset whose cardinality is known. Does not move next(). A shuffle of
     * such a source buffers places, not elements. A stage asks its first input: see
     * pl_dataset_has_places(). */
    int (*get)(pl_stage *stage, int64_t at, pl_element *ret_element, pl_error *reterr);
    /* Writes up to `n` of the next elements, component i of each contiguously to to[i], and moves
     * past them. Returns how many; next() makes the following one, and reports it if it is bad.
     * Only for elements of fully known shapes, without strings and with few components. */
    int64_t (*read_block)(pl_stage *stage, int64_t n, char *const *to);
    bool (*may_read_block)(const pl_stage *stage); /* NULL: always */
    /* Writes the elements at the given places, all or none; for a class with get(). Does not move
     * next(). */
    bool (*read_places)(pl_stage *stage, const int64_t *places, int64_t n, char *const *to);
    /* Its parameters, as text, for fingerprints and explain: "n=32, drop_remainder". */
    void (*describe)(const pl_dataset *dataset, FILE *to);
    /* Its inputs advance together. A bad element of one is not skipped alone, unless that input has
     * its own policy: the stage gets the error, and drops the elements beside it. */
    bool in_step;
    /* It makes one element from all of its input: errors have the index of the input's element. */
    bool of_all;
} pl_dataset_class;

struct pl_dataset {
    const pl_dataset_class *class;
    _Atomic int n_refs;
    pl_runtime *runtime;
    char *name;                        /* NULL: the class's */
    const pl_policy *policy;           /* on bad elements; NULL: as the enclosing dataset says */
    const pl_dataset_options *options; /* for the pass; NULL: none */
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
    /* The class's; open() may set another */
    int (*next)(pl_stage *stage, pl_element *ret_element, pl_error *reterr);
    pl_stage *parent;        /* the stage that pulls it; NULL: the iterator */
    pl_stage **inputs;       /* opened with it; NULL: not open. pl_stage_set_input() changes it */
    const pl_policy *policy; /* for bad elements of this stage */
    int64_t n_next;          /* elements made so far, with bad ones: the index of the next one */
    uint64_t round;    /* of a stage that is opened several times: see pl_stage_open_round() */
    pl_element before; /* no components: counts and bad elements before the next element */
    uint64_t n_asked;  /* bad ones of `before` that the options stage was asked about */
    bool opened;       /* open() succeeded */
    bool ended;        /* next() gave 0 last */
    pl_stage *earlier, *later; /* the pass's mu; of its list of stages */
    pl_sampled_clock clock;
    pl_profile profile;
};

/* ---- for constructors ---- */

/* Makes a dataset over inputs, with room for `n_components` specs, which the caller fills in; its
 * cardinality is unknown. All inputs must belong to one runtime. */
PL_MUST_CHECK int pl_dataset_make(const pl_dataset_class *class, pl_runtime *runtime,
                                  pl_dataset *const *inputs, int n_inputs, int n_components,
                                  pl_dataset **ret_dataset, pl_error *reterr);

/* Makes a dataset over one input, with the input's components, specs and cardinality. */
PL_MUST_CHECK int pl_dataset_make_over(const pl_dataset_class *class, pl_dataset *input,
                                       pl_dataset **ret_dataset, pl_error *reterr);

/* Copies deeply, into an empty spec. Fails with -ENOMEM. */
PL_MUST_CHECK int pl_spec_copy(pl_spec *to, const pl_spec *from);
void pl_spec_clear(pl_spec *spec);

/* Returns the bytes of a component that is not a string and whose shape is known. */
uint64_t pl_spec_bytes(const pl_spec *spec);

/* Checks that an item matches a spec. Fails with -EINVAL, and both in the message. */
PL_MUST_CHECK int pl_spec_check(const pl_spec *spec, const pl_item *item, int component,
                                pl_error *reterr);

/* ---- for classes ---- */

/* Parts of the next function. */
static inline uint64_t pl_stage_begin_clock(pl_stage *stage)
{
    atomic_store_explicit(&stage->profile.entered, 1, memory_order_relaxed);
    return pl_clock_is_due(&stage->clock) ? pl_clock_monotonic_ns() : 0;
}

static inline void pl_stage_end_clock(pl_stage *stage, uint64_t begun_ns)
{
    atomic_store_explicit(&stage->profile.entered, 0, memory_order_relaxed);
    if (begun_ns) /* else it was not timed */
        pl_profile_add(&stage->profile.inside_ns,
                       pl_clock_sampled(&stage->clock, pl_clock_monotonic_ns() - begun_ns));
}

/* A bad element of the stage itself has no complete message yet, and may be skipped. */
static inline bool pl_stage_is_final(int r)
{
    return r >= 0 || r == PL_REPORTED || r == PL_RETRY_ALONE;
}

static inline int pl_stage_call_next(pl_stage *stage, pl_element *ret_element, pl_error *reterr)
{
    *ret_element = (pl_element){0};
    if (pl_pass_is_over(stage->pass))
        return pl_pass_over(stage->pass, reterr);
    if (PL_UNLIKELY(reterr->code != 0)) /* of an earlier bad element */
        pl_error_done(reterr);
    return stage->next(stage, ret_element, reterr);
}

/* Called after a bad element: applies the policy, and returns the next good one if the policy skips
 * it. */
PL_MUST_CHECK int pl_stage_next_good(pl_stage *stage, int code, pl_element *ret_element,
                                     pl_error *reterr);

/* Counts an element, and moves earlier counts to it. */
static inline void pl_stage_made(pl_stage *stage, int r, pl_element *element)
{
    stage->ended = r == 0;
    if (r <= 0)
        return;
    if (stage->before.n_items > 0)
        pl_element_put_before(&stage->before, element);
    stage->n_next++;
    pl_profile_add(&stage->profile.n_elements, 1);
    uint64_t bytes = pl_element_bytes(element);
    if (bytes > 0)
        pl_profile_add(&stage->profile.bytes, bytes);
}

/* Pulls the next element of a stage: calls its next(), updates the profile, completes errors, and
 * applies the policy. Inline, because every element goes through every stage. */
PL_MUST_CHECK static inline int pl_stage_next(pl_stage *stage, pl_element *ret_element,
                                              pl_error *reterr)
{
    uint64_t begun_ns = pl_stage_begin_clock(stage);
    int r = pl_stage_call_next(stage, ret_element, reterr);
    if (!pl_stage_is_final(r))
        r = pl_stage_next_good(stage, r, ret_element, reterr);
    pl_stage_made(stage, r, ret_element);
    pl_stage_end_clock(stage, begun_ns);
    return r;
}

/* class->get(), with the same additions: 1, or 0 for a bad element that was skipped. Fails with
 * -ENOTSUP if the class has none. */
PL_MUST_CHECK int pl_stage_get(pl_stage *stage, int64_t at, pl_element *ret_element,
                               pl_error *reterr);

/* Returns whether it has random access. Its cardinality is then known, too. */
bool pl_dataset_has_places(const pl_dataset *dataset);

/* Returns whether class->read_block() may return several elements at once. */
bool pl_stage_has_block(const pl_stage *stage);

/* class->read_block(), updating the profile; counts and bad elements go to `made_of`. */
PL_MUST_CHECK int64_t pl_stage_read_block(pl_stage *stage, int64_t n, char *const *to,
                                          pl_element *made_of);

/* class->read_places(), updating the profile; false if the class has none. */
PL_MUST_CHECK bool pl_stage_read_places(pl_stage *stage, const int64_t *places, int64_t n,
                                        char *const *to);

/* Opens a stage and its inputs, below `parent`. On close, counts that no element has carried on
 * move to the parent. */
PL_MUST_CHECK int pl_stage_open(pl_dataset *dataset, pl_stage *parent, pl_stage **ret_stage,
                                pl_error *reterr);
PL_MUST_CHECK int pl_stage_open_first(pl_dataset *dataset, pl_pass *pass, pl_stage **ret_stage,
                                      pl_error *reterr); /* the iterator's */
void pl_stage_close(pl_stage *stage);                    /* NULL is allowed */

/* pl_stage_open() for a dataset that is opened several times in a pass: `number` counts from 1. The
 * stages below get their own round, which does not depend on threads: shuffles draw by it. */
PL_MUST_CHECK int pl_stage_open_round(pl_dataset *dataset, pl_stage *parent, uint64_t number,
                                      pl_stage **ret_stage, pl_error *reterr);

/* Clears an element that ends here (a filter dropped it); the next element takes its counts. */
void pl_stage_dropped(pl_stage *stage, pl_element *element);

/* Replaces an input, and closes the previous one. Other threads may read inputs meanwhile. */
void pl_stage_set_input(pl_stage *stage, int input, pl_stage *opened);

/* Moves the counts of an element, which is otherwise kept, to the stage's next one. */
void pl_stage_counted(pl_stage *stage, pl_element *element);

/* At the end: gathers counts that no element has carried on, of the stage and those below it. A
 * stage that has not ended (because a take above it has) is left out: its elements are not used,
 * and it may still be working. */
void pl_stage_gather_before(pl_stage *stage, pl_element *to);

/* For a class's next(): reports that the element which `input` (may be NULL) would have become is
 * bad. The message is only the reason: pl_stage_next() puts stage, index and the input's file
 * before it. Returns the code. */
PL_MUST_CHECK int pl_stage_fail(pl_element *ret_element, const pl_element *input, int code,
                                pl_error *reterr, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* pl_stage_fail() with the reason in *reterr already. */
PL_MUST_CHECK int pl_stage_fail_as(pl_element *ret_element, const pl_element *input, int code);

/* pl_stage_fail_as() that also drops `input`, whose counts move to the next element. */
PL_MUST_CHECK int pl_stage_spoil(pl_stage *stage, pl_element *input, pl_element *ret_element,
                                 int code);

/* Adds the stage's name to an error in *reterr that does not concern a single element. */
void pl_stage_locate(const pl_stage *stage, int code, pl_error *reterr);

#endif
