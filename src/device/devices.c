/* SPDX-License-Identifier: Apache-2.0 */
/* See devices.h and plimsoll/device.h. */
#include "device/devices.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sys/machine.h"
#include "tensor/runtime.h"
#include "util/fork.h"

enum { GPUS_MAX = 64, NAMES_MAX = 64, SAID_MAX = 256 };

struct pl_devices {
    pl_runtime_part part;
    _Atomic bool strict;
    int opencl_cpu;
    void (*message)(void *context, const char *text);
    void *message_context;
    pl_device_name hidden[NAMES_MAX];
    int n_hidden;
    pl_device_name limited[NAMES_MAX];
    uint64_t limits[NAMES_MAX];
    int n_limits; /* constant, like all above */

    pthread_mutex_t mu; /* held while looking for devices; never while reporting a warning */
    bool found;         /* mu; then constant, like the list */
    pl_device *gpus[GPUS_MAX];
    int n_gpus;
    uint64_t said[SAID_MAX]; /* mu: hashes of reported warnings; a new one replaces the oldest */
    uint32_t n_said;
};

/* ---- settings ---- */

static int copy_names(pl_devices *devices, const pl_device_options *options, pl_error *reterr)
{
    const char *wrong = NULL;
    if (options->n_hidden > NAMES_MAX || options->n_limits > NAMES_MAX)
        return pl_error_set(reterr, -EINVAL, "more than %d devices are named", NAMES_MAX);
    for (int i = 0; i < options->n_hidden; i++)
        if (!pl_device_name_parse(options->hidden[i], &devices->hidden[i]) ||
            devices->hidden[i].kind != PL_DEVICE_GPU)
            wrong = options->hidden[i];
    for (int i = 0; i < options->n_limits; i++) {
        devices->limits[i] = options->limits[i].bytes;
        if (!pl_device_name_parse(options->limits[i].device, &devices->limited[i]) ||
            devices->limited[i].kind != PL_DEVICE_GPU)
            wrong = options->limits[i].device;
    }
    devices->n_hidden = options->n_hidden;
    devices->n_limits = options->n_limits;
    if (wrong)
        return pl_error_set(reterr, -EINVAL, "'%.120s' is not a GPU: names are like \"/GPU:0\"",
                            wrong);
    return 0;
}

static void devices_free(pl_runtime_part *part)
{
    pl_devices *devices = (pl_devices *)part;
    for (int i = 0; i < devices->n_gpus; i++) {
        pl_device_done(devices->gpus[i]);
        free(devices->gpus[i]);
    }
    pthread_mutex_destroy(&devices->mu);
    free(devices);
}

static int devices_new(const pl_device_options *options, pl_devices **ret_devices, pl_error *reterr)
{
    pl_devices *devices = calloc(1, sizeof *devices);
    if (!devices)
        return pl_error_set(reterr, -ENOMEM, "no memory for a list of devices");
    devices->part.free = devices_free;
    devices->strict = options->strict;
    devices->opencl_cpu = options->opencl_cpu;
    devices->message = options->message;
    devices->message_context = options->message_context;
    pthread_mutex_init(&devices->mu, NULL);
    int r = copy_names(devices, options, reterr);
    if (r == 0 && pl_fork_watch() < 0)
        r = pl_error_set(reterr, -ENOMEM, "no memory to watch for forks");
    if (r < 0)
        devices_free(&devices->part);
    else
        *ret_devices = devices;
    return r;
}

/* Attaches them, unless another caller was first; returns those attached. */
static pl_devices *attach(pl_runtime *runtime, pl_devices *made)
{
    pl_runtime_part *there = NULL;
    if (atomic_compare_exchange_strong(&runtime->devices, &there, &made->part))
        return made;
    devices_free(&made->part);
    return (pl_devices *)there;
}

pl_devices *pl_devices_of(pl_runtime *runtime)
{
    const pl_device_options none = {0};
    pl_devices *devices = (pl_devices *)atomic_load(&runtime->devices);
    if (!devices && devices_new(&none, &devices, NULL) == 0)
        devices = attach(runtime, devices);
    return devices;
}

int pl_runtime_set_strict(pl_runtime *runtime, bool strict, pl_error *reterr)
{
    PL_NOT_NULL(runtime, reterr);
    pl_devices *devices = pl_devices_of(runtime);
    if (!devices)
        return pl_error_set(reterr, -ENOMEM, "no memory for a list of devices");
    atomic_store(&devices->strict, strict);
    return 0;
}

int pl_runtime_set_devices(pl_runtime *runtime, const pl_device_options *options, pl_error *reterr)
{
    PL_NOT_NULL(runtime, reterr);
    PL_NOT_NULL(options, reterr);
    PL_TAKE_OPTIONS(pl_device_options, options, message_context, reterr);
    pl_devices *devices;
    int r = devices_new(options, &devices, reterr);
    if (r < 0)
        return r;
    if (attach(runtime, devices) != devices)
        return pl_error_set(reterr, -EBUSY,
                            "the runtime's devices are in use already: set them up before");
    return 0;
}

bool pl_devices_are_strict(const pl_devices *devices)
{
    return devices->strict;
}

/* ---- available devices ---- */

static bool is_hidden(const pl_devices *devices, int number)
{
    for (int i = 0; i < devices->n_hidden; i++)
        if (devices->hidden[i].number == number || devices->hidden[i].number == PL_DEVICE_ANY)
            return true;
    return false;
}

/* Returns a device's limit; 0: none was given. "GPU" without a number applies to all. */
static uint64_t limit_of(const pl_devices *devices, int number)
{
    uint64_t limit = 0;
    for (int i = 0; i < devices->n_limits; i++)
        if (devices->limited[i].number == number || devices->limited[i].number == PL_DEVICE_ANY)
            limit = devices->limits[i];
    return limit;
}

static bool cpus_count(const pl_devices *devices)
{
    const char *setting = getenv("PLIMSOLL_OPENCL_CPU");
    return devices->opencl_cpu > 0 ||
           (devices->opencl_cpu == 0 && setting && strcmp(setting, "1") == 0);
}

static bool all_are_hidden(const pl_devices *devices)
{
    for (int i = 0; i < devices->n_hidden; i++)
        if (devices->hidden[i].number == PL_DEVICE_ANY)
            return true;
    return false;
}

static void find(pl_devices *devices)
{
    cl_device_id ids[GPUS_MAX];
    if (all_are_hidden(devices))
        return; /* not even the library is loaded */
    int n = pl_opencl_list(cpus_count(devices), ids, GPUS_MAX);
    for (int i = 0; i < n; i++) {
        if (is_hidden(devices, i))
            continue;
        pl_device *gpu = calloc(1, sizeof *gpu);
        int number = devices->n_gpus;
        if (gpu && pl_device_init(gpu, ids[i], number, limit_of(devices, number), NULL) == 0)
            devices->gpus[devices->n_gpus++] = gpu;
        else
            free(gpu);
    }
}

int pl_devices_count(pl_devices *devices)
{
    pthread_mutex_lock(&devices->mu);
    if (!devices->found)
        find(devices);
    devices->found = true;
    pthread_mutex_unlock(&devices->mu);
    return devices->n_gpus;
}

pl_device *pl_devices_at(pl_devices *devices, int number)
{
    return devices->gpus[number];
}

static uint64_t hash_of(const char *text)
{
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return hash;
}

void pl_devices_say(pl_devices *devices, const char *text)
{
    if (!devices->message)
        return;
    uint64_t hash = hash_of(text);
    bool again = false;
    pthread_mutex_lock(&devices->mu);
    for (uint32_t i = 0; i < devices->n_said && i < SAID_MAX; i++)
        again = again || devices->said[i] == hash;
    if (!again)
        devices->said[devices->n_said++ % SAID_MAX] = hash;
    pthread_mutex_unlock(&devices->mu);
    if (!again)
        devices->message(devices->message_context, text);
}

/* ---- the list for users ---- */

int pl_runtime_n_devices(pl_runtime *runtime)
{
    PL_NULL_GIVES(runtime, 0);
    pl_devices *devices = pl_devices_of(runtime);
    return 1 + (devices ? pl_devices_count(devices) : 0);
}

static void describe_cpu(const pl_runtime *runtime, pl_device_info *info)
{
    *info = (pl_device_info){.kind = PL_DEVICE_CPU,
                             .budget_bytes = pl_memory_limit_bytes(runtime->memory),
                             .in_use_bytes = pl_memory_claimed_bytes(runtime->memory),
                             .peak_bytes = pl_memory_peak_bytes(runtime->memory)};
    pl_device_name_format((pl_device_name){PL_DEVICE_CPU, 0}, info->name);
    pl_machine_memory machine;
    if (pl_machine_memory_read("", &machine) == 0)
        info->memory_bytes = machine.total_bytes;
    snprintf(info->description, sizeof info->description, "%d threads",
             pl_threads_count(runtime->threads));
}

static void describe_gpu(pl_device *device, pl_device_info *info)
{
    *info = (pl_device_info){.kind = PL_DEVICE_GPU,
                             .memory_bytes = device->memory_bytes,
                             .budget_bytes = device->room.limit_bytes};
    memcpy(info->name, device->name, sizeof info->name);
    memcpy(info->description, device->description, sizeof info->description);
    pl_room_read(&device->room, &info->in_use_bytes, &info->peak_bytes);
}

int pl_runtime_device(pl_runtime *runtime, int number, pl_device_info *ret_info, pl_error *reterr)
{
    PL_NOT_NULL(runtime, reterr);
    PL_NOT_NULL(ret_info, reterr);
    int n = pl_runtime_n_devices(runtime);
    if (number < 0 || number >= n)
        return pl_error_set(reterr, -EINVAL, "there is no device with number %d: there are %d",
                            number, n);
    if (number == 0)
        describe_cpu(runtime, ret_info);
    else
        describe_gpu(pl_devices_at(pl_devices_of(runtime), number - 1), ret_info);
    return 0;
}
