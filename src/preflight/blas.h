/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the OpenBLAS that NumPy uses, and the kernels it selects on this processor. Only the
 * library itself knows those, so a child process loads it and asks. Loading runs its code: never
 * done below another root, nor for a Python that a file in the working folder chose. Allocates; one
 * thread. */
#ifndef PL_PREFLIGHT_BLAS_H
#define PL_PREFLIGHT_BLAS_H

#include <limits.h>

#include "preflight/packages.h"

typedef struct pl_blas_facts {
    char library[PATH_MAX]; /* the one bundled with NumPy; "libblas.so.3": the system's; "": none */
    char kernels[32];       /* OpenBLAS's name for them; "": not OpenBLAS, or no answer */
    bool asked;             /* it was loaded */
} pl_blas_facts;

/* -ENOMEM. */
PL_MUST_CHECK int pl_blas_facts_read(const char *root, const pl_interpreter *python,
                                     const pl_packages *packages, pl_blas_facts *ret_facts);

#endif
