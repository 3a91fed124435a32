/* SPDX-License-Identifier: Apache-2.0 */
/* What the ledger remembers beside the sum: the ring of events, the timeline, call sites, modules.
 * Clean under -fsanitize=thread, which is half of what the tests with threads are for. Alone:
 *   gcc -std=gnu17 -D_GNU_SOURCE -fno-strict-aliasing -Iinclude -Isrc \
 *       tests/unit/ledger/test_ledger_trace.c src/ledger/[a-z]*.c src/sys/proc.c src/sys/fixed_text.c \
 *       src/base/error.c -lcmocka -lpthread */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ledger/ledger.h"

/* Nothing here needs the file: anonymous zeroes are a new ledger's bytes. */
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

/* Events */

static void add_event(pl_ledger *ledger, uint64_t bytes)
{
    pl_event event = {.kind = PL_EVENT_REFUSED, .pid = 12, .tid = 13, .bytes = bytes};
    pl_ledger_event(ledger, &event);
}

static void an_event_comes_back_as_it_was_put_with_the_ledgers_own_numbers(void **state)
{
    pl_ledger *ledger = *state;
    pl_event event = {.kind = PL_EVENT_DIED, .pid = 12, .tid = 13, .detail = 9, .bytes = 77};
    strcpy(event.where.file, "train.py");
    strcpy(event.where.function, "fit");
    event.where.line = 31;
    atomic_store(&ledger->sum.charged_bytes, 600);
    atomic_store(&ledger->sum.limit_bytes, 1000);
    pl_ledger_event(ledger, &event);

    pl_event read = {0};
    assert_true(pl_ledger_event_read(ledger, 0, &read));
    assert_int_equal(read.kind, PL_EVENT_DIED);
    assert_int_equal(read.pid, 12);
    assert_int_equal(read.tid, 13);
    assert_int_equal(read.detail, 9);
    assert_int_equal(read.bytes, 77);
    assert_int_equal(read.charged_bytes, 600);
    assert_int_equal(read.limit_bytes, 1000);
    assert_true(read.time_ns > 0);
    assert_memory_equal(&read.where, &event.where, sizeof event.where);
}

static void no_event_is_read_that_was_not_written(void **state)
{
    pl_ledger *ledger = *state;
    pl_event event = {.bytes = 5};
    assert_false(pl_ledger_event_read(ledger, 0, &event));
    add_event(ledger, 1);
    assert_false(pl_ledger_event_read(ledger, 1, &event));
    assert_false(pl_ledger_event_read(ledger, UINT64_MAX, &event));
    atomic_store(&ledger->events[(UINT64_MAX - 1) % PL_EVENTS].sequence, UINT64_MAX);
    assert_false(pl_ledger_event_read(ledger, UINT64_MAX - 1, &event));
    assert_int_equal(event.bytes, 5); /* nothing is written on failure */
}

static void the_ring_keeps_the_newest_events(void **state)
{
    pl_ledger *ledger = *state;
    enum { N = PL_EVENTS + 10 };
    for (uint64_t i = 0; i < N; i++)
        add_event(ledger, i);
    pl_event event;
    for (uint64_t i = 0; i < N; i++) {
        assert_int_equal(pl_ledger_event_read(ledger, i, &event), i >= 10);
        if (i >= 10)
            assert_int_equal(event.bytes, i);
    }
}

static void an_entry_whose_writer_died_is_passed_over(void **state)
{
    pl_ledger *ledger = *state;
    atomic_store(&ledger->events[0].sequence, UINT64_MAX);
    add_event(ledger, 42);
    pl_event event;
    assert_false(pl_ledger_event_read(ledger, 0, &event));
    assert_true(pl_ledger_event_read(ledger, 1, &event));
    assert_int_equal(event.bytes, 42);
}

static void a_writer_that_comes_late_does_not_hide_a_newer_event(void **state)
{
    pl_ledger *ledger = *state;
    for (uint64_t i = 0; i <= PL_EVENTS; i++)
        add_event(ledger, i);
    atomic_store(&ledger->sum.next_event, 0); /* as it was when the late one took its number */
    add_event(ledger, 7777);
    pl_event event;
    assert_true(pl_ledger_event_read(ledger, PL_EVENTS, &event));
    assert_int_equal(event.bytes, PL_EVENTS);
}

static void an_event_is_dropped_rather_than_waited_for(void **state)
{
    pl_ledger *ledger = *state;
    for (int i = 0; i < PL_EVENTS; i++)
        atomic_store(&ledger->events[i].sequence, UINT64_MAX);
    add_event(ledger, 42); /* returns */
    pl_event event;
    for (uint64_t i = 0; i < PL_EVENTS; i++)
        assert_false(pl_ledger_event_read(ledger, i, &event));
}

/* Every field that a writer chooses is made of one number, so that a mixture shows. */
enum { N_WRITERS = 3, WRITES = 20000 };

static void make_whole(pl_event *event, uint32_t number)
{
    *event = (pl_event){.kind = number,
                        .pid = (int32_t)number,
                        .tid = (int32_t)number,
                        .detail = number,
                        .bytes = number};
    memset(event->where.file, (int)(number % 251), sizeof event->where.file);
    memset(event->where.function, (int)(number % 251), sizeof event->where.function);
    event->where.line = number;
}

static bool is_whole(const pl_event *event)
{
    pl_event twin;
    make_whole(&twin, event->kind);
    return event->pid == twin.pid && event->tid == twin.tid && event->detail == twin.detail &&
           event->bytes == twin.bytes && memcmp(&event->where, &twin.where, sizeof twin.where) == 0;
}

typedef struct writer {
    pl_ledger *ledger;
    uint32_t first_number;
    pthread_t thread;
} writer;

static void *write_events(void *context)
{
    const writer *w = context;
    for (uint32_t i = 0; i < WRITES; i++) {
        pl_event event;
        make_whole(&event, w->first_number + i);
        pl_ledger_event(w->ledger, &event);
    }
    return NULL;
}

/* Reads what the writers are at, and right behind them, until they have written everything. */
static uint64_t count_torn_events(const pl_ledger *ledger, uint64_t *ret_n_read)
{
    uint64_t n_torn = 0, last = 0;
    while (last < N_WRITERS * WRITES) {
        last = atomic_load(&ledger->sum.next_event);
        for (uint64_t back = 0; back < 4 && back < last; back++) {
            pl_event event;
            if (!pl_ledger_event_read(ledger, last - 1 - back, &event))
                continue;
            ++*ret_n_read;
            n_torn += !is_whole(&event);
        }
    }
    return n_torn;
}

static void readers_never_see_a_mixture_of_two_events(void **state)
{
    pl_ledger *ledger = *state;
    writer writers[N_WRITERS];
    for (uint32_t i = 0; i < N_WRITERS; i++) {
        writers[i] = (writer){.ledger = ledger, .first_number = i * WRITES};
        assert_int_equal(pthread_create(&writers[i].thread, NULL, write_events, &writers[i]), 0);
    }
    uint64_t n_read = 0;
    uint64_t n_torn = count_torn_events(ledger, &n_read);
    for (uint32_t i = 0; i < N_WRITERS; i++)
        pthread_join(writers[i].thread, NULL);

    assert_int_equal(n_torn, 0);
    assert_true(n_read > 0);
    uint64_t end = atomic_load(&ledger->sum.next_event);
    pl_event event;
    assert_true(pl_ledger_event_read(ledger, end - 1, &event) && is_whole(&event));
}

static void a_mark_keeps_its_first_67_bytes(void **state)
{
    pl_ledger *ledger = *state;
    char text[101];
    memset(text, 'x', 100);
    text[100] = '\0';
    pl_ledger_mark(ledger, "epoch 3");
    pl_ledger_mark(ledger, text);

    pl_event event;
    assert_true(pl_ledger_event_read(ledger, 0, &event));
    assert_int_equal(event.kind, PL_EVENT_MARK);
    assert_int_equal(event.pid, getpid());
    assert_string_equal(event.where.function, "epoch 3");
    assert_true(pl_ledger_event_read(ledger, 1, &event));
    assert_int_equal(strlen(event.where.function), 67);
}

/* The timeline */

static void add_samples(pl_ledger *ledger, uint64_t first_ns, uint64_t step_ns, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        const pl_memory_sample sample = {.time_ns = first_ns + i * step_ns, .charged_bytes = i};
        pl_ledger_sample(ledger, &sample);
    }
}

static uint64_t n_samples(const pl_ledger *ledger)
{
    return atomic_load(&ledger->sum.n_samples);
}

static void assert_times_rise(const pl_ledger *ledger)
{
    for (uint64_t i = 1; i < n_samples(ledger); i++)
        assert_true(ledger->samples[i].time_ns > ledger->samples[i - 1].time_ns);
}

static void a_timeline_with_room_keeps_every_sample(void **state)
{
    pl_ledger *ledger = *state;
    add_samples(ledger, 5, 10, PL_SAMPLES);
    assert_int_equal(n_samples(ledger), PL_SAMPLES);
    for (uint64_t i = 0; i < PL_SAMPLES; i++)
        assert_int_equal(ledger->samples[i].time_ns, 5 + 10 * i);
}

static void a_full_timeline_drops_every_second_sample(void **state)
{
    pl_ledger *ledger = *state;
    add_samples(ledger, 5, PL_NS_PER_SEC, PL_SAMPLES + 1);
    assert_int_equal(n_samples(ledger), PL_SAMPLES / 2 + 1);
    assert_int_equal(ledger->samples[0].time_ns, 5);
    assert_int_equal(ledger->samples[1].charged_bytes, 2);
    assert_int_equal(ledger->samples[PL_SAMPLES / 2].charged_bytes, PL_SAMPLES);
    assert_times_rise(ledger);
}

static void a_timeline_of_any_length_keeps_the_first_and_the_last(void **state)
{
    pl_ledger *ledger = *state;
    enum { N = 20 * PL_SAMPLES + 3 };
    const uint64_t step_ns = 20 * PL_NS_PER_MS;
    for (uint64_t i = 0; i < N; i++) {
        const pl_memory_sample sample = {.time_ns = i * step_ns, .charged_bytes = i};
        pl_ledger_sample(ledger, &sample);
        assert_int_equal(ledger->samples[n_samples(ledger) - 1].charged_bytes, i);
    }
    assert_int_equal(ledger->samples[0].charged_bytes, 0);
    assert_in_range(n_samples(ledger), PL_SAMPLES / 2, PL_SAMPLES);
    assert_times_rise(ledger);

    /* Evenly: two neighbours are never further apart than two of the present steps. */
    uint64_t step = atomic_load(&ledger->sum.sample_step_ns);
    for (uint64_t i = 1; i < n_samples(ledger); i++)
        assert_true(ledger->samples[i].time_ns - ledger->samples[i - 1].time_ns <= 2 * step);
}

static void a_damaged_count_of_samples_writes_nowhere_else(void **state)
{
    pl_ledger *ledger = *state;
    atomic_store(&ledger->sum.n_samples, PL_SAMPLES * UINT64_C(100000)); /* 26 GB away */
    add_samples(ledger, 5, 10, 1);
    assert_true(n_samples(ledger) <= PL_SAMPLES);
    for (int i = 0; i < PL_SITES; i++)
        assert_int_equal(atomic_load(&ledger->sites[i].key), 0);
}

/* Sites */

static void a_site_is_made_once_and_found_again(void **state)
{
    pl_ledger *ledger = *state;
    bool is_new = false;
    pl_site *site = pl_ledger_site(ledger, 99, 12, &is_new);
    assert_non_null(site);
    assert_true(is_new);
    pl_site_add(site, 500, 2);
    pl_site_add(site, -200, -1);
    assert_ptr_equal(pl_ledger_site(ledger, 99, 12, &is_new), site);
    assert_false(is_new);
    assert_int_equal(atomic_load(&site->held_bytes), 300);
    assert_int_equal(atomic_load(&site->n_held), 1);
    assert_int_equal(atomic_load(&site->peak_bytes), 500);
}

static void one_place_in_two_processes_is_two_sites(void **state)
{
    pl_ledger *ledger = *state;
    bool is_new;
    pl_site *site = pl_ledger_site(ledger, 99, 12, &is_new);
    pl_site *other = pl_ledger_site(ledger, 99, 13, &is_new);
    assert_true(is_new);
    assert_non_null(other);
    assert_ptr_not_equal(site, other);
}

static void a_site_may_fall_below_zero_and_come_back(void **state)
{
    pl_ledger *ledger = *state;
    bool is_new;
    pl_site *site = pl_ledger_site(ledger, 99, 12, &is_new);
    pl_site_add(site, -10, -1); /* freed here, sampled elsewhere */
    assert_int_equal(atomic_load(&site->held_bytes), -10);
    assert_int_equal(atomic_load(&site->peak_bytes), 0);
    pl_site_add(site, 30, 2);
    assert_int_equal(atomic_load(&site->peak_bytes), 20);
}

static void the_peak_is_remembered_for_each_site(void **state)
{
    pl_ledger *ledger = *state;
    bool is_new;
    pl_site *site = pl_ledger_site(ledger, 99, 12, &is_new);
    pl_site *negative = pl_ledger_site(ledger, 500, 12, &is_new);
    atomic_store(&ledger->sum.charged_bytes, 900);
    pl_site_add(site, 700, 1);
    pl_site_add(negative, -1, -1);
    pl_ledger_mark_peak(ledger);
    pl_site_add(site, -600, 0);
    assert_int_equal(atomic_load(&ledger->sum.sites_peak_bytes), 900);
    assert_int_equal(atomic_load(&site->at_peak_bytes), 700);
    assert_int_equal(atomic_load(&negative->at_peak_bytes), 0);
}

static void what_was_held_at_the_last_refusal_is_remembered_beside_the_peak(void **state)
{
    pl_ledger *ledger = *state;
    bool is_new;
    pl_site *stale = pl_ledger_site(ledger, 99, 12, &is_new);
    pl_site *kept = pl_ledger_site(ledger, 500, 12, &is_new);
    atomic_store(&ledger->sum.charged_bytes, 900);
    pl_site_add(stale, 700, 1);
    atomic_store(&stale->untouched_bytes, 600);
    pl_ledger_mark_peak(ledger);
    pl_site_add(stale, -700, -1);
    atomic_store(&stale->untouched_bytes, -5);
    pl_site_add(kept, 20, 1);
    atomic_store(&kept->untouched_bytes, 15);
    atomic_store(&ledger->sum.charged_bytes, 30);
    pl_ledger_mark_refusal(ledger);
    assert_int_equal(atomic_load(&ledger->sum.sites_refusal_bytes), 30);
    assert_int_equal(atomic_load(&stale->at_refusal_bytes), 0);
    assert_int_equal(atomic_load(&stale->untouched_at_refusal_bytes), 0);
    assert_int_equal(atomic_load(&kept->at_refusal_bytes), 20);
    assert_int_equal(atomic_load(&kept->untouched_at_refusal_bytes), 15);

    pl_ledger_forget_sites(ledger, 12); /* dead; each had a part in one of them */
    assert_int_equal(atomic_load(&stale->at_peak_bytes), 700);
    assert_int_equal(atomic_load(&kept->at_refusal_bytes), 20);
    assert_int_equal(atomic_load(&kept->owner_pid), 12);
    pl_ledger_mark_refusal(ledger); /* of others */
    assert_int_equal(atomic_load(&kept->owner_pid), 0);
    assert_int_equal(atomic_load(&stale->owner_pid), 12);
    pl_ledger_mark_peak(ledger);
    assert_int_equal(atomic_load(&stale->owner_pid), 0);
}

/* Samples stand for 400 + 200 where 150 were measured; a claim is exact, and stays. */
static void no_more_is_held_than_was_measured(void **state)
{
    pl_ledger *ledger = *state;
    bool is_new;
    pl_site *one = pl_ledger_site(ledger, 99, 12, &is_new);
    pl_site *two = pl_ledger_site(ledger, 500, 12, &is_new);
    pl_site *other = pl_ledger_site(ledger, 700, 13, &is_new);
    pl_site *stranger = pl_ledger_site(ledger, 900, 14, &is_new);
    atomic_store(&ledger->sum.n_slots, 5);
    atomic_store(&ledger->slots[3].pid, 12);
    atomic_store(&ledger->slots[3].measured_bytes, 150);
    atomic_store(&ledger->slots[4].pid, 13);
    atomic_store(&ledger->slots[4].measured_bytes, 150);
    pl_site_add(one, 1000, 1);
    pl_site_add_unclaimed(one, 400, 1);
    pl_site_add_unclaimed(two, 200, 1);
    pl_site_add_unclaimed(other, 150, 1);
    pl_site_add_unclaimed(stranger, 70, 1); /* of a process without a slot: nothing to go by */

    pl_unclaimed unclaimed = {0};
    assert_int_equal(pl_site_held_bytes(ledger, one, &unclaimed), 1100);
    assert_int_equal(pl_site_held_bytes(ledger, two, &unclaimed), 50);
    assert_int_equal(pl_site_held_bytes(ledger, other, &unclaimed), 150);
    assert_int_equal(pl_site_held_bytes(ledger, stranger, &unclaimed), 70);
    pl_ledger_mark_peak(ledger);
    assert_int_equal(atomic_load(&one->at_peak_bytes), 1100);
    assert_int_equal(atomic_load(&two->at_peak_bytes), 50);
    assert_int_equal(atomic_load(&other->at_peak_bytes), 150);

    pl_site_add_unclaimed(one, -400, -1); /* freed: what is left is less than was measured */
    unclaimed = (pl_unclaimed){0};
    assert_int_equal(pl_site_held_bytes(ledger, one, &unclaimed), 1000);
    atomic_store(&ledger->slots[3].measured_bytes, 200);
    unclaimed = (pl_unclaimed){0};
    assert_int_equal(pl_site_held_bytes(ledger, two, &unclaimed), 200);
}

static void the_sites_of_a_process_are_forgotten_and_used_again(void **state)
{
    pl_ledger *ledger = *state;
    bool is_new;
    pl_site *dead = pl_ledger_site(ledger, 99, 12, &is_new);
    pl_site *alive = pl_ledger_site(ledger, 100, 13, &is_new);
    pl_site_add(dead, 500, 1);
    pl_site_add(alive, 300, 1);
    strcpy(dead->python.file, "old.py");
    pl_ledger_forget_sites(ledger, 12);

    assert_ptr_equal(pl_ledger_site(ledger, 100, 13, &is_new), alive);
    assert_int_equal(atomic_load(&alive->held_bytes), 300);
    pl_site *next = pl_ledger_site(ledger, 99, 14, &is_new);
    assert_true(is_new);
    assert_ptr_equal(next, dead);
    assert_int_equal(atomic_load(&next->held_bytes), 0);
    assert_int_equal(atomic_load(&next->peak_bytes), 0);
    assert_int_equal(next->python.file[0], '\0');
}

static void a_full_table_has_no_site_to_give(void **state)
{
    pl_ledger *ledger = *state;
    bool is_new;
    for (uint64_t key = 2; key <= PL_SITES + 1; key++)
        assert_non_null(pl_ledger_site(ledger, key, 12, &is_new));
    assert_null(pl_ledger_site(ledger, PL_SITES + 2, 12, &is_new));
    assert_false(is_new);
    assert_non_null(pl_ledger_site(ledger, PL_SITES, 12, &is_new)); /* the old ones are there */
    pl_ledger_forget_sites(ledger, 12);
    assert_non_null(pl_ledger_site(ledger, PL_SITES + 2, 12, &is_new));
}

/* Modules */

static void a_module_has_one_index(void **state)
{
    pl_ledger *ledger = *state;
    uint32_t libc = pl_ledger_module(ledger, "/lib/libc.so.6");
    uint32_t libm = pl_ledger_module(ledger, "/lib/libm.so.6");
    assert_in_range(libc, 0, PL_MODULES - 1);
    assert_in_range(libm, 0, PL_MODULES - 1);
    assert_int_not_equal(libc, libm);
    assert_int_equal(pl_ledger_module(ledger, "/lib/libc.so.6"), libc);
    assert_string_equal(ledger->modules[libc].path, "/lib/libc.so.6");
}

static void a_long_path_is_cut_and_still_found(void **state)
{
    pl_ledger *ledger = *state;
    char path[400];
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    uint32_t index = pl_ledger_module(ledger, path);
    assert_int_equal(pl_ledger_module(ledger, path), index);
    assert_int_equal(strlen(ledger->modules[index].path), sizeof ledger->modules[index].path - 1);
}

static void a_full_table_of_modules_says_so(void **state)
{
    pl_ledger *ledger = *state;
    char path[32];
    for (int i = 0; i < PL_MODULES; i++) {
        snprintf(path, sizeof path, "/lib/%d.so", i);
        assert_in_range(pl_ledger_module(ledger, path), 0, PL_MODULES - 1);
    }
    assert_int_equal(pl_ledger_module(ledger, "/lib/one-more.so"), PL_MODULES);
    assert_in_range(pl_ledger_module(ledger, "/lib/0.so"), 0, PL_MODULES - 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_event_comes_back_as_it_was_put_with_the_ledgers_own_numbers),
        TEST(no_event_is_read_that_was_not_written),
        TEST(the_ring_keeps_the_newest_events),
        TEST(an_entry_whose_writer_died_is_passed_over),
        TEST(a_writer_that_comes_late_does_not_hide_a_newer_event),
        TEST(an_event_is_dropped_rather_than_waited_for),
        TEST(readers_never_see_a_mixture_of_two_events),
        TEST(a_mark_keeps_its_first_67_bytes),
        TEST(a_timeline_with_room_keeps_every_sample),
        TEST(a_full_timeline_drops_every_second_sample),
        TEST(a_timeline_of_any_length_keeps_the_first_and_the_last),
        TEST(a_damaged_count_of_samples_writes_nowhere_else),
        TEST(a_site_is_made_once_and_found_again),
        TEST(one_place_in_two_processes_is_two_sites),
        TEST(a_site_may_fall_below_zero_and_come_back),
        TEST(the_peak_is_remembered_for_each_site),
        TEST(what_was_held_at_the_last_refusal_is_remembered_beside_the_peak),
        TEST(no_more_is_held_than_was_measured),
        TEST(the_sites_of_a_process_are_forgotten_and_used_again),
        TEST(a_full_table_has_no_site_to_give),
        TEST(a_module_has_one_index),
        TEST(a_long_path_is_cut_and_still_found),
        TEST(a_full_table_of_modules_says_so),
    };
    return cmocka_run_group_tests_name("ledger_trace", tests, NULL, NULL);
}
