/* SPDX-License-Identifier: Apache-2.0 */
/* Faults that a test puts beneath the code that it tests. The definitions stand in front of libc's,
 * because the runtime is linked into the test's own program: nothing in the runtime knows of them.
 *   fault_io     what the next calls of pread(), pwrite() and fallocate() do
 *   fault_alloc  which allocation of this thread fails
 *   fault_live   blocks that this thread has allocated, less those that it has freed
 * Included once, by the one file of a test's program. */
#ifndef PL_TESTS_UNIT_FAULTS_H
#define PL_TESTS_UNIT_FAULTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct {
    _Atomic int read_error, write_error, reserve_error; /* 0: none */
    _Atomic int n_before;                               /* calls that still go well */
    _Atomic int n_failures;      /* after which all is well again; 0: never */
    _Atomic size_t most_bytes;   /* of one call; 0: as asked */
    _Atomic int n_interruptions; /* EINTR so often, before anything else */
    _Atomic int write_delay_us;
    _Atomic int n_reads, n_writes, n_reserves;
    _Atomic int n_apart; /* reads in threads that the program's signals do not go to */
    _Atomic int n_deaf;  /* reads in threads whose own faults do not reach a handler */
} fault_io;

static inline void fault_io_reset(void)
{
    fault_io.read_error = fault_io.write_error = fault_io.reserve_error = 0;
    fault_io.n_before = fault_io.n_failures = fault_io.n_interruptions = 0;
    fault_io.most_bytes = 0;
    fault_io.write_delay_us = 0;
    fault_io.n_reads = fault_io.n_writes = fault_io.n_reserves = 0;
    fault_io.n_apart = fault_io.n_deaf = 0;
}

/* True, and errno is set, if this call fails. */
static inline bool fault_io_hits(int error)
{
    if (fault_io.n_interruptions > 0) {
        fault_io.n_interruptions--;
        errno = EINTR;
        return true;
    }
    if (!error || fault_io.n_before-- > 0)
        return false;
    fault_io.n_before = 0;
    if (fault_io.n_failures > 0 && --fault_io.n_failures == 0)
        fault_io.read_error = fault_io.write_error = fault_io.reserve_error = 0;
    errno = error;
    return true;
}

static inline size_t fault_io_cut(size_t n)
{
    size_t most = fault_io.most_bytes; /* once: another thread may change it */
    return most && n > most ? most : n;
}

static inline void fault_io_note_thread(void)
{
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    fault_io.n_apart += sigismember(&blocked, SIGTERM);
    fault_io.n_deaf += sigismember(&blocked, SIGSEGV) || sigismember(&blocked, SIGBUS);
}

ssize_t pread(int fd, void *data, size_t n, off_t offset)
{
    fault_io.n_reads++;
    fault_io_note_thread();
    return fault_io_hits(fault_io.read_error)
               ? -1
               : syscall(SYS_pread64, fd, data, fault_io_cut(n), offset);
}

ssize_t pwrite(int fd, const void *data, size_t n, off_t offset)
{
    fault_io.n_writes++;
    if (fault_io.write_delay_us)
        usleep((useconds_t)fault_io.write_delay_us);
    return fault_io_hits(fault_io.write_error)
               ? -1
               : syscall(SYS_pwrite64, fd, data, fault_io_cut(n), offset);
}

int fallocate(int fd, int mode, off_t offset, off_t n)
{
    fault_io.n_reserves++;
    return fault_io_hits(fault_io.reserve_error) ? -1
                                                 : (int)syscall(SYS_fallocate, fd, mode, offset, n);
}

/* A sanitizer has allocators of its own, which must not be stood in front of. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { FAULT_ALLOC_WORKS = false };
#else
enum { FAULT_ALLOC_WORKS = true };
#endif

/* For cases that are about nothing else; the other builds run them. */
static inline void fault_need_alloc(void)
{
    if (!FAULT_ALLOC_WORKS) {
        print_message("a sanitizer's allocator cannot be made to fail\n");
        skip();
    }
}

static _Thread_local struct {
    int fail_at; /* from 1; 0: not counting */
    int n_seen;
} fault_alloc;

static _Thread_local long fault_live;

static inline bool fault_alloc_hits(void)
{
    return fault_alloc.fail_at && ++fault_alloc.n_seen == fault_alloc.fail_at;
}

/* From here on this thread's allocation number `number` fails; 0: none. */
static inline void fault_alloc_begin(int number)
{
    fault_alloc.n_seen = 0;
    fault_alloc.fail_at = number;
}

/* Did one fail? */
static inline bool fault_alloc_end(void)
{
    bool hit = fault_alloc.n_seen >= fault_alloc.fail_at;
    fault_alloc.fail_at = 0;
    return hit;
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *block, size_t n);
extern void *__libc_memalign(size_t alignment, size_t n);
extern void __libc_free(void *block);

static inline void *fault_alloc_none(void)
{
    errno = ENOMEM;
    return NULL;
}

static inline void *fault_alloc_count(void *block)
{
    fault_live += block != NULL;
    return block;
}

void *malloc(size_t n)
{
    return fault_alloc_hits() ? fault_alloc_none() : fault_alloc_count(__libc_malloc(n));
}

void *calloc(size_t n, size_t size)
{
    return fault_alloc_hits() ? fault_alloc_none() : fault_alloc_count(__libc_calloc(n, size));
}

void *realloc(void *block, size_t n)
{
    if (fault_alloc_hits())
        return fault_alloc_none();
    void *moved = __libc_realloc(block, n);
    return block ? moved : fault_alloc_count(moved);
}

void free(void *block)
{
    fault_live -= block != NULL;
    __libc_free(block);
}

/* libc's own calls no definition of malloc() in the program. */
char *strdup(const char *text)
{
    size_t n = strlen(text) + 1;
    char *copy = malloc(n);
    return copy ? memcpy(copy, text, n) : NULL;
}

int posix_memalign(void **ret_block, size_t alignment, size_t n)
{
    void *block = fault_alloc_hits() ? NULL : __libc_memalign(alignment, n);
    if (!block)
        return ENOMEM;
    fault_alloc_count(block);
    *ret_block = block;
    return 0;
}

void *mmap(void *address, size_t n, int protection, int flags, int fd, off_t offset)
{
    if (fault_alloc_hits()) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mmap, address, n, protection, flags, fd, offset);
}
#endif

#endif
