/* SPDX-License-Identifier: Apache-2.0 */
/* Running sums: chooses the loop. */
#include "kernels/isa_table.h"
#include "kernels/reduce/reduce.h"
#include "kernels/row/scan_loops.h"

pl_dtype pl_scan_result(pl_dtype dtype)
{
    return pl_reduce_result((pl_reduce){PL_REDUCE_SUM, dtype});
}

void pl_scan_rows(pl_scan scan, const pl_scan_tile *tile, void *carry)
{
    PL_ISA_TABLE(pl_scan_loops)->rows[scan.dtype](scan, tile, carry);
}

void pl_scan_columns(pl_scan scan, const pl_scan_tile *tile, void *carry)
{
    PL_ISA_TABLE(pl_scan_loops)->columns[scan.dtype](scan, tile, carry);
}
