/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as what the kernel says: /proc/self/cgroup and mountinfo, a group's files of either
 * version, meminfo, vmstat, limits, a process's stat. A container's runtime, or a user's own file
 * system, may show anything there. Whatever it is, numbers stay in their bounds and texts end.
 *
 * An input is the files' texts, a NUL between each two. The group's folder has a link to itself,
 * "a", so that it has as many groups inside of it as a path names. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"

#include "../unit/fake_tree.h"
#include "plimsoll/budget.h"
#include "preflight/system.h"
#include "sys/cgroup.h"
#include "sys/cpu.h"
#include "sys/fixed_text.h"
#include "sys/machine.h"
#include "sys/proc.h"

#define GROUP "/sys/fs/cgroup/"

static const char *const files[] = {
    "/proc/self/cgroup",    "/proc/self/mountinfo",
    GROUP "memory.max",     GROUP "memory.high",
    GROUP "memory.current", GROUP "memory.stat",
    GROUP "memory.events",  GROUP "memory.pressure",
    GROUP "cpu.max",        GROUP "memory.oom.group",
    "/proc/meminfo",        "/proc/vmstat",
    "/proc/self/limits",    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/proc/version",        "/stat", /* of a process: parsed from the bytes */
};

enum { N_FILES = PL_COUNT_OF(files), STAT = N_FILES - 1 };

/* The same text by the names that version 1 has for it. */
static const char *const links[][2] = {
    {"memory.max", GROUP "memory.limit_in_bytes"},
    {"memory.current", GROUP "memory.usage_in_bytes"},
    {"memory.events", GROUP "memory.oom_control"},
    {"cpu.max", GROUP "cpu.cfs_quota_us"},
    {"memory.high", GROUP "cpu.cfs_period_us"},
    {".", GROUP "a"},
};

static fake_tree tree;
static int fds[N_FILES];
static long n_groups, n_budgets, n_stats; /* 0 of any would make the test worthless */
static int most_levels;

static void remove_tree(void)
{
    fake_tree_done(&tree);
}

static void make_tree(void)
{
    char path[PATH_MAX];
    fake_tree_init(&tree);
    atexit(remove_tree);
    for (size_t i = 0; i < N_FILES; i++) {
        fake_tree_put(&tree, files[i], "");
        snprintf(path, sizeof path, "%s%s", tree.root, files[i]);
        fds[i] = open(path, O_RDWR | O_CLOEXEC);
        REQUIRE(fds[i] >= 0);
    }
    for (size_t i = 0; i < PL_COUNT_OF(links); i++) {
        snprintf(path, sizeof path, "%s%s", tree.root, links[i][1]);
        REQUIRE(symlink(links[i][0], path) == 0);
    }
}

/* The last file takes what is left, NULs and all. */
static const char *write_files(const uint8_t *data, size_t n)
{
    static char stat[2048];
    stat[0] = '\0';
    for (size_t i = 0; i < N_FILES; i++) {
        const uint8_t *end = n > 0 ? memchr(data, '\0', n) : NULL;
        size_t length = end && i < STAT ? (size_t)(end - data) : n;
        REQUIRE(pwrite(fds[i], data, length, 0) == (ssize_t)length);
        REQUIRE(ftruncate(fds[i], (off_t)length) == 0);
        if (i == STAT)
            snprintf(stat, sizeof stat, "%.*s", (int)length, (const char *)data);
        data += end ? length + 1 : length;
        n -= end && i < STAT ? length + 1 : length;
    }
    return stat;
}

static void read_group(void)
{
    pl_cgroup cgroup;
    pl_cgroup_pressure pressure;
    uint64_t bytes, n_kills;
    int r = pl_cgroup_init(&cgroup, tree.root, 0);
    REQUIRE(memchr(cgroup.path, '\0', sizeof cgroup.path) != NULL);
    REQUIRE(cgroup.n_levels >= 0 && cgroup.n_levels <= PL_CGROUP_LEVELS);
    most_levels = cgroup.n_levels > most_levels ? cgroup.n_levels : most_levels;
    REQUIRE(cgroup.tightest >= -1 && cgroup.tightest < cgroup.n_levels);
    REQUIRE((r == 0) == (cgroup.n_levels > 0) && (r == 0) == (cgroup.version > 0));
    for (int i = 0; i < cgroup.n_levels; i++) {
        REQUIRE(cgroup.levels[i].path_length <= strlen(cgroup.path));
        REQUIRE((cgroup.levels[i].limit_bytes > 0) == (cgroup.levels[i].limit_file != NULL));
        (void)!pl_cgroup_level_usage_bytes(&cgroup, i, &bytes);
    }
    (void)pl_cgroup_limit_bytes(&cgroup);
    (void)!pl_cgroup_usage_bytes(&cgroup, &bytes);
    (void)!pl_cgroup_oom_kills(&cgroup, &n_kills);
    (void)!pl_cgroup_pressure_read(&cgroup, &pressure);
    pl_cgroup_done(&cgroup);
    n_groups += r == 0;
}

static void read_budget(void)
{
    pl_budget budget;
    pl_error error = {0};
    int r = pl_budget_discover(&(pl_budget_options){.root = tree.root}, &budget, &error);
    if (r < 0) {
        check_message(r, &error);
        return;
    }
    REQUIRE(budget.n_sources >= 0 && budget.n_sources <= PL_BUDGET_SOURCES);
    REQUIRE(budget.tightest >= -1 && budget.tightest < budget.n_sources);
    REQUIRE(budget.decisive >= -1 && budget.decisive < budget.n_sources);
    REQUIRE(budget.line_bytes >= PL_BUDGET_MIN_BYTES);
    REQUIRE(budget.line_bytes <= budget.true_limit_bytes);
    for (int i = 0; i < budget.n_sources; i++) {
        const pl_budget_source *source = &budget.sources[i];
        REQUIRE(memchr(source->name, '\0', sizeof source->name) != NULL);
        REQUIRE(memchr(source->detail, '\0', sizeof source->detail) != NULL);
        for (const char *c = source->detail; *c; c++)
            REQUIRE(*c >= ' ' && *c <= '~');
    }
    n_budgets++;
}

static void read_machine(void)
{
    static pl_system facts;
    pl_machine_memory memory;
    pl_cpu cpu;
    uint64_t n_kills;
    int r = pl_machine_memory_read(tree.root, &memory);
    REQUIRE(r == 0 || r == PL_EFORMAT);
    r = pl_machine_oom_kills(tree.root, &n_kills);
    REQUIRE(r == 0 || r == PL_EFORMAT);
    REQUIRE(pl_cpu_read(tree.root, &cpu) < 0 ||
            (cpu.n_usable >= 1 && cpu.n_usable <= cpu.n_allowed));
    pl_system_read(tree.root, 2, &facts);
    REQUIRE(memchr(facts.memory.huge, '\0', sizeof facts.memory.huge) != NULL);
    REQUIRE(memchr(facts.memory.oom_group, '\0', sizeof facts.memory.oom_group) != NULL);
}

static void read_process(const char *text)
{
    pl_proc_stat stat;
    if (!pl_proc_stat_parse(text, &stat))
        return;
    REQUIRE(memchr(stat.name, '\0', sizeof stat.name) != NULL);
    n_stats++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (tree.root[0] == '\0')
        make_tree();
    const char *stat = write_files(data, n);
    read_group();
    read_budget();
    read_machine();
    read_process(stat);
    return 0;
}

#ifndef PL_LIBFUZZER

#define STAT_TEXT                                                                                  \
    "4121 (python3 (a) b) S 4000 4121 4000 34816 4121 4194304 1509 0 0 0 10 2 0 0 20 0 3 0 "       \
    "123456 20480000 2500 18446744073709551615 1 1 0 0 0 0 0 16781312 134217730 0 0 0 17 1 0 0"
#define MEMINFO                                                                                    \
    "MemTotal:       16314820 kB\nMemFree:         1234 kB\nMemAvailable:   12000000 kB\n"         \
    "SwapTotal:             0 kB\nSwapFree:              0 kB\nCommitLimit:     8157408 kB\n"      \
    "HugePages_Total:       0\nHugepagesize:       2048 kB"
#define LIMITS                                                                                     \
    "Limit                     Soft Limit           Hard Limit           Units     \n"             \
    "Max open files            1024                 unlimited            files     \n"

static const char version_2[] =
    "0::/a/a\n\0"
    "30 1 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n\0"
    "2147483648\n\0max\n\0"
    "52428800\n\0anon 1\nfile 2\ninactive_file 4096\nactive_file 8192\n\0"
    "low 0\nhigh 0\nmax 3\noom 1\noom_kill 1\n\0"
    "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234\nfull avg10=0.00 total=12\n\0"
    "150000 100000\n\0"
    "1\n\0" MEMINFO "\n\0nr_free_pages 5\noom_kill 7\n\0" LIMITS "\0"
    "always [madvise] never\n\0Linux version 6.1.0\n\0" STAT_TEXT;

static const char version_1[] =
    "4:memory:/docker/x/a\n3:cpu,cpuacct:/docker/x\n0::/\n\0"
    "41 31 0:36 /docker/x /sys/fs/cgroup ro - cgroup cgroup rw,memory,cpu\n\0"
    "9223372036854771712\n\0"
    "100000\n\0"
    "52428800\n\0"
    "cache 1\ntotal_inactive_file 4096\ntotal_active_file 8192\n\0"
    "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n\0\0"
    "-1\n\0\0" MEMINFO "\n\0\0\0[always]\n\0\0" STAT_TEXT;

static void both_versions_are_understood(void **state)
{
    (void)state;
    n_groups = n_budgets = n_stats = 0;
    try_input((const uint8_t *)version_2, sizeof version_2 - 1);
    assert_int_equal(n_groups, 1);
    try_input((const uint8_t *)version_1, sizeof version_1 - 1);
    assert_int_equal(n_groups, 2);
    assert_int_equal(n_budgets, 2);
    assert_int_equal(n_stats, 2);
}

/* No deeper than links may be followed in one path. */
static void of_a_deep_group_the_inner_levels_are_kept(void **state)
{
    (void)state;
    enum { DEPTH = 40 };
    static uint8_t input[3 + 2 * DEPTH + sizeof version_2];
    const char *rest = memchr(version_2, '\n', sizeof version_2);
    size_t n_rest = sizeof version_2 - 1 - (size_t)(rest - version_2), n = 3;
    memcpy(input, "0::", n);
    for (int i = 0; i < DEPTH; i++, n += 2)
        memcpy(input + n, "/a", 2);
    memcpy(input + n, rest, n_rest);
    most_levels = 0;
    try_input(input, n + n_rest);
    assert_int_equal(most_levels, PL_CGROUP_LEVELS);
}

static void no_text_harms_whoever_reads_it(void **state)
{
    (void)state;
    static const char words[] = "0189:/ \n-()\\.,[]=kB\0\x80\xff";
    static uint8_t input[sizeof version_2 + sizeof version_1];
    srandom(1);
    n_groups = n_budgets = 0;
    for (long i = 0; i < n_tries; i++) {
        bool first = random() % 2;
        size_t n = first ? sizeof version_2 - 1 : sizeof version_1 - 1;
        memcpy(input, first ? version_2 : version_1, n);
        for (long k = random() % 12; k > 0; k--)
            input[(size_t)random() % n] = (uint8_t)words[(size_t)random() % sizeof words];
        try_input(input, n);
    }
    assert_true(n_groups > n_tries / 8 && n_budgets > n_tries / 8);
}

int main(int argc, char **argv)
{
    read_arguments(argc, argv, 2000);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_versions_are_understood),
        cmocka_unit_test(of_a_deep_group_the_inner_levels_are_kept),
        cmocka_unit_test(no_text_harms_whoever_reads_it),
    };
    return cmocka_run_group_tests_name("fuzz_system", tests, NULL, NULL);
}

#endif
