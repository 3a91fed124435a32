/* SPDX-License-Identifier: Apache-2.0 */
#include "data/paths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES (64 * PL_KIB)

void pl_paths_init(pl_paths *paths, pl_memory *memory)
{
    *paths = (pl_paths){.memory = pl_memory_ref(memory), .n_last = CHUNK_BYTES};
}

void pl_paths_done(pl_paths *paths)
{
    if (!paths->memory)
        return;
    for (size_t i = 0; i < paths->n_chunks; i++)
        pl_memory_give(paths->memory, &paths->chunks[i]);
    free(paths->chunks);
    free(paths->places);
    pl_memory_unref(paths->memory);
    *paths = (pl_paths){0};
}

static int no_memory(const pl_paths *paths, pl_error *reterr)
{
    return pl_error_set(reterr, -ENOMEM, "no memory for more than %zu paths", paths->n);
}

/* Half as many again: large ones are moved by the kernel, which copies nothing. */
static int grow(void **array, size_t *room, size_t n, size_t item_bytes)
{
    if (n < *room)
        return 0;
    size_t more = *room + *room / 2 + 64;
    void *moved = realloc(*array, more * item_bytes);
    if (!moved)
        return -ENOMEM;
    *array = moved;
    *room = more;
    return 0;
}

static int add_chunk(pl_paths *paths, pl_error *reterr)
{
    if (paths->n_chunks > UINT16_MAX)
        return pl_error_set(reterr, PL_EFULL,
                            "more than 4 GiB of paths: give patterns that match fewer");
    void *chunks = paths->chunks;
    int r = grow(&chunks, &paths->n_chunk_room, paths->n_chunks, sizeof *paths->chunks);
    paths->chunks = chunks;
    if (r < 0)
        return no_memory(paths, reterr);
    r = pl_memory_take(paths->memory, CHUNK_BYTES, "paths", &paths->chunks[paths->n_chunks],
                       reterr);
    if (r < 0)
        return r;
    paths->n_chunks++;
    paths->n_last = 0;
    return 0;
}

int pl_paths_add(pl_paths *paths, const char *path, pl_error *reterr)
{
    size_t n = strlen(path) + 1;
    if (n > CHUNK_BYTES)
        return pl_error_set(reterr, -ENAMETOOLONG, "a path of %zu bytes", n - 1);
    void *places = paths->places;
    int r = grow(&places, &paths->n_room, paths->n, sizeof *paths->places);
    paths->places = places;
    if (r < 0)
        return no_memory(paths, reterr);
    if (n > CHUNK_BYTES - paths->n_last)
        r = add_chunk(paths, reterr);
    if (r < 0)
        return r;
    size_t chunk = paths->n_chunks - 1;
    memcpy((char *)paths->chunks[chunk].data + paths->n_last, path, n);
    paths->places[paths->n++] = (uint32_t)(chunk << 16 | paths->n_last);
    paths->n_last += n;
    return 0;
}

static const char *path_at(const pl_paths *paths, uint32_t place)
{
    return (const char *)paths->chunks[place >> 16].data + (place & UINT16_MAX);
}

const char *pl_paths_at(const pl_paths *paths, size_t number)
{
    return path_at(paths, paths->places[number]);
}

/* A part that ends is before one that goes on. */
static int compare_parts(const char *a, const char *b)
{
    for (; *a && *a == *b; a++, b++)
        ;
    int of_a = *a == '/' ? 0 : (uint8_t)*a, of_b = *b == '/' ? 0 : (uint8_t)*b;
    return of_a != of_b ? of_a - of_b : (uint8_t)*a - (uint8_t)*b;
}

static int compare(const uint32_t *a, const uint32_t *b, const pl_paths *paths)
{
    const char *of_a = path_at(paths, *a), *of_b = path_at(paths, *b);
    return paths->by_part ? compare_parts(of_a, of_b) : strcmp(of_a, of_b);
}

/* In place: qsort() would take as much again. Heapsort, and no recursion. */
static void sift(pl_paths *paths, uint32_t *places, size_t at, size_t n)
{
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && compare(&places[child], &places[child + 1], paths) < 0)
            child++;
        if (compare(&places[at], &places[child], paths) >= 0)
            return;
        uint32_t place = places[at];
        places[at] = places[child];
        places[child] = place;
    }
}

static void sort(pl_paths *paths, uint32_t *places, size_t n)
{
    for (size_t at = n / 2; at-- > 0;)
        sift(paths, places, at, n);
    for (size_t last = n; last-- > 1;) {
        uint32_t place = places[0];
        places[0] = places[last];
        places[last] = place;
        sift(paths, places, 0, last);
    }
}

void pl_paths_sort(pl_paths *paths, bool by_part)
{
    if (paths->n < 2)
        return;
    uint32_t *places = paths->places;
    size_t n_kept = 1;
    paths->by_part = by_part;
    sort(paths, places, paths->n);
    for (size_t i = 1; i < paths->n; i++)
        if (compare(&places[n_kept - 1], &places[i], paths) != 0)
            places[n_kept++] = places[i];
    paths->n = n_kept;
}

void pl_paths_close(pl_paths *paths)
{
    void *places = realloc(paths->places, paths->n * sizeof *paths->places + 1);
    if (places) /* else it stays as it is */
        paths->places = places;
    paths->n_room = paths->n;
}
