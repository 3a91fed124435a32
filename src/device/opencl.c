/* SPDX-License-Identifier: Apache-2.0 */
/* See opencl.h. */
#include "device/opencl.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

enum { PLATFORMS_MAX = 16 };

static pl_opencl table;
static bool is_loaded;
static pthread_once_t load_once = PTHREAD_ONCE_INIT;

/* The library is never unloaded: drivers start threads that would go on running in unmapped
 * code. */
static void load(void)
{
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return;
    is_loaded = true;
#define LOAD(function)                                                                             \
    *(void **)&table.function = dlsym(library, #function);                                         \
    is_loaded = is_loaded && table.function;
    PL_OPENCL_FUNCTIONS(LOAD)
#undef LOAD
}

pl_opencl *pl_opencl_load(void)
{
    pthread_once(&load_once, load);
    return is_loaded ? &table : NULL;
}

#define NAMES(X)                                                                                   \
    X(CL_DEVICE_NOT_FOUND)                                                                         \
    X(CL_DEVICE_NOT_AVAILABLE)                                                                     \
    X(CL_COMPILER_NOT_AVAILABLE)                                                                   \
    X(CL_MEM_OBJECT_ALLOCATION_FAILURE)                                                            \
    X(CL_OUT_OF_RESOURCES)                                                                         \
    X(CL_OUT_OF_HOST_MEMORY)                                                                       \
    X(CL_BUILD_PROGRAM_FAILURE)                                                                    \
    X(CL_MAP_FAILURE)                                                                              \
    X(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)                                                \
    X(CL_INVALID_VALUE)                                                                            \
    X(CL_INVALID_DEVICE)                                                                           \
    X(CL_INVALID_CONTEXT)                                                                          \
    X(CL_INVALID_COMMAND_QUEUE)                                                                    \
    X(CL_INVALID_HOST_PTR)                                                                         \
    X(CL_INVALID_MEM_OBJECT)                                                                       \
    X(CL_INVALID_BUILD_OPTIONS)                                                                    \
    X(CL_INVALID_PROGRAM)                                                                          \
    X(CL_INVALID_PROGRAM_EXECUTABLE)                                                               \
    X(CL_INVALID_KERNEL_NAME)                                                                      \
    X(CL_INVALID_KERNEL)                                                                           \
    X(CL_INVALID_ARG_INDEX)                                                                        \
    X(CL_INVALID_ARG_SIZE)                                                                         \
    X(CL_INVALID_KERNEL_ARGS)                                                                      \
    X(CL_INVALID_WORK_GROUP_SIZE)                                                                  \
    X(CL_INVALID_GLOBAL_WORK_SIZE)                                                                 \
    X(CL_INVALID_OPERATION)                                                                        \
    X(CL_INVALID_BUFFER_SIZE)

const char *pl_opencl_name(cl_int code, char text[PL_OPENCL_NAME_BYTES])
{
    switch (code) {
#define NAME(constant)                                                                             \
    case constant:                                                                                 \
        return #constant;
        NAMES(NAME)
#undef NAME
    default:
        snprintf(text, PL_OPENCL_NAME_BYTES, "error %d", code);
        return text;
    }
}

int pl_opencl_errno(cl_int code)
{
    switch (code) {
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_RESOURCES:
    case CL_OUT_OF_HOST_MEMORY:
    case CL_MAP_FAILURE:
    case CL_INVALID_BUFFER_SIZE:
        return -ENOMEM;
    default:
        return -EIO;
    }
}

int pl_opencl_list(bool with_cpus, cl_device_id *ids, int max)
{
    const pl_opencl *cl = pl_opencl_load();
    cl_platform_id platforms[PLATFORMS_MAX];
    cl_device_type wanted = CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_ACCELERATOR;
    cl_uint n_platforms = 0;
    int n = 0;
    if (!cl || cl->clGetPlatformIDs(PLATFORMS_MAX, platforms, &n_platforms) != CL_SUCCESS)
        return 0;
    if (with_cpus)
        wanted |= CL_DEVICE_TYPE_CPU;
    for (cl_uint i = 0; i < n_platforms && i < PLATFORMS_MAX && n < max; i++) {
        cl_uint found = 0;
        if (cl->clGetDeviceIDs(platforms[i], wanted, (cl_uint)(max - n), ids + n, &found) ==
            CL_SUCCESS)
            n += (int)pl_min_u64(found, (uint64_t)(max - n));
    }
    return n;
}
