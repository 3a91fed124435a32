/* SPDX-License-Identifier: Apache-2.0 */
/* Claims, buffers, jobs, and running chains on their buffers. See device.h. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "device/device.h"
#include "device/kernel_cache.h"

uint64_t pl_device_job_buffer_bytes(uint64_t bytes)
{
    return pl_add_sat_u64(pl_max_u64(bytes, 1), PL_STAGING_ALIGN_BYTES - 1) /
           PL_STAGING_ALIGN_BYTES * PL_STAGING_ALIGN_BYTES;
}

int pl_device_claim(pl_device *device, uint64_t bytes, pl_room_check check, pl_error *reterr)
{
    int r = pl_device_open(device, reterr);
    if (r < 0)
        return r;
    r = pl_room_claim(&device->room, bytes, check);
    if (r < 0 && r != PL_EBUDGET)
        return pl_error_set(reterr, r, "%s: waiting for %s there was ended", device->name,
                            PL_SIZE(bytes));
    if (r < 0)
        return pl_error_set(reterr, r, "%s: %s is needed there, and its budget is %s", device->name,
                            PL_SIZE(bytes), PL_SIZE(device->room.limit_bytes));
    return 0;
}

void pl_device_release(pl_device *device, uint64_t bytes)
{
    pl_room_release(&device->room, bytes);
}

int pl_device_buffer_new(pl_device *device, uint64_t bytes, char *host, cl_mem *ret_buffer,
                         pl_error *reterr)
{
    cl_int code;
    uint64_t size = pl_device_job_buffer_bytes(bytes);
    bool shared = device->unified;
    cl_mem buffer = pl_opencl_load()->clCreateBuffer(
        device->context, CL_MEM_READ_WRITE | (shared ? CL_MEM_USE_HOST_PTR : 0), size,
        shared ? host : NULL, &code);
    if (!buffer) {
        char what[64];
        snprintf(what, sizeof what, "clCreateBuffer of %s", PL_SIZE(size));
        return pl_device_error(device, code, what, reterr);
    }
    *ret_buffer = buffer;
    return 0;
}

void pl_device_buffer_free(cl_mem buffer)
{
    pl_opencl_load()->clReleaseMemObject(buffer);
}

static int add_buffer(pl_device_job *job, const pl_device_job_buffer *buffer, pl_error *reterr)
{
    int at = job->n_buffers;
    job->buffers[at] = buffer->there;
    job->is_own[at] = !buffer->there;
    job->staging[at] = buffer->staging;
    int r = buffer->there ? 0
                          : pl_device_buffer_new(job->device, buffer->bytes, buffer->staging,
                                                 &job->buffers[at], reterr);
    job->n_buffers += r == 0;
    return r;
}

int pl_device_job_begin(pl_device_job *job, pl_device *device, int n_buffers,
                        const pl_device_job_buffer *buffers, pl_error *reterr)
{
    int r = 0;
    *job = (pl_device_job){.device = device};
    for (int i = 0; r == 0 && i < n_buffers; i++)
        r = add_buffer(job, &buffers[i], reterr);
    if (r < 0)
        pl_device_job_end(job);
    return r;
}

void pl_device_job_end(pl_device_job *job)
{
    const pl_opencl *cl = pl_opencl_load();
    if (job->device && job->device->queue && job->n_buffers > 0)
        cl->clFinish(job->device->queue); /* no command may use what is freed now */
    if (job->kernel)
        cl->clReleaseKernel(job->kernel);
    for (int i = 0; i < job->n_buffers; i++)
        if (job->is_own[i])
            pl_device_buffer_free(job->buffers[i]);
    *job = (pl_device_job){0};
}

/* ---- transfers between host and device ---- */

static int map(pl_device_job *job, int buffer, cl_map_flags how, uint64_t bytes, pl_error *reterr)
{
    cl_int code;
    job->mapped =
        pl_opencl_load()->clEnqueueMapBuffer(job->device->queue, job->buffers[buffer], CL_TRUE, how,
                                             0, pl_max_u64(bytes, 1), 0, NULL, NULL, &code);
    return job->mapped ? 0 : pl_device_error(job->device, code, "clEnqueueMapBuffer", reterr);
}

static int unmap(pl_device_job *job, int buffer, pl_error *reterr)
{
    cl_int code = pl_opencl_load()->clEnqueueUnmapMemObject(
        job->device->queue, job->buffers[buffer], job->mapped, 0, NULL, NULL);
    job->mapped = NULL;
    return code == CL_SUCCESS
               ? 0
               : pl_device_error(job->device, code, "clEnqueueUnmapMemObject", reterr);
}

int pl_device_job_fill_begin(pl_device_job *job, int buffer, uint64_t bytes, pl_error *reterr)
{
    return job->device->unified ? map(job, buffer, CL_MAP_WRITE_INVALIDATE_REGION, bytes, reterr)
                                : 0;
}

int pl_device_job_fill_end(pl_device_job *job, int buffer, uint64_t bytes, pl_error *reterr)
{
    if (job->device->unified)
        return unmap(job, buffer, reterr);
    cl_int code =
        pl_opencl_load()->clEnqueueWriteBuffer(job->device->queue, job->buffers[buffer], CL_TRUE, 0,
                                               bytes, job->staging[buffer], 0, NULL, NULL);
    return code == CL_SUCCESS ? 0
                              : pl_device_error(job->device, code, "clEnqueueWriteBuffer", reterr);
}

int pl_device_job_fetch_begin(pl_device_job *job, int buffer, uint64_t bytes, pl_error *reterr)
{
    if (job->device->unified)
        return map(job, buffer, CL_MAP_READ, bytes, reterr);
    cl_int code =
        pl_opencl_load()->clEnqueueReadBuffer(job->device->queue, job->buffers[buffer], CL_TRUE, 0,
                                              bytes, job->staging[buffer], 0, NULL, NULL);
    return code == CL_SUCCESS ? 0
                              : pl_device_error(job->device, code, "clEnqueueReadBuffer", reterr);
}

int pl_device_job_fetch_end(pl_device_job *job, int buffer, pl_error *reterr)
{
    return job->device->unified ? unmap(job, buffer, reterr) : 0;
}

int pl_device_job_wait(pl_device_job *job, pl_error *reterr)
{
    cl_int code = pl_opencl_load()->clFinish(job->device->queue);
    return code == CL_SUCCESS ? 0 : pl_device_error(job->device, code, "clFinish", reterr);
}

/* ---- chains ---- */

int pl_device_job_set_chain(pl_device_job *job, const pl_device_chain *chain, pl_error *reterr)
{
    return pl_cached_kernel(job->device, pl_device_chain_source(chain), "chain", &job->kernel,
                            reterr);
}

static int set_arguments(pl_device_job *job, const pl_device_chain *chain, cl_ulong n,
                         const int64_t *extents, pl_error *reterr)
{
    const pl_opencl *cl = pl_opencl_load();
    cl_uint at = 0;
    cl_int code = cl->clSetKernelArg(job->kernel, at++, sizeof n, &n);
    for (int i = 1; code == CL_SUCCESS && i < chain->rank; i++) {
        cl_ulong extent = (cl_ulong)extents[i];
        code = cl->clSetKernelArg(job->kernel, at++, sizeof extent, &extent);
    }
    for (int i = 0; code == CL_SUCCESS && i < job->n_buffers; i++)
        code = cl->clSetKernelArg(job->kernel, at++, sizeof(cl_mem), &job->buffers[i]);
    return code == CL_SUCCESS ? 0 : pl_device_error(job->device, code, "clSetKernelArg", reterr);
}

int pl_device_job_chain(pl_device_job *job, const pl_device_chain *chain, const int64_t *extents,
                        pl_error *reterr)
{
    cl_ulong n = 1;
    for (int i = 0; i < chain->rank; i++)
        n *= (cl_ulong)extents[i];
    int r = set_arguments(job, chain, n, extents, reterr);
    if (r < 0)
        return r;
    size_t together = job->device->n_together,
           items = (size_t)(n + together - 1) / together * together;
    cl_int code = pl_opencl_load()->clEnqueueNDRangeKernel(job->device->queue, job->kernel, 1, NULL,
                                                           &items, &together, 0, NULL, NULL);
    return code == CL_SUCCESS
               ? 0
               : pl_device_error(job->device, code, "clEnqueueNDRangeKernel", reterr);
}
