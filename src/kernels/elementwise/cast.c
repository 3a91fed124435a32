/* SPDX-License-Identifier: Apache-2.0 */
/* See cast.h: chooses the kernel, and converts f16 and bf16 through a piece of f32 on the stack,
 * short enough to stay in the first-level cache. */
#include "kernels/elementwise/cast.h"

#include <string.h>

#include "kernels/elementwise/cast_loops.h"
#include "kernels/isa.h"
#include "tensor/dtype.h"

enum { PIECE = 512 };

#if PL_HAS_X86_BUILDS
#define BY_ISA(isa, name)                                                                          \
    ((isa) == PL_ISA_AVX512 ? name##_avx512 : (isa) == PL_ISA_AVX2 ? name##_avx2 : name##_plain)
#else
#define BY_ISA(isa, name) ((void)(isa), name##_plain)
#endif

static void f64_to_odd_f32(void *out, const void *in, size_t n)
{
    BY_ISA(pl_isa_best(), pl_cast_f64_to_odd_f32)(out, in, n);
}

typedef void half_reader(const uint16_t *from, float *to, size_t n);
typedef void half_writer(const float *from, uint16_t *to, size_t n);

static void read_through_f32(char *out, const uint16_t *in, size_t n, half_reader *read,
                             pl_cast_kernel then, size_t item_bytes)
{
    float piece[PIECE];
    for (size_t count; n > 0; n -= count, in += count, out += count * item_bytes) {
        count = n < PIECE ? n : PIECE;
        read(in, piece, count);
        then(out, piece, count);
    }
}

static void write_through_f32(uint16_t *out, const char *in, size_t n, pl_cast_kernel first,
                              half_writer *write, size_t item_bytes)
{
    float piece[PIECE];
    for (size_t count; n > 0; n -= count, out += count, in += count * item_bytes) {
        count = n < PIECE ? n : PIECE;
        first(piece, in, count);
        write(piece, out, count);
    }
}

/* A kernel takes no parameters of its own, so each pair has a function. */
#define BETWEEN(HALF, half, OTHER, bytes, to_f32)                                                  \
    static void HALF##_to_##OTHER(void *out, const void *in, size_t n)                             \
    {                                                                                              \
        read_through_f32(out, in, n, pl_##half##_to_f32,                                           \
                         BY_ISA(pl_isa_best(), pl_cast_loop)(PL_F32, PL_##OTHER), bytes);          \
    }                                                                                              \
    static void OTHER##_to_##HALF(void *out, const void *in, size_t n)                             \
    {                                                                                              \
        write_through_f32(out, in, n, to_f32, pl_f32_to_##half, bytes);                            \
    }
#define FROM_LOOP(OTHER) BY_ISA(pl_isa_best(), pl_cast_loop)(PL_##OTHER, PL_F32)

#define HALF_ROWS(X, HALF, half)                                                                   \
    X(HALF, half, BOOL, 1, FROM_LOOP(BOOL))                                                        \
    X(HALF, half, U8, 1, FROM_LOOP(U8))                                                            \
    X(HALF, half, I8, 1, FROM_LOOP(I8))                                                            \
    X(HALF, half, U16, 2, FROM_LOOP(U16))                                                          \
    X(HALF, half, I16, 2, FROM_LOOP(I16))                                                          \
    X(HALF, half, U32, 4, FROM_LOOP(U32))                                                          \
    X(HALF, half, I32, 4, FROM_LOOP(I32))                                                          \
    X(HALF, half, U64, 8, FROM_LOOP(U64))                                                          \
    X(HALF, half, I64, 8, FROM_LOOP(I64))                                                          \
    X(HALF, half, F64, 8, f64_to_odd_f32)
HALF_ROWS(BETWEEN, F16, f16)
HALF_ROWS(BETWEEN, BF16, bf16)

static void F16_to_F32(void *out, const void *in, size_t n)
{
    pl_f16_to_f32(in, out, n);
}

static void BF16_to_F32(void *out, const void *in, size_t n)
{
    pl_bf16_to_f32(in, out, n);
}

static void F32_to_F16(void *out, const void *in, size_t n)
{
    pl_f32_to_f16(in, out, n);
}

static void F32_to_BF16(void *out, const void *in, size_t n)
{
    pl_f32_to_bf16(in, out, n);
}

static void F16_to_BF16(void *out, const void *in, size_t n)
{
    read_through_f32(out, in, n, pl_f16_to_f32, F32_to_BF16, 2);
}

static void BF16_to_F16(void *out, const void *in, size_t n)
{
    read_through_f32(out, in, n, pl_bf16_to_f32, F32_to_F16, 2);
}

#define COPY(bytes)                                                                                \
    static void copy_##bytes(void *out, const void *in, size_t n)                                  \
    {                                                                                              \
        memmove(out, in, n *bytes);                                                                \
    }
COPY(1)
COPY(2)
COPY(4)
COPY(8)

/* Conversions that copy bytes: the same dtype, or integers of one size. */
static pl_cast_kernel find_copy(size_t item_bytes)
{
    switch (item_bytes) {
    case 1:
        return copy_1;
    case 2:
        return copy_2;
    case 4:
        return copy_4;
    case 8:
        return copy_8;
    default:
        return NULL;
    }
}

static pl_cast_kernel find_half(pl_dtype from, pl_dtype to)
{
    switch ((unsigned)from << 4 | (unsigned)to) {
#define PAIR(FROM, TO)                                                                             \
    case PL_##FROM << 4 | PL_##TO:                                                                 \
        return FROM##_to_##TO;
#define PAIRS(HALF, half, OTHER, bytes, to_f32) PAIR(HALF, OTHER) PAIR(OTHER, HALF)
        HALF_ROWS(PAIRS, F16, f16)
        HALF_ROWS(PAIRS, BF16, bf16)
        PAIR(F16, F32)
        PAIR(BF16, F32)
        PAIR(F32, F16)
        PAIR(F32, BF16)
        PAIR(F16, BF16)
        PAIR(BF16, F16)
    default:
        return NULL;
    }
}

static bool is_integer(const pl_dtype_info *info)
{
    return info->kind == PL_KIND_SIGNED || info->kind == PL_KIND_UNSIGNED;
}

pl_cast_kernel pl_cast_find_for(pl_isa isa, pl_dtype from, pl_dtype to)
{
    const pl_dtype_info *source = pl_dtype_info_of(from), *target = pl_dtype_info_of(to);
    if (source->item_bytes == target->item_bytes &&
        (from == to || (is_integer(source) && is_integer(target))))
        return find_copy(source->item_bytes);
    pl_cast_kernel half = find_half(from, to);
    return half ? half : BY_ISA(isa, pl_cast_loop)(from, to);
}

pl_cast_kernel pl_cast_find(pl_dtype from, pl_dtype to)
{
    return pl_cast_find_for(pl_isa_best(), from, to);
}
