/* SPDX-License-Identifier: Apache-2.0 */
/* See folder.h. A kernelspec's folder may hold anything that a user or a package put there: sizes,
 * depth and number are bounded, and only regular files are read. */
#include "jupyter/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/size.h"

/* Kernelspecs have a handful of files in at most two folders; this limits the cost of a mistake. */
enum { MAX_DEPTH = 8, MAX_FILES = 1000 };

/* Deeper than the copied folders, because files may have been added; each level takes 4 KiB of
 * stack. */
enum { MAX_REMOVED_DEPTH = 64 };

typedef struct copying {
    pl_folder_note *note;
    int n_files;
} copying;

static void closep(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static void closedirp(DIR **dir)
{
    if (*dir != NULL)
        closedir(*dir);
}

int pl_path_join(const char *left, const char *right, char path[PATH_MAX])
{
    const char *slash = strcmp(left, "/") == 0 || right[0] == '\0' ? "" : "/";
    int n = snprintf(path, PATH_MAX, "%s%s%s", left, slash, right);
    return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

int pl_path_absolute(const char *text, char path[PATH_MAX])
{
    char working[PATH_MAX];
    int r = 0;
    if (text[0] == '/')
        r = snprintf(path, PATH_MAX, "%s", text) >= PATH_MAX ? -ENAMETOOLONG : 0;
    else if (getcwd(working, sizeof(working)) == NULL)
        r = -errno;
    else
        r = pl_path_join(working, text, path);
    for (size_t n = r == 0 ? strlen(path) : 0; n > 1 && path[n - 1] == '/'; n--)
        path[n - 1] = '\0';
    return r;
}

static void leave_out(const copying *job, const char *path, const char *why)
{
    char text[PATH_MAX + 128];
    snprintf(text, sizeof(text), "left out '%s': %s", path, why);
    job->note(text);
}

/* Stops at the largest allowed size, even if the file has grown since it was checked. */
static int copy_bytes(int from, int to)
{
    for (size_t left = PL_FOLDER_MAX_FILE_BYTES; left > 0;) {
        ssize_t n = sendfile(to, from, NULL, left);
        if (n == 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return -errno;
        left -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static int copy_file(copying *job, const char *from, const char *to)
{
    PL_CLEANUP(closep) int in = open(from, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;
    if (in < 0 || fstat(in, &st) < 0) {
        leave_out(job, from, pl_error_text(-errno));
        return 0;
    }
    if ((uint64_t)st.st_size > PL_FOLDER_MAX_FILE_BYTES) {
        char why[96];
        snprintf(why, sizeof(why), "it is %s, and at most %s are allowed",
                 PL_SIZE((uint64_t)st.st_size), PL_SIZE(PL_FOLDER_MAX_FILE_BYTES));
        leave_out(job, from, why);
        return 0;
    }
    int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, st.st_mode & 0777);
    if (out < 0)
        return -errno;
    int r = copy_bytes(in, out);
    if (close(out) < 0 && r == 0)
        r = -errno;
    return r;
}

static int copy_folder(copying *job, const char *from, const char *to, const char *except,
                       int depth);

static int copy_entry(copying *job, const char *from, const char *to, int depth)
{
    struct stat st, target;
    if (lstat(from, &st) < 0 || stat(from, &target) < 0)
        leave_out(job, from, pl_error_text(-errno));
    else if (S_ISREG(target.st_mode))
        return copy_file(job, from, to);
    else if (!S_ISDIR(st.st_mode))
        leave_out(job, from, S_ISDIR(target.st_mode) ? "a link to a folder" : "it is not a file");
    else if (depth == MAX_DEPTH)
        leave_out(job, from, "its folders are nested too deeply");
    else
        return mkdir(to, 0777) < 0 ? -errno : copy_folder(job, from, to, "", depth + 1);
    return 0;
}

static int copy_folder(copying *job, const char *from, const char *to, const char *except,
                       int depth)
{
    PL_CLEANUP(closedirp) DIR *dir = opendir(from);
    if (dir == NULL && errno == ENOMEM)
        return -ENOMEM;
    if (dir == NULL)
        leave_out(job, from, pl_error_text(-errno));
    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        char source[PATH_MAX], target[PATH_MAX];
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, except) == 0)
            continue;
        if (++job->n_files > MAX_FILES) {
            if (job->n_files == MAX_FILES + 1)
                leave_out(job, from, "too many files, the rest of them");
            break;
        }
        int r = pl_path_join(from, name, source);
        if (r == 0)
            r = pl_path_join(to, name, target);
        if (r == 0)
            r = copy_entry(job, source, target, depth);
        if (r < 0)
            return r;
    }
    return 0;
}

int pl_folder_copy(const char *from, const char *to, const char *except, pl_folder_note *note)
{
    copying job = {.note = note};
    return copy_folder(&job, from, to, except, 0);
}

static int remove_at(int parent, const char *name, int depth);

/* Reads the folder again from its start as long as it found files: removing them while reading may
 * shift the rest. */
static int empty_folder(int folder, int depth)
{
    char buffer[4096] __attribute__((aligned(_Alignof(struct dirent64))));
    for (bool found = true; found;) {
        found = false;
        if (lseek(folder, 0, SEEK_SET) < 0)
            return -errno;
        ssize_t n;
        while ((n = getdents64(folder, buffer, sizeof(buffer))) > 0) {
            for (ssize_t at = 0; at < n;) {
                const struct dirent64 *entry = (const struct dirent64 *)(buffer + at);
                at += entry->d_reclen;
                if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
                    continue;
                int r = remove_at(folder, entry->d_name, depth + 1);
                if (r < 0)
                    return r;
                found = true;
            }
        }
        if (n < 0)
            return -errno;
    }
    return 0;
}

static int remove_at(int parent, const char *name, int depth)
{
    if (unlinkat(parent, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR)
        return -errno;
    if (depth > MAX_REMOVED_DEPTH)
        return -ELOOP;
    PL_CLEANUP(closep)
    int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0)
        return -errno;
    int r = empty_folder(folder, depth);
    if (r == 0 && unlinkat(parent, name, AT_REMOVEDIR) < 0)
        r = -errno;
    return r;
}

int pl_folder_remove(const char *path)
{
    return remove_at(AT_FDCWD, path, 0);
}
