/* SPDX-License-Identifier: Apache-2.0 */
/* The plimsoll that is installed: the command, its guard, and the Python package that the examined
 * Python would import. Versions are read from ELF notes and from names of *.dist-info; nothing is
 * loaded. Never allocates but for lists that it frees. Unchanged after find. */
#ifndef PL_PREFLIGHT_INSTALLATION_H
#define PL_PREFLIGHT_INSTALLATION_H

#include <limits.h>

#include "base/base.h"
#include "preflight/interpreter.h"

typedef struct pl_installation {
    char program[PATH_MAX]; /* "": none is installed */
    char version[16];       /* "": it does not say */
    const char *kind;       /* "a wheel", "a Debian package", "a build tree" or "make install" */
    char folder[PATH_MAX];  /* that it is installed in: of a wheel, the one with the packages */
    char guard[PATH_MAX];   /* "": it is not where the command looks for it */
    char guard_version[16];
    char guard_libc[16];    /* the glibc that the guard needs */
    char modules[PATH_MAX]; /* the folder `plimsoll` that the Python would import; "" */
    bool extension;         /* and it has an extension module for that Python */
} pl_installation;

/* `program` and `guard` are this command's own (guard "": missing). NULL, below another root: the
 * wheel of that Python, else what is on PATH. */
void pl_installation_find(const char *root, const char *program, const char *guard,
                          const pl_interpreter *python, pl_installation *ret_installation);

#endif
