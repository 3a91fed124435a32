/* SPDX-License-Identifier: Apache-2.0 */
/* The two readers: of the process's own memory, and of any process's through the kernel. */
#include <errno.h>

#include "probe/reader.h"
#include "sys/proc.h"

static int peek_own(const pl_reader *reader, uint64_t address, void *buffer, size_t n)
{
    (void)reader;
    memcpy(buffer, (const void *)(uintptr_t)address, n);
    return 0;
}

const pl_reader pl_reader_own = {.peek = peek_own};

static int peek_process(const pl_reader *reader, uint64_t address, void *buffer, size_t n)
{
    ssize_t n_read = pl_proc_read_memory(reader->pid, address, buffer, n);
    return n_read == (ssize_t)n ? 0 : n_read < 0 ? (int)n_read : -EFAULT;
}

pl_reader pl_reader_process(pid_t pid)
{
    return (pl_reader){.peek = peek_process, .pid = pid};
}
