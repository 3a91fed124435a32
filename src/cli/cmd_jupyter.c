/* SPDX-License-Identifier: Apache-2.0 */
/* plimsoll jupyter install | list | uninstall: Jupyter kernels that run under the line. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cli/answer.h"
#include "cli/commands.h"
#include "cli/jupyter_list.h"
#include "cli/jupyter_options.h"
#include "cli/say.h"
#include "jupyter/kernelspec.h"
#include "jupyter/paths.h"
#include "jupyter/program.h"
#include "jupyter/twin.h"

/* The kernel is missing or broken: trying again would not help, and plimsoll did not fail. */
enum { EXIT_NO_KERNEL = 1 };

/* The folders and names that a verb works on. */
typedef struct workplace {
    const pl_jupyter_options *options;
    pl_jupyter_paths paths;
    pl_kernelspecs known;  /* the kernelspecs that Jupyter finds */
    char folder[PATH_MAX]; /* the kernels folder to change */
} workplace;

static int fail(const pl_error *error)
{
    pl_say_error("%s", error->message);
    return PL_EXIT_FAILURE;
}

static void print_note(const char *text)
{
    pl_say_error("%s", text);
}

static int workplace_init(workplace *place, const pl_jupyter_options *options, pl_error *reterr)
{
    *place = (workplace){.options = options};
    int r = pl_jupyter_paths_init(&place->paths, reterr);
    if (r == 0)
        r = pl_kernelspecs_init(&place->known, place->paths.folders, place->paths.n_folders,
                                reterr);
    if (r == 0 && strcmp(options->verb, "list") != 0)
        r = options->prefix != NULL
                ? pl_jupyter_prefix_folder(options->prefix, place->folder, reterr)
                : pl_jupyter_user_folder(place->folder, reterr);
    return r;
}

static void workplace_done(workplace *place)
{
    pl_kernelspecs_done(&place->known);
    pl_jupyter_paths_done(&place->paths);
}

static int say_none_found(const workplace *place)
{
    const pl_jupyter_paths *paths = &place->paths;
    fputs("plimsoll: found no kernel to guard in any of these folders:\n", stderr);
    for (size_t i = 0; i < paths->n_folders; i++)
        pl_say_to(stderr, "  %s\n", paths->folders[i]);
    fputs("  next: install one (for Python: 'python3 -m ipykernel install --user'), or set\n"
          "  JUPYTER_PATH to the share/jupyter folder that has one\n",
          stderr);
    return EXIT_NO_KERNEL;
}

/* A twin that Jupyter does not find is useless, and Jupyter would not report it. */
static void warn_if_unseen(const workplace *place, const char *path)
{
    const char *name = strrchr(path, '/') + 1;
    const pl_kernelspec *first = pl_kernelspecs_get(&place->known, name);
    if (!pl_jupyter_paths_contain(&place->paths, place->folder)) {
        int n = (int)(strlen(place->folder) - strlen("/kernels"));
        pl_say_error("Jupyter does not look in '%s': set JUPYTER_PATH=%.*s where it is "
                     "started",
                     place->folder, n, place->folder);
    } else if (first != NULL && strcmp(first->folder, path) != 0) {
        for (size_t i = 0; i < place->paths.n_folders; i++) {
            const char *folder = place->paths.folders[i];
            size_t n = strlen(folder);
            if (strcmp(folder, place->folder) == 0)
                return; /* it is found before the other one */
            if (strncmp(first->folder, folder, n) == 0 && first->folder[n] == '/') {
                pl_say_error("Jupyter takes '%s' instead: it finds that one first", first->folder);
                return;
            }
        }
    }
}

/* Returns 0 or the exit status. */
static int install_one(const workplace *place, const pl_kernelspec *kernel)
{
    if (kernel->spec == NULL) {
        pl_say_error("cannot guard '%s': %s", kernel->name, kernel->problem.message);
        return EXIT_NO_KERNEL;
    }
    pl_error error = {0};
    char program[PATH_MAX], path[PATH_MAX];
    int r = pl_program_self(program, &error);
    pl_twin_options options = {.program = program,
                               .budget = place->options->budget,
                               .folder = place->folder,
                               .note = print_note};
    if (r == 0)
        r = pl_twin_install(kernel, &options, path, &error);
    if (r < 0) {
        fail(&error);
        return r == -EEXIST ? EXIT_NO_KERNEL : PL_EXIT_FAILURE;
    }
    pl_say_to(stdout, "%s: its twin is %s\n", kernel->name, path);
    warn_if_unseen(place, path);
    return 0;
}

/* Makes a twin for every kernel that is not started through `plimsoll run` yet; of one language, if
 * one is given. */
static int install_all(const workplace *place, const char *language)
{
    int status = 0, n_tried = 0;
    for (size_t i = 0; i < place->known.n_items && status != PL_EXIT_FAILURE; i++) {
        const pl_kernelspec *kernel = &place->known.items[i];
        if (pl_kernelspec_is_twin(kernel) || pl_kernelspec_command(kernel) > 0)
            continue;
        if (language != NULL && strcasecmp(pl_kernelspec_language(kernel), language) != 0)
            continue;
        int r = install_one(place, kernel);
        status = r != 0 ? r : status;
        n_tried++;
    }
    return n_tried > 0 ? status : say_none_found(place);
}

static int install_named(const workplace *place, const char *name)
{
    const pl_kernelspec *kernel = pl_kernelspecs_get(&place->known, name);
    if (kernel == NULL) {
        pl_say_error("there is no kernel '%s' (see 'plimsoll jupyter list')", name);
        return EXIT_NO_KERNEL;
    }
    if (pl_kernelspec_is_twin(kernel)) {
        pl_say_error("'%s' is a twin already: give --kernel %s", kernel->name,
                     pl_kernelspec_twin_of(kernel));
        return EXIT_NO_KERNEL;
    }
    if (pl_kernelspec_command(kernel) > 0) {
        pl_say_error("'%s' needs no twin: its command is already a 'plimsoll run'", kernel->name);
        return EXIT_NO_KERNEL;
    }
    return install_one(place, kernel);
}

static int install(const workplace *place)
{
    if (place->options->all)
        return install_all(place, NULL);
    if (place->options->kernel != NULL)
        return install_named(place, place->options->kernel);
    if (pl_kernelspecs_get(&place->known, "python3") != NULL)
        return install_named(place, "python3");
    return install_all(place, "python");
}

static int remove_one(const pl_kernelspec *twin)
{
    pl_error error = {0};
    if (pl_twin_remove(twin, print_note, &error) < 0)
        return fail(&error);
    pl_say_to(stdout, "%s: removed %s\n", pl_kernelspec_twin_of(twin), twin->folder);
    return 0;
}

/* Finds the twin of that name, or the twin of the kernel of that name. */
static const pl_kernelspec *find_twin(const pl_kernelspecs *there, const char *name)
{
    const pl_kernelspec *found = pl_kernelspecs_get(there, name);
    if (found != NULL && pl_kernelspec_is_twin(found))
        return found;
    found = NULL;
    for (size_t i = 0; i < there->n_items; i++) {
        const pl_kernelspec *one = &there->items[i];
        bool usual = strncmp(one->name, PL_TWIN_PREFIX, strlen(PL_TWIN_PREFIX)) == 0;
        if (strcasecmp(pl_kernelspec_twin_of(one), name) == 0 && (found == NULL || usual))
            found = one;
    }
    return found;
}

/* A folder with a twin's name and a broken kernel.json may be a twin or not. */
static void say_if_broken(const pl_kernelspecs *there, const char *name)
{
    size_t n = strlen(PL_TWIN_PREFIX);
    for (size_t i = 0; i < there->n_items; i++) {
        const pl_kernelspec *one = &there->items[i];
        bool meant = strncmp(one->name, PL_TWIN_PREFIX, n) == 0 &&
                     (name == NULL || strcasecmp(one->name + n, name) == 0);
        if (meant && one->spec == NULL)
            pl_say_error("did not remove '%s', which may be a twin: %s", one->folder,
                         one->problem.message);
    }
}

static int say_nothing_to_remove(const workplace *place, const char *name)
{
    pl_say_error("there is no twin%s%s%s in '%s'", name != NULL ? " of '" : "",
                 name != NULL ? name : "", name != NULL ? "'" : "", place->folder);
    for (size_t i = 0; i < place->known.n_items; i++) {
        const pl_kernelspec *twin = &place->known.items[i];
        bool meant = name == NULL || strcasecmp(pl_kernelspec_twin_of(twin), name) == 0;
        if (pl_kernelspec_is_twin(twin) && meant)
            pl_say_to(stderr, "  there is '%s': name its prefix with --prefix DIR\n", twin->folder);
    }
    return EXIT_NO_KERNEL;
}

static int remove_all(const workplace *place, const pl_kernelspecs *there)
{
    int n_removed = 0, status = 0;
    for (size_t i = 0; i < there->n_items && status == 0; i++) {
        if (!pl_kernelspec_is_twin(&there->items[i]))
            continue;
        status = remove_one(&there->items[i]);
        n_removed++;
    }
    return n_removed > 0 ? status : say_nothing_to_remove(place, NULL);
}

static int remove_unnamed(const workplace *place, const pl_kernelspecs *there)
{
    const pl_kernelspec *twin = find_twin(there, "python3"), *only = NULL;
    int n_twins = 0;
    for (size_t i = 0; i < there->n_items; i++) {
        if (pl_kernelspec_is_twin(&there->items[i])) {
            only = &there->items[i];
            n_twins++;
        }
    }
    if (twin == NULL && n_twins > 1) {
        pl_say_error("there are %d twins in '%s': give --kernel NAME or --all", n_twins,
                     place->folder);
        return EXIT_NO_KERNEL;
    }
    twin = twin != NULL ? twin : only;
    return twin != NULL ? remove_one(twin) : say_nothing_to_remove(place, NULL);
}

static int uninstall(const workplace *place)
{
    pl_error error = {0};
    pl_kernelspecs there = {0};
    char *folder = (char *)place->folder;
    const char *name = place->options->kernel;
    if (pl_kernelspecs_init(&there, &folder, 1, &error) < 0)
        return fail(&error);
    int status;
    if (place->options->all) {
        status = remove_all(place, &there);
    } else if (name == NULL) {
        status = remove_unnamed(place, &there);
    } else {
        const pl_kernelspec *twin = find_twin(&there, name);
        status = twin != NULL ? remove_one(twin) : say_nothing_to_remove(place, name);
    }
    say_if_broken(&there, name);
    pl_kernelspecs_done(&there);
    return status;
}

static int list(const workplace *place)
{
    pl_error error = {0};
    int r = 0;
    if (place->options->json)
        r = pl_jupyter_list_json(&place->paths, &place->known, &error);
    else
        pl_jupyter_list_text(&place->known);
    return r < 0 ? fail(&error) : 0;
}

int pl_cmd_jupyter(int argc, char **argv)
{
    static const struct verb {
        const char *name;
        int (*call)(const workplace *place);
    } verbs[] = {{"install", install}, {"list", list}, {"uninstall", uninstall}};
    pl_jupyter_options options = {0};
    pl_error error = {0};
    if (pl_jupyter_options_read(argc, argv, &options, &error) < 0)
        return fail(&error);
    if (options.help) {
        fputs(pl_jupyter_usage, stdout);
        return 0;
    }

    workplace place;
    int status = 0;
    if (workplace_init(&place, &options, &error) < 0)
        status = fail(&error);
    for (size_t i = 0; status == 0 && i < PL_COUNT_OF(verbs); i++)
        if (strcmp(options.verb, verbs[i].name) == 0)
            status = verbs[i].call(&place);
    workplace_done(&place);
    int end = pl_answer_end(0, NULL);
    return end != 0 ? end : status;
}
