/* SPDX-License-Identifier: Apache-2.0 */
/* What every target has in common. From each fuzz_NAME.c two programs are made:
 *   libfuzzer_NAME [OPTIONS] [FOLDER...]   libFuzzer's, where the build has -Dfuzz=true; run by
 *                                          tests/run_all, and by hand: see CONTRIBUTING.md
 *   fuzz_NAME [INPUTS [FOLDER]]            a test that makes inputs of its own, the same in every
 *                                          run; with a folder they are written there, one file
 *                                          each, for libFuzzer to begin with */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plimsoll/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* A mistake of the code's or of this program's. Not assert(): it must hold in every build. */
#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* A failure has its code, and a message; no byte of the file reaches a terminal raw. */
static inline void check_message(int r, const pl_error *error)
{
    REQUIRE(r < 0 && error->code == r && error->message[0] != '\0');
    for (const char *c = error->message; *c; c++)
        REQUIRE(*c >= ' ' && *c <= '~');
}

/* A block of its own, so that a sanitizer sees the first byte behind it. */
static inline void *exact(const void *bytes, size_t n)
{
    void *block = calloc(1, n ? n : 1);
    REQUIRE(block != NULL);
    if (n > 0)
        memcpy(block, bytes, n);
    return block;
}

#ifndef PL_LIBFUZZER

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static long n_tries;
static const char *seed_folder;

static inline void read_arguments(int argc, char **argv, long n_default)
{
    n_tries = argc > 1 ? atol(argv[1]) : n_default;
    seed_folder = argc > 2 ? argv[2] : NULL;
}

static inline void try_input(const uint8_t *input, size_t n)
{
    static long number;
    if (seed_folder) {
        char path[4096];
        snprintf(path, sizeof path, "%s/made-%ld", seed_folder, number++);
        FILE *file = fopen(path, "wb");
        REQUIRE(file && fwrite(input, 1, n, file) == n && fclose(file) == 0);
    }
    LLVMFuzzerTestOneInput(input, n);
}

#endif
#endif
