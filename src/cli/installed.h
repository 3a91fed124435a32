/* SPDX-License-Identifier: Apache-2.0 */
/* Finds this program and the files it needs at run time: in the build tree, at a prefix (bin, lib,
 * share), or in the folder `command` of a wheel's Python package. */
#ifndef PL_CLI_INSTALLED_H
#define PL_CLI_INSTALLED_H

#include <limits.h>

#include "base/base.h"

/* This program's path, with all links resolved. */
PL_MUST_CHECK int pl_installed_program(char path[PATH_MAX]);

/* Finds libplimsoll-guard.so. The message says where it looked. */
PL_MUST_CHECK int pl_installed_guard(char path[PATH_MAX], pl_error *reterr);

/* Finds doctor.csv, the known facts about builds of frameworks. */
PL_MUST_CHECK int pl_installed_rules(char path[PATH_MAX], pl_error *reterr);

/* Finds the folder of the Python package `plimsoll`. -ENOENT in a build without its Python part. */
PL_MUST_CHECK int pl_installed_python(char path[PATH_MAX]);

#endif
