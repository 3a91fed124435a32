/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of loops: each *_loops.c that is compiled once per instruction set exports one, whose name
 * ends as the instruction set does. Their results are the same bits: nothing is contracted, and how
 * many lanes a sum has is written in the source, not taken from the processor. */
#ifndef PL_KERNELS_ISA_TABLE_H
#define PL_KERNELS_ISA_TABLE_H

#include "kernels/isa.h"

/* pl_isa_best(), or less if pl_isa_limit() said so. */
pl_isa pl_isa_used(void);

/* Nothing above `most` from here on, in all threads: for tests and benchmarks. */
void pl_isa_limit(pl_isa most);

#if PL_HAS_X86_BUILDS
#define PL_ISA_TABLE(name) (pl_isa_used() >= PL_ISA_AVX2 ? &name##_avx2 : &name##_plain)
#else
#define PL_ISA_TABLE(name) (&name##_plain)
#endif

#endif
