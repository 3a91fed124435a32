/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the code that asks for memory: the line of the user's Python code, or else the native
 * frames. Runs on the slow path only, once per sample. Python frames are read from the thread's own
 * memory (about 0.2 us); a native stack is walked by the compiler's unwinder (a few us) and
 * therefore rationed. */
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>
#include <unwind.h>

#include "base/clock.h"
#include "guard/guard.h"
#include "probe/python.h"

/* The user's frame is nearly always among the innermost few. Imports are the exception: each takes
 * some six frames of the import system, and packages import each other. */
enum { SPOTS = 12, SPOTS_ALL = 192, CACHE = 1024 };

/* Stack hash -> site, for stacks that were seen before. The hash begins with the pid: a forked
 * child finds nothing of its parent's. */
typedef struct cached_site {
    pl_atomic_u64 key;
    _Atomic(pl_site *) site;
} cached_site;

static cached_site cache[CACHE];

/* Stands for a site: none of the innermost few frames is the user's. */
static pl_site deeper;

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static uint64_t mix_text(uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = mix(hash, (uint8_t)*text);
    return hash;
}

/* The same line in two notebook cells is two sites. */
static uint64_t start_hash(void)
{
    uint32_t cell = atomic_load_explicit(&pl_guard_state.ledger->sum.cell, memory_order_relaxed);
    return mix(UINT64_C(0x706c696d736f6c6c), (uint64_t)pl_guard_state.pid | (uint64_t)cell << 32);
}

static pl_python python_here(const pl_reader *reader)
{
    return (pl_python){
        .reader = reader,
        .version = pl_interpreter_version(),
        .runtime = pl_interpreter_runtime(),
    };
}

/* Is memory laid out as the probe expects? Checked once, through a reader that cannot fault, before
 * it is read directly. */
enum layout { LAYOUT_UNKNOWN, LAYOUT_NOT_YET, LAYOUT_KNOWN };

static enum layout check_layout(const void *state)
{
    enum { UNCHECKED, YES, NO };
    static _Atomic int answer;
    int known = atomic_load_explicit(&answer, memory_order_relaxed);
    if (known == UNCHECKED) {
        pl_reader reader = pl_reader_process(getpid());
        pl_python python = python_here(&reader);
        int r = pl_python_check(&python, (uint64_t)(uintptr_t)state);
        if (r == -EAGAIN)
            return LAYOUT_NOT_YET;
        known = r == 0 ? YES : NO;
        atomic_store(&answer, known);
    }
    return known == YES ? LAYOUT_KNOWN : LAYOUT_UNKNOWN;
}

static int own_spots(pl_python_spot *spots, int max)
{
    void *state = pl_interpreter_thread();
    if (!state || check_layout(state) != LAYOUT_KNOWN)
        return 0;
    pl_python python = python_here(&pl_reader_own);
    return pl_python_spots(&python, (uint64_t)(uintptr_t)state, spots, max);
}

/* How useful a frame is for naming the caller. Users know their own lines, and which package they
 * call. */
enum closeness { NO_FRAME, IN_FROZEN_LIBRARY, IN_LIBRARY, IN_PACKAGE, IN_USERS };

static enum closeness closeness_of(const char *file)
{
    if (pl_python_is_users(file))
        return IN_USERS;
    if (!pl_python_is_library(file))
        return IN_PACKAGE;
    return file[0] == '<' ? IN_FROZEN_LIBRARY : IN_LIBRARY;
}

/* Finds the innermost frame of the most useful kind. */
static enum closeness closest_frame(const pl_python_spot *spots, int n, pl_python_frame *ret_frame)
{
    pl_python python = python_here(&pl_reader_own);
    enum closeness best = NO_FRAME;
    for (int i = 0; i < n && best < IN_USERS; i++) {
        pl_python_frame frame;
        if (pl_python_describe(&python, &spots[i], &frame) < 0)
            continue;
        enum closeness closeness = closeness_of(frame.file);
        if (closeness > best) {
            best = closeness;
            *ret_frame = frame;
        }
    }
    return best;
}

static enum closeness closest_here(pl_python_frame *ret_frame)
{
    pl_python_spot spots[SPOTS_ALL];
    return closest_frame(spots, own_spots(spots, SPOTS_ALL), ret_frame);
}

void pl_callsite_python(pl_python_frame *ret_frame)
{
    if (closest_here(ret_frame) == NO_FRAME)
        memset(ret_frame, 0, sizeof *ret_frame);
}

bool pl_callsite_is_users(void)
{
    pl_python_spot spots[SPOTS];
    pl_python_frame frame;
    return closest_frame(spots, own_spots(spots, SPOTS), &frame) == IN_USERS;
}

enum pl_worker pl_callsite_worker(void)
{
    const void *state = pl_interpreter_thread();
    if (!state || check_layout(state) == LAYOUT_UNKNOWN)
        return PL_WORKER_UNKNOWN;
    pl_python_spot spots[SPOTS_ALL];
    int n = own_spots(spots, SPOTS_ALL);
    pl_python_frame innermost;
    enum closeness closeness = closest_frame(spots, n < 1 ? n : 1, &innermost);
    if (closeness >= IN_PACKAGE)
        return PL_WORKER_PROGRAM;
    if (closeness != NO_FRAME && pl_python_is_import(innermost.file))
        return PL_WORKER_INTERPRETER;
    pl_python_frame closest;
    return closest_frame(spots, n, &closest) >= IN_PACKAGE ? PL_WORKER_LIBRARY
                                                           : PL_WORKER_INTERPRETER;
}

bool pl_callsite_is_output(void)
{
    static const char writer[] = "/ipykernel/iostream.py";
    pl_python_spot spot;
    pl_python_frame frame;
    pl_python python = python_here(&pl_reader_own);
    if (own_spots(&spot, 1) < 1 || pl_python_describe(&python, &spot, &frame) < 0)
        return false;
    size_t n = strlen(frame.file), n_writer = strlen(writer);
    return n >= n_writer && strcmp(frame.file + n - n_writer, writer) == 0;
}

bool pl_callsite_catches(int n_frames, bool at_spot)
{
    pl_python_spot spots[SPOTS];
    int n = own_spots(spots, SPOTS);
    pl_python python = python_here(&pl_reader_own);
    for (int i = 0; i < n && i < n_frames; i++)
        if (!pl_python_caught_alike(&python, &spots[i], at_spot))
            return false;
    return true;
}

uint64_t pl_callsite_code(void)
{
    pl_python_spot spot;
    return own_spots(&spot, 1) == 1 ? spot.code : 0;
}

bool pl_callsite_may_interrupt(void)
{
    pl_python python = python_here(&pl_reader_own);
    void *state = pl_interpreter_thread();
    return state && check_layout(state) == LAYOUT_KNOWN &&
           pl_python_runs(&python, (uint64_t)(uintptr_t)state) && !pl_python_lists_locked(&python);
}

int pl_callsite_python_stack(pl_python_frame *frames, int max)
{
    void *state = pl_interpreter_thread();
    if (!state)
        return 0;
    pl_reader reader = pl_reader_process(getpid());
    pl_python python = python_here(&reader);
    int n = pl_python_stack(&python, (uint64_t)(uintptr_t)state, frames, max);
    return n < 0 ? 0 : n;
}

static pl_site *python_site(const pl_python_spot *spots, int n, bool may_be_deeper)
{
    pl_python_frame frame;
    enum closeness closeness = closest_frame(spots, n, &frame);
    if (closeness == NO_FRAME)
        return NULL;
    if (closeness != IN_USERS && may_be_deeper)
        return &deeper;
    if (pl_python_is_import(frame.file)) /* one site for all imports that no user's line makes */
        frame = (pl_python_frame){.file = "<frozen importlib>", .line = 1};
    uint64_t key = mix(mix_text(mix_text(start_hash(), frame.file), frame.function), frame.line);
    bool is_new;
    pl_site *site = pl_ledger_site(pl_guard_state.ledger, key, pl_guard_state.pid, &is_new);
    if (site && is_new)
        site->python = frame;
    return site;
}

typedef struct native_walk {
    uintptr_t frames[PL_SITE_FRAMES];
    uint32_t n;
    uintptr_t own_low, own_high;
} native_walk;

static _Unwind_Reason_Code take_frame(struct _Unwind_Context *context, void *argument)
{
    native_walk *walk = argument;
    uintptr_t at = _Unwind_GetIP(context);
    if (at == 0)
        return _URC_END_OF_STACK;
    if (at >= walk->own_low && at < walk->own_high)
        return _URC_NO_REASON;
    walk->frames[walk->n++] = at;
    return walk->n == PL_SITE_FRAMES ? _URC_END_OF_STACK : _URC_NO_REASON;
}

/* Allows 256 walks at once, and 256 a second after that: under 0.5 % of a core. */
static bool may_walk(void)
{
    enum { BURST = 256 };
    static pl_atomic_u64 allowed_ns; /* the time up to which walks are used up */
    uint64_t cost = PL_NS_PER_SEC / BURST;
    uint64_t now = pl_clock_monotonic_ns();
    uint64_t used = atomic_load(&allowed_ns);
    uint64_t floor = now - PL_NS_PER_SEC;
    uint64_t next = pl_max_u64(used, floor) + cost;
    return next <= now && atomic_compare_exchange_strong(&allowed_ns, &used, next);
}

static void describe_native(pl_site *site, const native_walk *walk)
{
    for (uint32_t i = 0; i < walk->n; i++) {
        pl_site_frame *frame = &site->frames[i];
        struct dl_find_object found;
        frame->module = PL_MODULES;
        frame->offset = walk->frames[i];
        if (_dl_find_object((void *)walk->frames[i], &found) != 0)
            continue;
        const char *path = found.dlfo_link_map->l_name;
        frame->module =
            pl_ledger_module(pl_guard_state.ledger, *path ? path : pl_guard_state.program);
        frame->offset = walk->frames[i] - found.dlfo_link_map->l_addr;
    }
    site->n_frames = walk->n;
}

static pl_site *native_site(const void *return_address)
{
    native_walk walk = {.n = 0};
    struct dl_find_object own;
    if (_dl_find_object((void *)(uintptr_t)pl_callsite_find, &own) == 0) {
        walk.own_low = (uintptr_t)own.dlfo_map_start;
        walk.own_high = (uintptr_t)own.dlfo_map_end;
    }
    if (may_walk())
        _Unwind_Backtrace(take_frame, &walk);
    if (walk.n == 0)
        walk.frames[walk.n++] = (uintptr_t)return_address;

    uint64_t key = start_hash();
    for (uint32_t i = 0; i < walk.n; i++)
        key = mix(key, walk.frames[i]);
    bool is_new;
    pl_site *site = pl_ledger_site(pl_guard_state.ledger, key, pl_guard_state.pid, &is_new);
    if (site && is_new)
        describe_native(site, &walk);
    return site;
}

/* Names a stack without walking it, by all Python spots, or else by the return address and the
 * depth of the stack. Two native paths to one caller at one depth get the same name, so one in
 * sixteen is walked again. */
static uint64_t stack_key(const pl_python_spot *spots, int n, const void *return_address)
{
    uint64_t key = start_hash();
    for (int i = 0; i < n; i++)
        key = mix(mix(key, spots[i].code), spots[i].instruction);
    if (n <= 0)
        key = mix(mix(key, (uintptr_t)return_address), (uintptr_t)__builtin_frame_address(0));
    return key;
}

static pl_site *find_cached(const pl_python_spot *spots, int n, bool may_be_deeper,
                            const void *return_address)
{
    uint64_t key = mix(stack_key(spots, n, return_address), may_be_deeper);
    bool walk_again = n <= 0 && (pl_thread.random >> 8) % 16 == 0;

    cached_site *cached = &cache[key % CACHE];
    pl_site *site = atomic_load(&cached->site);
    if (site && atomic_load(&cached->key) == key && !walk_again)
        return site;
    site = n > 0 ? python_site(spots, n, may_be_deeper) : native_site(return_address);
    if (site) {
        atomic_store(&cached->key, 0);
        atomic_store(&cached->site, site);
        atomic_store(&cached->key, key);
    }
    return site;
}

static PL_COLD pl_site *find_deeper(const void *return_address)
{
    pl_python_spot spots[SPOTS_ALL];
    return find_cached(spots, own_spots(spots, SPOTS_ALL), false, return_address);
}

pl_site *pl_callsite_find(const void *return_address)
{
    pl_python_spot spots[SPOTS];
    int n = own_spots(spots, SPOTS);
    pl_site *site = find_cached(spots, n, n == SPOTS, return_address);
    return site == &deeper ? find_deeper(return_address) : site;
}
