/* SPDX-License-Identifier: Apache-2.0 */
/* Prepares a run for `run --kernel CONNECTION_FILE`: a notebook's kernel knows the run of the
 * kernel before it, gets the extension that marks cells, and as many threads as cores.
 *   kernel    named by its connection file: Jupyter starts the next one with the same file
 *   previous  the newest run of the same kernel that has ended
 * All of it is for one command: we set variables in our own environment, which the command
 * inherits. */
#ifndef PL_CLI_KERNEL_RUN_H
#define PL_CLI_KERNEL_RUN_H

#include <limits.h>
#include <sys/types.h>

#include "base/base.h"
#include "ledger/ledger.h"

/* From now on, keeps records in a folder of this user in $TMPDIR, `*ret_folder`: the usual one is
 * full or read-only, and a plain kernel would start all the same. The folder has the first name
 * that no other user has taken, so that the next kernel finds this one's record; if all are taken,
 * a random name. */
PL_MUST_CHECK int pl_kernel_run_use_temporary(char ret_folder[PATH_MAX]);

/* Stands for a connection file: use the one that the command names. A kernelspec's command can then
 * have {connection_file} in one place only; VS Code does not fill in a second one. */
#define PL_KERNEL_RUN_AUTO "auto"

/* Writes kernel, notebook and previous. If the lookup of the earlier run fails, there is no
 * previous. */
void pl_kernel_run_describe(pl_ledger_header *header, const char *connection_file,
                            char *const *command);

/* Sets the environment for the kernel that `header` describes. *ret_command is `command`, or for an
 * IPython kernel a copy of it that loads the extension; it is never freed. If the extension is not
 * found, `*ret_warning` says so and the kernel is started without it; else NULL. */
PL_MUST_CHECK int pl_kernel_run_prepare(const pl_ledger_header *header, char *const *command,
                                        char *const **ret_command, const char **ret_warning,
                                        pl_error *reterr);

/* The parent process, if the kernel must end with it; else 0. Jupyter requests this by
 * JPY_PARENT_PID, and omits that for kernels that must outlive it. */
PL_MUST_CHECK pid_t pl_kernel_run_parent(void);

#endif
