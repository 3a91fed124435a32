/* SPDX-License-Identifier: Apache-2.0 */
/* Threads make, share, pin, read, rewrite, evict and drop values at random, in far less memory than
 * the values take, on a disk that fails now and then. Each word of a value follows from the value's
 * seed. No value is ever lost, the cap is never passed, and in the end nothing is left.
 * usage: buffer_storm [SECONDS] */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "../unit/faults.h"
#include "base/clock.h"
#include "tensor/buffer.h"

enum { N_THREADS = 4, N_SHELVES = 64, MODES = 2 };

#define CAP        (12 * PL_MIB)
#define MOST_BYTES (2 * PL_MIB) /* enough to go past the page cache */
#define FILE_BYTES (256 * PL_KIB)

static uint64_t total_ns = 6 * PL_NS_PER_SEC;

/* A value that everybody may take. */
typedef struct shelf {
    pthread_mutex_t mu;
    pl_buffer *buffer; /* NULL: empty */
    uint64_t seed;
} shelf;

static struct {
    pl_memory *memory;
    pl_pool *pool;
    char folder[64];
    char window_path[96]; /* a file of seed 0 */
    shelf shelves[N_SHELVES];
    _Atomic bool over;
    _Atomic bool failed;
    char failure[256];
    _Atomic uint64_t n_checked, n_refused, n_made, n_rewritten, n_faults;
} storm;

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static uint64_t random_below(uint64_t *seed, uint64_t n)
{
    *seed += UINT64_C(0x9e3779b97f4a7c15);
    return mix(*seed) % n;
}

static void fail_storm(const char *format, ...)
{
    bool not_yet = false;
    if (!atomic_compare_exchange_strong(&storm.failed, &not_yet, true))
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(storm.failure, sizeof storm.failure, format, arguments);
    va_end(arguments);
}

static void fill(void *data, uint64_t bytes, uint64_t seed, uint64_t first_word)
{
    uint64_t *words = data;
    for (uint64_t i = 0; i < bytes / 8; i++)
        words[i] = seed * UINT64_C(0x9e3779b97f4a7c15) + (first_word + i);
}

static void check(const void *data, uint64_t bytes, uint64_t seed, uint64_t first_word,
                  const char *how)
{
    const uint64_t *words = data;
    for (uint64_t i = 0; i < bytes / 8; i++)
        if (words[i] != seed * UINT64_C(0x9e3779b97f4a7c15) + (first_word + i)) {
            fail_storm("%s: word %" PRIu64 " of value %" PRIu64 " was lost", how, first_word + i,
                       seed);
            return;
        }
    atomic_fetch_add(&storm.n_checked, 1);
}

/* Only these are allowed to happen: no room, and the disk's faults. */
static bool went_well(int r)
{
    if (r == 0)
        return true;
    atomic_fetch_add(&storm.n_refused, 1);
    if (r != PL_EBUDGET && r != -EIO && r != -ENOSPC)
        fail_storm("an unexpected error: %s", pl_error_name(r));
    return false;
}

/* ---- values ---- */

static uint64_t choose_bytes(uint64_t *random)
{
    uint64_t kind = random_below(random, 8);
    uint64_t most = kind < 4 ? 4 * PL_KIB : kind < 7 ? 128 * PL_KIB : MOST_BYTES;
    return 8 * random_below(random, most / 8);
}

/* Written when it is new, or let go of in between and written again: before anybody shares it. */
static pl_buffer *make_resident(uint64_t *random, uint64_t seed)
{
    pl_buffer *buffer;
    void *data;
    uint64_t bytes = choose_bytes(random);
    if (!went_well(pl_buffer_new(storm.pool, bytes, "value", &buffer, &data, NULL)))
        return NULL;
    bool rewrite = random_below(random, 4) == 0;
    fill(data, bytes, rewrite ? seed + 1 : seed, 0);
    pl_buffer_unpin(buffer);
    if (!rewrite)
        return buffer;
    if (random_below(random, 2))
        pl_pool_evict(storm.pool, 2 * MOST_BYTES, NULL);
    if (!went_well(pl_buffer_pin(buffer, PL_PIN_WRITE, &data, NULL))) {
        pl_buffer_unref(buffer);
        return NULL;
    }
    check(data, bytes, seed + 1, 0, "before a rewrite");
    fill(data, bytes, seed, 0);
    pl_buffer_unpin(buffer);
    atomic_fetch_add(&storm.n_rewritten, 1);
    return buffer;
}

static pl_buffer *make_spilled(uint64_t *random, uint64_t seed)
{
    static _Thread_local char piece[64 * 1024];
    pl_buffer *buffer;
    uint64_t bytes = sizeof piece * (1 + random_below(random, 8));
    if (!went_well(pl_buffer_new_spilled(storm.pool, bytes, "spilled", &buffer, NULL)))
        return NULL;
    for (uint64_t at = 0; at < bytes; at += sizeof piece) {
        fill(piece, sizeof piece, seed, at / 8);
        if (!went_well(pl_buffer_write(buffer, at, piece, sizeof piece, NULL))) {
            pl_buffer_unref(buffer);
            return NULL;
        }
    }
    return buffer;
}

static pl_buffer *make_window(void)
{
    pl_buffer *buffer;
    return went_well(pl_buffer_open_window(storm.pool, storm.window_path, 0, FILE_BYTES, "window",
                                           &buffer, NULL))
               ? buffer
               : NULL;
}

/* ---- what a thread does ---- */

static void put(shelf *s, pl_buffer *buffer, uint64_t seed)
{
    pthread_mutex_lock(&s->mu);
    pl_buffer *old = s->buffer;
    s->buffer = buffer;
    s->seed = seed;
    pthread_mutex_unlock(&s->mu);
    pl_buffer_unref(old);
}

static void make(uint64_t *random, shelf *s)
{
    uint64_t kind = random_below(random, 16), seed = 2 + random_below(random, UINT32_MAX);
    pl_buffer *buffer = kind == 0   ? make_window()
                        : kind <= 2 ? make_spilled(random, seed)
                                    : make_resident(random, seed);
    if (!buffer)
        return;
    atomic_fetch_add(&storm.n_made, 1);
    put(s, buffer, kind == 0 ? 0 : seed);
}

static pl_buffer *get(shelf *s, uint64_t *ret_seed)
{
    pthread_mutex_lock(&s->mu);
    pl_buffer *buffer = s->buffer ? pl_buffer_ref(s->buffer) : NULL;
    *ret_seed = s->seed;
    pthread_mutex_unlock(&s->mu);
    return buffer;
}

static void use_pinned(shelf *s)
{
    uint64_t seed;
    void *data;
    pl_buffer *buffer = get(s, &seed);
    if (buffer && went_well(pl_buffer_pin(buffer, PL_PIN_READ, &data, NULL))) {
        check(data, pl_buffer_bytes(buffer), seed, 0, "pinned");
        pl_buffer_unpin(buffer);
    }
    pl_buffer_unref(buffer);
}

static void use_in_place(uint64_t *random, shelf *s)
{
    static _Thread_local uint64_t words[4096];
    uint64_t seed;
    pl_buffer *buffer = get(s, &seed);
    uint64_t n_words = buffer ? pl_buffer_bytes(buffer) / 8 : 0;
    uint64_t first = n_words ? random_below(random, n_words) : 0;
    uint64_t n = pl_min_u64(n_words - first, PL_COUNT_OF(words));
    if (buffer && went_well(pl_buffer_read(buffer, first * 8, words, n * 8, NULL)))
        check(words, n * 8, seed, first, "read in place");
    pl_buffer_unref(buffer);
}

static void *live(void *argument)
{
    uint64_t random = (uintptr_t)argument;
    while (!storm.over && !storm.failed) {
        shelf *s = &storm.shelves[random_below(&random, N_SHELVES)];
        switch (random_below(&random, 8)) {
        case 0:
        case 1:
            make(&random, s);
            break;
        case 2:
            put(s, NULL, 0);
            break;
        case 3:
            pl_pool_evict(storm.pool, random_below(&random, CAP), NULL);
            break;
        case 4:
        case 5:
            use_in_place(&random, s);
            break;
        default:
            use_pinned(s);
        }
    }
    return NULL;
}

/* ---- those who watch, and who disturb ---- */

static void *watch(void *unused)
{
    (void)unused;
    while (!storm.over) {
        pl_error error = {0};
        if (pl_pool_check(storm.pool, &error) < 0)
            fail_storm("%s", error.message);
        if (pl_memory_claimed_bytes(storm.memory) > CAP)
            fail_storm("the cap was passed");
        usleep(200);
    }
    return NULL;
}

static void *disturb(void *unused)
{
    (void)unused;
    uint64_t random = 99;
    while (!storm.over) {
        uint64_t kind = random_below(&random, 5);
        fault_io.read_error = kind == 0 ? EIO : 0;
        fault_io.write_error = kind == 1 ? EIO : kind == 2 ? ENOSPC : 0;
        fault_io.reserve_error = kind == 3 ? ENOSPC : 0;
        fault_io.most_bytes = random_below(&random, 3) ? 0 : 4096 * (1 + random_below(&random, 9));
        fault_io.n_interruptions = (int)random_below(&random, 3);
        atomic_fetch_add(&storm.n_faults, kind < 4);
        usleep(500);
        fault_io_reset();
        usleep(1500);
    }
    fault_io_reset();
    return NULL;
}

/* ---- the storm ---- */

static int make_file(void)
{
    static char bytes[FILE_BYTES];
    snprintf(storm.window_path, sizeof storm.window_path, "%s/user.npy", storm.folder);
    fill(bytes, sizeof bytes, 0, 0);
    FILE *file = fopen(storm.window_path, "w");
    if (!file)
        return -1;
    size_t n = fwrite(bytes, 1, sizeof bytes, file);
    return fclose(file) == 0 && n == sizeof bytes ? 0 : -1;
}

static int set_up(void **state)
{
    (void)state;
    memset(&storm, 0, sizeof storm);
    strcpy(storm.folder, "/var/tmp/plimsoll-storm-XXXXXX");
    if (!mkdtemp(storm.folder) || make_file() < 0)
        return -1;
    for (int i = 0; i < N_SHELVES; i++)
        pthread_mutex_init(&storm.shelves[i].mu, NULL);
    const pl_memory_options memory_options = {.cap_bytes = CAP};
    const pl_pool_options options = {.spill_directory = storm.folder};
    if (pl_memory_new(&memory_options, &storm.memory, NULL) < 0)
        return -1;
    return pl_pool_new(storm.memory, &options, &storm.pool, NULL);
}

static int tear_down(void **state)
{
    (void)state;
    pl_pool_unref(storm.pool);
    pl_memory_unref(storm.memory);
    unlink(storm.window_path);
    return rmdir(storm.folder);
}

/* What never reached the things it is for would prove nothing: on a slow machine it lasts longer.
 */
static bool was_a_storm(bool with_faults)
{
    pl_pool_state s;
    pl_pool_state_read(storm.pool, &s);
    return s.n_out > 100 && s.n_in > 100 && storm.n_checked > 1000 && storm.n_rewritten > 10 &&
           (!with_faults || (storm.n_faults > 10 && storm.n_refused > 10));
}

static void assert_values_are_whole(void)
{
    for (int i = 0; i < N_SHELVES; i++) {
        pl_buffer *buffer = storm.shelves[i].buffer;
        void *data;
        if (!buffer)
            continue;
        assert_int_equal(pl_buffer_pin(buffer, PL_PIN_READ, &data, NULL), 0);
        check(data, pl_buffer_bytes(buffer), storm.shelves[i].seed, 0, "in the end");
        pl_buffer_unpin(buffer);
        put(&storm.shelves[i], NULL, 0);
    }
    if (storm.failed)
        fail_msg("%s", storm.failure);
}

static void assert_nothing_is_left(void)
{
    pl_pool_state s;
    pl_pool_state_read(storm.pool, &s);
    print_message("# %" PRIu64 " values made, %" PRIu64 " checks, %" PRIu64 " moved out, %" PRIu64
                  " in, %" PRIu64 " refused, %" PRIu64 " spells of faults\n",
                  storm.n_made, storm.n_checked, s.n_out, s.n_in, storm.n_refused, storm.n_faults);
    assert_int_equal(s.n_buffers, 0);
    assert_int_equal(s.resident_bytes, 0);
    assert_int_equal(s.spilled_bytes, 0);
    assert_int_equal(pl_memory_claimed_bytes(storm.memory), 0);
}

static void run_storm(bool with_faults)
{
    pthread_t threads[N_THREADS], watcher, disturber;
    uint64_t end_ns = pl_clock_monotonic_ns() + total_ns / MODES;
    for (uintptr_t i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, live, (void *)(i + 1)), 0);
    assert_int_equal(pthread_create(&watcher, NULL, watch, NULL), 0);
    if (with_faults)
        assert_int_equal(pthread_create(&disturber, NULL, disturb, NULL), 0);
    while (!storm.failed && (pl_clock_monotonic_ns() < end_ns || !was_a_storm(with_faults)))
        usleep(10000);
    storm.over = true;
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_join(watcher, NULL);
    if (with_faults)
        pthread_join(disturber, NULL);
    /* No thread pins more than one value: all of them fit. */
    assert_true(with_faults || storm.n_refused == 0);
    assert_values_are_whole();
    assert_nothing_is_left();
}

static void no_value_is_lost_in_a_crowd(void **state)
{
    (void)state;
    run_storm(false);
}

static void no_value_is_lost_on_a_disk_that_fails(void **state)
{
    (void)state;
    run_storm(true);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
    if (argc > 1 && atoi(argv[1]) > 0)
        total_ns = (uint64_t)atoi(argv[1]) * PL_NS_PER_SEC;
    const struct CMUnitTest tests[] = {
        TEST(no_value_is_lost_in_a_crowd),
        TEST(no_value_is_lost_on_a_disk_that_fails),
    };
    return cmocka_run_group_tests_name("buffer_storm", tests, NULL, NULL);
}
