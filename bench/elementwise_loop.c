/* SPDX-License-Identifier: Apache-2.0 */
/* What bench/elementwise.py compares with: the sum of a * b + sin(a) as one would write it by hand
 * for exactly that, on threads; and reading files past the page cache, doing nothing with them.
 * Built with -O3 -march=native, so that it is as fast as the machine lets it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/elementwise/vector_math.h"

enum { THREADS_MAX = 64, LANES = PL_N_LANES_F32, BLOCK = 512 };
#define PIECE_BYTES (4l << 20)

typedef struct part {
    const float *a, *b;
    long n;
    int own_sine;
    double sum;
    pthread_t thread;
} part;

/* With the library's sine, a vector at a time; sums in double precision, as the runtime's are. */
static double fused(const float *a, const float *b, long n)
{
    typedef double wide __attribute__((vector_size(2 * sizeof(pl_lanes_F32))));
    wide sum = {0};
    double total = 0;
    long i = 0;
    for (; i + LANES <= n; i += LANES) {
        pl_lanes_F32 x, y, z;
        memcpy(&x, a + i, sizeof x);
        memcpy(&y, b + i, sizeof y);
        z = x * y + PL_LIBRARY_F32(sin, u10)(x);
        sum += __builtin_convertvector(z, wide);
    }
    for (int k = 0; k < LANES; k++)
        total += sum[k];
    for (; i < n; i++)
        total += (double)(a[i] * b[i] + sinf(a[i]));
    return total;
}

/* With the runtime's own sine, which is shorter: the most that fusion could give it. */
static double fused_own(const float *a, const float *b, long n)
{
    double total = 0;
    for (long i = 0; i < n; i += BLOCK) {
        long end = n - i < BLOCK ? n : i + BLOCK;
        double sum = 0;
        for (long k = i; k < end; k++)
            sum += (double)(a[k] * b[k] + pl_sin_easy(a[k]));
        total += sum;
    }
    return total;
}

static void *run_part(void *context)
{
    part *p = context;
    p->sum = p->own_sine ? fused_own(p->a, p->b, p->n) : fused(p->a, p->b, p->n);
    return NULL;
}

double bench_fused(const float *a, const float *b, long n, int n_threads, int own_sine)
{
    part parts[THREADS_MAX];
    double sum = 0;
    for (int i = 0; i < n_threads; i++) {
        long from = n / n_threads * i, to = i == n_threads - 1 ? n : n / n_threads * (i + 1);
        parts[i] = (part){a + from, b + from, to - from, own_sine, 0, 0};
        if (pthread_create(&parts[i].thread, NULL, run_part, &parts[i]) != 0)
            abort();
    }
    for (int i = 0; i < n_threads; i++) {
        pthread_join(parts[i].thread, NULL);
        sum += parts[i].sum;
    }
    return sum;
}

typedef struct reader {
    const char *const *paths;
    int n_paths, fd;
    off_t next, bytes;
    long n_read;
    int error;
    pthread_mutex_t mu; /* all but paths */
} reader;

/* The next piece of the file: its offset, or -1. */
static off_t take_piece(reader *r)
{
    pthread_mutex_lock(&r->mu);
    off_t at = r->error || r->next >= r->bytes ? -1 : r->next;
    r->next += PIECE_BYTES;
    pthread_mutex_unlock(&r->mu);
    return at;
}

static void *read_pieces(void *context)
{
    reader *r = context;
    char *data = aligned_alloc(4096, PIECE_BYTES);
    for (off_t at; (at = take_piece(r)) >= 0;) {
        ssize_t n = pread(r->fd, data, PIECE_BYTES, at);
        pthread_mutex_lock(&r->mu);
        r->error = n < 0 ? errno : r->error;
        r->n_read += n > 0 ? n : 0;
        pthread_mutex_unlock(&r->mu);
    }
    free(data);
    return NULL;
}

/* Bytes that were read, of all files one after the other; or -errno. */
long bench_read(const char *const *paths, int n_paths, int n_threads)
{
    reader r = {.mu = PTHREAD_MUTEX_INITIALIZER};
    pthread_t threads[THREADS_MAX];
    struct stat info;
    for (int i = 0; i < n_paths; i++) {
        r.fd = open(paths[i], O_RDONLY | O_DIRECT);
        if (r.fd < 0 || fstat(r.fd, &info) < 0)
            return -errno;
        r.next = 0;
        r.bytes = info.st_size;
        for (int k = 0; k < n_threads; k++)
            if (pthread_create(&threads[k], NULL, read_pieces, &r) != 0)
                abort();
        for (int k = 0; k < n_threads; k++)
            pthread_join(threads[k], NULL);
        close(r.fd);
    }
    return r.error ? -r.error : r.n_read;
}
