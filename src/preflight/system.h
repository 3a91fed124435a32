/* SPDX-License-Identifier: Apache-2.0 */
/* The system that programs would run on: memory and its limits, processors, files, disk. Unreadable
 * numbers are 0 and unreadable texts "", unless said otherwise. Never allocates. */
#ifndef PL_PREFLIGHT_SYSTEM_H
#define PL_PREFLIGHT_SYSTEM_H

#include <limits.h>

#include "base/base.h"
#include "plimsoll/budget.h"
#include "sys/cgroup.h"
#include "sys/cpu.h"
#include "sys/file.h"

typedef struct pl_memory_facts {
    int budget_code; /* 0: `budget` is valid; else the error, with `budget_error` */
    pl_budget budget;
    pl_error budget_error;
    uint64_t total_bytes, available_bytes;
    uint64_t swap_total_bytes, swap_free_bytes;
    uint64_t commit_limit_bytes, committed_bytes;
    uint64_t huge_page_bytes, n_huge_pages, n_huge_free;
    int overcommit;            /* vm.overcommit_memory; -1: unknown */
    char huge[16], defrag[16]; /* the selected word in transparent_hugepage/enabled and defrag */
    char oom_group[PL_CGROUP_PATH_BYTES]; /* the cgroup that is killed as a whole; "" */
    bool wsl;
} pl_memory_facts;

typedef struct pl_shm_facts {
    bool there, writable;
    uint64_t total_bytes, free_bytes;
} pl_shm_facts;

typedef struct pl_disk_facts {
    char folder[PATH_MAX]; /* where tensors would be spilled; "": nowhere */
    bool named;            /* chosen by $PLIMSOLL_SPILL */
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
    unsigned n_workers;                         /* data-loading processes */
    char preload[PL_SYSTEM_PRELOAD_BYTES];      /* $LD_PRELOAD */
    char preload_file[PL_SYSTEM_PRELOAD_BYTES]; /* /etc/ld.so.preload */
} pl_system;

/* `n_workers` 0: one per processor. */
void pl_system_read(const char *root, unsigned n_workers, pl_system *ret_system);

/* Takes "always" from "[always] madvise never". Exposed for tests. */
void pl_system_chosen_word(const char *text, char word[16]);

/* Parses a row of /proc/self/limits. False if it is missing. */
bool pl_system_parse_limit(const char *limits, const char *name, uint64_t *ret_soft,
                           uint64_t *ret_hard);

#endif
