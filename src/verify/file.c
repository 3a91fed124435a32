/* SPDX-License-Identifier: Apache-2.0 */
/* See file.h. */
#include "verify/file.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *pl_verify_severity_name(pl_verify_severity severity)
{
    static const char *const names[] = {"good", "note", "warning", "error"};
    return names[severity];
}

int pl_verify_room_init(pl_verify_room *room, pl_memory *memory, pl_error *reterr)
{
    *room = (pl_verify_room){0};
    return pl_memory_take(memory, PL_VERIFY_HEAD_BYTES, "head of a file", &room->head, reterr);
}

void pl_verify_room_done(pl_verify_room *room, pl_memory *memory)
{
    pl_memory_give(memory, &room->head);
    pl_memory_give(memory, &room->unpacked_head);
    pl_memory_give(memory, &room->pixels);
    pl_memory_give(memory, &room->bytes);
}

void pl_verify_leave_folder(pl_verify_near *folder)
{
    if (folder->fd > 0)
        close(folder->fd);
    *folder = (pl_verify_near){0};
}

/* Returns the finding to fill in; NULL: it is only counted. */
static pl_verify_finding *next_finding(pl_verify_file *file, pl_verify_severity severity)
{
    pl_verify_finding *finding = &file->finding;
    bool had_one = finding->severity != PL_VERIFY_GOOD;
    finding->n_more += had_one;
    if (had_one && severity <= finding->severity)
        return NULL;
    finding->severity = severity;
    finding->record = finding->line = finding->column = -1;
    return finding;
}

void pl_verify_report(pl_verify_file *file, pl_verify_severity severity, uint64_t offset,
                      const char *format, ...)
{
    pl_verify_finding *finding = next_finding(file, severity);
    if (!finding)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(finding->reason, sizeof finding->reason, format, arguments);
    va_end(arguments);
    finding->offset = offset;
}

static void describe(pl_verify_finding *finding, uint64_t offset, const char *where,
                     const pl_error *why)
{
    char text[PL_ERROR_MESSAGE_BYTES];
    pl_error_without_path(why, text);
    snprintf(finding->reason, sizeof finding->reason, "%.160s%.300s", where, text);
    finding->offset = offset;
    finding->record = why->record;
    finding->line = why->line;
    finding->column = why->column;
}

void pl_verify_report_fault(pl_verify_file *file, pl_verify_severity severity, uint64_t begin,
                            const char *where, const pl_error *why)
{
    pl_verify_finding *finding = next_finding(file, severity);
    if (finding)
        describe(finding, why->byte < 0 ? PL_VERIFY_NO_OFFSET : begin + (uint64_t)why->byte, where,
                 why);
}

void pl_verify_report_place(pl_verify_file *file, pl_verify_severity severity, const pl_error *why)
{
    pl_verify_finding *finding = next_finding(file, severity);
    if (finding)
        describe(finding, why->offset < 0 ? PL_VERIFY_NO_OFFSET : (uint64_t)why->offset, "", why);
}

int pl_verify_report_error(pl_verify_file *file, uint64_t offset, const pl_error *why,
                           pl_error *reterr)
{
    if (why->code == -ENOMEM || why->code == -ECANCELED)
        return pl_error_copy(reterr, why);
    pl_verify_finding *finding = next_finding(file, PL_VERIFY_ERROR);
    if (finding && offset == PL_VERIFY_NO_OFFSET && why->offset >= 0)
        offset = (uint64_t)why->offset;
    if (finding)
        describe(finding, offset, "", why);
    return 0;
}

void pl_verify_report_promise(pl_verify_file *file, pl_verify_format format,
                              pl_verify_format promise, uint64_t offset, const char *where)
{
    bool are_images = pl_verify_is_image(promise) && pl_verify_is_image(format);
    pl_verify_report(file, are_images ? PL_VERIFY_WARNING : PL_VERIFY_ERROR, offset,
                     "%sits content is %s, its name promises %s", where,
                     format == PL_VERIFY_PICTURE ? "an image of another kind"
                                                 : pl_verify_format_name(format),
                     pl_verify_format_name(promise));
}

int pl_verify_go_on(const pl_verify_file *file, pl_error *reterr)
{
    if (PL_LIKELY(!atomic_load_explicit(file->stopped, memory_order_relaxed)))
        return 0;
    return pl_error_set(reterr, -ECANCELED, "interrupted within '%s'", file->path);
}

int pl_verify_room_for(pl_verify_file *file, pl_block *block, uint64_t bytes, const char *what,
                       pl_error *reterr)
{
    if (block->data != NULL && block->bytes >= bytes)
        return 0;
    bool is_large = block->bytes >= PL_MIB;
    pl_memory_give(file->memory, block);
    if (is_large) /* images grow now and then; the smaller block is of no use any more */
        pl_memory_trim(file->memory);
    return pl_memory_take(file->memory, bytes, what, block, reterr);
}

int pl_verify_all_bytes(pl_verify_file *file, const uint8_t **ret_bytes, pl_error *reterr)
{
    pl_block *block = &file->room->bytes;
    if (file->is_whole) {
        *ret_bytes = file->head;
        return 0;
    }
    int r = pl_verify_room_for(file, block, file->file_bytes, "its bytes", reterr);
    if (r < 0)
        return r;
    memcpy(block->data, file->head, file->n_head);
    for (uint64_t done = file->n_head; done < file->file_bytes;) {
        ssize_t n =
            pread(file->fd, (char *)block->data + done, file->file_bytes - done, (off_t)done);
        if (n <= 0)
            return pl_error_set(reterr, n < 0 ? -errno : -EIO, "cannot read it: %s",
                                n < 0 ? strerror(errno) : "it became shorter meanwhile");
        done += (uint64_t)n;
    }
    *ret_bytes = block->data;
    return 0;
}

void pl_verify_count(pl_verify_file *file, uint64_t element_bytes)
{
    file->n_elements++;
    file->total_bytes = pl_add_sat_u64(file->total_bytes, element_bytes);
    file->element_bytes = pl_max_u64(file->element_bytes, element_bytes);
}
