/* SPDX-License-Identifier: Apache-2.0 */
/* A device and its context. See device.h; jobs are in job.c. */
#include "device/device.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "device/kernel_cache.h"
#include "util/fork.h"

/* A number of work items that devices divide well. */
enum { GROUP_ITEMS = 64 };

int pl_device_error(const pl_device *device, cl_int code, const char *what, pl_error *reterr)
{
    return pl_error_set(reterr, pl_opencl_errno(code), "%s: %s: %s", device->name, what,
                        PL_OPENCL_NAME(code));
}

static void read_text(cl_device_id id, cl_device_info what, char *text, size_t n)
{
    if (pl_opencl_load()->clGetDeviceInfo(id, what, n, text, NULL) != CL_SUCCESS)
        snprintf(text, n, "?");
    text[n - 1] = '\0';
}

static void describe(pl_device *device)
{
    char name[120], version[128];
    read_text(device->id, CL_DEVICE_NAME, name, sizeof name);
    read_text(device->id, CL_DEVICE_VERSION, version, sizeof version);
    snprintf(device->description, sizeof device->description, "%s, %s", name, version);
}

/* A number that the device does not report stays 0. */
#define ASK(device, what, value)                                                                   \
    pl_opencl_load()->clGetDeviceInfo((device)->id, what, sizeof(value), &(value), NULL)

int pl_device_init(pl_device *device, cl_device_id id, int number, uint64_t limit_bytes,
                   pl_error *reterr)
{
    cl_ulong memory = 0, largest = 0;
    cl_bool unified = CL_FALSE;
    cl_device_fp_config f32 = 0, f64 = 0;
    *device = (pl_device){.id = id, .generation = pl_fork_generation()};
    pl_device_name_format((pl_device_name){PL_DEVICE_GPU, number}, device->name);
    cl_int code = ASK(device, CL_DEVICE_GLOBAL_MEM_SIZE, memory);
    if (code == CL_SUCCESS)
        code = ASK(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, largest);
    if (code != CL_SUCCESS)
        return pl_device_error(device, code, "asking for its memory", reterr);
    ASK(device, CL_DEVICE_HOST_UNIFIED_MEMORY, unified);
    ASK(device, CL_DEVICE_SINGLE_FP_CONFIG, f32);
    ASK(device, CL_DEVICE_DOUBLE_FP_CONFIG, f64);
    size_t most = 1;
    ASK(device, CL_DEVICE_MAX_WORK_GROUP_SIZE, most);
    describe(device);
    device->n_together = pl_clamp_u64(most, 1, GROUP_ITEMS);
    device->memory_bytes = memory;
    device->largest_bytes = largest;
    device->unified = unified;
    device->has_f64 = f64 != 0;
    device->rounds = (f32 & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
    uint64_t usual = memory / 8 * 7; /* drivers keep some for themselves */
    pl_room_init(&device->room, limit_bytes > 0 ? pl_min_u64(limit_bytes, memory) : usual);
    pthread_mutex_init(&device->opening, NULL);
    return 0;
}

void pl_device_done(pl_device *device)
{
    const pl_opencl *cl = pl_opencl_load();
    if (device->generation == pl_fork_generation()) { /* else it belongs to the parent */
        pl_cached_free(device);
        if (device->queue)
            cl->clReleaseCommandQueue(device->queue);
        if (device->context)
            cl->clReleaseContext(device->context);
    }
    pthread_mutex_destroy(&device->opening);
    pl_room_done(&device->room);
}

static int open_device(pl_device *device, pl_error *reterr)
{
    const pl_opencl *cl = pl_opencl_load();
    cl_int code = CL_SUCCESS;
    if (device->queue)
        return 0;
    if (!device->context)
        device->context = cl->clCreateContext(NULL, 1, &device->id, NULL, NULL, &code);
    if (!device->context)
        return pl_device_error(device, code, "clCreateContext", reterr);
    device->queue = cl->clCreateCommandQueue(device->context, device->id, 0, &code);
    return device->queue ? 0 : pl_device_error(device, code, "clCreateCommandQueue", reterr);
}

int pl_device_open(pl_device *device, pl_error *reterr)
{
    if (device->generation != pl_fork_generation())
        return pl_error_set(reterr, -ENODEV,
                            "%s belongs to the process before the fork: make a runtime after it",
                            device->name);
    pthread_mutex_lock(&device->opening);
    int r = open_device(device, reterr);
    pthread_mutex_unlock(&device->opening);
    return r;
}
