/* SPDX-License-Identifier: Apache-2.0 */
/* A folder that stands for "/", with a /proc and /sys of the test's own making. */
#ifndef PL_TESTS_FAKE_TREE_H
#define PL_TESTS_FAKE_TREE_H

#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct fake_tree {
    char root[64];
} fake_tree;

static inline void fake_tree_init(fake_tree *tree)
{
    snprintf(tree->root, sizeof tree->root, "/tmp/plimsoll-tree-XXXXXX");
    if (!mkdtemp(tree->root))
        abort();
}

static inline int fake_tree_remove(const char *path, const struct stat *status, int flag,
                                   struct FTW *state)
{
    (void)status, (void)flag, (void)state;
    return remove(path);
}

static inline void fake_tree_done(fake_tree *tree)
{
    nftw(tree->root, fake_tree_remove, 8, FTW_DEPTH | FTW_PHYS);
}

/* Writes a file, and makes the folders that lead to it. */
static inline void fake_tree_put(const fake_tree *tree, const char *name, const char *content)
{
    char path[sizeof tree->root + PATH_MAX];
    snprintf(path, sizeof path, "%s%s", tree->root, name);
    for (char *slash = path + strlen(tree->root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(path, 0777);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    if (!file || fputs(content, file) < 0 || fclose(file) != 0)
        abort();
}

/* A group of version 1 or 2 in `folder`: numbers in bytes; a limit of NULL leaves the file out. */
static inline void fake_tree_put_group(const fake_tree *tree, int version, const char *folder,
                                       const char *limit, const char *usage, const char *inactive,
                                       const char *active)
{
    char name[PATH_MAX], stat[256];
    snprintf(name, sizeof name, "%s/%s", folder,
             version == 1 ? "memory.usage_in_bytes" : "memory.current");
    fake_tree_put(tree, name, usage);
    if (limit) {
        snprintf(name, sizeof name, "%s/%s", folder,
                 version == 1 ? "memory.limit_in_bytes" : "memory.max");
        fake_tree_put(tree, name, limit);
    }
    /* On v1 the lines without total_ leave out descendants: a reader that takes them is wrong. */
    if (version == 1)
        snprintf(stat, sizeof stat,
                 "cache 1\ninactive_file 7\nactive_file 7\n"
                 "total_inactive_file %s\ntotal_active_file %s\n",
                 inactive, active);
    else
        snprintf(stat, sizeof stat, "anon 1\nfile 2\ninactive_file %s\nactive_file %s\n", inactive,
                 active);
    snprintf(name, sizeof name, "%s/memory.stat", folder);
    fake_tree_put(tree, name, stat);
}

#endif
