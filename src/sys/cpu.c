/* SPDX-License-Identifier: Apache-2.0 */
/* See cpu.h. Quotas are computed in thousandths of a processor. */
#include "sys/cpu.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "sys/cgroup_find.h"
#include "sys/fixed_text.h"
#include "sys/proc.h"

enum {
    MILLI = 1000,
    MASK_SETS = 8, /* of 1024 processors each: the most that Linux can be built for (6.18: 8192) */
};

static const uint64_t no_quota = UINT64_MAX;

static int count_allowed(unsigned *ret_n)
{
    cpu_set_t sets[MASK_SETS];
    if (sched_getaffinity(0, sizeof sets, sets) < 0)
        return -errno;
    *ret_n = (unsigned)pl_max_u64((uint64_t)CPU_COUNT_S(sizeof sets, sets), 1);
    return 0;
}

/* Rounds a fraction of a thousandth up, because a quota is rounded up too. */
static uint64_t milli_of(uint64_t quota_us, uint64_t period_us)
{
    uint64_t scaled;
    if (period_us == 0 || __builtin_mul_overflow(quota_us, UINT64_C(1000), &scaled))
        return no_quota;
    return scaled / period_us + (scaled % period_us != 0);
}

static int read_group_file(const char *path, size_t length, const char *name, char *text, size_t n)
{
    char storage[PATH_MAX];
    pl_fixed_text file = pl_fixed_text_begin(storage, sizeof storage);
    pl_fixed_text_add_n(&file, path, length);
    pl_fixed_text_add(&file, "/");
    pl_fixed_text_add(&file, name);
    return file.overflow ? -ENAMETOOLONG : pl_proc_read_file(storage, text, n);
}

/* Reads "50000" and "100000" from two files. A quota of -1 means none. */
static uint64_t read_quota_v1(const char *path, size_t length)
{
    char quota[32], period[32];
    uint64_t quota_us, period_us;
    if (read_group_file(path, length, "cpu.cfs_quota_us", quota, sizeof quota) < 0 ||
        read_group_file(path, length, "cpu.cfs_period_us", period, sizeof period) < 0)
        return no_quota;
    const char *quota_cursor = quota, *period_cursor = period;
    if (!pl_fixed_text_take_u64(&quota_cursor, &quota_us) ||
        !pl_fixed_text_take_u64(&period_cursor, &period_us))
        return no_quota;
    return milli_of(quota_us, period_us);
}

/* Reads "50000 100000", or "max 100000". */
static uint64_t read_quota_v2(const char *path, size_t length)
{
    char text[64];
    uint64_t quota_us, period_us;
    if (read_group_file(path, length, "cpu.max", text, sizeof text) < 0)
        return no_quota;
    const char *cursor = text;
    if (!pl_fixed_text_take_u64(&cursor, &quota_us) || *cursor++ != ' ' ||
        !pl_fixed_text_take_u64(&cursor, &period_us))
        return no_quota;
    return milli_of(quota_us, period_us);
}

/* Reads the groups from the process's own up to the mount point, both included. */
static uint64_t read_cgroup_quota(const char *root)
{
    pl_cgroup_place place;
    if (pl_cgroup_find(root, 0, "cpu", &place) < 0)
        return no_quota;
    uint64_t least = no_quota;
    for (size_t length = strlen(place.path);;) {
        least = pl_min_u64(least, place.version == 1 ? read_quota_v1(place.path, length)
                                                     : read_quota_v2(place.path, length));
        const char *slash = memrchr(place.path, '/', length);
        if (!slash || (size_t)(slash - place.path) < place.mount_length)
            return least;
        length = (size_t)(slash - place.path);
    }
}

/* Parses "2", "0.5", "1.25". The variable may mean something else elsewhere: any other value sets
 * no limit. */
static uint64_t read_cpu_limit(void)
{
    const char *cursor = getenv("CPU_LIMIT");
    uint64_t whole, milli = 0;
    if (!cursor || !pl_fixed_text_take_u64(&cursor, &whole) || whole > UINT_MAX)
        return no_quota;
    if (*cursor == '.') {
        cursor++;
        for (uint64_t unit = MILLI / 10; *cursor >= '0' && *cursor <= '9'; unit /= 10)
            milli += (uint64_t)(*cursor++ - '0') * unit;
    }
    uint64_t limit = whole * MILLI + milli;
    return *cursor == '\0' && limit > 0 ? limit : no_quota;
}

int pl_cpu_read(const char *root, pl_cpu *ret_cpu)
{
    pl_cpu cpu;
    int r = count_allowed(&cpu.n_allowed);
    if (r < 0)
        return r;
    uint64_t quota = pl_min_u64(read_cgroup_quota(root), read_cpu_limit());
    uint64_t n = quota / MILLI + (quota % MILLI != 0);
    cpu.n_usable = (unsigned)pl_clamp_u64(n, 1, cpu.n_allowed);
    *ret_cpu = cpu;
    return 0;
}
