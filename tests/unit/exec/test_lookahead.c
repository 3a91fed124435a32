/* SPDX-License-Identifier: Apache-2.0 */
/* What is to come is asked for, all of it, a little at a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "exec/step/lookahead.h"

static pl_lookahead ahead_of(int n_streams, int n_operations, bool is_taken, int64_t strip,
                             int64_t item_bytes)
{
    pl_lookahead ahead = {
        .n_streams = n_streams, .n_operations = n_operations, .is_taken = is_taken};
    pl_lookahead_set_piece(&ahead, strip, strip * item_bytes * n_streams);
    return ahead;
}

/* Begins a strip of n elements on all streams, and asks before each call as a chain does. */
static void run_strip(pl_lookahead *ahead, int64_t n, int64_t item_bytes)
{
    int64_t n_calls = pl_lookahead_n_calls(ahead, n), n_asked = 0;
    for (int i = 0; i < ahead->n_streams; i++)
        pl_lookahead_stream_begin(&ahead->streams[i], (uintptr_t)(i * 1000), n * item_bytes,
                                  n_calls);
    for (int i = 0; i < ahead->n_operations; i++)
        for (int64_t begin = 0; begin < n; begin += ahead->piece, n_asked++)
            pl_lookahead_ask(ahead);
    for (int i = 0; i < ahead->is_taken; i++, n_asked++)
        pl_lookahead_ask(ahead);
    assert_int_equal(n_asked, n_calls);
}

static void all_lines_are_asked_for_by_the_end_of_a_strip(void **state)
{
    (void)state;
    static const int64_t lengths[] = {127, 128, 129, 300, 511, 512, 513, 1023, 1024, 4095, 4096};
    for (int n_streams = 1; n_streams <= PL_LOOKAHEAD_STREAMS_MAX; n_streams++)
        for (int n_operations = 1; n_operations <= 9; n_operations++)
            for (int64_t item_bytes = 1; item_bytes <= 8; item_bytes *= 2) {
                int64_t strip = item_bytes < 8 ? 4096 / item_bytes : 512;
                pl_lookahead ahead =
                    ahead_of(n_streams, n_operations, n_operations % 2, strip, item_bytes);
                for (int64_t i = 1; i <= 100 + (int64_t)PL_COUNT_OF(lengths); i++) {
                    int64_t n = i <= 100 ? i : lengths[i - 101];
                    if (n > strip)
                        continue;
                    run_strip(&ahead, n, item_bytes);
                    for (int k = 0; k < n_streams; k++) {
                        const pl_lookahead_stream *s = &ahead.streams[k];
                        assert_int_equal(s->next, s->end);
                        assert_int_equal(s->end - (uintptr_t)(k * 1000),
                                         n * item_bytes / PL_LOOKAHEAD_LINE_BYTES *
                                             PL_LOOKAHEAD_LINE_BYTES);
                    }
                }
            }
}

static void pieces_are_short_where_shares_would_be_long(void **state)
{
    (void)state;
    /* 128 lines before four pieces of two operations, and before the strip is taken */
    pl_lookahead two = ahead_of(2, 2, true, 1024, 4);
    assert_int_equal(two.piece, 256);
    assert_int_equal(pl_lookahead_n_calls(&two, 1024), 9);
    /* One stream, and ten operations: whole strips */
    assert_int_equal(ahead_of(1, 10, false, 1024, 4).piece, 1024);
    /* However many streams: no call is for a few elements only */
    assert_int_equal(ahead_of(PL_LOOKAHEAD_STREAMS_MAX, 2, false, 1024, 4).piece,
                     PL_LOOKAHEAD_PIECE_LEAST);
    /* A strip that is shorter than a piece */
    assert_true(ahead_of(3, 2, true, 1, 4).piece > 0);
    assert_int_equal(pl_lookahead_n_calls(&two, 1), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_lines_are_asked_for_by_the_end_of_a_strip),
        cmocka_unit_test(pieces_are_short_where_shares_would_be_long),
    };
    return cmocka_run_group_tests_name("ahead", tests, NULL, NULL);
}
