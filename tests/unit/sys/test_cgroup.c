/* SPDX-License-Identifier: Apache-2.0 */
/* The memory cgroup is found and read in every arrangement that systems and containers have, on
 * trees made for the test, and in a real group where the kernel lets us make one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "../emulated.h"
#include "fake_tree.h"
#include "sys/cgroup.h"
#include "sys/machine.h"

#define UNLIMITED_V1 "9223372036854771712\n"
#define V2_MOUNT     "35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n"
#define V1_MOUNT     "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
#define OTHER_MOUNTS                                                                               \
    "22 27 0:21 / /proc rw,relatime - proc proc rw\n"                                              \
    "33 31 0:30 / /sys/fs/cgroup/cpu rw,relatime shared:4 - cgroup cgroup rw,cpu\n"                \
    "34 31 0:31 / /mnt/memory rw,relatime - tmpfs memory rw,memory\n"

static fake_tree tree;
static pl_cgroup cgroup;
static pl_cgroup_change change; /* as pl_cgroup_refresh() told it last */

static int set_up(void **state)
{
    (void)state;
    fake_tree_init(&tree);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pl_cgroup_done(&cgroup);
    fake_tree_done(&tree);
    return 0;
}

static void put_mounts(const char *text)
{
    fake_tree_put(&tree, "/proc/self/mountinfo", text);
}

static void put_groups(const char *text)
{
    fake_tree_put(&tree, "/proc/self/cgroup", text);
}

static int init(void)
{
    return pl_cgroup_init(&cgroup, tree.root, 0);
}

static const char *own_path(void)
{
    return cgroup.path + strlen(tree.root);
}

static uint64_t usage_bytes(void)
{
    uint64_t bytes = 0;
    assert_int_equal(pl_cgroup_usage_bytes(&cgroup, &bytes), 0);
    return bytes;
}

static uint64_t oom_kills(void)
{
    uint64_t n = 0;
    assert_int_equal(pl_cgroup_oom_kills(&cgroup, &n), 0);
    return n;
}

static void v2_takes_the_smallest_of_max_and_high_over_all_ancestors(void **state)
{
    (void)state;
    put_mounts(OTHER_MOUNTS V2_MOUNT);
    put_groups("0::/user.slice/app.scope\n");
    fake_tree_put_group(&tree, 2, "/sys/fs/cgroup/user.slice/app.scope", "8000\n", "500\n", "100",
                        "50");
    fake_tree_put_group(&tree, 2, "/sys/fs/cgroup/user.slice", "max\n", "2500\n", "300", "200");
    fake_tree_put(&tree, "/sys/fs/cgroup/user.slice/memory.high", "3000\n");
    fake_tree_put(&tree, "/sys/fs/cgroup/user.slice/app.scope/memory.high", "max\n");
    fake_tree_put(&tree, "/sys/fs/cgroup/user.slice/app.scope/memory.events",
                  "low 0\nhigh 9\nmax 8\noom 4\noom_kill 3\noom_group_kill 1\n");
    fake_tree_put(&tree, "/sys/fs/cgroup/user.slice/memory.events", "oom 9\noom_kill 77\n");

    assert_int_equal(init(), 0);
    assert_int_equal(cgroup.version, 2);
    assert_string_equal(own_path(), "/sys/fs/cgroup/user.slice/app.scope");
    assert_int_equal(cgroup.n_levels, 2);
    assert_int_equal(pl_cgroup_limit_bytes(&cgroup), 3000);
    assert_string_equal(cgroup.levels[0].limit_file, "memory.max");
    assert_string_equal(cgroup.levels[1].limit_file, "memory.high");
    assert_int_equal(cgroup.tightest, 1);
    assert_int_equal(usage_bytes(), 2000); /* the slice: 3000 - 2000 left, in the scope 7650 */
    assert_int_equal(oom_kills(), 3);      /* the slice's 77 are the neighbours' */
}

static void the_tightest_is_who_has_least_left_not_the_least_limit(void **state)
{
    (void)state;
    put_mounts(V2_MOUNT);
    put_groups("0::/a/b\n");
    fake_tree_put_group(&tree, 2, "/sys/fs/cgroup/a/b", "1000\n", "100\n", "0", "0");
    fake_tree_put_group(&tree, 2, "/sys/fs/cgroup/a", "5000\n", "4950\n", "0", "0");
    assert_int_equal(init(), 0);
    assert_int_equal(pl_cgroup_limit_bytes(&cgroup), 1000);
    assert_int_equal(cgroup.tightest, 1);
    assert_int_equal(usage_bytes(), 4950);
}

static void v1_reads_the_hierarchical_file_cache_and_its_own_kills(void **state)
{
    (void)state;
    put_mounts(OTHER_MOUNTS V1_MOUNT);
    put_groups("9:name=systemd:/x\n4:cpu,memory:/job/step\n1:cpuset:/\n");
    fake_tree_put_group(&tree, 1, "/sys/fs/cgroup/memory", UNLIMITED_V1, "99999\n", "0", "0");
    fake_tree_put_group(&tree, 1, "/sys/fs/cgroup/memory/job", "6000\n", "4000\n", "500", "500");
    fake_tree_put_group(&tree, 1, "/sys/fs/cgroup/memory/job/step", UNLIMITED_V1, "700\n", "0",
                        "0");
    fake_tree_put(&tree, "/sys/fs/cgroup/memory/job/step/memory.oom_control",
                  "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n");
    fake_tree_put(&tree, "/sys/fs/cgroup/memory/job/memory.oom_control",
                  "oom_kill_disable 0\nunder_oom 0\noom_kill 50\n");

    assert_int_equal(init(), 0);
    assert_int_equal(cgroup.version, 1);
    assert_string_equal(own_path(), "/sys/fs/cgroup/memory/job/step");
    assert_int_equal(pl_cgroup_limit_bytes(&cgroup), 6000);
    assert_int_equal(usage_bytes(), 3000);
    assert_int_equal(oom_kills(), 5);
    uint64_t own = 0;
    assert_int_equal(pl_cgroup_level_usage_bytes(&cgroup, 0, &own), 0);
    assert_int_equal(own, 700);
}

static void with_no_limit_anywhere_usage_is_the_own_groups(void **state)
{
    (void)state;
    put_mounts(V1_MOUNT);
    put_groups("4:memory:/job\n");
    fake_tree_put_group(&tree, 1, "/sys/fs/cgroup/memory", UNLIMITED_V1, "99999\n", "0", "0");
    fake_tree_put_group(&tree, 1, "/sys/fs/cgroup/memory/job", "9223372036854710272\n", "700\n",
                        "50", "50");
    assert_int_equal(init(), 0);
    assert_int_equal(pl_cgroup_limit_bytes(&cgroup), 0);
    assert_int_equal(cgroup.tightest, -1);
    assert_int_equal(cgroup.n_levels, 2);
    assert_int_equal(usage_bytes(), 600);
}

static void hybrid_uses_v1_when_v1_has_the_memory_controller(void **state)
{
    (void)state;
    put_mounts("41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n" V1_MOUNT);
    fake_tree_put_group(&tree, 1, "/sys/fs/cgroup/memory/job", "6000\n", "700\n", "0", "0");
    fake_tree_put_group(&tree, 2, "/sys/fs/cgroup/unified/session", "1\n", "1\n", "0", "0");
    static const char *const orders[] = {"0::/session\n4:memory:/job\n",
                                         "4:memory:/job\n0::/session\n"};
    for (size_t i = 0; i < PL_COUNT_OF(orders); i++) {
        put_groups(orders[i]);
        assert_int_equal(init(), 0);
        assert_int_equal(cgroup.version, 1);
        assert_string_equal(own_path(), "/sys/fs/cgroup/memory/job");
        pl_cgroup_done(&cgroup);
    }
}

static void hybrid_uses_v2_when_v1_has_other_controllers_only(void **state)
{
    (void)state;
    put_mounts(OTHER_MOUNTS V2_MOUNT);
    put_groups("5:cpu,memoryless:/job\n0::/job\n");
    fake_tree_put_group(&tree, 2, "/sys/fs/cgroup/job", "6000\n", "700\n", "0", "0");
    assert_int_equal(init(), 0);
    assert_int_equal(cgroup.version, 2);
    assert_int_equal(pl_cgroup_limit_bytes(&cgroup), 6000);
}

static void a_container_that_mounts_its_own_group_finds_it_at_the_mount_point(void **state)
{
    (void)state;
    put_mounts("35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro master:15 - cgroup cgroup "
               "rw,memory\n");
    put_groups("4:memory:/docker/abc/job\n");
    fake_tree_put_group(&tree, 1, "/sys/fs/cgroup/memory", "6000\n", "700\n", "0", "0");
    fake_tree_put_group(&tree, 1, "/sys/fs/cgroup/memory/job", UNLIMITED_V1, "300\n", "0", "0");
    assert_int_equal(init(), 0);
    assert_string_equal(own_path(), "/sys/fs/cgroup/memory/job");
    assert_int_equal(pl_cgroup_limit_bytes(&cgroup), 6000);
}

static void a_mount_root_that_is_only_a_prefix_of_the_name_is_not_an_ancestor(void **state)
{
    (void)state;
    put_mounts("35 31 0:32 /docker/ab /mnt/one ro - cgroup cgroup rw,memory\n"
               "36 31 0:32 /docker/abc /mnt/two ro - cgroup cgroup rw,memory\n");
    put_groups("4:memory:/docker/abc\n");
    fake_tree_put_group(&tree, 1, "/mnt/one", "1000\n", "700\n", "0", "0");
    fake_tree_put_group(&tree, 1, "/mnt/two", "6000\n", "1\n", "0", "0");
    assert_int_equal(init(), 0);
    assert_string_equal(own_path(), "/mnt/two");
}

static void of_two_mounts_the_one_that_shows_more_ancestors_is_taken(void **state)
{
    (void)state;
    put_mounts("35 31 0:32 /a/b /mnt/part rw - cgroup2 cgroup2 rw\n" V2_MOUNT);
    put_groups("0::/a/b\n");
    fake_tree_put_group(&tree, 2, "/mnt/part", "6000\n", "1\n", "0", "0");
    fake_tree_put_group(&tree, 2, "/sys/fs/cgroup/a/b", "6000\n", "1\n", "0", "0");
    fake_tree_put_group(&tree, 2, "/sys/fs/cgroup/a", "5000\n", "1\n", "0", "0");
    assert_int_equal(init(), 0);
    assert_int_equal(pl_cgroup_limit_bytes(&cgroup), 5000);
}

static void a_group_that_the_container_does_not_show_falls_back_to_the_mount_point(void **state)
{
    (void)state;
    static const char *const groups[] = {
        "0::/kubepods/pod1/ctr\n", /* the host's name, seen without a cgroup namespace */
        "0::/../sibling\n",        /* outside of our namespace */
        "0::/job (deleted)\n",
        "0::/\n",
    };
    put_mounts(V2_MOUNT);
    fake_tree_put_group(&tree, 2, "/sys/fs/cgroup", "6000\n", "700\n", "0", "0");
    fake_tree_put_group(&tree, 2, "/sys/fs/sibling", "1000\n", "1\n", "0", "0");
    for (size_t i = 0; i < PL_COUNT_OF(groups); i++) {
        put_groups(groups[i]);
        assert_int_equal(init(), 0);
        assert_string_equal(own_path(), "/sys/fs/cgroup");
        assert_int_equal(pl_cgroup_limit_bytes(&cgroup), 6000);
        pl_cgroup_done(&cgroup);
    }
}

static void escapes_in_mount_points_and_colons_in_groups_are_understood(void **state)
{
    (void)state;
    put_mounts("35 31 0:32 /a\\134b /mnt/my\\040groups\\011x rw - cgroup2 none rw\n");
    put_groups("0::/a\\b/c:d e\n");
    fake_tree_put_group(&tree, 2, "/mnt/my groups\tx/c:d e", "6000\n", "700\n", "0", "0");
    assert_int_equal(init(), 0);
    assert_string_equal(own_path(), "/mnt/my groups\tx/c:d e");
}

static void a_group_without_the_controller_gives_way_to_its_ancestor(void **state)
{
    (void)state;
    put_mounts(V2_MOUNT);
    put_groups("0::/a/b\n");
    fake_tree_put(&tree, "/sys/fs/cgroup/a/b/cgroup.procs", "1\n");
    fake_tree_put_group(&tree, 2, "/sys/fs/cgroup/a", "5000\n", "100\n", "0", "0");
    fake_tree_put(&tree, "/sys/fs/cgroup/a/memory.events", "oom_kill 2\n");
    assert_int_equal(init(), 0);
    assert_string_equal(own_path(), "/sys/fs/cgroup/a");
    assert_int_equal(oom_kills(), 2);
}

static void assert_empty(int r)
{
    uint64_t number;
    assert_int_equal(r, -ENOENT);
    assert_int_equal(cgroup.version, 0);
    assert_string_equal(cgroup.path, "");
    assert_int_equal(pl_cgroup_limit_bytes(&cgroup), 0);
    assert_int_equal(pl_cgroup_usage_bytes(&cgroup, &number), -ENOENT);
    assert_int_equal(pl_cgroup_oom_kills(&cgroup, &number), -ENOENT);
    pl_cgroup_done(&cgroup);
}

static void where_there_is_none_the_result_is_empty_but_usable(void **state)
{
    (void)state;
    assert_empty(init()); /* no /proc at all */
    put_groups("0::/a\n");
    assert_empty(init()); /* no mountinfo */
    put_mounts(OTHER_MOUNTS);
    assert_empty(init()); /* no mount of the controller */
    put_mounts(V2_MOUNT);
    assert_empty(init()); /* the mount point is not there */
    fake_tree_put(&tree, "/sys/fs/cgroup/a/cgroup.procs", "1\n");
    assert_empty(init()); /* no group has the controller */
    put_groups("5:cpu:/a\n");
    assert_empty(init()); /* no line for memory */
}

static void garbage_is_no_limit_and_no_crash(void **state)
{
    (void)state;
    put_groups(":::\n\n4:memory\n4\n0:\n0::relative\n\x01\xff:\n0::/a\n");
    put_mounts("\n-\n - \n - cgroup2\n1 2 3 - cgroup2 x y\n1 2 3 / - cgroup2 x y\n"
               "1 2 3 rel rel - cgroup2 x y\n" V2_MOUNT);
    fake_tree_put_group(&tree, 2, "/sys/fs/cgroup/a", "-5\n", "what\n", "x", "y");
    fake_tree_put(&tree, "/sys/fs/cgroup/a/memory.high", "99999999999999999999999\n");
    fake_tree_put(&tree, "/sys/fs/cgroup/a/memory.events", "oom_killer 4\noom_kill x\n");
    fake_tree_put(&tree, "/sys/fs/cgroup/a/memory.pressure", "some total\n");
    assert_int_equal(init(), 0);
    uint64_t number = 42;
    pl_cgroup_pressure pressure;
    assert_int_equal(pl_cgroup_limit_bytes(&cgroup), 0);
    assert_int_equal(pl_cgroup_usage_bytes(&cgroup, &number), PL_EFORMAT);
    assert_int_equal(pl_cgroup_oom_kills(&cgroup, &number), PL_EFORMAT);
    assert_int_equal(pl_cgroup_pressure_read(&cgroup, &pressure), PL_EFORMAT);
    assert_int_equal(number, 42);
}

/* The tail of the long line, taken for a line, would be a mount. */
static void a_mountinfo_line_that_is_too_long_is_passed_over(void **state)
{
    (void)state;
    char *text = malloc(20000);
    assert_non_null(text);
    memset(text, 'x', 19000);
    strcpy(text + 19000, " 24 0:30 / /mnt/wrong rw - cgroup2 x y\n" V2_MOUNT);
    put_mounts(text);
    free(text);
    fake_tree_put_group(&tree, 2, "/mnt/wrong/a", "1000\n", "100\n", "0", "0");
    put_groups("0::/a"); /* and a last line without its newline */
    fake_tree_put_group(&tree, 2, "/sys/fs/cgroup/a", "5000\n", "100\n", "0", "0");
    assert_int_equal(init(), 0);
    assert_int_equal(pl_cgroup_limit_bytes(&cgroup), 5000);
}

static void a_limit_of_zero_is_a_limit(void **state)
{
    (void)state;
    put_mounts(V2_MOUNT);
    put_groups("0::/a\n");
    fake_tree_put_group(&tree, 2, "/sys/fs/cgroup/a", "0\n", "100\n", "0", "0");
    assert_int_equal(init(), 0);
    assert_int_equal(pl_cgroup_limit_bytes(&cgroup), 1);
}

static void usage_never_goes_below_zero(void **state)
{
    (void)state;
    put_mounts(V2_MOUNT);
    put_groups("0::/a\n");
    fake_tree_put_group(&tree, 2, "/sys/fs/cgroup/a", "5000\n", "100\n", "200", "0");
    assert_int_equal(init(), 0);
    assert_int_equal(usage_bytes(), 0);
}

static void counters_are_read_anew_each_time(void **state)
{
    (void)state;
    put_mounts(V2_MOUNT);
    put_groups("0::/a\n");
    fake_tree_put_group(&tree, 2, "/sys/fs/cgroup/a", "5000\n", "100\n", "0", "0");
    fake_tree_put(&tree, "/sys/fs/cgroup/a/memory.events", "oom_kill 0\n");
    assert_int_equal(init(), 0);
    assert_int_equal(usage_bytes(), 100);
    assert_int_equal(oom_kills(), 0);
    fake_tree_put(&tree, "/sys/fs/cgroup/a/memory.current", "4000\n");
    fake_tree_put(&tree, "/sys/fs/cgroup/a/memory.events", "oom_kill 1\n");
    assert_int_equal(usage_bytes(), 4000);
    assert_int_equal(oom_kills(), 1);
}

static void limits_are_followed_also_where_there_was_none(void **state)
{
    (void)state;
    put_mounts(V2_MOUNT);
    put_groups("0::/a/b\n");
    fake_tree_put_group(&tree, 2, "/sys/fs/cgroup/a/b", "max\n", "100\n", "0", "0");
    fake_tree_put_group(&tree, 2, "/sys/fs/cgroup/a", "5000\n", "1000\n", "0", "0");
    assert_int_equal(init(), 0);
    assert_int_equal(cgroup.tightest, 1);
    assert_false(pl_cgroup_refresh(&cgroup, &change));

    fake_tree_put(&tree, "/sys/fs/cgroup/a/memory.max", "4000\n");
    assert_true(pl_cgroup_refresh(&cgroup, &change));
    assert_int_equal(pl_cgroup_limit_bytes(&cgroup), 4000);
    assert_false(pl_cgroup_refresh(&cgroup, &change));

    fake_tree_put(&tree, "/sys/fs/cgroup/a/b/memory.max", "300\n");
    assert_true(pl_cgroup_refresh(&cgroup, &change));
    assert_int_equal(cgroup.tightest, 0);
    assert_int_equal(pl_cgroup_limit_bytes(&cgroup), 300);

    fake_tree_put(&tree, "/sys/fs/cgroup/a/b/memory.max", "max\n");
    fake_tree_put(&tree, "/sys/fs/cgroup/a/memory.max", "max\n");
    assert_true(pl_cgroup_refresh(&cgroup, &change));
    assert_int_equal(cgroup.tightest, -1);
    assert_int_equal(pl_cgroup_limit_bytes(&cgroup), 0);
}

static void what_was_changed_is_told_not_what_limits_now(void **state)
{
    (void)state;
    put_mounts(V2_MOUNT);
    put_groups("0::/a/b\n");
    fake_tree_put_group(&tree, 2, "/sys/fs/cgroup/a/b", "300\n", "100\n", "0", "0");
    fake_tree_put_group(&tree, 2, "/sys/fs/cgroup/a", "500\n", "100\n", "0", "0");
    fake_tree_put(&tree, "/sys/fs/cgroup/a/b/memory.high", "max\n");
    assert_int_equal(init(), 0);

    fake_tree_put(&tree, "/sys/fs/cgroup/a/b/memory.max",
                  "900\n"); /* the parent's 500 limits now */
    assert_true(pl_cgroup_refresh(&cgroup, &change));
    assert_int_equal(change.level, 0);
    assert_string_equal(change.file, "memory.max");
    assert_int_equal(change.limit_bytes, 900);

    fake_tree_put(&tree, "/sys/fs/cgroup/a/b/memory.high", "200\n");
    assert_true(pl_cgroup_refresh(&cgroup, &change));
    assert_string_equal(change.file, "memory.high");
    assert_int_equal(change.limit_bytes, 200);

    fake_tree_put(&tree, "/sys/fs/cgroup/a/b/memory.high", "max\n"); /* memory.max limits now */
    assert_true(pl_cgroup_refresh(&cgroup, &change));
    assert_string_equal(change.file, "memory.high");
    assert_int_equal(change.limit_bytes, 0);

    fake_tree_put(&tree, "/sys/fs/cgroup/a/memory.max", "400\n"); /* both: the one that limits */
    fake_tree_put(&tree, "/sys/fs/cgroup/a/b/memory.max", "800\n");
    assert_true(pl_cgroup_refresh(&cgroup, &change));
    assert_int_equal(change.level, 1);
    assert_int_equal(change.limit_bytes, 400);
}

static void the_processes_of_a_group_are_read_however_many(void **state)
{
    (void)state;
    enum { MANY = 3000 };
    static char text[MANY * 8];
    static pid_t pids[MANY + 1];
    char *end = text;
    for (int i = 0; i < MANY; i++)
        end += sprintf(end, "%d\n", i % 10 == 0 ? 0 : 100000 + i); /* 0: of another namespace */
    put_mounts(V2_MOUNT);
    put_groups("0::/a\n");
    fake_tree_put_group(&tree, 2, "/sys/fs/cgroup/a", "max\n", "100\n", "0", "0");
    fake_tree_put(&tree, "/sys/fs/cgroup/a/cgroup.procs", text);
    assert_int_equal(init(), 0);
    assert_int_equal(pl_cgroup_pids(&cgroup, pids, MANY + 1), MANY / 10 * 9);
    assert_int_equal(pids[0], 100001);
    assert_int_equal(pids[MANY / 10 * 9 - 1], 100000 + MANY - 1);
    assert_int_equal(pl_cgroup_pids(&cgroup, pids, 5), 5);
}

static void throttles_are_those_of_levels_with_memory_high(void **state)
{
    (void)state;
    put_mounts(V2_MOUNT);
    put_groups("0::/a/b\n");
    fake_tree_put_group(&tree, 2, "/sys/fs/cgroup/a/b", "max\n", "100\n", "0", "0");
    fake_tree_put_group(&tree, 2, "/sys/fs/cgroup/a", "max\n", "1000\n", "0", "0");
    fake_tree_put(&tree, "/sys/fs/cgroup/a/b/memory.events", "low 0\nhigh 7\nmax 0\n");
    fake_tree_put(&tree, "/sys/fs/cgroup/a/memory.events", "low 0\nhigh 31\nmax 0\n");
    fake_tree_put(&tree, "/sys/fs/cgroup/a/b/memory.high", "max\n");
    fake_tree_put(&tree, "/sys/fs/cgroup/a/memory.high", "max\n");
    assert_int_equal(init(), 0);
    assert_int_equal(pl_cgroup_throttles(&cgroup), 0);
    fake_tree_put(&tree, "/sys/fs/cgroup/a/memory.high", "900\n");
    assert_true(pl_cgroup_refresh(&cgroup, &change));
    assert_int_equal(pl_cgroup_throttles(&cgroup), 31);
}

static void a_group_that_is_made_anew_is_told_from_the_one_before(void **state)
{
    (void)state;
    uint64_t first = 0, again = 0, second = 0;
    char path[PATH_MAX];
    fake_tree_put(&tree, "/group/memory.max", "max\n");
    snprintf(path, sizeof path, "%s/group", tree.root);
    assert_int_equal(pl_cgroup_id_at(path, &first), 0);
    assert_int_equal(pl_cgroup_id_at(path, &again), 0);
    assert_int_equal(first, again);
    fake_tree_put(&tree, "/other/memory.max", "max\n");
    snprintf(path, sizeof path, "%s/other", tree.root);
    assert_int_equal(pl_cgroup_id_at(path, &second), 0);
    assert_int_not_equal(first, second);
    snprintf(path, sizeof path, "%s/gone", tree.root);
    assert_int_equal(pl_cgroup_id_at(path, &second), -ENOENT);
}

static void deep_trees_keep_the_innermost_limits(void **state)
{
    (void)state;
    char path[512] = "/sys/fs/cgroup", groups[512];
    put_mounts(V2_MOUNT);
    for (int i = 0; i < 50; i++) {
        strcat(path, "/d");
        fake_tree_put_group(&tree, 2, path, i == 49 ? "4000\n" : "5000\n", "1\n", "0", "0");
    }
    snprintf(groups, sizeof groups, "0::%s\n", path + strlen("/sys/fs/cgroup"));
    put_groups(groups);
    assert_int_equal(init(), 0);
    assert_int_equal(cgroup.n_levels, PL_CGROUP_LEVELS);
    assert_int_equal(pl_cgroup_limit_bytes(&cgroup), 4000);
}

static void pressure_is_the_groups_on_v2_and_the_machines_otherwise(void **state)
{
    (void)state;
    pl_cgroup_pressure pressure;
    put_mounts(V2_MOUNT);
    put_groups("0::/a\n");
    fake_tree_put_group(&tree, 2, "/sys/fs/cgroup/a", "5000\n", "100\n", "0", "0");
    assert_int_equal(init(), 0);
    assert_int_equal(pl_cgroup_pressure_read(&cgroup, &pressure), -ENOENT);
    pl_cgroup_done(&cgroup);

    fake_tree_put(&tree, "/proc/pressure/memory",
                  "some avg10=1.00 avg60=0.00 avg300=0.00 total=120\n"
                  "full avg10=0.00 avg60=0.00 avg300=0.00 total=45\n");
    assert_int_equal(init(), 0);
    assert_int_equal(pl_cgroup_pressure_read(&cgroup, &pressure), 0);
    assert_int_equal(pressure.some_us, 120);
    assert_int_equal(pressure.full_us, 45);
    pl_cgroup_done(&cgroup);

    fake_tree_put(&tree, "/sys/fs/cgroup/a/memory.pressure",
                  "some avg10=0.00 total=7\nfull avg10=0.00 total=6\n");
    assert_int_equal(init(), 0);
    assert_int_equal(pl_cgroup_pressure_read(&cgroup, &pressure), 0);
    assert_int_equal(pressure.some_us, 7);
}

static void kills_can_be_read_by_the_path_alone(void **state)
{
    (void)state;
    char path[PATH_MAX];
    uint64_t n = 0;
    fake_tree_put(&tree, "/one/memory.oom_control", "under_oom 0\noom_kill 3\n");
    fake_tree_put(&tree, "/two/memory.events", "oom 1\noom_kill 4\n");
    snprintf(path, sizeof path, "%s/one", tree.root);
    assert_int_equal(pl_cgroup_oom_kills_at(path, &n), 0);
    assert_int_equal(n, 3);
    snprintf(path, sizeof path, "%s/two", tree.root);
    assert_int_equal(pl_cgroup_oom_kills_at(path, &n), 0);
    assert_int_equal(n, 4);
    assert_int_equal(pl_cgroup_oom_kills_at(tree.root, &n), -ENOENT);
}

/* Of a group that a record names, or below a root that the doctor looks at. */
static void pipes_in_the_place_of_files_are_not_waited_for(void **state)
{
    (void)state;
    static const char *const names[] = {"/group/memory.oom_control", "/group/memory.events",
                                        "/proc/self/cgroup", "/proc/self/mountinfo"};
    char path[PATH_MAX];
    uint64_t n = 0;
    for (size_t i = 0; i < PL_COUNT_OF(names); i++) {
        fake_tree_put(&tree, names[i], "");
        snprintf(path, sizeof path, "%s%s", tree.root, names[i]);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(mkfifo(path, 0600), 0);
    }
    snprintf(path, sizeof path, "%s/group", tree.root);
    alarm(60); /* ends a test that hangs, and judges nothing */
    assert_true(pl_cgroup_oom_kills_at(path, &n) < 0);
    assert_true(init() < 0);
    alarm(0);
    assert_int_equal(n, 0);
}

static int n_open_descriptors(void)
{
    int n = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    while (readdir(folder))
        n++;
    closedir(folder);
    return n;
}

static void done_closes_what_init_opened(void **state)
{
    (void)state;
    put_mounts(V2_MOUNT);
    put_groups("0::/a/b\n");
    fake_tree_put_group(&tree, 2, "/sys/fs/cgroup/a/b", "5000\n", "100\n", "0", "0");
    fake_tree_put_group(&tree, 2, "/sys/fs/cgroup/a", "5000\n", "100\n", "0", "0");
    fake_tree_put(&tree, "/sys/fs/cgroup/a/b/memory.events", "oom_kill 0\n");
    fake_tree_put(&tree, "/sys/fs/cgroup/a/b/memory.pressure", "some total=7\n");
    int before = n_open_descriptors();
    assert_int_equal(init(), 0);
    assert_int_equal(n_open_descriptors(), before + 9);
    pl_cgroup_done(&cgroup);
    assert_int_equal(n_open_descriptors(), before);
    pl_cgroup_done(&cgroup);
    assert_int_equal(n_open_descriptors(), before);
}

static void the_machines_memory_and_kills_are_read(void **state)
{
    (void)state;
    pl_machine_memory memory;
    uint64_t n = 42;
    assert_int_equal(pl_machine_memory_read(tree.root, &memory), -ENOENT);
    assert_int_equal(pl_machine_oom_kills(tree.root, &n), -ENOENT);
    fake_tree_put(&tree, "/proc/meminfo", "MemTotal:  16 kB\nMemFree: 2 kB\nMemAvailable: 8 kB\n");
    fake_tree_put(&tree, "/proc/vmstat", "nr_free_pages 1\noom_kill_x 3\noom_kill 9\n");
    assert_int_equal(pl_machine_memory_read(tree.root, &memory), 0);
    assert_int_equal(memory.total_bytes, 16 * 1024);
    assert_int_equal(memory.available_bytes, 8 * 1024);
    assert_int_equal(pl_machine_oom_kills(tree.root, &n), 0);
    assert_int_equal(n, 9);
    fake_tree_put(&tree, "/proc/meminfo", "MemTotal:  16 kB\nMemFree: 2 kB\n");
    assert_int_equal(pl_machine_memory_read(tree.root, &memory), PL_EFORMAT);
    assert_int_equal(pl_machine_memory_read("", &memory), 0);
    assert_in_range(memory.available_bytes, 1, memory.total_bytes);
    assert_int_equal(pl_machine_oom_kills("", &n), 0);
}

/* A real group below the caller's own, or skip() with the reason. */
static void make_real_group(char path[PATH_MAX], const char *limit)
{
    pl_cgroup own;
    int r = pl_cgroup_init(&own, "", 0);
    int version = own.version;
    snprintf(path, PATH_MAX, "%s/plimsoll-test-%d", own.path, (int)getpid());
    pl_cgroup_done(&own);
    char file[PATH_MAX + 32];
    snprintf(file, sizeof file, "%s/%s", path,
             version == 1 ? "memory.limit_in_bytes" : "memory.max");
    if (r < 0 || mkdir(path, 0755) != 0) {
        print_message("skipped: no memory cgroup can be made here\n");
        skip();
    }
    FILE *f = fopen(file, "w");
    if (!f || fputs(limit, f) < 0 || fclose(f) != 0) {
        rmdir(path);
        print_message("skipped: '%s' cannot be set here\n", file);
        skip();
    }
}

static void join_group(const char *path)
{
    char file[PATH_MAX + 32];
    snprintf(file, sizeof file, "%s/cgroup.procs", path);
    FILE *f = fopen(file, "w");
    if (!f || fprintf(f, "%d\n", (int)getpid()) < 0 || fclose(f) != 0)
        _exit(90);
}

/* MAP_POPULATE: the kernel fills it. A store of ours fills a sanitizer's shadow memory as well. */
static char *map(size_t bytes, int flags)
{
    char *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    if (memory == MAP_FAILED)
        _exit(91);
    return memory;
}

/* Fills the page cache; a folder on disk, because files of a tmpfs are memory. */
static void write_file(size_t bytes)
{
    static char block[1 << 20];
    FILE *file = fopen("/var/tmp/plimsoll-test-cache", "w");
    if (!file || remove("/var/tmp/plimsoll-test-cache") != 0)
        _exit(92);
    for (size_t done = 0; done < bytes; done += sizeof block)
        if (fwrite(block, sizeof block, 1, file) != 1)
            _exit(93);
    fflush(file); /* left open: closing it would free the cache */
}

/* The kernel lets go of a group a moment after its last process was waited for. */
static void remove_group(const char *path)
{
    for (int i = 0; i < 1000 && rmdir(path) != 0 && errno == EBUSY; i++)
        usleep(10000);
}

/* In the group: its limit is seen, touched memory is usage, cached files are not. */
static int look_from_inside(const char *group)
{
    pl_cgroup inside;
    uint64_t before, after;
    join_group(group);
    if (pl_cgroup_init(&inside, "", 0) < 0 || strcmp(inside.path, group) != 0)
        return 1;
    if (pl_cgroup_limit_bytes(&inside) != 256 << 20)
        return 2;
    if (inside.tightest != 0 || pl_cgroup_usage_bytes(&inside, &before) < 0)
        return 3;
    map(64 << 20, MAP_POPULATE);
    if (pl_cgroup_usage_bytes(&inside, &after) < 0)
        return 4;
    if (after < before + (60 << 20) || after > before + (80 << 20))
        return 5;
    write_file(64 << 20);
    if (pl_cgroup_usage_bytes(&inside, &before) < 0 || before > after + (16 << 20))
        return 6;
    pl_cgroup_done(&inside);
    return 0;
}

static void a_real_group_is_found_and_measured_from_inside(void **state)
{
    (void)state;
    SKIP_UNDER_QEMU("it maps nothing beforehand, and counts in the group itself");
    char group[PATH_MAX];
    make_real_group(group, "268435456");
    pid_t pid = fork();
    if (pid == 0)
        _exit(look_from_inside(group));
    int status;
    waitpid(pid, &status, 0);
    remove_group(group);
    assert_int_equal(status, 0);
}

static void a_real_oom_kill_is_counted(void **state)
{
    (void)state;
    char group[PATH_MAX];
    make_real_group(group, "33554432");
    pid_t pid = fork();
    if (pid == 0) {
        join_group(group);
        memset(map(512 << 20, 0), 1, 512 << 20);
        _exit(0);
    }
    int status;
    uint64_t n_kills = 0;
    waitpid(pid, &status, 0);
    int r = pl_cgroup_oom_kills_at(group, &n_kills);
    remove_group(group);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
    assert_int_equal(r, 0);
    assert_int_equal(n_kills, 1);
}

#define TREE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TREE_TEST(v2_takes_the_smallest_of_max_and_high_over_all_ancestors),
        TREE_TEST(the_tightest_is_who_has_least_left_not_the_least_limit),
        TREE_TEST(v1_reads_the_hierarchical_file_cache_and_its_own_kills),
        TREE_TEST(with_no_limit_anywhere_usage_is_the_own_groups),
        TREE_TEST(hybrid_uses_v1_when_v1_has_the_memory_controller),
        TREE_TEST(hybrid_uses_v2_when_v1_has_other_controllers_only),
        TREE_TEST(a_container_that_mounts_its_own_group_finds_it_at_the_mount_point),
        TREE_TEST(a_mount_root_that_is_only_a_prefix_of_the_name_is_not_an_ancestor),
        TREE_TEST(of_two_mounts_the_one_that_shows_more_ancestors_is_taken),
        TREE_TEST(a_group_that_the_container_does_not_show_falls_back_to_the_mount_point),
        TREE_TEST(escapes_in_mount_points_and_colons_in_groups_are_understood),
        TREE_TEST(a_group_without_the_controller_gives_way_to_its_ancestor),
        TREE_TEST(where_there_is_none_the_result_is_empty_but_usable),
        TREE_TEST(garbage_is_no_limit_and_no_crash),
        TREE_TEST(a_mountinfo_line_that_is_too_long_is_passed_over),
        TREE_TEST(a_limit_of_zero_is_a_limit),
        TREE_TEST(usage_never_goes_below_zero),
        TREE_TEST(counters_are_read_anew_each_time),
        TREE_TEST(limits_are_followed_also_where_there_was_none),
        TREE_TEST(what_was_changed_is_told_not_what_limits_now),
        TREE_TEST(the_processes_of_a_group_are_read_however_many),
        TREE_TEST(throttles_are_those_of_levels_with_memory_high),
        TREE_TEST(a_group_that_is_made_anew_is_told_from_the_one_before),
        TREE_TEST(deep_trees_keep_the_innermost_limits),
        TREE_TEST(pressure_is_the_groups_on_v2_and_the_machines_otherwise),
        TREE_TEST(kills_can_be_read_by_the_path_alone),
        TREE_TEST(pipes_in_the_place_of_files_are_not_waited_for),
        TREE_TEST(done_closes_what_init_opened),
        TREE_TEST(the_machines_memory_and_kills_are_read),
        cmocka_unit_test(a_real_group_is_found_and_measured_from_inside),
        cmocka_unit_test(a_real_oom_kill_is_counted),
    };
    return cmocka_run_group_tests_name("cgroup", tests, NULL, NULL);
}
