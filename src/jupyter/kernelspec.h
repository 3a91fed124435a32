/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels that Jupyter knows.
 *   kernelspec  a folder with a kernel.json: how to start a kernel, under which name to show it
 *   original    a kernelspec that plimsoll did not make
 *   twin        made by plimsoll: the same kernel, started through `plimsoll run`. Its metadata
 *               says so
 * Files are not trusted: a kernelspec that cannot be used is listed with the reason. */
#ifndef PL_JUPYTER_KERNELSPEC_H
#define PL_JUPYTER_KERNELSPEC_H

#include <jansson.h>

#include "base/base.h"
#include "jupyter/paths.h"

typedef struct pl_kernelspec {
    char *name;       /* the folder's name in lower case: the name in Jupyter */
    char *folder;     /* absolute */
    json_t *spec;     /* the kernel.json; NULL if it cannot be used */
    pl_error problem; /* then the reason */
} pl_kernelspec;

typedef struct pl_kernelspecs {
    pl_kernelspec *items; /* only the first of each name, by the order of folders; sorted by name */
    size_t n_items;
} pl_kernelspecs;

/* Reads the kernelspecs in these kernels folders. A broken one is an item; the only failure is
 * -ENOMEM. */
PL_MUST_CHECK int pl_kernelspecs_init(pl_kernelspecs *ret_specs, char *const *folders,
                                      size_t n_folders, pl_error *reterr);
void pl_kernelspecs_done(pl_kernelspecs *specs);

/* Finds a kernelspec by name, ignoring case; NULL if it does not exist. */
const pl_kernelspec *pl_kernelspecs_get(const pl_kernelspecs *specs, const char *name);

/* Texts from the kernelspec, "" where it has none; for a twin, also its original's name and its
 * budget. */
const char *pl_kernelspec_display_name(const pl_kernelspec *kernel);
const char *pl_kernelspec_language(const pl_kernelspec *kernel);
const char *pl_kernelspec_twin_of(const pl_kernelspec *kernel);
const char *pl_kernelspec_original(const pl_kernelspec *kernel);
const char *pl_kernelspec_budget(const pl_kernelspec *kernel);

bool pl_kernelspec_is_twin(const pl_kernelspec *kernel);

/* The word at this index of its command; NULL past the end. */
const char *pl_kernelspec_word(const pl_kernelspec *kernel, size_t index);

/* The index in its command where `plimsoll run ... --` ends and the kernel's own command begins; 0
 * if the kernel is not started through `plimsoll run`. */
size_t pl_kernelspec_command(const pl_kernelspec *kernel);

/* Finds the problems that will keep the kernel from starting, or make a twin useless; at most this
 * many. */
enum { PL_KERNELSPEC_PROBLEMS = 4 };
size_t pl_kernelspec_problems(const pl_kernelspec *kernel,
                              pl_error problems[PL_KERNELSPEC_PROBLEMS]);

#endif
