/* SPDX-License-Identifier: Apache-2.0 */
/* The line is where the smallest true limit puts it, and the budget says which one that was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "../emulated.h"
#include "base/base.h"
#include "fake_tree.h"
#include "plimsoll/budget.h"
#include "sys/cgroup.h"

static fake_tree tree;

/* A machine with 64 GiB, of which 40 GiB can be had, and a v2 group without a limit. */
static int set_up(void **state)
{
    (void)state;
    unsetenv("MEM_LIMIT");
    fake_tree_init(&tree);
    fake_tree_put(&tree, "/proc/meminfo", "MemTotal: 67108864 kB\nMemAvailable: 41943040 kB\n");
    fake_tree_put(&tree, "/proc/self/mountinfo",
                  "35 24 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    fake_tree_put(&tree, "/proc/self/cgroup", "0::/a/b\n");
    fake_tree_put_group(&tree, 2, "/sys/fs/cgroup/a/b", "max\n", "1048576\n", "0", "0");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unsetenv("MEM_LIMIT");
    fake_tree_done(&tree);
    return 0;
}

/* 1 GiB for the ancestor, 124 MiB of it used, 100 MiB of those being file cache. */
static void limit_ancestor_to_1_gib(void)
{
    fake_tree_put_group(&tree, 2, "/sys/fs/cgroup/a", "1073741824\n", "130023424\n", "52428800",
                        "52428800");
}

static pl_budget discover(const char *request, uint64_t reserve_bytes)
{
    pl_budget_options options = {
        .root = tree.root, .request_text = request, .reserve_bytes = reserve_bytes};
    pl_budget budget;
    pl_error error = {0};
    if (pl_budget_discover(&options, &budget, &error) < 0)
        fail_msg("%s", error.message);
    return budget;
}

static int discover_error(const char *request, uint64_t reserve_bytes, pl_error *reterr)
{
    pl_budget_options options = {
        .root = tree.root, .request_text = request, .reserve_bytes = reserve_bytes};
    pl_budget budget = {.line_bytes = 42};
    int r = pl_budget_discover(&options, &budget, reterr);
    assert_int_equal(budget.line_bytes, 42);
    return r;
}

static const pl_budget_source *find_source(const pl_budget *budget, const char *name)
{
    for (int i = 0; i < budget->n_sources; i++)
        if (strcmp(budget->sources[i].name, name) == 0)
            return &budget->sources[i];
    fail_msg("no source '%s'", name);
    return NULL;
}

static const char *decisive(const pl_budget *budget)
{
    return budget->sources[budget->decisive].name;
}

static void without_limits_it_is_available_memory_less_the_reserve(void **state)
{
    (void)state;
    pl_budget budget = discover(NULL, 0);
    assert_int_equal(budget.true_limit_bytes, 40 * PL_GIB);
    assert_int_equal(budget.reserve_bytes, 80 * PL_MIB);
    assert_int_equal(budget.line_bytes, 40 * PL_GIB - 80 * PL_MIB);
    assert_string_equal(decisive(&budget), "MemAvailable");
    assert_int_equal(find_source(&budget, "MemAvailable")->limit_bytes, 64 * PL_GIB);
    assert_false(find_source(&budget, "cgroup v2")->present);
    assert_false(find_source(&budget, "RLIMIT_AS")->present);
    assert_false(budget.cut);
}

static void an_ancestors_cgroup_limit_counts_less_what_others_use_of_it(void **state)
{
    (void)state;
    limit_ancestor_to_1_gib();
    pl_budget budget = discover(NULL, 0);
    const pl_budget_source *source = &budget.sources[budget.decisive];
    assert_string_equal(source->name, "cgroup v2");
    assert_non_null(strstr(source->detail, "/sys/fs/cgroup/a/memory.max"));
    assert_int_equal(source->limit_bytes, PL_GIB);
    assert_int_equal(source->bytes, 1000 * PL_MIB);
    assert_int_equal(budget.tightest, budget.decisive);
    assert_int_equal(budget.line_bytes, 920 * PL_MIB);
}

static void the_default_reserve_is_an_eighth_of_a_small_budget(void **state)
{
    (void)state;
    limit_ancestor_to_1_gib();
    assert_int_equal(discover(NULL, 0).reserve_bytes, 80 * PL_MIB);
    pl_budget budget = discover("160M", 0);
    assert_int_equal(budget.reserve_bytes, 20 * PL_MIB);
    assert_int_equal(budget.line_bytes, 160 * PL_MIB);
    fake_tree_put(&tree, "/proc/meminfo", "MemTotal: 67108864 kB\nMemAvailable: 65536 kB\n");
    budget = discover(NULL, 0);
    assert_int_equal(budget.reserve_bytes, 8 * PL_MIB);
    assert_int_equal(budget.line_bytes, 56 * PL_MIB);
}

static void a_reserve_that_was_asked_for_is_kept(void **state)
{
    (void)state;
    limit_ancestor_to_1_gib();
    pl_budget budget = discover("2G", 300 * PL_MIB);
    assert_int_equal(budget.reserve_bytes, 300 * PL_MIB);
    assert_int_equal(budget.line_bytes, 700 * PL_MIB);
    assert_int_equal(discover("100M", PL_MIB).reserve_bytes, PL_MIB);
}

static void a_request_that_fits_decides(void **state)
{
    (void)state;
    pl_budget budget = discover("2G", 0);
    assert_int_equal(budget.line_bytes, 2 * PL_GIB);
    assert_int_equal(budget.true_limit_bytes, 40 * PL_GIB);
    assert_string_equal(decisive(&budget), "request");
    assert_string_equal(budget.sources[budget.decisive].detail, "--budget 2G");
    assert_string_equal(budget.sources[budget.tightest].name, "MemAvailable");
    assert_false(budget.cut);
}

static void a_request_is_cut_at_the_true_limit_less_the_reserve(void **state)
{
    (void)state;
    limit_ancestor_to_1_gib();
    pl_budget at = discover("920M", 0);
    assert_false(at.cut);
    assert_string_equal(decisive(&at), "request");
    pl_budget over = discover("921M", 0);
    assert_true(over.cut);
    assert_int_equal(over.line_bytes, 920 * PL_MIB);
    assert_string_equal(decisive(&over), "cgroup v2");
}

static void a_share_is_of_what_is_really_available(void **state)
{
    (void)state;
    limit_ancestor_to_1_gib();
    assert_int_equal(discover("50%", 0).line_bytes, 500 * PL_MIB);
    pl_budget all = discover("100%", 0);
    assert_int_equal(all.line_bytes, 920 * PL_MIB);
    assert_true(all.cut);
}

static void mem_limit_counts_as_bytes_or_size(void **state)
{
    (void)state;
    setenv("MEM_LIMIT", "2147483648", 1);
    pl_budget budget = discover(NULL, 0);
    assert_int_equal(budget.true_limit_bytes, 2 * PL_GIB);
    assert_string_equal(decisive(&budget), "MEM_LIMIT");
    setenv("MEM_LIMIT", "1G", 1);
    assert_int_equal(discover(NULL, 0).true_limit_bytes, PL_GIB);
}

static void a_mem_limit_that_is_no_size_is_shown_and_ignored(void **state)
{
    (void)state;
    static const char *const texts[] = {"unlimited", "0", "-1", "80%"};
    for (size_t i = 0; i < PL_COUNT_OF(texts); i++) {
        setenv("MEM_LIMIT", texts[i], 1);
        pl_budget budget = discover(NULL, 0);
        assert_string_equal(decisive(&budget), "MemAvailable");
        assert_false(find_source(&budget, "MEM_LIMIT")->present);
        assert_non_null(strstr(find_source(&budget, "MEM_LIMIT")->detail, texts[i]));
    }
}

static void assert_rlimit_counts(int resource, const char *name)
{
    struct rlimit old;
    assert_int_equal(getrlimit(resource, &old), 0);
    struct rlimit low = {.rlim_cur = 30 * PL_GIB, .rlim_max = old.rlim_max};
    if (setrlimit(resource, &low) != 0) {
        print_message("skipped: the hard limit of %s is below 30 GiB\n", name);
        skip();
    }
    pl_budget_options options = {.root = tree.root};
    pl_budget budget;
    int r = pl_budget_discover(&options, &budget, NULL);
    assert_int_equal(setrlimit(resource, &old), 0);
    assert_int_equal(r, 0);
    assert_string_equal(decisive(&budget), name);
    assert_int_equal(budget.true_limit_bytes, 30 * PL_GIB);
}

static void soft_rlimits_count(void **state)
{
    (void)state;
    SKIP_UNDER_QEMU("it sets no limit of memory, which would be its own");
    assert_rlimit_counts(RLIMIT_AS, "RLIMIT_AS");
    assert_rlimit_counts(RLIMIT_DATA, "RLIMIT_DATA");
}

static void too_little_memory_is_an_error_that_names_the_source(void **state)
{
    (void)state;
    pl_error error = {0};
    fake_tree_put_group(&tree, 2, "/sys/fs/cgroup/a", "134217728\n", "130000000\n", "0", "0");
    assert_int_equal(discover_error(NULL, 0, &error), PL_EBUDGET);
    assert_non_null(strstr(error.message, "cgroup v2"));
    assert_non_null(strstr(error.message, "/sys/fs/cgroup/a/memory.max"));
    assert_null(strchr(error.message, '\n'));
    assert_int_equal(discover_error("80%", 0, &error), PL_EBUDGET);
    assert_non_null(strstr(error.message, "cgroup v2"));
    fake_tree_put_group(&tree, 2, "/sys/fs/cgroup/a", "134217728\n", "134217728\n", "0", "0");
    assert_int_equal(discover_error("80%", 0, &error), PL_EBUDGET);
    assert_non_null(strstr(error.message, "cgroup v2"));
}

static void a_reserve_that_leaves_nothing_is_an_error(void **state)
{
    (void)state;
    limit_ancestor_to_1_gib();
    pl_error error = {0};
    assert_int_equal(discover_error(NULL, PL_GIB, &error), PL_EBUDGET);
    assert_non_null(strstr(error.message, "reserve of 1.0 GiB"));
}

static void a_request_below_the_least_or_no_size_is_an_error(void **state)
{
    (void)state;
    pl_error error = {0};
    assert_int_equal(discover("16M", 0).line_bytes, 16 * PL_MIB);
    assert_int_equal(discover_error("15M", 0, &error), PL_EBUDGET);
    assert_non_null(strstr(error.message, "15.0 MiB"));
    assert_int_equal(discover_error("much", 0, &error), PL_EFORMAT);
    assert_non_null(strstr(error.message, "'much'"));
}

static void where_nothing_can_be_read_only_a_request_helps(void **state)
{
    (void)state;
    pl_error error = {0};
    fake_tree_put(&tree, "/proc/meminfo", "garbage\n");
    assert_int_equal(discover_error(NULL, 0, &error), PL_EBUDGET);
    assert_non_null(strstr(error.message, "--budget"));
    assert_int_equal(discover_error("50%", 0, &error), PL_EFORMAT);
    pl_budget budget = discover("1G", 0);
    assert_int_equal(budget.line_bytes, PL_GIB);
    assert_int_equal(budget.true_limit_bytes, 0);
    assert_int_equal(budget.tightest, -1);
    assert_string_equal(decisive(&budget), "request");
}

static void a_long_path_keeps_its_tail(void **state)
{
    (void)state;
    char name[201], groups[512], folder[512];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    snprintf(groups, sizeof groups, "0::/%s/%s\n", name, name);
    snprintf(folder, sizeof folder, "/sys/fs/cgroup/%s/%s", name, name);
    fake_tree_put(&tree, "/proc/self/cgroup", groups);
    fake_tree_put_group(&tree, 2, folder, "1073741824\n", "0\n", "0", "0");
    pl_budget budget = discover(NULL, 0);
    const char *detail = budget.sources[budget.decisive].detail;
    assert_int_equal(strlen(detail), sizeof budget.sources[0].detail - 1);
    assert_memory_equal(detail, "...", 3);
    assert_string_equal(detail + strlen(detail) - strlen("nn/memory.max"), "nn/memory.max");
}

static void what_is_not_printable_is_shown_as_a_question_mark(void **state)
{
    (void)state;
    setenv("MEM_LIMIT", "a\033[1m\xff\n", 1);
    pl_budget budget = discover(NULL, 0);
    assert_non_null(strstr(find_source(&budget, "MEM_LIMIT")->detail, "MEM_LIMIT=a?[1m?? is"));
}

static void every_level_of_a_deep_tree_has_a_place(void **state)
{
    (void)state;
    char folder[512] = "/sys/fs/cgroup", groups[512];
    for (int i = 0; i < 60; i++) {
        strcat(folder, "/d");
        fake_tree_put_group(&tree, 2, folder, "1073741824\n", "0\n", "0", "0");
    }
    snprintf(groups, sizeof groups, "0::%s\n", folder + strlen("/sys/fs/cgroup"));
    fake_tree_put(&tree, "/proc/self/cgroup", groups);
    setenv("MEM_LIMIT", "4G", 1);
    pl_budget budget = discover("2G", 0);
    assert_int_equal(budget.n_sources, PL_CGROUP_LEVELS + 5);
    assert_true(budget.n_sources <= PL_BUDGET_SOURCES);
    assert_int_equal(budget.true_limit_bytes, PL_GIB);
}

static void write_number(const char *folder, const char *name, long number)
{
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    if (!file || fprintf(file, "%ld\n", number) < 0 || fclose(file) != 0)
        _exit(90);
}

/* Runs inside the group: 256 MiB less what this process itself was charged for. */
static int discover_inside(const char *group)
{
    write_number(group, "cgroup.procs", getpid());
    pl_budget budget;
    if (pl_budget_discover(NULL, &budget, NULL) < 0)
        return 1;
    const pl_budget_source *source = &budget.sources[budget.decisive];
    if (strncmp(source->detail, group, strlen(group)) != 0)
        return 2;
    if (source->limit_bytes != 256 * PL_MIB || source->bytes > source->limit_bytes)
        return 3;
    if (source->bytes < 240 * PL_MIB || budget.reserve_bytes != source->bytes / 8)
        return 4;
    return budget.line_bytes == source->bytes - budget.reserve_bytes ? 0 : 5;
}

static void a_real_cgroup_decides(void **state)
{
    (void)state;
    char group[PATH_MAX];
    pl_cgroup own;
    int r = pl_cgroup_init(&own, "", 0);
    const char *limit = own.version == 1 ? "memory.limit_in_bytes" : "memory.max";
    snprintf(group, sizeof group, "%s/plimsoll-budget-%d", own.path, (int)getpid());
    pl_cgroup_done(&own);
    if (r < 0 || mkdir(group, 0755) != 0) {
        print_message("skipped: no memory cgroup can be made here\n");
        skip();
    }
    pid_t pid = fork();
    if (pid == 0) {
        write_number(group, limit, 256 << 20);
        _exit(discover_inside(group));
    }
    int status;
    waitpid(pid, &status, 0);
    for (int i = 0; i < 1000 && rmdir(group) != 0; i++)
        usleep(10000);
    assert_int_equal(status, 0);
}

#define TREE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TREE_TEST(without_limits_it_is_available_memory_less_the_reserve),
        TREE_TEST(an_ancestors_cgroup_limit_counts_less_what_others_use_of_it),
        TREE_TEST(the_default_reserve_is_an_eighth_of_a_small_budget),
        TREE_TEST(a_reserve_that_was_asked_for_is_kept),
        TREE_TEST(a_request_that_fits_decides),
        TREE_TEST(a_request_is_cut_at_the_true_limit_less_the_reserve),
        TREE_TEST(a_share_is_of_what_is_really_available),
        TREE_TEST(mem_limit_counts_as_bytes_or_size),
        TREE_TEST(a_mem_limit_that_is_no_size_is_shown_and_ignored),
        TREE_TEST(soft_rlimits_count),
        TREE_TEST(too_little_memory_is_an_error_that_names_the_source),
        TREE_TEST(a_reserve_that_leaves_nothing_is_an_error),
        TREE_TEST(a_request_below_the_least_or_no_size_is_an_error),
        TREE_TEST(where_nothing_can_be_read_only_a_request_helps),
        TREE_TEST(a_long_path_keeps_its_tail),
        TREE_TEST(what_is_not_printable_is_shown_as_a_question_mark),
        TREE_TEST(every_level_of_a_deep_tree_has_a_place),
        TREE_TEST(a_real_cgroup_decides),
    };
    return cmocka_run_group_tests_name("budget", tests, NULL, NULL);
}
