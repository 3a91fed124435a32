/* SPDX-License-Identifier: Apache-2.0 */
/* The files of Plimsoll's own Python package, as listed by the build: "tf/_ops/creation.py". */
#ifndef PL_PROBE_OWN_FILES_H
#define PL_PROBE_OWN_FILES_H

#include <stddef.h>

extern const size_t pl_n_own_files;
extern const char *const pl_own_files[]; /* sorted */

#endif
