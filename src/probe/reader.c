/* SPDX-License-Identifier: Apache-2.0 */
/* The two ways to look at memory: one's own, and any process's by the kernel. */
#include <errno.h>
#include <sys/uio.h>

#include "probe/reader.h"

static int peek_own(const pl_reader *reader, uint64_t address, void *buffer, size_t n)
{
    (void)reader;
    memcpy(buffer, (const void *)(uintptr_t)address, n);
    return 0;
}

const pl_reader pl_reader_own = {.peek = peek_own};

/* errno belongs to the program that malloc() or the signal interrupted. */
static int peek_process(const pl_reader *reader, uint64_t address, void *buffer, size_t n)
{
    int saved_errno = errno;
    struct iovec here = {.iov_base = buffer, .iov_len = n};
    struct iovec there = {.iov_base = (void *)(uintptr_t)address, .iov_len = n};
    ssize_t n_read = process_vm_readv(reader->pid, &here, 1, &there, 1, 0);
    int r = n_read == (ssize_t)n ? 0 : n_read < 0 ? -errno : -EFAULT;
    errno = saved_errno;
    return r;
}

pl_reader pl_reader_process(pid_t pid)
{
    return (pl_reader){.peek = peek_process, .pid = pid};
}
