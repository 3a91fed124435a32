/* SPDX-License-Identifier: Apache-2.0 */
/* A Python, and where it finds packages, told from its files: names, links, pyvenv.cfg, .pth files.
 *   prefix   the environment that it belongs to: a virtualenv, a conda environment, /usr
 *   base     the installation beneath a virtualenv; else the prefix
 *   site     a folder on its path that packages are installed in; the first that has one wins
 *
 * It is run, with -I -S and one print, only where its files do not tell: a script that stands for
 * it (a shim), a program without a version. Never below another root, and never what a file of the
 * working folder chose. pyenv's shims are understood without that. Allocates. */
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
    bool sees_base; /* packages of the base, and the user's, are found as well */
    bool was_run;
    bool by_folder; /* a .python-version here or above chose it: nothing of it is run or loaded */
    size_t n_sites;
    char *sites[PL_INTERPRETER_SITES];
} pl_interpreter;

/* `word` is a program, as a path or to be found on PATH, or the folder of an environment; NULL:
 * python3 on PATH, else python. -ENOENT and others, with a message that says what was tried. */
PL_MUST_CHECK int pl_interpreter_find(const char *root, const char *word,
                                      pl_interpreter *ret_interpreter, pl_error *reterr);
void pl_interpreter_done(pl_interpreter *interpreter);

/* Fills in the sites; for pl_interpreter_find() alone. -ENOMEM. */
PL_MUST_CHECK int pl_interpreter_find_sites(const char *root, pl_interpreter *interpreter);

/* "home = /usr/bin" in the text of a pyvenv.cfg: the value of a key, blanks trimmed. False where
 * there is none, or it does not fit. */
bool pl_venv_value(const char *config, const char *key, char *value, size_t n);

/* "3.11" of "3.11.2.final.0" and of "3.11", and "3.13" with a 't' of "3.13t". */
bool pl_interpreter_take_version(pl_interpreter *interpreter, const char *text);

/* The next folder that a .pth file of a site names, from *cursor on, which starts as its text and
 * is changed. Lines that begin with "import" are code, which is not run. False at the end. */
bool pl_pth_next(char **cursor, const char *site, char path[PATH_MAX]);

/* The first word of a pyenv version file; false where it cannot be the name of a folder there. */
bool pl_pyenv_version(const char *text, char version[PL_PYENV_VERSION_BYTES]);

/* The program that a word means: see above. *ret_by_folder: a .python-version chose among pyenv's
 * versions. */
PL_MUST_CHECK int pl_interpreter_program(const char *root, const char *word, char path[PATH_MAX],
                                         bool *ret_by_folder);

#endif
