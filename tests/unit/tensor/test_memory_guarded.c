/* SPDX-License-Identifier: Apache-2.0 */
/* Memory in a guarded run: the guard claims each block, and its record shows no refusal that an
 * eviction could spare. The test starts itself again, with the guard in front. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../emulated.h"
#include "ledger/ledger.h"
#include "tensor/memory.h"

#define GUARDED_LINE (200 * PL_MIB)

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "guarded, line %d: not so: %s\n", __LINE__, #condition);               \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

typedef struct victim {
    pl_memory *memory;
    pl_block block;
    int n_calls;
} victim;

static uint64_t give_it(void *context, uint64_t bytes, pl_error *reterr)
{
    victim *v = context;
    uint64_t freed = v->block.bytes;
    (void)bytes;
    v->n_calls++;
    pl_memory_give(v->memory, &v->block);
    if (!freed)
        pl_error_set(reterr, -EIO, "the disk is gone");
    return freed;
}

static int line_of_self(const pl_ledger *ledger)
{
    int i = 0;
    while (i < PL_SLOTS - 1 && atomic_load(&ledger->slots[i].pid) != (uint32_t)getpid())
        i++;
    return i;
}

/* By claims of a megabyte and more. */
static int64_t held_bytes(const pl_ledger *ledger)
{
    int64_t sum = 0;
    for (int i = 0; i < PL_SITES; i++) {
        const pl_site *site = &ledger->sites[i];
        sum += atomic_load(&site->held_bytes) - atomic_load(&site->unclaimed_bytes);
    }
    return sum;
}

/* The guard is in this process. */
static int live_guarded(void)
{
    pl_memory *memory;
    pl_ledger *ledger;
    pl_block block, none;
    pl_error error = {0};
    victim v = {0};
    EXPECT(pl_memory_new(NULL, &memory, &error) == 0);
    EXPECT(pl_ledger_open_run(&ledger, NULL) == 0);
    EXPECT(pl_memory_is_guarded(memory));
    EXPECT(pl_memory_limit_bytes(memory) == GUARDED_LINE);

    /* What is given back is kept for the next of its size, as without a guard; nobody holds it. */
    const pl_ledger_room *room = &ledger->rooms[line_of_self(ledger)];
    EXPECT(pl_memory_take(memory, 4 * PL_MIB, "first", &block, &error) == 0);
    void *first = block.data;
    memset(first, 1, 4 * PL_MIB);
    pl_memory_give(memory, &block);
    EXPECT(atomic_load(&room->idle_bytes) == 4 * PL_MIB);
    EXPECT(held_bytes(ledger) == 0);
    EXPECT(pl_memory_take(memory, 4 * PL_MIB, "again", &block, &error) == 0);
    EXPECT(block.data == first && held_bytes(ledger) == 4 * PL_MIB);
    EXPECT(atomic_load(&room->idle_bytes) == 0);
    pl_memory_give(memory, &block);
    pl_memory_trim(memory);
    EXPECT(atomic_load(&room->idle_bytes) == 0);

    uint64_t before = pl_ledger_charged_bytes(ledger);
    EXPECT(pl_memory_take(memory, 100 * PL_MIB, "half", &block, &error) == 0);
    EXPECT(pl_ledger_charged_bytes(ledger) >= before + 100 * PL_MIB);
    EXPECT(pl_ledger_charged_bytes(ledger) <= before + 104 * PL_MIB);
    EXPECT((uintptr_t)block.data % 4096 == 0);

    /* The evictor is asked before the guard is: no refusal stands in the record. */
    v.memory = memory;
    v.block = block;
    pl_memory_set_evictor(memory, give_it, &v);
    EXPECT(pl_memory_take(memory, 150 * PL_MIB, "more", &block, &error) == 0);
    EXPECT(v.n_calls == 1 && atomic_load(&ledger->sum.n_refusals) == 0);
    EXPECT(pl_memory_take(memory, 150 * PL_MIB, "too much", &none, &error) == PL_EBUDGET);
    EXPECT(strstr(error.message, "'too much'") && strstr(error.message, "the disk is gone"));
    EXPECT(atomic_load(&ledger->sum.n_refusals) == 1);

    /* A window is no large request: there is one although the line has no room, and no refusal. */
    pl_block rest, window;
    uint64_t left = pl_memory_headroom_bytes(memory);
    EXPECT(left > PL_MIB && pl_memory_take(memory, left, "all that is left", &rest, &error) == 0);
    EXPECT(pl_memory_headroom_bytes(memory) < PL_MEMORY_WINDOW_BYTES);
    EXPECT(pl_memory_take_window(memory, "copy", &window, &error) == 0);
    EXPECT(atomic_load(&ledger->sum.n_refusals) == 1);
    pl_memory_give(memory, &window);
    pl_memory_give(memory, &rest);

    pl_memory_give(memory, &block);
    EXPECT(pl_memory_claimed_bytes(memory) == 0);
    EXPECT(pl_ledger_charged_bytes(ledger) <= before + 4 * PL_MIB);
    pl_memory_unref(memory);
    const pl_memory_options options = {.budget_text = "50%"};
    EXPECT(pl_memory_new(&options, &memory, &error) == 0);
    EXPECT(pl_memory_limit_bytes(memory) == GUARDED_LINE / 2);
    EXPECT(pl_memory_take(memory, 120 * PL_MIB, "over", &none, &error) == PL_EBUDGET);
    EXPECT(strstr(error.message, "of their 100.0 MiB limit"));
    pl_memory_unref(memory);
    return 0;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const bool is_sanitized = true; /* its runtime must come first */
#else
static const bool is_sanitized = false;
#endif

/* The guard that was built beside this test; "" if there is none. */
static void find_guard(char path[512])
{
    char self[400] = "";
    path[0] = '\0';
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0)
        return;
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = '\0';
    snprintf(path, 512, "%s/../src/guard/libplimsoll-guard.so", self);
    if (access(path, R_OK) < 0)
        path[0] = '\0';
}

/* An emulator is told to preload the guard into the program: it is no library of its own machine.
 */
static _Noreturn void start_guarded(const char *guard)
{
    char preload[540], self[400] = "";
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", guard);
    if (!emulator()) {
        putenv(preload);
        execl("/proc/self/exe", "test_memory_guarded", "--guarded", (char *)NULL);
    } else if (readlink("/proc/self/exe", self, sizeof self - 1) > 0) {
        execl(emulator(), "arm64-run", "-E", preload, self, "--guarded", (char *)NULL);
    }
    _exit(127);
}

static void in_a_guarded_run_the_guard_keeps_the_line(void **state)
{
    (void)state;
    char guard[512], folder[] = "/tmp/plimsoll-memory-XXXXXX", path[64];
    find_guard(guard);
    if (is_sanitized) {
        print_message("the guard and a sanitizer both stand in front of malloc()\n");
        skip();
    }
    assert_true(guard[0]);
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/ledger", folder);
    const pl_ledger_params params = {.limit_bytes = GUARDED_LINE, .reserve_bytes = 16 * PL_MIB};
    pl_ledger *ledger;
    assert_int_equal(pl_ledger_create(path, &params, &ledger, NULL), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setenv(PL_LEDGER_VARIABLE, path, 1);
        start_guarded(guard);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    unlink(path);
    rmdir(folder);
    pl_ledger_close(ledger);
    assert_int_equal(status, 0);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--guarded") == 0)
        return live_guarded();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_a_guarded_run_the_guard_keeps_the_line),
    };
    return cmocka_run_group_tests_name("memory_guarded", tests, NULL, NULL);
}
