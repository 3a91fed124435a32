/* SPDX-License-Identifier: Apache-2.0 */
/* One OpenCL device: its memory and its kernels.
 *   unified  the device shares the host's memory. Buffers are then the caller's staging areas, and
 *            nothing is copied; else buffers are the device's, and staging is sent and fetched
 *   claim    the most that steps use on a device; made before any buffer
 *   job      the buffers of one step on a device, of fixed sizes for all its tiles
 *   staging  the host copy of a buffer, of the same size, aligned to PL_STAGING_ALIGN_BYTES
 *
 * Call order: claim; one or several jobs; release. Within a job: begin; for each tile fill all
 * inputs, compute, fetch the result; end. Buffers that exist before the job, or stay after it, are
 * neither filled nor fetched. A device is opened by its first claim, or when its workspace is asked
 * for. A forked child cannot use it. A job belongs to one thread; devices are safe from any. */
#ifndef PL_DEVICE_DEVICE_H
#define PL_DEVICE_DEVICE_H

#include "device/device_chain.h"
#include "device/opencl.h"
#include "device/room.h"
#include "tensor/device_name.h"

#define PL_STAGING_ALIGN_BYTES 128 /* the largest vector of OpenCL C */

typedef struct pl_cached_program pl_cached_program;

typedef struct pl_device {
    cl_device_id id;
    char name[PL_DEVICE_NAME_BYTES];
    char description[256];
    uint64_t memory_bytes, largest_bytes; /* in all; of one buffer */
    bool has_f64, unified, rounds;        /* rounds: divides and takes roots exactly rounded */
    size_t n_together;   /* work items of a group: some devices compile for each number */
    uint32_t generation; /* of the process that found it; constant, like all above */
    pl_room room;
    pthread_mutex_t opening; /* held while a context or a program is made; leaf lock */
    cl_context context;      /* opening; constant once made, like the queue */
    cl_command_queue queue;
    pl_cached_program *programs; /* opening: keyed by their text, newest first */
} pl_device;

/* Queries the device's properties. `limit_bytes` 0: the default. Fails with -EIO. */
PL_MUST_CHECK int pl_device_init(pl_device *device, cl_device_id id, int number,
                                 uint64_t limit_bytes, pl_error *reterr);
void pl_device_done(pl_device *device);

/* Makes the context, once. Errors name the device. */
PL_MUST_CHECK int pl_device_open(pl_device *device, pl_error *reterr);

enum { PL_JOB_BUFFERS_MAX = PL_DEVICE_CHAIN_INPUTS_MAX + 2 };

/* May wait for other claims, until `check` ends the wait. Fails with PL_EBUDGET and the numbers, or
 * with the errors of opening. */
PL_MUST_CHECK int pl_device_claim(pl_device *device, uint64_t bytes, pl_room_check check,
                                  pl_error *reterr);
void pl_device_release(pl_device *device, uint64_t bytes);

/* `host` has the same size, aligned as staging, and becomes the buffer if memory is unified;
 * otherwise it is ignored. Fails with -ENOMEM, or -EIO with OpenCL's name for the error. */
PL_MUST_CHECK int pl_device_buffer_new(pl_device *device, uint64_t bytes, char *host,
                                       cl_mem *ret_buffer, pl_error *reterr);
void pl_device_buffer_free(cl_mem buffer);

typedef struct pl_device_job_buffer {
    uint64_t bytes; /* > 0 */
    char *staging;  /* NULL: not filled or fetched; only where memory is not unified */
    cl_mem there;   /* another owner's, without staging; NULL: the job makes one */
} pl_device_job_buffer;

typedef struct pl_device_job {
    pl_device *device;
    cl_mem buffers[PL_JOB_BUFFERS_MAX];
    bool is_own[PL_JOB_BUFFERS_MAX];
    char *staging[PL_JOB_BUFFERS_MAX];
    int n_buffers;
    void *mapped; /* unified: the buffer's address, while the host has it mapped */
    cl_kernel kernel;
} pl_device_job;

/* Returns the device memory that a buffer of this many bytes takes. */
uint64_t pl_device_job_buffer_bytes(uint64_t bytes);

/* Begins a job on a claimed device. Fails as pl_device_buffer_new() does. */
PL_MUST_CHECK int pl_device_job_begin(pl_device_job *job, pl_device *device, int n_buffers,
                                      const pl_device_job_buffer *buffers, pl_error *reterr);
void pl_device_job_end(pl_device_job *job);

/* Between the two calls the caller writes `bytes` to staging. */
PL_MUST_CHECK int pl_device_job_fill_begin(pl_device_job *job, int buffer, uint64_t bytes,
                                           pl_error *reterr);
PL_MUST_CHECK int pl_device_job_fill_end(pl_device_job *job, int buffer, uint64_t bytes,
                                         pl_error *reterr);

/* Waits for the computation; between the two calls the result is in staging. */
PL_MUST_CHECK int pl_device_job_fetch_begin(pl_device_job *job, int buffer, uint64_t bytes,
                                            pl_error *reterr);
PL_MUST_CHECK int pl_device_job_fetch_end(pl_device_job *job, int buffer, pl_error *reterr);

/* Waits for a computation whose result is not fetched. */
PL_MUST_CHECK int pl_device_job_wait(pl_device_job *job, pl_error *reterr);

/* Sets the kernel of a chain, compiling it if needed: call before the first
 * pl_device_job_chain(). */
PL_MUST_CHECK int pl_device_job_set_chain(pl_device_job *job, const pl_device_chain *chain,
                                          pl_error *reterr);

/* Runs it: buffers from 0 on are the inputs, and the one after them is the result. extents has
 * chain->rank entries. */
PL_MUST_CHECK int pl_device_job_chain(pl_device_job *job, const pl_device_chain *chain,
                                      const int64_t *extents, pl_error *reterr);

/* Sets "/GPU:0: clCreateBuffer of 4.0 KiB: CL_OUT_OF_RESOURCES"; `what` is the part before the last
 * colon. */
int pl_device_error(const pl_device *device, cl_int code, const char *what, pl_error *reterr);

#endif
