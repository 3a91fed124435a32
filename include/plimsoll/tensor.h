/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors, dtypes, shapes, and the runtime they live in.
 *   dtype    the type of an element. bool is one byte, 0 or 1; a string is bytes of any length
 *   storage  f16 and bf16 are stored and converted; ops compute with them in f32
 *   shape    the number of elements along each axis, outermost first; rank 0 is one element
 *   unknown  a dimension that a graph does not know yet; data has none
 *
 *   tensor   elements in a buffer, which other tensors may share. Never changed once made
 *   runtime  a budget, its threads and its spill file, in which tensors and sessions live
 *
 *   0 <= rank <= PL_RANK_MAX;  each of dims[0 .. rank-1] is PL_UNKNOWN or >= 0; the rest is ignored
 *
 * Dtypes and shapes are plain values. Tensors and runtimes are reference-counted: the caller
 * releases what it is given with unref. Safe from any thread. */
#ifndef PLIMSOLL_TENSOR_H
#define PLIMSOLL_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plimsoll/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One table: number, constant, name, NumPy's name in .npy files, bytes per element, kind. NumPy has
 * no bfloat16: ml_dtypes writes the two bytes as "<V2". A string has 0 bytes here: in an .npy file
 * it is "|S" and a width. The numbers are part of the ABI: only append. */
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
    PL_DTYPE_NONE = 0, /* not given, or not known */
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

/* An unknown rank, where that is allowed; every dimension is then unknown too. */
#define PL_RANK_UNKNOWN (-1)

typedef struct pl_shape {
    int32_t rank;
    int64_t dims[PL_RANK_MAX];
} pl_shape;

typedef struct pl_runtime pl_runtime;
typedef struct pl_tensor pl_tensor;

typedef struct pl_runtime_options {
    size_t size;                 /* sizeof this struct; 0: as in version 0.1; see libplimsoll(3) */
    const char *budget_text;     /* "2G", "80%" of what is available; NULL: all of it */
    uint64_t cap_bytes;          /* the most that values and scratch may take; 0: the budget */
    const char *spill_directory; /* NULL: $PLIMSOLL_SPILL, else a folder that is not in memory */
    uint64_t spill_limit_bytes;  /* 0: the free disk space */
    int n_threads;               /* 0: one per available processor */
} pl_runtime_options;

/* `options` may be NULL. PL_EFORMAT if the budget is not a size, PL_EBUDGET if it is too small. */
PL_API PL_MUST_CHECK int pl_runtime_new(const pl_runtime_options *options, pl_runtime **ret_runtime,
                                        pl_error *reterr);
PL_API pl_runtime *pl_runtime_ref(pl_runtime *runtime);

/* Releases a reference; tensors and sessions hold references too. NULL is allowed. */
PL_API void pl_runtime_unref(pl_runtime *runtime);

/* Returns the most that values and scratch may take, if other users of memory leave as much. */
PL_API uint64_t pl_runtime_limit_bytes(const pl_runtime *runtime);

/* Return what they take now, and the most they have taken. */
PL_API uint64_t pl_runtime_claimed_bytes(const pl_runtime *runtime);
PL_API uint64_t pl_runtime_peak_bytes(const pl_runtime *runtime);

/* Returns what could be claimed now, after spilling idle tensors. */
PL_API uint64_t pl_runtime_left_bytes(pl_runtime *runtime);

/* Spills idle tensors until `bytes` are free, or none is left: call it before allocating that much
 * by other means. Returns the bytes freed. */
PL_API uint64_t pl_runtime_make_room(pl_runtime *runtime, uint64_t bytes);

/* Copies elements that lie one after the other, last axis first. `what` is the tensor's name in
 * messages, here and below; NULL: "tensor". -EINVAL for an unknown shape, or for strings;
 * PL_EBUDGET. */
PL_API PL_MUST_CHECK int pl_tensor_new(pl_runtime *runtime, pl_dtype dtype, const pl_shape *shape,
                                       const void *data, const char *what, pl_tensor **ret_tensor,
                                       pl_error *reterr);

/* Elements in the caller's memory: `data` is the first one, of any alignment; strides as from
 * pl_tensor_pin(), NULL: one after the other. */
typedef struct pl_elements {
    pl_dtype dtype;
    pl_shape shape;
    const int64_t *strides;
    const void *data;
} pl_elements;

typedef struct pl_copy_options {
    size_t size;        /* sizeof this struct; 0: as in version 0.1; see libplimsoll(3) */
    const int *cancel;  /* may be NULL; read atomically: once it is not 0, fails with -ECANCELED */
    bool never_spilled; /* for callers that can wait for room, such as datasets */
} pl_copy_options;

/* Copies elements that lie anywhere, cast as by the op "cast", to a shape with as many elements:
 * -EINVAL otherwise. `options` may be NULL. Uses no memory beyond the elements and their copy.
 *
 * If the copy does not fit in memory, beside what the process uses, it is written to the spill file
 * piece by piece: the tensor is then like one that was spilled, and is read back when it is needed.
 * A piece (512 KiB) can use the reserve, even above the line. Smaller copies are not spilled.
 * PL_EBUDGET if it cannot be spilled either; errors of writing. */
PL_API PL_MUST_CHECK int pl_tensor_new_from(pl_runtime *runtime, pl_dtype dtype,
                                            const pl_shape *shape, const pl_elements *elements,
                                            const pl_copy_options *options, const char *what,
                                            pl_tensor **ret_tensor, pl_error *reterr);

/* Bytes; `data` may be NULL if n is 0. */
typedef struct pl_string {
    const void *data;
    size_t n;
} pl_string;

/* Copies strings: one for each element. */
PL_API PL_MUST_CHECK int pl_tensor_new_strings(pl_runtime *runtime, const pl_shape *shape,
                                               const pl_string *strings, const char *what,
                                               pl_tensor **ret_tensor, pl_error *reterr);

/* Wraps elements in the caller's memory without copying or claiming; they are never spilled. `data`
 * is the first one; strides as from pl_tensor_pin(), NULL: one after the other. They must not
 * change until release() is called, from any thread, when no tensor needs them any more; it is also
 * called if this fails. -EINVAL for strings. */
PL_API PL_MUST_CHECK int pl_tensor_borrow(pl_runtime *runtime, pl_dtype dtype,
                                          const pl_shape *shape, const int64_t *strides,
                                          const void *data, void (*release)(void *context),
                                          void *context, const char *what, pl_tensor **ret_tensor,
                                          pl_error *reterr);

/* Opens an .npy file in place: it is read as needed and never copied whole, except one with swapped
 * bytes, and strings, which lose the NULs at their ends. Errors in the file are those of
 * numpy.load(). */
PL_API PL_MUST_CHECK int pl_tensor_open_npy(pl_runtime *runtime, const char *path,
                                            pl_tensor **ret_tensor, pl_error *reterr);

/* Writes what numpy.save() would write, piece by piece. -EINVAL for a string that ends with NUL,
 * which NumPy would cut off. */
PL_API PL_MUST_CHECK int pl_tensor_save_npy(pl_tensor *tensor, const char *path, pl_error *reterr);

PL_API pl_tensor *pl_tensor_ref(pl_tensor *tensor);
PL_API void pl_tensor_unref(pl_tensor *tensor); /* NULL is allowed */

PL_API pl_dtype pl_tensor_dtype(const pl_tensor *tensor);
PL_API const pl_shape *pl_tensor_shape(const pl_tensor *tensor);

/* Returns the number of elements times their size; for strings, all that the tensor shares. Views
 * share what they view. */
PL_API uint64_t pl_tensor_bytes(const pl_tensor *tensor);

/* Brings it into memory, where it stays until pl_tensor_unpin(). strides[i] is the distance in
 * bytes between elements along axis i, and can be negative or 0. */
PL_API PL_MUST_CHECK int pl_tensor_pin(pl_tensor *tensor, const void **ret_data,
                                       int64_t strides[PL_RANK_MAX], pl_error *reterr);
PL_API void pl_tensor_unpin(pl_tensor *tensor);

/* Pins one string; its bytes stay valid until pl_tensor_unpin() has been called as often as this.
 * -EINVAL if there is no such element, or the tensor has no strings. pl_tensor_pin() and
 * pl_tensor_read() do not take strings. */
PL_API PL_MUST_CHECK int pl_tensor_pin_string(pl_tensor *tensor, const int64_t *at,
                                              pl_string *ret_string, pl_error *reterr);

/* Copies the elements [begin, begin + extent) to `data`, one after the other, wherever the tensor
 * is, without loading all of it; except for a view whose elements are not in order, which is loaded
 * if there is room. */
PL_API PL_MUST_CHECK int pl_tensor_read(pl_tensor *tensor, const int64_t *begin,
                                        const int64_t *extent, void *data, pl_error *reterr);

/* Make views: every step-th element from start, `count` of them along each axis (-EINVAL if one
 * does not exist); axes in another order. */
PL_API PL_MUST_CHECK int pl_tensor_slice(pl_tensor *tensor, const int64_t *start,
                                         const int64_t *step, const int64_t *count,
                                         pl_tensor **ret_view, pl_error *reterr);
PL_API PL_MUST_CHECK int pl_tensor_transpose(pl_tensor *tensor, const int *axes,
                                             pl_tensor **ret_view, pl_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
