/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the commands: unknown options; and for the commands that only read and answer, [RUN]
 * [--json] and how they end. */
#ifndef PL_CLI_ANSWER_H
#define PL_CLI_ANSWER_H

#include "base/base.h"

typedef struct pl_answer_options {
    const char *run; /* NULL: none was given */
    bool json;
} pl_answer_options;

/* The word that getopt_long() has just refused. */
const char *pl_refused_word(int argc, char **argv);

struct option;

/* Sets the error for that word, which is none of `longs`: with the one that it is likely to be. */
int pl_unknown_option(const char *command, const char *word, const struct option *longs,
                      pl_error *reterr);

/* False, and said on stderr, for anything else than --json and, where `takes_run`, one run. */
bool pl_answer_parse(int argc, char **argv, bool takes_run, pl_answer_options *ret_options);

/* The exit status: says the error of a negative `r`, or that standard output did not take all. */
int pl_answer_end(int r, const pl_error *error);

#endif
