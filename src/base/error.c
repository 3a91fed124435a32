/* SPDX-License-Identifier: Apache-2.0 */
/* Errors, and the one place that composes a text from their fields. Formats into the caller's
 * storage; never allocates, never logs. */
#include "plimsoll/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- payloads ---- */

void pl_error_payload_ref(pl_error_payload *payload)
{
    if (payload)
        __atomic_add_fetch(&payload->n_refs, 1, __ATOMIC_RELAXED);
}

/* Release: our accesses to the payload happen before another thread frees it. Acquire: the accesses
 * of other threads happen before we free it. */
void pl_error_payload_unref(pl_error_payload *payload)
{
    if (payload && __atomic_sub_fetch(&payload->n_refs, 1, __ATOMIC_ACQ_REL) == 0)
        payload->free(payload);
}

static void drop_payload(pl_error *error)
{
    pl_error_payload *payload = error->payload;
    error->payload = NULL;
    pl_error_payload_unref(payload);
}

/* ---- text from fields ---- */

/* Appends to a text, and cuts off what does not fit. */
typedef struct text {
    char *at;
    size_t left; /* including the NUL */
} text;

static void append(text *to, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void append(text *to, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(to->at, to->left, format, arguments);
    va_end(arguments);
    size_t done = n < 0 ? 0 : (size_t)n < to->left ? (size_t)n : to->left - 1;
    to->at += done;
    to->left -= done;
}

static void append_stage(text *to, const pl_error *error)
{
    if (!error->stage[0])
        return;
    append(to, "%s", error->stage);
    if (error->stage_name[0])
        append(to, " '%s'", error->stage_name);
    append(to, ": ");
    if (error->element >= 0)
        append(to, "element %" PRId64 ", ", error->element);
}

/* "record 6 of 'a.tfrecord': ", "'a.csv', line 3, byte 40, column 2: ", "byte 512: " */
static void append_place(text *to, const pl_error *error, bool with_path)
{
    const char *path = with_path ? error->path : "", *comma = path[0] ? ", " : "";
    bool has_place = error->record >= 0 || error->line >= 0 || error->offset >= 0;
    if (error->record >= 0)
        append(to, "record %" PRId64 "%s", error->record, path[0] ? " of " : "");
    if (path[0])
        append(to, "'%s'", path);
    if (error->record < 0 && error->line >= 0) {
        append(to, "%sline %" PRId64, comma, error->line);
        comma = ", ";
    }
    if (error->record < 0 && error->offset >= 0)
        append(to, "%sbyte %" PRId64, comma, error->offset);
    if (error->record < 0 && error->column >= 0)
        append(to, ", column %" PRId64, error->column);
    if (path[0] || has_place)
        append(to, ": ");
}

static void append_op(text *to, const pl_error *error)
{
    if (error->op[0])
        append(to, error->node[0] ? "%s '%s': " : "%s: ", error->op, error->node);
}

static void compose(pl_error *error, const char *reason)
{
    text to = {error->message, sizeof error->message};
    append_stage(&to, error);
    if (!error->reason_names_path)
        append_place(&to, error, true);
    error->what_at = (uint16_t)(to.at - error->message);
    append_op(&to, error);
    error->reason_at = (uint16_t)(to.at - error->message);
    append(&to, "%s", reason);
}

/* Composes the text again after a field has changed. */
static void compose_again(pl_error *error)
{
    char reason[PL_ERROR_MESSAGE_BYTES];
    memcpy(reason, error->message, sizeof reason);
    compose(error, reason + error->reason_at);
}

const char *pl_error_without_path(const pl_error *error, char message[PL_ERROR_MESSAGE_BYTES])
{
    text to = {message, PL_ERROR_MESSAGE_BYTES};
    if (!error || !message)
        return "";
    message[0] = '\0';
    if (!error->reason_names_path)
        append_place(&to, error, false);
    append_op(&to, error);
    append(&to, "%s", pl_error_reason(error));
    return message;
}

/* ---- set, move, drop ---- */

static void forget_fields(pl_error *error)
{
    error->kind = PL_KIND_OTHER;
    error->element = error->record = error->offset = -1;
    error->line = error->column = error->byte = -1;
    error->stage[0] = error->stage_name[0] = error->op[0] = error->node[0] = '\0';
    error->path[0] = '\0';
    error->what_at = error->reason_at = 0;
    error->reason_names_path = false;
}

void pl_error_done(pl_error *error)
{
    if (!error)
        return;
    drop_payload(error);
    pl_error_init(error);
}

int pl_error_vset(pl_error *error, int code, const char *format, va_list arguments)
{
    if (!error)
        return code;
    if (format)
        vsnprintf(error->message, sizeof error->message, format, arguments);
    else
        error->message[0] = '\0';
    error->code = code;
    forget_fields(error);
    drop_payload(error);
    return code;
}

int pl_error_set(pl_error *error, int code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    pl_error_vset(error, code, format, arguments);
    va_end(arguments);
    return code;
}

int pl_error_reword(pl_error *error, const char *format, ...)
{
    char reason[PL_ERROR_MESSAGE_BYTES];
    if (!error)
        return 0;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    compose(error, reason);
    return error->code;
}

int pl_error_move(pl_error *to, pl_error *from)
{
    int code = from ? from->code : 0;
    if (!from)
        return code;
    if (to == from)
        return code;
    if (to) {
        drop_payload(to);
        *to = *from;
        from->payload = NULL;
    }
    pl_error_done(from);
    return code;
}

int pl_error_copy(pl_error *to, const pl_error *from)
{
    if (!to || !from || to == from)
        return from ? from->code : 0;
    pl_error_payload_ref(from->payload);
    drop_payload(to);
    *to = *from;
    return from->code;
}

/* ---- fields ---- */

static void copy_text(char *to, size_t bytes, const char *from)
{
    snprintf(to, bytes, "%.*s", (int)bytes, from ? from : "");
}

/* Keeps the end of a long path, because that tells files apart. */
static void copy_path(pl_error *error, const char *path)
{
    size_t n = strlen(path), most = sizeof error->path - 1;
    if (n <= most)
        memcpy(error->path, path, n + 1);
    else
        snprintf(error->path, sizeof error->path, "...%s", path + n - (most - 3));
}

void pl_error_of_kind(pl_error *error, pl_error_kind kind)
{
    if (error)
        error->kind = kind;
}

void pl_error_attach(pl_error *error, pl_error_payload *payload)
{
    if (!error) {
        pl_error_payload_unref(payload);
        return;
    }
    drop_payload(error);
    error->payload = payload;
}

void pl_error_in_stage(pl_error *error, const char *stage, const char *name, int64_t element)
{
    if (!error)
        return;
    copy_text(error->stage, sizeof error->stage, stage);
    copy_text(error->stage_name, sizeof error->stage_name, name);
    error->element = element;
    compose_again(error);
}

/* Turns a place in a file into a place in the op's data: a codec set it, not knowing that the bytes
 * are not from a file. */
static void place_in_data(pl_error *error)
{
    char message[PL_ERROR_MESSAGE_BYTES], reason[PL_ERROR_MESSAGE_BYTES];
    text to = {reason, sizeof reason};
    memcpy(message, error->message, sizeof message);
    append_place(&to, error, false);
    append(&to, "%s", message + error->reason_at);
    if (error->byte < 0)
        error->byte = error->offset;
    error->record = error->offset = error->line = error->column = -1;
    compose(error, reason);
}

void pl_error_in_op(pl_error *error, const char *op, const char *node)
{
    if (!error || error->op[0]) /* the innermost op is the one that failed */
        return;
    if (!error->path[0])
        place_in_data(error);
    copy_text(error->op, sizeof error->op, op);
    copy_text(error->node, sizeof error->node, node);
    compose_again(error);
}

void pl_error_in_file(pl_error *error, const char *path)
{
    if (!error || !path)
        return;
    copy_path(error, path);
    compose_again(error);
}

void pl_error_names_file(pl_error *error, const char *path)
{
    if (!error || !path)
        return;
    copy_path(error, path);
    error->reason_names_path = true;
    compose_again(error);
}

void pl_error_at_offset(pl_error *error, uint64_t offset)
{
    if (!error)
        return;
    error->offset = (int64_t)offset;
    compose_again(error);
}

void pl_error_at_record(pl_error *error, uint64_t record, uint64_t offset)
{
    if (!error)
        return;
    error->record = (int64_t)record;
    error->offset = (int64_t)offset;
    compose_again(error);
}

void pl_error_at_line(pl_error *error, uint64_t line, uint64_t offset, int64_t column)
{
    if (!error)
        return;
    error->line = (int64_t)line;
    error->offset = (int64_t)offset;
    error->column = column;
    compose_again(error);
}

void pl_error_at_byte(pl_error *error, uint64_t byte)
{
    if (error)
        error->byte = (int64_t)byte;
}

/* ---- codes and kinds ---- */

const char *pl_error_text(int code)
{
    switch (code) {
#define CASE(number, name, text)                                                                   \
    case name:                                                                                     \
        return text;
        PL_ERROR_TABLE(CASE)
#undef CASE
    default:
        return code >= 0 ? "success" : strerror(-code);
    }
}

const char *pl_error_name(int code)
{
    switch (code) {
#define CASE(number, name, text)                                                                   \
    case name:                                                                                     \
        return #name;
        PL_ERROR_TABLE(CASE)
#undef CASE
    default:
        break;
    }
    const char *name = code < 0 ? strerrorname_np(-code) : NULL;
    return name ? name : "?";
}

const char *pl_error_kind_name(pl_error_kind kind)
{
    switch (kind) {
#define CASE(number, kind, name)                                                                   \
    case kind:                                                                                     \
        return name;
        PL_ERROR_KIND_TABLE(CASE)
#undef CASE
    default:
        return "?";
    }
}
