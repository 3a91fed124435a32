/* SPDX-License-Identifier: Apache-2.0 */
/* See kernelspec.h. Finds and reads; changes nothing. */
#include "jupyter/kernelspec.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "jupyter/folder.h"
#include "jupyter/spec_file.h"

/* The names that jupyter_client calls valid. It warns about others, and so do most of its users. */
static bool is_valid_name(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789._-";
    for (const char *c = name; *c != '\0'; c++) {
        char lower = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
        if (strchr(letters, lower) == NULL)
            return false;
    }
    return name[0] != '\0' && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static void kernelspec_done(pl_kernelspec *kernel)
{
    free(kernel->name);
    free(kernel->folder);
    json_decref(kernel->spec);
    *kernel = (pl_kernelspec){0};
}

void pl_kernelspecs_done(pl_kernelspecs *specs)
{
    for (size_t i = 0; i < specs->n_items; i++)
        kernelspec_done(&specs->items[i]);
    free(specs->items);
    *specs = (pl_kernelspecs){0};
}

const pl_kernelspec *pl_kernelspecs_get(const pl_kernelspecs *specs, const char *name)
{
    for (size_t i = 0; i < specs->n_items; i++)
        if (strcasecmp(specs->items[i].name, name) == 0)
            return &specs->items[i];
    return NULL;
}

static int kernelspec_init(pl_kernelspec *ret_kernel, const char *name, const char *folder,
                           const char *file)
{
    pl_kernelspec kernel = {.name = strdup(name), .folder = strdup(folder)};
    int r = kernel.name == NULL || kernel.folder == NULL ? -ENOMEM : 0;
    for (char *c = kernel.name; r == 0 && *c != '\0'; c++)
        if (*c >= 'A' && *c <= 'Z')
            *c = (char)(*c - 'A' + 'a');
    if (r == 0)
        r = pl_spec_load(file, &kernel.spec, &kernel.problem);
    if (r == -ENOMEM) {
        kernelspec_done(&kernel);
        return r;
    }
    *ret_kernel = kernel;
    return 0;
}

/* As in jupyter_client, a folder whose kernel.json is not a file is not a kernelspec, and hides
 * none. */
static int add_folder(pl_kernelspecs *specs, const char *kernels, const char *name)
{
    char folder[PATH_MAX], file[PATH_MAX];
    struct stat st;
    bool counts = is_valid_name(name) && pl_kernelspecs_get(specs, name) == NULL &&
                  pl_path_join(kernels, name, folder) == 0 &&
                  pl_path_join(folder, PL_SPEC_FILE, file) == 0 && stat(file, &st) == 0 &&
                  S_ISREG(st.st_mode);
    if (!counts)
        return 0;
    pl_kernelspec *larger = reallocarray(specs->items, specs->n_items + 1, sizeof(*larger));
    if (larger == NULL)
        return -ENOMEM;
    specs->items = larger;
    int r = kernelspec_init(&larger[specs->n_items], name, folder, file);
    specs->n_items += r == 0;
    return r;
}

/* Sorts by name. Of "IR" and "ir" in one folder, Jupyter takes either. */
static int add_kernels(pl_kernelspecs *specs, const char *kernels)
{
    struct dirent **entries = NULL;
    int n = scandir(kernels, &entries, NULL, alphasort), r = 0;
    if (n < 0)
        return errno == ENOMEM ? -ENOMEM : 0;
    for (int i = 0; i < n; i++) {
        if (r == 0)
            r = add_folder(specs, kernels, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return r;
}

static int compare_names(const void *left, const void *right)
{
    const pl_kernelspec *a = left, *b = right;
    return strcmp(a->name, b->name);
}

int pl_kernelspecs_init(pl_kernelspecs *ret_specs, char *const *folders, size_t n_folders,
                        pl_error *reterr)
{
    pl_kernelspecs specs = {0};
    int r = 0;
    for (size_t i = 0; r == 0 && i < n_folders; i++)
        r = add_kernels(&specs, folders[i]);
    if (r < 0) {
        pl_kernelspecs_done(&specs);
        return pl_error_set(reterr, r, "cannot list the kernels: out of memory");
    }
    if (specs.n_items > 0)
        qsort(specs.items, specs.n_items, sizeof(*specs.items), compare_names);
    *ret_specs = specs;
    return 0;
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "";
}

const char *pl_kernelspec_display_name(const pl_kernelspec *kernel)
{
    return text_of(kernel->spec, "display_name");
}

const char *pl_kernelspec_language(const pl_kernelspec *kernel)
{
    return text_of(kernel->spec, "language");
}

static const json_t *our_mark(const pl_kernelspec *kernel)
{
    return json_object_get(json_object_get(kernel->spec, "metadata"), "plimsoll");
}

const char *pl_kernelspec_twin_of(const pl_kernelspec *kernel)
{
    return text_of(our_mark(kernel), "twin_of");
}

const char *pl_kernelspec_original(const pl_kernelspec *kernel)
{
    return text_of(our_mark(kernel), "original");
}

bool pl_kernelspec_is_twin(const pl_kernelspec *kernel)
{
    return pl_kernelspec_twin_of(kernel)[0] != '\0';
}

const char *pl_kernelspec_word(const pl_kernelspec *kernel, size_t index)
{
    return json_string_value(json_array_get(json_object_get(kernel->spec, "argv"), index));
}

/* Is it the program of that name, in any folder? */
static bool is_plimsoll(const char *word)
{
    const char *slash = word != NULL ? strrchr(word, '/') : NULL;
    return word != NULL && strcmp(slash != NULL ? slash + 1 : word, "plimsoll") == 0;
}

size_t pl_kernelspec_command(const pl_kernelspec *kernel)
{
    const char *word = pl_kernelspec_word(kernel, 1);
    bool ours = pl_kernelspec_is_twin(kernel) || is_plimsoll(pl_kernelspec_word(kernel, 0));
    if (!ours || word == NULL || strcmp(word, "run") != 0)
        return 0;
    for (size_t i = 2; (word = pl_kernelspec_word(kernel, i)) != NULL; i++)
        if (strcmp(word, "--") == 0)
            return i + 1;
    return 0;
}

const char *pl_kernelspec_budget(const pl_kernelspec *kernel)
{
    size_t end = pl_kernelspec_command(kernel);
    for (size_t i = 2; i + 2 < end; i++)
        if (strcmp(pl_kernelspec_word(kernel, i), "--budget") == 0)
            return pl_kernelspec_word(kernel, i + 1);
    return "";
}
