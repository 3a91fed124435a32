/* SPDX-License-Identifier: Apache-2.0 */
/* Holds the malloc family to its contract below, at and above the line; each broken promise is one
 * line on stdout, and the exit status is their number. The line is given in MiB: a request of half
 * of it must succeed, one of twice as much must fail with ENOMEM ("over"), or everything must
 * succeed ("under", a line far away). Memory is not touched beyond a page: only the asking counts.
 */
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int n_broken;
static size_t small_bytes, half_bytes, twice_bytes;
enum { OLD_ERRNO = 123, BLOCK_ALIGNMENT = 16 };

#define EXPECT(condition, ...)                                                                     \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            n_broken++;                                                                            \
            printf("%s: ", #condition);                                                            \
            printf(__VA_ARGS__);                                                                   \
            printf("\n");                                                                          \
        }                                                                                          \
    } while (0)

/* The family behind one signature. Size and alignment come through volatile: no call is optimised
 * away, and no size is warned of. */
static void *by_malloc(size_t bytes, size_t alignment)
{
    (void)alignment;
    return malloc(bytes);
}

static void *by_calloc(size_t bytes, size_t alignment)
{
    (void)alignment;
    return calloc(bytes / 16, 16);
}

static void *by_realloc(size_t bytes, size_t alignment)
{
    (void)alignment;
    return realloc(NULL, bytes);
}

static void *by_reallocarray(size_t bytes, size_t alignment)
{
    (void)alignment;
    return reallocarray(NULL, bytes / 16, 16);
}

/* Returns its error; glibc's sets errno too, but only with one. */
static void *by_posix_memalign(size_t bytes, size_t alignment)
{
    void *block = NULL;
    int r = posix_memalign(&block, alignment, bytes);
    EXPECT((block == NULL) == (r == ENOMEM), "posix_memalign returned %d", r);
    if (r != 0)
        errno = r;
    return block;
}

static void *by_aligned_alloc(size_t bytes, size_t alignment)
{
    return aligned_alloc(alignment, bytes);
}

static void *by_memalign(size_t bytes, size_t alignment)
{
    return memalign(alignment, bytes);
}

static void *by_valloc(size_t bytes, size_t alignment)
{
    (void)alignment;
    return valloc(bytes);
}

static const struct way {
    const char *name;
    void *(*get)(size_t bytes, size_t alignment);
    size_t alignments[4]; /* ends with 0 */
} ways[] = {
    {"malloc", by_malloc, {BLOCK_ALIGNMENT}},
    {"calloc", by_calloc, {BLOCK_ALIGNMENT}},
    {"realloc", by_realloc, {BLOCK_ALIGNMENT}},
    {"reallocarray", by_reallocarray, {BLOCK_ALIGNMENT}},
    {"posix_memalign", by_posix_memalign, {16, 64, 4096}},
    {"aligned_alloc", by_aligned_alloc, {16, 64, 4096}},
    {"memalign", by_memalign, {16, 256, 1 << 21}},
    {"valloc", by_valloc, {4096}},
};

static void expect_block(const struct way *way, size_t bytes, size_t alignment)
{
    volatile size_t asked = bytes;
    errno = OLD_ERRNO;
    char *block = way->get(asked, alignment);
    EXPECT(block != NULL, "%s(%zu) failed: %s", way->name, bytes, strerror(errno));
    if (block == NULL)
        return;
    EXPECT(errno == OLD_ERRNO, "%s(%zu) changed errno to %d", way->name, bytes, errno);
    EXPECT((uintptr_t)block % alignment == 0, "%s(%zu): %p for alignment %zu", way->name, bytes,
           (void *)block, alignment);
    EXPECT(malloc_usable_size(block) >= bytes, "%s(%zu): usable size", way->name, bytes);
    block[0] = 1;
    block[bytes - 1] = 1;
    errno = OLD_ERRNO;
    free(block);
    EXPECT(errno == OLD_ERRNO, "free after %s(%zu) changed errno to %d", way->name, bytes, errno);
}

static void expect_refusal(const struct way *way, size_t bytes, size_t alignment)
{
    volatile size_t asked = bytes;
    errno = OLD_ERRNO;
    void *block = way->get(asked, alignment);
    EXPECT(block == NULL, "%s(%zu) was not refused", way->name, bytes);
    EXPECT(errno == ENOMEM, "%s(%zu): errno %d", way->name, bytes, errno);
    free(block);
}

static void check_way(const struct way *way, int refused_over)
{
    for (const size_t *alignment = way->alignments; *alignment != 0; alignment++) {
        expect_block(way, small_bytes, *alignment);
        expect_block(way, half_bytes, *alignment);
        if (refused_over)
            expect_refusal(way, twice_bytes, *alignment);
        else
            expect_block(way, twice_bytes, *alignment);
        /* PTRDIFF_MAX and its neighbours: no allocator gives them, and no sum may wrap over them.
         */
        for (size_t i = 0; i < 3; i++)
            expect_refusal(way, (SIZE_MAX / 2 - 15 + 16 * i) & ~(size_t)15, *alignment);
    }
}

static void check_failed_realloc_keeps_the_block(void)
{
    volatile size_t too_much = twice_bytes;
    unsigned char *block = malloc(half_bytes);
    EXPECT(block != NULL, "malloc(%zu)", half_bytes);
    if (block == NULL)
        return;
    memset(block, 0x5a, 8192);
    block[half_bytes - 1] = 0x5b;
    errno = OLD_ERRNO;
    void *moved = realloc(block, too_much);
    EXPECT(moved == NULL && errno == ENOMEM, "realloc to %zu: %p, errno %d", twice_bytes, moved,
           errno);
    if (moved != NULL)
        block = moved;
    EXPECT(block[0] == 0x5a && block[8191] == 0x5a && block[half_bytes - 1] == 0x5b,
           "the old block was changed");
    /* It is still ours: it can be shrunk, and freed, and its room is there again. */
    unsigned char *smaller = realloc(block, small_bytes);
    EXPECT(smaller != NULL && smaller[0] == 0x5a, "shrinking after a failed realloc");
    free(smaller != NULL ? smaller : block);
    expect_block(&ways[0], half_bytes, BLOCK_ALIGNMENT);
}

static void check_odd_requests(void)
{
    volatile size_t huge = SIZE_MAX / 2, zero = 0;
    void *volatile block; /* volatile: an allocation that is only compared may be optimised away */
    block = calloc(huge, 4); /* errno is not asked for: tcmalloc sets none */
    EXPECT(block == NULL, "calloc that overflows");
    block = reallocarray(NULL, huge, 4);
    EXPECT(block == NULL, "reallocarray that overflows");
    void *nothing = malloc(zero), *also = calloc(zero, 8);
    EXPECT(nothing != NULL && also != NULL, "zero bytes are a block");
    free(nothing);
    free(also);
    free(NULL);
    void *aligned = NULL;
    EXPECT(posix_memalign(&aligned, 24, 64) == EINVAL && aligned == NULL, "an alignment of 24");
    EXPECT(malloc_usable_size(NULL) == 0, "usable size of nothing");
    unsigned char *zeroed = calloc(1, half_bytes);
    EXPECT(zeroed != NULL && zeroed[0] == 0 && zeroed[half_bytes - 1] == 0, "calloc clears");
    free(zeroed);
}

/* Blocks kept until the line stops them; each freed one is room for exactly one more. */
static void check_room_returns(void)
{
    enum { N = 64 };
    void *blocks[N] = {NULL};
    int n = 0;
    while (n < N && (blocks[n] = malloc(half_bytes / 4)) != NULL)
        n++;
    EXPECT(n >= 4 && n < N, "%d blocks of an eighth of the line", n);
    for (int round = 0; round < 100; round++) {
        free(blocks[0]);
        blocks[0] = malloc(half_bytes / 4);
        EXPECT(blocks[0] != NULL, "round %d: a freed block cannot be had again", round);
    }
    for (int i = 0; i < n; i++)
        free(blocks[i]);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    size_t line_bytes = strtoul(argv[1], NULL, 10) << 20;
    int refused_over = strcmp(argv[2], "over") == 0;
    small_bytes = 160;
    half_bytes = line_bytes / 2;
    twice_bytes = line_bytes * 2;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
        check_way(&ways[i], refused_over);
    check_odd_requests();
    if (refused_over) {
        check_failed_realloc_keeps_the_block();
        check_room_returns();
    }
    printf("%d broken\n", n_broken);
    return n_broken > 99 ? 99 : n_broken;
}
