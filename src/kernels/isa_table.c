/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the table of loops: see isa_table.h. */
#include "kernels/isa_table.h"

static int limit = PL_ISA_AVX512;

pl_isa pl_isa_used(void)
{
    pl_isa most = (pl_isa)__atomic_load_n(&limit, __ATOMIC_RELAXED), best = pl_isa_best();
    return best < most ? best : most;
}

void pl_isa_limit(pl_isa most)
{
    __atomic_store_n(&limit, (int)most, __ATOMIC_RELAXED);
}
