/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets: elements in order, made as they are asked for, within the budget.
 *   element    one or more components
 *   component  a tensor, or (of windows) a dataset
 *   spec       a component's dtype and shape, as far as they are known before
 *   dataset    a description: a source of elements, or a stage over other datasets. Never changed
 *              once made, and counted
 *   iterator   one pass over a dataset: its threads, its queues, its place
 *   function   what a stage calls for each element: a graph, run on C threads, or a callback
 *   bad        an element that could not be made: a file that is missing or corrupt, an op that
 *              failed. What is to happen then is the dataset's policy
 *
 * Elements come in the same order whatever the number of threads, unless options say otherwise. An
 * error reaches the caller of next() at the place where its element would have been; the pass can
 * go on behind it. A dataset belongs to a runtime, whose budget bounds everything that its passes
 * hold.
 *
 * Datasets are safe from any thread. An iterator is one thread's at a time, but for cancel(), which
 * any thread may call. What a constructor is given (texts, arrays) is copied; datasets and tensors
 * are referenced. Callbacks may be called from several threads at once where the stage is
 * parallel. */
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

/* For a number of elements: nobody knows; or without end. */
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

/* Makes the outputs' values of the inputs': 0, or a negative code, which makes the element bad. The
 * outputs are then the stage's to give back. */
typedef int pl_dataset_call(void *context, const pl_value *inputs, int n_inputs, pl_value *outputs,
                            int n_outputs, pl_error *reterr);

/* Either a graph or a callback. The inputs are an element's components, in order; of a graph each
 * is a placeholder that takes it. Nodes are of the session's graph: others are refused where the
 * function is given to a dataset. */
typedef struct pl_function {
    pl_session *session; /* of the graph, to be run in; or NULL: it is a callback */
    pl_node *const *inputs;
    pl_node *const *outputs;
    pl_dataset_call *call;
    const pl_spec *output_specs; /* of a callback's outputs */
    int n_inputs, n_outputs;
    void *context;                  /* of the callback; and what has the graph, if anything has */
    void (*release)(void *context); /* may be NULL; when nobody needs the function any more. Also
                                       when the constructor that it was given to failed */
} pl_function;

/* Within a callback: by what random ops of a graph in its place would draw (see pl_run_options),
 * which is another for every element of every pass, and the same whatever the threads. Else 0. */
PL_API uint64_t pl_dataset_random_stream(void);

/* Likewise: what a run in its place would have as its `cancel`, not 0 once the pass is over. Else
 * NULL. */
PL_API const int *pl_dataset_cancel(void);

/* ---- what a dataset is ---- */

PL_API pl_dataset *pl_dataset_ref(pl_dataset *dataset);
PL_API void pl_dataset_unref(pl_dataset *dataset); /* NULL is allowed */

PL_API int pl_dataset_n_components(const pl_dataset *dataset);
/* Those of the later components lie behind it. */
PL_API const pl_spec *pl_dataset_spec(const pl_dataset *dataset, int component);
PL_API int64_t pl_dataset_cardinality(const pl_dataset *dataset);

/* What messages call it: "map", unless it is given a name. -ENOMEM. */
PL_API PL_MUST_CHECK int pl_dataset_set_name(pl_dataset *dataset, const char *name,
                                             pl_error *reterr);
PL_API const char *pl_dataset_name(const pl_dataset *dataset);

/* ---- passes ---- */

/* Begins a pass; nothing is made yet. */
PL_API PL_MUST_CHECK int pl_iterator_new(pl_dataset *dataset, pl_iterator **ret_iterator,
                                         pl_error *reterr);

/* Ends the pass: what runs is cancelled and waited for; under a watchdog for two seconds at most.
 * What hangs is then left to end by itself, and keeps what it needs. NULL is allowed. */
PL_API void pl_iterator_free(pl_iterator *iterator);

/* 1 and the next element, one value for each component, the caller's to unref; 0 at the end, and
 * ever after. Negative: the element at this place is bad, and the next call goes on behind it. The
 * message names stage, element, file, byte and reason:
 *   map 'decode': element 17, 'cats/3.jpg': decode_image 'image': the JPEG is corrupt at byte 8192
 * PL_EBUDGET if not even one element fits, with what it needs; -ECANCELED; -ETIMEDOUT from the
 * watchdog, with the stage that makes no progress: from these two on every call gives the same.
 * -ENOTSUP in the child of a fork, of a pass that had threads. */
PL_API PL_MUST_CHECK int pl_iterator_next(pl_iterator *iterator, pl_value *ret_values,
                                          pl_error *reterr);

/* From any thread: the call of next() that is under way, and all later ones, are -ECANCELED. */
PL_API void pl_iterator_cancel(pl_iterator *iterator);

/* Writes the pass as it is to a file, which is there as a whole or not at all: buffers of shuffles
 * and queues included. The pass goes on. PL_EFORMAT if something else is there under that name. */
PL_API PL_MUST_CHECK int pl_iterator_save(pl_iterator *iterator, const char *path,
                                          pl_error *reterr);

/* To a new pass over the same dataset: goes on where the file was written. PL_EFORMAT if it is no
 * such file, PL_EVERSION, PL_ECORRUPT, -EINVAL for one of another dataset; the pass is then to be
 * freed. */
PL_API PL_MUST_CHECK int pl_iterator_restore(pl_iterator *iterator, const char *path,
                                             pl_error *reterr);

/* What each stage has done, and waited for, and which one holds up the rest: for people, or JSON;
 * to free(). */
PL_API PL_MUST_CHECK int pl_iterator_explain(pl_iterator *iterator, bool as_json, char **ret_text,
                                             pl_error *reterr);

typedef struct pl_bad_count {
    uint64_t n_bad;   /* elements that were skipped or quarantined up to here */
    uint64_t n_items; /* elements of sources up to here, those included */
} pl_bad_count;

PL_API pl_bad_count pl_iterator_bad_count(const pl_iterator *iterator);

/* One of them. Texts are NULL, and numbers -1, where they are not known. */
typedef struct pl_bad_element {
    const char *message; /* all of what follows, as next() would have said it */
    const char *stage;   /* its name */
    int64_t index;       /* at that stage */
    const char *path;
    int64_t offset; /* in the file */
    int code;
    const char *reason;
    const pl_error *error; /* all that is known of it */
} pl_bad_element;

/* The first bad elements up to here, in their order: 64 at most; a quarantine has all. Writes up to
 * `n_most` of them and returns how many there are. Texts live until the next call of next(). */
PL_API int pl_iterator_bads(const pl_iterator *iterator, pl_bad_element *ret_bads, int n_most);

/* ---- options ---- */

typedef enum pl_on_error {
    PL_ON_ERROR_INHERIT, /* as said further out; nowhere: FAIL */
    PL_ON_ERROR_FAIL,
    PL_ON_ERROR_SKIP,
    PL_ON_ERROR_QUARANTINE, /* skip, and write a line of JSON for each to a file */
} pl_on_error;

typedef struct pl_dataset_options {
    size_t size; /* of this struct, as it was compiled; 0: as in 0.1: libplimsoll(3) */
    pl_on_error on_error;
    uint64_t max_bad;            /* more than so many are an error; 0: any number */
    double max_bad_fraction;     /* of all that were read, once they are 100, and at the end; 0:
                                    any. Both limits count what is below this dataset */
    const char *quarantine_path; /* appended to */
    uint64_t watchdog_ms;        /* no progress for so long is an error; 0: never */
    uint64_t budget_bytes;       /* half of it bounds what is made ahead; 0: of what the runtime has
                                    left. What stages hold is bounded by the runtime's alone */
    int n_threads;               /* 0: as many as there are processors to use */
    bool nondeterministic;       /* elements come as they are ready: in all of the pass, wherever
                                    it is said */
} pl_dataset_options;

/* For this dataset and all below it that do not say otherwise; watchdog, budget and threads count
 * on the outermost that says them. */
PL_API PL_MUST_CHECK int pl_dataset_with_options(pl_dataset *input,
                                                 const pl_dataset_options *options,
                                                 pl_dataset **ret_dataset, pl_error *reterr);

/* ---- sources ---- */

/* int64 scalars start, start + step ... before stop. -EINVAL for a step of 0. */
PL_API PL_MUST_CHECK int pl_dataset_range(pl_runtime *runtime, int64_t start, int64_t stop,
                                          int64_t step, pl_dataset **ret_dataset, pl_error *reterr);

/* One element: these tensors. */
PL_API PL_MUST_CHECK int pl_dataset_from_tensors(pl_runtime *runtime, pl_tensor *const *tensors,
                                                 int n_tensors, pl_dataset **ret_dataset,
                                                 pl_error *reterr);

/* Their slices along the first axis, of which they have equally many. What is in a file (see
 * pl_tensor_open_npy()) is read slice by slice. */
PL_API PL_MUST_CHECK int pl_dataset_from_slices(pl_runtime *runtime, pl_tensor *const *tensors,
                                                int n_tensors, pl_dataset **ret_dataset,
                                                pl_error *reterr);

/* What a program makes, one element after the other. Each pass begins anew, when it is first asked
 * for something. A pass that is restored asks for as many elements as it had before: they are to be
 * the same. */
typedef struct pl_generator {
    /* Makes what the others are called with; NULL: that is the context. Negative ends the pass. */
    int (*begin)(void *context, void **ret_state, pl_error *reterr);
    /* 1 and a value for each component, which become the stage's; 0: the end; negative: the element
     * is bad, and it may be called again. By one thread at a time, of a pass. */
    int (*next)(void *state, pl_value *ret_values, int n_values, pl_error *reterr);
    void (*end)(void *state); /* of what begun; may be NULL */
    const pl_spec *specs;     /* of the components */
    int n_components;
    int64_t cardinality; /* or PL_CARDINALITY_UNKNOWN, PL_CARDINALITY_INFINITE */
    void *context;
    void (*release)(void *context); /* as a function's */
} pl_generator;

PL_API PL_MUST_CHECK int pl_dataset_generator(pl_runtime *runtime, const pl_generator *generator,
                                              pl_dataset **ret_dataset, pl_error *reterr);

/* ---- files ---- */

#define PL_SEED_AUTO UINT64_MAX

typedef struct pl_files_options {
    size_t size;         /* of this struct, as it was compiled; 0: as in 0.1: libplimsoll(3) */
    bool shuffle;        /* else they are sorted by their bytes */
    uint64_t seed;       /* PL_SEED_AUTO: one from the system */
    bool same_each_pass; /* else every pass shuffles anew */
} pl_files_options;

/* These paths, as strings, in this order. */
PL_API PL_MUST_CHECK int pl_dataset_paths(pl_runtime *runtime, const char *const *paths,
                                          int64_t n_paths, pl_dataset **ret_dataset,
                                          pl_error *reterr);

/* The paths of files that patterns match (*, ?, [...], and ** for any folders), each once. They are
 * looked for now. `options` may be NULL. -ENOENT for a pattern that matches none. */
PL_API PL_MUST_CHECK int pl_dataset_files(pl_runtime *runtime, const char *const *patterns,
                                          int n_patterns, const pl_files_options *options,
                                          pl_dataset **ret_dataset, pl_error *reterr);

/* Pictures that lie in a folder for each class: path and label, which counts the classes in the
 * order of their names. Those that are not decoded, by their names (GIF, WebP, TIFF), are left out,
 * and explain says how many; -ENOTSUP if there are no others. */
PL_API PL_MUST_CHECK int pl_dataset_image_folder(pl_runtime *runtime, const char *folder,
                                                 const pl_files_options *options,
                                                 pl_dataset **ret_dataset, pl_error *reterr);

/* Of such a dataset: the name of a label's class; NULL if there is none. */
PL_API const char *pl_dataset_class_name(const pl_dataset *dataset, int64_t label);

/* What follows reads the files that `paths` (one string an element) names, one after the other. Tar
 * files that are packed with gzip are unpacked. */

typedef enum pl_compression {
    PL_COMPRESSION_AUTO, /* as the file begins: gzip; of TFRecord files zlib as well */
    PL_COMPRESSION_NONE,
    PL_COMPRESSION_GZIP,
    PL_COMPRESSION_ZLIB,
} pl_compression;

/* Lines, without their ends. */
PL_API PL_MUST_CHECK int pl_dataset_lines(pl_dataset *paths, pl_compression compression,
                                          pl_dataset **ret_dataset, pl_error *reterr);

/* TFRecord files: records, whose checksums are always looked at. */
PL_API PL_MUST_CHECK int pl_dataset_records(pl_dataset *paths, pl_compression compression,
                                            pl_dataset **ret_dataset, pl_error *reterr);

/* What stands before and behind a record in such a file, which is `n` bytes at `data`. */
#define PL_RECORD_HEAD_BYTES 12
#define PL_RECORD_FOOT_BYTES 4
PL_API void pl_record_frame(const void *data, size_t n, uint8_t head[PL_RECORD_HEAD_BYTES],
                            uint8_t foot[PL_RECORD_FOOT_BYTES]);

/* Records of one size, behind a head and before a foot that are passed over. Such files may begin
 * with any bytes, also those of gzip: PL_COMPRESSION_NONE takes them as they are. */
PL_API PL_MUST_CHECK int pl_dataset_fixed_records(pl_dataset *paths, uint64_t head_bytes,
                                                  uint64_t record_bytes, uint64_t foot_bytes,
                                                  pl_compression compression,
                                                  pl_dataset **ret_dataset, pl_error *reterr);

typedef struct pl_csv_default {
    pl_dtype dtype; /* PL_I32, PL_I64, PL_F32, PL_F64 or PL_STRING */
    bool required;  /* an empty field is bad; else it stands for the default */
    uint64_t bits;  /* of a number: its bytes, lowest first */
    pl_string text; /* of a string */
} pl_csv_default;

typedef struct pl_csv_layout {
    size_t size; /* of this struct, as it was compiled; 0: as in 0.1: libplimsoll(3) */
    const pl_csv_default *columns; /* a component each */
    int n_columns;
    const int64_t *selected; /* ascending, from 0: which fields these are; NULL: all there are */
    char delimiter;          /* 0: a comma */
    bool plain_quotes;       /* a quote is a byte like any other */
    bool header;             /* the first line of each file is no record */
    pl_string na_value;      /* stands for an empty field as well */
    pl_compression compression;
} pl_csv_layout;

PL_API PL_MUST_CHECK int pl_dataset_csv(pl_dataset *paths, const pl_csv_layout *layout,
                                        pl_dataset **ret_dataset, pl_error *reterr);

/* Tar files as WebDataset lays them out: a sample's key, and the bytes of its file with each of the
 * extensions ("jpg", or "jpg;jpeg;png" for any of these). */
PL_API PL_MUST_CHECK int pl_dataset_samples(pl_dataset *paths, const char *const *extensions,
                                            int n_extensions, pl_dataset **ret_dataset,
                                            pl_error *reterr);

typedef struct pl_feature_spec {
    const char *name;
    pl_dtype dtype; /* PL_F32, PL_I64 or PL_STRING */
    pl_shape shape;
    bool variable;       /* any number of values, on one axis; the shape is ignored */
    pl_tensor *fallback; /* for records without it; NULL: such a record is bad, or, if it is
                            variable, has no values. Of one that is variable: a list */
} pl_feature_spec;

/* Parses tf.train.Example records: a string, or a list of them, into a component for each feature.
 */
PL_API PL_MUST_CHECK int pl_dataset_parse_examples(pl_dataset *input,
                                                   const pl_feature_spec *features, int n_features,
                                                   int n_parallel, pl_dataset **ret_dataset,
                                                   pl_error *reterr);

/* The same as a function, for who calls it: of scalars, or of lists if `of_lists`. Its specs live
 * as long as its context, which is the caller's to release(). */
PL_API PL_MUST_CHECK int pl_examples_function(pl_runtime *runtime, const pl_feature_spec *features,
                                              int n_features, bool of_lists,
                                              pl_function *ret_function, pl_error *reterr);

/* ---- stages ---- */

/* `n_parallel`: how many calls at once; 1: none beside the caller's; PL_AUTO. */
PL_API PL_MUST_CHECK int pl_dataset_map(pl_dataset *input, const pl_function *function,
                                        int n_parallel, pl_dataset **ret_dataset, pl_error *reterr);

/* `n` elements behind each other along a new first axis; the last may have fewer unless they are
 * dropped. -EINVAL, when it is met, for elements of different shapes, with both and their file. */
PL_API PL_MUST_CHECK int pl_dataset_batch(pl_dataset *input, int64_t n, bool drop_remainder,
                                          pl_dataset **ret_dataset, pl_error *reterr);

/* Makes up to `n` elements (PL_AUTO: as many as help and fit) before they are asked for. */
PL_API PL_MUST_CHECK int pl_dataset_prefetch(pl_dataset *input, int64_t n, pl_dataset **ret_dataset,
                                             pl_error *reterr);

/* The elements for which the function, which gives one bool, is true. */
PL_API PL_MUST_CHECK int pl_dataset_filter(pl_dataset *input, const pl_function *function,
                                           pl_dataset **ret_dataset, pl_error *reterr);

/* The elements of the datasets that the function, a callback, makes of the input's: one dataset
 * after the other. */
PL_API PL_MUST_CHECK int pl_dataset_flat_map(pl_dataset *input, const pl_function *function,
                                             pl_dataset **ret_dataset, pl_error *reterr);

/* The same of `cycle_length` datasets in turn (PL_AUTO: 16), `block_length` elements of each. One
 * that has ended is followed by the next when it would have been its turn again. The order does not
 * depend on `n_parallel`: how many are pulled at once; 1: none beside the caller's; PL_AUTO. */
PL_API PL_MUST_CHECK int pl_dataset_interleave(pl_dataset *input, const pl_function *function,
                                               int64_t cycle_length, int64_t block_length,
                                               int n_parallel, pl_dataset **ret_dataset,
                                               pl_error *reterr);

/* Elements with the components of one of each input, until one of them ends. A bad element costs
 * its row: those beside it are dropped as well. */
PL_API PL_MUST_CHECK int pl_dataset_zip(pl_dataset *const *inputs, int n_inputs,
                                        pl_dataset **ret_dataset, pl_error *reterr);

/* All of one, then all of the other. */
PL_API PL_MUST_CHECK int pl_dataset_concatenate(pl_dataset *input, pl_dataset *other,
                                                pl_dataset **ret_dataset, pl_error *reterr);

/* As batch, of elements whose shapes differ: each is filled up to `padded_shapes`, by component,
 * or, where a dimension is PL_UNKNOWN, to the largest of its batch. NULL: the components' own
 * specs, so all that is not known. `padding_values`: scalars by component; NULL, or one of them
 * NULL: 0, false or an empty string. -EINVAL, when it is met, for an element that is larger. */
PL_API PL_MUST_CHECK int pl_dataset_padded_batch(pl_dataset *input, int64_t n,
                                                 const pl_shape *padded_shapes,
                                                 pl_tensor *const *padding_values,
                                                 bool drop_remainder, pl_dataset **ret_dataset,
                                                 pl_error *reterr);

/* The slices of each element along its first axis. */
PL_API PL_MUST_CHECK int pl_dataset_unbatch(pl_dataset *input, pl_dataset **ret_dataset,
                                            pl_error *reterr);

/* Windows: each component is a dataset of `size` elements of the input, every `stride`-th; the next
 * window begins `shift` elements behind. Those at the end may have fewer unless they are dropped.
 */
PL_API PL_MUST_CHECK int pl_dataset_window(pl_dataset *input, int64_t size, int64_t shift,
                                           int64_t stride, bool drop_remainder,
                                           pl_dataset **ret_dataset, pl_error *reterr);

/* Random order: each element is drawn of the `buffer_size` that come next. The same `seed`, which
 * is not negative, draws the same on any machine; PL_AUTO: one from the system. Each pass, and each
 * round of a repeat, draws otherwise if it is to reshuffle; else all draw the same. Over a source
 * that knows its places (range, slices, files) the buffer holds places, not elements. */
PL_API PL_MUST_CHECK int pl_dataset_shuffle(pl_dataset *input, int64_t buffer_size, int64_t seed,
                                            bool reshuffle_each_iteration, pl_dataset **ret_dataset,
                                            pl_error *reterr);

/* `n` times; negative: for ever. */
PL_API PL_MUST_CHECK int pl_dataset_repeat(pl_dataset *input, int64_t n, pl_dataset **ret_dataset,
                                           pl_error *reterr);

/* The first `n`, or all but these; negative: all of them. */
PL_API PL_MUST_CHECK int pl_dataset_take(pl_dataset *input, int64_t n, pl_dataset **ret_dataset,
                                         pl_error *reterr);
PL_API PL_MUST_CHECK int pl_dataset_skip(pl_dataset *input, int64_t n, pl_dataset **ret_dataset,
                                         pl_error *reterr);

/* Every `n`-th element from `index` on: what one of n processes reads. `n` PL_AUTO: both from what
 * started the process (torchrun, Open MPI, PMI, Slurm); all of it, if nothing did. */
PL_API PL_MUST_CHECK int pl_dataset_shard(pl_dataset *input, int64_t n, int64_t index,
                                          pl_dataset **ret_dataset, pl_error *reterr);

/* Each element with its number before it, an int64 from `start` on. */
PL_API PL_MUST_CHECK int pl_dataset_enumerate(pl_dataset *input, int64_t start,
                                              pl_dataset **ret_dataset, pl_error *reterr);

/* The function takes a state, `initial` at first, and an element, and gives the next state and what
 * becomes of the element. */
PL_API PL_MUST_CHECK int pl_dataset_scan(pl_dataset *input, pl_tensor *const *initial, int n_state,
                                         const pl_function *function, pl_dataset **ret_dataset,
                                         pl_error *reterr);

/* Goes through all of it: the last state of a function that gives nothing else; one value for each
 * of `initial`, the caller's to unref. */
PL_API PL_MUST_CHECK int pl_dataset_reduce(pl_dataset *input, pl_tensor *const *initial,
                                           int n_state, const pl_function *function,
                                           pl_value *ret_values, pl_error *reterr);

/* The same as the one element of a dataset: for who wants to cancel it, or to watch. */
PL_API PL_MUST_CHECK int pl_dataset_reduction(pl_dataset *input, pl_tensor *const *initial,
                                              int n_state, const pl_function *function,
                                              pl_dataset **ret_dataset, pl_error *reterr);

/* ---- what is kept ---- */

/* The first pass that comes to its end keeps the elements, in memory (`path` NULL) or in a file;
 * later ones read them there, and the input is not touched. A file that is not complete, or of
 * another dataset, is written anew; one that is something else altogether is refused: PL_EFORMAT.
 */
PL_API PL_MUST_CHECK int pl_dataset_cache(pl_dataset *input, const char *path,
                                          pl_dataset **ret_dataset, pl_error *reterr);

/* The same in a folder of `n_shards` files, which pl_dataset_load() reads as well. */
PL_API PL_MUST_CHECK int pl_dataset_snapshot(pl_dataset *input, const char *path, int64_t n_shards,
                                             pl_dataset **ret_dataset, pl_error *reterr);

/* Writes all elements to such a folder now. A bad one ends that, with its error. */
PL_API PL_MUST_CHECK int pl_dataset_save(pl_dataset *dataset, const char *path, int64_t n_shards,
                                         pl_error *reterr);

/* The same of what a pass has still to give: for who wants to cancel it, or to watch. */
PL_API PL_MUST_CHECK int pl_iterator_save_rest(pl_iterator *iterator, const char *path,
                                               int64_t n_shards, pl_error *reterr);

/* The elements of a folder, without what made them. -ENOENT if there is nothing complete. */
PL_API PL_MUST_CHECK int pl_dataset_load(pl_runtime *runtime, const char *path,
                                         pl_dataset **ret_dataset, pl_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
