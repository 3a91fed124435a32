/* SPDX-License-Identifier: Apache-2.0 */
/* The cells of a notebook in the ledger: what each holds, how it grows, whose they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ledger/cell.h"
#include "sys/proc.h"

#define MIB (INT64_C(1) << 20)

static int set_up(void **state)
{
    void *address =
        mmap(NULL, sizeof(pl_ledger), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    *state = address;
    return address == MAP_FAILED ? -1 : 0;
}

static int tear_down(void **state)
{
    pl_ledger_close(*state);
    return 0;
}

static void begin(pl_ledger *ledger, const char *id, uint32_t number)
{
    assert_int_equal(pl_cell_begin(ledger, id, number), 0);
}

static pl_cell_run end(pl_ledger *ledger)
{
    pl_cell_run run;
    assert_int_equal(pl_cell_end(ledger, &run), 0);
    return run;
}

/* As the guard does: the key tells cells apart. */
static pl_site *site_here(pl_ledger *ledger, uint64_t place)
{
    bool is_new;
    return pl_ledger_site(ledger, place * 1000 + atomic_load(&ledger->sum.cell) + 2, getpid(),
                          &is_new);
}

static pl_cell_run run_once(pl_ledger *ledger, const char *id, uint32_t number, int64_t bytes)
{
    begin(ledger, id, number);
    pl_site_add(site_here(ledger, 1), bytes, 1);
    return end(ledger);
}

static void a_cell_holds_what_was_allocated_while_it_ran(void **state)
{
    pl_ledger *ledger = *state;
    begin(ledger, "a", 1);
    pl_site *first = site_here(ledger, 1);
    pl_site_add(first, 10 * MIB, 1);
    assert_int_equal(end(ledger).held_bytes, 10 * MIB);

    begin(ledger, "b", 2);
    pl_site *second = site_here(ledger, 1);
    assert_ptr_not_equal(first, second);
    pl_site_add(second, 5 * MIB, 1);
    pl_site_add(first, -4 * MIB, 0); /* freed by another cell: no longer held by the first */
    assert_int_equal(end(ledger).held_bytes, 5 * MIB);
    assert_int_equal(pl_cell_held_bytes(ledger, pl_site_cell(ledger, first) - 1), 6 * MIB);

    pl_site_add(site_here(ledger, 7), 3 * MIB, 1); /* between cells: nobody's */
    assert_int_equal(pl_cell_held_bytes(ledger, pl_site_cell(ledger, first) - 1), 6 * MIB);
    assert_int_equal(pl_cell_held_bytes(ledger, pl_site_cell(ledger, second) - 1), 5 * MIB);
}

static void a_run_tells_what_was_charged_before_after_and_at_most(void **state)
{
    pl_ledger *ledger = *state;
    pl_owner owner;
    atomic_store(&ledger->sum.limit_bytes, 1000);
    ledger->header.pid_namespace = pl_proc_pid_namespace();
    assert_int_equal(pl_ledger_join(ledger, 1, &owner), 0);
    assert_int_equal(pl_ledger_claim(ledger, owner, 900, PL_CLAIM_REFUSABLE), 0);
    pl_ledger_release(ledger, owner, 800); /* a peak of before the cell is not the cell's */
    begin(ledger, "a", 1);
    assert_int_equal(pl_ledger_claim(ledger, owner, 600, PL_CLAIM_REFUSABLE), 0);
    pl_ledger_release(ledger, owner, 500);
    pl_cell_run run = end(ledger);
    assert_int_equal(run.before_bytes, 100);
    assert_int_equal(run.peak_bytes, 700);
    assert_int_equal(run.after_bytes, 200);
    assert_int_equal(pl_ledger_peak_bytes(ledger), 900);

    begin(ledger, "a", 2);
    run = end(ledger);
    assert_int_equal(run.peak_bytes, 200);
    for (int i = 0; i < PL_CELLS; i++)
        if (strcmp(ledger->cells[i].id, "a") == 0)
            assert_int_equal(atomic_load(&ledger->cells[i].highest_bytes), 700);
}

static void a_cell_that_is_run_again_and_keeps_more_each_time_is_growing(void **state)
{
    pl_ledger *ledger = *state;
    assert_int_equal(run_once(ledger, "leak", 1, 8 * MIB).n_growing, 0);
    pl_cell_run run = run_once(ledger, "leak", 2, 8 * MIB);
    assert_int_equal(run.n_growing, 1);
    assert_int_equal(run.growth_bytes, 8 * MIB);
    assert_int_equal(run_once(ledger, "other", 3, 8 * MIB).n_growing, 0);
    for (uint32_t i = 0; i < 20; i++) /* more than the table remembers */
        run = run_once(ledger, "leak", 4 + i, 8 * MIB);
    assert_int_equal(run.n_growing, 21);
    assert_int_equal(run.n_runs, 22);
    assert_int_equal(run.held_bytes, 22 * 8 * MIB);
    assert_int_equal(run.growth_bytes, 8 * MIB);

    run = run_once(ledger, "leak", 30, MIB); /* within what sampling may miss */
    assert_int_equal(run.n_growing, 0);
    run = run_once(ledger, "leak", 31, -100 * MIB);
    assert_int_equal(run.n_growing, 0);
    assert_int_equal(run.growth_bytes, -100 * MIB);
}

static void a_site_remembers_what_it_held_after_the_last_two_runs(void **state)
{
    pl_ledger *ledger = *state;
    run_once(ledger, "leak", 1, 8 * MIB);
    run_once(ledger, "leak", 2, 5 * MIB);
    begin(ledger, "leak", 3);
    pl_site *site = site_here(ledger, 1);
    end(ledger);
    run_once(ledger, "other", 4, 5 * MIB);
    assert_int_equal(atomic_load(&site->run_bytes[1]), 13 * MIB);
    assert_int_equal(atomic_load(&site->run_bytes[0]), 13 * MIB);
}

static void a_cell_that_did_not_end_is_ended_by_the_next(void **state)
{
    pl_ledger *ledger = *state;
    begin(ledger, "a", 1);
    pl_site_add(site_here(ledger, 1), 8 * MIB, 1);
    begin(ledger, "b", 2);
    assert_int_equal(end(ledger).number, 2);
    for (int i = 0; i < PL_CELLS; i++)
        if (strcmp(ledger->cells[i].id, "a") == 0) {
            assert_int_not_equal(atomic_load(&ledger->cells[i].ended_ns), 0);
            assert_int_equal(atomic_load(&ledger->cells[i].held_bytes[1]), 8 * MIB);
        }
    pl_cell_run run;
    assert_int_equal(pl_cell_end(ledger, &run), -ENOENT);
}

static void events_know_the_cell_that_ran(void **state)
{
    pl_ledger *ledger = *state;
    pl_event event = {.kind = PL_EVENT_REFUSED}, read;
    begin(ledger, "a", 7);
    pl_ledger_event(ledger, &event);
    end(ledger);
    pl_ledger_event(ledger, &event);
    assert_true(pl_ledger_event_read(ledger, 0, &read));
    assert_int_equal(read.cell_number, 7);
    assert_true(pl_ledger_event_read(ledger, 1, &read));
    assert_int_equal(read.cell_number, 0);
}

static void a_file_leads_to_the_last_number_of_its_cell(void **state)
{
    pl_ledger *ledger = *state;
    begin(ledger, "a", 1);
    pl_cell_set_file(ledger, "/tmp/ipykernel_12/34.py");
    end(ledger);
    begin(ledger, "a", 9);
    pl_cell_set_file(ledger, "/tmp/ipykernel_12/34.py");
    end(ledger);
    assert_int_equal(pl_cell_number_of(ledger, "/tmp/ipykernel_12/34.py"), 9);
    assert_int_equal(pl_cell_number_of(ledger, "/tmp/ipykernel_12/35.py"), 0);
    assert_int_equal(pl_cell_number_of(ledger, ""), 0);
}

/* What an earlier text of a cell allocated is still held, and a magic runs pieces of its own. */
static void every_file_of_a_cell_keeps_its_number(void **state)
{
    pl_ledger *ledger = *state;
    begin(ledger, "a", 1);
    pl_cell_set_file(ledger, "before.py");
    end(ledger);
    begin(ledger, "a", 2);
    pl_cell_set_file(ledger, "after.py");
    pl_cell_set_file(ledger, "piece.py");
    end(ledger);
    assert_int_equal(pl_cell_number_of(ledger, "before.py"), 1);
    assert_int_equal(pl_cell_number_of(ledger, "after.py"), 2);
    assert_int_equal(pl_cell_number_of(ledger, "piece.py"), 2);
}

static void the_newest_files_are_known_when_there_were_many(void **state)
{
    enum { N = 3 * PL_CELL_FILES };
    pl_ledger *ledger = *state;
    char name[32];
    for (int i = 1; i <= N; i++) {
        snprintf(name, sizeof name, "%d.py", i);
        begin(ledger, "a", (uint32_t)i);
        pl_cell_set_file(ledger, name);
        end(ledger);
    }
    for (int i = N - PL_CELL_FILES / 4; i <= N; i++) {
        snprintf(name, sizeof name, "%d.py", i);
        assert_int_equal(pl_cell_number_of(ledger, name), i);
    }
}

/* A frame has the tail of a long name, in whole characters; the kernel knows all of it. */
static void a_file_with_a_long_name_is_known_by_its_tail(void **state)
{
    pl_ledger *ledger = *state;
    char name[400] = "/tmp/";
    while (strlen(name) < 300)
        strcat(name, "\xc3\xbc"); /* u umlaut: two bytes */
    strcat(name, "/1.py");
    begin(ledger, "a", 3);
    pl_cell_set_file(ledger, name);
    size_t room = sizeof((pl_python_frame *)NULL)->file - 1;
    const char *tail = name + strlen(name) - room;
    tail += ((uint8_t)*tail & 0xc0) == 0x80;
    assert_int_equal(pl_cell_number_of(ledger, tail), 3);
}

/* VS Code names a cell by the address of its notebook, and then the cell. */
static void of_a_long_id_the_end_is_kept_in_whole_characters(void **state)
{
    (void)state;
    char id[200] = "vscode-notebook-cell:/";
    while (strlen(id) < 100)
        strcat(id, "\xc3\xbc");
    strcat(id, "#W0s");
    const char *kept = pl_cell_kept_id(id);
    size_t n = strlen(id), room = sizeof((pl_cell *)NULL)->id - 1;
    assert_int_equal(strlen(kept), room - 1); /* the first of them would be half a character */
    assert_ptr_equal(kept, id + n - room + 1);
    assert_int_equal((uint8_t)*kept, 0xc3);
    assert_string_equal(pl_cell_kept_id("short"), "short");
}

static void in_a_full_table_the_cell_run_longest_ago_gives_way(void **state)
{
    pl_ledger *ledger = *state;
    char id[32];
    run_once(ledger, "kept", 1, 8 * MIB);
    for (uint32_t i = 0; i < 3 * PL_CELLS; i++) {
        snprintf(id, sizeof id, "cell %u", i);
        begin(ledger, id, 2 * i);
        end(ledger);
        if (i % 100 == 0) {
            begin(ledger, "kept", 2 * i + 1);
            end(ledger);
        }
    }
    begin(ledger, "kept", 9000);
    pl_cell_run run = end(ledger);
    assert_int_equal(run.held_bytes, 8 * MIB);
    assert_int_equal(run.n_runs, 2 + (3 * PL_CELLS + 99) / 100);
}

static void what_a_cell_that_gave_way_held_is_nobodys(void **state)
{
    pl_ledger *ledger = *state;
    char id[32];
    run_once(ledger, "old", 1, 8 * MIB);
    for (uint32_t i = 0; i < PL_CELLS; i++) {
        snprintf(id, sizeof id, "cell %u", i);
        begin(ledger, id, i);
        assert_int_equal(end(ledger).held_bytes, 0);
    }
    for (uint32_t i = 0; i < PL_CELLS; i++)
        assert_int_equal(pl_cell_held_bytes(ledger, i), 0);
}

static void what_a_dead_worker_held_is_no_longer_its_cells(void **state)
{
    pl_ledger *ledger = *state;
    bool is_new;
    begin(ledger, "a", 1);
    pl_site *site = pl_ledger_site(ledger, 99, 4242, &is_new);
    pl_site_add(site, 8 * MIB, 1);
    assert_int_equal(pl_cell_held_bytes(ledger, atomic_load(&ledger->sum.cell) - 1), 8 * MIB);
    pl_ledger_forget_sites(ledger, 4242);
    assert_int_equal(end(ledger).held_bytes, 0);
}

/* A worker that runs IPython's code does not disturb the kernel's cells; when the kernel is dead,
 * the cells are the next one's. */
static void only_one_process_begins_cells(void **state)
{
    pl_ledger *ledger = *state;
    pid_t child = fork();
    if (child == 0) {
        int r = pl_cell_begin(ledger, "a", 1);
        pause();
        _exit(r < 0);
    }
    while (atomic_load(&ledger->sum.cell) == 0)
        usleep(1000);
    assert_int_equal(pl_cell_begin(ledger, "b", 2), -EBUSY);
    assert_int_equal(atomic_load(&ledger->sum.cell_number), 1);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    begin(ledger, "b", 2);
    assert_int_equal(end(ledger).number, 2);
}

static void a_corrupt_place_is_no_cell(void **state)
{
    pl_ledger *ledger = *state;
    pl_cell_run run;
    atomic_store(&ledger->sum.cell, PL_CELLS + 1);
    assert_int_equal(pl_cell_end(ledger, &run), -ENOENT);
    pl_cell_set_file(ledger, "x");
    begin(ledger, "a", 1);
    assert_int_equal(end(ledger).number, 1);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_cell_holds_what_was_allocated_while_it_ran),
        TEST(a_run_tells_what_was_charged_before_after_and_at_most),
        TEST(a_cell_that_is_run_again_and_keeps_more_each_time_is_growing),
        TEST(a_site_remembers_what_it_held_after_the_last_two_runs),
        TEST(a_cell_that_did_not_end_is_ended_by_the_next),
        TEST(events_know_the_cell_that_ran),
        TEST(a_file_leads_to_the_last_number_of_its_cell),
        TEST(every_file_of_a_cell_keeps_its_number),
        TEST(the_newest_files_are_known_when_there_were_many),
        TEST(a_file_with_a_long_name_is_known_by_its_tail),
        TEST(of_a_long_id_the_end_is_kept_in_whole_characters),
        TEST(in_a_full_table_the_cell_run_longest_ago_gives_way),
        TEST(what_a_cell_that_gave_way_held_is_nobodys),
        TEST(what_a_dead_worker_held_is_no_longer_its_cells),
        TEST(only_one_process_begins_cells),
        TEST(a_corrupt_place_is_no_cell),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
