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

/* Keeps records in a folder of this user in $TMPDIR, `*ret_folder`, from now on: the usual one is
 * full or read-only, and a plain kernel would start all the same. The folder has the first name
 * that no other user has taken, so that the next kernel finds this one's record; if all are taken,
 * a random name. */
PL_MUST_CHECK int pl_kernel_run_use_temporary(char ret_folder[PATH_MAX]);

/* In place of a connection file: use the one that the command names. A kernelspec's command can
 * then have {connection_file} in one place only; VS Code fills in no second one. */
#define PL_KERNEL_RUN_AUTO "auto"

/* Writes kernel, notebook and previous. If the earlier run cannot be looked up, there is none. */
void pl_kernel_run_describe(pl_ledger_header *header, const char *connection_file,
                            char *const *command);

/* Sets the environment for the kernel that `header` describes. *ret_command is `command`, or for an
 * IPython kernel a copy of it that loads the extension; it is never freed. Where the extension
 * cannot be found, `*ret_warning` says so and the kernel is started without it; else NULL. */
PL_MUST_CHECK int pl_kernel_run_prepare(const pl_ledger_header *header, char *const *command,
                                        char *const **ret_command, const char **ret_warning,
                                        pl_error *reterr);

/* The process that started us, if the kernel is to end with it; else 0. Jupyter says so by
 * JPY_PARENT_PID, and leaves that out for kernels that are to outlive it. */
PL_MUST_CHECK pid_t pl_kernel_run_parent(void);

#endif
