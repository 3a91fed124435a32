/* SPDX-License-Identifier: Apache-2.0 */
/* The native libraries inside packages, by their ELF headers.
 *   need      the most that the libraries of one package require
 *   runtime   an OpenMP library that a package bundles, or expects from the system; each file once,
 *             however many links lead to it
 * Allocates. Unchanged after find. */
#ifndef PL_PREFLIGHT_LIBRARIES_H
#define PL_PREFLIGHT_LIBRARIES_H

#include <limits.h>
#include <sys/types.h>

#include "base/base.h"
#include "preflight/elf.h"
#include "preflight/packages.h"

typedef struct pl_library_need {
    const pl_package *package;
    char glibc[16]; /* "": none of its libraries states one */
    char glibc_file[PATH_MAX];
    uint32_t x86_levels;
    char other_machine[16]; /* a library is for this machine, not ours; "" */
} pl_library_need;

enum { PL_OPENMP_RUNTIMES = 24 };

typedef struct pl_openmp_runtime {
    const char *family;  /* "libgomp", "libiomp5" or "libomp" */
    char path[PATH_MAX]; /* "": the system's, found at run time */
    char owner[PL_PACKAGE_NAME_BYTES];
    dev_t device;
    ino_t inode;
} pl_openmp_runtime;

typedef struct pl_libraries {
    size_t n_needs;
    pl_library_need *needs;
    size_t n_runtimes;
    pl_openmp_runtime runtimes[PL_OPENMP_RUNTIMES];
    char glibc[16]; /* of the system; "": not found */
    bool musl;
    size_t n_read;
} pl_libraries;

/* -ENOMEM. */
PL_MUST_CHECK int pl_libraries_find(const char *root, const pl_interpreter *interpreter,
                                    const pl_packages *packages, const char *machine,
                                    pl_libraries *ret_libraries);
void pl_libraries_done(pl_libraries *libraries);

#endif
