/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files that are compiled once per instruction set, each time with other -m flags and
 * another PL_ISA, which is part of every exported name (see meson.build).
 *
 * Loops are written plainly, for the vectorizer. They use IEEE operations on floats, which give the
 * same bits in a vector and in the tail after it; other functions (a library's) get only padded
 * vectors. Built without contraction (-ffp-contract=off): a fused multiply-add is written as
 * one. */
#ifndef PL_KERNELS_STRIP_H
#define PL_KERNELS_STRIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef PL_ISA
#error "PL_ISA names the instruction set: see src/kernels/meson.build"
#endif

#define PL_ISA_PASTE(name, isa) name##_##isa
#define PL_ISA_NAME(name, isa)  PL_ISA_PASTE(name, isa)
#define PL_OF_ISA(name)         PL_ISA_NAME(name, PL_ISA)

/* A loop whose iterations are independent: an output is one of the inputs or does not overlap them,
 * which the compiler cannot see, and would check at run time. */
#ifdef __clang__
#define PL_EACH(i, n)                                                                              \
    _Pragma("clang loop vectorize(assume_safety) interleave(assume_safety)") for (size_t i = 0;    \
                                                                                  i < (n); i++)
#else
#define PL_EACH(i, n) _Pragma("GCC ivdep") for (size_t i = 0; i < (n); i++)
#endif

/* Each calls X(op, E, constant, type, type to compute in without overflow). */
#define PL_UNSIGNED(X, op, E)                                                                      \
    X(op, E, U8, uint8_t, uint32_t)                                                                \
    X(op, E, U16, uint16_t, uint32_t)                                                              \
    X(op, E, U32, uint32_t, uint32_t)                                                              \
    X(op, E, U64, uint64_t, uint64_t)
#define PL_SIGNED(X, op, E)                                                                        \
    X(op, E, I8, int8_t, uint32_t)                                                                 \
    X(op, E, I16, int16_t, uint32_t)                                                               \
    X(op, E, I32, int32_t, uint32_t)                                                               \
    X(op, E, I64, int64_t, uint64_t)
#define PL_FLOATS(X, op, E)                                                                        \
    X(op, E, F32, float, float)                                                                    \
    X(op, E, F64, double, double)
#define PL_INTEGERS(X, op, E) PL_UNSIGNED(X, op, E) PL_SIGNED(X, op, E)
#define PL_NUMBERS(X, op, E)  PL_INTEGERS(X, op, E) PL_FLOATS(X, op, E)
#define PL_BOOLS(X, op, E)    X(op, E, BOOL, uint8_t, uint32_t)
#define PL_WHOLES(X, op, E)   PL_BOOLS(X, op, E) PL_INTEGERS(X, op, E)
#define PL_ANY(X, op, E)      PL_BOOLS(X, op, E) PL_NUMBERS(X, op, E)

#endif
