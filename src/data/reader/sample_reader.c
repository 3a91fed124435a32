/* SPDX-License-Identifier: Apache-2.0 */
/* See sample_reader.h. A sample ends at the first entry of the next one: that entry is kept until
 * the next call. */
#include "data/reader/sample_reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/archive/sample_name.h"
#include "codec/text/excerpt.h"

struct pl_sample_reader {
    pl_tar_reader tar;
    const char *const *wanted;
    int n_wanted;
    pl_key_set keys;
    bool has_next;     /* an entry was found that does not belong to the last sample */
    pl_tar_entry next; /* a part of a sample */
    pl_error failure;  /* found after a sample, for the next call to report; code 0: none */
    uint64_t offset;   /* of the sample */
    size_t n_key;
    char key[PL_TAR_NAME_BYTES];
    pl_block data; /* of all parts, one after the other */
    uint64_t data_used;
    int n_parts;
    pl_sample_part parts[PL_SAMPLE_PARTS_MAX];
    uint64_t places[PL_SAMPLE_PARTS_MAX]; /* of the parts, as offsets into the data */
};

int pl_sample_reader_new(const char *path, pl_packing packing, const char *const *wanted,
                         int n_wanted, pl_memory *memory, pl_sample_reader **ret_reader,
                         pl_error *reterr)
{
    if (wanted && n_wanted > PL_SAMPLE_PARTS_MAX)
        return pl_error_set(reterr, -EINVAL, "%d extensions are wanted, where at most %d can be",
                            n_wanted, PL_SAMPLE_PARTS_MAX);
    pl_sample_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return pl_error_set(reterr, -ENOMEM, "no memory to read '%s'", path);
    int r = pl_tar_reader_init(&reader->tar, path, packing, 0, memory, reterr);
    if (r < 0) {
        free(reader);
        return r;
    }
    reader->wanted = wanted;
    reader->n_wanted = wanted ? n_wanted : 0;
    pl_key_set_init(&reader->keys, memory);
    *ret_reader = reader;
    return 0;
}

void pl_sample_reader_free(pl_sample_reader *reader)
{
    if (!reader)
        return;
    pl_memory_give(reader->tar.window.stream.memory, &reader->data);
    pl_key_set_clear(&reader->keys);
    pl_tar_reader_done(&reader->tar);
    free(reader);
}

/* Reports an error in the sample. */
static int refuse(const pl_sample_reader *reader, int code, const char *what, pl_error *reterr)
{
    pl_error_set(reterr, code, "sample '%s' %s", pl_excerpt_of(reader->key, reader->n_key).text,
                 what);
    pl_error_in_file(reterr, pl_file_window_path(&reader->tar.window));
    pl_error_at_offset(reterr, reader->offset);
    return code;
}

/* ---- entries ---- */

/* Finds the next entry that is part of any sample, and keeps it in reader->next. */
static int find_part(pl_sample_reader *reader, pl_error *reterr)
{
    pl_sample_name name;
    while (!reader->has_next) {
        int r = pl_tar_reader_next(&reader->tar, &reader->next, reterr);
        if (r <= 0)
            return r;
        reader->has_next = reader->next.is_file &&
                           pl_sample_name_split(reader->next.name, reader->next.n_name, &name);
    }
    return 1;
}

/* Does the entry just found belong to this sample? */
static bool is_of_sample(const pl_sample_reader *reader)
{
    pl_sample_name name;
    return pl_sample_name_split(reader->next.name, reader->next.n_name, &name) &&
           name.n_key == reader->n_key && memcmp(reader->next.name, reader->key, name.n_key) == 0;
}

/* Skips to the first entry of the next sample. */
static int pass_sample(pl_sample_reader *reader, pl_error *reterr)
{
    for (;;) {
        int r = find_part(reader, reterr);
        if (r <= 0 || !is_of_sample(reader))
            return r;
        reader->has_next = false;
    }
}

/* ---- parts ---- */

/* Is the extension in a list such as "jpg;jpeg"? */
static bool is_among(const char *extension, const char *names)
{
    size_t n = strlen(extension);
    for (const char *end; *names; names = *end ? end + 1 : end) {
        end = strchrnul(names, ';');
        if ((size_t)(end - names) == n && memcmp(names, extension, n) == 0)
            return true;
    }
    return false;
}

/* Returns the index for a part: its own for a wanted extension, -1 for an unwanted one. If all are
 * wanted, the next free one; but the old one for an extension that the sample already has. */
static int place_for(const pl_sample_reader *reader, const char *extension)
{
    int n = reader->wanted ? reader->n_wanted : reader->n_parts;
    for (int i = 0; i < n; i++)
        if (reader->wanted ? is_among(extension, reader->wanted[i])
                           : strcmp(reader->parts[i].extension, extension) == 0)
            return i;
    return reader->wanted ? -1 : n;
}

static bool lower_extension(const pl_tar_entry *entry, char to[PL_SAMPLE_EXTENSION_BYTES])
{
    pl_sample_name name;
    if (!pl_sample_name_split(entry->name, entry->n_name, &name) ||
        name.n_extension >= PL_SAMPLE_EXTENSION_BYTES)
        return false;
    for (size_t i = 0; i < name.n_extension; i++)
        to[i] = pl_sample_lower(entry->name[name.n_key + 1 + i]);
    to[name.n_extension] = '\0';
    return true;
}

/* Makes room for `n` more bytes of the sample's data. */
static int make_room(pl_sample_reader *reader, uint64_t n, pl_error *reterr)
{
    uint64_t need = pl_add_sat_u64(reader->data_used, n);
    if (reader->data.data && need <= reader->data.bytes)
        return 0;
    pl_memory *memory = reader->tar.window.stream.memory;
    pl_block larger;
    int r = pl_memory_take(memory, pl_max_u64(need, reader->data.bytes + reader->data.bytes / 2),
                           "a sample", &larger, reterr);
    if (r < 0) {
        pl_error_in_file(reterr, pl_file_window_path(&reader->tar.window));
        pl_error_at_offset(reterr, reader->offset);
        return r;
    }
    if (reader->data_used > 0)
        memcpy(larger.data, reader->data.data, reader->data_used);
    pl_memory_give(memory, &reader->data);
    reader->data = larger;
    return 0;
}

static int take_part(pl_sample_reader *reader, pl_error *reterr)
{
    const pl_tar_entry *entry = &reader->next;
    char extension[PL_SAMPLE_EXTENSION_BYTES], what[128];
    if (!lower_extension(entry, extension))
        return reader->wanted
                   ? 0
                   : refuse(reader, PL_EFORMAT, "has a file with too long an extension", reterr);
    int at = place_for(reader, extension);
    if (at < 0)
        return 0;
    if (at == PL_SAMPLE_PARTS_MAX)
        return refuse(reader, PL_EFORMAT, "has more than 64 files", reterr);
    pl_sample_part *part = &reader->parts[at];
    if (at < reader->n_parts && part->offset != 0) {
        snprintf(what, sizeof what, "has '%s' twice, again at byte %" PRIu64,
                 pl_excerpt_of(extension, strlen(extension)).text, entry->offset);
        return refuse(reader, PL_EFORMAT, what, reterr);
    }
    int r = make_room(reader, entry->data_bytes, reterr);
    if (r == 0)
        r = pl_tar_reader_read(&reader->tar, (char *)reader->data.data + reader->data_used, reterr);
    if (r < 0)
        return r;
    memcpy(part->extension, extension, sizeof extension);
    part->data_bytes = entry->data_bytes;
    part->offset = entry->data_offset;
    reader->places[at] = reader->data_used;
    reader->data_used += entry->data_bytes;
    reader->n_parts = at < reader->n_parts ? reader->n_parts : at + 1;
    return 0;
}

/* ---- samples ---- */

static int check_wanted(const pl_sample_reader *reader, pl_error *reterr)
{
    char what[128];
    for (int i = 0; i < reader->n_wanted; i++)
        if (reader->parts[i].offset == 0) {
            snprintf(what, sizeof what, "has no '%s'",
                     pl_excerpt_of(reader->wanted[i], strlen(reader->wanted[i])).text);
            return refuse(reader, PL_EFORMAT, what, reterr);
        }
    return 0;
}

/* Begins a sample with the entry just found. */
static int begin_sample(pl_sample_reader *reader, pl_error *reterr)
{
    pl_sample_name name;
    (void)pl_sample_name_split(reader->next.name, reader->next.n_name, &name);
    reader->n_key = name.n_key;
    memcpy(reader->key, reader->next.name, name.n_key);
    reader->key[name.n_key] = '\0';
    reader->offset = reader->next.offset;
    reader->data_used = 0;
    reader->n_parts = reader->n_wanted;
    memset(reader->parts, 0, sizeof reader->parts);
    int r = pl_key_set_add(&reader->keys, reader->key, name.n_key, reterr);
    if (r == 0)
        return refuse(reader, PL_EFORMAT,
                      "was there before: the files of a sample must be behind each other", reterr);
    return r < 0 ? r : 0;
}

/* Handles an error after the last entry read. A sample that has all wanted parts is good: the next
 * call reports the error. */
static int end_before_failure(pl_sample_reader *reader, pl_error *why, pl_error *reterr)
{
    if (!reader->wanted || check_wanted(reader, NULL) < 0)
        return pl_error_move(reterr, why);
    pl_error_move(&reader->failure, why);
    return 0;
}

/* Reads all entries of the sample, from the first on. */
static int gather(pl_sample_reader *reader, pl_error *reterr)
{
    int r = begin_sample(reader, reterr);
    while (r == 0) {
        r = take_part(reader, reterr);
        if (r < 0)
            break;
        reader->has_next = false;
        pl_error why = {0};
        r = find_part(reader, &why);
        if (r < 0)
            return end_before_failure(reader, &why, reterr);
        if (r == 0 || !is_of_sample(reader))
            return check_wanted(reader, reterr);
        r = 0;
    }
    return r;
}

static int tell_failure(pl_sample_reader *reader, pl_error *reterr)
{
    return pl_error_move(reterr, &reader->failure);
}

int pl_sample_reader_next(pl_sample_reader *reader, pl_sample *ret_sample, uint64_t *ret_offset,
                          pl_error *reterr)
{
    *ret_offset = pl_sample_reader_tell(reader);
    if (reader->failure.code != 0)
        return tell_failure(reader, reterr);
    int r = pass_sample(reader, reterr); /* skips the rest of a sample that failed */
    if (r <= 0)
        return r;
    *ret_offset = reader->next.offset;
    r = gather(reader, reterr);
    if (r < 0) {
        if (pass_sample(reader, &reader->failure) >= 0)
            pl_error_done(&reader->failure);
        return r;
    }
    for (int i = 0; i < reader->n_parts; i++)
        reader->parts[i].data = (const char *)reader->data.data + reader->places[i];
    *ret_sample = (pl_sample){reader->key, reader->offset, reader->n_parts, reader->parts};
    return 1;
}

uint64_t pl_sample_reader_tell(const pl_sample_reader *reader)
{
    return reader->has_next ? reader->next.offset : pl_tar_reader_tell(&reader->tar);
}

int pl_sample_reader_seek(pl_sample_reader *reader, uint64_t offset, pl_error *reterr)
{
    int r = pl_tar_reader_seek(&reader->tar, offset, reterr);
    if (r < 0)
        return r;
    reader->has_next = false;
    reader->failure.code = 0;
    reader->n_key = 0;
    pl_key_set_clear(&reader->keys);
    return 0;
}
