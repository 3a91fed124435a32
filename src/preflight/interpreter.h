/* SPDX-License-Identifier: Apache-2.0 */
/* A Python interpreter and where it finds packages, determined from its files: names, links,
 * pyvenv.cfg, .pth files.
 *   prefix   the environment that it belongs to: a virtualenv, a conda environment, /usr
 *   base     the installation beneath a virtualenv; else the prefix
 *   site     a folder on its path with installed packages; the first that has a package wins
 *
 * It is run (with -I -S, to print its version) only if its files do not say: a shim script, a
 * program without a version. Never below another root, nor if a file in the working folder chose
 * it. pyenv's shims are resolved without running anything. Allocates. */
#ifndef PL_PREFLIGHT_INTERPRETER_H
#define PL_PREFLIGHT_INTERPRETER_H

#include <limits.h>

#include "base/base.h"

enum { PL_INTERPRETER_SITES = 48, PL_PYENV_VERSION_BYTES = 64 };

typedef struct pl_interpreter {
    char path[PATH_MAX];
    char prefix[PATH_MAX];
    char base[PATH_MAX];
    const char *kind; /* "installation", "virtualenv" or "conda environment" */
    char version[16]; /* "3.11" */
    bool free_threaded;
    bool sees_base; /* packages of the base and of the user are found too */
    bool was_run;
    bool by_folder; /* chosen by a .python-version here or above: never run or loaded */
    size_t n_sites;
    char *sites[PL_INTERPRETER_SITES];
} pl_interpreter;

/* `word` is a program (a path, or a name on PATH) or the folder of an environment; NULL: python3 on
 * PATH, else python. -ENOENT and others, with a message that says what was tried. */
PL_MUST_CHECK int pl_interpreter_find(const char *root, const char *word,
                                      pl_interpreter *ret_interpreter, pl_error *reterr);
void pl_interpreter_done(pl_interpreter *interpreter);

/* Fills in the sites; internal to pl_interpreter_find(). -ENOMEM. */
PL_MUST_CHECK int pl_interpreter_find_sites(const char *root, pl_interpreter *interpreter);

/* Reads the value of a key, trimmed, from the text of a pyvenv.cfg: "home = /usr/bin". False if it
 * is missing or does not fit. */
bool pl_venv_value(const char *config, const char *key, char *value, size_t n);

/* "3.11" of "3.11.2.final.0" and of "3.11", and "3.13" with a 't' of "3.13t". */
bool pl_interpreter_take_version(pl_interpreter *interpreter, const char *text);

/* The next folder that a .pth file of a site names, from *cursor on, which starts as its text and
 * is changed. Lines that begin with "import" are code, which is not run. False at the end. */
bool pl_pth_next(char **cursor, const char *site, char path[PATH_MAX]);

/* Reads the first word of a pyenv version file; false if it cannot name a folder of a version. */
bool pl_pyenv_version(const char *text, char version[PL_PYENV_VERSION_BYTES]);

/* Finds the program that a word names, as described above. *ret_by_folder: a .python-version chose
 * among pyenv's versions. */
PL_MUST_CHECK int pl_interpreter_program(const char *root, const char *word, char path[PATH_MAX],
                                         bool *ret_by_folder);

#endif
