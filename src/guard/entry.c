/* SPDX-License-Identifier: Apache-2.0 */
/* The interposed symbols. The fast paths are a few instructions each: malloc() lowers the thread's
 * countdown, free() looks at one byte. Everything else is out of line below. */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "guard/guard.h"

#define EXPORT __attribute__((visibility("default")))
#define CALLER __builtin_return_address(0)

PL_TLS pl_guard_thread pl_thread;

/* Takes `size` off the countdown; true when that is more than was left (it is then wrapped: the
 * slow path puts it back). One instruction where the compiler can hand us the borrow. */
static inline bool countdown_exhausted(size_t size)
{
#if defined(__x86_64__)
    bool borrow;
    __asm__("subq %[size], %[countdown]"
            : [countdown] "+m"(pl_thread.countdown), "=@ccb"(borrow)
            : [size] "r"(size));
    return borrow;
#else
    return __builtin_sub_overflow(pl_thread.countdown, size, &pl_thread.countdown);
#endif
}

/* The slow path reads /proc, and open() and read() are cancellation points. malloc() is not one,
 * and callers rely on that while they hold locks. */
int pl_guard_enter(void)
{
    int cancel;
    pl_thread.inside = true;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    return cancel;
}

void pl_guard_leave(int cancel)
{
    pthread_setcancelstate(cancel, NULL);
    pl_thread.inside = false;
}

/* The arguments of a request, so that one path serves the whole malloc family. */
typedef struct pl_request {
    size_t size;
    size_t alignment;                        /* 0: malloc's own */
    int (*into)(struct pl_request *request); /* calls the real function; 0 or an errno */
    void *block;
    const void *caller;
    uint32_t large_place; /* of a block that grows; 0: none */
} pl_request;

static void forget(const pl_tracked_block *block);

static void add_to_site(const pl_tracked_block *block, int64_t bytes, int64_t n_blocks)
{
    if (block->site && block->claimed_bytes)
        pl_site_add(block->site, bytes, n_blocks);
    else if (block->site)
        pl_site_add_unclaimed(block->site, bytes, n_blocks);
}

/* An entry that already exists belongs to a block whose end the guard did not see: it was unmapped
 * as part of a larger span, or mapped over. If it stayed, free() would find it first, and never
 * this claim. */
static void track(pl_request *request, uint64_t claimed, uint64_t weight)
{
    pl_tracked_block stale;
    if (pl_tracked_block_maybe(request->block) && pl_tracked_block_take(request->block, &stale))
        forget(&stale);
    pl_tracked_block block = {
        .claimed_bytes = claimed,
        .weight_bytes = weight,
        .site = pl_callsite_find(request->caller),
        .generation = pl_guard_state.generation,
        .large_place = request->large_place,
    };
    if (pl_tracked_block_add(request->block, &block)) {
        add_to_site(&block, (int64_t)weight, 1);
    } else if (claimed) {
        /* There is no room to remember the claim: from here on the block counts by its touched
         * bytes. */
        pl_line_release(claimed);
    }
}

void pl_guard_track(void *data, uint64_t bytes, uint64_t claimed, const void *caller)
{
    pl_request request = {.size = bytes, .block = data, .caller = caller};
    track(&request, claimed, bytes);
}

void pl_guard_change_site(void *data, pl_site *site)
{
    pl_tracked_block block;
    if (!pl_tracked_block_change_site(data, site, &block) || block.site == site ||
        block.generation != pl_guard_state.generation)
        return;
    add_to_site(&block, -(int64_t)block.weight_bytes, -1);
    block.site = site;
    add_to_site(&block, (int64_t)block.weight_bytes, 1);
}

static int large_request(pl_request *request)
{
    uint64_t claim = pl_guard_state.sparse ? 0 : request->size;
    if (claim ? !pl_line_claim(claim, claim) : !pl_line_room(request->size))
        return ENOMEM;
    int error = request->into(request);
    if (error || !request->block) {
        if (claim)
            pl_line_release(claim);
        if (error == ENOMEM)
            pl_line_denied(request->size);
        return error;
    }
    track(request, claim, request->size);
    return 0;
}

static int small_request(pl_request *request)
{
    uint64_t weight;
    if (!pl_line_small(request->size, PL_SMALL_PLAIN, &weight))
        return ENOMEM;
    int error = request->into(request);
    if (error == ENOMEM)
        pl_line_denied(request->size);
    if (!error && request->block && weight)
        track(request, 0, weight);
    return error;
}

/* Outside a run, and in an outsider, the slow path has nothing to do until the thread asked for
 * this much more. */
static void wait_for_more(void)
{
    if (!pl_thread.inside)
        pl_thread.countdown = pl_thread.granted = pl_thread.mean = PL_COUNTDOWN_BYTES;
}

/* The countdown ran out: the thread is new, a look is due, or the request is large. */
static PL_COLD int slow_request(pl_request *request)
{
    pl_thread.countdown += request->size; /* undo the wrap */
    pl_guard_notice_fork();
    if (pl_thread.inside || !pl_guard_state.ledger) {
        pl_guard_start();
        if (pl_thread.inside || !pl_guard_state.ledger) {
            wait_for_more();
            return request->into(request);
        }
    }
    int saved = errno;
    int cancel = pl_guard_enter();
    int error = request->size >= PL_LARGE_BYTES ? large_request(request) : small_request(request);
    pl_guard_leave(cancel);
    errno = error ? error : saved;
    return error;
}

static int into_malloc(pl_request *request)
{
    request->block = pl_real.malloc(request->size);
    return request->block ? 0 : errno;
}

static int into_calloc(pl_request *request)
{
    request->block = pl_real.calloc(1, request->size);
    return request->block ? 0 : errno;
}

static int into_posix_memalign(pl_request *request)
{
    return pl_real.posix_memalign(&request->block, request->alignment, request->size);
}

static int into_aligned_alloc(pl_request *request)
{
    request->block = pl_real.aligned_alloc(request->alignment, request->size);
    return request->block ? 0 : errno;
}

static int into_memalign(pl_request *request)
{
    request->block = pl_real.memalign(request->alignment, request->size);
    return request->block ? 0 : errno;
}

static int into_valloc(pl_request *request)
{
    request->block = pl_real.valloc(request->size);
    return request->block ? 0 : errno;
}

static int into_pvalloc(pl_request *request)
{
    request->block = pl_real.pvalloc(request->size);
    return request->block ? 0 : errno;
}

static PL_COLD void *slow_block(size_t size, size_t alignment, int (*into)(pl_request *),
                                const void *caller)
{
    pl_request request = {.size = size, .alignment = alignment, .into = into, .caller = caller};
    return slow_request(&request) == 0 ? request.block : NULL;
}

EXPORT void *malloc(size_t size)
{
    if (PL_UNLIKELY(countdown_exhausted(size)))
        return slow_block(size, 0, into_malloc, CALLER);
    return pl_real.malloc(size);
}

EXPORT void *calloc(size_t count, size_t size)
{
    size_t bytes;
    if (PL_UNLIKELY(__builtin_mul_overflow(count, size, &bytes)))
        return pl_real.calloc(count, size); /* the real calloc() reports the overflow */
    if (PL_UNLIKELY(countdown_exhausted(bytes)))
        return slow_block(bytes, 0, into_calloc, CALLER);
    return pl_real.calloc(count, size);
}

EXPORT int posix_memalign(void **ret_block, size_t alignment, size_t size)
{
    if (PL_UNLIKELY(countdown_exhausted(size))) {
        pl_request request = {
            .size = size, .alignment = alignment, .into = into_posix_memalign, .caller = CALLER};
        int saved = errno;
        int error = slow_request(&request);
        errno = saved; /* posix_memalign() returns its error and leaves errno alone */
        if (error == 0)
            *ret_block = request.block;
        return error;
    }
    return pl_real.posix_memalign(ret_block, alignment, size);
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    if (PL_UNLIKELY(countdown_exhausted(size)))
        return slow_block(size, alignment, into_aligned_alloc, CALLER);
    return pl_real.aligned_alloc(alignment, size);
}

EXPORT void *memalign(size_t alignment, size_t size)
{
    if (PL_UNLIKELY(countdown_exhausted(size)))
        return slow_block(size, alignment, into_memalign, CALLER);
    return pl_real.memalign(alignment, size);
}

EXPORT void *valloc(size_t size)
{
    if (PL_UNLIKELY(countdown_exhausted(size)))
        return slow_block(size, 0, into_valloc, CALLER);
    return pl_real.valloc(size);
}

EXPORT void *pvalloc(size_t size)
{
    if (PL_UNLIKELY(countdown_exhausted(size)))
        return slow_block(size, 0, into_pvalloc, CALLER);
    return pl_real.pvalloc(size);
}

/* Removes the block from its site. False for a block from before a fork, which is the parent's. */
static bool leave_site(const pl_tracked_block *block)
{
    pl_guard_notice_fork();
    pl_tracked_block_end(block);
    if (block->generation != pl_guard_state.generation)
        return false;
    add_to_site(block, -(int64_t)block->weight_bytes, -1);
    return true;
}

/* Also releases its claim. */
static void forget(const pl_tracked_block *block)
{
    if (leave_site(block) && block->claimed_bytes)
        pl_line_release(block->claimed_bytes);
}

static PL_COLD void slow_free(void *address)
{
    if (pl_bootstrap_owns(address))
        return;
    pl_tracked_block block;
    bool tracked = pl_tracked_block_take(address, &block);
    if (tracked) {
        pl_line_begin_give();
        forget(&block);
    }
    pl_real.free(address);
    if (tracked) {
        pl_line_end_give();
        pl_line_freed();
    }
}

EXPORT void free(void *block)
{
    if (PL_UNLIKELY(pl_tracked_block_maybe(block))) {
        slow_free(block);
        return;
    }
    pl_real.free(block);
}

static void *realloc_bootstrap(void *old, size_t size)
{
    void *block = malloc(size);
    size_t n = pl_bootstrap_bytes(old);
    if (block)
        memcpy(block, old, n < size ? n : size);
    return block;
}

/* A block that changes its size, with its old and its new claim. */
typedef struct pl_resizing {
    pl_tracked_block before; /* all zero if it was not tracked */
    bool tracked;
    uint64_t had;    /* bytes claimed for it by this call */
    uint64_t wants;  /* bytes to claim for it in all */
    uint64_t weight; /* its weight as a sample; 0: not a sample */
} pl_resizing;

static pl_resizing start_resizing(const void *old, size_t size)
{
    pl_resizing resizing = {0};
    bool large = size >= PL_LARGE_BYTES;
    resizing.tracked = old && pl_tracked_block_find(old, &resizing.before);
    if (resizing.before.generation == pl_guard_state.generation)
        resizing.had = resizing.before.claimed_bytes;
    resizing.wants = large && !pl_guard_state.sparse ? size : 0;
    /* Decides again at each size whether a small block is a sample, as if the old one were freed.
     * If it stayed a sample, a growing list would be drawn at every step; the steps add up to nine
     * times its final size, and held would be that much too high. */
    resizing.weight = large ? size : 0;
    return resizing;
}

static bool grant_resizing(pl_resizing *resizing, size_t size, bool exhausted)
{
    if (resizing->wants > resizing->had)
        return pl_line_claim(resizing->wants - resizing->had, size);
    if (size >= PL_LARGE_BYTES)
        return resizing->wants || pl_line_room(size);
    return !exhausted || pl_line_small(size, PL_SMALL_PLAIN, &resizing->weight);
}

/* The old entry leaves the table before the real call: as soon as that frees the address, another
 * thread may be given it. Its touched bytes count until the call is over, else a look in another
 * thread would charge them a second time, as measured. */
static void *resize(pl_resizing *resizing, void *old, size_t size, const void *caller)
{
    if (resizing->tracked)
        (void)pl_tracked_block_take(old, &resizing->before);
    void *block = pl_real.realloc(old, size);
    if (!block && size != 0) { /* realloc(p, 0) frees */
        int error = errno;
        if (resizing->wants > resizing->had)
            pl_line_release(resizing->wants - resizing->had);
        if (error == ENOMEM)
            pl_line_denied(size);
        if (resizing->tracked && !pl_tracked_block_add(old, &resizing->before))
            pl_line_release(resizing->had);
        errno = error;
        return NULL;
    }
    if (resizing->had > resizing->wants)
        pl_line_release(resizing->had - resizing->wants);
    pl_request request = {.size = size, .block = block, .caller = caller};
    if (resizing->wants) {
        request.large_place = resizing->before.large_place;
        resizing->before.large_place = 0;
    }
    if (resizing->tracked) /* its claim was carried over or released just now */
        (void)leave_site(&resizing->before);
    if (block && resizing->weight) {
        track(&request, resizing->wants, resizing->weight);
    }
    return block;
}

static PL_COLD void *slow_realloc(void *old, size_t size, bool exhausted, const void *caller)
{
    if (pl_bootstrap_owns(old))
        return realloc_bootstrap(old, size);
    pl_resizing resizing = start_resizing(old, size);
    if (grant_resizing(&resizing, size, exhausted))
        return resize(&resizing, old, size, caller);
    errno = ENOMEM;
    return NULL;
}

/* Inside the guard, or outside a run, nothing is claimed, and nothing stays tracked. */
static void *plain_realloc(void *old, size_t size)
{
    if (pl_bootstrap_owns(old))
        return realloc_bootstrap(old, size);
    pl_tracked_block block;
    if (pl_tracked_block_maybe(old) && pl_tracked_block_take(old, &block))
        forget(&block);
    return pl_real.realloc(old, size);
}

EXPORT void *realloc(void *old, size_t size)
{
    bool exhausted = countdown_exhausted(size);
    if (PL_LIKELY(!exhausted && !pl_tracked_block_maybe(old)))
        return pl_real.realloc(old, size);
    if (exhausted)
        pl_thread.countdown += size;
    pl_guard_notice_fork();
    pl_guard_start();
    if (pl_thread.inside || !pl_guard_state.ledger) {
        wait_for_more();
        return plain_realloc(old, size);
    }
    int saved = errno;
    int cancel = pl_guard_enter();
    void *block = slow_realloc(old, size, exhausted, CALLER);
    pl_guard_leave(cancel);
    if (block)
        errno = saved;
    return block;
}

/* mimalloc, from which free-threaded Python takes its objects, reserves 1 GiB at once and then
 * grows inside it, where the guard cannot see it. If that is refused, it maps segments of 32 MiB
 * one by one instead. */
static bool is_arena(size_t n, int flags, const void *caller)
{
    return n == PL_GIB && flags & MAP_NORESERVE && pl_interpreter_is_free_threaded() &&
           pl_interpreter_calls(caller);
}

/* All that mimalloc maps looks like a reservation. */
static bool is_reservation(int flags, const void *caller)
{
    return flags & MAP_NORESERVE &&
           !(pl_interpreter_is_free_threaded() && pl_interpreter_calls(caller));
}

/* Will the memory of this mapping be used? Reservations (PROT_NONE, MAP_NORESERVE) and commits
 * inside them (MAP_FIXED) do not count; nor do mappings of the allocator, whose blocks were counted
 * when they were requested. */
static bool mapping_counts(int protection, int flags, const void *caller)
{
    if (!(flags & MAP_ANONYMOUS) || protection == PROT_NONE)
        return false;
    if (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE) || is_reservation(flags, caller))
        return false;
    uintptr_t address = (uintptr_t)caller;
    return address < pl_real.allocator_low || address >= pl_real.allocator_high;
}

/* A mapping is only refused when it is larger than the whole line, not when the line is full:
 * OpenBLAS, for one, would ask again without end. It counts as it is touched. The interpreter's own
 * mappings are how Python grows by small objects, and are treated as such. */
static void *counted_mmap(void *address, size_t n, int protection, int flags, int fd, off_t offset,
                          const void *caller)
{
    if (!pl_line_fits(n, caller))
        return MAP_FAILED;
    int saved = errno;
    uint64_t weight = n;
    bool exhausted = countdown_exhausted(n);
    if (exhausted) {
        pl_thread.countdown += n;
        enum pl_small_kind kind =
            pl_interpreter_calls(caller) ? PL_SMALL_MAPPING : PL_SMALL_FOREIGN;
        if (!pl_line_small(n, kind, &weight)) {
            errno = ENOMEM;
            return MAP_FAILED;
        }
    }
    void *mapping = pl_real.mmap(address, n, protection, flags, fd, offset);
    if (mapping == MAP_FAILED) {
        int error = errno;
        if (error == ENOMEM && !(flags & MAP_HUGETLB)) /* a private pool, which programs try */
            pl_line_denied(n);
        errno = error;
        return mapping;
    }
    if (exhausted || n >= PL_LARGE_BYTES) {
        pl_request request = {.size = n, .block = mapping, .caller = caller};
        track(&request, 0, weight);
    }
    errno = saved;
    return mapping;
}

EXPORT void *mmap(void *address, size_t n, int protection, int flags, int fd, off_t offset)
{
    pl_guard_notice_fork();
    if (!mapping_counts(protection, flags, CALLER) || pl_thread.inside || !pl_guard_state.ledger)
        return pl_real.mmap(address, n, protection, flags, fd, offset);
    if (is_arena(n, flags, CALLER)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    int cancel = pl_guard_enter();
    void *mapping = counted_mmap(address, n, protection, flags, fd, offset, CALLER);
    pl_guard_leave(cancel);
    return mapping;
}

EXPORT void *mmap64(void *address, size_t n, int protection, int flags, int fd, off_t offset)
    __attribute__((alias("mmap")));

EXPORT int munmap(void *address, size_t n)
{
    pl_tracked_block block;
    if (!pl_tracked_block_maybe(address) || !pl_tracked_block_take(address, &block))
        return pl_real.munmap(address, n);
    pl_line_begin_give();
    forget(&block);
    int r = pl_real.munmap(address, n);
    pl_line_end_give();
    return r;
}

/* Updates a mapping that changed its size and that represents only itself, not other requests as a
 * sample. */
static void resize_at_site(pl_tracked_block *block, size_t n)
{
    if (block->generation == pl_guard_state.generation)
        add_to_site(block, (int64_t)n - (int64_t)block->weight_bytes, 0);
    block->weight_bytes = n;
}

EXPORT void *mremap(void *old, size_t old_n, size_t new_n, int flags, ...)
{
    void *to = NULL;
    if (flags & MREMAP_FIXED) {
        __builtin_va_list arguments;
        __builtin_va_start(arguments, flags);
        to = __builtin_va_arg(arguments, void *);
        __builtin_va_end(arguments);
    }
    pl_tracked_block block;
    bool tracked = pl_tracked_block_maybe(old) && pl_tracked_block_take(old, &block);
    if (new_n > old_n && !pl_thread.inside && pl_guard_state.ledger &&
        !pl_line_fits(new_n, CALLER)) {
        if (tracked)
            pl_tracked_block_add(old, &block);
        return MAP_FAILED;
    }
    void *mapping = pl_real.mremap(old, old_n, new_n, flags, to);
    if (tracked && mapping != MAP_FAILED && block.weight_bytes == old_n)
        resize_at_site(&block, new_n);
    if (tracked)
        pl_tracked_block_add(mapping == MAP_FAILED ? old : mapping, &block);
    return mapping;
}

/* Gives a new thread a stack for the handlers of crash.c. A thread that never asks for memory would
 * not get one on the slow path, and could then not record the overflow of its own stack. */
typedef struct thread_start {
    void *(*routine)(void *);
    void *argument;
    size_t stack_bytes; /* 0: the usual */
} thread_start;

static void *start_thread(void *argument)
{
    thread_start start = *(thread_start *)argument;
    pl_real.free(argument);
    pl_crash_install_thread(start.stack_bytes);
    return start.routine(start.argument);
}

EXPORT int pthread_create(pthread_t *ret_thread, const pthread_attr_t *attributes,
                          void *(*routine)(void *), void *argument)
{
    thread_start *start = pl_guard_state.ledger ? pl_real.malloc(sizeof *start) : NULL;
    if (!start)
        return pl_real.pthread_create(ret_thread, attributes, routine, argument);
    *start = (thread_start){.routine = routine, .argument = argument};
    if (attributes && pthread_attr_getstacksize(attributes, &start->stack_bytes) != 0)
        start->stack_bytes = 0;
    int error = pl_real.pthread_create(ret_thread, attributes, start_thread, start);
    if (error)
        pl_real.free(start);
    return error;
}

/* multiprocessing's children leave this way: not a sudden death. */
EXPORT _Noreturn void _exit(int status)
{
    pl_guard_exit();
    pl_real._exit(status);
    __builtin_unreachable();
}
