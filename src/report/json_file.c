/* SPDX-License-Identifier: Apache-2.0 */
/* See json_file.h and report.h. */
#include "report/json_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/report.h"
#include "json/document.h"

/* A hang of 256 threads with 48 named frames each is 7 MiB; nothing of ours is larger. */
static const uint64_t max_file_bytes = 64 << 20;

static char *dump(const json_t *document)
{
    return pl_json_dump(document, PL_REPORT_JSON_FLAGS);
}

int pl_json_file_parse(const char *text, size_t n, json_t **ret_object, pl_error *reterr)
{
    json_error_t why = {0};
    json_t *object = NULL;
    int r = pl_json_parse(text, n, JSON_REJECT_DUPLICATES, &object, &why);
    if (r == -ENOMEM)
        return pl_error_set(reterr, r, "no memory");
    if (r < 0)
        return pl_error_set(reterr, r, "%s", why.text);
    if (!json_is_object(object)) {
        json_decref(object);
        return pl_error_set(reterr, PL_ECORRUPT, "it is not an object");
    }
    *ret_object = object;
    return 0;
}

int pl_json_file_load(const char *path, json_t **ret_object, pl_error *reterr)
{
    pl_error why = {.message = "it is not a regular file, or too large"};
    char *text = NULL;
    uint64_t n = 0;
    int r = pl_json_read(path, max_file_bytes, &text, &n);
    if (r == 0)
        r = pl_json_file_parse(text, n, ret_object, &why);
    else if (r == -EINVAL || r == -EFBIG)
        r = PL_ECORRUPT;
    free(text);
    if (r == -ENOMEM)
        return pl_error_set(reterr, r, "cannot read '%s': out of memory", path);
    if (r == PL_ECORRUPT)
        return pl_error_set(reterr, r, "'%s' is corrupt: %s", path, why.message);
    if (r < 0)
        return pl_error_set(reterr, r, "cannot read '%s': %s", path, pl_error_text(r));
    return 0;
}

static int write_all(int fd, const char *text, size_t n)
{
    while (n > 0) {
        ssize_t written = write(fd, text, n);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return -errno;
        text += written;
        n -= (size_t)written;
    }
    return 0;
}

/* Replaces the file atomically: either it is complete under its final name, or the old one is still
 * there. It is not synced to disk, which every run would have to wait for: a report lost to a power
 * cut can be made again from the ledger. */
static int write_and_rename(const char *text, const char *path)
{
    char temporary[PATH_MAX];
    if (snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path) >= (int)sizeof(temporary))
        return -ENAMETOOLONG;
    int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int r = write_all(fd, text, strlen(text));
    if (close(fd) < 0 && r == 0)
        r = -errno;
    if (r == 0 && rename(temporary, path) < 0)
        r = -errno;
    if (r < 0)
        unlink(temporary);
    return r;
}

/* The file of --report may be a pipe or a terminal, which is written to, not replaced. */
static int write_in_place(const char *text, const char *path)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return -errno;
    int r = write_all(fd, text, strlen(text));
    close(fd);
    return r;
}

int pl_report_save(const json_t *report, const char *path, pl_error *reterr)
{
    char *text = dump(report);
    if (text == NULL)
        return pl_error_set(reterr, -ENOMEM, "cannot write '%s': out of memory", path);
    struct stat st;
    bool special = stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
    int r = special ? write_in_place(text, path) : write_and_rename(text, path);
    free(text);
    if (r < 0)
        return pl_error_set(reterr, r, "cannot write '%s': %s", path, pl_error_text(r));
    return 0;
}

int pl_report_print(const json_t *document, FILE *out, pl_error *reterr)
{
    char *text = dump(document);
    if (text == NULL)
        return pl_error_set(reterr, -ENOMEM, "cannot print the answer: out of memory");
    fputs(text, out);
    putc('\n', out);
    free(text);
    return 0;
}

static int load_saved(const pl_run_record *record, json_t **ret_report, pl_error *reterr)
{
    char path[PATH_MAX];
    json_t *report = NULL;
    int r = pl_run_record_path(record->directory, PL_RECORD_REPORT, path);
    if (r == 0)
        r = pl_json_file_load(path, &report, reterr);
    if (r < 0)
        return r;
    bool ours = json_integer_value(json_object_get(report, "schema")) == PL_REPORT_SCHEMA &&
                pl_report_verdict(report) != PL_VERDICT_UNREADABLE;
    if (!ours) {
        json_decref(report);
        return PL_EVERSION;
    }
    *ret_report = report;
    return 0;
}

int pl_report_load(const pl_run_record *record, json_t **ret_report, pl_error *reterr)
{
    int r = load_saved(record, ret_report, reterr);
    if (r == 0 || r == -ENOMEM)
        return r;
    char path[PATH_MAX];
    pl_ledger *ledger = NULL;
    r = pl_run_record_path(record->directory, PL_RECORD_LEDGER, path);
    if (r < 0)
        return pl_error_set(reterr, r, "the record's path is too long");
    r = pl_ledger_open(path, 0, &ledger, reterr);
    if (r < 0)
        return r;
    r = pl_report_build(ledger, record->directory, ret_report, reterr);
    pl_ledger_close(ledger);
    return r;
}
