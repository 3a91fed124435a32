/* SPDX-License-Identifier: Apache-2.0 */
/* The words that every tensor is described in.
 *   dtype    what an element is. bool is one byte, 0 or 1; a string is bytes of any length
 *   storage  f16 and bf16 are kept and converted; what computes with them goes through f32
 *   shape    how many elements along each axis, outermost first; rank 0 is one element
 *   unknown  a dimension that a graph does not know yet; data never has one
 *
 *   0 <= rank <= PL_RANK_MAX;  each of dims[0 .. rank-1] is PL_UNKNOWN or >= 0; the rest is ignored
 *
 * Plain values: copy them, share them between threads as one shares an int. */
#ifndef PLIMSOLL_TENSOR_H
#define PLIMSOLL_TENSOR_H

#include <stdint.h>

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

typedef struct pl_shape {
    int32_t rank;
    int64_t dims[PL_RANK_MAX];
} pl_shape;

#ifdef __cplusplus
}
#endif
#endif
