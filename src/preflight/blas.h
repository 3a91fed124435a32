/* SPDX-License-Identifier: Apache-2.0 */
/* The OpenBLAS that NumPy multiplies matrices with, and the kernels that it chooses here. Only the
 * library itself knows: a child loads it, and asks. To load it is to run it: never below another
 * root, and never for a Python that a file of the working folder chose. Allocates; one thread. */
#ifndef PL_PREFLIGHT_BLAS_H
#define PL_PREFLIGHT_BLAS_H

#include <limits.h>

#include "preflight/packages.h"

typedef struct pl_blas_facts {
    char library[PATH_MAX]; /* the one that NumPy brings; "libblas.so.3": the system's; "": none */
    char kernels[32];       /* by OpenBLAS's name; "": it is no OpenBLAS, or did not answer */
    bool asked;             /* it was loaded */
} pl_blas_facts;

/* -ENOMEM. */
PL_MUST_CHECK int pl_blas_facts_read(const char *root, const pl_interpreter *python,
                                     const pl_packages *packages, pl_blas_facts *ret_facts);

#endif
