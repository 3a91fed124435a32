/* SPDX-License-Identifier: Apache-2.0 */
/* The version of these headers, for #if, and of the library in use, which may be later.
 * libplimsoll(3) says what a version promises. Safe from any thread. */
#ifndef PLIMSOLL_VERSION_H
#define PLIMSOLL_VERSION_H

#include "plimsoll/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Version of these headers. Compare as PLIMSOLL_VERSION >= PLIMSOLL_VERSION_OF(0, 2, 0). */
#define PLIMSOLL_VERSION_MAJOR 0
#define PLIMSOLL_VERSION_MINOR 1
#define PLIMSOLL_VERSION_PATCH 0

#define PLIMSOLL_VERSION_OF(major, minor, patch) (1000000 * (major) + 1000 * (minor) + (patch))
#define PLIMSOLL_VERSION                                                                           \
    PLIMSOLL_VERSION_OF(PLIMSOLL_VERSION_MAJOR, PLIMSOLL_VERSION_MINOR, PLIMSOLL_VERSION_PATCH)

/* Version of the library: the same kind of number, and as text: "1.20.3". */
PL_API int pl_version(void);
PL_API const char *pl_version_text(void);

#ifdef __cplusplus
}
#endif
#endif
