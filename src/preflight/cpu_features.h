/* SPDX-License-Identifier: Apache-2.0 */
/* Instruction sets that the processor has, and that builds need.
 *   feature  one bit; a level of the x86-64 ABI is a set of several
 * On this machine the processor is asked (cpuid and the registers the kernel saves; hwcap on Arm);
 * below another root, its /proc/cpuinfo is read. Never allocates. */
#ifndef PL_PREFLIGHT_CPU_FEATURES_H
#define PL_PREFLIGHT_CPU_FEATURES_H

#include "base/base.h"

typedef struct pl_cpu_features {
    char machine[16]; /* as uname reports it: "x86_64", "aarch64" */
    uint32_t bits;
} pl_cpu_features;

void pl_cpu_features_read(const char *root, pl_cpu_features *ret_features);

/* Parses the text of a /proc/cpuinfo. False if it lists no features. */
bool pl_cpu_features_parse(const char *cpuinfo, pl_cpu_features *ret_features);

/* Returns the bits of "avx2" or "x86-64-v2"; 0 for an unknown name. */
uint32_t pl_cpu_feature_bits(const char *name);

/* Lists those of `bits` that the processor lacks: "avx2 fma". */
const char *pl_cpu_features_missing(const pl_cpu_features *features, uint32_t bits, char *text,
                                    size_t n);

#endif
