/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `plimsoll jupyter`. Options that are not given are NULL or false. */
#ifndef PL_CLI_JUPYTER_OPTIONS_H
#define PL_CLI_JUPYTER_OPTIONS_H

#include "base/base.h"

typedef struct pl_jupyter_options {
    const char *verb; /* "install", "list" or "uninstall" */
    const char *kernel;
    const char *budget; /* a size that `plimsoll run` takes */
    const char *prefix;
    bool all, user, json, help;
} pl_jupyter_options;

/* PL_EUSAGE, or PL_EFORMAT or PL_EBUDGET for a bad budget. With `help` no other option is
 * checked. */
PL_MUST_CHECK int pl_jupyter_options_read(int argc, char **argv, pl_jupyter_options *ret_options,
                                          pl_error *reterr);

#endif
