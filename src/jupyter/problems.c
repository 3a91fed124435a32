/* SPDX-License-Identifier: Apache-2.0 */
/* Finds what is wrong with a kernelspec that can be read: missing files. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "jupyter/folder.h"
#include "jupyter/kernelspec.h"
#include "jupyter/program.h"
#include "jupyter/spec_file.h"

/* Judges a command's first word only if that is possible from here: not a word that Jupyter fills
 * in, that is relative to the folder it will run in, or that is looked up in the kernel's own
 * PATH. */
static bool can_be_found(const pl_kernelspec *kernel, const char *word)
{
    char path[PATH_MAX];
    const json_t *env = json_object_get(kernel->spec, "env");
    if (strchr(word, '{') != NULL)
        return true;
    if (word[0] == '/')
        return pl_program_runs(word);
    if (strchr(word, '/') != NULL || json_object_get(env, "PATH") != NULL)
        return true;
    if (pl_program_is_python_word(word))
        return pl_program_python(word, kernel->folder, path) == 0;
    return pl_program_find(word, path) == 0;
}

static bool is_gone(const char *folder)
{
    char file[PATH_MAX];
    return pl_path_join(folder, PL_SPEC_FILE, file) == 0 && access(file, F_OK) < 0 &&
           (errno == ENOENT || errno == ENOTDIR);
}

size_t pl_kernelspec_problems(const pl_kernelspec *kernel,
                              pl_error problems[PL_KERNELSPEC_PROBLEMS])
{
    size_t n = 0, command = pl_kernelspec_command(kernel);
    if (kernel->spec == NULL) {
        problems[0] = kernel->problem;
        return 1;
    }
    const char *first = pl_kernelspec_word(kernel, 0), *word = pl_kernelspec_word(kernel, command);
    const char *twin_of = pl_kernelspec_twin_of(kernel);
    bool twin = twin_of[0] != '\0';
    if (twin && !pl_program_runs(first))
        pl_error_set(&problems[n++], -ENOENT,
                     "'%s' is gone or cannot be run: run 'plimsoll jupyter install --kernel %s'",
                     first, twin_of);
    if (twin && is_gone(pl_kernelspec_original(kernel)))
        pl_error_set(&problems[n++], -ENOENT,
                     "its original '%s' is gone: run 'plimsoll jupyter uninstall --kernel %s'",
                     pl_kernelspec_original(kernel), twin_of);
    if (twin && command == 0)
        pl_error_set(&problems[n++], PL_EFORMAT,
                     "its command is not 'plimsoll run ... -- COMMAND': run 'plimsoll jupyter "
                     "install --kernel %s'",
                     twin_of);
    else if (word == NULL || !can_be_found(kernel, word))
        pl_error_set(&problems[n++], -ENOENT, "its program '%s' cannot be found",
                     word != NULL ? word : "");
    return n;
}
