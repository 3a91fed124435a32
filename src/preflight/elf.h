/* SPDX-License-Identifier: Apache-2.0 */
/* Reads ELF headers of a native library with libelf: the libraries it loads, the glibc version it
 * needs or provides, its machine. Reads at most 4 MiB of any section; a corrupt file yields an
 * error, never a fault. Nothing is loaded or run. Not thread-safe: libelf's version is global. */
#ifndef PL_PREFLIGHT_ELF_H
#define PL_PREFLIGHT_ELF_H

#include "base/base.h"

enum { PL_ELF_NEEDED = 48, PL_ELF_NAME_BYTES = 96 };

typedef struct pl_elf {
    char machine[16]; /* "x86_64", "aarch64"; "" = another */
    char soname[PL_ELF_NAME_BYTES];
    char glibc_needs[16]; /* the highest GLIBC_ version it requires: "2.28"; "" */
    char glibc_is[16];    /* the highest it defines: only libc.so.6 does */
    char plimsoll[16];    /* the version noted in a library of ours; "" */
    uint32_t x86_levels;  /* from its note of needed instructions: bit 1 v2, 2 v3, 3 v4 */
    int n_needed;
    char needed[PL_ELF_NEEDED][PL_ELF_NAME_BYTES];
} pl_elf;

/* PL_EFORMAT if it is not an ELF file, PL_ECORRUPT if it contradicts itself. */
PL_MUST_CHECK int pl_elf_read(int fd, pl_elf *ret_elf);

PL_MUST_CHECK int pl_elf_read_at(const char *root, const char *path, pl_elf *ret_elf);

#endif
