/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a ledger file: opening says no, or everything that reads and writes a ledger comes
 * back. An input is a file as it is (first byte even), or (odd) a length and patches for a good
 * one: u32 length of the file; then, until the input ends, u32 where, u8 n, n bytes all
 * little-endian; where and length are folded into range, and every second `where` falls into header
 * and sum, which decide most. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"
#include "ledger/ledger.h"

static uint8_t good[sizeof(pl_ledger)]; /* a small but lively ledger */
static char memory_path[32];            /* of a file that has no name and no disk */
static int memory_fd = -1;

static void fill_ledger(pl_ledger *ledger)
{
    bool is_new;
    pl_owner owner;
    REQUIRE(pl_ledger_join(ledger, 1, &owner) == 0);
    REQUIRE(pl_ledger_claim(ledger, owner, 1000, PL_CLAIM_REFUSABLE) == 0);
    pl_ledger_measure(ledger, owner, 50);
    for (int i = 0; i < 5; i++)
        pl_ledger_mark(ledger, "a mark");
    for (uint64_t i = 0; i < 100; i++)
        pl_ledger_sample(ledger, &(pl_memory_sample){.time_ns = i * PL_NS_PER_SEC});
    for (uint64_t key = 1; key < 50; key++)
        pl_site_add(pl_ledger_site(ledger, key * 40, getpid(), &is_new), 100, 1);
    pl_ledger_module(ledger, "/lib/libc.so.6");
}

static void make_good_ledger(void)
{
    char folder[] = "/tmp/plimsoll-fuzz-XXXXXX";
    char path[64];
    pl_ledger *ledger;
    const pl_ledger_params params = {.limit_bytes = 1 << 20, .reserve_bytes = 1 << 10};
    REQUIRE(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/ledger", folder);
    REQUIRE(pl_ledger_create(path, &params, &ledger, NULL) == 0);
    unlink(path);
    rmdir(folder);
    fill_ledger(ledger);
    memcpy(good, ledger, sizeof good);
    pl_ledger_close(ledger);

    memory_fd = memfd_create("fuzz_ledger", MFD_CLOEXEC);
    REQUIRE(memory_fd >= 0);
    snprintf(memory_path, sizeof memory_path, "/proc/self/fd/%d", memory_fd);
}

/* What is left of an input. Reads past its end are zeroes. */
typedef struct input {
    const uint8_t *bytes;
    size_t n;
} input;

static uint32_t take_u32(input *in)
{
    uint8_t word[4] = {0};
    size_t n = in->n < sizeof word ? in->n : sizeof word;
    memcpy(word, in->bytes, n);
    in->bytes += n;
    in->n -= n;
    return (uint32_t)word[0] | (uint32_t)word[1] << 8 | (uint32_t)word[2] << 16 |
           (uint32_t)word[3] << 24;
}

static void write_file(const void *bytes, size_t n)
{
    REQUIRE(ftruncate(memory_fd, 0) == 0);
    REQUIRE(pwrite(memory_fd, bytes, n, 0) == (ssize_t)n);
}

static void apply_patch(input *in)
{
    uint32_t where = take_u32(in);
    size_t range = where & 1 ? offsetof(pl_ledger, slots) : sizeof good;
    size_t offset = (where >> 1) % range;
    if (in->n == 0)
        return;
    size_t n = *in->bytes++;
    in->n--;
    n = pl_min_u64(n, pl_min_u64(in->n, sizeof good - offset));
    REQUIRE(pwrite(memory_fd, in->bytes, n, (off_t)offset) == (ssize_t)n);
    in->bytes += n;
    in->n -= n;
}

static void write_patched(input *in)
{
    write_file(good, sizeof good);
    uint32_t length = take_u32(in);
    while (in->n > 0)
        apply_patch(in);
    /* Mostly whole: a file that is too short is refused early, and teaches nothing more. */
    if (length % 8 == 0)
        REQUIRE(ftruncate(memory_fd, (off_t)(length / 8 % (2 * sizeof good))) == 0);
}

static void read_everything(const pl_ledger *ledger)
{
    pl_error error = {0};
    pl_event event;
    int r = pl_ledger_check(ledger, &error);
    REQUIRE(r == 0 || r == PL_ECORRUPT);
    uint64_t next = atomic_load(&ledger->sum.next_event);
    for (uint64_t i = 0; i <= PL_EVENTS; i++)
        if (pl_ledger_event_read(ledger, next - i, &event))
            REQUIRE(atomic_load(&event.sequence) == next - i + 1);
    (void)pl_ledger_headroom_bytes(ledger);
}

static void write_everything(pl_ledger *ledger)
{
    bool is_new;
    pl_owner owner;
    pl_ledger_reclaim(ledger);
    if (pl_ledger_join(ledger, 1, &owner) == 0) {
        REQUIRE(owner >= 0 && owner < PL_SLOTS);
        if (pl_ledger_claim(ledger, owner, 100, PL_CLAIM_RESERVE) == 0)
            pl_ledger_release(ledger, owner, 100);
        pl_ledger_measure(ledger, owner, 10);
        pl_ledger_leave(ledger, owner);
    }
    pl_ledger_mark(ledger, "fuzz");
    pl_ledger_sample(ledger, &(pl_memory_sample){.time_ns = 1});
    pl_ledger_sample(ledger, &(pl_memory_sample){.time_ns = PL_NS_PER_SEC});
    pl_site *site = pl_ledger_site(ledger, 2000, getpid(), &is_new);
    if (site)
        pl_site_add(site, -5, -1);
    pl_ledger_mark_peak(ledger);
    REQUIRE(pl_ledger_module(ledger, "/lib/libm.so.6") <= PL_MODULES);
}

static void use_file(void)
{
    pl_error error = {0};
    pl_ledger *ledger;
    struct stat info;
    for (int writable = 0; writable <= 1; writable++) {
        int r = pl_ledger_open(memory_path, writable, &ledger, &error);
        REQUIRE(fstat(memory_fd, &info) == 0);
        REQUIRE(r < 0 || (size_t)info.st_size >= sizeof(pl_ledger));
        if (r < 0)
            return;
        read_everything(ledger);
        if (writable)
            write_everything(ledger);
        pl_ledger_close(ledger);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (memory_fd < 0)
        make_good_ledger();
    if (n == 0)
        return 0;
    input in = {.bytes = data + 1, .n = n - 1};
    if (data[0] & 1)
        write_patched(&in);
    else
        write_file(in.bytes, in.n);
    use_file();
    return 0;
}

#ifndef PL_LIBFUZZER

static int open_memory_file(void)
{
    pl_ledger *ledger = NULL;
    int r = pl_ledger_open(memory_path, 1, &ledger, NULL);
    pl_ledger_close(ledger);
    return r;
}

static void a_good_ledger_is_taken_and_its_damaged_twin_is_not(void **state)
{
    (void)state;
    const uint8_t no_patch[] = {1, 1, 0, 0, 0};
    const uint8_t no_magic[] = {1, 1, 0, 0, 0, 1, 0, 0, 0, 1, 'P'};
    const uint8_t ten_bytes[] = {1, 80, 0, 0, 0};
    try_input(no_patch, sizeof no_patch);
    assert_int_equal(open_memory_file(), 0);
    try_input(no_magic, sizeof no_magic);
    assert_int_equal(open_memory_file(), PL_ECORRUPT);
    try_input(ten_bytes, sizeof ten_bytes);
    assert_int_equal(open_memory_file(), PL_ECORRUPT);
}

static void no_bytes_harm_whoever_opens_them(void **state)
{
    (void)state;
    static uint8_t bytes[512];
    srandom(1);
    for (long i = 0; i < n_tries; i++) {
        size_t n = (size_t)random() % sizeof bytes;
        for (size_t k = 0; k < n; k++)
            bytes[k] = (uint8_t)(random() % 4 ? random() : -(random() % 2));
        if (n > 9 && random() % 2)
            bytes[9] = (uint8_t)(random() % 9); /* one short patch leaves most of it good */
        try_input(bytes, n);
    }
}

int main(int argc, char **argv)
{
    read_arguments(argc, argv, 2000);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_ledger_is_taken_and_its_damaged_twin_is_not),
        cmocka_unit_test(no_bytes_harm_whoever_opens_them),
    };
    return cmocka_run_group_tests_name("fuzz_ledger", tests, NULL, NULL);
}

#endif
