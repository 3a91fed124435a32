/* SPDX-License-Identifier: Apache-2.0 */
/* A requirement of a distribution: one line of its metadata, by PEP 508.
 *   requirement  numpy (<2.0,>=1.21) ; python_version < "3.12" and extra == "test"
 *   marker       the condition after the ';' under which the requirement applies
 * No extra is considered installed, so what only an extra needs is ignored. So is what cannot be
 * parsed: guessing would raise false alarms. Pure; never allocates. */
#ifndef PL_PREFLIGHT_MARKER_H
#define PL_PREFLIGHT_MARKER_H

#include "base/base.h"

typedef struct pl_marker_environment {
    const char *python_version; /* "3.11" */
    const char *machine;        /* "x86_64" */
} pl_marker_environment;

bool pl_marker_holds(const char *marker, const pl_marker_environment *environment);

enum { PL_PACKAGE_NAME_BYTES = 80, PL_PACKAGE_RANGE_BYTES = 160 };

typedef struct pl_requirement {
    char name[PL_PACKAGE_NAME_BYTES];   /* normalised: "jax-cuda12-plugin" */
    char range[PL_PACKAGE_RANGE_BYTES]; /* "" : any version */
} pl_requirement;

/* Returns 1 if the requirement applies here, 0 if not; PL_EFORMAT. */
PL_MUST_CHECK int pl_requirement_parse(const char *line, const pl_marker_environment *environment,
                                       pl_requirement *ret_requirement);

/* PEP 503: lower case, and one '-' for any run of '-', '_' and '.'. False if it does not fit. */
bool pl_package_normalise(const char *name, size_t n, char out[PL_PACKAGE_NAME_BYTES]);

#endif
