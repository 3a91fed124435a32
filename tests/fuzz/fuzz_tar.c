/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a tar archive: it has an end, its entries lie within it and follow each other, the
 * same whatever the window; what is refused is told. Checksums would refuse nearly all: they are
 * set right first, unless the first byte is odd. */
#include "fuzz.h"

#include <errno.h>

#include "codec/archive/sample_name.h"
#include "codec/archive/tar.h"

static long n_entries, n_corrupt, n_sparse, n_ends; /* 0 of any would make the test worthless */

static void set_sum(uint8_t *block)
{
    unsigned sum = 0;
    memset(block + 148, ' ', 8);
    for (int i = 0; i < PL_TAR_BLOCK_BYTES; i++)
        sum += block[i];
    char text[8];
    snprintf(text, sizeof text, "%06o", sum);
    memcpy(block + 148, text, 7);
}

/* One step, from a window that has as much as was asked for. */
static int step(pl_tar *tar, const uint8_t *bytes, size_t n, pl_tar_entry *entry, pl_error *error)
{
    size_t need = 1;
    for (;;) {
        REQUIRE(tar->offset <= n + PL_TAR_BLOCK_BYTES);
        size_t at = tar->offset < n ? tar->offset : n, left = n - at;
        bool is_last = need >= left;
        size_t now = is_last ? left : need, asked = need;
        uint8_t *window = exact(bytes + at, now);
        int r = pl_tar_next(tar, window, now, is_last, entry, &need, error);
        free(window);
        if (r != 0 || need == 0)
            return r;
        REQUIRE(!is_last && need <= PL_TAR_WINDOW_BYTES);
        REQUIRE(need > asked || tar->offset > at);
    }
}

static void check_entry(const pl_tar *tar, const pl_tar_entry *entry, uint64_t before, size_t n)
{
    pl_sample_name name;
    REQUIRE(entry->offset >= before && entry->data_offset >= entry->offset + PL_TAR_BLOCK_BYTES);
    REQUIRE(entry->data_offset + entry->data_bytes <= n);
    REQUIRE(tar->offset >= entry->data_offset + entry->data_bytes);
    REQUIRE(entry->n_name < PL_TAR_NAME_BYTES && strlen(entry->name) == entry->n_name);
    if (pl_sample_name_split(entry->name, entry->n_name, &name))
        REQUIRE(name.n_key > 0 && name.n_key + 1 + name.n_extension == entry->n_name);
}

/* Both readers go on together: one has all of the bytes, the other as few as it can. */
static void walk(const uint8_t *bytes, size_t n)
{
    pl_tar tar, slow;
    pl_tar_init(&tar, n);
    pl_tar_init(&slow, n);
    for (;;) {
        pl_tar_entry entry, same;
        pl_error error = {0}, again = {0};
        size_t need = 1;
        uint64_t before = tar.offset;
        size_t at = before < n ? before : n;
        int r = pl_tar_next(&tar, bytes + at, n - at, true, &entry, &need, &error);
        REQUIRE(step(&slow, bytes, n, &same, &again) == r && slow.offset == tar.offset);
        if (r < 0) {
            check_message(r, &error);
            REQUIRE(strcmp(error.message, again.message) == 0);
        }
        n_ends += r == 0;
        n_corrupt += r == PL_ECORRUPT;
        n_sparse += r == -ENOTSUP;
        n_entries += r == 1;
        if (r == 0 || r == PL_ECORRUPT)
            return;
        REQUIRE(tar.offset > before && (r == 1 || r == -ENOTSUP));
        if (r == 1)
            check_entry(&tar, &entry, before, n);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n == 0 || n > 1 << 17)
        return 0;
    uint8_t *file = exact(data + 1, n - 1);
    if (data[0] % 2 == 0) /* of every block that looks like a header's */
        for (size_t at = 0; at + PL_TAR_BLOCK_BYTES < n; at += PL_TAR_BLOCK_BYTES)
            if (memcmp(file + at + 257, "ustar", 5) == 0)
                set_sum(file + at);
    walk(file, n - 1);
    free(file);
    return 0;
}

#ifndef PL_LIBFUZZER

static size_t add_header(uint8_t *file, char type, size_t n_data)
{
    uint8_t *block = memset(file, 0, PL_TAR_BLOCK_BYTES);
    static const char *const names[] = {"a.jpg", "dir/b.seg.png", "dir/", ".hidden", "\x1b\xff"};
    strcpy((char *)block, names[random() % 5]);
    snprintf((char *)block + 124, 12, "%011zo", n_data);
    if (random() % 8 == 0) { /* binary */
        memset(block + 124, 0, 12);
        block[124] = 0x80;
        block[134] = (uint8_t)(n_data >> 8);
        block[135] = (uint8_t)n_data;
    }
    block[156] = (uint8_t)type;
    memcpy(block + 257,
           random() % 2 ? "ustar\0"
                          "00"
                        : "ustar  ",
           8);
    if (random() % 4 == 0)
        memset(block + 345, 'p', 1 + (size_t)random() % 155);
    if (type == 'S')
        block[482] = (uint8_t)(random() % 2);
    return PL_TAR_BLOCK_BYTES;
}

static size_t add_data(uint8_t *file, const char *data, size_t n)
{
    size_t all = (n + PL_TAR_BLOCK_BYTES - 1) / PL_TAR_BLOCK_BYTES * PL_TAR_BLOCK_BYTES;
    memset(file, 0, all);
    memcpy(file, data, n);
    return all;
}

static size_t add_entry(uint8_t *file)
{
    static const char attributes[][64] = {
        "12 path=abc\n", "9 size=3\n", "27 GNU.sparse.major=1, or 2\n", "16 comment=none\n",
        "99 path=abc\n", "x",          "18 path=some/name\n9 size=5\n",
    };
    static const char types[] = "000000007512SLLKxxxxgX\0?";
    char type = types[(size_t)random() % sizeof types];
    char data[1024];
    size_t n = (size_t)random() % 700;
    memset(data, 'd', sizeof data);
    if (type == 'x' || type == 'g' || type == 'X') {
        const char *text = attributes[random() % 7];
        n = strlen(text);
        memcpy(data, text, n);
    }
    size_t at = add_header(file, type, n);
    return at + add_data(file + at, data, n);
}

static size_t damage(uint8_t *file, size_t n)
{
    for (long left = random() % 4; left > 0; left--)
        file[(size_t)random() % n] = (uint8_t)random();
    return random() % 4 ? n : 1 + (size_t)random() % n;
}

static void no_bytes_harm_whoever_walks_them(void **state)
{
    (void)state;
    static uint8_t input[16384];
    srandom(1);
    for (long i = 0; i < n_tries; i++) {
        size_t n = 1;
        for (long left = random() % 6; left > 0; left--)
            n += add_entry(input + n);
        memset(input + n, 0, 1024);
        n += 1024;
        input[0] = (uint8_t)(random() % 8 == 0);
        size_t all = random() % 2 ? 1 + damage(input + 1, n - 1) : n;
        try_input(input, all);
    }
    assert_true(n_tries < 1000 || n_entries > n_tries / 2);
    assert_true(n_tries < 1000 || n_corrupt > n_tries / 10);
    assert_true(n_tries < 1000 || n_sparse > n_tries / 50);
    assert_true(n_tries < 1000 || n_ends > n_tries / 10);
}

int main(int argc, char **argv)
{
    read_arguments(argc, argv, 100000);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_bytes_harm_whoever_walks_them),
    };
    return cmocka_run_group_tests_name("fuzz_tar", tests, NULL, NULL);
}

#endif
