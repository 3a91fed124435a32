/* SPDX-License-Identifier: Apache-2.0 */
/* Starts a command with the guard in it. */
#ifndef PL_SUPERVISE_SPAWN_H
#define PL_SUPERVISE_SPAWN_H

#include <signal.h>
#include <sys/types.h>

#include "base/base.h"

typedef struct pl_spawn_options {
    char *const *command;
    const char *guard_path;
    const char *ledger_path;
    sigset_t mask;             /* the signals that were blocked before we blocked ours */
    uint64_t data_limit_bytes; /* RLIMIT_DATA for a program that the guard cannot enter */
} pl_spawn_options;

/* -ENOENT, -EACCES ... when the command cannot be found or executed; no process is left then. */
/* Advises on an error, as the end of a message; "" if there is no advice. */
const char *pl_spawn_cure(int error);

PL_MUST_CHECK int pl_spawn(const pl_spawn_options *options, pid_t *ret_pid, pl_error *reterr);

#endif
