/* SPDX-License-Identifier: Apache-2.0 */
/* The version of a Plimsoll program or library, as an ELF note: `plimsoll doctor` reads it without
 * loading the file. Linkers and strip(1) keep notes, even those that nothing refers to. */
#ifndef PL_BASE_VERSION_NOTE_H
#define PL_BASE_VERSION_NOTE_H

#include <stdint.h>

#define PL_VERSION_NOTE_NAME "Plimsoll"
enum { PL_VERSION_NOTE_TYPE = 1, PL_VERSION_NOTE_BYTES = 16 };

typedef struct pl_version_note {
    uint32_t name_bytes, version_bytes, type;
    char name[12]; /* padded to a multiple of four */
    char version[PL_VERSION_NOTE_BYTES];
} pl_version_note;

/* Place this in one source file of each program or library that should carry the note. */
#define PL_VERSION_NOTE                                                                            \
    static const pl_version_note version_note                                                      \
        __attribute__((section(".note.plimsoll"), aligned(4), used)) = {                           \
            sizeof PL_VERSION_NOTE_NAME, PL_VERSION_NOTE_BYTES, PL_VERSION_NOTE_TYPE,              \
            PL_VERSION_NOTE_NAME, PL_VERSION}

#endif
