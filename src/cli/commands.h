/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of `plimsoll`. argv[0] is the command's name; the result is the exit status. */
#ifndef PL_CLI_COMMANDS_H
#define PL_CLI_COMMANDS_H

/* Exit status of our own failure: env(1), timeout(1) and xargs(1) use the same number. */
enum { PL_EXIT_FAILURE = 125, PL_EXIT_CANNOT_RUN = 126, PL_EXIT_NOT_FOUND = 127 };

int pl_cmd_run(int argc, char **argv);
int pl_cmd_explain(int argc, char **argv);
int pl_cmd_runs(int argc, char **argv);
int pl_cmd_budget(int argc, char **argv);
int pl_cmd_top(int argc, char **argv);
int pl_cmd_doctor(int argc, char **argv);
int pl_cmd_check(int argc, char **argv);
int pl_cmd_jupyter(int argc, char **argv);
int pl_cmd_version(int argc, char **argv);

/* Shared with the commands, whose --help can follow a word: `jupyter install --help`. */
extern const char pl_jupyter_usage[];
extern const char pl_doctor_usage[];
extern const char pl_check_usage[];

#endif
