/* SPDX-License-Identifier: Apache-2.0 */
/* Error codes and messages. Formats into the caller's storage; never logs. */
#include "plimsoll/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int pl_error_set(pl_error *error, int code, const char *format, ...)
{
    if (!error)
        return code;
    if (!format)
        format = "";

    va_list args;
    va_start(args, format);
    error->code = code;
    vsnprintf(error->message, sizeof error->message, format, args);
    va_end(args);
    return code;
}

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
