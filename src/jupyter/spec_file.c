/* SPDX-License-Identifier: Apache-2.0 */
/* See spec_file.h. */
#include "jupyter/spec_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/size.h"

/* A kernelspec is a command and a few words: a few hundred bytes. */
enum { MAX_SPEC_BYTES = 1 << 20 };

/* jansson 2.14 drops characters and says nothing when a buffer of its parser or of json_dumps()
 * cannot grow: whether memory was there is seen where it is asked for. */
static bool memory_was_short;

static void *watched_malloc(size_t n)
{
    void *block = malloc(n);
    if (block == NULL)
        memory_was_short = true;
    return block;
}

void pl_spec_watch_memory(void)
{
    memory_was_short = false;
    json_set_alloc_funcs(watched_malloc, free);
}

bool pl_spec_memory_sufficed(void)
{
    json_set_alloc_funcs(malloc, free);
    return !memory_was_short;
}

static void closep(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static void freep(void *pointer)
{
    free(*(void **)pointer);
}

static ssize_t read_all(int fd, char *bytes, size_t size)
{
    size_t length = 0;
    while (length < size) {
        ssize_t n = read(fd, bytes + length, size - length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        length += (size_t)n;
    }
    return (ssize_t)length;
}

/* The whole file, for the caller to free(). Opens without waiting: it may be a pipe by now. */
static ssize_t read_file(const char *path, char **ret_bytes, pl_error *reterr)
{
    PL_CLEANUP(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0) {
        int r = -errno;
        return pl_error_set(reterr, r, "cannot read '%s': %s", path, pl_error_text(r));
    }
    if (!S_ISREG(st.st_mode))
        return pl_error_set(reterr, PL_ECORRUPT, "'%s' is not a file", path);
    if (st.st_size > MAX_SPEC_BYTES)
        return pl_error_set(reterr, PL_ECORRUPT, "'%s' has %s, and a kernelspec %s at most", path,
                            PL_SIZE((uint64_t)st.st_size), PL_SIZE(MAX_SPEC_BYTES));
    size_t size = (size_t)st.st_size;
    PL_CLEANUP(freep) char *bytes = malloc(size + 1);
    if (bytes == NULL)
        return pl_error_set(reterr, -ENOMEM, "no memory to read '%s'", path);
    ssize_t n = read_all(fd, bytes, size);
    if (n < 0)
        return pl_error_set(reterr, (int)n, "cannot read '%s': %s", path, pl_error_text((int)n));
    *ret_bytes = PL_TAKE(bytes);
    return n;
}

static bool is_text_or_absent(const json_t *spec, const char *key)
{
    const json_t *value = json_object_get(spec, key);
    return value == NULL || json_is_string(value);
}

static bool is_object_or_absent(const json_t *spec, const char *key)
{
    const json_t *value = json_object_get(spec, key);
    return value == NULL || json_is_object(value);
}

/* What jupyter_client would not take, or NULL. */
static const char *misfit(const json_t *spec)
{
    const json_t *argv = json_object_get(spec, "argv"), *word;
    size_t i;
    if (!json_is_object(spec))
        return "it is not an object";
    if (!json_is_array(argv) || json_array_size(argv) == 0)
        return "it has no command ('argv')";
    json_array_foreach(argv, i, word)
    {
        if (!json_is_string(word))
            return "its command ('argv') is not a list of words";
    }
    if (!is_text_or_absent(spec, "display_name") || !is_text_or_absent(spec, "language"))
        return "its 'display_name' or 'language' is not text";
    if (!is_object_or_absent(spec, "env") || !is_object_or_absent(spec, "metadata"))
        return "its 'env' or 'metadata' is not an object";
    return NULL;
}

int pl_spec_load(const char *path, json_t **ret_spec, pl_error *reterr)
{
    PL_CLEANUP(freep) char *bytes = NULL;
    ssize_t n = read_file(path, &bytes, reterr);
    if (n < 0)
        return (int)n;
    json_error_t why = {0};
    pl_spec_watch_memory();
    json_t *spec = json_loadb(bytes, (size_t)n, 0, &why);
    int r = 0;
    if (!pl_spec_memory_sufficed())
        r = pl_error_set(reterr, -ENOMEM, "no memory to read '%s'", path);
    else if (spec == NULL)
        r = pl_error_set(reterr, PL_ECORRUPT, "'%s' is not JSON: line %d: %s", path, why.line,
                         why.text);
    else if (misfit(spec) != NULL)
        r = pl_error_set(reterr, PL_ECORRUPT, "'%s' is no kernelspec: %s", path, misfit(spec));
    if (r < 0) {
        json_decref(spec);
        return r;
    }
    *ret_spec = spec;
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

int pl_spec_save(const json_t *spec, const char *path)
{
    pl_spec_watch_memory();
    PL_CLEANUP(freep) char *text = json_dumps(spec, JSON_INDENT(1));
    if (!pl_spec_memory_sufficed() || text == NULL)
        return -ENOMEM;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return -errno;
    int r = write_all(fd, text, strlen(text));
    if (r == 0)
        r = write_all(fd, "\n", 1);
    if (close(fd) < 0 && r == 0)
        r = -errno;
    return r;
}
