/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of loops: each *_loops.c that is compiled once per instruction set exports one, with the
 * instruction set's name as suffix. All give the same bits: nothing is contracted, and the source,
 * not the processor, determines how many lanes a sum has. */
#ifndef PL_KERNELS_ISA_TABLE_H
#define PL_KERNELS_ISA_TABLE_H

#include "kernels/isa.h"

/* Returns pl_isa_best(), or the limit of pl_isa_limit() if that is lower. */
pl_isa pl_isa_used(void);

/* Uses nothing above `most` from here on, in all threads: for tests and benchmarks. */
void pl_isa_limit(pl_isa most);

#if PL_HAS_X86_BUILDS
#define PL_ISA_TABLE(name) (pl_isa_used() >= PL_ISA_AVX2 ? &name##_avx2 : &name##_plain)
#else
#define PL_ISA_TABLE(name) (&name##_plain)
#endif

#endif
