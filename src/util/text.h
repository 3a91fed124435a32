/* SPDX-License-Identifier: Apache-2.0 */
/* A text that is written as a file is: whole, or not at all. Belongs to one thread. */
#ifndef PL_UTIL_TEXT_H
#define PL_UTIL_TEXT_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct pl_text {
    char *bytes; /* good once the file is closed, as is n */
    size_t n;
    FILE *to; /* NULL: there was no memory for it */
} pl_text;

static inline FILE *pl_text_open(pl_text *text)
{
    *text = (pl_text){0};
    text->to = open_memstream(&text->bytes, &text->n);
    return text->to;
}

/* The caller's, to free(). NULL if memory was short at any time. */
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
