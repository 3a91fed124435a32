/* SPDX-License-Identifier: Apache-2.0 */
/* What instructions the processor has, and builds need.
 *   feature  a bit; also the levels of the x86-64 ABI, each of which is several
 * Of this machine they are asked of the processor (cpuid, with what the system saves; hwcap on
 * Arm); of another root, read from its /proc/cpuinfo. Never allocates. */
#ifndef PL_PREFLIGHT_CPU_FEATURES_H
#define PL_PREFLIGHT_CPU_FEATURES_H

#include "base/base.h"

typedef struct pl_cpu_features {
    char machine[16]; /* as uname says it: "x86_64", "aarch64" */
    uint32_t bits;
} pl_cpu_features;

void pl_cpu_features_read(const char *root, pl_cpu_features *ret_features);

/* From the text of a /proc/cpuinfo. False when it does not say. */
bool pl_cpu_features_parse(const char *cpuinfo, pl_cpu_features *ret_features);

/* The bits behind "avx2" or "x86-64-v2"; 0 for a name that nobody knows. */
uint32_t pl_cpu_feature_bits(const char *name);

/* Names those of `bits` that are not there: "avx2 fma". */
const char *pl_cpu_features_missing(const pl_cpu_features *features, uint32_t bits, char *text,
                                    size_t n);

#endif
