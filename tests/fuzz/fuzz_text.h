/* SPDX-License-Identifier: Apache-2.0 */
/* What fuzz_lines.c, fuzz_csv.c and fuzz_tar.c have in common. */
#ifndef TESTS_FUZZ_FUZZ_TEXT_H
#define TESTS_FUZZ_FUZZ_TEXT_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plimsoll/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* A mistake of the parser's or of this program's. Not assert(): it must hold in every build. */
#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static inline void check_message(int r, const pl_error *error)
{
    REQUIRE(error->code == r && error->message[0] != '\0');
    for (const char *c = error->message; *c; c++)
        REQUIRE(*c >= ' ' && *c <= '~'); /* no byte of the file reaches a terminal raw */
}

/* A block of its own, so that a sanitizer sees the first byte behind it. */
static inline void *exact(const void *bytes, size_t n)
{
    void *block = malloc(n ? n : 1);
    REQUIRE(block != NULL);
    memcpy(block, bytes, n);
    return block;
}

#endif
