/* SPDX-License-Identifier: Apache-2.0 */
/* Versions of packages, ordered as PEP 440 orders them, and what is asked of them.
 *   version  "2.1.0", "1.13.0a0+git1", "9.1.0.70", "2.4rc1.post2.dev3"
 *   range    "", which all are in; or conditions that all must hold, with blanks or commas between
 *            them: ">=3.10 <3.14", "==2.21.*", "~=1.4", "!=3.9.7"
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
    uint32_t post;  /* 0: none, else one more than its number */
    uint32_t dev;   /* UINT32_MAX: none */
    char local[32]; /* behind the '+' */
} pl_version;

/* PL_EFORMAT for anything else, also before or behind it. */
PL_MUST_CHECK int pl_version_parse(const char *text, pl_version *ret_version);

/* Below 0, 0 or above. The local part does not count. */
int pl_version_compare(const pl_version *a, const pl_version *b);

/* 1 or 0; PL_EFORMAT when either text is malformed. */
PL_MUST_CHECK int pl_version_in(const char *version, const char *range);

#endif
