/* SPDX-License-Identifier: Apache-2.0 */
/* Hangs: two threads take two mutexes in opposite order, and a barrier makes sure that each has its
 * first before it asks for its second. The tids are printed, so that a test knows the cycle. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

void *lock_in_order(void *argument);

static pthread_mutex_t weights = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t gradients = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both_hold_one;

struct order {
    pthread_mutex_t *first, *second;
};

void *lock_in_order(void *argument)
{
    struct order *order = argument;
    pthread_mutex_lock(order->first);
    printf("%d\n", (int)gettid());
    fflush(stdout);
    pthread_barrier_wait(&both_hold_one);
    pthread_mutex_lock(order->second);
    return NULL;
}

int main(void)
{
    struct order orders[2] = {{&weights, &gradients}, {&gradients, &weights}};
    pthread_t threads[2];
    pthread_barrier_init(&both_hold_one, NULL, 2);
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, lock_in_order, &orders[i]) != 0)
            return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
