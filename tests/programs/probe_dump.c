/* SPDX-License-Identifier: Apache-2.0 */
/* probe_dump PID RUNTIME VERSION            every thread's Python stack, and whether it runs
 * probe_dump offsets PID RUNTIME VERSION    the offsets that were used
 * probe_dump corrupt PID RUNTIME VERSION    reads the same through a reader that lies, many times
 * Numbers as strtoull takes them; RUNTIME is the address of _PyRuntime there. Built as a shared
 * library it also reads the stack of the Python code that calls probe_here(). */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "probe/offsets.h"
#include "probe/python.h"

enum { N_FRAMES = 4096, N_THREADS = 256, N_CORRUPT_FRAMES = 32, N_CORRUPT_ROUNDS = 400 };

int probe_here(uint32_t version, uint64_t runtime, uint64_t state, pl_python_frame *frames,
               int max);
uint64_t probe_cost_ns(uint32_t version, uint64_t runtime, uint64_t state, int n_rounds);

static int dump_thread(const pl_python *python, const pl_python_thread *thread)
{
    static pl_python_frame frames[N_FRAMES];
    printf("thread\t%" PRIu64 "\t%d\t%d\t%d\n", thread->thread_ident, (int)thread->tid,
           pl_python_runs(python, thread->state), pl_python_check(python, thread->state));
    int n = pl_python_stack(python, thread->state, frames, N_FRAMES);
    for (int i = 0; i < n; i++)
        printf("frame\t%u\t%s\t%s\n", frames[i].line, frames[i].function, frames[i].file);
    return n < 0 ? n : 0;
}

static int dump_stacks(const pl_python *python)
{
    static pl_python_thread threads[N_THREADS];
    int n = pl_python_threads(python, threads, N_THREADS);
    int r = n < 0 ? n : 0;
    for (int i = 0; i < n && r == 0; i++)
        r = dump_thread(python, &threads[i]);
    return r;
}

static int dump_offsets(const pl_python *python)
{
    pl_python_offsets scratch;
    const pl_python_offsets *offsets = pl_python_offsets_of(python, &scratch);
    if (!offsets)
        return -ENOTSUP;
#define SHOW(name) printf(#name " %u\n", (unsigned)offsets->name)
    SHOW(runtime_main);
    SHOW(runtime_current);
    SHOW(interp_threads);
    SHOW(state_next);
    SHOW(state_interp);
    SHOW(state_frame);
    SHOW(state_ident);
    SHOW(state_tid);
    SHOW(state_status);
    SHOW(cframe_frame);
    SHOW(frame_code);
    SHOW(frame_previous);
    SHOW(frame_instruction);
    SHOW(frame_owner);
    SHOW(frame_bytecode);
    SHOW(code_file);
    SHOW(code_function);
    SHOW(code_lines);
    SHOW(code_first_line);
    SHOW(code_first_traceable);
    SHOW(code_instructions);
    SHOW(code_bytecodes);
    SHOW(object_type);
    SHOW(type_name);
    SHOW(bytes_size);
    SHOW(bytes_data);
    SHOW(text_length);
    SHOW(text_state);
    SHOW(text_kind_bit);
    SHOW(text_ascii_bytes);
    SHOW(text_compact_bytes);
#undef SHOW
    return 0;
}

/* xorshift64*: the same lies in every run. */
static uint64_t random_state = 88172645463325252u;

static uint64_t random_u64(void)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * 2685821657736338717u;
}

static pl_reader honest;
static unsigned lie_percent;
static uint64_t n_peeks;

static int peek_lying(const pl_reader *reader, uint64_t address, void *buffer, size_t n)
{
    (void)reader;
    n_peeks++;
    int r = honest.peek(&honest, address, buffer, n);
    if (random_u64() % 100 >= lie_percent || n == 0)
        return r;
    uint8_t *bytes = buffer;
    switch (random_u64() % 4) {
    case 0: /* one bit */
        bytes[random_u64() % n] ^= (uint8_t)(1u << random_u64() % 8);
        return r;
    case 1: /* one byte of a word: a pointer goes elsewhere near */
        bytes[random_u64() % n / 8 * 8] = (uint8_t)random_u64();
        return r;
    case 2: /* nothing of it is true, and it can be read */
        for (size_t i = 0; i < n; i++)
            bytes[i] = (uint8_t)random_u64();
        return 0;
    default:
        return -EFAULT;
    }
}

/* Terminated, and nothing but whole UTF-8 characters. */
static bool is_text(const char *text, size_t n)
{
    const char *end = memchr(text, '\0', n);
    while (end && text < end) {
        uint8_t lead = (uint8_t)*text++;
        int n_more = lead < 0x80 ? 0 : lead < 0xc2 ? -1 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
        if (n_more < 0)
            return false;
        while (n_more-- > 0)
            if (((uint8_t)*text++ & 0xc0) != 0x80)
                return false;
    }
    return end != NULL;
}

static bool stack_is_sane(const pl_python *python, uint64_t state)
{
    static pl_python_frame frames[N_CORRUPT_FRAMES];
    n_peeks = 0;
    int n = pl_python_stack(python, state, frames, N_CORRUPT_FRAMES);
    /* A frame costs some twenty looks, and its line table one per 256 bytes of at most 4 MiB. */
    bool sane = n <= N_CORRUPT_FRAMES && n_peeks < (N_CORRUPT_FRAMES * 2 + 8) * (20 + 16384);
    for (int i = 0; i < n; i++)
        sane = sane && is_text(frames[i].file, sizeof(frames[i].file)) &&
               is_text(frames[i].function, sizeof(frames[i].function));
    return sane;
}

static int read_corrupted(const pl_python *python)
{
    honest = *python->reader;
    const pl_reader lying = {.peek = peek_lying, .pid = honest.pid};
    const pl_python corrupted = {
        .reader = &lying, .version = python->version, .runtime = python->runtime};
    int n_stacks = 0;
    for (int round = 0; round < N_CORRUPT_ROUNDS; round++) {
        pl_python_thread threads[16];
        lie_percent = (unsigned)round % 8;
        int n = pl_python_threads(&corrupted, threads, 16);
        if (n > 16)
            return PL_EFORMAT;
        for (int i = 0; i < n; i++, n_stacks++)
            if (!stack_is_sane(&corrupted, threads[i].state))
                return PL_EFORMAT;
    }
    printf("stacks %d\n", n_stacks);
    return 0;
}

int main(int argc, char **argv)
{
    const char *mode = argc == 5 ? argv[1] : "stacks";
    char **argument = argv + argc - 3;
    if (argc < 4 || argc > 5) {
        fprintf(stderr, "usage: probe_dump [offsets|corrupt] PID RUNTIME VERSION\n");
        return 2;
    }
    pl_reader reader = pl_reader_process((pid_t)strtoull(argument[0], NULL, 0));
    pl_python python = {
        .reader = &reader,
        .runtime = strtoull(argument[1], NULL, 0),
        .version = (uint32_t)strtoull(argument[2], NULL, 0),
    };
    int r = strcmp(mode, "offsets") == 0   ? dump_offsets(&python)
            : strcmp(mode, "corrupt") == 0 ? read_corrupted(&python)
                                           : dump_stacks(&python);
    if (r < 0)
        fprintf(stderr, "probe_dump: code %d\n", r);
    return r < 0 ? 1 : 0;
}

__attribute__((visibility("default"))) int
probe_here(uint32_t version, uint64_t runtime, uint64_t state, pl_python_frame *frames, int max)
{
    pl_python python = {.reader = &pl_reader_own, .version = version, .runtime = runtime};
    return pl_python_runs(&python, state) ? pl_python_stack(&python, state, frames, max) : 0;
}

/* What a sampled allocation pays at least: do I run Python, and the innermost spot. */
__attribute__((visibility("default"))) uint64_t probe_cost_ns(uint32_t version, uint64_t runtime,
                                                              uint64_t state, int n_rounds)
{
    pl_python python = {.reader = &pl_reader_own, .version = version, .runtime = runtime};
    uint64_t begun_ns = pl_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    int n_found = 0;
    for (int i = 0; i < n_rounds; i++) {
        pl_python_spot spot;
        n_found += pl_python_runs(&python, state) && pl_python_spots(&python, state, &spot, 1) == 1;
    }
    uint64_t took_ns = pl_clock_ns(CLOCK_THREAD_CPUTIME_ID) - begun_ns;
    return n_found == n_rounds ? took_ns / (uint64_t)n_rounds : UINT64_MAX;
}
