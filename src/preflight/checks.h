/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of the doctor, by family. Each says at least one thing. docs/doctor.md tells what each
 * looks at and when it says what. Facts and environment in, findings out. */
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

/* The next visible package behind `after` (NULL: the first); NULL: no more. */
const pl_package *pl_next_package(const pl_doctor_facts *facts, const pl_package *after);

/* The CUDA that a framework was built with: "12.6"; "none" for one without a GPU part; "" where
 * nobody can tell, and for a package that has nothing to do with GPUs. */
void pl_cuda_of(const pl_doctor_facts *facts, const pl_package *package, char cuda[16]);

#endif
