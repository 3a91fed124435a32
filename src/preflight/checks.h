/* SPDX-License-Identifier: Apache-2.0 */
/* The doctor's checks, by family. Each reads facts and environment variables and reports at least
 * one finding. docs/doctor.md lists what each looks at. */
#ifndef PL_PREFLIGHT_CHECKS_H
#define PL_PREFLIGHT_CHECKS_H

#include "preflight/doctor.h"

typedef void pl_check(const pl_doctor_facts *facts, pl_findings *findings);

/* check_installation.c */
pl_check pl_check_plimsoll;

/* check_python.c */
pl_check pl_check_python;
pl_check pl_check_packages;
pl_check pl_check_versions;

/* check_requirements.c */
pl_check pl_check_requirements;

/* check_native.c */
pl_check pl_check_processor;
pl_check pl_check_openmp;
pl_check pl_check_blas;
pl_check pl_check_libc;

/* check_gpu.c */
pl_check pl_check_gpu;
pl_check pl_check_cuda;

/* check_memory.c */
pl_check pl_check_memory;
pl_check pl_check_overcommit;
pl_check pl_check_swap;
pl_check pl_check_shm;
pl_check pl_check_huge_pages;
pl_check pl_check_oom_group;

/* check_system.c */
pl_check pl_check_threads;
pl_check pl_check_files;
pl_check pl_check_disk;
pl_check pl_check_preload;

/* Returns the next visible package after `after` (NULL: the first), or NULL at the end. */
const pl_package *pl_next_package(const pl_doctor_facts *facts, const pl_package *after);

/* Sets `cuda` to the CUDA version a framework was built with: "12.6"; "none" if it was built
 * without GPU support; "" if unknown, or if the package does not use GPUs. */
void pl_cuda_of(const pl_doctor_facts *facts, const pl_package *package, char cuda[16]);

#endif
