/* SPDX-License-Identifier: Apache-2.0 */
/* See folder.h: how folders are read. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "data/core/dataset_text.h"
#include "data/persist/folder.h"
#include "data/persist/folder_names.h"

/* ---- metadata ---- */

static int load_run(pl_loader *loader, char run[PL_FOLDER_RUN_BYTES], pl_error *reterr)
{
    char *text;
    int r = pl_load_text(loader, PL_FOLDER_RUN_BYTES - 1, &text, reterr);
    if (r < 0)
        return r;
    /* It becomes part of paths. */
    if (strlen(text) != PL_FOLDER_RUN_BYTES - 1 ||
        strspn(text, "0123456789abcdef") != PL_FOLDER_RUN_BYTES - 1)
        r = pl_load_refuse(reterr, "a run has no good name");
    else
        memcpy(run, text, PL_FOLDER_RUN_BYTES);
    free(text);
    return r;
}

static int load_info(pl_record_file_reader *file, pl_folder_info *info, pl_error *reterr)
{
    pl_loader *loader = &file->loader;
    int r = load_run(loader, info->run, reterr);
    if (r == 0)
        r = pl_load_text(loader, PL_TREE_TEXT_MOST, &info->tree, reterr);
    if (r == 0)
        r = pl_load_int(loader, 1, PL_FOLDER_SHARDS_MOST, &info->n_shards, reterr);
    if (r == 0)
        r = pl_load_count(loader, &info->n_elements, reterr);
    if (r == 0)
        r = pl_load_specs(loader, &info->specs, &info->n_components, reterr);
    if (r == 0)
        r = pl_load_element(loader, NULL, &info->tail, reterr);
    return r < 0 ? r : pl_record_file_check_end(file, reterr);
}

static int look_at(pl_runtime *runtime, const char *path, pl_folder_info *info, pl_error *reterr)
{
    pl_record_file_reader file;
    int r = pl_record_file_open(&file, runtime, path, PL_RECORD_FILE_FOLDER, reterr);
    if (r < 0)
        return r;
    r = pl_record_file_fail(path, load_info(&file, info, reterr), reterr);
    pl_record_file_close(&file);
    return r;
}

int pl_folder_look(pl_runtime *runtime, const char *path, pl_folder_info *ret_info,
                   pl_error *reterr)
{
    pl_folder_info info = {0};
    char *metadata = pl_folder_metadata_path(path);
    int r = metadata ? look_at(runtime, metadata, &info, reterr)
                     : pl_error_set(reterr, -ENOMEM, "out of memory: cannot read '%s'", path);
    free(metadata);
    if (r < 0)
        pl_folder_forget(&info);
    else
        *ret_info = info;
    return r;
}

void pl_folder_forget(pl_folder_info *info)
{
    for (int i = 0; i < info->n_components; i++)
        pl_spec_clear(&info->specs[i]);
    free(info->specs);
    free(info->tree);
    pl_element_clear(&info->tail);
    *info = (pl_folder_info){0};
}

/* ---- elements ---- */

static int open_shards(pl_folder_reader *reader, pl_runtime *runtime, const char *path,
                       pl_error *reterr)
{
    const pl_folder_info *info = &reader->info;
    reader->shards = calloc((size_t)info->n_shards, sizeof *reader->shards);
    if (!reader->shards)
        return pl_error_set(reterr, -ENOMEM, "out of memory: cannot read '%s'", path);
    int r = 0;
    for (int64_t i = 0; r == 0 && i < info->n_shards; i++) {
        char *shard = pl_folder_shard_path(path, info->run, i, info->n_shards);
        if (!shard)
            return pl_error_set(reterr, -ENOMEM, "out of memory: cannot read '%s'", path);
        r = pl_element_reader_open(&reader->shards[i], runtime, shard, info->run, reterr);
        free(shard);
    }
    return r;
}

/* Shards that are gone may have been replaced since we read the metadata: then there is other. */
int pl_folder_open(pl_folder_reader *reader, pl_runtime *runtime, const char *path,
                   pl_error *reterr)
{
    char run[PL_FOLDER_RUN_BYTES] = "";
    for (;;) {
        *reader = (pl_folder_reader){0};
        int r = pl_folder_look(runtime, path, &reader->info, reterr);
        if (r < 0)
            return r;
        bool again = strcmp(run, reader->info.run) != 0;
        memcpy(run, reader->info.run, sizeof run);
        r = open_shards(reader, runtime, path, reterr);
        if (r == 0)
            return 0;
        pl_folder_close(reader);
        if (r == -ENOENT && !again)
            return pl_error_set(reterr, PL_ECORRUPT,
                                "'%s' lacks shards that its metadata names: remove the folder, to "
                                "have it written anew",
                                path);
        if (r != -ENOENT)
            return r;
    }
}

void pl_folder_close(pl_folder_reader *reader)
{
    for (int64_t i = 0; reader->shards && i < reader->info.n_shards; i++)
        pl_element_reader_close(&reader->shards[i]);
    free(reader->shards);
    pl_folder_forget(&reader->info);
    *reader = (pl_folder_reader){0};
}

/* Each shard's own end is looked at as well. */
static int check_ends(pl_folder_reader *reader, const pl_dataset *dataset, pl_error *reterr)
{
    for (int64_t i = 0; i < reader->info.n_shards; i++) {
        pl_element more;
        int r = pl_element_reader_next(&reader->shards[i], dataset, &more, reterr);
        if (r < 0)
            return r;
        if (r > 0) {
            pl_element_clear(&more);
            return pl_error_set(reterr, PL_ECORRUPT,
                                "shard %" PRId64 " has more elements than the metadata says", i);
        }
    }
    return 0;
}

int pl_folder_next(pl_folder_reader *reader, const pl_dataset *dataset, pl_element *ret_element,
                   pl_error *reterr)
{
    if (reader->n == reader->info.n_elements)
        return check_ends(reader, dataset, reterr);
    int64_t shard = reader->n % reader->info.n_shards;
    int r = pl_element_reader_next(&reader->shards[shard], dataset, ret_element, reterr);
    if (r == 0)
        return pl_error_set(reterr, PL_ECORRUPT,
                            "shard %" PRId64 " has fewer elements than the metadata says", shard);
    reader->n += r > 0;
    return r;
}

/* ---- places ---- */

int pl_folder_save(const pl_folder_reader *reader, pl_saver *saver, pl_error *reterr)
{
    int r = pl_save_text(saver, reader->info.run, reterr);
    if (r == 0)
        r = pl_save_int(saver, reader->n, reterr);
    for (int64_t i = 0; r == 0 && i < reader->info.n_shards; i++)
        r = pl_element_reader_save(&reader->shards[i], saver, reterr);
    return r;
}

int pl_folder_restore(pl_folder_reader *reader, pl_loader *loader, pl_error *reterr)
{
    char run[PL_FOLDER_RUN_BYTES];
    int r = load_run(loader, run, reterr);
    if (r == 0 && strcmp(run, reader->info.run) != 0)
        r = pl_error_set(reterr, -EINVAL,
                         "the folder was written anew since the checkpoint, and its place there is "
                         "lost: begin anew");
    if (r == 0)
        r = pl_load_int(loader, 0, reader->info.n_elements, &reader->n, reterr);
    for (int64_t i = 0; r == 0 && i < reader->info.n_shards; i++)
        r = pl_element_reader_restore(&reader->shards[i], loader, reterr);
    return r;
}
