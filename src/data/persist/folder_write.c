/* SPDX-License-Identifier: Apache-2.0 */
/* See folder.h: how folders are written. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "data/core/dataset_text.h"
#include "data/persist/folder.h"
#include "data/persist/folder_names.h"
#include "sys/file.h"

static int no_memory(const char *path, pl_error *reterr)
{
    return pl_error_set(reterr, -ENOMEM, "out of memory: cannot write '%s'", path);
}

/* ---- what is left of others ---- */

static bool is_shard(const char *name, const char *of_run)
{
    size_t n = strlen(name), n_end = strlen(PL_FOLDER_SHARD_END);
    bool ours = n > n_end + PL_FOLDER_RUN_BYTES &&
                strcmp(name + n - n_end, PL_FOLDER_SHARD_END) == 0 &&
                strspn(name, "0123456789abcdef") == PL_FOLDER_RUN_BYTES - 1;
    return ours && strncmp(name, of_run, PL_FOLDER_RUN_BYTES - 1) != 0;
}

/* Shards of all runs but `kept`. With the lock: nobody writes any of them. What cannot be removed
 * is in nobody's way. */
static void remove_others(const char *path, const char *kept)
{
    DIR *folder = opendir(path);
    if (!folder)
        return;
    for (struct dirent *entry; (entry = readdir(folder));)
        if (is_shard(entry->d_name, kept))
            unlinkat(dirfd(folder), entry->d_name, 0);
    closedir(folder);
}

/* Shards that the metadata names stay until it is replaced. */
static void remove_leftovers(pl_folder_writer *writer)
{
    pl_folder_info there = {0};
    if (pl_folder_look(writer->runtime, writer->path, &there, NULL) == 0)
        remove_others(writer->path, there.run);
    else
        remove_others(writer->path, "");
    pl_folder_forget(&there);
}

/* ---- begin ---- */

static int name_run(char run[PL_FOLDER_RUN_BYTES], pl_error *reterr)
{
    uint64_t number;
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        return pl_error_set(reterr, -EIO, "the system gives no random numbers");
    snprintf(run, PL_FOLDER_RUN_BYTES, "%016llx", (unsigned long long)number);
    return 0;
}

static int describe(pl_folder_writer *writer, const pl_dataset *dataset, pl_error *reterr)
{
    pl_folder_info *info = &writer->info;
    int r = name_run(info->run, reterr);
    if (r == 0)
        r = pl_tree_text(dataset, &info->tree, reterr);
    if (r < 0)
        return r;
    info->specs = calloc((size_t)dataset->n_components + 1, sizeof *info->specs);
    if (!info->specs)
        return no_memory(writer->path, reterr);
    for (; info->n_components < dataset->n_components; info->n_components++)
        if (pl_spec_copy(&info->specs[info->n_components], &dataset->spec[info->n_components]) < 0)
            return no_memory(writer->path, reterr);
    return 0;
}

static int lock_once(pl_folder_writer *writer, pl_error *reterr)
{
    int r = pl_file_make_folders(writer->path, 0777);
    if (r < 0)
        return pl_error_set(reterr, r, "cannot make the folder '%s': %s", writer->path,
                            pl_error_text(r));
    char *path = pl_folder_metadata_path(writer->path);
    if (!path)
        return no_memory(writer->path, reterr);
    r = pl_record_file_begin(&writer->metadata, writer->runtime, path, PL_RECORD_FILE_FOLDER,
                             reterr);
    free(path);
    return r;
}

/* Somebody who gave up may remove the folder between our two steps. */
static int lock(pl_folder_writer *writer, pl_error *reterr)
{
    int r = -ENOENT;
    for (int i = 0; r == -ENOENT && i < 10; i++)
        r = lock_once(writer, reterr);
    return r;
}

static int begin_shards(pl_folder_writer *writer, pl_error *reterr)
{
    const pl_folder_info *info = &writer->info;
    writer->shards = calloc((size_t)info->n_shards, sizeof *writer->shards);
    if (!writer->shards)
        return no_memory(writer->path, reterr);
    int r = 0;
    for (int64_t i = 0; r == 0 && i < info->n_shards; i++) {
        char *path = pl_folder_shard_path(writer->path, info->run, i, info->n_shards);
        if (!path)
            return no_memory(writer->path, reterr);
        r = pl_element_writer_begin(&writer->shards[i], writer->runtime, path, info->run, true,
                                    reterr);
        free(path);
    }
    return r;
}

int pl_folder_begin(pl_folder_writer *writer, const pl_dataset *dataset, const char *path,
                    int64_t n_shards, pl_error *reterr)
{
    *writer = (pl_folder_writer){.runtime = dataset->runtime, .info = {.n_shards = n_shards}};
    writer->path = strdup(path);
    int r = writer->path ? describe(writer, dataset, reterr) : no_memory(path, reterr);
    if (r == 0)
        r = lock(writer, reterr);
    if (r == 0) {
        remove_leftovers(writer);
        r = begin_shards(writer, reterr);
    }
    if (r < 0)
        pl_folder_drop(writer);
    return r;
}

/* ---- until the end ---- */

int pl_folder_add(pl_folder_writer *writer, const pl_element *element, pl_error *reterr)
{
    int64_t shard = writer->info.n_elements % writer->info.n_shards;
    int r = pl_element_writer_add(&writer->shards[shard], element, reterr);
    writer->info.n_elements += r == 0;
    return r;
}

static int write_metadata(pl_folder_writer *writer, const pl_element *tail, pl_error *reterr)
{
    const pl_folder_info *info = &writer->info;
    pl_saver *saver = &writer->metadata.saver;
    int r = pl_save_text(saver, info->run, reterr);
    if (r == 0)
        r = pl_save_text(saver, info->tree, reterr);
    if (r == 0)
        r = pl_save_int(saver, info->n_shards, reterr);
    if (r == 0)
        r = pl_save_int(saver, info->n_elements, reterr);
    if (r == 0)
        r = pl_save_specs(saver, info->specs, info->n_components, reterr);
    if (r == 0)
        r = pl_save_element(saver, tail, reterr);
    return r < 0 ? r : pl_record_file_end(&writer->metadata, reterr);
}

/* Shards that are complete are closed already. */
static void remove_shards(pl_folder_writer *writer)
{
    const pl_folder_info *info = &writer->info;
    for (int64_t i = 0; i < info->n_shards; i++) {
        char *path = pl_folder_shard_path(writer->path, info->run, i, info->n_shards);
        if (path)
            unlink(path);
        free(path);
    }
}

static void release(pl_folder_writer *writer)
{
    for (int64_t i = 0; writer->shards && i < writer->info.n_shards; i++)
        pl_element_writer_drop(&writer->shards[i]);
    free(writer->shards);
    pl_record_file_drop(&writer->metadata);
    pl_folder_forget(&writer->info);
    free(writer->path);
    *writer = (pl_folder_writer){0};
}

int pl_folder_end(pl_folder_writer *writer, const pl_element *tail, pl_error *reterr)
{
    int r = 0;
    for (int64_t i = 0; r == 0 && i < writer->info.n_shards; i++)
        r = pl_element_writer_end(&writer->shards[i], NULL, reterr);
    if (r == 0)
        r = write_metadata(writer, tail, reterr);
    if (r < 0) {
        remove_shards(writer);
    } else {
        remove_others(writer->path, writer->info.run);
    }
    release(writer);
    return r;
}

void pl_folder_drop(pl_folder_writer *writer)
{
    char *path = PL_TAKE(writer->path);
    release(writer);
    if (path)
        rmdir(path); /* if there was nothing before us */
    free(path);
}
