/* SPDX-License-Identifier: Apache-2.0 */
/* For C tests that an emulator may run (tools/cross/arm64-run): what it cannot do is skipped, with
 * its reason, and everything else runs there as well. */
#ifndef TESTS_EMULATED_H
#define TESTS_EMULATED_H

#include <cmocka.h>
#include <stdlib.h>

/* The command that runs a program of this test's machine: the kernel below starts none. NULL: it
 * does. */
static inline const char *emulator(void)
{
    return getenv("PLIMSOLL_TEST_EMULATOR");
}

/* Skips the case under qemu-user, which shows a process some files of /proc made up, and the others
 * as they are of the process that emulates. */
#define SKIP_UNDER_QEMU(why)                                                                       \
    do {                                                                                           \
        if (emulator()) {                                                                          \
            print_message("qemu-user: %s\n", why);                                                 \
            skip();                                                                                \
        }                                                                                          \
    } while (0)

#endif
