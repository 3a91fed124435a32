/* SPDX-License-Identifier: Apache-2.0 */
/* A crash record in words: why it crashed, where, and what the instruction was. Reads crash.PID and
 * the ELF files through supervise/inspect.h; whatever cannot be read is left empty. */
#ifndef PL_REPORT_STORY_H
#define PL_REPORT_STORY_H

#include "ledger/layout.h"
#include "report/verdict.h"
#include "supervise/inspect.h"

typedef struct pl_story {
    char reason[256];
    char exception[160];               /* C++ type, demangled */
    char mapping[PL_FACT_PLACE_BYTES]; /* path of the file behind the fault's address */
    bool stack_overflow;
    bool has_instruction;
    pl_instruction instruction;
    pl_native_stack native;
} pl_story;

void pl_story_tell(const pl_crash *crash, const char *record_directory, pl_story *ret_story);

/* Another process sent the signal: its pid; 0 when the crash is the process's own. */
pid_t pl_story_sender(const pl_crash *crash);

/* The path of the mapping that holds `address`, from text in the form of /proc/PID/maps. */
bool pl_story_find_mapping(const char *maps, uint64_t address, char *path, size_t n);

#endif
