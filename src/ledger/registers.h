/* SPDX-License-Identifier: Apache-2.0 */
/* The general registers of this machine, in the order of a crash record, which is that of DWARF's
 * numbers and so of unwind tables. All code that knows a register by its index takes it from here.
 * Pure functions; safe in signal handlers. */
#ifndef PL_LEDGER_REGISTERS_H
#define PL_LEDGER_REGISTERS_H

#include <stdint.h>
#include <ucontext.h>

#if defined(__x86_64__)

/* rax rdx rcx rbx rsi rdi rbp rsp r8..r15 rip. */
enum {
    PL_REGISTER_SP = 7,
    PL_REGISTER_PC = 16,
    PL_CRASH_REGISTERS = 17,
    PL_UNWOUND_REGISTERS = 17, /* those that unwind tables use */
};

/* The upper half of a ledger's version, because records of another machine have other registers. */
#define PL_REGISTERS_MACHINE 0u

static inline void pl_registers_copy(uint64_t registers[PL_CRASH_REGISTERS],
                                     const ucontext_t *context)
{
    static const int order[PL_CRASH_REGISTERS] = {
        REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
        REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
    for (int i = 0; i < PL_CRASH_REGISTERS; i++)
        registers[i] = (uint64_t)context->uc_mcontext.gregs[order[i]];
}

#elif defined(__aarch64__)

/* x0..x30, sp; and pc, which has a number, but does not appear in the tables of gcc and clang. */
enum {
    PL_REGISTER_LR = 30, /* where a call leaves its return address */
    PL_REGISTER_SP = 31,
    PL_REGISTER_PC = 32,
    PL_CRASH_REGISTERS = 33,
    PL_UNWOUND_REGISTERS = 32,
};

#define PL_REGISTERS_MACHINE 183u /* EM_AARCH64 */

static inline void pl_registers_copy(uint64_t registers[PL_CRASH_REGISTERS],
                                     const ucontext_t *context)
{
    for (int i = 0; i <= PL_REGISTER_LR; i++)
        registers[i] = context->uc_mcontext.regs[i];
    registers[PL_REGISTER_SP] = context->uc_mcontext.sp;
    registers[PL_REGISTER_PC] = context->uc_mcontext.pc;
}

#else
#error "crash records know the registers of x86-64 and arm64: add this machine's here"
#endif

#endif
