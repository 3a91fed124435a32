/* SPDX-License-Identifier: Apache-2.0 */
/* See clblast.h. The declarations are copied from clblast_c.h of CLBlast 1.5: few functions are
 * called, and its header would be needed for these alone. */
#include "device/clblast.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>

enum { ROW_MAJOR = 101, AS_IT_IS = 111, TRANSPOSED = 112 };

#define SHAPE_PARAMETERS int layout, int a_transpose, int b_transpose, size_t m, size_t n, size_t k

typedef int workspace_function(SHAPE_PARAMETERS, size_t a_offset, size_t a_ld, size_t b_offset,
                               size_t b_ld, size_t c_offset, size_t c_ld, cl_command_queue *queue,
                               size_t *ret_bytes);

#define GEMM(name, type)                                                                           \
    typedef int name(SHAPE_PARAMETERS, type alpha, cl_mem a, size_t a_offset, size_t a_ld,         \
                     cl_mem b, size_t b_offset, size_t b_ld, type beta, cl_mem c, size_t c_offset, \
                     size_t c_ld, cl_command_queue *queue, cl_event *event, cl_mem workspace);
GEMM(f32_function, float)
GEMM(f64_function, double)

static struct {
    workspace_function *workspace_f32, *workspace_f64;
    f32_function *f32;
    f64_function *f64;
} table;
static bool is_loaded;
static pthread_once_t load_once = PTHREAD_ONCE_INIT;

/* CLBlast's list of compiled programs is global, and it compiles without holding a lock, so two
 * threads would compile the same program. Held while a product is enqueued, not while it is
 * computed; leaf lock. */
static pthread_mutex_t calling = PTHREAD_MUTEX_INITIALIZER;

static void load(void)
{
    void *library = dlopen("libclblast.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return;
    *(void **)&table.workspace_f32 = dlsym(library, "CLBlastSGemmTempBufferSize");
    *(void **)&table.workspace_f64 = dlsym(library, "CLBlastDGemmTempBufferSize");
    *(void **)&table.f32 = dlsym(library, "CLBlastSgemmWithTempBuffer");
    *(void **)&table.f64 = dlsym(library, "CLBlastDgemmWithTempBuffer");
    is_loaded = table.workspace_f32 && table.workspace_f64 && table.f32 && table.f64;
}

bool pl_clblast_is_there(void)
{
    pthread_once(&load_once, load);
    return is_loaded;
}

static size_t a_ld(const pl_device_product *p)
{
    return (size_t)(p->a_transposed ? p->m : p->k);
}

static size_t b_ld(const pl_device_product *p)
{
    return (size_t)(p->b_transposed ? p->k : p->n);
}

#define SHAPE(p)                                                                                   \
    ROW_MAJOR, (p)->a_transposed ? TRANSPOSED : AS_IT_IS,                                          \
        (p)->b_transposed ? TRANSPOSED : AS_IT_IS, (size_t)(p)->m, (size_t)(p)->n, (size_t)(p)->k

int pl_clblast_workspace(pl_device *device, const pl_device_product *product, uint64_t *ret_bytes,
                         pl_error *reterr)
{
    size_t bytes = 0;
    if (!pl_clblast_is_there())
        return pl_error_set(reterr, -ENOTSUP, "%s: CLBlast, which computes products, was not found",
                            device->name);
    int r = pl_device_open(device, reterr);
    if (r < 0)
        return r;
    workspace_function *ask = product->dtype == PL_F64 ? table.workspace_f64 : table.workspace_f32;
    pthread_mutex_lock(&calling);
    int code = ask(SHAPE(product), 0, a_ld(product), 0, b_ld(product), 0, (size_t)product->n,
                   &device->queue, &bytes);
    pthread_mutex_unlock(&calling);
    if (code != 0)
        return pl_device_error(device, code, "CLBlast's workspace", reterr);
    *ret_bytes = bytes;
    return 0;
}

int pl_clblast_run(pl_device_job *job, const pl_device_product *p, pl_error *reterr)
{
    cl_mem a = job->buffers[0], b = job->buffers[1], c = job->buffers[2];
    cl_mem workspace = job->n_buffers > 3 ? job->buffers[3] : NULL;
    cl_command_queue *queue = &job->device->queue;
    size_t c_ld = (size_t)p->n;
    int code;
    pthread_mutex_lock(&calling);
    if (p->dtype == PL_F64)
        code = table.f64(SHAPE(p), 1.0, a, 0, a_ld(p), b, 0, b_ld(p), 0.0, c, 0, c_ld, queue, NULL,
                         workspace);
    else
        code = table.f32(SHAPE(p), 1.0f, a, 0, a_ld(p), b, 0, b_ld(p), 0.0f, c, 0, c_ld, queue,
                         NULL, workspace);
    pthread_mutex_unlock(&calling);
    return code == 0 ? 0 : pl_device_error(job->device, code, "CLBlast's product", reterr);
}
