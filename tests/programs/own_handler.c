/* SPDX-License-Identifier: Apache-2.0 */
/* own_handler KIB: a handler with SA_ONSTACK that takes so many KiB of stack, in a program that has
 * made no stack for it: raised in the main thread, in one with the usual stack, and in one with a
 * stack of just enough. */
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t bytes;
static volatile sig_atomic_t n_handled;

static void on_signal(int signal)
{
    volatile char block[bytes];
    (void)signal;
    for (size_t i = bytes; i > 0; i--)
        block[i - 1] = (char)i; /* from the top of the stack down */
    /* What lies below too small a stack may be mapped, too, and somebody else's. */
    stack_t stack;
    int fits =
        sigaltstack(NULL, &stack) == 0 && (!(stack.ss_flags & SS_ONSTACK) || stack.ss_size > bytes);
    n_handled += fits && block[bytes / 2] == (char)(bytes / 2 + 1);
}

static void *raise_here(void *unused)
{
    raise(SIGUSR1);
    return unused;
}

static void raise_in_thread(size_t stack_bytes)
{
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (stack_bytes && pthread_attr_setstacksize(&attributes, stack_bytes) != 0)
        exit(3);
    if (pthread_create(&thread, &attributes, raise_here, NULL) != 0)
        exit(4);
    pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    bytes = (size_t)atoi(argv[1]) << 10;
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    free(malloc(100)); /* the thread is known to the guard */
    raise(SIGUSR1);
    raise_in_thread(0);
    raise_in_thread(bytes + (256 << 10));
    printf("%d handled\n", (int)n_handled);
    return 0;
}
