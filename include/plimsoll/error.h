/* SPDX-License-Identifier: Apache-2.0 */
/* How every call reports failure.
 *   code      0 or more is success; -errno is the system's; PL_E... are ours, below errno's range
 *   pl_error  an optional message, owned by the caller, written only on failure
 * A NULL pl_error is always allowed: the code says it in short. */
#ifndef PLIMSOLL_ERROR_H
#define PLIMSOLL_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

#define PL_API        __attribute__((visibility("default")))
#define PL_MUST_CHECK __attribute__((warn_unused_result))

/* One table: code, name, text. The numbers are part of the ABI: only append. */
#define PL_ERROR_TABLE(X)                                                                          \
    X(-5001, PL_EBUDGET, "the budget would be passed")                                             \
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

#define PL_ERROR_MESSAGE_BYTES 480

typedef struct pl_error {
    int code;
    char message[PL_ERROR_MESSAGE_BYTES];
} pl_error;

/* Sets code and message (truncated to fit) and returns the code. `error` may be NULL. */
PL_API int pl_error_set(pl_error *error, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The code's text: ours from the table, else strerror's. Never NULL. */
PL_API const char *pl_error_text(int code);

/* The code's name, "PL_EBUDGET" or "ENOMEM"; "?" for a code nobody defined. */
PL_API const char *pl_error_name(int code);

#ifdef __cplusplus
}
#endif
#endif
