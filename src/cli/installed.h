/* SPDX-License-Identifier: Apache-2.0 */
/* Where this program lies, and beside it what it needs at run time: in the build tree, at a prefix
 * (bin, lib, share), or in the folder `command` of a wheel's Python package. */
#ifndef PL_CLI_INSTALLED_H
#define PL_CLI_INSTALLED_H

#include <limits.h>

#include "base/base.h"

/* This program, with every link followed. */
PL_MUST_CHECK int pl_installed_program(char path[PATH_MAX]);

/* libplimsoll-guard.so; the message says where it was looked for. */
PL_MUST_CHECK int pl_installed_guard(char path[PATH_MAX], pl_error *reterr);

/* doctor.csv, what is known of builds of frameworks. */
PL_MUST_CHECK int pl_installed_rules(char path[PATH_MAX], pl_error *reterr);

/* The folder that holds the Python package `plimsoll`, and nothing else of the package's names.
 * -ENOENT when it is not there: a build without its Python part. */
PL_MUST_CHECK int pl_installed_python(char path[PATH_MAX]);

#endif
