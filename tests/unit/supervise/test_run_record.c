/* SPDX-License-Identifier: Apache-2.0 */
/* Where records live, and how they are found and removed. Each test has a state folder of its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ledger/layout.h"
#include "supervise/run_record.h"
#include "sys/cgroup.h"

static char state_directory[64];

static int make_state(void **state)
{
    (void)state;
    strcpy(state_directory, "/tmp/plimsoll-test-record-XXXXXX");
    if (mkdtemp(state_directory) == NULL)
        return -1;
    return setenv("PLIMSOLL_STATE", state_directory, 1);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static int remove_state(void **state)
{
    (void)state;
    return nftw(state_directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* A listed run with a header only: enough for everything here. */
static void add_header(const char *id, const pl_ledger_header *header, size_t n)
{
    char path[PATH_MAX + 128];
    snprintf(path, sizeof(path), "%s/runs", state_directory);
    mkdir(path, 0700);
    snprintf(path, sizeof(path), "%s/runs/%s", state_directory, id);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof(path), "%s/runs/%s/" PL_RECORD_LEDGER, state_directory, id);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, header, n), n);
    close(fd);
}

static void add_run(const char *id, uint64_t started_s, uint32_t pid, pid_t supervisor_pid)
{
    pl_ledger_header header = {.magic = PL_LEDGER_MAGIC,
                               .version = PL_LEDGER_VERSION,
                               .started_realtime_ns = started_s * PL_NS_PER_SEC,
                               .supervisor_pid = supervisor_pid,
                               .command_pid = pid};
    add_header(id, &header, sizeof(header));
}

/* A run of a notebook's kernel, by a supervisor that is dead or (us) alive. */
static pl_ledger_header kernel_header(const char *kernel, uint64_t started_s, pid_t supervisor_pid)
{
    pl_ledger_header header = {.magic = PL_LEDGER_MAGIC,
                               .version = PL_LEDGER_VERSION,
                               .started_realtime_ns = started_s * PL_NS_PER_SEC,
                               .supervisor_pid = supervisor_pid};
    snprintf(header.kernel, sizeof(header.kernel), "%s", kernel);
    return header;
}

static void add_kernel_run(const char *id, const char *kernel, uint64_t started_s,
                           pid_t supervisor_pid)
{
    pl_ledger_header header = kernel_header(kernel, started_s, supervisor_pid);
    add_header(id, &header, sizeof(header));
}

static bool run_exists(const char *id)
{
    char path[PATH_MAX + 128];
    snprintf(path, sizeof(path), "%s/runs/%s", state_directory, id);
    return access(path, F_OK) == 0;
}

/* A pid that is free: of a child that has been waited for. */
static pid_t dead_pid(void)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    return pid;
}

static void a_new_run_gets_a_private_folder_of_its_own(void **state)
{
    (void)state;
    pl_run_record first, second;
    struct stat st;
    assert_int_equal(pl_run_record_create(NULL, &first, NULL), 0);
    assert_int_equal(pl_run_record_create(NULL, &second, NULL), 0);
    assert_string_not_equal(first.directory, second.directory);
    assert_int_equal(stat(first.directory, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    assert_int_equal(strncmp(first.directory, state_directory, strlen(state_directory)), 0);
    assert_true(pl_run_record_is_listed(first.directory));
    assert_false(pl_run_record_is_listed(state_directory));
}

static void the_state_folder_follows_the_environment(void **state)
{
    (void)state;
    pl_run_record record;
    char expected[PATH_MAX + 128];
    unsetenv("PLIMSOLL_STATE");
    setenv("XDG_STATE_HOME", state_directory, 1);
    assert_int_equal(pl_run_record_create(NULL, &record, NULL), 0);
    snprintf(expected, sizeof(expected), "%s/plimsoll/runs/%s", state_directory, record.id);
    assert_string_equal(record.directory, expected);

    setenv("XDG_STATE_HOME", "relative", 1);
    setenv("HOME", state_directory, 1);
    assert_int_equal(pl_run_record_create(NULL, &record, NULL), 0);
    snprintf(expected, sizeof(expected), "%s/.local/state/plimsoll/runs/%s", state_directory,
             record.id);
    assert_string_equal(record.directory, expected);

    unsetenv("HOME");
    unsetenv("XDG_STATE_HOME");
    pl_error error = {0};
    assert_int_equal(pl_run_record_create(NULL, &record, &error), -ENOENT);
    assert_non_null(strstr(error.message, "--record DIR"));
}

static void a_chosen_folder_is_used_as_it_is(void **state)
{
    (void)state;
    char chosen[PATH_MAX + 16];
    snprintf(chosen, sizeof(chosen), "%s/a/b", state_directory);
    pl_run_record record;
    assert_int_equal(pl_run_record_create(chosen, &record, NULL), 0);
    assert_string_equal(record.directory, chosen);
    assert_string_equal(record.id, "b");
    assert_int_equal(pl_run_record_create(chosen, &record, NULL), 0);
    assert_false(pl_run_record_is_listed(record.directory));
}

static void a_chosen_folder_with_a_ledger_is_refused(void **state)
{
    (void)state;
    add_run("20261116-031522-1", 1, 1, dead_pid());
    char chosen[PATH_MAX + 64];
    snprintf(chosen, sizeof(chosen), "%s/runs/20261116-031522-1", state_directory);
    pl_run_record record;
    pl_error error = {0};
    assert_int_equal(pl_run_record_create(chosen, &record, &error), -EEXIST);
    assert_non_null(strstr(error.message, "another run"));
}

static void an_unwritable_folder_is_named_with_the_way_out(void **state)
{
    (void)state;
    pl_run_record record;
    pl_error error = {0};
    assert_true(pl_run_record_create("/proc/plimsoll", &record, &error) < 0);
    assert_non_null(strstr(error.message, "'/proc/plimsoll'"));
    assert_non_null(strstr(error.message, "--record DIR"));
    assert_null(strchr(error.message, '\n'));

    setenv("PLIMSOLL_STATE", "/dev/null", 1);
    assert_true(pl_run_record_create(NULL, &record, &error) < 0);
    assert_non_null(strstr(error.message, "'/dev/null/runs'"));
}

static void runs_are_listed_newest_first_whatever_their_names(void **state)
{
    (void)state;
    add_run("20261116-031522-9", 30, 9, 0);
    add_run("20261116-031522-10", 20, 10, 0);
    add_run("20261117-000000-11", 10, 11, 0); /* the clock was set back */
    char path[PATH_MAX + 64];
    snprintf(path, sizeof(path), "%s/runs/not-a-run", state_directory);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof(path), "%s/runs/20261116-040000-12", state_directory);
    assert_int_equal(mkdir(path, 0700), 0); /* just being started: no ledger yet */

    pl_run_record *records = NULL;
    size_t n = 0;
    assert_int_equal(pl_run_record_list(&records, &n, NULL), 0);
    assert_int_equal(n, 3);
    assert_string_equal(records[0].id, "20261116-031522-9");
    assert_string_equal(records[1].id, "20261116-031522-10");
    assert_string_equal(records[2].id, "20261117-000000-11");
    free(records);
}

static void no_state_folder_is_an_empty_list(void **state)
{
    (void)state;
    pl_run_record *records = NULL;
    size_t n = 99;
    assert_int_equal(pl_run_record_list(&records, &n, NULL), 0);
    assert_int_equal(n, 0);
    free(records);
    pl_run_record record;
    pl_error error = {0};
    assert_int_equal(pl_run_record_open("last", &record, &error), -ENOENT);
    assert_string_equal(error.message, "no run is recorded yet");
}

static void assert_opens(const char *name, const char *id)
{
    pl_run_record record;
    pl_error error = {0};
    if (pl_run_record_open(name, &record, &error) < 0)
        fail_msg("'%s': %s", name, error.message);
    assert_string_equal(record.id, id);
}

static void a_run_is_found_by_id_prefix_pid_path_and_last(void **state)
{
    (void)state;
    add_run("20261116-031522-100", 10, 4121, 0);
    add_run("20261117-031522-101", 20, 4122, 0);
    add_run("20261117-041522-102", 15, 4121, 0);
    assert_opens("last", "20261117-031522-101");
    assert_opens("20261116-031522-100", "20261116-031522-100");
    assert_opens("20261116", "20261116-031522-100");
    assert_opens("4122", "20261117-031522-101");
    assert_opens("4121", "20261117-041522-102"); /* the newest run that had this pid */
    char path[PATH_MAX + 64];
    snprintf(path, sizeof(path), "%s/runs/20261116-031522-100/", state_directory);
    assert_opens(path, "20261116-031522-100");

    pl_run_record record;
    pl_error error = {0};
    assert_int_equal(pl_run_record_open("20261117", &record, &error), -ENOTUNIQ);
    assert_non_null(strstr(error.message, "2 run ids"));
    assert_int_equal(pl_run_record_open("nothing", &record, &error), -ENOENT);
    assert_int_equal(pl_run_record_open("", &record, &error), -ENOENT);
    assert_int_equal(pl_run_record_open("/usr", &record, &error), -ENOENT);
    assert_non_null(strstr(error.message, "holds no record"));
}

static void pruning_keeps_the_newest_and_what_still_runs(void **state)
{
    (void)state;
    pid_t dead = dead_pid();
    add_run("20261116-000001-1", 1, (uint32_t)dead, dead);
    add_run("20261116-000002-1", 2, (uint32_t)dead, getpid()); /* supervised by us */
    add_run("20261116-000003-1", 3, (uint32_t)getpid(), dead); /* its command lives */
    add_run("20261116-000004-1", 4, (uint32_t)dead, dead);
    add_run("20261116-000005-1", 5, (uint32_t)dead, dead);
    char path[PATH_MAX + 64];
    snprintf(path, sizeof(path), "%s/runs/not-a-run", state_directory);
    assert_int_equal(mkdir(path, 0700), 0);

    assert_int_equal(pl_run_record_prune(1, NULL), 2);
    assert_false(run_exists("20261116-000001-1"));
    assert_true(run_exists("20261116-000002-1"));
    assert_true(run_exists("20261116-000003-1"));
    assert_false(run_exists("20261116-000004-1"));
    assert_true(run_exists("20261116-000005-1"));
    assert_true(run_exists("not-a-run"));
}

static void pruning_follows_no_link(void **state)
{
    (void)state;
    char outside[PATH_MAX + 16], link_path[PATH_MAX + 64], kept[PATH_MAX + 32];
    snprintf(outside, sizeof(outside), "%s/outside", state_directory);
    snprintf(kept, sizeof(kept), "%s/file", outside);
    assert_int_equal(mkdir(outside, 0700), 0);
    close(open(kept, O_WRONLY | O_CREAT, 0600));
    add_run("20261116-000009-1", 9, 0, 0);
    snprintf(link_path, sizeof(link_path), "%s/runs/20261116-000001-99999999", state_directory);
    assert_int_equal(symlink(outside, link_path), 0);
    assert_int_equal(pl_run_record_prune(0, NULL), 1);
    assert_int_equal(access(kept, F_OK), 0);
}

static void the_state_of_a_dead_run_can_be_read(void **state)
{
    (void)state;
    struct pl_ledger *ledger = aligned_alloc(4096, sizeof(*ledger));
    assert_non_null(ledger);
    memset(ledger, 0, sizeof(*ledger));
    pid_t dead = dead_pid();
    ledger->header.supervisor_pid = dead;
    atomic_store(&ledger->header.command_pid, (uint32_t)getpid());
    pl_run_record_state seen;
    pl_run_record_state_read(ledger, &seen);
    assert_false(seen.supervisor_alive);
    assert_true(seen.command_alive);
    assert_false(seen.rebooted);
    assert_false(seen.oom_counted);

    char path[PATH_MAX + 32];
    snprintf(path, sizeof(path), "%s/memory.events", state_directory);
    FILE *events = fopen(path, "w");
    assert_non_null(events);
    fputs("low 0\noom 4\noom_kill 3\n", events);
    fclose(events);
    snprintf(ledger->header.cgroup_path, sizeof(ledger->header.cgroup_path), "%s", state_directory);
    ledger->header.baseline_oom_kills = 1;
    assert_int_equal(pl_cgroup_id_at(state_directory, &ledger->header.cgroup_id), 0);
    pl_run_record_state_read(ledger, &seen);
    assert_true(seen.oom_counted);
    assert_int_equal(seen.n_oom_kills, 2);

    ledger->header.cgroup_id++; /* another group has that name now */
    pl_run_record_state_read(ledger, &seen);
    assert_true(seen.had_group);
    assert_false(seen.oom_counted);

    strcpy(ledger->header.boot_id, "00000000-0000-0000-0000-000000000000");
    pl_run_record_state_read(ledger, &seen);
    assert_true(seen.rebooted);
    assert_false(seen.command_alive);
    assert_false(seen.oom_counted);
    free(ledger);
}

static void the_newest_ended_run_of_a_kernel_is_found(void **state)
{
    (void)state;
    pid_t dead = dead_pid();
    char id[PL_RECORD_ID_BYTES] = "untouched";
    pl_error error = {0};
    assert_int_equal(pl_run_record_of_kernel("/run/k.json", id, &error), -ENOENT);
    assert_non_null(strstr(error.message, "/run/k.json"));

    add_run("20261116-031522-1", 90, 1, dead);
    add_kernel_run("20261116-031522-2", "/run/other.json", 91, dead);
    add_kernel_run("20261116-031522-3", "/run/k.json2", 92, dead);
    add_kernel_run("20261116-031522-4", "/run/k.json", 99, getpid());
    assert_int_equal(pl_run_record_of_kernel("/run/k.json", id, NULL), -ENOENT);
    assert_int_equal(pl_run_record_of_kernel("", id, NULL), -EINVAL);
    assert_string_equal(id, "untouched");

    /* In whichever order the folder is read, one of these comes after the newest. */
    static const uint64_t starts_s[] = {12, 14, 13, 10, 20, 11, 15, 19};
    uint64_t newest_s = 0;
    for (size_t i = 0; i < PL_COUNT_OF(starts_s); i++) {
        char added[PL_RECORD_ID_BYTES];
        snprintf(added, sizeof(added), "20261116-031522-1%zu", i);
        add_kernel_run(added, "/run/k.json", starts_s[i], dead);
        char expected[PL_RECORD_ID_BYTES];
        snprintf(expected, sizeof(expected), "%s", starts_s[i] > newest_s ? added : id);
        newest_s = pl_max_u64(newest_s, starts_s[i]);
        assert_int_equal(pl_run_record_of_kernel("/run/k.json", id, NULL), 0);
        assert_string_equal(id, expected);
    }
}

/* Both are killed at once; the kernel gives back its memory for a while, and is no longer watched.
 */
static void a_kernel_that_outlives_its_supervisor_counts_as_ended(void **state)
{
    (void)state;
    pl_ledger_header header = kernel_header("/run/k.json", 5, dead_pid());
    header.command_pid = (uint32_t)getpid();
    add_header("20261116-031522-1", &header, sizeof(header));
    char id[PL_RECORD_ID_BYTES];
    assert_int_equal(pl_run_record_of_kernel("/run/k.json", id, NULL), 0);
    assert_string_equal(id, "20261116-031522-1");
}

static void a_kernel_s_run_that_cannot_be_read_is_passed_over(void **state)
{
    (void)state;
    pid_t dead = dead_pid();
    pl_ledger_header header = kernel_header("/run/k.json", 50, dead);
    add_header("20261116-031522-1", &header, sizeof(header) - 1);
    header.version++;
    add_header("20261116-031522-2", &header, sizeof(header));
    header.version = PL_LEDGER_VERSION;
    header.magic++;
    add_header("20261116-031522-3", &header, sizeof(header));
    header.magic = PL_LEDGER_MAGIC;
    add_header("stray", &header, sizeof(header));
    memset(header.kernel, 'k', sizeof(header.kernel)); /* without an end */
    add_header("20261116-031522-4", &header, sizeof(header));
    char id[PL_RECORD_ID_BYTES];
    assert_int_equal(pl_run_record_of_kernel("/run/k.json", id, NULL), -ENOENT);
    add_kernel_run("20261116-031522-5", "/run/k.json", 1, dead);
    assert_int_equal(pl_run_record_of_kernel("/run/k.json", id, NULL), 0);
    assert_string_equal(id, "20261116-031522-5");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_state, remove_state)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_new_run_gets_a_private_folder_of_its_own),
        TEST(the_state_folder_follows_the_environment),
        TEST(a_chosen_folder_is_used_as_it_is),
        TEST(a_chosen_folder_with_a_ledger_is_refused),
        TEST(an_unwritable_folder_is_named_with_the_way_out),
        TEST(runs_are_listed_newest_first_whatever_their_names),
        TEST(no_state_folder_is_an_empty_list),
        TEST(a_run_is_found_by_id_prefix_pid_path_and_last),
        TEST(pruning_keeps_the_newest_and_what_still_runs),
        TEST(pruning_follows_no_link),
        TEST(the_state_of_a_dead_run_can_be_read),
        TEST(the_newest_ended_run_of_a_kernel_is_found),
        TEST(a_kernel_that_outlives_its_supervisor_counts_as_ended),
        TEST(a_kernel_s_run_that_cannot_be_read_is_passed_over),
    };
    return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}
