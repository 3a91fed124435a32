/* SPDX-License-Identifier: Apache-2.0 */
/* One OpenCL device: its memory and its kernels.
 *   unified  its memory is the host's. Buffers are then the caller's own staging areas, and nothing
 *            is copied; else they are the device's, and staging is what is sent and fetched
 *   claim    what steps have on a device at most; made before any buffer
 *   job      what one step has on a device: buffers of fixed sizes for all its tiles
 *   staging  a buffer's bytes on the host, as many, aligned to PL_STAGING_ALIGN_BYTES
 *
 * Claim; a job or several; release. A job: begin; for each tile fill all inputs, compute, fetch the
 * result; end. What is neither filled nor fetched is a buffer that is there before the job or stays
 * after it. A device is opened when it is claimed first, or its workspace is asked for. After a
 * fork the child has no part in it. A job belongs to one thread; devices are safe from any. */
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
    bool has_f64, unified, rounds;        /* rounds: it can divide and take roots with no error */
    size_t
        n_together; /* work items of a group: said, because some devices compile for each number */
    uint32_t generation; /* of the process that found it; constant, as is all above */
    pl_room room;
    pthread_mutex_t opening; /* held while a context or a program is made; leaf lock */
    cl_context context;      /* opening; constant once made, as is the queue */
    cl_command_queue queue;
    pl_cached_program *programs; /* opening: by their text, newest first */
} pl_device;

/* Asks the device what it is. `limit_bytes` 0: the default. -EIO. */
PL_MUST_CHECK int pl_device_init(pl_device *device, cl_device_id id, int number,
                                 uint64_t limit_bytes, pl_error *reterr);
void pl_device_done(pl_device *device);

/* Makes the context, once. Errors name the device. */
PL_MUST_CHECK int pl_device_open(pl_device *device, pl_error *reterr);

enum { PL_JOB_BUFFERS_MAX = PL_DEVICE_CHAIN_INPUTS_MAX + 2 };

/* May wait for others who have claimed, until `check` says otherwise. PL_EBUDGET with the numbers;
 * errors of opening. */
PL_MUST_CHECK int pl_device_claim(pl_device *device, uint64_t bytes, pl_room_check check,
                                  pl_error *reterr);
void pl_device_release(pl_device *device, uint64_t bytes);

/* `host` is as large, aligned as staging, and is the buffer where memory is unified; else it is not
 * looked at. -ENOMEM, -EIO with OpenCL's own name for it. */
PL_MUST_CHECK int pl_device_buffer_new(pl_device *device, uint64_t bytes, char *host,
                                       cl_mem *ret_buffer, pl_error *reterr);
void pl_device_buffer_free(cl_mem buffer);

typedef struct pl_device_job_buffer {
    uint64_t bytes; /* > 0 */
    char *staging;  /* NULL: it is not filled or fetched; only where memory is not unified */
    cl_mem there;   /* somebody else's, without staging; NULL: the job makes one */
} pl_device_job_buffer;

typedef struct pl_device_job {
    pl_device *device;
    cl_mem buffers[PL_JOB_BUFFERS_MAX];
    bool is_own[PL_JOB_BUFFERS_MAX];
    char *staging[PL_JOB_BUFFERS_MAX];
    int n_buffers;
    void *mapped; /* unified: the buffer's, while the host has it */
    cl_kernel kernel;
} pl_device_job;

/* The device memory that a buffer of so many bytes takes. */
uint64_t pl_device_job_buffer_bytes(uint64_t bytes);

/* On a device that is claimed. Errors as of pl_device_buffer_new(). */
PL_MUST_CHECK int pl_device_job_begin(pl_device_job *job, pl_device *device, int n_buffers,
                                      const pl_device_job_buffer *buffers, pl_error *reterr);
void pl_device_job_end(pl_device_job *job);

/* Between the two the caller writes `bytes` to staging. */
PL_MUST_CHECK int pl_device_job_fill_begin(pl_device_job *job, int buffer, uint64_t bytes,
                                           pl_error *reterr);
PL_MUST_CHECK int pl_device_job_fill_end(pl_device_job *job, int buffer, uint64_t bytes,
                                         pl_error *reterr);

/* Waits for what was computed; between the two it is in staging. */
PL_MUST_CHECK int pl_device_job_fetch_begin(pl_device_job *job, int buffer, uint64_t bytes,
                                            pl_error *reterr);
PL_MUST_CHECK int pl_device_job_fetch_end(pl_device_job *job, int buffer, pl_error *reterr);

/* Waits for what was computed, and is not fetched. */
PL_MUST_CHECK int pl_device_job_wait(pl_device_job *job, pl_error *reterr);

/* The kernel of a chain, compiled if it is not yet: before the first pl_device_job_chain(). */
PL_MUST_CHECK int pl_device_job_set_chain(pl_device_job *job, const pl_device_chain *chain,
                                          pl_error *reterr);

/* Runs it: inputs are buffers 0 and on, the result is the one behind them. extents has chain->rank
 * places. */
PL_MUST_CHECK int pl_device_job_chain(pl_device_job *job, const pl_device_chain *chain,
                                      const int64_t *extents, pl_error *reterr);

/* "/GPU:0: clCreateBuffer of 4.0 KiB: CL_OUT_OF_RESOURCES"; `what` ends before the colon. */
int pl_device_error(const pl_device *device, cl_int code, const char *what, pl_error *reterr);

#endif
