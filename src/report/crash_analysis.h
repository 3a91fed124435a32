/* SPDX-License-Identifier: Apache-2.0 */
/* Analyses a crash record: the cause, the native stack, and the instruction. Reads crash.PID and
 * the ELF files through supervise/inspect.h. A part that cannot be read is left empty; only a lack
 * of memory is an error. */
#ifndef PL_REPORT_CRASH_ANALYSIS_H
#define PL_REPORT_CRASH_ANALYSIS_H

#include "ledger/layout.h"
#include "report/verdict.h"
#include "supervise/inspect.h"

typedef struct pl_crash_analysis {
    enum pl_crash_cause cause;
    char reason[256];                  /* for people; nothing reads it again */
    char exception[160];               /* C++ type, demangled */
    char mapping[PL_FACT_PLACE_BYTES]; /* path of the file behind the fault's address */
    uint64_t full_stack_bytes;         /* size of the stack that overflowed; 0: none did */
    bool has_instruction;
    pl_instruction instruction;
    pl_native_stack native;
} pl_crash_analysis;

/* 0 or -ENOMEM. */
PL_MUST_CHECK int pl_crash_analyse(const pl_crash *crash, const char *record_directory,
                                   pl_crash_analysis *ret_analysis);

/* Returns the pid of another process that sent the signal; 0 when the crash is the process's
 * own. */
pid_t pl_crash_sender(const pl_crash *crash);

/* One line of /proc/PID/maps. `path` is "" for anonymous memory. */
typedef struct pl_map_region {
    uint64_t low;
    uint64_t high;
    char path[PL_FACT_PLACE_BYTES];
} pl_map_region;

/* Finds the mapping that holds `address`, or, failing that, the next one above it (`low` >
 * address). False when there is neither. Skips lines that cannot be parsed. */
bool pl_map_region_find(const char *maps, uint64_t address, pl_map_region *ret_mapping);

#endif
