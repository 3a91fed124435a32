/* SPDX-License-Identifier: Apache-2.0 */
/* The needs of instructions for each kind of machine; for inspect_instruction.c and its test only.
 * All machines are described in every build: the bytes are data and are not run.
 *
 *   set    an extension of the machine that not every processor has; `flag` is the kernel's word
 *          for it
 *   flags  a processor's sets: the kernel's words, between blanks
 *
 * Pure functions. */
#ifndef PL_SUPERVISE_INSPECT_INSTRUCTION_H
#define PL_SUPERVISE_INSPECT_INSTRUCTION_H

#include <capstone/capstone.h>

#include "supervise/inspect.h"

typedef struct pl_instruction_set {
    const char *name;
    const char *flag;
} pl_instruction_set;

typedef struct pl_instruction_machine {
    cs_arch arch;
    cs_mode mode;
    size_t bytes_max; /* of one instruction */

    /* ud2 and friends, which a program executes to end itself. */
    bool (*is_deliberate)(const uint8_t *bytes, size_t n);

    /* Returns one of the sets that the instruction needs and the flags lack, else any that it
     * needs; NULL when it needs none. `decoded` is NULL where capstone could not decode the bytes.
     * n is 1 or more. */
    const pl_instruction_set *(*needed_set)(const cs_insn *decoded, const uint8_t *bytes, size_t n,
                                            const char *flags);

    /* Works without capstone; writes "" where there is nothing to say. */
    void (*write_text)(const uint8_t *bytes, size_t n, char *text, size_t text_bytes);
} pl_instruction_machine;

extern const pl_instruction_machine pl_instructions_x86_64, pl_instructions_arm64;

bool pl_flags_have(const char *flags, const char *flag);

/* Works as pl_inspect_instruction(), for any machine and processor. */
PL_MUST_CHECK int pl_instruction_tell(const pl_instruction_machine *machine, const uint8_t *bytes,
                                      size_t n, const char *flags, pl_instruction *ret);

#endif
