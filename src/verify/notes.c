/* SPDX-License-Identifier: Apache-2.0 */
/* What is only seen of all files together. Files are compared by size and by a hash of their heads;
 * of longer ones that agree in both, all is hashed, so that a file that is like no other is never
 * read twice. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verify/slots.h"

/* A label with a third of the files of another is worth a word. */
enum { UNEVEN_TIMES = 3, MOST_FOLDERS = 4096 };

typedef struct note_taker {
    const pl_verify_slots *slots;
    const pl_verify_options *options;
    uint64_t n;
} note_taker;

static int note(note_taker *notes, const char *path, pl_verify_format format, const char *reason,
                pl_error *reterr)
{
    pl_verify_finding finding = {.severity = PL_VERIFY_NOTE, .offset = PL_VERIFY_NO_OFFSET};
    pl_verify_told told = {.path = path, .format = format, .finding = &finding};
    snprintf(finding.reason, sizeof finding.reason, "%s", reason);
    notes->n++;
    return notes->options->tell(notes->options->context, &told, reterr);
}

/* ---- copies ---- */

static bool same_hash(XXH128_hash_t a, XXH128_hash_t b)
{
    return a.low64 == b.low64 && a.high64 == b.high64;
}

static bool is_alike(const pl_verify_slot *a, const pl_verify_slot *b)
{
    return a->file_bytes == b->file_bytes && same_hash(a->head, b->head);
}

/* Of all of a file. False: it cannot be read any more. */
static bool hash_all(note_taker *notes, const char *path, XXH128_hash_t *ret_hash)
{
    enum { PIECE_BYTES = 256 * 1024 };
    XXH3_state_t *state = XXH3_createState();
    char *piece = malloc(PIECE_BYTES);
    int fd = state && piece ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t n = fd < 0 ? -1 : 1;
    if (state)
        XXH3_128bits_reset(state);
    while (n > 0 && !atomic_load(notes->options->stopped)) {
        n = read(fd, piece, PIECE_BYTES);
        if (n > 0)
            XXH3_128bits_update(state, piece, (size_t)n);
    }
    if (n == 0)
        *ret_hash = XXH3_128bits_digest(state);
    if (fd >= 0)
        close(fd);
    free(piece);
    XXH3_freeState(state);
    return n == 0;
}

static int note_copy(note_taker *notes, uint32_t copy, uint32_t of, pl_error *reterr)
{
    char reason[PL_VERIFY_REASON_BYTES];
    snprintf(reason, sizeof reason, "a copy of '%.300s'", pl_verify_path_at(notes->slots, of));
    return note(notes, pl_verify_path_at(notes->slots, copy), notes->slots->slots[copy].format,
                reason, reterr);
}

/* Longer files agree in size and head; do they in all? */
static bool is_copy(note_taker *notes, uint32_t copy, uint32_t of)
{
    XXH128_hash_t first, other;
    if (notes->slots->slots[of].file_bytes <= PL_VERIFY_HEAD_BYTES)
        return true;
    return hash_all(notes, pl_verify_path_at(notes->slots, of), &first) &&
           hash_all(notes, pl_verify_path_at(notes->slots, copy), &other) &&
           same_hash(first, other);
}

/* The first file that this one is like: itself, which is then remembered, if there was none. */
static uint32_t first_alike(const pl_verify_slot *slots, uint32_t i, uint32_t *table, uint64_t mask)
{
    uint64_t at = slots[i].head.low64 & mask;
    for (; table[at] != 0; at = (at + 1) & mask)
        if (is_alike(&slots[i], &slots[table[at] - 1]))
            return table[at] - 1;
    table[at] = i + 1;
    return i;
}

/* `table` has mask + 1 places, more than there are files: the number of a file and 1, or 0. */
static int note_copies(note_taker *notes, uint32_t *table, uint64_t mask, pl_error *reterr)
{
    const pl_verify_slot *slots = notes->slots->slots;
    memset(table, 0, (mask + 1) * sizeof *table);
    for (uint32_t i = 0; i < notes->slots->n; i++) {
        if (!slots[i].is_done || slots[i].file_bytes == 0)
            continue;
        uint32_t first = first_alike(slots, i, table, mask);
        int r = first != i && is_copy(notes, i, first) ? note_copy(notes, i, first, reterr) : 0;
        if (r < 0)
            return r;
    }
    return 0;
}

/* ---- sizes of images ---- */

static int compare_sizes(const void *a, const void *b, void *context)
{
    const pl_verify_slot *slots = context;
    const pl_verify_slot *i = &slots[*(const uint32_t *)a], *j = &slots[*(const uint32_t *)b];
    if (i->height != j->height)
        return i->height < j->height ? -1 : 1;
    return i->width < j->width ? -1 : i->width > j->width;
}

static bool has_size(const pl_verify_slot *slot, const pl_verify_slot *other)
{
    return slot->height == other->height && slot->width == other->width;
}

/* The first one of another size is named; how many there are is said. */
static int note_sizes(note_taker *notes, uint32_t *order, pl_error *reterr)
{
    const pl_verify_slot *slots = notes->slots->slots, *usual = NULL;
    size_t n = 0, n_usual = 0, n_sizes = 0;
    for (uint32_t i = 0; i < notes->slots->n; i++)
        if (slots[i].height > 0)
            order[n++] = i;
    qsort_r(order, n, sizeof *order, compare_sizes, (void *)(uintptr_t)slots);
    for (size_t i = 0, end; i < n; i = end, n_sizes++) {
        for (end = i + 1; end < n && has_size(&slots[order[i]], &slots[order[end]]);)
            end++;
        if (end - i > n_usual) {
            n_usual = end - i;
            usual = &slots[order[i]];
        }
    }
    for (uint32_t i = 0; n_sizes > 1 && i < notes->slots->n; i++) {
        char reason[PL_VERIFY_REASON_BYTES];
        if (slots[i].height == 0 || has_size(&slots[i], usual))
            continue;
        snprintf(reason, sizeof reason,
                 "%" PRIu32 " x %" PRIu32 " pixels; of %zu images %zu have %" PRIu32 " x %" PRIu32
                 ", and there are %zu sizes: resize before a batch is made",
                 slots[i].width, slots[i].height, n, n_usual, usual->width, usual->height, n_sizes);
        return note(notes, pl_verify_path_at(notes->slots, i), slots[i].format, reason, reterr);
    }
    return 0;
}

/* ---- folders that are labels ---- */

typedef struct folder {
    const char *path; /* of a file in it */
    size_t n_path;    /* the folder's bytes of that */
    size_t n_files;
} folder;

static size_t parent_bytes(const char *path, size_t n)
{
    const char *slash = memrchr(path, '/', n);
    return slash ? (size_t)(slash - path) : 0;
}

/* Those with the same parent: the largest against the smallest. */
static int note_siblings(note_taker *notes, const folder *folders, size_t n, pl_error *reterr)
{
    const folder *most = folders, *least = folders;
    char reason[PL_VERIFY_REASON_BYTES], path[PATH_MAX];
    size_t parent = parent_bytes(folders->path, folders->n_path);
    for (size_t i = 1; i < n; i++) {
        most = folders[i].n_files > most->n_files ? &folders[i] : most;
        least = folders[i].n_files < least->n_files ? &folders[i] : least;
    }
    if (n < 2 || parent == 0 || most->n_files < UNEVEN_TIMES * least->n_files)
        return 0;
    snprintf(path, sizeof path, "%.*s", (int)parent, folders->path);
    snprintf(reason, sizeof reason,
             "%zu folders, if they are labels, are uneven: '%.*s' has %zu files, '%.*s' %zu", n,
             (int)pl_min_u64(most->n_path - parent - 1, 100), most->path + parent + 1,
             most->n_files, (int)pl_min_u64(least->n_path - parent - 1, 100),
             least->path + parent + 1, least->n_files);
    return note(notes, path, PL_VERIFY_UNKNOWN, reason, reterr);
}

/* Files of a folder are behind each other: so the walk has them. */
static size_t list_folders(const note_taker *notes, folder *folders)
{
    size_t n = 0;
    for (size_t i = 0; i < notes->slots->n; i++) {
        const char *path = pl_verify_path_at(notes->slots, i);
        size_t bytes = parent_bytes(path, strlen(path));
        folder *last = n ? &folders[n - 1] : NULL;
        if (last && last->n_path == bytes && memcmp(last->path, path, bytes) == 0) {
            last->n_files++;
            continue;
        }
        if (n == MOST_FOLDERS)
            return 0;
        folders[n++] = (folder){.path = path, .n_path = bytes, .n_files = 1};
    }
    return n;
}

static bool are_siblings(const folder *a, const folder *b)
{
    size_t bytes = parent_bytes(a->path, a->n_path);
    return bytes == parent_bytes(b->path, b->n_path) && memcmp(a->path, b->path, bytes) == 0;
}

static int note_labels(note_taker *notes, pl_error *reterr)
{
    folder *folders = calloc(MOST_FOLDERS, sizeof *folders);
    if (!folders)
        return pl_error_set(reterr, -ENOMEM, "no memory to compare folders");
    size_t n = list_folders(notes, folders);
    int r = 0;
    for (size_t i = 0, end; r == 0 && i < n; i = end) {
        for (end = i + 1; end < n && are_siblings(&folders[i], &folders[end]);)
            end++;
        r = note_siblings(notes, folders + i, end - i, reterr);
    }
    free(folders);
    return r;
}

int pl_verify_notes(const pl_verify_slots *slots, const pl_verify_options *options,
                    uint64_t *n_notes, pl_error *reterr)
{
    note_taker notes = {.slots = slots, .options = options};
    uint64_t n_places = 64;
    pl_block places; /* also an order of the files */
    while (n_places < 2 * slots->n)
        n_places *= 2;
    int r = pl_memory_take(options->memory, n_places * sizeof(uint32_t), "places of files", &places,
                           reterr);
    if (r < 0)
        return r;
    r = note_copies(&notes, places.data, n_places - 1, reterr);
    if (r == 0)
        r = note_sizes(&notes, places.data, reterr);
    if (r == 0)
        r = note_labels(&notes, reterr);
    pl_memory_give(options->memory, &places);
    *n_notes = notes.n;
    return r;
}
