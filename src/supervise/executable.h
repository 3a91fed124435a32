/* SPDX-License-Identifier: Apache-2.0 */
/* Can the guard enter this program? The guard is a library for one C library and one machine; the
 * dynamic loader of any other program leaves it out, some with a warning. Decided from the file
 * alone: its ELF header and interpreter, through `#!` lines for a script. */
#ifndef PL_SUPERVISE_EXECUTABLE_H
#define PL_SUPERVISE_EXECUTABLE_H

#include <limits.h>

#include "base/base.h"

enum pl_executable_obstacle {
    PL_EXECUTABLE_NONE,    /* the guard can enter; or the file cannot be read: then exec says why */
    PL_EXECUTABLE_STATIC,  /* no loader to load it */
    PL_EXECUTABLE_MACHINE, /* another processor's, or 32-bit */
    PL_EXECUTABLE_LIBC,    /* linked with another C library than glibc */
    PL_EXECUTABLE_OLD,     /* its glibc is older than the guard needs */
};

typedef struct pl_executable {
    enum pl_executable_obstacle obstacle;
    char path[PATH_MAX];   /* of the program, or of the interpreter that a script names */
    char loader[256];      /* its dynamic loader; "" without one */
    unsigned glibc_minor;  /* PL_EXECUTABLE_OLD: it has 2.MINOR ... */
    unsigned glibc_needed; /* ... and the guard needs 2.MINOR */
} pl_executable;

void pl_executable_look(const char *name, const char *guard_path, pl_executable *ret_program);

/* Why the guard stays outside, in a sentence; "" when it does not. */
enum { PL_EXECUTABLE_SENTENCE_BYTES = PATH_MAX + 512 };
void pl_executable_sentence(const pl_executable *program, char text[PL_EXECUTABLE_SENTENCE_BYTES]);

#endif
