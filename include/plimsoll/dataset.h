/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets: elements in order, made as they are asked for, within the budget.
 *   element    one or more components
 *   component  a tensor, or (of windows) a dataset
 *   spec       a component's dtype and shape, as far as they are known in advance
 *   dataset    a description: a source of elements, or a stage over other datasets. Immutable and
 *              reference-counted
 *   iterator   one pass over a dataset: its threads, its queues, its position
 *   function   what a stage calls for each element: a graph, run on C threads, or a callback
 *   bad        said of an element that could not be made: a file is missing or corrupt, or an op
 *              failed. The dataset's policy decides what happens then
 *
 * Elements come in the same order whatever the number of threads, unless options say otherwise. An
 * error reaches the caller of next() at the place where its element would have been, and the pass
 * can go on after it. A dataset belongs to a runtime, whose budget bounds everything that its
 * passes hold.
 *
 * Datasets are safe from any thread. An iterator belongs to one thread at a time, except that any
 * thread may call cancel(). Constructors copy texts and arrays, and reference datasets and tensors.
 * A parallel stage may call its callback from several threads at once. */
#ifndef PLIMSOLL_DATASET_H
#define PLIMSOLL_DATASET_H

#include "plimsoll/graph.h"
#include "plimsoll/session.h"
#include "plimsoll/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pl_dataset pl_dataset;
typedef struct pl_iterator pl_iterator;

/* As many workers, or elements ahead, as measured speed, processors and bytes allow. */
#define PL_AUTO (-1)

/* In place of a number of elements. */
#define PL_CARDINALITY_UNKNOWN  INT64_C(-2)
#define PL_CARDINALITY_INFINITE INT64_C(-1)

typedef struct pl_spec {
    pl_dtype dtype;           /* PL_DTYPE_NONE: the component is a dataset of `of` */
    pl_shape shape;           /* dimensions may be PL_UNKNOWN, the rank PL_RANK_UNKNOWN */
    const struct pl_spec *of; /* of a dataset: its components' */
    int n_of;
} pl_spec;

/* Exactly one is not NULL. */
typedef struct pl_value {
    pl_tensor *tensor;
    pl_dataset *dataset;
} pl_value;

/* Computes the outputs. Returns 0, or a negative code, which makes the element bad. The stage
 * releases the outputs. */
typedef int pl_dataset_call(void *context, const pl_value *inputs, int n_inputs, pl_value *outputs,
                            int n_outputs, pl_error *reterr);

/* A graph or a callback. Its inputs are an element's components, in order; in a graph each is a
 * placeholder. Nodes belong to the session's graph: a constructor refuses others. */
typedef struct pl_function {
    pl_session *session; /* runs the graph; NULL: it is a callback */
    pl_node *const *inputs;
    pl_node *const *outputs;
    pl_dataset_call *call;
    const pl_spec *output_specs; /* of a callback's outputs */
    int n_inputs, n_outputs;
    void *context;                  /* for the callback and release() */
    void (*release)(void *context); /* called when the function is no longer needed, also if the
                                       constructor fails; may be NULL */
} pl_function;

/* Within a callback, returns the random stream that a graph in its place would have (see
 * pl_run_options). It differs for every element of every pass, and does not depend on threads.
 * Elsewhere returns 0. */
PL_API uint64_t pl_dataset_random_stream(void);

/* Within a callback, returns the `cancel` that a run in its place would have; it is not 0 once the
 * pass is over. Elsewhere returns NULL. */
PL_API const int *pl_dataset_cancel(void);

/* ---- properties ---- */

PL_API pl_dataset *pl_dataset_ref(pl_dataset *dataset);
PL_API void pl_dataset_unref(pl_dataset *dataset); /* NULL is allowed */

PL_API int pl_dataset_n_components(const pl_dataset *dataset);
/* Returns the spec of the first component; those of later ones follow it in memory. */
PL_API const pl_spec *pl_dataset_spec(const pl_dataset *dataset, int component);
PL_API int64_t pl_dataset_cardinality(const pl_dataset *dataset);

/* Sets the name in messages, which is otherwise the stage's, such as "map". -ENOMEM. */
PL_API PL_MUST_CHECK int pl_dataset_set_name(pl_dataset *dataset, const char *name,
                                             pl_error *reterr);
PL_API const char *pl_dataset_name(const pl_dataset *dataset);

/* ---- passes ---- */

/* Begins a pass; makes no element yet. */
PL_API PL_MUST_CHECK int pl_iterator_new(pl_dataset *dataset, pl_iterator **ret_iterator,
                                         pl_error *reterr);

/* Ends the pass: cancels all its work and waits for it; under a watchdog, for at most two seconds.
 * A call that hangs longer is left to end by itself, and keeps what it needs. NULL is allowed. */
PL_API void pl_iterator_free(pl_iterator *iterator);

/* Returns 1 and the next element, one value for each component, which the caller must unref; 0 at
 * the end, and in all later calls. Negative: the element at this place is bad, and the next call
 * goes on after it. The message names stage, element, file, byte and reason:
 *   map 'decode': element 17, 'cats/3.jpg': decode_image 'image': premature end at byte 8192
 * PL_EBUDGET if not even one element fits, with the bytes that it needs; -ECANCELED; -ETIMEDOUT
 * from the watchdog, with the stage that makes no progress. After -ECANCELED or -ETIMEDOUT every
 * call returns the same. -ENOTSUP in the child of a fork, if the pass had threads. */
PL_API PL_MUST_CHECK int pl_iterator_next(pl_iterator *iterator, pl_value *ret_values,
                                          pl_error *reterr);

/* Makes the current call of next(), and all later ones, return -ECANCELED. Call it from any
 * thread. */
PL_API void pl_iterator_cancel(pl_iterator *iterator);

/* Writes a checkpoint of the pass, including the buffers of shuffles and queues, atomically: the
 * file is complete or does not exist. The pass goes on. PL_EFORMAT if another kind of file has that
 * name. */
PL_API PL_MUST_CHECK int pl_iterator_save(pl_iterator *iterator, const char *path,
                                          pl_error *reterr);

/* Continues where the checkpoint was written, in a new pass over the same dataset. PL_EFORMAT if
 * the file is not a checkpoint, PL_EVERSION, PL_ECORRUPT, or -EINVAL for one of another dataset;
 * after an error, free the pass. */
PL_API PL_MUST_CHECK int pl_iterator_restore(pl_iterator *iterator, const char *path,
                                             pl_error *reterr);

/* Reports what each stage has done and waited for, and which one holds up the rest, as text for
 * people or as JSON. The caller frees it with free(). */
PL_API PL_MUST_CHECK int pl_iterator_explain(pl_iterator *iterator, bool as_json, char **ret_text,
                                             pl_error *reterr);

typedef struct pl_bad_count {
    uint64_t n_bad;   /* elements skipped or quarantined so far */
    uint64_t n_items; /* elements of sources so far, including those */
} pl_bad_count;

PL_API pl_bad_count pl_iterator_bad_count(const pl_iterator *iterator);

/* A bad element. Unknown texts are NULL, unknown numbers -1. */
typedef struct pl_bad_element {
    const char *message; /* all that follows, in the format of next()'s messages */
    const char *stage;   /* its name */
    int64_t index;       /* at that stage */
    const char *path;
    int64_t offset; /* in the file */
    int code;
    const char *reason;
    const pl_error *error; /* with all its fields */
} pl_bad_element;

/* Writes the first bad elements so far, in order, up to `n_most`, and returns how many there are.
 * Only the first 64 are kept; a quarantine has all. Texts live until the next call of next(). */
PL_API int pl_iterator_bads(const pl_iterator *iterator, pl_bad_element *ret_bads, int n_most);

/* ---- options ---- */

typedef enum pl_on_error {
    PL_ON_ERROR_INHERIT, /* as the enclosing options say; else FAIL */
    PL_ON_ERROR_FAIL,
    PL_ON_ERROR_SKIP,
    PL_ON_ERROR_QUARANTINE, /* skip, and append a line of JSON for each to a file */
} pl_on_error;

typedef struct pl_dataset_options {
    size_t size; /* of this struct, as it was compiled; 0: as in 0.1: libplimsoll(3) */
    pl_on_error on_error;
    uint64_t max_bad;            /* more are an error; 0: any number */
    double max_bad_fraction;     /* of all elements, checked once 100 are read, and at the end; 0:
                                  * any. Both limits count below this dataset */
    const char *quarantine_path; /* appended to */
    uint64_t watchdog_ms;        /* the pass fails after this long without progress; 0: never */
    uint64_t budget_bytes;       /* half of it may hold elements made ahead; 0: half of what the
                                  * runtime has left. Only the runtime's budget bounds the rest */
    int n_threads;               /* 0: one for each usable processor */
    bool nondeterministic;       /* elements come as they are ready; applies to the whole pass */
} pl_dataset_options;

/* Sets options for this dataset, and for all below it that have none of their own; for watchdog,
 * budget and threads the outermost setting counts. */
PL_API PL_MUST_CHECK int pl_dataset_with_options(pl_dataset *input,
                                                 const pl_dataset_options *options,
                                                 pl_dataset **ret_dataset, pl_error *reterr);

/* ---- sources ---- */

/* The int64 scalars start, start + step ... before stop. -EINVAL for a step of 0. */
PL_API PL_MUST_CHECK int pl_dataset_range(pl_runtime *runtime, int64_t start, int64_t stop,
                                          int64_t step, pl_dataset **ret_dataset, pl_error *reterr);

/* A single element: these tensors. */
PL_API PL_MUST_CHECK int pl_dataset_from_tensors(pl_runtime *runtime, pl_tensor *const *tensors,
                                                 int n_tensors, pl_dataset **ret_dataset,
                                                 pl_error *reterr);

/* The tensors' slices along the first axis, which has the same length in all. A tensor over a file
 * (see pl_tensor_open_npy()) is read slice by slice. */
PL_API PL_MUST_CHECK int pl_dataset_from_slices(pl_runtime *runtime, pl_tensor *const *tensors,
                                                int n_tensors, pl_dataset **ret_dataset,
                                                pl_error *reterr);

/* Elements that a program makes, one after the other. Each pass calls begin() when it needs its
 * first element. A restored pass requests all earlier elements again: they must be the same. */
typedef struct pl_generator {
    /* Makes the state for next() and end(), which is the context if begin() is NULL. A negative
     * code ends the pass. */
    int (*begin)(void *context, void **ret_state, pl_error *reterr);
    /* Returns 1 and a value for each component, which the stage takes; 0 at the end; or a negative
     * code for a bad element, after which it may be called again. A pass calls it from one thread
     * at a time. */
    int (*next)(void *state, pl_value *ret_values, int n_values, pl_error *reterr);
    void (*end)(void *state); /* frees the state; may be NULL */
    const pl_spec *specs;     /* of the components */
    int n_components;
    int64_t cardinality; /* or PL_CARDINALITY_UNKNOWN, PL_CARDINALITY_INFINITE */
    void *context;
    void (*release)(void *context); /* see pl_function */
} pl_generator;

PL_API PL_MUST_CHECK int pl_dataset_generator(pl_runtime *runtime, const pl_generator *generator,
                                              pl_dataset **ret_dataset, pl_error *reterr);

/* ---- files ---- */

#define PL_SEED_AUTO UINT64_MAX

typedef struct pl_files_options {
    size_t size;         /* of this struct, as it was compiled; 0: as in 0.1: libplimsoll(3) */
    bool shuffle;        /* else sorted by bytes */
    uint64_t seed;       /* PL_SEED_AUTO: one from the system */
    bool same_each_pass; /* else every pass has another order */
} pl_files_options;

/* Yields these paths, as strings, in this order. */
PL_API PL_MUST_CHECK int pl_dataset_paths(pl_runtime *runtime, const char *const *paths,
                                          int64_t n_paths, pl_dataset **ret_dataset,
                                          pl_error *reterr);

/* Yields the paths of files that match patterns (*, ?, [...], and ** for any folders), each once.
 * The search happens now. `options` may be NULL. -ENOENT for a pattern without a match. */
PL_API PL_MUST_CHECK int pl_dataset_files(pl_runtime *runtime, const char *const *patterns,
                                          int n_patterns, const pl_files_options *options,
                                          pl_dataset **ret_dataset, pl_error *reterr);

/* Yields the images of a folder that has a subfolder for each class: path and label, which is the
 * class's number in the order of names. Images that are unsupported by their extension (GIF, WebP,
 * TIFF) are left out, and explain() says how many; -ENOTSUP if there are no others. */
PL_API PL_MUST_CHECK int pl_dataset_image_folder(pl_runtime *runtime, const char *folder,
                                                 const pl_files_options *options,
                                                 pl_dataset **ret_dataset, pl_error *reterr);

/* Returns the name of a label's class in an image folder dataset; NULL if it has none. */
PL_API const char *pl_dataset_class_name(const pl_dataset *dataset, int64_t label);

/* The following functions read the files that `paths` (one string per element) names, one after the
 * other. Tar files compressed with gzip are decompressed. */

typedef enum pl_compression {
    PL_COMPRESSION_AUTO, /* detected by the first bytes: gzip; for TFRecord files also zlib */
    PL_COMPRESSION_NONE,
    PL_COMPRESSION_GZIP,
    PL_COMPRESSION_ZLIB,
} pl_compression;

/* Yields lines, without line ends. */
PL_API PL_MUST_CHECK int pl_dataset_lines(pl_dataset *paths, pl_compression compression,
                                          pl_dataset **ret_dataset, pl_error *reterr);

/* Yields the records of TFRecord files; checksums are always verified. */
PL_API PL_MUST_CHECK int pl_dataset_records(pl_dataset *paths, pl_compression compression,
                                            pl_dataset **ret_dataset, pl_error *reterr);

/* Computes the frame of a TFRecord for `n` bytes at `data`. */
#define PL_RECORD_HEAD_BYTES 12
#define PL_RECORD_FOOT_BYTES 4
PL_API void pl_record_frame(const void *data, size_t n, uint8_t head[PL_RECORD_HEAD_BYTES],
                            uint8_t foot[PL_RECORD_FOOT_BYTES]);

/* Yields records of one size, between a header and a footer that are skipped. Such files may begin
 * with any bytes, even those of gzip: PL_COMPRESSION_NONE does not decompress them. */
PL_API PL_MUST_CHECK int pl_dataset_fixed_records(pl_dataset *paths, uint64_t head_bytes,
                                                  uint64_t record_bytes, uint64_t foot_bytes,
                                                  pl_compression compression,
                                                  pl_dataset **ret_dataset, pl_error *reterr);

typedef struct pl_csv_default {
    pl_dtype dtype; /* PL_I32, PL_I64, PL_F32, PL_F64 or PL_STRING */
    bool required;  /* an empty field makes the record bad; else it takes the default */
    uint64_t bits;  /* of a number: its bytes, lowest first */
    pl_string text; /* of a string */
} pl_csv_default;

typedef struct pl_csv_layout {
    size_t size; /* of this struct, as it was compiled; 0: as in 0.1: libplimsoll(3) */
    const pl_csv_default *columns; /* one for each component */
    int n_columns;
    const int64_t *selected; /* the numbers of the fields to read, ascending from 0; NULL: all */
    char delimiter;          /* 0: a comma */
    bool plain_quotes;       /* a quote is a byte like any other */
    bool header;             /* the first line of each file is not a record */
    pl_string na_value;      /* counts as an empty field */
    pl_compression compression;
} pl_csv_layout;

PL_API PL_MUST_CHECK int pl_dataset_csv(pl_dataset *paths, const pl_csv_layout *layout,
                                        pl_dataset **ret_dataset, pl_error *reterr);

/* Yields samples of tar files in WebDataset's layout: the key, and for each extension ("jpg", or
 * "jpg;jpeg;png" for any of these) the bytes of the sample's file. */
PL_API PL_MUST_CHECK int pl_dataset_samples(pl_dataset *paths, const char *const *extensions,
                                            int n_extensions, pl_dataset **ret_dataset,
                                            pl_error *reterr);

typedef struct pl_feature_spec {
    const char *name;
    pl_dtype dtype; /* PL_F32, PL_I64 or PL_STRING */
    pl_shape shape;
    bool variable;       /* any number of values, on one axis; the shape is ignored */
    pl_tensor *fallback; /* for records without the feature; NULL: such a record is bad, or, if
                          * `variable`, has no values. A list, if `variable` */
} pl_feature_spec;

/* Parses tf.train.Example records: a string, or a list of them, into a component for each feature.
 */
PL_API PL_MUST_CHECK int pl_dataset_parse_examples(pl_dataset *input,
                                                   const pl_feature_spec *features, int n_features,
                                                   int n_parallel, pl_dataset **ret_dataset,
                                                   pl_error *reterr);

/* Makes the parser as a function, over scalars, or over lists if `of_lists`. Its specs live as long
 * as its context, which the caller frees with release(). */
PL_API PL_MUST_CHECK int pl_examples_function(pl_runtime *runtime, const pl_feature_spec *features,
                                              int n_features, bool of_lists,
                                              pl_function *ret_function, pl_error *reterr);

/* ---- stages ---- */

/* `n_parallel`: the number of concurrent calls; 1: only in the caller's thread; PL_AUTO. */
PL_API PL_MUST_CHECK int pl_dataset_map(pl_dataset *input, const pl_function *function,
                                        int n_parallel, pl_dataset **ret_dataset, pl_error *reterr);

/* Stacks `n` elements along a new first axis; the last batch may have fewer unless the remainder is
 * dropped. Elements of different shapes are bad: -EINVAL, with both shapes and the file. */
PL_API PL_MUST_CHECK int pl_dataset_batch(pl_dataset *input, int64_t n, bool drop_remainder,
                                          pl_dataset **ret_dataset, pl_error *reterr);

/* Makes up to `n` elements ahead of time (PL_AUTO: as many as help and fit). */
PL_API PL_MUST_CHECK int pl_dataset_prefetch(pl_dataset *input, int64_t n, pl_dataset **ret_dataset,
                                             pl_error *reterr);

/* Keeps the elements for which the function, which returns one bool, is true. */
PL_API PL_MUST_CHECK int pl_dataset_filter(pl_dataset *input, const pl_function *function,
                                           pl_dataset **ret_dataset, pl_error *reterr);

/* Concatenates the datasets that the function, a callback, makes from the input's elements. */
PL_API PL_MUST_CHECK int pl_dataset_flat_map(pl_dataset *input, const pl_function *function,
                                             pl_dataset **ret_dataset, pl_error *reterr);

/* Like flat_map, but reads `cycle_length` datasets in turn (PL_AUTO: 16), `block_length` elements
 * each. A dataset that ends is replaced when its turn comes again. `n_parallel` is the number of
 * datasets read at once; 1: only in the caller's thread; PL_AUTO. The order does not depend on
 * it. */
PL_API PL_MUST_CHECK int pl_dataset_interleave(pl_dataset *input, const pl_function *function,
                                               int64_t cycle_length, int64_t block_length,
                                               int n_parallel, pl_dataset **ret_dataset,
                                               pl_error *reterr);

/* Combines the components of one element of each input, until one input ends. If one of them is
 * bad, the others beside it are dropped as well. */
PL_API PL_MUST_CHECK int pl_dataset_zip(pl_dataset *const *inputs, int n_inputs,
                                        pl_dataset **ret_dataset, pl_error *reterr);

/* Yields all elements of one, then all of the other. */
PL_API PL_MUST_CHECK int pl_dataset_concatenate(pl_dataset *input, pl_dataset *other,
                                                pl_dataset **ret_dataset, pl_error *reterr);

/* Like batch, but pads elements to `padded_shapes` (by component), and dimensions that are
 * PL_UNKNOWN to the largest of the batch. NULL: the shapes of the components' specs.
 * `padding_values`: scalars by component; NULL, or a NULL among them: 0, false or an empty string.
 * An element that is larger is bad: -EINVAL. */
PL_API PL_MUST_CHECK int pl_dataset_padded_batch(pl_dataset *input, int64_t n,
                                                 const pl_shape *padded_shapes,
                                                 pl_tensor *const *padding_values,
                                                 bool drop_remainder, pl_dataset **ret_dataset,
                                                 pl_error *reterr);

/* Yields the slices of each element along its first axis. */
PL_API PL_MUST_CHECK int pl_dataset_unbatch(pl_dataset *input, pl_dataset **ret_dataset,
                                            pl_error *reterr);

/* Yields windows: each component is a dataset of `size` elements of the input, every `stride`-th;
 * the next window begins `shift` elements later. Windows at the end may have fewer unless they are
 * dropped. */
PL_API PL_MUST_CHECK int pl_dataset_window(pl_dataset *input, int64_t size, int64_t shift,
                                           int64_t stride, bool drop_remainder,
                                           pl_dataset **ret_dataset, pl_error *reterr);

/* Yields elements in random order: each is drawn from a buffer of the next `buffer_size`. A `seed`
 * (at least 0) gives the same order on any machine; PL_AUTO takes one from the system. With
 * `reshuffle_each_iteration` each pass, and each round of a repeat, has another order. Over a
 * source with random access (range, slices, files) the buffer holds positions, not elements. */
PL_API PL_MUST_CHECK int pl_dataset_shuffle(pl_dataset *input, int64_t buffer_size, int64_t seed,
                                            bool reshuffle_each_iteration, pl_dataset **ret_dataset,
                                            pl_error *reterr);

/* Repeats the input `n` times; negative: endlessly. */
PL_API PL_MUST_CHECK int pl_dataset_repeat(pl_dataset *input, int64_t n, pl_dataset **ret_dataset,
                                           pl_error *reterr);

/* Yields the first `n`, or all but the first `n`; negative: take all, or skip all. */
PL_API PL_MUST_CHECK int pl_dataset_take(pl_dataset *input, int64_t n, pl_dataset **ret_dataset,
                                         pl_error *reterr);
PL_API PL_MUST_CHECK int pl_dataset_skip(pl_dataset *input, int64_t n, pl_dataset **ret_dataset,
                                         pl_error *reterr);

/* Yields every `n`-th element from `index` on, for one of n processes. `n` PL_AUTO: both come from
 * the launcher (torchrun, Open MPI, PMI, Slurm); without one, all elements. */
PL_API PL_MUST_CHECK int pl_dataset_shard(pl_dataset *input, int64_t n, int64_t index,
                                          pl_dataset **ret_dataset, pl_error *reterr);

/* Puts a number before each element, an int64 that counts from `start`. */
PL_API PL_MUST_CHECK int pl_dataset_enumerate(pl_dataset *input, int64_t start,
                                              pl_dataset **ret_dataset, pl_error *reterr);

/* Calls the function with a state, `initial` at first, and an element; it returns the next state
 * and a new element. */
PL_API PL_MUST_CHECK int pl_dataset_scan(pl_dataset *input, pl_tensor *const *initial, int n_state,
                                         const pl_function *function, pl_dataset **ret_dataset,
                                         pl_error *reterr);

/* Runs over all elements, and returns the last state: one value for each of `initial`, which the
 * caller must unref. The function returns only the state. */
PL_API PL_MUST_CHECK int pl_dataset_reduce(pl_dataset *input, pl_tensor *const *initial,
                                           int n_state, const pl_function *function,
                                           pl_value *ret_values, pl_error *reterr);

/* Yields the last state as a dataset's only element, so that the computation can be cancelled or
 * watched. */
PL_API PL_MUST_CHECK int pl_dataset_reduction(pl_dataset *input, pl_tensor *const *initial,
                                              int n_state, const pl_function *function,
                                              pl_dataset **ret_dataset, pl_error *reterr);

/* ---- stored elements ---- */

/* The first pass that reaches the end stores the elements, in memory (`path` NULL) or in a file; later
 * passes read them there, and do not touch the input. A file that is incomplete, or of another
 * dataset, is replaced; any other kind of file is refused: PL_EFORMAT. */
PL_API PL_MUST_CHECK int pl_dataset_cache(pl_dataset *input, const char *path,
                                          pl_dataset **ret_dataset, pl_error *reterr);

/* Like cache, but in a folder of `n_shards` files, which pl_dataset_load() can also read. */
PL_API PL_MUST_CHECK int pl_dataset_snapshot(pl_dataset *input, const char *path, int64_t n_shards,
                                             pl_dataset **ret_dataset, pl_error *reterr);

/* Writes all elements to such a folder now. Stops at a bad element, with its error. */
PL_API PL_MUST_CHECK int pl_dataset_save(pl_dataset *dataset, const char *path, int64_t n_shards,
                                         pl_error *reterr);

/* Like pl_dataset_save(), for the rest of a pass, so that it can be cancelled or watched. */
PL_API PL_MUST_CHECK int pl_iterator_save_rest(pl_iterator *iterator, const char *path,
                                               int64_t n_shards, pl_error *reterr);

/* Yields the elements of a folder, without the dataset that made them. -ENOENT if the folder has no
 * complete snapshot. */
PL_API PL_MUST_CHECK int pl_dataset_load(pl_runtime *runtime, const char *path,
                                         pl_dataset **ret_dataset, pl_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
