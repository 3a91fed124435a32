/* SPDX-License-Identifier: Apache-2.0 */
/* See lost_page.h. */
#include "sys/lost_page.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

static uintptr_t page_bytes; /* constant once the handler is installed */
static _Atomic uint64_t n_lost;

/* The instruction is then tried again: it finds the new page, or SIGBUS ends the process. */
static void replace_page(int number, siginfo_t *info, void *context)
{
    (void)context;
    int saved = errno;
    uintptr_t page = (uintptr_t)info->si_addr & ~(page_bytes - 1);
    if (info->si_code == BUS_ADRERR &&
        mmap((void *)page, page_bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED)
        atomic_fetch_add(&n_lost, 1);
    else
        signal(number, SIG_DFL);
    errno = saved;
}

void pl_lost_page_survive(void)
{
    long bytes = sysconf(_SC_PAGESIZE);
    struct sigaction action = {.sa_sigaction = replace_page, .sa_flags = SA_SIGINFO | SA_RESTART};
    if (bytes <= 0)
        return;
    page_bytes = (uintptr_t)bytes;
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
}

uint64_t pl_lost_page_count(void)
{
    return atomic_load(&n_lost);
}
