/* SPDX-License-Identifier: Apache-2.0 */
/* What fuzz_tfrecord.c, fuzz_inflate.c and fuzz_example.c have in common. Each is a target for
 * libFuzzer, and without it (no -DPL_LIBFUZZER; any compiler, -lcmocka) a test that makes its own
 * inputs, the same in every run:
 *   fuzz_... [INPUTS [FOLDER]]    how many; and writes them there, one file each, for libFuzzer to
 *                                 begin with */
#ifndef TESTS_FUZZ_FUZZ_RECORDS_H
#define TESTS_FUZZ_FUZZ_RECORDS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* A mistake of the code's or of this program's. Not assert(): it must hold in every build. */
#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static long n_taken, n_refused; /* 0 of either would make the test worthless */

/* A failure has its code, and a message that a terminal can show. Counts. */
static inline void check_outcome(int r, const pl_error *error)
{
    n_taken += r >= 0;
    n_refused += r < 0;
    if (r >= 0)
        return;
    REQUIRE(error->code == r && error->message[0] != '\0');
    for (const char *c = error->message; *c; c++)
        REQUIRE(*c >= ' ' && *c <= '~');
}

/* Some bytes changed, moved or cut off. */
static inline size_t damage(uint8_t *bytes, size_t n)
{
    for (long left = random() % 4; left >= 0 && n > 0; left--)
        switch (random() % 4) {
        case 0:
            bytes[(size_t)random() % n] = (uint8_t)random();
            break;
        case 1:
            bytes[(size_t)random() % n] ^= (uint8_t)(1 << random() % 8);
            break;
        case 2: {
            size_t from = (size_t)random() % n, to = (size_t)random() % n;
            size_t room = n - (from > to ? from : to);
            memmove(bytes + to, bytes + from, (size_t)random() % (room + 1));
            break;
        }
        default:
            n = random() % 4 ? n : (size_t)random() % n;
        }
    return n;
}

#ifndef PL_LIBFUZZER

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static long n_inputs;
static const char *seed_folder;

static inline void read_arguments(int argc, char **argv, long n_default)
{
    n_inputs = argc > 1 ? atol(argv[1]) : n_default;
    seed_folder = argc > 2 ? argv[2] : NULL;
}

static inline void try_input(const uint8_t *input, size_t n, long number)
{
    if (seed_folder) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%ld", seed_folder, number);
        FILE *file = fopen(path, "wb");
        REQUIRE(file && fwrite(input, 1, n, file) == n && fclose(file) == 0);
    }
    LLVMFuzzerTestOneInput(input, n);
}

#endif
#endif
