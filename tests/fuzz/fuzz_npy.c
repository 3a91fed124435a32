/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an .npy file: parsing says no, with a message, or what it says holds. An input is a
 * file as it is (first byte even), or (odd) a header's text, for which a prologue of the version in
 * the first byte's next two bits is made. */
#include "codec/npy/npy.h"
#include "fuzz.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

enum { PROLOGUE_BYTES = 12 };

static long n_taken; /* inputs that were parsed: 0 would make the test worthless */

static void check_taken(const pl_npy *npy, uint64_t file_bytes)
{
    int64_t bytes;
    REQUIRE(pl_shape_is_known(&npy->shape));
    REQUIRE(npy->shape.rank >= 0 && npy->shape.rank <= PL_RANK_MAX);
    REQUIRE(pl_shape_bytes(&npy->shape, npy->item_bytes, &bytes, NULL) == 0);
    REQUIRE((uint64_t)bytes == npy->data_bytes);
    REQUIRE(npy->data_offset + npy->data_bytes <= file_bytes);
    REQUIRE(npy->dtype != PL_DTYPE_NONE);
    REQUIRE(npy->dtype == PL_STRING || npy->item_bytes == pl_dtype_info_of(npy->dtype)->item_bytes);
    REQUIRE(!npy->swap || npy->item_bytes > 1);
}

/* What was parsed, written again, is parsed as the same. */
static void check_written(const pl_npy *npy)
{
    pl_npy again;
    char header[PL_NPY_HEADER_BYTES];
    if (npy->dtype == PL_STRING && npy->item_bytes == 0)
        return;
    int n = pl_npy_format(npy->dtype, npy->item_bytes, &npy->shape, header, NULL);
    REQUIRE(n > 0 && n <= PL_NPY_HEADER_BYTES && n % 64 == 0);
    REQUIRE(pl_npy_parse(header, (size_t)n, UINT64_MAX, "again", &again, NULL) == 0);
    REQUIRE(again.dtype == npy->dtype && again.item_bytes == npy->item_bytes);
    REQUIRE(pl_shape_equal(&again.shape, &npy->shape));
}

static void parse(const uint8_t *bytes, size_t n, uint64_t file_bytes)
{
    pl_npy npy;
    pl_error error = {0};
    int r = pl_npy_parse(bytes, n, file_bytes, "fuzz", &npy, &error);
    REQUIRE(r <= 0);
    REQUIRE(r == 0 || (error.code == r && strstr(error.message, "'fuzz'")));
    for (const char *c = error.message; *c; c++)
        REQUIRE(*c >= ' ' && *c <= '~'); /* no byte of the file reaches a terminal raw */
    if (r < 0)
        return;
    n_taken++;
    check_taken(&npy, file_bytes);
    check_written(&npy);
}

static size_t make_prologue(uint8_t *file, unsigned version, size_t n_text)
{
    size_t n = version == 1 ? 10 : PROLOGUE_BYTES;
    memcpy(file, "\x93NUMPY", 6);
    file[6] = (uint8_t)version;
    file[7] = 0;
    for (size_t i = 8; i < n; i++)
        file[i] = (uint8_t)(n_text >> 8 * (i - 8));
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n == 0 || n > 60000)
        return 0;
    if (data[0] % 2 == 0) {
        parse(data + 1, n - 1, n - 1);
        return 0;
    }
    /* From a block of its own, so that a sanitizer sees the first byte past it. */
    uint8_t *file = malloc(PROLOGUE_BYTES + n);
    REQUIRE(file != NULL);
    size_t begin = make_prologue(file, data[0] / 2 % 4, n - 1);
    memcpy(file + begin, data + 1, n - 1);
    file = realloc(file, begin + n - 1);
    REQUIRE(file != NULL);
    parse(file, begin + n - 1, UINT64_MAX);
    parse(file, begin + n - 1, begin + n + 100);
    free(file);
    return 0;
}

#ifndef PL_LIBFUZZER

/* Pieces of headers, good ones and not. */
static const char *const words[] = {
    "{",
    "}",
    "(",
    ")",
    ",",
    ", ",
    ":",
    ": ",
    "'",
    "\"",
    " ",
    "\n",
    "[",
    "]",
    "\\",
    "L",
    "u",
    "-",
    "'descr'",
    "'fortran_order'",
    "'shape'",
    "\"shape\"",
    "True",
    "False",
    "'<f4'",
    "'>i8'",
    "'|S7'",
    "'|S99999999999'",
    "'|O'",
    "'<V2'",
    "0",
    "1",
    "3",
    "007",
    "9223372036854775807",
    "18446744073709551616",
    "(2, 3)",
    "()",
    "(0,)",
    "(4294967296, 4294967296)",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
    "'descr': '<f4', 'fortran_order': False, ",
    "'shape': (",
    "1, 1, 1, 1, ",
};

static size_t random_text(char *text, size_t room)
{
    size_t n = 0;
    for (long left = random() % 12; left >= 0; left--) {
        const char *word = words[(size_t)random() % PL_COUNT_OF(words)];
        if (n + strlen(word) >= room)
            break;
        memcpy(text + n, word, strlen(word));
        n += strlen(word);
    }
    return n;
}

/* A good header with a word put over it somewhere, or a byte changed. */
static size_t damaged_text(char *text, size_t room)
{
    const char *good = "{'descr': '<f8', 'fortran_order': True, 'shape': (12, 5, 7), }   \n";
    const char *word = words[(size_t)random() % PL_COUNT_OF(words)];
    size_t n = strlen(good), at = (size_t)random() % n;
    memcpy(text, good, n);
    if (random() % 2 && at + strlen(word) <= room)
        memcpy(text + at, word, strlen(word));
    else
        text[at] = (char)random();
    return n > at + strlen(word) ? n : at + strlen(word);
}

static void no_bytes_harm_whoever_parses_them(void **state)
{
    (void)state;
    static uint8_t input[1024];
    srandom(1);
    for (long i = 0; i < n_tries; i++) {
        memset(input, 0, sizeof input);
        char *text = (char *)input + 1;
        size_t room = sizeof input - 1;
        size_t n = random() % 2 ? random_text(text, room) : damaged_text(text, room);
        input[0] = (uint8_t)(random() % 8 ? 2 * (random() % 3) + 3 : random());
        try_input(input, n + 1);
    }
    assert_true(n_tries < 1000 || n_taken > n_tries / 100);
    assert_true(n_tries < 1000 || n_taken < n_tries);
}

int main(int argc, char **argv)
{
    read_arguments(argc, argv, 200000);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_bytes_harm_whoever_parses_them),
    };
    return cmocka_run_group_tests_name("fuzz_npy", tests, NULL, NULL);
}

#endif
