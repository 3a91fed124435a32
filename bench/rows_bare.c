/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of an .npy file of bytes, read by one thread with nothing around pread(): what bench/rows.c
 * is held against. In order a batch is one call; shuffled, a row is one, in an order that is drawn
 * before the clock starts. All batches go to the same memory, in huge pages.
 *   rows_bare FILE BATCH_BYTES SHUFFLE
 * Goes through it twice, and prints bytes, seconds and CPU seconds of the second time. */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "program.h"

#define HUGE_PAGE (2u << 20)

typedef struct rows {
    int fd;
    uint64_t begin, n, row_bytes; /* where the first row is; how many there are */
} rows;

static void die(const char *why)
{
    snprintf(error.message, sizeof error.message, "%s", why);
    check(-EINVAL);
}

/* Version 1, two axes, one byte each: what bench/datasets.py makes. */
static rows open_rows(const char *path)
{
    char head[4096] = "";
    uint16_t n_text;
    rows made = {.fd = open(path, O_RDONLY)};
    if (pread(made.fd, head, sizeof head - 1, 0) < 10)
        die("cannot read the file");
    memcpy(&n_text, head + 8, sizeof n_text);
    made.begin = 10u + n_text;
    const char *shape = strstr(head + 10, "'shape': (");
    if (!shape || sscanf(shape, "'shape': (%" SCNu64 ", %" SCNu64, &made.n, &made.row_bytes) != 2)
        die("no shape of two axes");
    return made;
}

static char *new_batch(size_t bytes)
{
    char *batch = aligned_alloc(HUGE_PAGE, (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
    if (!batch)
        die("no memory");
    madvise(batch, bytes, MADV_HUGEPAGE);
    return batch;
}

static uint64_t *new_order(uint64_t n)
{
    uint64_t *order = malloc(n * sizeof *order), state = 1;
    for (uint64_t i = 0; order && i < n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint64_t at = (state >> 33) % (i + 1);
        order[i] = order[at];
        order[at] = i;
    }
    return order;
}

static void read_at(const rows *from, uint64_t row, uint64_t n, char *to)
{
    uint64_t bytes = n * from->row_bytes, at = from->begin + row * from->row_bytes;
    while (bytes > 0) {
        ssize_t got = pread(from->fd, to, bytes, (off_t)at);
        if (got <= 0)
            die("the file ends too early");
        to += got;
        at += (uint64_t)got;
        bytes -= (uint64_t)got;
    }
}

static void go_through(const rows *from, uint64_t per_batch, const uint64_t *order, char *batch)
{
    for (uint64_t at = 0; at < from->n; at += per_batch) {
        uint64_t n = from->n - at < per_batch ? from->n - at : per_batch;
        if (!order)
            read_at(from, at, n, batch);
        for (uint64_t i = 0; order && i < n; i++)
            read_at(from, order[at + i], 1, batch + i * from->row_bytes);
    }
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    rows from = open_rows(argv[1]);
    uint64_t per_batch = strtoull(argv[2], NULL, 10) / from.row_bytes;
    uint64_t *order = atoi(argv[3]) ? new_order(from.n) : NULL;
    char *batch = new_batch(per_batch * from.row_bytes);
    go_through(&from, per_batch, order, batch);
    double begin = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
    go_through(&from, per_batch, order, batch);
    printf("%" PRIu64 " %.6f %.6f\n", from.n * from.row_bytes, now(CLOCK_MONOTONIC) - begin,
           now(CLOCK_PROCESS_CPUTIME_ID) - cpu);
    return 0;
}
