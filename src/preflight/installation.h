/* SPDX-License-Identifier: Apache-2.0 */
/* The Plimsoll installation: the command, its guard, and the Python package that the examined
 * Python would import. Versions come from ELF notes and from names of *.dist-info; nothing is
 * loaded. Allocates only lists that it frees. Unchanged after find. */
#ifndef PL_PREFLIGHT_INSTALLATION_H
#define PL_PREFLIGHT_INSTALLATION_H

#include <limits.h>

#include "base/base.h"
#include "preflight/interpreter.h"

typedef struct pl_installation {
    char program[PATH_MAX]; /* "": not installed */
    char version[16];       /* "": unknown */
    const char *kind;       /* "a wheel", "a Debian package", "a build tree" or "make install" */
    char folder[PATH_MAX];  /* where it is installed; for a wheel, the folder of packages */
    char guard[PATH_MAX];   /* "": not where the command looks for it */
    char guard_version[16];
    char guard_libc[16];    /* the glibc that the guard needs */
    char modules[PATH_MAX]; /* the folder `plimsoll` that the Python would import; "" */
    bool extension;         /* it has an extension module for that Python */
} pl_installation;

/* `program` and `guard` are this command's own (guard "": missing), or NULL below another root:
 * then the wheel of that Python is used, else the command on PATH. */
void pl_installation_find(const char *root, const char *program, const char *guard,
                          const pl_interpreter *python, pl_installation *ret_installation);

#endif
