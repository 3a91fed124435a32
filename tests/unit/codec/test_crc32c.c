/* SPDX-License-Identifier: Apache-2.0 */
/* The instruction, the table and a loop over bits agree, on any length and alignment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "codec/record/crc32c.h"

enum { N = 12000 };

static uint8_t bytes[N];

static int fill(void **state)
{
    (void)state;
    srandom(1);
    for (size_t i = 0; i < N; i++)
        bytes[i] = (uint8_t)random();
    return 0;
}

static uint32_t by_bits(uint32_t crc, const uint8_t *at, size_t n)
{
    crc = ~crc;
    for (; n > 0; n--) {
        crc ^= *at++;
        for (int i = 0; i < 8; i++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    return ~crc;
}

static void published_sums_are_found(void **state)
{
    (void)state;
    uint8_t some[32];
    /* RFC 3720, B.4 */
    memset(some, 0, sizeof some);
    assert_int_equal(pl_crc32c(0, some, sizeof some), 0x8a9136aau);
    memset(some, 0xff, sizeof some);
    assert_int_equal(pl_crc32c(0, some, sizeof some), 0x62a8ab43u);
    for (uint8_t i = 0; i < sizeof some; i++)
        some[i] = i;
    assert_int_equal(pl_crc32c(0, some, sizeof some), 0x46dd794eu);
    assert_int_equal(pl_crc32c(0, "123456789", 9), 0xe3069283u);
    assert_int_equal(pl_crc32c_mask(0xe3069283u), 0xc78ab0e5u);
    assert_int_equal(pl_crc32c(0, NULL, 0), 0);
}

static void every_way_gives_the_same_for_every_length(void **state)
{
    (void)state;
    /* Up to more than one long and one short set of lanes, then some. */
    for (size_t n = 0; n < 4200; n += n < 900 ? 1 : 13) {
        size_t begin = n % 9;
        uint32_t wanted = by_bits(7, bytes + begin, n);
        assert_int_equal(pl_crc32c_by_table(7, bytes + begin, n), wanted);
        assert_int_equal(pl_crc32c_by_lanes(7, bytes + begin, n), wanted);
        assert_int_equal(pl_crc32c(7, bytes + begin, n), wanted);
    }
    assert_int_equal(pl_crc32c(0, bytes, N), by_bits(0, bytes, N));
}

/* From blocks of their own, so that a sanitizer sees what is read beside them; and where a page
 * ends before or behind them. */
static void nothing_beside_the_bytes_is_read(void **state)
{
    (void)state;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *pages = mmap(NULL, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
            *middle = pages + page;
    assert_ptr_not_equal(pages, MAP_FAILED);
    assert_int_equal(mprotect(middle, page, PROT_READ | PROT_WRITE), 0);
    memcpy(middle, bytes, page);
    for (size_t n = 0; n < 700; n++) {
        uint8_t *block = malloc(n ? n : 1);
        memcpy(block, bytes, n);
        assert_int_equal(pl_crc32c(0, block, n), by_bits(0, bytes, n));
        assert_int_equal(pl_crc32c(0, middle, n), by_bits(0, bytes, n));
        assert_int_equal(pl_crc32c(0, middle + page - n, n), by_bits(0, bytes + page - n, n));
        free(block);
    }
    assert_int_equal(munmap(pages, 3 * page), 0);
}

static void a_sum_goes_on_from_where_it_was(void **state)
{
    (void)state;
    uint32_t whole = pl_crc32c(0, bytes, N);
    for (size_t cut = 0; cut <= N; cut += 7) {
        uint32_t first = pl_crc32c(0, bytes, cut);
        assert_int_equal(pl_crc32c(first, bytes + cut, N - cut), whole);
        assert_int_equal(pl_crc32c_by_table(first, bytes + cut, N - cut), whole);
        assert_int_equal(pl_crc32c_by_lanes(first, bytes + cut, N - cut), whole);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_sums_are_found),
        cmocka_unit_test(every_way_gives_the_same_for_every_length),
        cmocka_unit_test(nothing_beside_the_bytes_is_read),
        cmocka_unit_test(a_sum_goes_on_from_where_it_was),
    };
    return cmocka_run_group_tests_name("crc32c", tests, fill, NULL);
}
