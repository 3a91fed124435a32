/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors, and the words that they are described in.
 *   dtype    what an element is. bool is one byte, 0 or 1; a string is bytes of any length
 *   storage  f16 and bf16 are kept and converted; what computes with them goes through f32
 *   shape    how many elements along each axis, outermost first; rank 0 is one element
 *   unknown  a dimension that a graph does not know yet; data never has one
 *
 *   tensor   elements in a buffer, which other tensors may share. Never changed once made
 *   runtime  a budget, its threads and its spill file: what tensors and sessions live in
 *
 *   0 <= rank <= PL_RANK_MAX;  each of dims[0 .. rank-1] is PL_UNKNOWN or >= 0; the rest is ignored
 *
 * Dtypes and shapes are plain values. Tensors and runtimes are counted: what is given out is the
 * caller's to give back with unref. Safe from any thread. */
#ifndef PLIMSOLL_TENSOR_H
#define PLIMSOLL_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plimsoll/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One table: number, constant, name, NumPy's name in .npy files, bytes of an element, kind. NumPy
 * has no bfloat16: ml_dtypes writes the two bytes as "<V2". A string's bytes are 0 here: in an
 * .npy file they are "|S" and a width. The numbers are part of the ABI: only append. */
#define PL_DTYPE_TABLE(X)                                                                          \
    X(1, PL_BOOL, "bool", "|b1", 1, PL_KIND_BOOL)                                                  \
    X(2, PL_U8, "uint8", "|u1", 1, PL_KIND_UNSIGNED)                                               \
    X(3, PL_I8, "int8", "|i1", 1, PL_KIND_SIGNED)                                                  \
    X(4, PL_U16, "uint16", "<u2", 2, PL_KIND_UNSIGNED)                                             \
    X(5, PL_I16, "int16", "<i2", 2, PL_KIND_SIGNED)                                                \
    X(6, PL_U32, "uint32", "<u4", 4, PL_KIND_UNSIGNED)                                             \
    X(7, PL_I32, "int32", "<i4", 4, PL_KIND_SIGNED)                                                \
    X(8, PL_U64, "uint64", "<u8", 8, PL_KIND_UNSIGNED)                                             \
    X(9, PL_I64, "int64", "<i8", 8, PL_KIND_SIGNED)                                                \
    X(10, PL_F16, "float16", "<f2", 2, PL_KIND_FLOAT)                                              \
    X(11, PL_BF16, "bfloat16", "<V2", 2, PL_KIND_FLOAT)                                            \
    X(12, PL_F32, "float32", "<f4", 4, PL_KIND_FLOAT)                                              \
    X(13, PL_F64, "float64", "<f8", 8, PL_KIND_FLOAT)                                              \
    X(14, PL_STRING, "string", "|S", 0, PL_KIND_STRING)

typedef enum pl_dtype {
    PL_DTYPE_NONE = 0, /* not said, or not known */
#define PL_DTYPE_ENUM(number, constant, name, descr, bytes, kind) constant = number,
    PL_DTYPE_TABLE(PL_DTYPE_ENUM)
#undef PL_DTYPE_ENUM
} pl_dtype;

typedef enum pl_kind {
    PL_KIND_NONE,
    PL_KIND_BOOL,
    PL_KIND_UNSIGNED,
    PL_KIND_SIGNED,
    PL_KIND_FLOAT,
    PL_KIND_STRING,
} pl_kind;

#define PL_RANK_MAX 8
#define PL_UNKNOWN  INT64_C(-1)

/* A rank that is not known, where that is allowed; every dimension then is not, either. */
#define PL_RANK_UNKNOWN (-1)

typedef struct pl_shape {
    int32_t rank;
    int64_t dims[PL_RANK_MAX];
} pl_shape;

typedef struct pl_runtime pl_runtime;
typedef struct pl_tensor pl_tensor;

typedef struct pl_runtime_options {
    size_t size;             /* of this struct, as it was compiled; 0: as in 0.1: libplimsoll(3) */
    const char *budget_text; /* "2G", "80%" of what there is; NULL: all there is */
    uint64_t cap_bytes;      /* the most that values and scratch may take; 0: the budget */
    const char *spill_directory; /* NULL: $PLIMSOLL_SPILL, else a folder that is not in memory */
    uint64_t spill_limit_bytes;  /* 0: what the disk has */
    int n_threads;               /* 0: as many as there are processors to use */
} pl_runtime_options;

/* `options` may be NULL. PL_EFORMAT for a budget that is no size, PL_EBUDGET for one that is too
 * small. */
PL_API PL_MUST_CHECK int pl_runtime_new(const pl_runtime_options *options, pl_runtime **ret_runtime,
                                        pl_error *reterr);
PL_API pl_runtime *pl_runtime_ref(pl_runtime *runtime);

/* Tensors and sessions keep it alive as well. NULL is allowed. */
PL_API void pl_runtime_unref(pl_runtime *runtime);

/* The most that values and scratch may take, as far as others leave it. */
PL_API uint64_t pl_runtime_limit_bytes(const pl_runtime *runtime);

/* What they take now, and the most that they ever took. */
PL_API uint64_t pl_runtime_claimed_bytes(const pl_runtime *runtime);
PL_API uint64_t pl_runtime_peak_bytes(const pl_runtime *runtime);

/* What could be claimed now, with idle tensors moved out. */
PL_API uint64_t pl_runtime_left_bytes(pl_runtime *runtime);

/* Moves idle tensors out until `bytes` are free, or none is left: for whoever is about to allocate
 * as much by other means. Returns what was given back. */
PL_API uint64_t pl_runtime_make_room(pl_runtime *runtime, uint64_t bytes);

/* A copy of elements that lie one after the other, last axis first; `what` is its name in messages,
 * NULL: "tensor". Likewise below.
 * -EINVAL for a shape that is not known, or for strings; PL_EBUDGET. */
PL_API PL_MUST_CHECK int pl_tensor_new(pl_runtime *runtime, pl_dtype dtype, const pl_shape *shape,
                                       const void *data, const char *what, pl_tensor **ret_tensor,
                                       pl_error *reterr);

/* Elements that somebody has: `data` is the first one, of any alignment; strides are as
 * pl_tensor_pin() gives them, NULL: one after the other. */
typedef struct pl_elements {
    pl_dtype dtype;
    pl_shape shape;
    const int64_t *strides;
    const void *data;
} pl_elements;

typedef struct pl_copy_options {
    size_t size;        /* of this struct, as it was compiled; 0: as in 0.1: libplimsoll(3) */
    const int *cancel;  /* may be NULL; read atomically: once it is not 0, this is -ECANCELED */
    bool never_spilled; /* for who can wait until there is room, as a dataset does */
} pl_copy_options;

/* The same of elements that lie anywhere, cast as the op "cast" does it, in another shape if that
 * has as many: -EINVAL if not. `options` may be NULL. Nothing lies beside the elements and their
 * copy meanwhile.
 *
 * A copy that memory has no room for, beside what the process uses, is written to the spill file
 * piece by piece, and is what a tensor is that was moved out: it comes into memory when it is
 * needed there. For a piece (512 KiB) there is room in the reserve, also where the line is passed.
 * Not below that size. PL_EBUDGET if it cannot be spilled either; what writing gave. */
PL_API PL_MUST_CHECK int pl_tensor_new_from(pl_runtime *runtime, pl_dtype dtype,
                                            const pl_shape *shape, const pl_elements *elements,
                                            const pl_copy_options *options, const char *what,
                                            pl_tensor **ret_tensor, pl_error *reterr);

/* Bytes; `data` may be NULL where there are none. */
typedef struct pl_string {
    const void *data;
    size_t n;
} pl_string;

/* The same for strings, which are copied: one for each element. */
PL_API PL_MUST_CHECK int pl_tensor_new_strings(pl_runtime *runtime, const pl_shape *shape,
                                               const pl_string *strings, const char *what,
                                               pl_tensor **ret_tensor, pl_error *reterr);

/* Elements that somebody else has, where they are: nothing is copied, nor claimed, and they are
 * never moved out. `data` is the first one; strides are as pl_tensor_pin() gives them, NULL: one
 * after the other. Nobody changes them until release() was called, from any thread, when no tensor
 * needs them any more; also if this fails. -EINVAL for strings. */
PL_API PL_MUST_CHECK int pl_tensor_borrow(pl_runtime *runtime, pl_dtype dtype,
                                          const pl_shape *shape, const int64_t *strides,
                                          const void *data, void (*release)(void *context),
                                          void *context, const char *what, pl_tensor **ret_tensor,
                                          pl_error *reterr);

/* An .npy file where it is: read as it is needed, never copied whole; but one with its bytes
 * swapped is, and strings are, without the NULs at their ends. What is wrong with the file is told
 * as numpy.load() would. */
PL_API PL_MUST_CHECK int pl_tensor_open_npy(pl_runtime *runtime, const char *path,
                                            pl_tensor **ret_tensor, pl_error *reterr);

/* What numpy.save() would write, piece by piece. -EINVAL for a string that ends with NUL, which
 * NumPy would cut off. */
PL_API PL_MUST_CHECK int pl_tensor_save_npy(pl_tensor *tensor, const char *path, pl_error *reterr);

PL_API pl_tensor *pl_tensor_ref(pl_tensor *tensor);
PL_API void pl_tensor_unref(pl_tensor *tensor); /* NULL is allowed */

PL_API pl_dtype pl_tensor_dtype(const pl_tensor *tensor);
PL_API const pl_shape *pl_tensor_shape(const pl_tensor *tensor);

/* Elements times their size; views share what they view. Of strings: all that the tensor shares. */
PL_API uint64_t pl_tensor_bytes(const pl_tensor *tensor);

/* Brings it into memory, where it stays until pl_tensor_unpin(). strides[i] are the bytes from one
 * element to the next along axis i, and may be negative or 0. */
PL_API PL_MUST_CHECK int pl_tensor_pin(pl_tensor *tensor, const void **ret_data,
                                       int64_t strides[PL_RANK_MAX], pl_error *reterr);
PL_API void pl_tensor_unpin(pl_tensor *tensor);

/* One element of strings; its bytes stay until pl_tensor_unpin(), as often as this was called.
 * -EINVAL if it is not there, or no string. What is above and below has no strings. */
PL_API PL_MUST_CHECK int pl_tensor_pin_string(pl_tensor *tensor, const int64_t *at,
                                              pl_string *ret_string, pl_error *reterr);

/* Copies the elements [begin, begin + extent) to `data`, one after the other, wherever the tensor
 * is, without bringing it into memory as a whole; but a view whose elements do not lie in order is,
 * if there is room for it. */
PL_API PL_MUST_CHECK int pl_tensor_read(pl_tensor *tensor, const int64_t *begin,
                                        const int64_t *extent, void *data, pl_error *reterr);

/* Views. Every step-th element from start on, `count` of them along each axis: -EINVAL if one is
 * not there. Axes in another order. */
PL_API PL_MUST_CHECK int pl_tensor_slice(pl_tensor *tensor, const int64_t *start,
                                         const int64_t *step, const int64_t *count,
                                         pl_tensor **ret_view, pl_error *reterr);
PL_API PL_MUST_CHECK int pl_tensor_transpose(pl_tensor *tensor, const int *axes,
                                             pl_tensor **ret_view, pl_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
