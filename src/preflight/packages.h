/* SPDX-License-Identifier: Apache-2.0 */
/* The installed packages that matter to the doctor: frameworks, their dependencies, CUDA libraries.
 * Read from folder names and the texts in them; nothing is imported.
 *   package   one installed distribution: a *.dist-info or *.egg-info
 *   wheel     installed from a wheel by pip or a similar tool, so that rules about wheels apply;
 *             others were built by a distribution, by conda or by hand
 *   hidden    another package of the same name comes first on the path
 * Allocates. Unchanged after find. */
#ifndef PL_PREFLIGHT_PACKAGES_H
#define PL_PREFLIGHT_PACKAGES_H

#include "base/base.h"
#include "preflight/interpreter.h"
#include "preflight/marker.h"

typedef struct pl_package {
    char name[PL_PACKAGE_NAME_BYTES]; /* normalised */
    char version[48];
    const char *site; /* the interpreter's */
    bool wheel;
    bool hidden;
    bool twice;        /* its site holds another version too */
    char tag[96];      /* first tag of the wheel: "cp311-cp311-manylinux_2_17_x86_64"; "" */
    char cuda[16];     /* the CUDA it was built with, if its files say: "12.6", "none"; "" */
    char compute[160]; /* the GPUs it was built for, if its files say: "sm_60 compute_90" */
    char *metadata;    /* the head of METADATA or PKG-INFO; can be "" */
} pl_package;

typedef struct pl_packages {
    size_t n;
    pl_package *items; /* in the order of the path */
    bool no_memory;
} pl_packages;

/* Skips what cannot be read. -ENOMEM. */
PL_MUST_CHECK int pl_packages_find(const char *root, const pl_interpreter *interpreter,
                                   pl_packages *ret_packages);
void pl_packages_done(pl_packages *packages);

/* Returns the package that an import would find, or NULL. */
const pl_package *pl_packages_get(const pl_packages *packages, const char *name);

/* Returns whether the doctor examines packages of this name. */
bool pl_package_is_watched(const char *name);

/* Parses name and version of "numpy-1.26.4.dist-info", "torch-1.13.0a0+git.egg-info" or
 * "numpy-1.2-py3.11.egg-info"; false for other names. */
bool pl_package_parse_folder(const char *folder, pl_package *package);

/* Takes the next value of a metadata field ("Requires-Dist"). *cursor starts at the metadata. False
 * at the end. */
bool pl_package_field(const char **cursor, const char *field, char *value, size_t n);

/* Fills in cuda and compute; internal to pl_packages_find(). */
void pl_package_read_build(const char *root, pl_package *package);

/* Parse the text of torch/version.py and of tensorflow/python/platform/build_info.py. */
void pl_package_parse_torch(const char *text, pl_package *package);
void pl_package_parse_tensorflow(const char *text, pl_package *package);

#endif
