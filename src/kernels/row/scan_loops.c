/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of running sums. Compiled once per instruction set: see strip.h. */
#include "kernels/row/scan_loops.h"
#include "kernels/strip.h"

#define IN_ROW(T, tile, r)    ((const T *)((const char *)(tile)->in + (r) * (tile)->in_row_bytes))
#define OUT_ROW(OUT, tile, r) ((OUT *)((char *)(tile)->out + (r) * (tile)->out_row_bytes))

/* Scans one row from its first element, or from its last: `step` is 1 or -1, and in[0] is where it
 * begins. With groups of four, the carry waits for one addition, not four. */
#define DEFINE_ROW(name, T, SUM, OUT)                                                              \
    static inline SUM name(const T *in, OUT *out, int64_t n, int64_t step, bool exclusive,         \
                           SUM carry)                                                              \
    {                                                                                              \
        int64_t i = 0;                                                                             \
        for (; i + 4 <= n; i += 4, in += 4 * step, out += 4 * step) {                              \
            SUM a = (SUM)in[0], b = (SUM)in[step], c = (SUM)in[2 * step], d = (SUM)in[3 * step];   \
            SUM ab = a + b, abc = ab + c, abcd = ab + (c + d);                                     \
            out[0] = (OUT)(exclusive ? carry : carry + a);                                         \
            out[step] = (OUT)(exclusive ? carry + a : carry + ab);                                 \
            out[2 * step] = (OUT)(exclusive ? carry + ab : carry + abc);                           \
            out[3 * step] = (OUT)(exclusive ? carry + abc : carry + abcd);                         \
            carry += abcd;                                                                         \
        }                                                                                          \
        for (; i < n; i++, in += step, out += step) {                                              \
            SUM next = carry + (SUM)in[0];                                                         \
            out[0] = (OUT)(exclusive ? carry : next);                                              \
            carry = next;                                                                          \
        }                                                                                          \
        return carry;                                                                              \
    }

#define DEFINE_ROWS(suffix, T, SUM, OUT)                                                           \
    static void rows_##suffix(pl_scan scan, const pl_scan_tile *tile, void *carry)                 \
    {                                                                                              \
        SUM *sums = carry;                                                                         \
        int64_t n = tile->n_columns, first = scan.reverse ? n - 1 : 0;                             \
        for (int64_t r = 0; r < tile->n_rows && n > 0; r++) {                                      \
            const T *in = IN_ROW(T, tile, r) + first;                                              \
            OUT *out = OUT_ROW(OUT, tile, r) + first;                                              \
            if (scan.reverse)                                                                      \
                sums[r] = row_##suffix(in, out, n, -1, scan.exclusive, sums[r]);                   \
            else if (scan.exclusive)                                                               \
                sums[r] = row_##suffix(in, out, n, 1, true, sums[r]);                              \
            else                                                                                   \
                sums[r] = row_##suffix(in, out, n, 1, false, sums[r]);                             \
        }                                                                                          \
    }

#define DEFINE_COLUMNS(suffix, T, SUM, OUT)                                                        \
    static void columns_##suffix(pl_scan scan, const pl_scan_tile *tile, void *carry)              \
    {                                                                                              \
        SUM *restrict sums = carry;                                                                \
        for (int64_t k = 0; k < tile->n_rows; k++) {                                               \
            int64_t r = scan.reverse ? tile->n_rows - 1 - k : k;                                   \
            const T *in = IN_ROW(T, tile, r);                                                      \
            OUT *out = OUT_ROW(OUT, tile, r);                                                      \
            for (int64_t i = 0; i < tile->n_columns; i++) {                                        \
                SUM before = sums[i], after = before + (SUM)in[i];                                 \
                out[i] = (OUT)(scan.exclusive ? before : after);                                   \
                sums[i] = after;                                                                   \
            }                                                                                      \
        }                                                                                          \
    }

#define DEFINE(suffix, T, SUM, OUT)                                                                \
    DEFINE_ROW(row_##suffix, T, SUM, OUT)                                                          \
    DEFINE_ROWS(suffix, T, SUM, OUT)                                                               \
    DEFINE_COLUMNS(suffix, T, SUM, OUT)

DEFINE(u8, uint8_t, uint64_t, uint64_t)
DEFINE(i8, int8_t, uint64_t, uint64_t)
DEFINE(u16, uint16_t, uint64_t, uint64_t)
DEFINE(i16, int16_t, uint64_t, uint64_t)
DEFINE(u32, uint32_t, uint64_t, uint64_t)
DEFINE(i32, int32_t, uint64_t, uint64_t)
DEFINE(u64, uint64_t, uint64_t, uint64_t)
DEFINE(f32, float, double, float)
DEFINE(f64, double, double, double)

#define TABLE(way)                                                                                 \
    [PL_BOOL] = way##_u8, [PL_U8] = way##_u8, [PL_I8] = way##_i8, [PL_U16] = way##_u16,            \
    [PL_I16] = way##_i16, [PL_U32] = way##_u32, [PL_I32] = way##_i32, [PL_U64] = way##_u64,        \
    [PL_I64] = way##_u64, [PL_F32] = way##_f32, [PL_F64] = way##_f64

const pl_scan_loops PL_OF_ISA(pl_scan_loops) = {.rows = {TABLE(rows)}, .columns = {TABLE(columns)}};
