/* SPDX-License-Identifier: Apache-2.0 */
/* Marks the part of a workload whose instructions callgrind counts: without it, importing torch
 * would outweigh the training loop that is to be measured. Outside valgrind both calls do nothing.
 */
#ifndef PL_BENCH_REGION_H
#define PL_BENCH_REGION_H

void region_begin(void);
void region_end(void);

#endif
