/* SPDX-License-Identifier: Apache-2.0 */
/* See pool.h. Rows of a window in any order, by the hundred.
 *
 * A pread() takes longer than copying the 4 KiB it reads. So a file that is in the page cache is
 * mapped, and process_vm_writev() copies many rows with one call, from the mapping to this very
 * process. The kernel then reads the mapping: if the file was truncated, it returns how far it got.
 * A load of ours would raise a signal there, so there are no loads; a prefetch does not raise one.
 * Rows that were not copied are read one by one, which also reports what is wrong.
 *
 *   probe   a row that is read only if that takes no waiting: without that the file is cold, and
 *           better read by calls that say how much is wanted than by faults, page by page
 *   tables  what a mapping costs: an entry of 8 bytes for each page. They are claimed, by a block
 *           that nobody touches, and are little beside the line, or there is no mapping */
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tensor/pool.h"

enum {
    ROWS_AT_ONCE = 128,
    ROWS_LEAST = 16,
    PROBES = 4,
    /* Lines prefetched of each row before the call, so that their misses overlap. Rows of 4 KiB go
     * at 5.4 GB/s with 2 to 8 lines, 4.8 with all of them and 3.8 with none. */
    PREFETCHED_LINES = 4,
    LINE_BYTES = 64,
    /* Compared with pread(), rows of 128 bytes are read 10 times as fast, of 4 KiB 2.5, of 16 KiB
     * 1.4, of 64 KiB at the same speed. */
    ROW_BYTES_MOST = 32 * 1024,
    PAGE_BYTES = 4096,
    TABLE_SHARE = PAGE_BYTES / 8,
    LINE_SHARE = 64,
};

struct pl_window_map {
    char *pages;
    size_t bytes;
    size_t in_page; /* where in the first page the window begins */
    pl_block tables;
};

/* for a window that will not get a mapping */
static pl_window_map no_map;

/* ---- the mapping ---- */

/* Address space can be limited, and is then left for those who have no alternative. */
static bool has_address_space(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY;
}

static bool claim_tables(pl_memory *memory, uint64_t window_bytes, const char *path,
                         pl_block *ret_tables)
{
    uint64_t bytes = window_bytes / TABLE_SHARE + 2 * (uint64_t)PAGE_BYTES;
    return bytes <= pl_memory_limit_bytes(memory) / LINE_SHARE &&
           bytes <= pl_memory_headroom_for(memory, 2 * bytes) / 2 && /* nothing leaves for them */
           pl_memory_take(memory, bytes, path, ret_tables, NULL) == 0;
}

static void drop_map(pl_memory *memory, pl_window_map *map)
{
    if (map->bytes > 0)
        munmap(map->pages, map->bytes);
    pl_memory_give(memory, &map->tables);
    free(map);
}

static pl_window_map *new_map(pl_memory *memory, const pl_window *window, uint64_t window_bytes)
{
    pl_window_map *map = calloc(1, sizeof *map);
    if (!map || !has_address_space() ||
        !claim_tables(memory, window_bytes, window->path, &map->tables)) {
        free(map);
        return &no_map;
    }
    size_t in_page = window->offset % PAGE_BYTES, bytes = in_page + window_bytes;
    void *pages =
        mmap(NULL, bytes, PROT_READ, MAP_SHARED, window->fd, (off_t)(window->offset - in_page));
    if (pages == MAP_FAILED) {
        drop_map(memory, map);
        return &no_map;
    }
    madvise(pages, bytes, MADV_RANDOM); /* a page that is not cached is read on its own */
    map->pages = pages;
    map->bytes = bytes;
    map->in_page = in_page;
    return map;
}

/* Made by the first thread that wants it; NULL: not possible. */
static const pl_window_map *map_of(pl_memory *memory, pl_window *window, uint64_t window_bytes)
{
    pl_window_map *map = atomic_load(&window->map);
    if (!map) {
        pl_window_map *made = new_map(memory, window, window_bytes);
        if (atomic_compare_exchange_strong(&window->map, &map, made))
            map = made;
        else if (made != &no_map)
            drop_map(memory, made);
    }
    return map == &no_map ? NULL : map;
}

void pl_window_unmap(pl_memory *memory, pl_window *window)
{
    pl_window_map *map = atomic_load(&window->map);
    if (map && map != &no_map)
        drop_map(memory, map);
}

/* ---- rows ---- */

static uint64_t place_of(const pl_buffer_rows *rows, int64_t i)
{
    return (uint64_t)(rows->offset + rows->rows[i] * rows->stride);
}

/* Returns how many pages were cached. */
static int64_t probe(const pl_window *window, const pl_buffer_rows *rows, char *to)
{
    int64_t n = 0;
    for (; n < PROBES; n++, to += rows->row_bytes) {
        struct iovec row = {to, rows->row_bytes};
        off_t at = (off_t)(window->offset + place_of(rows, n));
        if (preadv2(window->fd, &row, 1, at, RWF_NOWAIT) != (ssize_t)rows->row_bytes)
            break;
    }
    return n;
}

/* Returns how many were copied, from `first` on: fewer if a page is not available. */
static int64_t copy(const pl_window_map *map, const pl_buffer_rows *rows, int64_t first, int64_t n,
                    char *to)
{
    struct iovec from[ROWS_AT_ONCE], all = {to, (size_t)n * rows->row_bytes};
    for (int64_t i = 0; i < n; i++) {
        char *row = map->pages + map->in_page + place_of(rows, first + i);
        from[i] = (struct iovec){row, rows->row_bytes};
        for (int line = 0; line < PREFETCHED_LINES; line++)
            __builtin_prefetch(row + (ptrdiff_t)line * LINE_BYTES);
    }
    ssize_t got = process_vm_writev(getpid(), from, (unsigned long)n, &all, 1, 0);
    return got < 0 ? 0 : got / (ssize_t)rows->row_bytes;
}

/* The page at the end of a truncated file is filled with zeros: no error, but not the row either.
 */
static bool is_whole(const pl_window *window, uint64_t window_bytes)
{
    struct stat info;
    return fstat(window->fd, &info) == 0 && (uint64_t)info.st_size >= window->offset + window_bytes;
}

int64_t pl_window_read_rows(pl_memory *memory, pl_window *window, uint64_t window_bytes,
                            const pl_buffer_rows *rows, char *to)
{
    if (rows->n < ROWS_LEAST || rows->row_bytes == 0 || rows->row_bytes > ROW_BYTES_MOST)
        return 0;
    const pl_window_map *map = map_of(memory, window, window_bytes);
    int64_t n_done = map ? probe(window, rows, to) : 0;
    if (n_done < PROBES)
        return n_done;
    for (int64_t n, n_copied; n_done < rows->n; n_done += n_copied) {
        n = rows->n - n_done < ROWS_AT_ONCE ? rows->n - n_done : ROWS_AT_ONCE;
        n_copied = copy(map, rows, n_done, n, to + (uint64_t)n_done * rows->row_bytes);
        if (n_copied < n) {
            n_done += n_copied;
            break;
        }
    }
    return is_whole(window, window_bytes) ? n_done : PROBES;
}
