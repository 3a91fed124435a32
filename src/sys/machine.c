/* SPDX-License-Identifier: Apache-2.0 */
/* See machine.h. */
#include <errno.h>
#include <limits.h>

#include "sys/fixed_text.h"
#include "sys/line_reader.h"
#include "sys/machine.h"
#include "sys/proc.h"

static int root_path(char storage[PATH_MAX], const char *root, const char *name)
{
    pl_fixed_text path = pl_fixed_text_begin(storage, PATH_MAX);
    pl_fixed_text_add(&path, root);
    pl_fixed_text_add(&path, name);
    return path.overflow ? -ENAMETOOLONG : 0;
}

int pl_machine_memory_read(const char *root, pl_machine_memory *ret_memory)
{
    char path[PATH_MAX];
    int r = root_path(path, root, "/proc/meminfo");
    if (r < 0)
        return r;
    char text[512]; /* MemTotal and MemAvailable are lines 1 and 3 */
    r = pl_proc_read_file(path, text, sizeof text);
    if (r < 0)
        return r;
    uint64_t total_kib, available_kib;
    if (!pl_fixed_text_find_u64(text, "MemTotal:", &total_kib) ||
        !pl_fixed_text_find_u64(text, "MemAvailable:", &available_kib))
        return PL_EFORMAT;
    if (total_kib > INT64_MAX / PL_KIB || available_kib > INT64_MAX / PL_KIB)
        return PL_EFORMAT;
    ret_memory->total_bytes = total_kib * PL_KIB;
    ret_memory->available_bytes = available_kib * PL_KIB;
    return 0;
}

int pl_machine_oom_kills(const char *root, uint64_t *ret_n_kills)
{
    char path[PATH_MAX];
    int r = root_path(path, root, "/proc/vmstat");
    if (r < 0)
        return r;
    PL_CLEANUP(pl_line_reader_done) pl_line_reader lines;
    r = pl_line_reader_init(&lines, path);
    if (r < 0)
        return r;
    char *line;
    while ((r = pl_line_reader_next(&lines, &line)) > 0)
        if (pl_fixed_text_find_u64(line, "oom_kill", ret_n_kills))
            return 0;
    return r < 0 ? r : PL_EFORMAT;
}
