/* SPDX-License-Identifier: Apache-2.0 */
/* How every call reports failure.
 *   code      0 or more is success; -errno is the system's; PL_E... are ours, below errno's range
 *   pl_error  an optional description, owned by the caller, written only on failure
 *   reason    what is wrong, in words
 *   message   the reason, preceded by all that is known about where: the text to show to people
 *   payload   an object attached to the failure, such as a Python exception
 *
 *     map 'decode': element 17, 'cats/3.jpg': decode_image 'image': the JPEG is corrupt at byte 8192
 *     stage, name   element     path          op           node     reason
 *
 * Start with all zero:
 *
 *     pl_error error = PL_ERROR_INIT;
 *     if (pl_iterator_next(iterator, values, &error) < 0)
 *         fprintf(stderr, "%s\n", error.message);
 *     pl_error_done(&error);
 *
 * Programs read the fields and need not search the text. Fields are meaningful only when code is
 * negative. Unknown numbers are -1, unknown texts "". Texts that do not fit are cut at the end,
 * paths at the beginning.
 *
 * An error owns one reference to its payload, so it is moved with pl_error_move(), not assigned.
 * Setting an error releases its previous payload; call pl_error_done() to drop an error. Nothing
 * here allocates. An error belongs to one thread at a time; a payload may be shared, and is freed
 * by the thread that drops the last reference, which must not hold a lock then.
 *
 * A NULL pl_error is always allowed; the code then says briefly what failed. */
#ifndef PLIMSOLL_ERROR_H
#define PLIMSOLL_ERROR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PL_API        __attribute__((visibility("default")))
#define PL_MUST_CHECK __attribute__((warn_unused_result))

/* One table: code, name, text. The numbers are part of the ABI: only append. */
#define PL_ERROR_TABLE(X)                                                                          \
    X(-5001, PL_EBUDGET, "the budget would be exceeded")                                           \
    X(-5002, PL_EFORMAT, "the input is malformed")                                                 \
    X(-5003, PL_EVERSION, "the file was written by another version")                               \
    X(-5004, PL_ECORRUPT, "the file is corrupt or truncated")                                      \
    X(-5005, PL_EFULL, "a fixed-size table is full")                                               \
    X(-5006, PL_EUSAGE, "the command line is wrong")

enum pl_code {
#define PL_ERROR_ENUM(number, name, text) name = number,
    PL_ERROR_TABLE(PL_ERROR_ENUM)
#undef PL_ERROR_ENUM
};

/* One table: number, kind, name. A kind distinguishes failures that have the same code. Only
 * append. */
#define PL_ERROR_KIND_TABLE(X)                                                                     \
    X(0, PL_KIND_OTHER, "other")                                                                   \
    X(1, PL_KIND_UNDECODABLE, "undecodable")       /* an op cannot decode its input */             \
    X(2, PL_KIND_PARTIAL_RECORD, "partial-record") /* a file does not end with a whole record */   \
    X(3, PL_KIND_TOO_LARGE_TO_PAD, "too-large-to-pad") /* larger than the padded shape */          \
    X(4, PL_KIND_EXCEPTION, "exception")               /* raised by the user's code: see payload */

typedef enum pl_error_kind {
#define PL_ERROR_KIND_ENUM(number, kind, name) kind = number,
    PL_ERROR_KIND_TABLE(PL_ERROR_KIND_ENUM)
#undef PL_ERROR_KIND_ENUM
} pl_error_kind;

#define PL_ERROR_MESSAGE_BYTES 480
#define PL_ERROR_PATH_BYTES    256
#define PL_ERROR_NAME_BYTES    64

/* The first member of any object that is attached to an error. */
typedef struct pl_error_payload {
    int n_refs; /* 1 at first; changed atomically */
    void (*free)(struct pl_error_payload *payload);
} pl_error_payload;

typedef struct pl_error {
    int code;
    pl_error_kind kind;
    pl_error_payload *payload; /* NULL: none */
    int64_t element;           /* index of the element at its stage, from 0 */
    int64_t record;            /* index of the record in the file, from 0 */
    int64_t offset;            /* in the file, unpacked: of the record, line, entry or read */
    int64_t line, column;      /* both from 1 */
    int64_t byte;              /* in the data to be decoded; the reason mentions it as well */
    char stage[24];            /* of a dataset: "map" */
    char stage_name[PL_ERROR_NAME_BYTES]; /* as the user named it: "decode" */
    char op[32];                          /* of a graph: "decode_image" */
    char node[PL_ERROR_NAME_BYTES];       /* its name: "image" */
    char path[PL_ERROR_PATH_BYTES];
    uint16_t what_at;       /* where op and reason begin in the message */
    uint16_t reason_at;     /* where the reason begins */
    bool reason_names_path; /* the message then does not repeat it */
    char message[PL_ERROR_MESSAGE_BYTES];
} pl_error;

// clang-format off
#define PL_ERROR_INIT {0}
// clang-format on

/* Does the same as PL_ERROR_INIT at less cost, for frequent calls: it leaves most of the 1 KiB of
 * texts uncleared. */
static inline void pl_error_init(pl_error *error)
{
    error->code = 0;
    error->payload = NULL;
    error->what_at = error->reason_at = 0;
    error->message[0] = '\0';
}

/* Releases the payload and resets the error. NULL is allowed. */
PL_API void pl_error_done(pl_error *error);

/* Sets code and reason and returns the code; all other fields become unknown. `error` may be NULL,
 * here and below. */
PL_API int pl_error_set(pl_error *error, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
PL_API int pl_error_vset(pl_error *error, int code, const char *format, va_list arguments)
    __attribute__((format(printf, 3, 0)));

/* Replaces the reason, which may be part of the new one; all other fields stay. Returns the
 * code. */
PL_API int pl_error_reword(pl_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Move the error from `from` to `to` and reset `from`; or copy it, sharing the payload. Return the
 * code. */
PL_API int pl_error_move(pl_error *to, pl_error *from);
PL_API int pl_error_copy(pl_error *to, const pl_error *from);

/* ---- adding details to an error ---- */

PL_API void pl_error_of_kind(pl_error *error, pl_error_kind kind);

/* Takes the caller's reference; releases it if `error` is NULL. */
PL_API void pl_error_attach(pl_error *error, pl_error_payload *payload);

/* `name` may be NULL; `element` -1: unknown. */
PL_API void pl_error_in_stage(pl_error *error, const char *stage, const char *name,
                              int64_t element);

/* Keeps the innermost op. A byte offset without a path, which is in the data that the op was given,
 * becomes part of the reason. */
PL_API void pl_error_in_op(pl_error *error, const char *op, const char *node);

PL_API void pl_error_in_file(pl_error *error, const char *path);
PL_API void pl_error_names_file(pl_error *error, const char *path); /* whose path the reason has */
PL_API void pl_error_at_offset(pl_error *error, uint64_t offset);
PL_API void pl_error_at_record(pl_error *error, uint64_t record, uint64_t offset);
PL_API void pl_error_at_line(pl_error *error, uint64_t line, uint64_t offset, int64_t column);
PL_API void pl_error_at_byte(pl_error *error, uint64_t byte);

/* ---- reading an error ---- */

/* Returns what failed and why, but not where: "decode_image 'image': the JPEG is corrupt at byte
 * 8192". */
static inline const char *pl_error_what(const pl_error *error)
{
    return error->message + error->what_at;
}

/* Returns only the reason. */
static inline const char *pl_error_reason(const pl_error *error)
{
    return error->message + error->reason_at;
}

/* Writes the message without stage and path, for callers that name the file already. Returns
 * `text`. */
PL_API const char *pl_error_without_path(const pl_error *error, char text[PL_ERROR_MESSAGE_BYTES]);

/* Returns the name that the user gave the stage, else its kind; "" if not known. */
static inline const char *pl_error_stage(const pl_error *error)
{
    return error->stage_name[0] ? error->stage_name : error->stage;
}

/* Returns the byte of the file where the record begins, or, if that is not known, the byte of the
 * data that could not be decoded; else -1. */
static inline int64_t pl_error_offset(const pl_error *error)
{
    return error->offset >= 0 ? error->offset : error->byte;
}

PL_API void pl_error_payload_ref(pl_error_payload *payload);
PL_API void pl_error_payload_unref(pl_error_payload *payload); /* NULL is allowed in both */

/* The code's text: ours from the table, else strerror's. Never NULL. */
PL_API const char *pl_error_text(int code);

/* The code's name, "PL_EBUDGET" or "ENOMEM"; "?" for a code nobody defined. */
PL_API const char *pl_error_name(int code);

/* "undecodable"; "?" for a kind nobody defined. */
PL_API const char *pl_error_kind_name(pl_error_kind kind);

#ifdef __cplusplus
}
#endif
#endif
