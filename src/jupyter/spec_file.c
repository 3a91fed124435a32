/* SPDX-License-Identifier: Apache-2.0 */
/* See spec_file.h. */
#include "jupyter/spec_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "sys/file.h"
#include "json/document.h"

/* A kernelspec is a command and a few words: a few hundred bytes. */
enum { MAX_SPEC_BYTES = 1 << 20 };

static void freep(void *pointer)
{
    free(*(void **)pointer);
}

static int cannot_read(int r, const char *path, uint64_t n, pl_error *reterr)
{
    if (r == -EINVAL)
        return pl_error_set(reterr, PL_ECORRUPT, "'%s' is not a file", path);
    if (r == -EFBIG)
        return pl_error_set(reterr, PL_ECORRUPT, "'%s' is %s, and a kernelspec may be at most %s",
                            path, PL_SIZE(n), PL_SIZE(MAX_SPEC_BYTES));
    if (r == -ENOMEM)
        return pl_error_set(reterr, r, "cannot read '%s': out of memory", path);
    return pl_error_set(reterr, r, "cannot read '%s': %s", path, pl_error_text(r));
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

/* Why jupyter_client would reject it, or NULL. */
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
    PL_CLEANUP(freep) char *text = NULL;
    uint64_t n = 0;
    int r = pl_json_read(path, MAX_SPEC_BYTES, &text, &n);
    if (r < 0)
        return cannot_read(r, path, n, reterr);
    return pl_spec_parse(text, n, path, ret_spec, reterr);
}

int pl_spec_parse(const char *text, uint64_t n, const char *path, json_t **ret_spec,
                  pl_error *reterr)
{
    json_error_t why = {0};
    json_t *spec = NULL;
    int r = pl_json_parse(text, n, 0, &spec, &why);
    if (r == -ENOMEM)
        return pl_error_set(reterr, r, "cannot read '%s': out of memory", path);
    if (r < 0)
        return pl_error_set(reterr, r, "'%s' is not JSON: line %d: %s", path, why.line, why.text);
    const char *what = misfit(spec);
    if (what != NULL) {
        json_decref(spec);
        return pl_error_set(reterr, PL_ECORRUPT, "'%s' is not a kernelspec: %s", path, what);
    }
    *ret_spec = spec;
    return 0;
}

int pl_spec_save(const json_t *spec, const char *path)
{
    PL_CLEANUP(freep) char *text = pl_json_dump(spec, JSON_INDENT(1));
    if (text == NULL)
        return -ENOMEM;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return -errno;
    size_t n = strlen(text);
    text[n] = '\n'; /* replaces its final 0, which the file does not need */
    int r = pl_file_write(fd, text, n + 1, 0);
    if (close(fd) < 0 && r == 0)
        r = -errno;
    return r;
}
