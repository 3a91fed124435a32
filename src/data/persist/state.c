/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers, bytes, texts, errors and elements; tensors are state_tensor.c's. */
#include "data/persist/state.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Flags: what an element has besides its components. */
enum {
    HAS_ORIGIN = 1,  /* a path */
    SAME_ORIGIN = 2, /* as the element before */
    HAS_OFFSET = 4,
    HAS_COUNTS = 8, /* else it is one good item */
    HAS_BAD = 16,
    HAS_DRAW = 32,
    ALL_FLAGS = 63,
};

void pl_saver_done(pl_saver *saver)
{
    pl_origin_unref(PL_TAKE(saver->origin));
}

void pl_loader_done(pl_loader *loader)
{
    pl_origin_unref(PL_TAKE(loader->origin));
}

/* ---- bytes ---- */

int pl_save_bytes(pl_saver *saver, const void *bytes, size_t n, pl_error *reterr)
{
    const char *from = bytes;
    while (n > (size_t)(saver->end - saver->at)) {
        size_t part = (size_t)(saver->end - saver->at);
        if (part > 0) { /* before the first piece there is nothing to point at */
            memcpy(saver->at, from, part);
            saver->at += part;
            from += part;
            n -= part;
        }
        int r = saver->more(saver, reterr);
        if (r < 0)
            return r;
    }
    if (n > 0) {
        memcpy(saver->at, from, n);
        saver->at += n;
    }
    return 0;
}

int pl_save_int(pl_saver *saver, int64_t value, pl_error *reterr)
{
    return pl_save_bytes(saver, &value, sizeof value, reterr);
}

int pl_save_text(pl_saver *saver, const char *text, pl_error *reterr)
{
    size_t n = strlen(text);
    int r = pl_save_int(saver, (int64_t)n, reterr);
    return r < 0 ? r : pl_save_bytes(saver, text, n, reterr);
}

int pl_save_error(pl_saver *saver, const pl_error *error, pl_error *reterr)
{
    int r = pl_save_int(saver, error->code, reterr);
    return r < 0 || error->code == 0 ? r : pl_save_text(saver, error->message, reterr);
}

int pl_load_refuse(pl_error *reterr, const char *format, ...)
{
    char message[PL_ERROR_MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return pl_error_set(reterr, PL_ECORRUPT, "%s", message);
}

int pl_load_check_left(const pl_loader *loader, uint64_t bytes, pl_error *reterr)
{
    uint64_t left = pl_add_sat_u64((uint64_t)(loader->end - loader->at), loader->behind_bytes);
    if (bytes <= left)
        return 0;
    return pl_load_refuse(reterr, "%llu bytes should follow, and no more than %llu can",
                          (unsigned long long)bytes, (unsigned long long)left);
}

int pl_load_bytes(pl_loader *loader, void *bytes, size_t n, pl_error *reterr)
{
    char *to = bytes;
    while (n > (size_t)(loader->end - loader->at)) {
        size_t part = (size_t)(loader->end - loader->at);
        if (part > 0) { /* likewise */
            memcpy(to, loader->at, part);
            loader->at += part;
            to += part;
            n -= part;
        }
        int r = loader->more(loader, reterr);
        if (r < 0)
            return r;
    }
    if (n > 0) {
        memcpy(to, loader->at, n);
        loader->at += n;
    }
    return 0;
}

int pl_load_int(pl_loader *loader, int64_t least, int64_t most, int64_t *ret_value,
                pl_error *reterr)
{
    int64_t value = 0;
    int r = pl_load_bytes(loader, &value, sizeof value, reterr);
    if (r < 0)
        return r;
    if (value < least || value > most)
        return pl_load_refuse(reterr, "there is %lld, which is not within %lld and %lld",
                              (long long)value, (long long)least, (long long)most);
    *ret_value = value;
    return 0;
}

int pl_load_count(pl_loader *loader, int64_t *ret_count, pl_error *reterr)
{
    return pl_load_int(loader, 0, PL_COUNT_MOST, ret_count, reterr);
}

int pl_load_text(pl_loader *loader, size_t most, char **ret_text, pl_error *reterr)
{
    int64_t n = 0;
    int r = pl_load_int(loader, 0, (int64_t)most, &n, reterr);
    if (r == 0)
        r = pl_load_check_left(loader, (uint64_t)n, reterr);
    if (r < 0)
        return r;
    char *text = malloc((size_t)n + 1);
    if (!text)
        return pl_error_set(reterr, -ENOMEM, "out of memory for a text of %lld bytes",
                            (long long)n);
    r = pl_load_bytes(loader, text, (size_t)n, reterr);
    if (r == 0 && memchr(text, 0, (size_t)n))
        r = pl_load_refuse(reterr, "a text of %lld bytes has a 0 in it", (long long)n);
    if (r < 0) {
        free(text);
        return r;
    }
    text[n] = '\0';
    *ret_text = text;
    return 0;
}

int pl_load_to_array(pl_loader *loader, const pl_dataset *dataset, pl_claimed_array *array,
                     const char *what, pl_error *reterr)
{
    pl_element element = {0};
    int r = pl_claimed_array_room(array, loader->runtime->memory, sizeof element, what, reterr);
    if (r == 0)
        r = pl_load_element(loader, dataset, &element, reterr);
    if (r == 0)
        pl_claimed_array_add_element(array, &element);
    return r;
}

int pl_load_error(pl_loader *loader, pl_error *ret_error, pl_error *reterr)
{
    int64_t code = 0;
    char *text = NULL;
    int r = pl_load_int(loader, INT32_MIN, 0, &code, reterr);
    if (r == 0 && code != 0)
        r = pl_load_text(loader, PL_ERROR_MESSAGE_BYTES - 1, &text, reterr);
    if (r < 0)
        return r;
    pl_error_done(ret_error);
    if (text)
        pl_error_set(ret_error, (int)code, "%s", text);
    free(text);
    return 0;
}

/* ---- elements ---- */

static uint8_t flags_of(const pl_saver *saver, const pl_element *element)
{
    const pl_origin *origin = element->origin;
    bool same = origin && saver->origin &&
                (origin == saver->origin || strcmp(origin->path, saver->origin->path) == 0);
    return (uint8_t)((origin ? same ? SAME_ORIGIN : HAS_ORIGIN : 0) |
                     (element->offset != -1 ? HAS_OFFSET : 0) |
                     (element->n_items != 1 || element->n_bad > 0 ? HAS_COUNTS : 0) |
                     (element->bad ? HAS_BAD : 0) | (element->draw ? HAS_DRAW : 0));
}

/* Saves the chain, as far as it is kept: each error after its code, then a 0. */
static int save_bad(pl_saver *saver, const pl_bad *bad, pl_error *reterr)
{
    int r = 0;
    for (; r == 0 && bad; bad = bad->next) {
        const int64_t numbers[] = {bad->error.code, bad->error.element,
                                   pl_error_offset(&bad->error), bad->error.what_at};
        r = pl_save_bytes(saver, numbers, sizeof numbers, reterr);
        if (r == 0)
            r = pl_save_text(saver, bad->error.message, reterr);
        if (r == 0)
            r = pl_save_text(saver, bad->stage ? bad->stage : "", reterr);
        if (r == 0)
            r = pl_save_text(saver, bad->path ? bad->path : "", reterr);
    }
    return r < 0 ? r : pl_save_int(saver, 0, reterr);
}

int pl_save_element(pl_saver *saver, const pl_element *element, pl_error *reterr)
{
    const pl_item *items = pl_element_peek(element);
    uint8_t flags = flags_of(saver, element);
    uint32_t n = (uint32_t)element->n;
    int r = pl_save_bytes(saver, &flags, 1, reterr);
    if (r == 0)
        r = pl_save_bytes(saver, &n, sizeof n, reterr);
    if (r == 0 && flags & HAS_ORIGIN) {
        r = pl_save_text(saver, element->origin->path, reterr);
        pl_origin_unref(saver->origin);
        saver->origin = pl_origin_ref(element->origin);
    }
    if (r == 0 && flags & HAS_OFFSET)
        r = pl_save_int(saver, element->offset, reterr);
    if (r == 0 && flags & HAS_COUNTS)
        r = pl_save_int(saver, element->n_items, reterr);
    if (r == 0 && flags & HAS_COUNTS)
        r = pl_save_int(saver, element->n_bad, reterr);
    if (r == 0 && flags & HAS_BAD)
        r = save_bad(saver, element->bad, reterr);
    if (r == 0 && flags & HAS_DRAW)
        r = pl_save_int(saver, (int64_t)element->draw, reterr);
    for (int i = 0; r == 0 && i < element->n; i++)
        r = pl_save_item(saver, &items[i], reterr);
    return r;
}

static int load_origin(pl_loader *loader, uint8_t flags, pl_element *element, pl_error *reterr)
{
    char *path;
    if (flags & HAS_ORIGIN) {
        int r = pl_load_text(loader, PL_STATE_PATH_MOST, &path, reterr);
        if (r < 0)
            return r;
        pl_origin_unref(loader->origin);
        loader->origin = pl_origin_new(path);
        free(path);
        if (!loader->origin)
            return pl_error_set(reterr, -ENOMEM, "out of memory for a path");
    }
    if (flags & (HAS_ORIGIN | SAME_ORIGIN)) {
        if (!loader->origin)
            return pl_load_refuse(reterr,
                                  "an element is of the same file as one that is not there");
        element->origin = pl_origin_ref(loader->origin);
    }
    return 0;
}

/* The message is restored whole, because not all of its parts are known any more. */
static pl_bad *new_bad(const int64_t numbers[4], const char *message, const char *stage,
                       const char *path)
{
    pl_error error = {0};
    pl_error_set(&error, (int)numbers[0], "%s", message);
    error.element = numbers[1];
    error.offset = numbers[2];
    error.what_at = error.reason_at =
        numbers[3] < 0 ? 0 : (uint16_t)pl_min_u64((uint64_t)numbers[3], strlen(error.message));
    return pl_bad_new(&error, *stage ? stage : NULL, *path ? path : NULL);
}

static int load_one_bad(pl_loader *loader, int64_t code, pl_bad **ret_bad, pl_error *reterr)
{
    int64_t numbers[4] = {code};
    char *message = NULL, *stage = NULL, *path = NULL;
    int r = pl_load_bytes(loader, &numbers[1], 3 * sizeof numbers[0], reterr);
    if (r == 0)
        r = pl_load_text(loader, PL_ERROR_MESSAGE_BYTES - 1, &message, reterr);
    if (r == 0)
        r = pl_load_text(loader, PL_STATE_PATH_MOST, &stage, reterr);
    if (r == 0)
        r = pl_load_text(loader, PL_STATE_PATH_MOST, &path, reterr);
    pl_bad *bad = r == 0 ? new_bad(numbers, message, stage, path) : NULL;
    if (r == 0 && !bad)
        r = pl_error_set(reterr, -ENOMEM, "out of memory for an element");
    free(message);
    free(stage);
    free(path);
    *ret_bad = bad;
    return r;
}

static int load_bad(pl_loader *loader, pl_element *element, pl_error *reterr)
{
    for (;;) {
        int64_t code = 0;
        pl_bad *bad;
        int r = pl_load_int(loader, INT32_MIN, 0, &code, reterr);
        if (r < 0 || code == 0)
            return r;
        r = load_one_bad(loader, code, &bad, reterr);
        if (r < 0)
            return r;
        element->bad = pl_bad_join(element->bad, bad);
    }
}

static int load_beside(pl_loader *loader, uint8_t flags, pl_element *element, pl_error *reterr)
{
    int64_t n_bad = 0;
    int r = load_origin(loader, flags, element, reterr);
    if (r == 0 && flags & HAS_OFFSET)
        r = pl_load_int(loader, INT64_MIN, INT64_MAX, &element->offset, reterr);
    if (r == 0 && flags & HAS_COUNTS)
        r = pl_load_int(loader, 0, PL_COUNT_MOST >> 16, &element->n_items,
                        reterr); /* batches add theirs */
    if (r == 0 && flags & HAS_COUNTS)
        r = pl_load_int(loader, 0, UINT32_MAX, &n_bad, reterr);
    if (r == 0 && flags & HAS_BAD)
        r = load_bad(loader, element, reterr);
    int64_t draw = 0;
    if (r == 0 && flags & HAS_DRAW)
        r = pl_load_int(loader, INT64_MIN, INT64_MAX, &draw, reterr);
    element->draw = (uint64_t)draw;
    element->n_bad = (uint32_t)n_bad;
    return r;
}

static int load_into(pl_loader *loader, uint8_t flags, const pl_dataset *dataset,
                     pl_element *element, pl_error *reterr)
{
    pl_item *items = pl_element_items(element);
    int r = load_beside(loader, flags, element, reterr);
    for (int i = 0; r == 0 && i < element->n; i++)
        r = pl_load_item(loader, &dataset->spec[i], i, &items[i], reterr);
    return r;
}

int pl_load_element(pl_loader *loader, const pl_dataset *dataset, pl_element *ret_element,
                    pl_error *reterr)
{
    uint8_t flags;
    uint32_t n;
    int r = pl_load_bytes(loader, &flags, 1, reterr);
    if (r == 0)
        r = pl_load_bytes(loader, &n, sizeof n, reterr);
    if (r < 0)
        return r;
    uint32_t wanted = dataset ? (uint32_t)dataset->n_components : 0;
    if (flags & ~ALL_FLAGS || n != wanted)
        return pl_load_refuse(reterr,
                              "an element has %u components and flags %#x, where %u are said", n,
                              flags, wanted);
    pl_element element;
    if (pl_element_init(&element, (int)n) < 0)
        return pl_error_set(reterr, -ENOMEM, "out of memory for an element");
    r = load_into(loader, flags, dataset, &element, reterr);
    if (r < 0)
        pl_element_clear(&element);
    else
        *ret_element = element;
    return r;
}

int pl_save_waiting(pl_saver *saver, const pl_element *element, pl_error *reterr)
{
    uint8_t there = element->n > 0;
    int r = pl_save_bytes(saver, &there, 1, reterr);
    return r < 0 || !there ? r : pl_save_element(saver, element, reterr);
}

int pl_load_waiting(pl_loader *loader, const pl_dataset *dataset, pl_element *ret_element,
                    pl_error *reterr)
{
    uint8_t there;
    int r = pl_load_bytes(loader, &there, 1, reterr);
    if (r == 0 && there > 1)
        r = pl_load_refuse(reterr, "there is %u before an element that may wait", there);
    return r < 0 || !there ? r : pl_load_element(loader, dataset, ret_element, reterr);
}
