/* SPDX-License-Identifier: Apache-2.0 */
/* Package versions, ordered by PEP 440, and ranges of them.
 *   version  "2.1.0", "1.13.0a0+git1", "9.1.0.70", "2.4rc1.post2.dev3"
 *   range    conditions that must all hold, separated by blanks or commas: ">=3.10 <3.14",
 *            "==2.21.*", "~=1.4", "!=3.9.7"; "" contains every version
 * Pure; never allocates. */
#ifndef PL_PREFLIGHT_VERSION_H
#define PL_PREFLIGHT_VERSION_H

#include "base/base.h"

enum { PL_VERSION_PARTS = 6 };

typedef struct pl_version {
    uint32_t epoch;
    int n_parts; /* of the release: 3 in "2.1.0" */
    uint32_t parts[PL_VERSION_PARTS];
    int stage; /* -4 dev, -3 a, -2 b, -1 rc, 0 the release */
    uint32_t stage_number;
    uint32_t post;  /* 0: none, else its number plus one */
    uint32_t dev;   /* UINT32_MAX: none */
    char local[32]; /* after the '+' */
} pl_version;

/* PL_EFORMAT if the text is not exactly a version. */
PL_MUST_CHECK int pl_version_parse(const char *text, pl_version *ret_version);

/* Returns a number below, equal to or above 0. The local part is ignored. */
int pl_version_compare(const pl_version *a, const pl_version *b);

/* Returns 1 if the version is in the range, 0 if not; PL_EFORMAT if either is malformed. */
PL_MUST_CHECK int pl_version_in(const char *version, const char *range);

#endif
