/* SPDX-License-Identifier: Apache-2.0 */
/* What a native library says of itself, in its ELF headers: which others it loads, how new a libc
 * it needs or is, what processor. Read with libelf, and never more than 4 MiB of any section. No
 * file, however corrupt, does worse than an error. Nothing is loaded or run. Not for several
 * threads at once: libelf's version is global. */
#ifndef PL_PREFLIGHT_ELF_H
#define PL_PREFLIGHT_ELF_H

#include "base/base.h"

enum { PL_ELF_NEEDED = 48, PL_ELF_NAME_BYTES = 96 };

typedef struct pl_elf {
    char machine[16]; /* "x86_64", "aarch64"; "" = another */
    char soname[PL_ELF_NAME_BYTES];
    char glibc_needs[16]; /* the highest GLIBC_ version that is asked for: "2.28"; "" */
    char glibc_is[16];    /* the highest that is defined: only libc.so.6 does */
    char plimsoll[16];    /* the version that a file of ours says it is of; "" */
    uint32_t x86_levels;  /* of the note on needed instructions: bit 1 v2, 2 v3, 3 v4 */
    int n_needed;
    char needed[PL_ELF_NEEDED][PL_ELF_NAME_BYTES];
} pl_elf;

/* PL_EFORMAT for what is no ELF file, PL_ECORRUPT for one that contradicts itself. */
PL_MUST_CHECK int pl_elf_read(int fd, pl_elf *ret_elf);

PL_MUST_CHECK int pl_elf_read_at(const char *root, const char *path, pl_elf *ret_elf);

#endif
