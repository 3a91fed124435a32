/* SPDX-License-Identifier: Apache-2.0 */
/* See futex.h. */
#include "sys/futex.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static_assert(sizeof(_Atomic uint32_t) == 4, "the kernel compares four bytes");

void pl_futex_wait(const _Atomic uint32_t *word, uint32_t seen, uint64_t most_ns)
{
    int error = errno;
    const struct timespec most = {(time_t)(most_ns / PL_NS_PER_SEC),
                                  (long)(most_ns % PL_NS_PER_SEC)};
    (void)!syscall(SYS_futex, word, FUTEX_WAIT, seen, most_ns ? &most : NULL, NULL, 0);
    errno = error;
}

void pl_futex_wake_all(const _Atomic uint32_t *word)
{
    int error = errno;
    (void)!syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    errno = error;
}
