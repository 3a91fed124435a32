/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the problems that only show over all files together. Compares files by size and by a hash
 * of their heads; longer ones that agree in both are hashed whole, once each, so that a file unlike
 * all others is never read twice. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verify/slots.h"

/* A label with at most a third of the files of another is reported. */
enum { UNEVEN_TIMES = 3 };

typedef struct note_taker {
    const pl_verify_slots *slots;
    const pl_verify_options *options;
    uint64_t n;
    bool heads_alike; /* for longer files */
} note_taker;

static pl_verify_slot *slot_at(const note_taker *notes, size_t i)
{
    return pl_verify_slot_at(notes->slots, i);
}

static const char *path_at(const note_taker *notes, size_t i)
{
    return pl_paths_at(&notes->slots->paths, i);
}

static int note(note_taker *notes, const char *path, pl_verify_format format, const char *reason,
                pl_error *reterr)
{
    pl_verify_finding finding = {
        .severity = PL_VERIFY_NOTE,
        .offset = PL_VERIFY_NO_OFFSET,
        .record = -1,
        .line = -1,
        .column = -1,
    };
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

/* Hashes a whole file. False: it cannot be read any more, or the check must end. */
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
    snprintf(reason, sizeof reason, "a copy of '%.300s'", path_at(notes, of));
    return note(notes, path_at(notes, copy), slot_at(notes, copy)->format, reason, reterr);
}

/* Recognises a file by another path, or a link: a file is not a copy of itself. */
static bool is_same_file(const note_taker *notes, uint32_t i, uint32_t j)
{
    struct stat a, b;
    return stat(path_at(notes, i), &a) == 0 && stat(path_at(notes, j), &b) == 0 &&
           a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Returns the first file that equals this one: itself, now remembered, if there was none. */
static uint32_t first_alike(const note_taker *notes, uint32_t i, uint32_t *table, uint64_t mask)
{
    const pl_verify_slot *slot = slot_at(notes, i);
    uint64_t at = slot->head.low64 & mask;
    for (; table[at] != 0; at = (at + 1) & mask)
        if (is_alike(slot, slot_at(notes, table[at] - 1)))
            return table[at] - 1;
    table[at] = i + 1;
    return i;
}

/* Reports file `i` if it equals an earlier one; with `by_heads`, only the heads of longer files are
 * compared. `table` has mask + 1 places, more than there are files: each holds the number of a file
 * plus 1, or 0. */
static int compare_file(note_taker *notes, uint32_t i, bool by_heads, uint32_t *table,
                        uint64_t mask, pl_error *reterr)
{
    uint32_t first = first_alike(notes, i, table, mask);
    if (first == i)
        return 0;
    if (by_heads && slot_at(notes, i)->file_bytes > PL_VERIFY_HEAD_BYTES) {
        slot_at(notes, i)->is_alike = slot_at(notes, first)->is_alike = true;
        notes->heads_alike = true;
        return 0;
    }
    return is_same_file(notes, i, first) ? 0 : note_copy(notes, i, first, reterr);
}

static int compare_heads(note_taker *notes, uint32_t *table, uint64_t mask, pl_error *reterr)
{
    int r = 0;
    memset(table, 0, (mask + 1) * sizeof *table);
    for (uint32_t i = 0; r == 0 && i < notes->slots->paths.n; i++) {
        const pl_verify_slot *slot = slot_at(notes, i);
        if (slot->is_done && slot->file_bytes > 0)
            r = compare_file(notes, i, true, table, mask, reterr);
    }
    return r;
}

static int note_copies(note_taker *notes, uint32_t *table, uint64_t mask, pl_error *reterr)
{
    int r = compare_heads(notes, table, mask, reterr);
    if (r < 0 || !notes->heads_alike)
        return r;
    memset(table, 0, (mask + 1) * sizeof *table);
    for (uint32_t i = 0; r == 0 && i < notes->slots->paths.n; i++) {
        pl_verify_slot *slot = slot_at(notes, i);
        if (slot->is_alike && hash_all(notes, path_at(notes, i), &slot->head))
            r = compare_file(notes, i, false, table, mask, reterr);
    }
    return r;
}

/* ---- sizes of images ---- */

static int compare_sizes(const void *a, const void *b, void *context)
{
    const pl_verify_slot *i = slot_at(context, *(const uint32_t *)a);
    const pl_verify_slot *j = slot_at(context, *(const uint32_t *)b);
    if (i->height != j->height)
        return i->height < j->height ? -1 : 1;
    return i->width < j->width ? -1 : i->width > j->width;
}

static bool has_size(const pl_verify_slot *slot, const pl_verify_slot *other)
{
    return slot->height == other->height && slot->width == other->width;
}

/* Names the first file of another size, and says how many there are. */
static int note_sizes(note_taker *notes, uint32_t *order, pl_error *reterr)
{
    const pl_verify_slot *usual = NULL;
    size_t n = 0, n_usual = 0, n_sizes = 0;
    for (uint32_t i = 0; i < notes->slots->paths.n; i++)
        if (slot_at(notes, i)->height > 0)
            order[n++] = i;
    qsort_r(order, n, sizeof *order, compare_sizes, notes);
    for (size_t i = 0, end; i < n; i = end, n_sizes++) {
        for (end = i + 1;
             end < n && has_size(slot_at(notes, order[i]), slot_at(notes, order[end]));)
            end++;
        if (end - i > n_usual) {
            n_usual = end - i;
            usual = slot_at(notes, order[i]);
        }
    }
    for (uint32_t i = 0; n_sizes > 1 && i < notes->slots->paths.n; i++) {
        char reason[PL_VERIFY_REASON_BYTES];
        const pl_verify_slot *slot = slot_at(notes, i);
        if (slot->height == 0 || has_size(slot, usual))
            continue;
        snprintf(reason, sizeof reason,
                 "%" PRIu32 " x %" PRIu32 " pixels; of %zu images %zu have %" PRIu32 " x %" PRIu32
                 ", and there are %zu sizes: resize before a batch is made",
                 slot->width, slot->height, n, n_usual, usual->width, usual->height, n_sizes);
        return note(notes, path_at(notes, i), slot->format, reason, reterr);
    }
    return 0;
}

/* ---- channels of images ---- */

static const char *channels_name(int channels)
{
    static const char *const names[] = {"", "grey", "grey and alpha", "RGB", "RGBA"};
    return names[channels];
}

/* A batch takes images of one kind, and a decoder without a channel count keeps that of each file.
 * The odd ones are few, and users look for them: each is named. */
static int note_channels(note_taker *notes, pl_error *reterr)
{
    size_t n_with[5] = {0}, n = 0;
    int usual = 0, r = 0;
    for (uint32_t i = 0; i < notes->slots->paths.n; i++)
        n_with[slot_at(notes, i)->channels]++;
    for (int c = 1; c <= 4; c++) {
        n += n_with[c];
        usual = n_with[c] > n_with[usual] || usual == 0 ? c : usual;
    }
    for (uint32_t i = 0; r == 0 && n > n_with[usual] && i < notes->slots->paths.n; i++) {
        char reason[PL_VERIFY_REASON_BYTES];
        const pl_verify_slot *slot = slot_at(notes, i);
        if (slot->channels == 0 || slot->channels == usual)
            continue;
        snprintf(reason, sizeof reason,
                 "its pixels are %s; of %zu images %zu are %s: decode with channels=%d",
                 channels_name(slot->channels), n, n_with[usual], channels_name(usual),
                 usual == 2 ? 1 : usual);
        r = note(notes, path_at(notes, i), slot->format, reason, reterr);
    }
    return r;
}

/* ---- folders that are labels ---- */

typedef struct folder {
    const char *path; /* of a file in it */
    size_t n_path;    /* the part of it that names the folder */
    size_t n_files;
} folder;

static size_t parent_bytes(const char *path, size_t n)
{
    const char *slash = memrchr(path, '/', n);
    return slash ? (size_t)(slash - path) : 0;
}

/* Compares the folders with the same parent: the largest with the smallest. */
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

static bool is_in_folder(const folder *last, const char *path, size_t n)
{
    return last->n_path == n && memcmp(last->path, path, n) == 0;
}

/* Lists the folders that have files. The files of a folder follow each other, in the order of the
 * walk. NULL: -ENOMEM. */
static folder *list_folders(const note_taker *notes, size_t *ret_n)
{
    size_t n = 0, room = 64;
    folder *folders = calloc(room, sizeof *folders);
    for (size_t i = 0; folders && i < notes->slots->paths.n; i++) {
        const char *path = path_at(notes, i);
        size_t bytes = parent_bytes(path, strlen(path));
        if (n > 0 && is_in_folder(&folders[n - 1], path, bytes)) {
            folders[n - 1].n_files++;
            continue;
        }
        folder *larger = n < room ? folders : reallocarray(folders, room *= 2, sizeof *folders);
        if (!larger)
            free(folders);
        folders = larger;
        if (folders)
            folders[n++] = (folder){.path = path, .n_path = bytes, .n_files = 1};
    }
    *ret_n = n;
    return folders;
}

static int compare_bytes(const char *a, size_t n_a, const char *b, size_t n_b)
{
    int order = memcmp(a, b, n_a < n_b ? n_a : n_b);
    return order != 0 ? order : (n_a > n_b) - (n_a < n_b);
}

static int compare_parents(const folder *a, const folder *b)
{
    return compare_bytes(a->path, parent_bytes(a->path, a->n_path), b->path,
                         parent_bytes(b->path, b->n_path));
}

/* Brings the folders of one parent together: in the walk, their subfolders come between. */
static int compare_folders(const void *a, const void *b)
{
    const folder *i = a, *j = b;
    int order = compare_parents(i, j);
    return order != 0 ? order : compare_bytes(i->path, i->n_path, j->path, j->n_path);
}

static int note_labels(note_taker *notes, pl_error *reterr)
{
    size_t n;
    folder *folders = list_folders(notes, &n);
    if (!folders)
        return pl_error_set(reterr, -ENOMEM, "no memory to compare folders");
    qsort(folders, n, sizeof *folders, compare_folders);
    int r = 0;
    for (size_t i = 0, end; r == 0 && i < n; i = end) {
        for (end = i + 1; end < n && compare_parents(&folders[i], &folders[end]) == 0;)
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
    pl_block places; /* also the sort order of the files */
    while (n_places < 2 * slots->paths.n)
        n_places *= 2;
    int r = pl_memory_take(options->memory, n_places * sizeof(uint32_t), "places of files", &places,
                           reterr);
    if (r < 0)
        return r;
    r = note_copies(&notes, places.data, n_places - 1, reterr);
    if (r == 0)
        r = note_sizes(&notes, places.data, reterr);
    if (r == 0)
        r = note_channels(&notes, reterr);
    if (r == 0 && options->n_sample == 0) /* a sample's folders are uneven by chance */
        r = note_labels(&notes, reterr);
    pl_memory_give(options->memory, &places);
    *n_notes += notes.n;
    return r;
}
