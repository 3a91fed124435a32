/* SPDX-License-Identifier: Apache-2.0 */
/* See kernel_cache.h. */
#include "device/kernel_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct pl_cached_program {
    pl_cached_program *next;
    char *source;
    cl_program program;
};

void pl_cached_free(pl_device *device)
{
    while (device->programs) {
        pl_cached_program *entry = device->programs;
        device->programs = entry->next;
        pl_opencl_load()->clReleaseProgram(entry->program);
        free(entry->source);
        free(entry);
    }
}

/* Reports the beginning of the compiler's log, on one line. */
static int build_error(const pl_device *device, cl_program program, cl_int code, pl_error *reterr)
{
    char log[256] = "";
    size_t n = 0;
    char *all = NULL;
    const pl_opencl *cl = pl_opencl_load();
    if (cl->clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &n) ==
            CL_SUCCESS &&
        (all = calloc(1, n + 1)) != NULL &&
        cl->clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, n, all, NULL) ==
            CL_SUCCESS)
        strncpy(log, all, sizeof log - 1);
    free(all);
    for (char *at = log; *at; at++)
        *at = *at == '\n' ? ' ' : *at;
    return pl_error_set(reterr, pl_opencl_errno(code), "%s: clBuildProgram: %s: %s", device->name,
                        PL_OPENCL_NAME(code), log);
}

static int build(pl_device *device, const char *source, cl_program *ret_program, pl_error *reterr)
{
    const pl_opencl *cl = pl_opencl_load();
    cl_int code;
    const char *options =
        device->rounds ? "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt" : "-cl-std=CL1.2";
    cl_program program = cl->clCreateProgramWithSource(device->context, 1, &source, NULL, &code);
    if (!program)
        return pl_device_error(device, code, "clCreateProgramWithSource", reterr);
    code = cl->clBuildProgram(program, 1, &device->id, options, NULL, NULL);
    if (code == CL_SUCCESS) {
        *ret_program = program;
        return 0;
    }
    int r = build_error(device, program, code, reterr);
    cl->clReleaseProgram(program);
    return r;
}

/* Takes ownership of `source`. Call with the lock held. */
static int find_or_build(pl_device *device, char *source, cl_program *ret_program, pl_error *reterr)
{
    for (pl_cached_program *entry = device->programs; entry; entry = entry->next)
        if (strcmp(entry->source, source) == 0) {
            free(source);
            *ret_program = entry->program;
            return 0;
        }
    pl_cached_program *entry = malloc(sizeof *entry);
    int r = entry ? build(device, source, &entry->program, reterr)
                  : pl_error_set(reterr, -ENOMEM, "%s: no memory for a program", device->name);
    if (r < 0) {
        free(source);
        free(entry);
        return r;
    }
    entry->source = source;
    entry->next = device->programs;
    device->programs = entry;
    *ret_program = entry->program;
    return 0;
}

int pl_cached_kernel(pl_device *device, char *source, const char *name, cl_kernel *ret_kernel,
                     pl_error *reterr)
{
    cl_program program;
    cl_int code;
    if (!source)
        return pl_error_set(reterr, -ENOMEM, "%s: no memory for a program's text", device->name);
    pthread_mutex_lock(&device->opening);
    int r = find_or_build(device, source, &program, reterr);
    pthread_mutex_unlock(&device->opening);
    if (r < 0)
        return r;
    cl_kernel kernel = pl_opencl_load()->clCreateKernel(program, name, &code);
    if (!kernel)
        return pl_device_error(device, code, "clCreateKernel", reterr);
    *ret_kernel = kernel;
    return 0;
}
