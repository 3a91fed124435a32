/* SPDX-License-Identifier: Apache-2.0 */
/* Paths as elements: a list of them, those that patterns match, and pictures in folders by class.
 *
 * Paths are found when the dataset is made, and kept once for all its passes. Another order is a
 * permutation that is computed, not kept. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "data/core/counter_random.h"
#include "data/core/permutation.h"
#include "data/core/seeds.h"
#include "data/core/stage.h"
#include "data/persist/state.h"
#include "data/source/glob.h"
#include "data/source/paths.h"

typedef struct files_dataset {
    pl_dataset base;
    pl_paths paths;
    pl_files_options options;
    bool seeded; /* by the user */
    /* For images by class; the paths of a class are adjacent. */
    int64_t n_classes;
    int64_t *first_of; /* n_classes + 1 */
    pl_paths class_names;
    int64_t n_foreign; /* pictures that are left out: they are not decoded */
} files_dataset;

typedef struct files_stage {
    pl_stage base;
    pl_permutation order; /* if it is shuffled */
    uint64_t seed;
    int64_t pass;
    int64_t at;
} files_stage;

static void free_files(pl_dataset *dataset)
{
    files_dataset *own = (files_dataset *)dataset;
    pl_paths_done(&own->paths);
    pl_paths_done(&own->class_names);
    free(own->first_of);
}

static void set_order(files_stage *own, uint64_t seed, int64_t pass)
{
    const files_dataset *files = (const files_dataset *)own->base.dataset;
    own->seed = seed;
    own->pass = pass;
    pl_permutation_init(&own->order, (uint64_t)files->base.cardinality, seed,
                        files->options.same_each_pass ? 0
                        : own->base.round             ? pl_draw((uint64_t)pass, own->base.round)
                                                      : (uint64_t)pass);
}

static int open_files(pl_stage *stage, pl_error *reterr)
{
    const files_dataset *files = (const files_dataset *)stage->dataset;
    pl_seed seed;
    int r = pl_seed_take(stage->pass, stage->dataset, files->options.seed, &seed, reterr);
    if (r == 0)
        set_order((files_stage *)stage, seed.seed, (int64_t)seed.number);
    return r;
}

/* The class that a path's number is of. */
static int64_t class_of(const files_dataset *own, int64_t number)
{
    int64_t low = 0, high = own->n_classes;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (own->first_of[middle] <= number)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static int get(pl_stage *stage, int64_t at, pl_element *ret_element, pl_error *reterr)
{
    const files_dataset *own = (const files_dataset *)stage->dataset;
    if (own->options.shuffle)
        at = (int64_t)pl_permutation_at(&((files_stage *)stage)->order, (uint64_t)at);
    const char *path = pl_paths_at(&own->paths, (size_t)at);
    const pl_string string = {path, strlen(path)};
    pl_element element;
    if (pl_element_init(&element, own->base.n_components) < 0)
        return pl_error_set(reterr, -ENOMEM, "out of memory for an element");
    element.origin = pl_origin_new(path);
    int r = element.origin ? pl_tensor_new_strings(stage->pass->runtime, &(pl_shape){0}, &string,
                                                   "path", &element.few[0].tensor, reterr)
                           : pl_error_set(reterr, -ENOMEM, "out of memory for a path");
    if (r < 0) {
        pl_element_clear(&element);
        return pl_pass_later(stage->pass, r) ? PL_RETRY_ALONE : r;
    }
    if (element.n > 1)
        element.few[1] = pl_item_scalar(PL_I64, (uint64_t)class_of(own, at));
    *ret_element = element;
    return 1;
}

static int next(pl_stage *stage, pl_element *ret_element, pl_error *reterr)
{
    files_stage *own = (files_stage *)stage;
    if (own->at == stage->dataset->cardinality)
        return 0;
    int r = get(stage, own->at, ret_element, reterr);
    own->at += r != PL_RETRY_ALONE;
    return r;
}

/* A seed that came from the system is another in each process: the state has it. */
static int save(pl_stage *stage, pl_saver *saver, pl_error *reterr)
{
    files_stage *own = (files_stage *)stage;
    int r = pl_save_int(saver, own->pass, reterr);
    if (r == 0 && !((const files_dataset *)stage->dataset)->seeded)
        r = pl_save_int(saver, (int64_t)own->seed, reterr);
    return r < 0 ? r : pl_save_int(saver, own->at, reterr);
}

static int restore(pl_stage *stage, pl_loader *loader, pl_error *reterr)
{
    files_stage *own = (files_stage *)stage;
    int64_t pass, seed = (int64_t)own->seed;
    int r = pl_load_count(loader, &pass, reterr);
    if (r == 0 && !((const files_dataset *)stage->dataset)->seeded)
        r = pl_load_int(loader, INT64_MIN, INT64_MAX, &seed, reterr);
    if (r < 0)
        return r;
    set_order(own, (uint64_t)seed, pass);
    pl_seed_set(stage->pass, stage->dataset, (pl_seed){own->seed, (uint64_t)pass});
    return pl_load_int(loader, 0, stage->dataset->cardinality, &own->at, reterr);
}

/* The files may change from day to day: their number and the ends of the list show it. */
static void describe(const pl_dataset *dataset, FILE *to)
{
    const files_dataset *own = (const files_dataset *)dataset;
    fprintf(to, "n=%" PRId64, dataset->cardinality);
    if (dataset->cardinality > 0)
        fprintf(to, ", '%s' to '%s'", pl_paths_at(&own->paths, 0),
                pl_paths_at(&own->paths, own->paths.n - 1));
    if (own->n_foreign > 0)
        fprintf(to, ", %" PRId64 " left out (GIF, WebP, TIFF)", own->n_foreign);
    if (own->options.shuffle)
        fputs(", shuffle", to);
    if (own->options.shuffle && own->seeded)
        fprintf(to, ", seed=%" PRIu64, own->options.seed);
}

static const pl_dataset_class files_class = {
    .name = "files",
    .dataset_bytes = sizeof(files_dataset),
    .stage_bytes = sizeof(files_stage),
    .free = free_files,
    .open = open_files,
    .next = next,
    .get = get,
    .save = save,
    .restore = restore,
    .describe = describe,
};

/* ---- making ---- */

static int make(pl_runtime *runtime, const pl_files_options *options, int n_components,
                files_dataset **ret_files, pl_error *reterr)
{
    pl_dataset *dataset;
    int r = pl_dataset_make(&files_class, runtime, NULL, 0, n_components, &dataset, reterr);
    if (r < 0)
        return r;
    files_dataset *own = (files_dataset *)dataset;
    if (options)
        own->options = *options;
    own->seeded = !own->options.shuffle || own->options.seed != PL_SEED_AUTO;
    pl_paths_init(&own->paths, runtime->memory);
    pl_paths_init(&own->class_names, runtime->memory);
    dataset->spec[0] = (pl_spec){.dtype = PL_STRING};
    if (n_components > 1)
        dataset->spec[1] = (pl_spec){.dtype = PL_I64};
    if (!own->seeded)
        r = pl_seed_random(&own->options.seed, reterr);
    if (r < 0) {
        pl_dataset_unref(dataset);
        return r;
    }
    *ret_files = own;
    return 0;
}

/* Done, with what `r` says. */
static int made(files_dataset *own, int r, pl_dataset **ret_dataset)
{
    if (r < 0) {
        pl_dataset_unref(&own->base);
        return r;
    }
    pl_paths_close(&own->paths);
    own->base.cardinality = (int64_t)own->paths.n;
    *ret_dataset = &own->base;
    return 0;
}

static int add(void *context, const char *path, pl_error *reterr)
{
    return pl_paths_add(context, path, reterr);
}

int pl_dataset_paths(pl_runtime *runtime, const char *const *paths, int64_t n_paths,
                     pl_dataset **ret_dataset, pl_error *reterr)
{
    PL_NOT_NULL(runtime, reterr);
    PL_NOT_NULLS(paths, n_paths, reterr);
    PL_NOT_NULL(ret_dataset, reterr);
    files_dataset *own;
    int r = make(runtime, NULL, 1, &own, reterr);
    if (r < 0)
        return r;
    for (int64_t i = 0; r == 0 && i < n_paths; i++)
        r = pl_paths_add(&own->paths, paths[i], reterr);
    return made(own, r, ret_dataset);
}

int pl_dataset_files(pl_runtime *runtime, const char *const *patterns, int n_patterns,
                     const pl_files_options *options, pl_dataset **ret_dataset, pl_error *reterr)
{
    PL_NOT_NULL(runtime, reterr);
    PL_NOT_NULLS(patterns, n_patterns, reterr);
    PL_NOT_NULL(ret_dataset, reterr);
    PL_TAKE_OPTIONS(pl_files_options, options, same_each_pass, reterr);
    files_dataset *own;
    int r = make(runtime, options, 1, &own, reterr);
    if (r < 0)
        return r;
    for (int i = 0; r == 0 && i < n_patterns; i++) {
        size_t before = own->paths.n;
        r = pl_glob(patterns[i], add, &own->paths, reterr);
        if (r == 0 && own->paths.n == before)
            r = pl_error_set(reterr, -ENOENT, "files: no file matches '%s'", patterns[i]);
    }
    pl_paths_sort(&own->paths, false);
    return made(own, r, ret_dataset);
}

/* ---- pictures by class ---- */

static bool ends_with_one(const char *path, const char *const endings[], size_t n_endings)
{
    size_t n = strlen(path);
    for (size_t i = 0; i < n_endings; i++) {
        size_t m = strlen(endings[i]);
        if (n > m && strcasecmp(path + n - m, endings[i]) == 0)
            return true;
    }
    return false;
}

static int add_picture(void *context, const char *path, pl_error *reterr)
{
    static const char *const decoded[] = {".jpg", ".jpeg", ".png", ".bmp"};
    static const char *const foreign[] = {".gif", ".webp", ".tif", ".tiff"};
    files_dataset *own = context;
    own->n_foreign += ends_with_one(path, foreign, PL_COUNT_OF(foreign));
    return ends_with_one(path, decoded, PL_COUNT_OF(decoded))
               ? pl_paths_add(&own->paths, path, reterr)
               : 0;
}

static int refuse_none(const files_dataset *own, const char *folder, pl_error *reterr)
{
    struct stat info;
    if (stat(folder, &info) < 0)
        return pl_error_set(reterr, -errno, "image_folder: cannot read '%s': %s", folder,
                            strerror(errno));
    if (!S_ISDIR(info.st_mode))
        return pl_error_set(reterr, -ENOTDIR, "image_folder: '%s' is not a folder", folder);
    if (own->n_foreign > 0)
        return pl_error_set(reterr, -ENOTSUP,
                            "image_folder: the %" PRId64 " pictures in the folders of '%s' are "
                            "GIF, WebP or TIFF: JPEG, PNG and BMP are decoded; convert them",
                            own->n_foreign, folder);
    return pl_error_set(reterr, -ENOENT,
                        "image_folder: no picture in the folders of '%s': they are to lie in one "
                        "folder for each class",
                        folder);
}

/* How long the name of the class is that a path below `folder` begins with. */
static size_t class_bytes(const char *path, size_t n_folder)
{
    return strcspn(path + n_folder, "/");
}

/* Paths are sorted part by part, so classes are in the order of their names. */
static int find_classes(files_dataset *own, size_t n_folder, pl_error *reterr)
{
    const pl_paths *paths = &own->paths;
    const char *last = NULL;
    own->first_of = calloc(paths->n + 1, sizeof *own->first_of);
    if (!own->first_of)
        return pl_error_set(reterr, -ENOMEM, "out of memory for classes");
    for (size_t i = 0; i < paths->n; i++) {
        const char *path = pl_paths_at(paths, i);
        size_t n = class_bytes(path, n_folder);
        if (last && n == class_bytes(last, n_folder) &&
            memcmp(path + n_folder, last + n_folder, n) == 0)
            continue;
        char name[256];
        snprintf(name, sizeof name, "%.*s", (int)n, path + n_folder);
        int r = pl_paths_add(&own->class_names, name, reterr);
        if (r < 0)
            return r;
        own->first_of[own->n_classes++] = (int64_t)i;
        last = path;
    }
    own->first_of[own->n_classes] = (int64_t)paths->n;
    return 0;
}

int pl_dataset_image_folder(pl_runtime *runtime, const char *folder,
                            const pl_files_options *options, pl_dataset **ret_dataset,
                            pl_error *reterr)
{
    PL_NOT_NULL(runtime, reterr);
    PL_NOT_NULL(folder, reterr);
    PL_NOT_NULL(ret_dataset, reterr);
    PL_TAKE_OPTIONS(pl_files_options, options, same_each_pass, reterr);
    size_t n = strlen(folder);
    if (n == 0)
        return pl_error_set(reterr, -EINVAL, "image_folder: the path is empty");
    files_dataset *own;
    int r = make(runtime, options, 2, &own, reterr);
    if (r < 0)
        return r;
    r = pl_glob_below(folder, "*/**/*", add_picture, own, reterr);
    pl_paths_sort(&own->paths, true);
    if (r == 0 && own->paths.n == 0)
        r = refuse_none(own, folder, reterr);
    if (r == 0)
        r = find_classes(own, n + (folder[n - 1] != '/'), reterr);
    return made(own, r, ret_dataset);
}

const char *pl_dataset_class_name(const pl_dataset *dataset, int64_t label)
{
    PL_NULL_GIVES(dataset, NULL);
    const files_dataset *own = (const files_dataset *)dataset;
    if (dataset->class != &files_class || label < 0 || label >= own->n_classes)
        return NULL;
    return pl_paths_at(&own->class_names, (size_t)label);
}
