/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks carry their claim: nothing is had without one, and nothing stays claimed that was given
 * back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "faults.h"
#include "tensor/memory.h"

#define CAP (8 * PL_MIB)

/* TSan's shadow of what is touched is resident as well, and several times as large. */
#if defined(__SANITIZE_THREAD__)
enum { RESIDENT_IS_OURS = false };
#else
enum { RESIDENT_IS_OURS = true };
#endif

static void need_own_residence(void)
{
    if (!RESIDENT_IS_OURS) {
        print_message("TSan's shadow is resident as well\n");
        skip();
    }
}

static pl_memory *new_memory(uint64_t cap_bytes)
{
    pl_memory *memory;
    pl_error error = {0};
    const pl_memory_options options = {.cap_bytes = cap_bytes};
    if (pl_memory_new(&options, &memory, &error) < 0)
        fail_msg("%s", error.message);
    return memory;
}

static pl_block take(pl_memory *memory, uint64_t bytes)
{
    pl_block block;
    pl_error error = {0};
    if (pl_memory_take(memory, bytes, "test", &block, &error) < 0)
        fail_msg("%s", error.message);
    return block;
}

static void end(pl_memory *memory)
{
    assert_int_equal(pl_memory_claimed_bytes(memory), 0);
    pl_memory_unref(memory);
}

static void a_block_is_claimed_while_it_lives(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {1, 100, 4096, 65535, 65536, 65537, PL_MIB, 5 * PL_MIB + 1};
    pl_memory *memory = new_memory(CAP);
    for (size_t i = 0; i < PL_COUNT_OF(sizes); i++) {
        pl_block block = take(memory, sizes[i]);
        uint64_t cost = pl_memory_cost_bytes(sizes[i]);
        assert_true(cost >= sizes[i] && cost < sizes[i] + 4096);
        assert_int_equal(pl_memory_claimed_bytes(memory), cost);
        assert_int_equal((uintptr_t)block.data % (sizes[i] < 65536 ? 64 : 4096), 0);
        memset(block.data, 0xa5, sizes[i]);
        pl_memory_give(memory, &block);
        assert_null(block.data);
        pl_memory_give(memory, &block);
        assert_int_equal(pl_memory_claimed_bytes(memory), 0);
    }
    assert_int_equal(pl_memory_peak_bytes(memory), pl_memory_cost_bytes(5 * PL_MIB + 1));
    end(memory);
}

static void nothing_costs_nothing_and_has_an_address(void **state)
{
    (void)state;
    pl_memory *memory = new_memory(CAP);
    pl_block block = take(memory, 0);
    assert_non_null(block.data);
    assert_int_equal(pl_memory_claimed_bytes(memory), 0);
    pl_memory_give(memory, &block);
    end(memory);
}

static void the_cap_is_never_passed(void **state)
{
    (void)state;
    pl_error error = {0};
    pl_memory *memory = new_memory(CAP);
    pl_block most = take(memory, CAP - 4096), rest = take(memory, 4096), none = {.bytes = 7};
    assert_int_equal(pl_memory_headroom_bytes(memory), 0);
    assert_int_equal(pl_memory_take(memory, 1, "loss/add", &none, &error), PL_EBUDGET);
    assert_int_equal(none.bytes, 7);
    assert_non_null(strstr(error.message, "no room for 64 B for 'loss/add'"));
    assert_non_null(strstr(error.message, "8.0 MiB of their 8.0 MiB limit"));
    pl_memory_give(memory, &rest);
    rest = take(memory, 4096);
    pl_memory_give(memory, &most);
    pl_memory_give(memory, &rest);
    end(memory);
}

static void sizes_that_nobody_has_are_refused(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {UINT64_MAX, UINT64_MAX - 4095, INT64_MAX, UINT64_C(1) << 62};
    pl_block block;
    pl_memory *memory = new_memory(0);
    for (size_t i = 0; i < PL_COUNT_OF(sizes); i++)
        assert_int_equal(pl_memory_take(memory, sizes[i], "all", &block, NULL), PL_EBUDGET);
    end(memory);
}

static void the_line_is_the_true_one_or_the_users(void **state)
{
    (void)state;
    pl_memory *memory = new_memory(0);
    uint64_t line = pl_memory_limit_bytes(memory);
    assert_true(line > 16 * PL_MIB && line < UINT64_C(1) << 50);
    assert_true(pl_memory_headroom_bytes(memory) < line);
    assert_false(pl_memory_is_guarded(memory));
    end(memory);

    pl_memory_options options = {.budget_text = "900M"};
    assert_int_equal(pl_memory_new(&options, &memory, NULL), 0);
    assert_int_equal(pl_memory_limit_bytes(memory), 900 * PL_MIB);
    pl_block block;
    pl_error error = {0};
    assert_int_equal(pl_memory_take(memory, 900 * PL_MIB, "all", &block, &error), PL_EBUDGET);
    assert_non_null(strstr(error.message, "of the 900.0 MiB budget are in use"));
    end(memory);

    options.budget_text = "a lot";
    assert_int_equal(pl_memory_new(&options, &memory, &error), PL_EFORMAT);
    options.budget_text = "1M";
    assert_int_equal(pl_memory_new(&options, &memory, &error), PL_EBUDGET);
}

/* Memory that the process uses on its own, touched. */
static void *use(size_t n)
{
    void *data = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(data != MAP_FAILED);
    memset(data, 1, n);
    return data;
}

static void a_budget_that_the_process_has_used_up_is_refused(void **state)
{
    (void)state;
    pl_memory *memory;
    pl_error error = {0};
    const pl_memory_options options = {.budget_text = "48M"};
    void *own = use(64 * PL_MIB);
    assert_int_equal(pl_memory_new(&options, &memory, &error), PL_EBUDGET);
    assert_non_null(strstr(error.message, "48.0 MiB is too small: the process uses"));
    munmap(own, 64 * PL_MIB);
}

/* 256 MiB have 32 of reserve: the process has used the line, but not all of that. */
static void a_window_is_there_where_the_line_is_passed(void **state)
{
    (void)state;
    need_own_residence();
    pl_memory *memory;
    pl_error error = {0};
    pl_block block;
    const pl_memory_options options = {.budget_text = "256M"};
    void *own = use(256 * PL_MIB), *more;
    assert_int_equal(pl_memory_new(&options, &memory, &error), 0);
    assert_int_equal(pl_memory_headroom_bytes(memory), 0);
    assert_int_equal(pl_memory_take(memory, 4096, "little", &block, &error), PL_EBUDGET);
    assert_int_equal(pl_memory_take_window(memory, "copy", &block, &error), 0);
    assert_int_equal(pl_memory_claimed_bytes(memory), PL_MEMORY_WINDOW_BYTES);
    memset(block.data, 1, block.bytes);
    pl_memory_give(memory, &block); /* and is not kept as a spare */
    assert_int_equal(pl_memory_claimed_bytes(memory), 0);
    assert_int_equal(pl_memory_headroom_bytes(memory), 0);
    more = use(64 * PL_MIB); /* the reserve is 32 */
    assert_int_equal(pl_memory_take_window(memory, "copy", &block, &error), PL_EBUDGET);
    assert_non_null(strstr(error.message, "no room for 512.0 KiB for 'copy'"));
    munmap(more, 64 * PL_MIB);
    munmap(own, 256 * PL_MIB);
    end(memory);
}

/* What the kernel counts as resident lags behind by some pages of each processor. */
#define LAG (4 * PL_MIB)

static void what_the_process_uses_beside_its_blocks_is_charged(void **state)
{
    (void)state;
    need_own_residence();
    pl_memory *memory;
    const pl_memory_options options = {.budget_text = "900M"};
    assert_int_equal(pl_memory_new(&options, &memory, NULL), 0);
    /* A block that is not touched must not hide what is. */
    pl_block untouched = take(memory, 128 * PL_MIB);
    uint64_t before = pl_memory_headroom_bytes(memory);
    void *own = use(64 * PL_MIB);
    uint64_t during = pl_memory_headroom_bytes(memory);
    assert_true(during <= before - 64 * PL_MIB + LAG && during >= before - 64 * PL_MIB - LAG);
    munmap(own, 64 * PL_MIB);
    uint64_t after = pl_memory_headroom_bytes(memory);
    assert_true(after <= before + LAG && after >= before - LAG);
    /* Nor is one that is touched charged twice. */
    memset(untouched.data, 1, untouched.bytes);
    after = pl_memory_headroom_bytes(memory);
    assert_true(after <= before + LAG && after >= before - LAG);
    pl_memory_give(memory, &untouched);
    end(memory);
}

/* Two readings in a row are rarely apart by as much as a reading is trusted. */
static bool is_told_without_a_look(pl_memory *memory)
{
    for (int i = 0; i < 1000; i++) {
        uint64_t measured = pl_memory_headroom_bytes(memory);
        uint64_t told = pl_memory_headroom_for(memory, PL_MIB);
        if (told == measured - 32 * PL_MIB)
            return true;
        assert_true(told <= measured + LAG && told >= measured - LAG);
    }
    return false;
}

static void a_little_is_allowed_by_what_was_measured_lately(void **state)
{
    (void)state;
    need_own_residence();
    pl_memory *memory;
    const pl_memory_options options = {.budget_text = "900M"};
    assert_int_equal(pl_memory_new(&options, &memory, NULL), 0);
    assert_true(is_told_without_a_look(memory));
    end(memory);
}

static void much_is_allowed_by_what_is_measured_now(void **state)
{
    (void)state;
    need_own_residence();
    pl_memory *memory;
    const pl_memory_options options = {.budget_text = "900M"};
    const struct timespec a_while = {.tv_nsec = 80 * 1000 * 1000};
    assert_int_equal(pl_memory_new(&options, &memory, NULL), 0);
    uint64_t before = pl_memory_headroom_bytes(memory);
    void *own = use(64 * PL_MIB);
    (void)!pl_memory_headroom_bytes(memory);
    munmap(own, 64 * PL_MIB);
    /* 32 MiB from the line, however new the reading is; and an old one is no reading. */
    uint64_t told = pl_memory_headroom_for(memory, before - 80 * PL_MIB);
    assert_true(told <= before + LAG && told >= before - LAG);
    own = use(64 * PL_MIB);
    nanosleep(&a_while, NULL);
    told = pl_memory_headroom_for(memory, 1);
    assert_true(told <= before - 64 * PL_MIB + LAG && told >= before - 64 * PL_MIB - LAG);
    munmap(own, 64 * PL_MIB);
    end(memory);
}

static _Atomic int n_asked_pages; /* calls of mincore() */

int mincore(void *address, size_t n, unsigned char *pages)
{
    n_asked_pages++;
    return (int)syscall(SYS_mincore, address, n, pages);
}

static void a_look_asks_about_few_of_many_full_mappings(void **state)
{
    (void)state;
    enum { BLOCKS = 2000 };
    static pl_block blocks[BLOCKS];
    pl_memory *memory;
    const pl_memory_options options = {.budget_text = "900M"};
    assert_int_equal(pl_memory_new(&options, &memory, NULL), 0);
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = take(memory, 80000);
        memset(blocks[i].data, 1, blocks[i].bytes);
    }
    (void)!pl_memory_headroom_bytes(memory); /* finds them full */
    uint64_t before = pl_memory_headroom_bytes(memory);
    n_asked_pages = 0;
    for (int i = 0; i < 10; i++)
        assert_true(pl_memory_headroom_bytes(memory) <= before + LAG);
    assert_in_range(n_asked_pages, 10, BLOCKS / 2);

    /* One whose pages have gone, as by swapping, is noticed when its turn has come. */
    for (int i = 0; i < BLOCKS; i += 2)
        assert_int_equal(madvise(blocks[i].data, 80000 / 4096 * 4096, MADV_DONTNEED), 0);
    for (int i = 0; i < BLOCKS / 10; i++)
        (void)!pl_memory_headroom_bytes(memory);
    n_asked_pages = 0;
    (void)!pl_memory_headroom_bytes(memory);
    assert_true(n_asked_pages >= BLOCKS / 2);

    for (int i = 0; i < BLOCKS; i += 1 + (i % 3 == 0)) /* in no order, all of them */
        pl_memory_give(memory, &blocks[i]);
    for (int i = 0; i < BLOCKS; i++)
        pl_memory_give(memory, &blocks[i]);
    end(memory);
}

static void what_the_process_gave_back_can_be_taken(void **state)
{
    (void)state;
    need_own_residence();
    pl_memory *memory;
    const pl_memory_options options = {.budget_text = "300M"};
    void *own = use(200 * PL_MIB);
    assert_int_equal(pl_memory_new(&options, &memory, NULL), 0);
    pl_block block;
    assert_int_equal(pl_memory_take(memory, 150 * PL_MIB, "all", &block, NULL), PL_EBUDGET);
    munmap(own, 200 * PL_MIB);
    block = take(memory, 150 * PL_MIB);
    pl_memory_give(memory, &block);
    end(memory);
}

typedef struct victim {
    pl_memory *memory;
    pl_block blocks[8];
    int n_calls;
    uint64_t asked_bytes;
} victim;

static uint64_t give_one(void *context, uint64_t bytes, pl_error *reterr)
{
    victim *v = context;
    v->n_calls++;
    v->asked_bytes = bytes;
    for (size_t i = 0; i < PL_COUNT_OF(v->blocks); i++) {
        uint64_t freed = v->blocks[i].bytes;
        if (!freed)
            continue;
        pl_memory_give(v->memory, &v->blocks[i]);
        return freed;
    }
    pl_error_set(reterr, -EIO, "the disk is gone");
    return 0;
}

static void room_is_made_by_the_evictor_and_only_as_much_as_is_missing(void **state)
{
    (void)state;
    pl_memory *memory = new_memory(CAP);
    victim v = {.memory = memory};
    pl_error error = {0};
    for (size_t i = 0; i < PL_COUNT_OF(v.blocks); i++)
        v.blocks[i] = take(memory, PL_MIB);
    pl_memory_set_evictor(memory, give_one, &v);
    pl_block block = take(memory, 3 * PL_MIB - 4096);
    assert_int_equal(v.n_calls, 3);
    assert_int_equal(v.asked_bytes, PL_MIB - 4096);
    pl_block none;
    assert_int_equal(pl_memory_take(memory, CAP, "much", &none, &error), PL_EBUDGET);
    assert_non_null(strstr(error.message, "the disk is gone"));
    pl_memory_set_evictor(memory, NULL, NULL);
    pl_memory_give(memory, &block);
    end(memory);
}

/* In a child: 0 if all is as it should be. */
static int live_as_child(pl_memory *memory, pl_block *inherited)
{
    if (pl_memory_claimed_bytes(memory) != 0)
        return 1;
    uint64_t before = pl_memory_headroom_bytes(memory);
    pl_memory_give(memory, inherited);
    if (pl_memory_claimed_bytes(memory) != 0)
        return 2;
    uint64_t after = pl_memory_headroom_bytes(memory);
    if (after > before + LAG)
        return 3; /* the parent's block was taken off the parent's claim */
    pl_block block;
    if (pl_memory_take(memory, 100 * PL_MIB, "child", &block, NULL) < 0)
        return 4;
    if (pl_memory_headroom_bytes(memory) > after - 100 * PL_MIB + LAG)
        return 5;
    return 0; /* with the block: the parent must get it back */
}

static void a_forked_child_shares_the_line_and_leaves_nothing_charged(void **state)
{
    (void)state;
    need_own_residence();
    pl_memory *memory;
    const pl_memory_options options = {.budget_text = "400M"};
    assert_int_equal(pl_memory_new(&options, &memory, NULL), 0);
    pl_block mine = take(memory, 100 * PL_MIB), rest;
    memset(mine.data, 1, mine.bytes);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(live_as_child(memory, &mine));
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(pl_memory_claimed_bytes(memory), 100 * PL_MIB);
    /* Some 200 MiB are left, half of which the dead child has not given back yet. */
    rest = take(memory, 200 * PL_MIB);
    pl_memory_give(memory, &rest);
    pl_memory_give(memory, &mine);
    end(memory);
}

static bool is_resident(const void *data)
{
    unsigned char page;
    return mincore((void *)(uintptr_t)data, 4096, &page) == 0;
}

static void a_block_may_be_what_one_of_its_size_left_behind(void **state)
{
    (void)state;
    pl_memory *memory = new_memory(64 * PL_MIB);
    uint64_t before = pl_memory_headroom_bytes(memory);
    pl_block block = take(memory, PL_MIB), other;
    void *first = block.data;
    pl_memory_give(memory, &block);
    assert_int_equal(pl_memory_claimed_bytes(memory), 0);
    assert_int_equal(pl_memory_headroom_bytes(memory), before);
    other = take(memory, PL_MIB + 4096);
    assert_ptr_not_equal(other.data, first);
    block = take(memory, PL_MIB);
    assert_ptr_equal(block.data, first);
    assert_int_equal(pl_memory_claimed_bytes(memory), 2 * PL_MIB + 4096);
    pl_memory_give(memory, &block);
    pl_memory_give(memory, &other);
    end(memory);
    assert_false(is_resident(first));
}

/* Takes one of this size, gives it back, has `pressing` bytes taken meanwhile, and takes another:
 * what was written into the first is found there if it was kept. */
static int byte_left_behind(pl_memory *memory, uint64_t bytes, uint64_t pressing)
{
    pl_block block = take(memory, bytes), other;
    *(char *)block.data = 1;
    pl_memory_give(memory, &block);
    other = take(memory, pressing);
    pl_memory_give(memory, &other);
    block = take(memory, bytes);
    int byte = *(char *)block.data;
    pl_memory_give(memory, &block);
    return byte;
}

/* 1 GiB, of which a 16th may be kept. */
static void what_is_left_behind_is_little_and_goes_when_there_is_no_room(void **state)
{
    (void)state;
    pl_memory *memory;
    pl_error error = {0};
    const pl_memory_options options = {.budget_text = "1G"};
    if (pl_memory_new(&options, &memory, &error) < 0)
        fail_msg("%s", error.message);
    pl_block large = take(memory, 65 * PL_MIB), blocks[3];
    void *data = large.data;
    pl_memory_give(memory, &large);
    assert_false(is_resident(data));
    for (size_t i = 0; i < 3; i++)
        blocks[i] = take(memory, 32 * PL_MIB);
    data = blocks[0].data;
    for (size_t i = 0; i < 3; i++)
        pl_memory_give(memory, &blocks[i]);
    assert_false(is_resident(data)); /* the oldest of three makes room for the newest */
    pl_memory_trim(memory);
    assert_int_equal(byte_left_behind(memory, 32 * PL_MIB, 1), 1);
    uint64_t all = pl_memory_headroom_bytes(memory);
    assert_int_equal(byte_left_behind(memory, 32 * PL_MIB, all - 16 * PL_MIB), 0);
    end(memory);
}

/* It is nobody else's. */
static void below_a_cap_there_may_be_more_of_it(void **state)
{
    (void)state;
    pl_memory *memory = new_memory(CAP);
    assert_int_equal(byte_left_behind(memory, CAP / 4, 1), 1);
    assert_int_equal(byte_left_behind(memory, CAP / 2, CAP / 4), 1);
    assert_int_equal(byte_left_behind(memory, CAP / 4, CAP - 4096), 0);
    assert_true(pl_memory_peak_bytes(memory) <= CAP);
    end(memory);
}

static void a_child_does_not_take_what_its_parent_left_behind(void **state)
{
    (void)state;
    pl_memory *memory = new_memory(64 * PL_MIB);
    pl_block block = take(memory, PL_MIB);
    memset(block.data, 1, block.bytes);
    pl_memory_give(memory, &block);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        block = take(memory, PL_MIB);
        bool new = *(const char *)block.data == 0;
        pl_memory_give(memory, &block);
        pl_memory_unref(memory);
        _exit(new ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    block = take(memory, PL_MIB);
    assert_int_equal(*(const char *)block.data, 1);
    pl_memory_give(memory, &block);
    end(memory);
}

static void *take_and_give(void *argument)
{
    pl_memory *memory = argument;
    for (int i = 1; i < 3000; i++) {
        pl_block block;
        uint64_t bytes = (uint64_t)(i * 7919) % (3 * PL_MIB);
        if (pl_memory_take(memory, bytes, "thread", &block, NULL) < 0)
            continue;
        if (pl_memory_claimed_bytes(memory) > CAP)
            return "the cap was passed";
        if (bytes)
            *(char *)block.data = 1;
        pl_memory_give(memory, &block);
    }
    return NULL;
}

static void threads_share_one_account(void **state)
{
    (void)state;
    pthread_t threads[4];
    pl_memory *memory = new_memory(CAP);
    for (size_t i = 0; i < PL_COUNT_OF(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, memory), 0);
    for (size_t i = 0; i < PL_COUNT_OF(threads); i++) {
        void *problem;
        pthread_join(threads[i], &problem);
        assert_null(problem);
    }
    end(memory);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    fault_need_alloc();
    bool hit = true;
    for (int number = 1; hit; number++) {
        pl_memory *memory = NULL;
        pl_block small = {0}, large = {0};
        pl_error error = {0};
        fault_alloc_begin(number);
        const pl_memory_options options = {.cap_bytes = CAP};
        int r = pl_memory_new(&options, &memory, &error);
        if (r == 0)
            r = pl_memory_take(memory, 1000, "small", &small, &error);
        if (r == 0)
            r = pl_memory_take(memory, PL_MIB, "large", &large, &error);
        hit = fault_alloc_end();
        assert_int_equal(r, hit ? -ENOMEM : 0);
        assert_true(!hit || error.message[0]);
        if (!memory)
            continue;
        pl_memory_give(memory, &small);
        pl_memory_give(memory, &large);
        end(memory);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_is_claimed_while_it_lives),
        cmocka_unit_test(nothing_costs_nothing_and_has_an_address),
        cmocka_unit_test(the_cap_is_never_passed),
        cmocka_unit_test(sizes_that_nobody_has_are_refused),
        cmocka_unit_test(the_line_is_the_true_one_or_the_users),
        cmocka_unit_test(a_budget_that_the_process_has_used_up_is_refused),
        cmocka_unit_test(a_window_is_there_where_the_line_is_passed),
        cmocka_unit_test(what_the_process_uses_beside_its_blocks_is_charged),
        cmocka_unit_test(a_little_is_allowed_by_what_was_measured_lately),
        cmocka_unit_test(much_is_allowed_by_what_is_measured_now),
        cmocka_unit_test(a_look_asks_about_few_of_many_full_mappings),
        cmocka_unit_test(what_the_process_gave_back_can_be_taken),
        cmocka_unit_test(room_is_made_by_the_evictor_and_only_as_much_as_is_missing),
        cmocka_unit_test(a_forked_child_shares_the_line_and_leaves_nothing_charged),
        cmocka_unit_test(a_block_may_be_what_one_of_its_size_left_behind),
        cmocka_unit_test(what_is_left_behind_is_little_and_goes_when_there_is_no_room),
        cmocka_unit_test(below_a_cap_there_may_be_more_of_it),
        cmocka_unit_test(a_child_does_not_take_what_its_parent_left_behind),
        cmocka_unit_test(threads_share_one_account),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
