/* SPDX-License-Identifier: Apache-2.0 */
/* NVML, loaded on demand. Calls and types are those of nvml.h, which are stable between drivers. */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "preflight/child.h"
#include "preflight/gpu.h"

enum { TIMEOUT_MS = 5000 };

typedef void *nvml_device;

typedef struct nvml_memory {
    unsigned long long total, free, used;
} nvml_memory;

typedef struct nvml_calls {
    int (*init)(void);
    int (*driver)(char *text, unsigned n);
    int (*cuda)(int *version);
    int (*count)(unsigned *n);
    int (*device)(unsigned index, nvml_device *device);
    int (*name)(nvml_device device, char *text, unsigned n);
    int (*memory)(nvml_device device, nvml_memory *memory);
    int (*capability)(nvml_device device, int *major, int *minor);
} nvml_calls;

static bool find_calls(void *library, nvml_calls *calls)
{
    *(void **)&calls->init = dlsym(library, "nvmlInit_v2");
    *(void **)&calls->driver = dlsym(library, "nvmlSystemGetDriverVersion");
    *(void **)&calls->cuda = dlsym(library, "nvmlSystemGetCudaDriverVersion");
    *(void **)&calls->count = dlsym(library, "nvmlDeviceGetCount_v2");
    *(void **)&calls->device = dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
    *(void **)&calls->name = dlsym(library, "nvmlDeviceGetName");
    *(void **)&calls->memory = dlsym(library, "nvmlDeviceGetMemoryInfo");
    *(void **)&calls->capability = dlsym(library, "nvmlDeviceGetCudaComputeCapability");
    return calls->init && calls->driver && calls->cuda && calls->count && calls->device &&
           calls->name && calls->memory && calls->capability;
}

static void ask_device(const nvml_calls *calls, unsigned index, pl_gpu_device *found)
{
    nvml_device device;
    nvml_memory memory;
    if (calls->device(index, &device) != 0)
        return;
    if (calls->name(device, found->name, sizeof found->name) != 0)
        strcpy(found->name, "a GPU without a name");
    if (calls->memory(device, &memory) == 0) {
        found->total_bytes = memory.total;
        found->free_bytes = memory.free;
    }
    if (calls->capability(device, &found->major, &found->minor) != 0)
        found->major = found->minor = 0;
}

static void ask_all(const nvml_calls *calls, pl_nvml *nvml)
{
    unsigned n = 0;
    nvml->status = calls->init();
    if (nvml->status != 0)
        return;
    if (calls->driver(nvml->driver, sizeof nvml->driver) != 0)
        nvml->driver[0] = '\0';
    if (calls->cuda(&nvml->cuda_version) != 0)
        nvml->cuda_version = 0;
    if (calls->count(&n) == 0)
        nvml->n_devices = (int)pl_min_u64(n, 1024);
    for (unsigned i = 0; i < n && i < PL_GPU_DEVICES; i++)
        ask_device(calls, i, &nvml->devices[i]);
}

static void ask_nvml(const void *context, int fd)
{
    (void)context;
    pl_nvml nvml = {.status = -ENOENT};
    nvml_calls calls;
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library != NULL && find_calls(library, &calls))
        ask_all(&calls, &nvml);
    ssize_t n = write(fd, &nvml, sizeof nvml);
    (void)n; /* the parent ignores a short answer */
}

static void end_texts(pl_nvml *nvml)
{
    nvml->driver[sizeof nvml->driver - 1] = '\0';
    for (int i = 0; i < PL_GPU_DEVICES; i++)
        nvml->devices[i].name[sizeof nvml->devices[i].name - 1] = '\0';
}

void pl_nvml_read(pl_nvml *ret_nvml)
{
    pl_nvml nvml = {0};
    int r = pl_child_ask(ask_nvml, NULL, TIMEOUT_MS, &nvml, sizeof nvml);
    if (r < 0 || (size_t)r < sizeof nvml)
        nvml = (pl_nvml){.status = r < 0 ? r : -ECHILD};
    end_texts(&nvml);
    *ret_nvml = nvml;
}
