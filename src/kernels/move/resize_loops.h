/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by resize.c and the builds of resize_loops.c: see isa_table.h. */
#ifndef PL_KERNELS_MOVE_RESIZE_LOOPS_H
#define PL_KERNELS_MOVE_RESIZE_LOOPS_H

#include "kernels/isa.h"
#include "kernels/move/resize.h"

typedef struct pl_resize_loops {
    void (*row_u8)(const uint8_t *row, int64_t n_in, int64_t n_channels, const pl_resize_tap *taps,
                   int64_t n_out, float *out);
    void (*row_f32)(const float *row, int64_t n_in, int64_t n_channels, const pl_resize_tap *taps,
                    int64_t n_out, float *out);
    void (*span_row_u8)(const uint8_t *row, int64_t n_in, int64_t n_channels,
                        const pl_resize_span *spans, const float *weights, int64_t places,
                        int64_t n_out, float *out);
    void (*span_row_f32)(const float *row, int64_t n_in, int64_t n_channels,
                         const pl_resize_span *spans, const float *weights, int64_t places,
                         int64_t n_out, float *out);
    void (*sum)(const float *const *rows, const float *weights, int n_rows, bool first, float *out,
                int64_t n);
    void (*blend)(const float *top, const float *bottom, float lerp, float *out, int64_t n);
} pl_resize_loops;

#if PL_HAS_X86_BUILDS
/* pl_resize_picks_set(), with a table of the right size. */
bool pl_resize_set_picks_avx2(pl_isa isa, pl_resize_picks *picks, const pl_resize_tap *taps,
                              int64_t n_in, int64_t n_channels, int64_t n_out);
#endif

extern const pl_resize_loops pl_resize_loops_plain, pl_resize_loops_avx2;

#endif
