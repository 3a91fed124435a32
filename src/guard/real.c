/* SPDX-License-Identifier: Apache-2.0 */
/* The interposed functions' originals, found with dlsym(RTLD_NEXT), so that jemalloc, tcmalloc or
 * another preloaded library keeps its place below the guard. dlsym() may itself ask for memory:
 * until it has answered, requests are served from a small pool that free() and realloc() know. */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdalign.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "guard/guard.h"

/* dlsym() asked for 0 bytes on glibc 2.36 and for under 1 KiB on older ones. */
enum { POOL_BYTES = 64 * 1024, POOL_ALIGNMENT = 16 };

static alignas(4096) char pool[POOL_BYTES];
static pl_atomic_u64 pool_used;

bool pl_bootstrap_owns(const void *block)
{
    return (const char *)block >= pool && (const char *)block < pool + POOL_BYTES;
}

/* Each block has its size in front of it. */
size_t pl_bootstrap_bytes(const void *block)
{
    size_t n;
    memcpy(&n, (const char *)block - POOL_ALIGNMENT, sizeof n);
    return n;
}

static void *pool_take(size_t size, size_t alignment)
{
    if (size > POOL_BYTES / 2 || alignment > 4096)
        goto out;
    if (alignment < POOL_ALIGNMENT)
        alignment = POOL_ALIGNMENT;
    uint64_t need = (size + 2 * alignment + POOL_ALIGNMENT - 1) & ~(uint64_t)(POOL_ALIGNMENT - 1);
    uint64_t at = atomic_fetch_add(&pool_used, need);
    if (at + need > POOL_BYTES)
        goto out;
    uintptr_t block = ((uintptr_t)pool + at + POOL_ALIGNMENT + alignment - 1) & ~(alignment - 1);
    memcpy((char *)block - POOL_ALIGNMENT, &size, sizeof size);
    pl_filter_add((void *)block);
    return (void *)block;
out:
    errno = ENOMEM;
    return NULL;
}

/* The first call of any of them resolves all. Meanwhile the pool serves this thread; another thread
 * that comes in resolves as well, to the same result. Volatile, because by glibc's declaration the
 * compiler assumes that dlsym() never calls back into this file. */
static _Thread_local __attribute__((tls_model("initial-exec"))) volatile bool resolving;

static void *first_malloc(size_t size)
{
    if (resolving)
        return pool_take(size, POOL_ALIGNMENT);
    pl_real_resolve();
    return pl_real.malloc(size);
}

static void first_free(void *block)
{
    if (resolving || pl_bootstrap_owns(block))
        return;
    pl_real_resolve();
    pl_real.free(block);
}

static void *first_calloc(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    if (resolving)
        return pool_take(bytes, POOL_ALIGNMENT); /* static memory, handed out once: it is zero */
    pl_real_resolve();
    return pl_real.calloc(count, size);
}

static void *first_realloc(void *block, size_t size)
{
    if (!resolving) {
        pl_real_resolve();
        return pl_real.realloc(block, size);
    }
    void *grown = pool_take(size, POOL_ALIGNMENT);
    if (grown && block) {
        size_t n = pl_bootstrap_bytes(block);
        memcpy(grown, block, n < size ? n : size);
    }
    return grown;
}

static void *first_memalign(size_t alignment, size_t size)
{
    if (resolving)
        return pool_take(size, alignment);
    pl_real_resolve();
    return pl_real.memalign(alignment, size);
}

static void *first_aligned_alloc(size_t alignment, size_t size)
{
    return first_memalign(alignment, size);
}

static int first_posix_memalign(void **ret_block, size_t alignment, size_t size)
{
    void *block = first_memalign(alignment, size);
    if (!block)
        return ENOMEM;
    *ret_block = block;
    return 0;
}

static void *first_valloc(size_t size)
{
    return first_memalign(4096, size);
}

static void *first_pvalloc(size_t size)
{
    return first_memalign(4096, (size + 4095) & ~(size_t)4095);
}

static void *first_mmap(void *address, size_t n, int protection, int flags, int fd, off_t offset)
{
    return (void *)syscall(SYS_mmap, address, n, protection, flags, fd, offset);
}

static void *first_mremap(void *old, size_t old_n, size_t new_n, int flags, void *to)
{
    return (void *)syscall(SYS_mremap, old, old_n, new_n, flags, to);
}

static int first_munmap(void *address, size_t n)
{
    return (int)syscall(SYS_munmap, address, n);
}

static int first_pthread_create(pthread_t *ret_thread, const pthread_attr_t *attributes,
                                void *(*routine)(void *), void *argument)
{
    pl_real_resolve();
    return pl_real.pthread_create == first_pthread_create
               ? EAGAIN
               : pl_real.pthread_create(ret_thread, attributes, routine, argument);
}

static void first__exit(int status)
{
    syscall(SYS_exit_group, status);
}

pl_real_functions pl_real = {
#define FIRST(name, result, parameters) .name = first_##name,
    PL_REAL_FUNCTIONS(FIRST)
#undef FIRST
};

/* The span of the object that `address` lies in: its code, and so its callers of mmap(). */
static void find_allocator(const void *address)
{
    struct dl_find_object found;
    if (_dl_find_object((void *)address, &found) != 0)
        return;
    pl_real.allocator_low = (uintptr_t)found.dlfo_map_start;
    pl_real.allocator_high = (uintptr_t)found.dlfo_map_end;
}

void pl_real_resolve(void)
{
    resolving = true;
    pl_real_functions found = {0};
#define FIND(name, result, parameters)                                                             \
    found.name = (result(*) parameters)dlsym(RTLD_NEXT, #name);                                    \
    if (!found.name)                                                                               \
        found.name = pl_real.name;
    PL_REAL_FUNCTIONS(FIND)
#undef FIND
    pl_real = found; /* a look-up that fails, as most below do, asks for memory */
    found.mallctl =
        (int (*)(const char *, void *, size_t *, void *, size_t))dlsym(RTLD_NEXT, "mallctl");
    found.release_free_memory =
        (void (*)(void))dlsym(RTLD_NEXT, "MallocExtension_ReleaseFreeMemory");
    if (!found.mallctl && !found.release_free_memory)
        found.malloc_trim = (int (*)(size_t))dlsym(RTLD_NEXT, "malloc_trim");
    pl_real = found;
    find_allocator((const void *)found.malloc);
    resolving = false;
}

void pl_real_trim(void)
{
    if (pl_real.malloc_trim)
        pl_real.malloc_trim(0);
    else if (pl_real.mallctl)
        pl_real.mallctl("arena.4096.purge", NULL, NULL, NULL, 0); /* 4096: all arenas */
    else if (pl_real.release_free_memory)
        pl_real.release_free_memory();
}
