/* SPDX-License-Identifier: Apache-2.0 */
/* See document.h. */
#include "json/document.h"

#include <errno.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sys/file.h"

static bool memory_was_short;

/* Without the closing quote of a string, the parser would read and even write beyond its buffer. So
 * we leave it at once by a jump: its memory leaks, but the program cannot go on without memory
 * anyway. */
static jmp_buf *way_out_of_parser;

static void *watched_malloc(size_t n)
{
    void *block = malloc(n);
    if (block == NULL) {
        memory_was_short = true;
        if (way_out_of_parser != NULL)
            longjmp(*way_out_of_parser, 1);
    }
    return block;
}

void pl_json_watch_memory(void)
{
    memory_was_short = false;
    json_set_alloc_funcs(watched_malloc, free);
}

bool pl_json_memory_sufficed(void)
{
    json_set_alloc_funcs(malloc, free);
    way_out_of_parser = NULL;
    return !memory_was_short;
}

enum { DELETE = 0x7f };

/* Escapes DEL, the one control character that jansson writes as it is. Frees `text`; returns NULL
 * when out of memory. */
static char *escape_deletes(char *text)
{
    static const char escape[] = "\\u007F";
    size_t n = 1, n_more = sizeof escape - 2;
    for (const char *c = text; *c != '\0'; c++)
        n += *c == DELETE ? 1 + n_more : 1;
    char *escaped = malloc(n), *to = escaped;
    for (const char *c = text; escaped != NULL && *c != '\0'; c++)
        if (*c == DELETE)
            to = stpcpy(to, escape);
        else
            *to++ = *c;
    if (escaped != NULL)
        *to = '\0';
    free(text);
    return escaped;
}

char *pl_json_dump(const json_t *document, size_t flags)
{
    pl_json_watch_memory();
    char *text = json_dumps(document, flags);
    if (!pl_json_memory_sufficed())
        free(PL_TAKE(text));
    if (text != NULL && strchr(text, DELETE) != NULL)
        text = escape_deletes(text);
    return text;
}

/* A separate function, so that no local variable is read after the jump back into it. */
static void load(const char *text, size_t n, size_t flags, json_t **ret_value,
                 json_error_t *ret_why)
{
    jmp_buf way_out;
    if (setjmp(way_out) != 0)
        return;
    pl_json_watch_memory();
    way_out_of_parser = &way_out;
    *ret_value = json_loadb(text, n, flags, ret_why);
}

/* The reason quotes the text, which may contain terminal escape sequences. */
static void make_printable(char *reason)
{
    for (char *c = reason; *c != '\0'; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
}

int pl_json_parse(const char *text, size_t n, size_t flags, json_t **ret_value,
                  json_error_t *ret_why)
{
    json_t *value = NULL;
    load(text, n, flags, &value, ret_why);
    if (!pl_json_memory_sufficed())
        return -ENOMEM;
    if (value == NULL) {
        make_printable(ret_why->text);
        return PL_ECORRUPT;
    }
    *ret_value = value;
    return 0;
}

int pl_json_read(const char *path, uint64_t most_bytes, char **ret_text, uint64_t *ret_n)
{
    uint64_t n = 0;
    int fd = pl_file_open_regular(path, &n);
    if (fd < 0)
        return fd;
    char *text = n <= most_bytes ? malloc(n + 1) : NULL;
    int r = n > most_bytes ? -EFBIG : text == NULL ? -ENOMEM : pl_file_read(fd, text, n, 0);
    close(fd);
    *ret_n = n;
    if (r < 0) {
        free(text);
        return r;
    }
    *ret_text = text;
    return 0;
}
