/* SPDX-License-Identifier: Apache-2.0 */
/* The system that programs would run on: memory and who limits it, processors, files, disk.
 * Numbers that could not be read are 0, texts "", unless said otherwise. Never allocates. */
#ifndef PL_PREFLIGHT_SYSTEM_H
#define PL_PREFLIGHT_SYSTEM_H

#include <limits.h>

#include "base/base.h"
#include "plimsoll/budget.h"
#include "sys/cgroup.h"
#include "sys/cpu.h"
#include "sys/file.h"

typedef struct pl_memory_facts {
    int budget_code; /* 0: `budget` holds; else why not, in `budget_error` */
    pl_budget budget;
    pl_error budget_error;
    uint64_t total_bytes, available_bytes;
    uint64_t swap_total_bytes, swap_free_bytes;
    uint64_t commit_limit_bytes, committed_bytes;
    uint64_t huge_page_bytes, n_huge_pages, n_huge_free;
    int overcommit;            /* vm.overcommit_memory; -1: unknown */
    char huge[16], defrag[16]; /* which word is chosen in transparent_hugepage/enabled, defrag */
    char oom_group[PL_CGROUP_PATH_BYTES]; /* the group that dies as one; "" */
    bool wsl;
} pl_memory_facts;

typedef struct pl_shm_facts {
    bool there, writable;
    uint64_t total_bytes, free_bytes;
} pl_shm_facts;

typedef struct pl_disk_facts {
    char folder[PATH_MAX]; /* where tensors would be spilled to; "": nowhere */
    bool named;            /* $PLIMSOLL_SPILL says so */
    bool writable;
    pl_file_space space;
} pl_disk_facts;

enum { PL_SYSTEM_PRELOAD_BYTES = 4096 };

typedef struct pl_system {
    pl_memory_facts memory;
    pl_shm_facts shm;
    pl_disk_facts disk;
    pl_cpu cpu;
    uint64_t open_files, open_files_hard;       /* UINT64_MAX: no limit; 0: unknown */
    uint64_t file_bytes;                        /* RLIMIT_FSIZE; UINT64_MAX: no limit; 0: unknown */
    unsigned n_workers;                         /* processes that load data */
    char preload[PL_SYSTEM_PRELOAD_BYTES];      /* $LD_PRELOAD */
    char preload_file[PL_SYSTEM_PRELOAD_BYTES]; /* /etc/ld.so.preload */
} pl_system;

/* `n_workers` 0: as many as there are processors. */
void pl_system_read(const char *root, unsigned n_workers, pl_system *ret_system);

/* "[always] madvise never": always. For tests too. */
void pl_system_chosen_word(const char *text, char word[16]);

/* A row of /proc/self/limits. False when it is not there. */
bool pl_system_parse_limit(const char *limits, const char *name, uint64_t *ret_soft,
                           uint64_t *ret_hard);

#endif
