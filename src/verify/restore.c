/* SPDX-License-Identifier: Apache-2.0 */
/* Moves files back out of quarantine; see quarantine.h. Anybody may have written the manifest, so a
 * file goes back only to an absolute path without a link or `..` in it, to a name that is free, and
 * only after the user has seen the destination. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/file.h"
#include "verify/move_file.h"
#include "verify/quarantine_private.h"

#define REST PL_MANIFEST ".left"

typedef struct restoration {
    const pl_quarantine *quarantine;
    const pl_quarantine_restoring *how;
    FILE *left; /* lines to keep */
    uint64_t n_shown;
    pl_quarantine_restored done;
} restoration;

/* Accepts "000012-name" only: the manifest itself, and files outside, were never put there. */
static bool is_name(const char *name)
{
    size_t n = strspn(name, "0123456789");
    return n >= 6 && name[n] == '-' && strlen(name) <= NAME_MAX && strchr(name, '/') == NULL;
}

static bool is_path(const char *path)
{
    const char *last = strrchr(path, '/');
    return path[0] == '/' && last[1] != '\0' && strcmp(last, "/.") != 0 && strcmp(last, "/..") != 0;
}

bool pl_quarantine_parse(const char *text, size_t n, pl_quarantine_entry *ret_entry)
{
    json_t *line = NULL;
    json_error_t unused;
    const char *name = NULL;
    if (pl_json_parse(text, n, 0, &line, &unused) == 0)
        name = json_string_value(json_object_get(line, "to"));
    bool good = name && is_name(name) && pl_quarantine_path_from_json(line, ret_entry->path) &&
                is_path(ret_entry->path);
    if (good)
        snprintf(ret_entry->name, sizeof ret_entry->name, "%s", name);
    json_decref(line);
    return good;
}

static bool is_there(int folder, const char *name)
{
    return faccessat(folder, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Opens the folder that the file goes back to. */
static int open_parent(const pl_quarantine_entry *it)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(it->path, '/') + 1 - it->path), it->path);
    return pl_file_open_folder(folder);
}

/* Returns NULL if the file is back where it was, else the reason; *moved says whether it was moved
 * now. */
static const char *move_back(int quarantine, int parent, const pl_quarantine_entry *it, bool *moved)
{
    const char *last = strrchr(it->path, '/') + 1;
    bool is_back = is_there(parent, last), is_away = is_there(quarantine, it->name);
    if (!is_away)
        return is_back ? NULL : "it is neither there nor in quarantine";
    if (is_back && pl_files_are_same(parent, last, quarantine, it->name))
        /* we died after the copy, before the end */
        return unlinkat(quarantine, it->name, 0) < 0 ? strerror(errno) : NULL;
    int r = is_back ? -EEXIST : pl_move_file(quarantine, it->name, parent, last);
    *moved = r == 0;
    return r == -EEXIST ? "another file is there by now" : r < 0 ? pl_error_text(r) : NULL;
}

static const char *restore_entry(int quarantine, const pl_quarantine_entry *it, bool *moved)
{
    int parent = open_parent(it);
    if (parent == -ELOOP)
        return "its folder is reached through a link: move it by hand";
    if (parent == -EINVAL)
        return "its path has a '..' in it: move it by hand";
    if (parent < 0)
        return pl_error_text(parent);
    const char *why = move_back(quarantine, parent, it, moved);
    close(parent);
    return why;
}

static void restore_line(restoration *restoring, const char *text, size_t n)
{
    pl_quarantine_entry it;
    bool moved = false, good = pl_quarantine_parse(text, n, &it);
    const pl_quarantine *quarantine = restoring->quarantine;
    const char *why = good ? restore_entry(quarantine->folder_fd, &it, &moved)
                           : "the manifest's line cannot be read, or was not written by plimsoll";
    restoring->done.n_restored += moved;
    if (why) {
        restoring->done.n_left++;
        restoring->how->tell(good ? it.path : quarantine->folder, why);
        fprintf(restoring->left, "%.*s\n", (int)n, text);
    }
}

static void show_line(restoration *restoring, const char *text, size_t n)
{
    pl_quarantine_entry it;
    restoring->done.n_left++;
    if (!pl_quarantine_parse(text, n, &it) || !is_there(restoring->quarantine->folder_fd, it.name))
        return;
    restoring->how->show(it.name, it.path);
    restoring->n_shown++;
}

static void each_line(restoration *restoring, const char *text, uint64_t n,
                      void (*work)(restoration *restoring, const char *text, size_t n))
{
    const char *end = text + n;
    for (const char *line = text, *feed;
         line < end && (feed = memchr(line, '\n', (size_t)(end - line))); line = feed + 1)
        work(restoring, line, (size_t)(feed - line));
}

/* An old file of this name is ours to replace, but we never write through it. */
static int open_rest(restoration *restoring)
{
    int folder = restoring->quarantine->folder_fd;
    if (unlinkat(folder, REST, 0) < 0 && errno != ENOENT)
        return -errno;
    int fd = openat(folder, REST, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return -errno;
    restoring->left = fdopen(fd, "w");
    if (restoring->left)
        return 0;
    close(fd);
    return -ENOMEM;
}

/* Replaces the manifest by the lines that are left. */
static int end_restoring(const restoration *restoring)
{
    const pl_quarantine *quarantine = restoring->quarantine;
    int folder = quarantine->folder_fd;
    int r = fflush(restoring->left) != 0 || fsync(fileno(restoring->left)) < 0 ? -errno : 0;
    if (fclose(restoring->left) != 0 && r == 0)
        r = -errno;
    if (r < 0)
        return r;
    if (restoring->done.n_left > 0)
        return renameat(folder, REST, folder, PL_MANIFEST) < 0 ? -errno : 0;
    if (unlinkat(folder, REST, 0) < 0 || unlinkat(folder, PL_MANIFEST, 0) < 0)
        return -errno;
    return rmdir(quarantine->folder) < 0 && errno != ENOTEMPTY && errno != EEXIST ? -errno : 0;
}

static int move_all(restoration *restoring, const char *text, uint64_t n, pl_error *reterr)
{
    restoring->done.n_left = 0;
    int r = open_rest(restoring);
    if (r == 0) {
        each_line(restoring, text, n, restore_line);
        r = end_restoring(restoring);
    }
    return r < 0 ? pl_quarantine_refuse(reterr, r, "restore from", restoring->quarantine->folder)
                 : 0;
}

int pl_quarantine_restore(const char *folder, const pl_quarantine_restoring *how,
                          pl_quarantine_restored *ret_restored, pl_error *reterr)
{
    pl_quarantine quarantine;
    restoration restoring = {.quarantine = &quarantine, .how = how};
    char *text = NULL;
    uint64_t n = 0;
    int r = pl_quarantine_attach(&quarantine, folder, 0, reterr);
    if (r < 0)
        return r;
    r = pl_quarantine_read(&quarantine, &text, &n);
    if (r < 0) {
        r = pl_quarantine_refuse(reterr, r, "read the manifest in", quarantine.folder);
    } else {
        each_line(&restoring, text, n, show_line);
        r = restoring.n_shown > 0 ? how->agree(restoring.n_shown, reterr) : 1;
        if (r > 0)
            r = move_all(&restoring, text, n, reterr);
    }
    free(text);
    pl_quarantine_close(&quarantine);
    *ret_restored = restoring.done;
    return r;
}
