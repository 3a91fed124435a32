/* SPDX-License-Identifier: Apache-2.0 */
/* See twin.h. A twin is made, and an old one taken apart, in a folder `.plimsoll-XXXXXX` beside its
 * final place: on the same file system, so that one rename() moves it, and without a kernel.json of
 * its own, so that Jupyter ignores it. */
#include "jupyter/twin.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jupyter/program.h"
#include "jupyter/spec_file.h"
#include "sys/file.h"
#include "json/document.h"

static const char connection_file[] = "{connection_file}";

/* A JSON value under construction, as in report/json.h: one flag remembers any failure. */
typedef struct draft {
    const pl_kernelspec *original;
    const pl_twin_options *options;
    bool failed;
} draft;

static void put(draft *draft_, json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) < 0)
        draft_->failed = true;
}

static void add(draft *draft_, json_t *array, const char *word)
{
    if (json_array_append_new(array, json_string(word)) < 0)
        draft_->failed = true;
}

static bool names_connection_file(const pl_kernelspec *kernel)
{
    const char *word;
    for (size_t i = 0; (word = pl_kernelspec_word(kernel, i)) != NULL; i++)
        if (strstr(word, connection_file) != NULL)
            return true;
    return false;
}

static void note_about(const draft *draft_, const char *what)
{
    char text[512];
    snprintf(text, sizeof(text), "kernel '%s': %s", draft_->original->name, what);
    draft_->options->note(text);
}

/* jupyter_client puts its own Python in place of a command's first word "python"; behind `plimsoll
 * run` the word is no longer the first, and PATH may give any other Python. */
static void add_first_word(draft *draft_, json_t *argv)
{
    const char *word = pl_kernelspec_word(draft_->original, 0);
    char python[PATH_MAX];
    if (!pl_program_is_python_word(word)) {
        add(draft_, argv, word);
    } else if (pl_program_python(word, draft_->original->folder, python) == 0) {
        add(draft_, argv, python);
    } else {
        note_about(draft_, "no Python was found for its command: the one on PATH will be used");
        add(draft_, argv, word);
    }
}

static json_t *draft_argv(draft *draft_)
{
    json_t *argv = json_array();
    add(draft_, argv, draft_->options->program);
    add(draft_, argv, "run");
    if (names_connection_file(draft_->original)) {
        /* Not {connection_file}: VS Code fills in only the first one, which the kernel needs. */
        add(draft_, argv, "--kernel");
        add(draft_, argv, "auto");
    } else {
        note_about(draft_, "its command names no {connection_file}: after a restart, the next "
                           "kernel cannot show what ended this one");
    }
    if (draft_->options->budget != NULL) {
        add(draft_, argv, "--budget");
        add(draft_, argv, draft_->options->budget);
    }
    add(draft_, argv, "--");
    add_first_word(draft_, argv);
    const char *word;
    for (size_t i = 1; (word = pl_kernelspec_word(draft_->original, i)) != NULL; i++)
        add(draft_, argv, word);
    return argv;
}

/* "Python 3 (ipykernel)" becomes "Python 3 (Plimsoll)": only one pair of brackets. */
static json_t *draft_display_name(const pl_kernelspec *original)
{
    static const char ending[] = " (ipykernel)";
    const char *name = pl_kernelspec_display_name(original);
    if (name[0] == '\0')
        name = original->name;
    size_t n = strlen(name), n_ending = strlen(ending);
    if (n > n_ending && strcmp(name + n - n_ending, ending) == 0)
        n -= n_ending;
    return json_sprintf("%.*s (Plimsoll)", (int)n, name);
}

static json_t *draft_metadata(draft *draft_, const json_t *spec)
{
    json_t *metadata = json_deep_copy(json_object_get(spec, "metadata"));
    if (json_object_get(spec, "metadata") == NULL)
        metadata = json_object();
    json_t *mark = json_object();
    put(draft_, mark, "twin_of", json_string(draft_->original->name));
    put(draft_, mark, "original", json_string(draft_->original->folder));
    put(draft_, mark, "version", json_string(PL_VERSION));
    put(draft_, metadata, "plimsoll", mark);
    return metadata;
}

static int make_spec(const pl_kernelspec *original, const pl_twin_options *options,
                     json_t **ret_spec, pl_error *reterr)
{
    draft draft_ = {.original = original, .options = options};
    pl_json_watch_memory();
    json_t *spec = json_deep_copy(original->spec);
    put(&draft_, spec, "argv", draft_argv(&draft_));
    put(&draft_, spec, "display_name", draft_display_name(original));
    put(&draft_, spec, "metadata", draft_metadata(&draft_, original->spec));
    bool sufficed = pl_json_memory_sufficed();
    if (sufficed && !draft_.failed) {
        *ret_spec = spec;
        return 0;
    }
    json_decref(spec);
    if (!sufficed)
        return pl_error_set(reterr, -ENOMEM, "cannot make the twin of '%s': out of memory",
                            original->name);
    return pl_error_set(reterr, -EILSEQ,
                        "'%s' or '%s' is not UTF-8, and cannot be written in a kernel.json",
                        original->folder, options->program);
}

/* A folder with the twin's name that plimsoll did not make is left alone. */
static int check_place(const char *path, pl_error *reterr)
{
    char file[PATH_MAX];
    struct stat st;
    if (lstat(path, &st) < 0)
        return 0;
    pl_kernelspec there = {0};
    int r = pl_path_join(path, PL_SPEC_FILE, file);
    if (r == 0)
        r = pl_spec_load(file, &there.spec, reterr);
    bool ours = r == 0 && pl_kernelspec_is_twin(&there);
    json_decref(there.spec);
    if (r == -ENOMEM || ours)
        return ours ? 0 : r;
    return pl_error_set(reterr, -EEXIST,
                        "'%s' already exists, and is not a twin that plimsoll made: move it away, "
                        "or choose another place with --prefix",
                        path);
}

static int make_workshop(const char *kernels, char workshop[PATH_MAX])
{
    int r = pl_file_make_folders(kernels, 0777);
    if (r == 0)
        r = pl_path_join(kernels, ".plimsoll-XXXXXX", workshop);
    if (r == 0 && mkdtemp(workshop) == NULL)
        r = -errno;
    return r;
}

/* Swaps the folder `made` with `path`. */
static int swap_in(const char *made, const char *path, const char *workshop)
{
    if (renameat2(AT_FDCWD, made, AT_FDCWD, path, RENAME_EXCHANGE) == 0)
        return 0;
    if (errno == ENOENT)
        return rename(made, path) < 0 ? -errno : 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -errno;
    /* The file system cannot swap folders, as on NFS: for a moment there is no twin. */
    char old[PATH_MAX];
    int r = pl_path_join(workshop, "old", old);
    if (r == 0 && rename(path, old) < 0 && errno != ENOENT)
        r = -errno;
    if (r == 0 && rename(made, path) < 0) {
        r = -errno;
        if (rename(old, path) < 0)
            return r;
    }
    return r;
}

static int build_and_place(const pl_kernelspec *original, const json_t *spec, pl_folder_note *note,
                           const char *workshop, const char *path)
{
    char made[PATH_MAX], file[PATH_MAX];
    int r = pl_path_join(workshop, "twin", made);
    if (r == 0)
        r = pl_path_join(made, PL_SPEC_FILE, file);
    if (r == 0 && mkdir(made, 0777) < 0)
        r = -errno;
    if (r == 0)
        r = pl_folder_copy(original->folder, made, PL_SPEC_FILE, note);
    if (r == 0)
        r = pl_spec_save(spec, file);
    return r == 0 ? swap_in(made, path, workshop) : r;
}

static int cannot_install(pl_error *reterr, int r, const char *path)
{
    return pl_error_set(reterr, r,
                        "cannot write '%s': %s; choose another place with --user or --prefix DIR",
                        path, pl_error_text(r));
}

/* A folder that cannot be removed does no harm: it is reported, but is not a failure. */
static void clear_workshop(const char *workshop, pl_folder_note *note)
{
    int r = pl_folder_remove(workshop);
    char text[PATH_MAX + 128];
    snprintf(text, sizeof(text), "cannot remove '%s': %s", workshop, pl_error_text(r));
    if (r < 0)
        note(text);
}

int pl_twin_install(const pl_kernelspec *original, const pl_twin_options *options,
                    char path[PATH_MAX], pl_error *reterr)
{
    char name[NAME_MAX + 1], workshop[PATH_MAX];
    int n = snprintf(name, sizeof(name), PL_TWIN_PREFIX "%s", original->name);
    int r = n >= (int)sizeof(name) ? -ENAMETOOLONG : pl_path_join(options->folder, name, path);
    if (r < 0)
        return cannot_install(reterr, r, options->folder);
    r = check_place(path, reterr);
    if (r < 0)
        return r;
    json_t *spec = NULL;
    r = make_spec(original, options, &spec, reterr);
    if (r < 0)
        return r;
    r = make_workshop(options->folder, workshop);
    if (r == 0) {
        r = build_and_place(original, spec, options->note, workshop, path);
        clear_workshop(workshop, options->note);
    }
    json_decref(spec);
    return r < 0 ? cannot_install(reterr, r, path) : 0;
}

int pl_twin_remove(const pl_kernelspec *twin, pl_folder_note *note, pl_error *reterr)
{
    char kernels[PATH_MAX], workshop[PATH_MAX], old[PATH_MAX];
    if (!pl_kernelspec_is_twin(twin))
        return pl_error_set(reterr, PL_EUSAGE, "'%s' is not a twin that plimsoll made",
                            twin->folder);
    int r = pl_path_absolute(twin->folder, kernels);
    if (r == 0) {
        *strrchr(kernels, '/') = '\0';
        r = make_workshop(kernels, workshop);
    }
    if (r == 0) {
        r = pl_path_join(workshop, "old", old);
        if (r == 0 && rename(twin->folder, old) < 0)
            r = -errno;
        clear_workshop(workshop, note);
    }
    if (r < 0)
        return pl_error_set(reterr, r, "cannot remove '%s': %s", twin->folder, pl_error_text(r));
    return 0;
}
