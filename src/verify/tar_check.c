/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a tar shard: its headers, the keys of its samples, that all samples have the same files as
 * the first one, and the content of these files. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/npy/npy.h"
#include "codec/text/excerpt.h"
#include "codec/text/utf8.h"
#include "data/reader/sample_reader.h"
#include "verify/file.h"
#include "verify/json_check.h"

typedef struct tar_check {
    pl_verify_file *file;
    pl_sample_reader *reader;
    int n_first; /* files in the first sample; -1: there was none */
    char first[PL_SAMPLE_PARTS_MAX][PL_SAMPLE_EXTENSION_BYTES];
} tar_check;

static bool has_part(const pl_sample *sample, const char *extension)
{
    for (int i = 0; i < sample->n_parts; i++)
        if (strcmp(sample->parts[i].extension, extension) == 0)
            return true;
    return false;
}

static bool is_in_first(const tar_check *check, const char *extension)
{
    for (int i = 0; i < check->n_first; i++)
        if (strcmp(check->first[i], extension) == 0)
            return true;
    return false;
}

static void report_files(tar_check *check, const pl_sample *sample, const char *extension,
                         const char *what)
{
    pl_verify_report(check->file, PL_VERIFY_WARNING, sample->offset, "sample '%s' %s '%s'%s",
                     pl_excerpt_of(sample->key, strlen(sample->key)).text, what,
                     pl_excerpt_of(extension, strlen(extension)).text,
                     ", other than the first one");
}

static void compare_to_first(tar_check *check, const pl_sample *sample)
{
    if (check->n_first < 0) {
        check->n_first = sample->n_parts;
        for (int i = 0; i < sample->n_parts; i++)
            memcpy(check->first[i], sample->parts[i].extension, PL_SAMPLE_EXTENSION_BYTES);
        return;
    }
    for (int i = 0; i < check->n_first; i++)
        if (!has_part(sample, check->first[i]))
            report_files(check, sample, check->first[i], "has no");
    for (int i = 0; i < sample->n_parts; i++)
        if (!is_in_first(check, sample->parts[i].extension))
            report_files(check, sample, sample->parts[i].extension, "has a");
}

/* ---- the content of a file ---- */

/* Returns the format; reports an empty file, or one that breaks the promise of its name, as for a
 * separate file. An empty text is valid: a caption that nobody has written. */
static pl_verify_format recognise(tar_check *check, const pl_sample_part *part, const char *name,
                                  const char *where)
{
    pl_verify_format promise = pl_verify_promise(name);
    pl_verify_format format = pl_verify_sniff(part->data, part->data_bytes, true, promise);
    bool is_text = promise == PL_VERIFY_TEXT || promise == PL_VERIFY_UNKNOWN;
    if (part->data_bytes == 0 && !is_text) {
        pl_verify_report(check->file, PL_VERIFY_ERROR, part->offset, "%sit is empty: 0 bytes",
                         where);
        return PL_VERIFY_UNKNOWN;
    }
    if (promise != PL_VERIFY_UNKNOWN && promise != format)
        pl_verify_report_promise(check->file, format, promise, part->offset, where);
    return format;
}

static int check_part(tar_check *check, const pl_sample *sample, const pl_sample_part *part,
                      pl_error *reterr)
{
    char where[160], name[PL_SAMPLE_EXTENSION_BYTES + 2];
    pl_error why = {0};
    pl_npy npy;
    snprintf(name, sizeof name, ".%s", part->extension);
    snprintf(where, sizeof where, "'%s%s': ", pl_excerpt_of(sample->key, strlen(sample->key)).text,
             pl_excerpt_of(name, strlen(name)).text);
    pl_verify_format format = recognise(check, part, name, where);
    if (pl_verify_is_image(format))
        return pl_verify_image_bytes(check->file, part->data, part->data_bytes, part->offset, where,
                                     reterr);
    switch (format) {
    case PL_VERIFY_JSON:
        pl_verify_json_bytes(check->file, name, part->data, part->data_bytes, part->offset, where);
        break;
    case PL_VERIFY_NPY:
        if (pl_npy_parse(part->data, part->data_bytes, part->data_bytes, NULL, &npy, &why) < 0)
            pl_verify_report(check->file,
                             why.code == -ENOTSUP ? PL_VERIFY_WARNING : PL_VERIFY_ERROR,
                             part->offset, "%s%s", where, why.message);
        break;
    case PL_VERIFY_TEXT:
        if (pl_utf8_valid_bytes(part->data, part->data_bytes, NULL) < part->data_bytes)
            pl_verify_report(check->file, PL_VERIFY_ERROR, part->offset, "%sis not UTF-8", where);
        break;
    default:
        break;
    }
    return 0;
}

static int check_sample(tar_check *check, const pl_sample *sample, pl_error *reterr)
{
    uint64_t before_bytes = check->file->total_bytes, before = check->file->n_elements, bytes = 0;
    int r = 0;
    compare_to_first(check, sample);
    for (int i = 0; r == 0 && i < sample->n_parts; i++) {
        uint64_t counted = check->file->total_bytes;
        r = check_part(check, sample, &sample->parts[i], reterr);
        uint64_t decoded = check->file->total_bytes - counted;
        bytes += decoded ? decoded : sample->parts[i].data_bytes;
    }
    check->file->total_bytes = before_bytes; /* a sample is one element, whatever it contains */
    check->file->n_elements = before;
    pl_verify_count(check->file, bytes);
    return r;
}

/* Returns 1 to go on, 0 at the end. */
static int check_next(tar_check *check, pl_error *reterr)
{
    pl_sample sample;
    uint64_t offset = PL_VERIFY_NO_OFFSET;
    pl_error why = {0};
    int r = pl_sample_reader_next(check->reader, &sample, &offset, &why);
    if (r == 0)
        return 0;
    r = r > 0 ? check_sample(check, &sample, reterr)
              : pl_verify_report_error(check->file, offset, &why, reterr);
    return r < 0 ? r : 1;
}

int pl_verify_tar(pl_verify_file *file, pl_error *reterr)
{
    tar_check *check = calloc(1, sizeof *check);
    pl_error why = {0};
    if (!check)
        return pl_error_set(reterr, -ENOMEM, "no memory to look at '%s'", file->path);
    *check = (tar_check){.file = file, .n_first = -1};
    int r = pl_sample_reader_new(file->path, PL_PACKING_AUTO, NULL, 0, file->memory, &check->reader,
                                 &why);
    if (r < 0)
        r = pl_verify_report_error(file, PL_VERIFY_NO_OFFSET, &why, reterr);
    else
        while ((r = check_next(check, reterr)) > 0)
            if ((r = pl_verify_go_on(file, reterr)) < 0)
                break;
    pl_sample_reader_free(check->reader);
    free(check);
    file->height = file->width = 0; /* those of an image inside, not of the file */
    return r;
}
