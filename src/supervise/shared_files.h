/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of files, not of processes: in /dev/shm, in another tmpfs, of memfd_create(). No guard
 * sees it, but a cgroup counts it: it is a part of the unseen bytes. This code names it, in
 * sites of the supervisor's own, whose `python.file` is the path (see PL_LINE_OF_FILE). Never
 * allocates. */
#ifndef PL_SUPERVISE_SHARED_FILES_H
#define PL_SUPERVISE_SHARED_FILES_H

#include "ledger/ledger.h"
#include "supervise/process_tree.h"

enum { PL_SHARED_FILES = 16 };

typedef struct pl_shared_files {
    int n;
    pl_site *sites[PL_SHARED_FILES]; /* that hold something */
    uint64_t unseen_bytes;           /* unseen bytes at the last look, and the time of that look */
    uint64_t looked_ns;
} pl_shared_files;

/* Looks for the largest files of the tree, if the unseen bytes are worth a look: they grew or
 * shrank, or a second has passed. Call it before they are charged. */
void pl_shared_files_look(pl_shared_files *files, pl_ledger *ledger, const pl_process_tree *tree,
                          uint64_t unseen_bytes, uint64_t now_ns);

#endif
