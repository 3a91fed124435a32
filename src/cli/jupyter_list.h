/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels that Jupyter finds, as a table and as JSON, on stdout. */
#ifndef PL_CLI_JUPYTER_LIST_H
#define PL_CLI_JUPYTER_LIST_H

#include "jupyter/kernelspec.h"
#include "jupyter/paths.h"

/* A row per kernel and twin, then a line per problem. */
void pl_jupyter_list_text(const pl_kernelspecs *known);

/* Prints the whole answer, or nothing and returns -ENOMEM. */
PL_MUST_CHECK int pl_jupyter_list_json(const pl_jupyter_paths *paths, const pl_kernelspecs *known,
                                       pl_error *reterr);

#endif
