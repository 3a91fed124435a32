/* SPDX-License-Identifier: Apache-2.0 */
#include "data/source/paths.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES (64 * PL_KIB)

/* Up to this many are sorted with extra memory: half the comparisons, and no more memory than a
 * chunk. Even fewer are sorted by keys, in two chunks' memory, with hardly any comparisons. */
#define FEW_PATHS   (CHUNK_BYTES / sizeof(uint32_t))
#define KEYED_PATHS (CHUNK_BYTES / sizeof(keyed))

typedef struct keyed {
    uint64_t key; /* bytes of the path from where they differ: the first is the highest */
    uint32_t place;
} keyed;

void pl_paths_init(pl_paths *paths, pl_memory *memory)
{
    *paths = (pl_paths){.memory = pl_memory_ref(memory), .n_last = CHUNK_BYTES};
}

static void give_chunks(pl_paths *paths, size_t n_kept)
{
    while (paths->n_chunks > n_kept)
        pl_memory_give(paths->memory, &paths->chunks[--paths->n_chunks]);
}

void pl_paths_clear(pl_paths *paths)
{
    give_chunks(paths, 1);
    paths->n_last = paths->n_chunks > 0 ? 0 : CHUNK_BYTES;
    paths->n = 0;
}

void pl_paths_done(pl_paths *paths)
{
    if (!paths->memory)
        return;
    give_chunks(paths, 0);
    free(paths->chunks);
    free(paths->places);
    pl_memory_unref(paths->memory);
    *paths = (pl_paths){0};
}

static int no_memory(const pl_paths *paths, pl_error *reterr)
{
    return pl_error_set(reterr, -ENOMEM, "out of memory for more than %zu paths", paths->n);
}

/* Grows by half: the kernel moves large blocks without copying. */
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

/* Makes room for a path of this many bytes, its NUL included. */
static int add_room(pl_paths *paths, size_t n, char **ret_room, pl_error *reterr)
{
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
    *ret_room = (char *)paths->chunks[chunk].data + paths->n_last;
    paths->places[paths->n++] = (uint32_t)(chunk << 16 | paths->n_last);
    paths->n_last += n;
    return 0;
}

int pl_paths_add(pl_paths *paths, const char *path, pl_error *reterr)
{
    return pl_paths_add_below(paths, "", path, reterr);
}

int pl_paths_add_below(pl_paths *paths, const char *folder, const char *name, pl_error *reterr)
{
    char *room = NULL;
    size_t n_folder = strlen(folder), n_name = strlen(name) + 1;
    bool slash = n_folder > 0 && folder[n_folder - 1] != '/';
    int r = add_room(paths, n_folder + slash + n_name, &room, reterr);
    if (r < 0)
        return r;
    memcpy(room, folder, n_folder);
    memcpy(room + n_folder, "/", slash);
    memcpy(room + n_folder + slash, name, n_name);
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

/* A part that ends comes before one that continues. */
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

static int compare_places(const void *a, const void *b, void *paths)
{
    return compare(a, b, paths);
}

/* Sorts in place, because qsort() would take as much memory again: heapsort, without recursion. */
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

/* ---- by keys ---- */

/* Returns how many bytes at the beginning all paths share. */
static size_t common_bytes(const pl_paths *paths)
{
    const char *first = pl_paths_at(paths, 0);
    size_t n = strlen(first);
    for (size_t i = 1; n > 0 && i < paths->n; i++) {
        const char *path = pl_paths_at(paths, i);
        size_t alike = 0;
        while (alike < n && path[alike] == first[alike])
            alike++;
        n = alike;
    }
    return n;
}

/* NUL is the lowest byte, and pads the end. */
static uint64_t key_of(const char *bytes)
{
    uint64_t key = 0;
    for (size_t i = 0; i < sizeof key; i++) {
        key = key << 8 | (uint8_t)*bytes;
        bytes += *bytes != '\0';
    }
    return key;
}

/* Sorts by keys, last byte first, each pass into the other array; skips bytes that all keys share.
 * Returns the array with the result. */
static keyed *sort_keys(keyed *all, keyed *other, size_t n)
{
    uint16_t counts[sizeof all->key][256] = {0};
    static_assert(KEYED_PATHS <= UINT16_MAX, "they can be counted");
    for (size_t i = 0; i < n; i++)
        for (size_t byte = 0; byte < sizeof all->key; byte++)
            counts[byte][all[i].key >> 8 * byte & 0xff]++;
    for (size_t byte = 0; byte < sizeof all->key; byte++) {
        uint16_t *places = counts[byte], before = 0;
        if (places[all[0].key >> 8 * byte & 0xff] == n)
            continue;
        for (int i = 0; i < 256; i++) {
            uint16_t count = places[i];
            places[i] = before;
            before = (uint16_t)(before + count);
        }
        for (size_t i = 0; i < n; i++)
            other[places[all[i].key >> 8 * byte & 0xff]++] = all[i];
        keyed *sorted = other;
        other = all;
        all = sorted;
    }
    return all;
}

/* Returns false if there are too many, or out of memory. */
static bool sort_by_keys(pl_paths *paths)
{
    pl_block block;
    size_t n = paths->n;
    if (n > KEYED_PATHS || paths->by_part ||
        pl_memory_take(paths->memory, 2 * n * sizeof(keyed), "paths", &block, NULL) < 0)
        return false;
    keyed *all = block.data;
    size_t n_common = common_bytes(paths);
    for (size_t i = 0; i < n; i++)
        all[i] = (keyed){key_of(pl_paths_at(paths, i) + n_common), paths->places[i]};
    all = sort_keys(all, all + n, n);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && all[end].key == all[i].key; end++)
            paths->places[end] = all[end].place;
        if (end - i > 1)
            qsort_r(&paths->places[i], end - i, sizeof *paths->places, compare_places, paths);
    }
    pl_memory_give(paths->memory, &block);
    return true;
}

/* ---- sorts ---- */

static void sort(pl_paths *paths, uint32_t *places, size_t n)
{
    if (sort_by_keys(paths))
        return;
    if (n <= FEW_PATHS) {
        qsort_r(places, n, sizeof *places, compare_places, paths);
        return;
    }
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

void pl_paths_thin(pl_paths *paths, size_t n)
{
    uint64_t state = UINT64_C(0x9e3779b97f4a7c15);
    size_t n_kept = 0;
    for (size_t i = 0; n_kept < n && i < paths->n; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        if ((state >> 33) % (paths->n - i) < n - n_kept)
            paths->places[n_kept++] = paths->places[i];
    }
    paths->n = n_kept;
}

void pl_paths_close(pl_paths *paths)
{
    void *places = realloc(paths->places, paths->n * sizeof *paths->places + 1);
    if (places) /* else it stays as it is */
        paths->places = places;
    paths->n_room = paths->n;
}
