/* SPDX-License-Identifier: Apache-2.0 */
/* Usable processors, on trees made for the test. The affinity is the test's own: a tree can only
 * take from it, so quotas are given in whole and broken parts of one processor and of all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sched.h>

#include "fake_tree.h"
#include "sys/cpu.h"

#define V2_MOUNT "35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n"
#define V1_MOUNT                                                                                   \
    "34 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"                   \
    "35 31 0:33 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n"

static fake_tree tree;

static int set_up(void **state)
{
    (void)state;
    fake_tree_init(&tree);
    return unsetenv("CPU_LIMIT");
}

static int tear_down(void **state)
{
    (void)state;
    fake_tree_done(&tree);
    return 0;
}

static unsigned n_allowed(void)
{
    cpu_set_t set;
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    return (unsigned)CPU_COUNT(&set);
}

static unsigned n_usable(void)
{
    pl_cpu cpu = {0};
    assert_int_equal(pl_cpu_read(tree.root, &cpu), 0);
    assert_int_equal(cpu.n_allowed, n_allowed());
    return cpu.n_usable;
}

/* Every number below is one that this machine could also give without a limit, if it had so many
 * processors: skipped where the answer would prove nothing. */
static void need_two_processors(void)
{
    if (n_allowed() < 2) {
        print_message("with one processor there is nothing to limit\n");
        skip();
    }
}

static void put_v2(const char *groups)
{
    fake_tree_put(&tree, "/proc/self/mountinfo", V2_MOUNT);
    fake_tree_put(&tree, "/proc/self/cgroup", groups);
    fake_tree_put(&tree, "/sys/fs/cgroup/a/b/cgroup.procs", "");
}

static void put_v1(const char *quota, const char *period)
{
    fake_tree_put(&tree, "/proc/self/mountinfo", V1_MOUNT);
    fake_tree_put(&tree, "/proc/self/cgroup", "4:memory:/m\n3:cpu,cpuacct:/a/b\n");
    fake_tree_put(&tree, "/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us", quota);
    fake_tree_put(&tree, "/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us", period);
}

static void without_a_limit_all_that_are_allowed_are_usable(void **state)
{
    (void)state;
    assert_int_equal(n_usable(), n_allowed()); /* no cgroup can be seen at all */
    put_v2("0::/a/b\n");
    assert_int_equal(n_usable(), n_allowed()); /* the controller is not enabled */
    fake_tree_put(&tree, "/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    assert_int_equal(n_usable(), n_allowed());
    put_v1("-1\n", "100000\n");
    assert_int_equal(n_usable(), n_allowed());
}

static void a_quota_is_rounded_up_and_is_never_less_than_one(void **state)
{
    (void)state;
    need_two_processors();
    put_v2("0::/a/b\n");
    static const struct {
        const char *max;
        unsigned n;
    } cases[] = {
        {"100000 100000\n", 1}, {"100001 100000\n", 2}, {"1000 100000\n", 1}, {"0 100000\n", 1},
        {"1 1000000\n", 1},     {"150000 100000\n", 2}, {"50000 50000\n", 1},
    };
    for (size_t i = 0; i < PL_COUNT_OF(cases); i++) {
        fake_tree_put(&tree, "/sys/fs/cgroup/a/b/cpu.max", cases[i].max);
        assert_int_equal(n_usable(), cases[i].n);
    }
}

static void every_ancestor_s_quota_holds(void **state)
{
    (void)state;
    need_two_processors();
    put_v2("0::/a/b\n");
    fake_tree_put(&tree, "/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    static const char *const places[] = {"/sys/fs/cgroup/a/cpu.max", "/sys/fs/cgroup/cpu.max"};
    for (size_t i = 0; i < PL_COUNT_OF(places); i++) {
        fake_tree_put(&tree, places[i], "80000 100000\n");
        assert_int_equal(n_usable(), 1);
        fake_tree_put(&tree, places[i], "max 100000\n");
        assert_int_equal(n_usable(), n_allowed());
    }
}

static void v1_has_its_quota_and_period_in_the_hierarchy_of_the_cpu_controller(void **state)
{
    (void)state;
    need_two_processors();
    put_v1("50000\n", "50000\n");
    assert_int_equal(n_usable(), 1);
    put_v1("51000\n", "50000\n");
    assert_int_equal(n_usable(), 2);
    put_v1("-1\n", "50000\n");
    fake_tree_put(&tree, "/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "1000\n");
    fake_tree_put(&tree, "/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
    assert_int_equal(n_usable(), 1);
}

static void more_than_is_allowed_is_not_usable(void **state)
{
    (void)state;
    put_v2("0::/a/b\n");
    fake_tree_put(&tree, "/sys/fs/cgroup/a/b/cpu.max", "900000000 100000\n");
    setenv("CPU_LIMIT", "9000.0", 1);
    assert_int_equal(n_usable(), n_allowed());
}

static void cpu_limit_counts_like_a_quota(void **state)
{
    (void)state;
    need_two_processors();
    static const struct {
        const char *text;
        unsigned n;
    } cases[] = {{"1", 1}, {"1.0", 1}, {"0.5", 1}, {".5", 0}, {"1.001", 2}, {"1.5", 2}};
    for (size_t i = 0; i < PL_COUNT_OF(cases); i++) {
        setenv("CPU_LIMIT", cases[i].text, 1);
        assert_int_equal(n_usable(), cases[i].n ? cases[i].n : n_allowed());
    }
}

static void what_is_no_number_sets_no_limit(void **state)
{
    (void)state;
    need_two_processors();
    static const char *const texts[] = {"",
                                        "0",
                                        "0.0",
                                        "1x",
                                        "1.0.0",
                                        "-1",
                                        "max",
                                        "1e3",
                                        "500m",
                                        "nan",
                                        "1 ",
                                        " 1",
                                        "99999999999999999999"};
    for (size_t i = 0; i < PL_COUNT_OF(texts); i++) {
        setenv("CPU_LIMIT", texts[i], 1);
        assert_int_equal(n_usable(), n_allowed());
    }
    unsetenv("CPU_LIMIT");
    put_v2("0::/a/b\n");
    static const char *const files[] = {"",           "100000\n", "100000 0\n",
                                        "x 100000\n", "1000x",    "18446744073709551615 1\n"};
    for (size_t i = 0; i < PL_COUNT_OF(files); i++) {
        fake_tree_put(&tree, "/sys/fs/cgroup/a/b/cpu.max", files[i]);
        assert_int_equal(n_usable(), n_allowed());
    }
}

static void the_real_system_has_at_least_one(void **state)
{
    (void)state;
    pl_cpu cpu = {0};
    assert_int_equal(pl_cpu_read("", &cpu), 0);
    assert_int_equal(cpu.n_allowed, n_allowed());
    assert_in_range(cpu.n_usable, 1, cpu.n_allowed);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_a_limit_all_that_are_allowed_are_usable),
        TEST(a_quota_is_rounded_up_and_is_never_less_than_one),
        TEST(every_ancestor_s_quota_holds),
        TEST(v1_has_its_quota_and_period_in_the_hierarchy_of_the_cpu_controller),
        TEST(more_than_is_allowed_is_not_usable),
        TEST(cpu_limit_counts_like_a_quota),
        TEST(what_is_no_number_sets_no_limit),
        TEST(the_real_system_has_at_least_one),
    };
    return cmocka_run_group_tests_name("cpu", tests, NULL, NULL);
}
