/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by scan.c and the builds of scan_loops.c: see isa_table.h. */
#ifndef PL_KERNELS_ROW_SCAN_LOOPS_H
#define PL_KERNELS_ROW_SCAN_LOOPS_H

#include "kernels/row/scan.h"

#define PL_SCAN_N_DTYPES (PL_F64 + 1)

typedef void pl_scan_loop(pl_scan scan, const pl_scan_tile *tile, void *carry);

typedef struct pl_scan_loops {
    pl_scan_loop *rows[PL_SCAN_N_DTYPES];
    pl_scan_loop *columns[PL_SCAN_N_DTYPES];
} pl_scan_loops;

extern const pl_scan_loops pl_scan_loops_plain, pl_scan_loops_avx2;

#endif
