/* SPDX-License-Identifier: Apache-2.0 */
/* A text written like a file, and complete or not returned at all. Belongs to one thread. */
#ifndef PL_UTIL_TEXT_H
#define PL_UTIL_TEXT_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct pl_text {
    char *bytes; /* valid once the file is closed, as is n */
    size_t n;
    FILE *to; /* NULL: out of memory */
} pl_text;

static inline FILE *pl_text_open(pl_text *text)
{
    *text = (pl_text){0};
    text->to = open_memstream(&text->bytes, &text->n);
    return text->to;
}

/* Returns the text, to free(). NULL if memory ran out at any time. */
static inline char *pl_text_close(pl_text *text)
{
    bool failed = !text->to || ferror(text->to) != 0;
    if (text->to && fclose(text->to) != 0)
        failed = true;
    if (!failed)
        return text->bytes;
    free(text->bytes);
    return NULL;
}

#endif
