/* SPDX-License-Identifier: Apache-2.0 */
/* See panel_io.h. */
#include "exec/matmul/panel_io.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sys/file.h"
#include "util/threads.h"

#define PAGE PL_FILE_DIRECT_BYTES

/* The most that one call moves: see the numbers in the header; 16 MiB was slower, 1 MiB takes more
 * CPU time. */
#define PIECE_BYTES (4 * PL_MIB)

/* Shorter rows go through the page cache: their ends alone would take two calls. */
#define DIRECT_FROM_BYTES (64 * PL_KIB)

enum { IDLE, QUEUED, DONE }; /* of a request */

typedef struct worker {
    struct pl_panel_io *io;
    char *bounce;
    pthread_t thread;
} worker;

struct pl_panel_io {
    pthread_mutex_t mu; /* leaf lock */
    pthread_cond_t came, done;
    pl_panel_request *first, *last; /* mu; not begun */
    bool ends;                      /* mu */
    int n_workers;                  /* constant once made */
    worker workers[PL_PANEL_THREADS];
};

/* ---- files ---- */

pl_panel_file pl_panel_file_open(int fd)
{
    int direct = pl_file_open_direct(fd);
    return (pl_panel_file){.fd = fd, .direct_fd = direct < 0 ? -1 : direct};
}

void pl_panel_file_close(pl_panel_file *file)
{
    if (file->direct_fd >= 0)
        close(file->direct_fd);
    *file = (pl_panel_file){.fd = -1, .direct_fd = -1};
}

/* ---- reading ---- */

/* Reads the aligned pages around [offset, offset + n), up to the end of the file, through
 * `bounce`. */
static int read_bounced(const pl_panel_file *file, char *data, uint64_t n, uint64_t offset,
                        char *bounce)
{
    uint64_t skip = offset % PAGE;
    uint64_t want = (skip + n + PAGE - 1) / PAGE * PAGE, got = 0;
    while (got < skip + n) {
        ssize_t more =
            pread(file->direct_fd, bounce + got, want - got, (off_t)(offset - skip + got));
        if (more < 0 && errno == EINTR)
            continue;
        if (more < 0)
            return -errno;
        if (more == 0)
            return PL_ECORRUPT;
        got += (uint64_t)more;
        if (got < skip + n && got % PAGE) /* not the file's end: the rest is not aligned any more */
            return pl_file_read(file->fd, data, n, offset);
    }
    memcpy(data, bounce + skip, n);
    return 0;
}

/* Returns whether address and offset are equally aligned, so that whole pages can go straight
 * there. */
static bool congruent(const void *data, uint64_t offset)
{
    return ((uintptr_t)data - offset) % PAGE == 0;
}

static int read_direct(const pl_panel_file *file, char *data, uint64_t n, uint64_t offset,
                       char *bounce)
{
    int r = 0;
    bool straight = congruent(data, offset);
    while (n > 0 && r == 0) {
        uint64_t in_page = offset % PAGE, piece;
        if (straight && in_page == 0 && n >= PAGE) {
            piece = pl_min_u64(n / PAGE * PAGE, PIECE_BYTES);
            r = pl_file_read(file->direct_fd, data, piece, offset);
        } else {
            uint64_t most = straight ? PAGE : PL_PANEL_BOUNCE_BYTES;
            piece = pl_min_u64(n, most - in_page);
            r = read_bounced(file, data, piece, offset, bounce);
        }
        data += piece;
        offset += piece;
        n -= piece;
    }
    return r;
}

/* ---- writing ---- */

/* Partial pages at the ends, which others write the rest of, go through the page cache; direct
 * access is coherent with it. */
static int write_direct(const pl_panel_file *file, const char *data, uint64_t n, uint64_t offset,
                        char *bounce)
{
    int r = 0;
    bool straight = congruent(data, offset);
    while (n > 0 && r == 0) {
        uint64_t in_page = offset % PAGE, piece;
        if (in_page != 0 || n < PAGE) {
            piece = pl_min_u64(n, PAGE - in_page);
            r = pl_file_write(file->fd, data, piece, offset);
        } else {
            piece = pl_min_u64(n / PAGE * PAGE, straight ? PIECE_BYTES : PL_PANEL_BOUNCE_BYTES);
            if (!straight)
                memcpy(bounce, data, piece);
            r = pl_file_write(file->direct_fd, straight ? data : bounce, piece, offset);
        }
        data += piece;
        offset += piece;
        n -= piece;
    }
    return r;
}

/* ---- requests ---- */

static int move_row(const pl_panel_request *q, char *data, uint64_t n, uint64_t offset,
                    char *bounce)
{
    int r = -EINVAL;
    if (q->file->direct_fd >= 0 && n >= DIRECT_FROM_BYTES)
        r = q->write ? write_direct(q->file, data, n, offset, bounce)
                     : read_direct(q->file, data, n, offset, bounce);
    if (r != -EINVAL) /* some file systems take the flag and refuse the call */
        return r;
    return q->write ? pl_file_write(q->file->fd, data, n, offset)
                    : pl_file_read(q->file->fd, data, n, offset);
}

static int move(const pl_panel_request *q, char *bounce)
{
    if (q->row_bytes == q->file_row_bytes && q->row_bytes == q->data_row_bytes)
        return move_row(q, q->data, (uint64_t)q->n_rows * q->row_bytes, q->offset, bounce);
    int r = 0;
    for (int64_t i = 0; i < q->n_rows && r == 0; i++)
        r = move_row(q, q->data + (uint64_t)i * q->data_row_bytes, q->row_bytes,
                     q->offset + (uint64_t)i * q->file_row_bytes, bounce);
    return r;
}

static pl_panel_request *take(pl_panel_io *io)
{
    pthread_mutex_lock(&io->mu);
    while (!io->first && !io->ends)
        pthread_cond_wait(&io->came, &io->mu);
    pl_panel_request *request = io->first;
    if (request)
        io->first = request->next;
    pthread_mutex_unlock(&io->mu);
    return request;
}

static void finish(pl_panel_io *io, pl_panel_request *request, int result)
{
    pthread_mutex_lock(&io->mu);
    request->result = result;
    request->state = DONE;
    pthread_cond_broadcast(&io->done);
    pthread_mutex_unlock(&io->mu);
}

static void *work(void *context)
{
    worker *self = context;
    for (pl_panel_request *request; (request = take(self->io));)
        finish(self->io, request, move(request, self->bounce));
    return NULL;
}

static void start_workers(pl_panel_io *io)
{
    sigset_t before;
    pl_threads_block_signals(&before);
    while (io->n_workers < PL_PANEL_THREADS) {
        worker *self = &io->workers[io->n_workers];
        if (pthread_create(&self->thread, NULL, work, self) != 0)
            break;
        io->n_workers++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

int pl_panel_io_new(void *bounce, pl_panel_io **ret_io, pl_error *reterr)
{
    pl_panel_io *io = calloc(1, sizeof *io);
    if (!io)
        return pl_error_set(reterr, -ENOMEM, "out of memory for reading ahead");
    pthread_mutex_init(&io->mu, NULL);
    pthread_cond_init(&io->came, NULL);
    pthread_cond_init(&io->done, NULL);
    for (int i = 0; i < PL_PANEL_THREADS; i++)
        io->workers[i] = (worker){io, (char *)bounce + (uint64_t)i * PL_PANEL_BOUNCE_BYTES, 0};
    start_workers(io);
    *ret_io = io;
    return 0;
}

void pl_panel_io_free(pl_panel_io *io)
{
    if (!io)
        return;
    pthread_mutex_lock(&io->mu);
    io->ends = true;
    pthread_cond_broadcast(&io->came);
    pthread_mutex_unlock(&io->mu);
    for (int i = 0; i < io->n_workers; i++)
        pthread_join(io->workers[i].thread, NULL);
    pthread_cond_destroy(&io->done);
    pthread_cond_destroy(&io->came);
    pthread_mutex_destroy(&io->mu);
    free(io);
}

void pl_panel_io_submit(pl_panel_io *io, pl_panel_request *request)
{
    if (io->n_workers == 0) {
        request->result = move(request, io->workers[0].bounce);
        request->state = DONE;
        return;
    }
    pthread_mutex_lock(&io->mu);
    request->state = QUEUED;
    request->next = NULL;
    if (io->first)
        io->last->next = request;
    else
        io->first = request;
    io->last = request;
    pthread_cond_signal(&io->came);
    pthread_mutex_unlock(&io->mu);
}

int pl_panel_io_wait(pl_panel_io *io, pl_panel_request *request)
{
    pthread_mutex_lock(&io->mu);
    while (request->state == QUEUED)
        pthread_cond_wait(&io->done, &io->mu);
    int result = request->state == DONE ? request->result : 0;
    pthread_mutex_unlock(&io->mu);
    return result;
}
