/* SPDX-License-Identifier: Apache-2.0 */
/* See shared_files.h. Files in /dev/shm are found there, if they belong to this user and were
 * changed since the run began; files that were unlinked, or lie in /tmp or /run, are found by the
 * descriptors of the tree. */
#include "supervise/shared_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/clock.h"

/* Smaller ones are not worth a site. */
#define LEAST_BYTES PL_MIB

/* Less than this part of the line, unseen, is not worth a look. */
enum { NOTICEABLE_SHARE = 64 };

/* A look at 64 processes with 256 descriptors each takes some 15 ms; few have that many. */
enum { MOST_ENTRIES = 256, MOST_PROCESSES = 64, ENTRIES_BYTES = 8192 };

typedef struct found_file {
    dev_t device;
    ino_t inode;
    uint64_t bytes;
    char name[sizeof(((pl_python_frame *)0)->file)];
} found_file;

typedef struct found_files {
    int n;
    found_file files[PL_SHARED_FILES]; /* largest first */
} found_files;

typedef struct entry {
    uint64_t inode;
    int64_t offset;
    uint16_t length;
    uint8_t type;
    char name[];
} entry;

static bool is_known(const found_files *found, const struct stat *status)
{
    for (int i = 0; i < found->n; i++)
        if (found->files[i].device == status->st_dev && found->files[i].inode == status->st_ino)
            return true;
    return false;
}

/* Keeps the tail of a name that is too long. */
static void add(found_files *found, const struct stat *status, const char *name)
{
    uint64_t bytes = (uint64_t)status->st_blocks * 512;
    int at = found->n < PL_SHARED_FILES ? found->n++ : PL_SHARED_FILES;
    for (; at > 0 && found->files[at - 1].bytes < bytes; at--)
        if (at < PL_SHARED_FILES)
            found->files[at] = found->files[at - 1];
    if (at == PL_SHARED_FILES)
        return;
    found_file *file = &found->files[at];
    *file = (found_file){.device = status->st_dev, .inode = status->st_ino, .bytes = bytes};
    size_t n = strlen(name), room = sizeof file->name - 1;
    snprintf(file->name, sizeof file->name, "%s", n > room ? name + (n - room) : name);
}

static bool is_large(const struct stat *status)
{
    return S_ISREG(status->st_mode) && (uint64_t)status->st_blocks * 512 >= LEAST_BYTES;
}

typedef void look_at(found_files *found, const pl_ledger *ledger, int folder, const char *name);

static void look_into(const char *path, found_files *found, const pl_ledger *ledger, look_at *look)
{
    _Alignas(entry) char entries[ENTRIES_BYTES];
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW), n_seen = 0;
    long n;
    if (folder < 0)
        return;
    while (n_seen < MOST_ENTRIES &&
           (n = syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0)
        for (long at = 0; at < n;) {
            const entry *next = (const entry *)(entries + at);
            look(found, ledger, folder, next->name);
            at += next->length;
            n_seen++;
        }
    close(folder);
}

/* Takes only files of ours, of this run: a file of a program that died long ago was there
 * before. */
static void look_at_name(found_files *found, const pl_ledger *ledger, int folder, const char *name)
{
    struct stat status;
    char path[sizeof "/dev/shm/" + NAME_MAX];
    if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) < 0 || !is_large(&status) ||
        status.st_uid != geteuid() || is_known(found, &status))
        return;
    uint64_t changed_ns =
        (uint64_t)status.st_ctim.tv_sec * PL_NS_PER_SEC + (uint64_t)status.st_ctim.tv_nsec;
    if (changed_ns < ledger->header.started_realtime_ns)
        return;
    snprintf(path, sizeof path, "/dev/shm/%s", name);
    add(found, &status, path);
}

/* Checked before the file itself is opened: one on a server that does not answer would block. */
static bool may_be_memory(const char *link)
{
    static const char *const places[] = {"/memfd:", "/dev/", "/tmp/", "/run/"};
    for (size_t i = 0; i < PL_COUNT_OF(places); i++)
        if (strncmp(link, places[i], strlen(places[i])) == 0)
            return true;
    return false;
}

/* "/memfd:name (deleted)" is called "memfd:name". */
static void look_at_descriptor(found_files *found, const pl_ledger *ledger, int folder,
                               const char *name)
{
    struct stat status;
    struct statfs system;
    char link[PATH_MAX], path[64];
    static const char gone[] = " (deleted)", memfd[] = "/memfd:";
    (void)ledger;
    ssize_t n = readlinkat(folder, name, link, sizeof link - 1);
    if (n <= 0)
        return;
    link[n] = '\0';
    snprintf(path, sizeof path, "/proc/self/fd/%d/%.20s", folder, name);
    if (!may_be_memory(link) || fstatat(folder, name, &status, 0) < 0 || !is_large(&status) ||
        is_known(found, &status) || statfs(path, &system) < 0 || system.f_type != TMPFS_MAGIC)
        return;
    if ((size_t)n >= sizeof gone && strcmp(link + n - strlen(gone), gone) == 0)
        link[n - (ssize_t)strlen(gone)] = '\0';
    add(found, &status, strncmp(link, memfd, strlen(memfd)) == 0 ? link + 1 : link);
}

static void find_files(found_files *found, const pl_ledger *ledger, const pl_process_tree *tree)
{
    char path[64];
    look_into("/dev/shm", found, ledger, look_at_name);
    for (int i = 0; i < tree->n && i < MOST_PROCESSES; i++) {
        snprintf(path, sizeof path, "/proc/%d/fd", (int)tree->processes[i].pid);
        look_into(path, found, ledger, look_at_descriptor);
    }
}

static void set_bytes(pl_site *site, uint64_t bytes, bool is_new)
{
    int64_t held = atomic_load(&site->held_bytes);
    pl_site_add_unclaimed(site, (int64_t)bytes - held, is_new);
}

static pl_site *site_of(pl_ledger *ledger, const found_file *file)
{
    bool is_new;
    uint64_t key =
        ((uint64_t)file->inode ^ (uint64_t)file->device << 40) * UINT64_C(0x9e3779b97f4a7c15);
    pl_site *site = pl_ledger_site(ledger, key, getpid(), &is_new);
    if (!site)
        return NULL;
    if (is_new) {
        memcpy(site->python.file, file->name, sizeof file->name);
        site->python.line = PL_LINE_OF_FILE;
    }
    set_bytes(site, file->bytes, is_new);
    return site;
}

static void replace_sites(pl_shared_files *files, pl_ledger *ledger, const found_files *found)
{
    pl_shared_files before = *files;
    files->n = 0;
    for (int i = 0; i < found->n; i++) {
        pl_site *site = site_of(ledger, &found->files[i]);
        if (site)
            files->sites[files->n++] = site;
    }
    for (int i = 0; i < before.n; i++) {
        bool still = false;
        for (int j = 0; j < files->n; j++)
            still |= files->sites[j] == before.sites[i];
        if (!still)
            set_bytes(before.sites[i], 0, false);
    }
}

void pl_shared_files_look(pl_shared_files *files, pl_ledger *ledger, const pl_process_tree *tree,
                          uint64_t unseen_bytes, uint64_t now_ns)
{
    uint64_t noticeable = pl_ledger_limit_bytes(ledger) / NOTICEABLE_SHARE;
    uint64_t moved = unseen_bytes > files->unseen_bytes ? unseen_bytes - files->unseen_bytes
                                                        : files->unseen_bytes - unseen_bytes;
    if (unseen_bytes < noticeable && files->n == 0)
        return;
    if (moved < noticeable && now_ns - files->looked_ns < PL_NS_PER_SEC)
        return;
    files->unseen_bytes = unseen_bytes;
    files->looked_ns = now_ns;
    found_files found = {.n = 0};
    if (unseen_bytes >= noticeable)
        find_files(&found, ledger, tree);
    replace_sites(files, ledger, &found);
}
