/* SPDX-License-Identifier: Apache-2.0 */
/* What `run --kernel CONNECTION_FILE` adds to a run: a notebook's kernel knows the run of the
 * kernel before it, has the extension that marks cells, and as many threads as cores.
 *   kernel    named by its connection file: Jupyter starts the next one with the same file
 *   previous  the newest run of the same kernel that has ended
 * All of it is for one command: what is set in the environment is set in our own, which the command
 * inherits. */
#ifndef PL_CLI_KERNEL_RUN_H
#define PL_CLI_KERNEL_RUN_H

#include <limits.h>
#include <sys/types.h>

#include "base/base.h"
#include "ledger/ledger.h"

/* The folder for records is full, or may not be written to, and a plain kernel would start all the
 * same: from now on they are kept in one of this user's own in $TMPDIR, `*ret_folder`. It has the
 * first name that nobody else has taken, so that the next kernel finds this one's record; where all
 * of them are taken, a name that nobody could guess. */
PL_MUST_CHECK int pl_kernel_run_use_temporary(char ret_folder[PATH_MAX]);

/* Instead of a connection file: the one that the command names. A kernelspec's command can then
 * have {connection_file} in one place only; VS Code fills in no second one. */
#define PL_KERNEL_RUN_AUTO "auto"

/* Writes kernel, notebook and previous. A predecessor that cannot be looked for is none. */
void pl_kernel_run_describe(pl_ledger_header *header, const char *connection_file,
                            char *const *command);

/* Sets the environment for the kernel that `header` describes. *ret_command is `command`, or for an
 * IPython kernel a copy of it that loads the extension; it is never freed. Where the extension
 * cannot be found, `*ret_warning` says so and the kernel is started without it; else NULL. */
PL_MUST_CHECK int pl_kernel_run_prepare(const pl_ledger_header *header, char *const *command,
                                        char *const **ret_command, const char **ret_warning,
                                        pl_error *reterr);

/* Who started us, if that is who the kernel shall end with: Jupyter says so by JPY_PARENT_PID, and
 * says nothing for kernels that shall outlive it. Else 0. */
PL_MUST_CHECK pid_t pl_kernel_run_parent(void);

#endif
