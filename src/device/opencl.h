/* SPDX-License-Identifier: Apache-2.0 */
/* OpenCL, loaded on first use: a machine without libOpenCL.so.1 has no GPUs, and nothing of ours
 * needs it to start.
 *
 * Loading is safe from any thread; afterwards the table is constant (tests replace entries to
 * inject failures). */
#ifndef PL_DEVICE_OPENCL_H
#define PL_DEVICE_OPENCL_H

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include "base/base.h"

#define PL_OPENCL_FUNCTIONS(X)                                                                     \
    X(clGetPlatformIDs)                                                                            \
    X(clGetDeviceIDs)                                                                              \
    X(clGetDeviceInfo)                                                                             \
    X(clCreateContext)                                                                             \
    X(clReleaseContext)                                                                            \
    X(clCreateCommandQueue)                                                                        \
    X(clReleaseCommandQueue)                                                                       \
    X(clCreateBuffer)                                                                              \
    X(clReleaseMemObject)                                                                          \
    X(clCreateProgramWithSource)                                                                   \
    X(clBuildProgram)                                                                              \
    X(clGetProgramBuildInfo)                                                                       \
    X(clReleaseProgram)                                                                            \
    X(clCreateKernel)                                                                              \
    X(clReleaseKernel)                                                                             \
    X(clSetKernelArg)                                                                              \
    X(clEnqueueNDRangeKernel)                                                                      \
    X(clEnqueueWriteBuffer)                                                                        \
    X(clEnqueueReadBuffer)                                                                         \
    X(clEnqueueMapBuffer)                                                                          \
    X(clEnqueueUnmapMemObject)                                                                     \
    X(clFinish)

typedef struct pl_opencl {
#define PL_OPENCL_MEMBER(function) __typeof__(function) *function;
    PL_OPENCL_FUNCTIONS(PL_OPENCL_MEMBER)
#undef PL_OPENCL_MEMBER
} pl_opencl;

/* Returns NULL if OpenCL is not installed. The first call loads it. */
pl_opencl *pl_opencl_load(void);

/* Returns "CL_MEM_OBJECT_ALLOCATION_FAILURE", or "error -9999" for an unknown code, which lives as
 * long as the array. */
#define PL_OPENCL_NAME_BYTES 48
const char *pl_opencl_name(cl_int code, char text[PL_OPENCL_NAME_BYTES]);
#define PL_OPENCL_NAME(code) pl_opencl_name((code), (char[PL_OPENCL_NAME_BYTES]){0})

/* Returns -ENOMEM if the device or the host is out of memory; -EIO for other codes. */
int pl_opencl_errno(cl_int code);

/* Lists devices of all platforms, in their order: GPUs and accelerators, and CPUs if `with_cpus`.
 * At most `max`; returns how many. */
int pl_opencl_list(bool with_cpus, cl_device_id *ids, int max);

#endif
