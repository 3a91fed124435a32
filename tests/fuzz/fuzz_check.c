/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a file that `plimsoll check` looks at: of the format that the first byte says, or of
 * the one they are recognised as. It comes to a finding that a terminal can show, or to none,
 * within a small budget, and nothing stays claimed. */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "verify/schema.h"
#include "verify/verify.h"

enum { FILE_MAX = 1 << 16 };

static long n_good, n_bad; /* 0 of either would make the test worthless */

static void check_finding(const pl_verify_finding *finding)
{
    n_good += finding->severity == PL_VERIFY_GOOD;
    n_bad += finding->severity == PL_VERIFY_ERROR;
    REQUIRE(finding->severity <= PL_VERIFY_ERROR);
    REQUIRE((finding->severity == PL_VERIFY_GOOD) == (finding->reason[0] == '\0'));
    for (const char *c = finding->reason; *c; c++)
        REQUIRE(*c >= ' ' && *c <= '~');
}

static void look_at(const char *path, pl_verify_format format, bool size_only, pl_memory *memory)
{
    static const atomic_bool stopped;
    const pl_verify_options options = {.format = format, .values = true, .memory = memory};
    pl_verify_room room;
    pl_error error = {0};
    REQUIRE(pl_verify_room_init(&room, memory, &error) == 0);
    pl_verify_file file = {
        .path = path,
        .memory = memory,
        .room = &room,
        .stopped = &stopped,
        .want_values = true,
        .want_size_only = size_only,
        .limit_bytes = PL_MIB,
    };
    int r = pl_verify_look(&file, &options, &error);
    REQUIRE(r == 0 || r == PL_EBUDGET);
    if (r < 0)
        check_message(r, &error);
    else
        check_finding(&file.finding);
    pl_verify_schema_free(file.schema);
    pl_verify_leave_folder(&room.folder);
    pl_verify_room_done(&room, memory);
    REQUIRE(pl_memory_claimed_bytes(memory) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static pl_memory *memory;
    static int fd = -1;
    char path[64];
    if (n == 0 || n > FILE_MAX)
        return 0;
    if (fd < 0) {
        const pl_memory_options options = {.cap_bytes = 16 * PL_MIB};
        fd = memfd_create("fuzz", MFD_CLOEXEC);
        REQUIRE(fd >= 0 && pl_memory_new(&options, &memory, NULL) == 0);
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    REQUIRE(pwrite(fd, data + 1, n - 1, 0) == (ssize_t)n - 1 && ftruncate(fd, (off_t)n - 1) == 0);
    look_at(path, (pl_verify_format)(data[0] % 32 % PL_VERIFY_N_FORMATS), data[0] >= 224, memory);
    return 0;
}

#ifndef PL_LIBFUZZER

#include "unit/small_images.h"

static const struct sample {
    const void *bytes;
    size_t n;
} samples[] = {
    {small_jpeg, sizeof small_jpeg},
    {small_png, sizeof small_png},
    {small_palette, sizeof small_palette},
    {"[1, {\"k\": \"v\"}, null]\n", 22},
    {"a,b,c\n1,2,3\n4,\"5\",6\n", 20},
    {"some\nlines of text\n", 19},
    {"\x93NUMPY\1\0\x46\0{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }            "
     "\n\0\0\xc0\x7f",
     84},
    {"\x1f\x8b\x08\0\0\0\0\0\0\xff\x4b\x4c\x4a\xe6\x02\0\x4e\x81\x88\x47\4\0\0\0", 24},
    {"PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 22},
    {"BM:\0\0\0\0\0\0\0\66\0\0\0\50\0\0\0\1\0\0\0\1\0\0\0\1\0\30\0", 30},
};

static void no_bytes_harm_whoever_checks_them(void **state)
{
    (void)state;
    static uint8_t input[4096];
    srandom(1);
    for (long i = 0; i < n_tries; i++) {
        const struct sample *one = &samples[(size_t)random() % PL_COUNT_OF(samples)];
        size_t n = one->n;
        memcpy(input + 1, one->bytes, n);
        for (long left = random() % 3; left > 0; left--)
            input[1 + (size_t)random() % n] = (uint8_t)random();
        if (random() % 8 == 0)
            n = (size_t)random() % n;
        input[0] = (uint8_t)(random() % 2 ? 0 : random());
        try_input(input, 1 + n);
    }
    assert_true(n_tries < 1000 || n_good > n_tries / 10);
    assert_true(n_tries < 1000 || n_bad > n_tries / 10);
}

int main(int argc, char **argv)
{
    read_arguments(argc, argv, 10000);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_bytes_harm_whoever_checks_them),
    };
    return cmocka_run_group_tests_name("fuzz_check", tests, NULL, NULL);
}

#endif
