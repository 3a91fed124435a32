/* SPDX-License-Identifier: Apache-2.0 */
/* A value is never lost: whatever is evicted comes back as it was, and whatever fails leaves it
 * where it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "faults.h"
#include "tensor/buffer.h"

#define CAP (8 * PL_MIB)

static char folder[64];
static pl_memory *memory;
static pl_pool *pool;

static int set_up(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/plimsoll-buffer-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    fault_io_reset();
    const pl_memory_options memory_options = {.cap_bytes = CAP};
    const pl_pool_options options = {.spill_directory = folder};
    if (pl_memory_new(&memory_options, &memory, NULL) < 0)
        return -1;
    return pl_pool_new(memory, &options, &pool, NULL);
}

static void assert_nothing_is_left(void)
{
    pl_pool_state s;
    pl_error error = {0};
    if (pl_pool_check(pool, &error) < 0)
        fail_msg("%s", error.message);
    pl_pool_state_read(pool, &s);
    assert_int_equal(s.n_buffers, 0);
    assert_int_equal(s.resident_bytes, 0);
    assert_int_equal(s.spilled_bytes, 0);
    assert_int_equal(pl_memory_claimed_bytes(memory), 0);
}

static int tear_down(void **state)
{
    (void)state;
    fault_io_reset();
    assert_nothing_is_left();
    pl_pool_unref(pool);
    pl_memory_unref(memory);
    return rmdir(folder);
}

static pl_pool_state state_now(void)
{
    pl_pool_state s;
    pl_pool_state_read(pool, &s);
    return s;
}

static void fill(void *data, uint64_t bytes, uint32_t seed)
{
    unsigned char *to = data;
    for (uint64_t i = 0; i < bytes; i++)
        to[i] = (unsigned char)(seed + i * 7 + i / 251);
}

static void assert_filled(const void *data, uint64_t bytes, uint32_t seed)
{
    const unsigned char *from = data;
    for (uint64_t i = 0; i < bytes; i++)
        if (from[i] != (unsigned char)(seed + i * 7 + i / 251))
            fail_msg("byte %d of %d of value %u is another", (int)i, (int)bytes, seed);
}

/* A value that is idle. */
static pl_buffer *new_value(uint64_t bytes, uint32_t seed)
{
    pl_buffer *buffer;
    pl_error error = {0};
    void *data;
    char what[32];
    snprintf(what, sizeof what, "value %u", seed);
    if (pl_buffer_new(pool, bytes, what, &buffer, &data, &error) < 0)
        fail_msg("%s", error.message);
    fill(data, bytes, seed);
    pl_buffer_unpin(buffer);
    return buffer;
}

static void assert_value(pl_buffer *buffer, uint32_t seed)
{
    void *data;
    pl_error error = {0};
    if (pl_buffer_pin(buffer, PL_PIN_READ, &data, &error) < 0)
        fail_msg("%s", error.message);
    assert_filled(data, pl_buffer_bytes(buffer), seed);
    pl_buffer_unpin(buffer);
}

static void assert_sound(void)
{
    pl_error error = {0};
    if (pl_pool_check(pool, &error) < 0)
        fail_msg("%s", error.message);
}

static void idle_values_leave_least_recently_used_first_and_come_back(void **state)
{
    (void)state;
    enum { N = 16 };
    pl_buffer *values[N];
    for (uint32_t i = 0; i < 6; i++)
        values[i] = new_value(PL_MIB + i, i);
    assert_int_equal(state_now().n_out, 0);
    assert_value(values[0], 0); /* now value 1 is the oldest */
    for (uint32_t i = 6; i < 8; i++)
        values[i] = new_value(PL_MIB + i, i);
    assert_int_equal(state_now().n_out, 1);
    assert_int_equal(pl_buffer_pin_cost_bytes(values[0]), 0);
    assert_int_equal(pl_buffer_pin_cost_bytes(values[1]), pl_memory_cost_bytes(PL_MIB + 1));
    for (uint32_t i = 8; i < N; i++)
        values[i] = new_value(PL_MIB + i, i);
    assert_sound();
    assert_true(pl_memory_claimed_bytes(memory) <= CAP);
    assert_int_equal(pl_memory_claimed_bytes(memory), state_now().resident_bytes);
    for (uint32_t i = 0; i < N; i++)
        assert_value(values[(i * 5) % N], (i * 5) % N);
    for (uint32_t i = 0; i < N; i++)
        pl_buffer_unref(values[i]);
}

static void what_is_only_read_is_written_out_once(void **state)
{
    (void)state;
    pl_buffer *value = new_value(2 * PL_MIB, 3);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(pl_pool_evict(pool, 1, NULL), 2 * PL_MIB);
        assert_int_equal(pl_memory_claimed_bytes(memory), 0);
        assert_value(value, 3);
    }
    assert_int_equal(state_now().n_out, 1);
    assert_int_equal(state_now().n_in, 5);
    /* Written to, its copy is worth nothing. */
    void *data;
    assert_int_equal(pl_buffer_pin(value, PL_PIN_WRITE, &data, NULL), 0);
    assert_int_equal(state_now().spilled_bytes, 0);
    fill(data, 2 * PL_MIB, 77);
    pl_buffer_unpin(value);
    assert_int_equal(pl_pool_evict(pool, 1, NULL), 2 * PL_MIB);
    assert_int_equal(state_now().n_out, 2);
    assert_value(value, 77);
    pl_buffer_unref(value);
}

static void what_is_pinned_stays(void **state)
{
    (void)state;
    void *first, *again, *none;
    pl_error error = {0};
    pl_buffer *value = new_value(6 * PL_MIB, 5), *other;
    assert_int_equal(pl_buffer_pin(value, PL_PIN_READ, &first, NULL), 0);
    assert_int_equal(pl_buffer_pin(value, PL_PIN_READ, &again, NULL), 0);
    assert_ptr_equal(first, again);
    pl_buffer_unpin(value);
    assert_int_equal(pl_pool_evict(pool, 1, NULL), 0);
    assert_int_equal(pl_buffer_new(pool, 3 * PL_MIB, "more", &other, &none, &error), PL_EBUDGET);
    assert_non_null(strstr(error.message, "'more'"));
    assert_filled(first, 6 * PL_MIB, 5);
    pl_buffer_unpin(value);
    other = new_value(3 * PL_MIB, 6);
    assert_value(value, 5);
    pl_buffer_unref(value);
    pl_buffer_unref(other);
}

static void ten_thousand_small_values_share_slabs_and_are_spilled_together(void **state)
{
    (void)state;
    enum { N = 10000 };
    static pl_buffer *values[N];
    for (uint32_t i = 0; i < N; i++)
        values[i] = new_value(i % 128, i);
    uint64_t resident = state_now().resident_bytes;
    assert_true(resident >= N * 64 && resident <= 2 * N * 128);
    assert_int_equal(pl_pool_evict(pool, UINT64_MAX, NULL), resident);
    assert_true(state_now().n_out <= 20);
    assert_int_equal(pl_memory_claimed_bytes(memory), 0);
    assert_sound();
    for (uint32_t i = 0; i < N; i += 7)
        assert_value(values[i], i);
    /* Places are used again, also by values of other sizes. */
    for (uint32_t i = 0; i < N; i += 2)
        pl_buffer_unref(values[i]);
    for (uint32_t i = 0; i < N; i += 2)
        values[i] = new_value((i * 3) % 128, i);
    assert_true(state_now().resident_bytes <= resident + PL_MIB);
    assert_sound();
    for (uint32_t i = 0; i < N; i++)
        assert_value(values[i], i);
    for (uint32_t i = 0; i < N; i++)
        pl_buffer_unref(values[i]);
}

static void bytes_are_read_where_they_are(void **state)
{
    (void)state;
    static unsigned char part[5000];
    pl_error error = {0};
    pl_buffer *large = new_value(2 * PL_MIB, 1), *small = new_value(1000, 2);
    for (int away = 0; away < 2; away++) {
        memset(part, 0, sizeof part);
        assert_int_equal(pl_buffer_read(large, 0, part, sizeof part, NULL), 0);
        assert_filled(part, sizeof part, 1);
        assert_int_equal(pl_buffer_read(large, 2 * PL_MIB - 1, part, 1, NULL), 0);
        assert_int_equal(part[0],
                         (unsigned char)(1 + (2 * PL_MIB - 1) * 7 + (2 * PL_MIB - 1) / 251));
        assert_int_equal(pl_buffer_read(small, 0, part, 1000, NULL), 0);
        assert_filled(part, 1000, 2);
        pl_pool_evict(pool, UINT64_MAX, NULL);
        assert_int_equal(pl_memory_claimed_bytes(memory), 0);
    }
    assert_int_equal(state_now().n_in, 0);
    assert_int_equal(pl_buffer_read(small, 999, part, 2, &error), -EINVAL);
    assert_non_null(strstr(error.message, "2 bytes at 999"));
    assert_int_equal(pl_buffer_read(small, UINT64_MAX, part, 2, NULL), -EINVAL);
    pl_buffer_unref(large);
    pl_buffer_unref(small);
}

static void a_value_larger_than_memory_is_written_piece_by_piece(void **state)
{
    (void)state;
    enum { PIECE = 1 << 20, N_PIECES = 20 };
    unsigned char *piece = malloc(PIECE);
    pl_buffer *value;
    void *data;
    pl_error error = {0};
    assert_non_null(piece);
    assert_int_equal(pl_buffer_new_spilled(pool, N_PIECES * PIECE, "big", &value, NULL), 0);
    for (uint32_t i = 0; i < N_PIECES; i++) {
        fill(piece, PIECE, i);
        assert_int_equal(pl_buffer_write(value, (uint64_t)i * PIECE, piece, PIECE, NULL), 0);
    }
    assert_int_equal(pl_memory_peak_bytes(memory), 0);
    for (uint32_t i = 0; i < N_PIECES; i++) {
        assert_int_equal(pl_buffer_read(value, (uint64_t)i * PIECE, piece, PIECE, NULL), 0);
        assert_filled(piece, PIECE, i);
    }
    assert_int_equal(pl_buffer_pin(value, PL_PIN_READ, &data, &error), PL_EBUDGET);
    assert_non_null(strstr(error.message, "'big'"));
    pl_buffer_unref(value);
    free(piece);
}

static void writing_goes_where_the_value_is(void **state)
{
    (void)state;
    static unsigned char bytes[64 * 1024];
    static const uint64_t sizes[] = {1000, 2 * PL_MIB};
    for (size_t i = 0; i < PL_COUNT_OF(sizes); i++) {
        for (int away = 0; away < 2; away++) {
            pl_buffer *value = new_value(sizes[i], 1);
            if (away)
                pl_pool_evict(pool, UINT64_MAX, NULL);
            for (uint64_t at = 0; at < sizes[i]; at += sizeof bytes) {
                uint64_t n = pl_min_u64(sizeof bytes, sizes[i] - at);
                for (uint64_t k = 0; k < n; k++)
                    bytes[k] = (unsigned char)(9 + (at + k) * 7 + (at + k) / 251);
                assert_int_equal(pl_buffer_write(value, at, bytes, n, NULL), 0);
            }
            assert_value(value, 9);
            pl_pool_evict(pool, UINT64_MAX, NULL);
            assert_value(value, 9);
            pl_buffer_unref(value);
        }
    }
}

static void make_file(char path[96], uint64_t bytes)
{
    snprintf(path, 96, "%s/user.npy", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (uint64_t i = 0; i < bytes; i++)
        putc((int)((4 + i * 7 + i / 251) & 255), file);
    assert_int_equal(fclose(file), 0);
}

static void a_window_is_read_in_place_and_dropped_without_writing(void **state)
{
    (void)state;
    char path[96];
    unsigned char part[10];
    void *data;
    pl_error error = {0};
    pl_buffer *window;
    make_file(path, 3 * PL_MIB);
    assert_int_equal(pl_buffer_open_window(pool, path, 0, 3 * PL_MIB, "user's", &window, NULL), 0);
    assert_int_equal(pl_buffer_read(window, 0, part, 10, NULL), 0);
    assert_filled(part, 10, 4);
    assert_int_equal(pl_memory_claimed_bytes(memory), 0);
    assert_value(window, 4);
    assert_int_equal(pl_memory_claimed_bytes(memory), 3 * PL_MIB);
    assert_int_equal(pl_pool_evict(pool, 1, NULL), 3 * PL_MIB);
    assert_int_equal(state_now().n_out, 0);
    assert_int_equal(state_now().spilled_bytes, 0);
    assert_int_equal(pl_buffer_pin(window, PL_PIN_WRITE, &data, &error), -EROFS);
    assert_int_equal(pl_buffer_write(window, 0, part, 1, &error), -EROFS);
    assert_non_null(strstr(error.message, path));

    /* Truncated behind our back: an error, not a signal. */
    assert_int_equal(truncate(path, PL_MIB), 0);
    assert_int_equal(pl_buffer_pin(window, PL_PIN_READ, &data, &error), PL_ECORRUPT);
    assert_non_null(strstr(error.message, "was truncated"));
    assert_non_null(strstr(error.message, path));
    assert_int_equal(pl_memory_claimed_bytes(memory), 0);
    assert_int_equal(pl_buffer_read(window, PL_MIB, part, 10, &error), PL_ECORRUPT);
    assert_int_equal(pl_buffer_read(window, 0, part, 10, &error), 0);
    fault_io.read_error = EIO;
    assert_int_equal(pl_buffer_pin(window, PL_PIN_READ, &data, &error), -EIO);
    fault_io_reset();
    pl_buffer_unref(window);
    unlink(path);
}

static bool stop_at_once(const void *context)
{
    (void)context;
    return true;
}

static void what_is_no_longer_wanted_is_not_brought_into_memory(void **state)
{
    (void)state;
    void *data;
    pl_error error = {0};
    pl_buffer *buffer = new_value(PL_MIB, 3);
    const pl_stop stop = {.asked = stop_at_once};
    assert_true(pl_pool_evict(pool, PL_MIB, NULL) >= PL_MIB);
    assert_int_equal(pl_buffer_pin_unless(buffer, stop, &data, &error), -ECANCELED);
    assert_non_null(strstr(error.message, "'value 3'"));
    assert_int_equal(pl_memory_claimed_bytes(memory), 0);
    assert_sound();
    assert_value(buffer, 3);
    assert_int_equal(pl_buffer_pin_unless(buffer, stop, &data, &error), 0); /* it is there */
    pl_buffer_unpin(buffer);
    pl_buffer_unref(buffer);
}

static void what_cannot_be_a_window_is_refused(void **state)
{
    (void)state;
    char path[96];
    pl_error error = {0};
    pl_buffer *window;
    make_file(path, 1000);
    assert_int_equal(pl_buffer_open_window(pool, path, 1, 1000, "w", &window, &error), PL_ECORRUPT);
    assert_non_null(strstr(error.message, "has 1000 bytes"));
    assert_int_equal(pl_buffer_open_window(pool, path, UINT64_MAX, 2, "w", &window, &error),
                     PL_ECORRUPT);
    assert_int_equal(pl_buffer_open_window(pool, folder, 0, 0, "w", &window, &error), -EINVAL);
    unlink(path);
    assert_int_equal(pl_buffer_open_window(pool, path, 0, 1, "w", &window, &error), -ENOENT);
}

static void a_failed_write_leaves_the_value_where_it_is(void **state)
{
    (void)state;
    static const int errors[] = {EIO, ENOSPC, EDQUOT};
    pl_error error = {0};
    void *none;
    pl_buffer *a = new_value(3 * PL_MIB, 1), *b = new_value(3 * PL_MIB, 2), *c;
    for (size_t i = 0; i < PL_COUNT_OF(errors); i++) {
        for (int n_before = 0; n_before < 2; n_before++) {
            fault_io_reset();
            fault_io.write_error = errors[i];
            fault_io.n_before = n_before;
            fault_io.most_bytes = PL_MIB;
            assert_int_equal(pl_buffer_new(pool, 4 * PL_MIB, "new", &c, &none, &error), PL_EBUDGET);
            assert_non_null(
                strstr(error.message, "idle tensors could not be spilled: cannot write"));
            fault_io_reset();
            assert_sound();
            assert_int_equal(state_now().spilled_bytes, 0);
            assert_int_equal(pl_buffer_pin_cost_bytes(a) + pl_buffer_pin_cost_bytes(b), 0);
            assert_value(a, 1);
            assert_value(b, 2);
        }
    }
    /* With the disk back, all goes on. */
    c = new_value(4 * PL_MIB, 3);
    assert_value(a, 1);
    assert_value(b, 2);
    assert_value(c, 3);
    pl_buffer_unref(a);
    pl_buffer_unref(b);
    pl_buffer_unref(c);
}

static void a_failed_read_leaves_the_value_in_the_file(void **state)
{
    (void)state;
    pl_error error = {0};
    void *data;
    pl_buffer *value = new_value(3 * PL_MIB, 1);
    pl_pool_evict(pool, 1, NULL);
    fault_io.read_error = EIO;
    assert_int_equal(pl_buffer_pin(value, PL_PIN_READ, &data, &error), -EIO);
    assert_non_null(strstr(error.message, "cannot read 3145728 bytes"));
    assert_int_equal(pl_memory_claimed_bytes(memory), 0);
    assert_sound();
    fault_io_reset();
    assert_value(value, 1);
    pl_buffer_unref(value);
}

static void when_the_spill_file_is_full_what_needs_no_writing_still_goes(void **state)
{
    (void)state;
    char path[96];
    pl_buffer *window, *clean = new_value(2 * PL_MIB, 1), *dirty, *more;
    make_file(path, 2 * PL_MIB);
    pl_pool_evict(pool, 1, NULL);
    dirty = new_value(2 * PL_MIB, 2);
    assert_value(clean, 1);
    assert_int_equal(pl_buffer_open_window(pool, path, 0, 2 * PL_MIB, "w", &window, NULL), 0);
    assert_value(window, 4);
    fault_io.write_error = ENOSPC;
    more = new_value(6 * PL_MIB, 3); /* in place of the window and the clean value */
    fault_io_reset();
    assert_int_equal(pl_buffer_pin_cost_bytes(dirty), 0);
    assert_value(dirty, 2);
    assert_value(more, 3);
    assert_value(clean, 1);
    pl_buffer_unref(clean);
    pl_buffer_unref(dirty);
    pl_buffer_unref(more);
    pl_buffer_unref(window);
    unlink(path);
}

static void copies_of_what_is_resident_are_given_up_for_space(void **state)
{
    (void)state;
    pl_pool *small;
    pl_pool *usual = pool;
    const pl_pool_options options = {.spill_directory = folder, .spill_limit_bytes = 4 * PL_MIB};
    assert_int_equal(pl_pool_new(memory, &options, &small, NULL), 0);
    pool = small;
    pl_buffer *a = new_value(3 * PL_MIB, 1), *b;
    void *data;
    pl_pool_evict(pool, 1, NULL);
    assert_int_equal(pl_buffer_pin(a, PL_PIN_READ, &data, NULL), 0);
    b = new_value(3 * PL_MIB, 2);
    assert_int_equal(pl_pool_evict(pool, 1, NULL), 3 * PL_MIB);
    assert_filled(data, 3 * PL_MIB, 1);
    pl_buffer_unpin(a);
    assert_sound();
    assert_value(b, 2);
    assert_value(a, 1);
    pl_buffer_unref(a);
    pl_buffer_unref(b);
    pl_pool_unref(small);
    pool = usual;
    pl_memory_set_evictor(memory, NULL, NULL);
}

static void *evict_one(void *unused)
{
    (void)unused;
    return pl_pool_evict(pool, 1, NULL) ? "gave back" : "kept";
}

/* Another thread that is writing out the oldest value, slowly. */
static pthread_t begin_slow_eviction(void)
{
    pthread_t thread;
    fault_io.write_delay_us = 100000;
    assert_int_equal(pthread_create(&thread, NULL, evict_one, NULL), 0);
    while (fault_io.n_writes == 0)
        usleep(100);
    return thread;
}

static void who_finds_nothing_left_to_evict_waits_for_what_is_leaving(void **state)
{
    (void)state;
    void *outcome;
    pl_buffer *leaving = new_value(6 * PL_MIB, 1);
    pthread_t thread = begin_slow_eviction();
    pl_buffer *other = new_value(5 * PL_MIB, 2); /* would be refused, otherwise */
    pthread_join(thread, &outcome);
    assert_string_equal(outcome, "gave back");
    assert_value(other, 2);
    assert_value(leaving, 1);
    pl_buffer_unref(leaving);
    pl_buffer_unref(other);
}

static void what_is_leaving_can_be_read_and_then_stays(void **state)
{
    (void)state;
    void *outcome, *data;
    pl_buffer *leaving = new_value(2 * PL_MIB, 1);
    pthread_t thread = begin_slow_eviction();
    assert_int_equal(pl_buffer_pin(leaving, PL_PIN_READ, &data, NULL), 0);
    pthread_join(thread, &outcome);
    assert_string_equal(outcome, "kept");
    assert_filled(data, 2 * PL_MIB, 1);
    pl_buffer_unpin(leaving);
    assert_sound();
    assert_int_equal(state_now().n_in, 0);
    fault_io_reset();
    assert_int_equal(pl_pool_evict(pool, 1, NULL), 2 * PL_MIB);
    assert_int_equal(fault_io.n_writes, 0); /* its copy was good */
    assert_value(leaving, 1);
    pl_buffer_unref(leaving);
}

static void who_writes_waits_until_what_is_leaving_has_left(void **state)
{
    (void)state;
    void *outcome, *data;
    pl_buffer *leaving = new_value(2 * PL_MIB, 1);
    pthread_t thread = begin_slow_eviction();
    assert_int_equal(pl_buffer_pin(leaving, PL_PIN_WRITE, &data, NULL), 0);
    assert_filled(data, 2 * PL_MIB, 1);
    fill(data, 2 * PL_MIB, 2);
    pthread_join(thread, &outcome);
    pl_buffer_unpin(leaving);
    fault_io_reset();
    pl_pool_evict(pool, 1, NULL);
    assert_value(leaving, 2);
    pl_buffer_unref(leaving);
}

static void what_is_dropped_while_it_leaves_is_gone(void **state)
{
    (void)state;
    void *outcome;
    pl_buffer *leaving = new_value(2 * PL_MIB, 1);
    pthread_t thread = begin_slow_eviction();
    pl_buffer_unref(leaving);
    pthread_join(thread, &outcome);
    assert_string_equal(outcome, "gave back");
}

static int count_visits(void *context, const pl_buffer_info *info)
{
    uint64_t *sums = context; /* by where */
    sums[info->where] += info->bytes;
    return strcmp(info->what, "value 9") == 0 ? -EINTR : 0;
}

static void what_lives_can_be_listed(void **state)
{
    (void)state;
    uint64_t sums[3] = {0};
    pl_buffer *spilled = new_value(PL_MIB, 1), *resident, *last;
    pl_pool_evict(pool, UINT64_MAX, NULL);
    resident = new_value(2 * PL_MIB, 2);
    assert_string_equal(pl_buffer_what(resident), "value 2");
    assert_int_equal(pl_pool_list(pool, count_visits, sums), 0);
    assert_int_equal(sums[PL_RESIDENT], 2 * PL_MIB);
    assert_int_equal(sums[PL_SPILLED], PL_MIB);
    last = new_value(1, 9);
    assert_int_equal(pl_pool_list(pool, count_visits, sums), -EINTR);
    pl_buffer_unref(last);
    pl_buffer_unref(spilled);
    pl_buffer_unref(resident);
}

static void buffers_keep_their_pool_and_memory_alive(void **state)
{
    (void)state;
    pl_memory *own_memory;
    pl_pool *own_pool, *usual = pool;
    const pl_memory_options options = {.cap_bytes = CAP};
    assert_int_equal(pl_memory_new(&options, &own_memory, NULL), 0);
    assert_int_equal(pl_pool_new(own_memory, NULL, &own_pool, NULL), 0);
    pool = own_pool;
    pl_buffer *value = new_value(PL_MIB, 1);
    pl_pool_unref(own_pool);
    pl_memory_unref(own_memory);
    assert_value(value, 1);
    pl_buffer_unref(pl_buffer_ref(value));
    assert_value(value, 1);
    pl_buffer_unref(value);
    pl_buffer_unref(NULL);
    pl_pool_unref(NULL);
    pool = usual;
}

/* In a forked child: 0 if nothing of the parent's can be harmed. */
static int live_as_child(pl_buffer *value)
{
    void *data;
    char byte;
    pl_buffer *other;
    pl_error error = {0};
    if (pl_buffer_pin(value, PL_PIN_READ, &data, &error) != -ECHILD ||
        !strstr(error.message, "after the fork"))
        return 1;
    if (pl_buffer_read(value, 0, &byte, 1, NULL) != -ECHILD ||
        pl_buffer_new(pool, 10, "child's", &other, &data, NULL) != -ECHILD)
        return 2;
    if (pl_pool_evict(pool, UINT64_MAX, NULL) != 0)
        return 3;
    pl_buffer_unref(value);
    pl_pool *own;
    if (pl_pool_new(memory, NULL, &own, NULL) < 0)
        return 4;
    if (pl_buffer_new(own, 4 * PL_MIB, "child's", &other, &data, NULL) < 0)
        return 5;
    pl_buffer_unpin(other);
    pl_buffer_unref(other);
    pl_pool_unref(own);
    return pl_memory_claimed_bytes(memory) == 0 ? 0 : 6;
}

static void a_forked_child_cannot_harm_its_parents_values(void **state)
{
    (void)state;
    pl_buffer *value = new_value(3 * PL_MIB, 1), *spilled = new_value(3 * PL_MIB, 2);
    pl_pool_evict(pool, 1, NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(live_as_child(value));
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_value(value, 1);
    assert_value(spilled, 2);
    pl_buffer_unref(value);
    pl_buffer_unref(spilled);
}

static bool fault_was_hit;

static void stop_faults(void)
{
    fault_was_hit = fault_alloc.fail_at ? fault_alloc_end() : fault_io.n_failures == 0;
    fault_io_reset();
}

/* One of each, moved about. 0, or what failed. */
static int do_everything(pl_error *reterr)
{
    pl_buffer *small = NULL, *large = NULL, *third = NULL, *spilled = NULL, *window = NULL;
    char path[96], byte;
    void *data = NULL;
    snprintf(path, sizeof path, "%s/user.npy", folder);
    int r = pl_buffer_new(pool, 100, "small", &small, &data, reterr);
    if (r == 0) {
        fill(data, 100, 1);
        pl_buffer_unpin(small);
        r = pl_buffer_new(pool, 5 * PL_MIB, "large", &large, &data, reterr);
    }
    if (r == 0) {
        fill(data, 5 * PL_MIB, 2);
        pl_buffer_unpin(large);
        r = pl_buffer_new(pool, 5 * PL_MIB, "third", &third, &data, reterr);
    }
    if (r == 0) {
        fill(data, 5 * PL_MIB, 3);
        pl_buffer_unpin(third);
        r = pl_buffer_new_spilled(pool, PL_MIB, "spilled", &spilled, reterr);
    }
    if (r == 0)
        r = pl_buffer_write(spilled, 0, "x", 1, reterr);
    if (r == 0)
        r = pl_buffer_open_window(pool, path, 0, 1000, "window", &window, reterr);
    if (r == 0)
        r = pl_buffer_read(window, 0, &byte, 1, reterr);
    if (r == 0)
        r = pl_buffer_pin(large, PL_PIN_READ, &data, reterr);
    if (r == 0) {
        assert_filled(data, 5 * PL_MIB, 2);
        pl_buffer_unpin(large);
    }
    /* Whatever failed, the values that there are are whole. */
    stop_faults();
    if (small)
        assert_value(small, 1);
    if (large)
        assert_value(large, 2);
    if (third)
        assert_value(third, 3);
    pl_buffer_unref(small);
    pl_buffer_unref(large);
    pl_buffer_unref(third);
    pl_buffer_unref(spilled);
    pl_buffer_unref(window);
    return r;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    fault_need_alloc();
    char path[96];
    make_file(path, 1000);
    int n_hits = 0;
    fault_was_hit = true;
    for (int number = 1; fault_was_hit; number++) {
        pl_error error = {0};
        fault_alloc_begin(number);
        int r = do_everything(&error);
        n_hits += fault_was_hit;
        /* A refusal, where an eviction could not be written down. */
        assert_true(r == 0 || r == -ENOMEM || r == PL_EBUDGET);
        assert_true(r == 0 || (fault_was_hit && error.message[0]));
        assert_nothing_is_left();
    }
    assert_true(n_hits >= 12);
    unlink(path);
}

static void every_call_of_the_disk_may_fail(void **state)
{
    (void)state;
    char path[96];
    int n_failed = 0;
    make_file(path, 1000);
    for (int kind = 0; kind < 3; kind++) {
        fault_was_hit = true;
        for (int n_before = 0; fault_was_hit; n_before++) {
            pl_error error = {0};
            fault_io.read_error = kind == 0 ? EIO : 0;
            fault_io.write_error = kind == 1 ? EIO : 0;
            fault_io.reserve_error = kind == 2 ? ENOSPC : 0;
            fault_io.n_before = n_before;
            fault_io.n_failures = kind == 2 ? 2 : 1; /* a smaller request follows the first */
            int r = do_everything(&error);
            n_failed += r < 0;
            assert_true(r == 0 || (fault_was_hit && error.message[0]));
            assert_nothing_is_left();
        }
    }
    assert_true(n_failed >= 5);
    unlink(path);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(idle_values_leave_least_recently_used_first_and_come_back),
        TEST(what_is_only_read_is_written_out_once),
        TEST(what_is_pinned_stays),
        TEST(ten_thousand_small_values_share_slabs_and_are_spilled_together),
        TEST(bytes_are_read_where_they_are),
        TEST(a_value_larger_than_memory_is_written_piece_by_piece),
        TEST(writing_goes_where_the_value_is),
        TEST(a_window_is_read_in_place_and_dropped_without_writing),
        TEST(what_is_no_longer_wanted_is_not_brought_into_memory),
        TEST(what_cannot_be_a_window_is_refused),
        TEST(a_failed_write_leaves_the_value_where_it_is),
        TEST(a_failed_read_leaves_the_value_in_the_file),
        TEST(when_the_spill_file_is_full_what_needs_no_writing_still_goes),
        TEST(copies_of_what_is_resident_are_given_up_for_space),
        TEST(who_finds_nothing_left_to_evict_waits_for_what_is_leaving),
        TEST(what_is_leaving_can_be_read_and_then_stays),
        TEST(who_writes_waits_until_what_is_leaving_has_left),
        TEST(what_is_dropped_while_it_leaves_is_gone),
        TEST(what_lives_can_be_listed),
        TEST(buffers_keep_their_pool_and_memory_alive),
        TEST(a_forked_child_cannot_harm_its_parents_values),
        TEST(every_allocation_may_fail),
        TEST(every_call_of_the_disk_may_fail),
    };
    return cmocka_run_group_tests_name("buffer", tests, NULL, NULL);
}
