/* SPDX-License-Identifier: Apache-2.0 */
/* Option parsing and exit of the commands that only read and print: [RUN] [--json]. */
#ifndef PL_CLI_ANSWER_H
#define PL_CLI_ANSWER_H

#include "base/base.h"

typedef struct pl_answer_options {
    const char *run; /* NULL: not given */
    bool json;
} pl_answer_options;

/* Returns the word that getopt_long() has just refused. */
const char *pl_refused_word(int argc, char **argv);

struct option;

/* Sets the error for an unknown option, with a suggestion from `longs`. */
int pl_unknown_option(const char *command, const char *word, const struct option *longs,
                      pl_error *reterr);

/* Accepts --json and, if `takes_run`, one run. Otherwise prints the error and returns false. */
bool pl_answer_parse(int argc, char **argv, bool takes_run, pl_answer_options *ret_options);

/* Returns the exit status. Prints the error of a negative `r`, or that stdout could not be written.
 */
int pl_answer_end(int r, const pl_error *error);

#endif
