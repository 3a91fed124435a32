/* SPDX-License-Identifier: Apache-2.0 */
/* guard_edges CASE: one corner of the allocator's world each, where the guard once went wrong.
 * Prints what the ledger says, read from its file as src/ledger/layout.h has it. */
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const size_t MIB = 1 << 20;

/* Of a ledger, as src/ledger/layout.h has it. */
enum { SUM_AT = 8192, CHARGED = 128, PEAK = 192, SLOTS_AT = 12288, SLOT_BYTES = 128, SLOTS = 1024 };

static uint64_t word_at(off_t offset)
{
    uint64_t word = 0;
    int fd = open(getenv("PLIMSOLL_LEDGER"), O_RDONLY | O_CLOEXEC);
    if (pread(fd, &word, sizeof word, offset) != (ssize_t)sizeof word)
        _exit(3);
    close(fd);
    return word;
}

static long charged_mib(void)
{
    return (long)((int64_t)word_at(SUM_AT + CHARGED) / (int64_t)MIB);
}

static long peak_mib(void)
{
    return (long)((int64_t)word_at(SUM_AT + PEAK) / (int64_t)MIB);
}

static long claimed_mib(void)
{
    for (off_t slot = SLOTS_AT; slot < SLOTS_AT + SLOTS * SLOT_BYTES; slot += SLOT_BYTES)
        if ((pid_t)(uint32_t)word_at(slot) == getpid())
            return (long)((int64_t)word_at(slot + 16) / (int64_t)MIB);
    return -1;
}

static void *volatile block;

/* A child that no atfork handler sees frees its copy of the parent's block. */
static int fork_unseen(const char *how)
{
    block = malloc(200 * MIB);
    pid_t pid = strcmp(how, "_Fork") == 0   ? _Fork()
                : strcmp(how, "clone") == 0 ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)
                                            : fork();
    if (pid == 0) {
        free(block);
        block = malloc(100 * MIB);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    printf("%ld", claimed_mib());
    free(block);
    void *again = malloc(2 * MIB);
    printf(" %ld %s\n", claimed_mib(), again ? "granted" : "refused");
    return 0;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *allocate_with_lock(void *unused)
{
    for (;;) {
        pthread_mutex_lock(&mutex);
        for (int i = 0; i < 1000; i++) {
            block = malloc(100000);
            free(block);
        }
        pthread_mutex_unlock(&mutex);
        pthread_testcancel();
    }
    return unused;
}

/* malloc() is no cancellation point: a thread cancelled while it holds a lock gives that back. */
static int cancel(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, allocate_with_lock, NULL);
    usleep(100000);
    pthread_cancel(thread);
    pthread_join(thread, NULL);
    printf("%s\n", pthread_mutex_trylock(&mutex) ? "locked" : "free");
    return 0;
}

/* free(NULL) with a tracked block in the page of the filter that NULL falls into. */
static int free_null(void)
{
    void *volatile nothing = NULL;
    void *aligned = memalign((size_t)1 << 32, 2 * MIB);
    free(nothing);
    printf("%ld", claimed_mib());
    free(aligned);
    printf(" %ld\n", claimed_mib());
    return 0;
}

/* Mappings that end as part of a larger span leave nothing that hides a later block. */
static int unmapped_together(void)
{
    for (int i = 0; i < 50; i++) {
        char *a = mmap(NULL, 2 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        char *b = mmap(NULL, 2 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (b + 2 * MIB == a) {
            munmap(b, 4 * MIB);
        } else {
            munmap(a, 2 * MIB);
            munmap(b, 2 * MIB);
        }
        void *aligned = NULL;
        if (posix_memalign(&aligned, 2 * MIB, 2 * MIB) != 0)
            return 1;
        free(aligned);
    }
    printf("%ld\n", claimed_mib());
    return 0;
}

static volatile int done;

static void *ask_small(void *unused)
{
    while (!done) {
        void *volatile small = malloc(300000);
        free(small);
    }
    return unused;
}

/* A block that changes its size while another thread looks counts once. */
static int resize_meanwhile(void)
{
    pthread_t thread;
    size_t n = 300 * MIB;
    char *resized = malloc(n);
    memset(resized, 1, n);
    pthread_create(&thread, NULL, ask_small, NULL);
    for (int i = 0; i < 20000; i++) {
        n ^= 64 * 4096;
        resized = realloc(resized, n);
    }
    done = 1;
    pthread_join(thread, NULL);
    printf("%ld\n", peak_mib());
    return 0;
}

static __attribute__((noinline)) void crash(void)
{
    *(volatile int *)8 = 1;
}

/* A crash in a child of vfork(), which has our memory, and then one of our own. */
static int crash_after_vfork(void)
{
    int status;
    pid_t pid = vfork();
    if (pid == 0) {
        crash();
        _exit(0);
    }
    waitpid(pid, &status, 0);
    printf("%d\n", WTERMSIG(status));
    fflush(stdout);
    crash();
    return 0;
}

/* Forks by the hundred, near the line: the pages are the parent's, and nobody is refused. */
static int forks_near_the_line(void)
{
    int n_refused = 0;
    block = malloc(300 * MIB);
    memset(block, 1, 300 * MIB);
    for (int i = 0; i < 150; i++) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(0);
        void *small = malloc(2 * MIB);
        n_refused += small == NULL;
        free(small);
        waitpid(pid, NULL, 0);
    }
    printf("%d\n", n_refused);
    return 0;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    if (strcmp(name, "fork-unseen") == 0 && argc > 2)
        return fork_unseen(argv[2]);
    static const struct {
        const char *name;
        int (*run)(void);
    } cases[] = {
        {"cancel", cancel},
        {"free-null", free_null},
        {"unmapped-together", unmapped_together},
        {"resize-meanwhile", resize_meanwhile},
        {"crash-after-vfork", crash_after_vfork},
        {"forks-near-the-line", forks_near_the_line},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (strcmp(name, cases[i].name) == 0)
            return cases[i].run();
    fprintf(stderr, "guard_edges: no case '%s' (charged %ld MiB)\n", name, charged_mib());
    return 2;
}
