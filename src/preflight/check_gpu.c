/* SPDX-License-Identifier: Apache-2.0 */
/* Checks for a working NVIDIA GPU, and that driver, device and frameworks are compatible. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "preflight/checks.h"
#include "preflight/sysroot.h"
#include "preflight/version.h"

/* ---- which CUDA ---- */

/* Takes the version from CUDA's own package, for frameworks that do not state it: "12.6" from
 * 12.6.77. */
static void cuda_of_runtime(const pl_doctor_facts *facts, char cuda[16])
{
    pl_version version;
    for (const pl_package *package = NULL; (package = pl_next_package(facts, package));) {
        bool runtime = strncmp(package->name, "nvidia-cuda-runtime", 19) == 0 ||
                       strcmp(package->name, "cuda-cudart") == 0 ||
                       strcmp(package->name, "cudatoolkit") == 0;
        if (runtime && pl_version_parse(package->version, &version) == 0) {
            pl_format(cuda, 16, "%u.%u", version.parts[0], version.parts[1]);
            return;
        }
    }
}

static bool is_installed(const pl_doctor_facts *facts, const char *beginning)
{
    for (const pl_package *package = NULL; (package = pl_next_package(facts, package));)
        if (strncmp(package->name, beginning, strlen(beginning)) == 0)
            return true;
    return false;
}

void pl_cuda_of(const pl_doctor_facts *facts, const pl_package *package, char cuda[16])
{
    const char *framework = pl_rules_framework(&facts->rules, package->name);
    const char *flavour = pl_rules_flavour(&facts->rules, package->name);
    cuda[0] = '\0';
    if (package->cuda[0] != '\0') {
        pl_format(cuda, 16, "%s", package->cuda);
    } else if (strcmp(flavour, "cpu") == 0 || strcmp(flavour, "rocm") == 0) {
        strcpy(cuda, "none");
    } else if (strcmp(framework, "tensorflow") == 0) {
        const pl_rule *rule =
            pl_rules_next(&facts->rules, NULL, "cuda", framework, package->version);
        if (rule != NULL && package->wheel)
            pl_format(cuda, 16, "%s", rule->needs);
    } else if (strcmp(framework, "torch") == 0) {
        cuda_of_runtime(facts, cuda);
    } else if (strcmp(framework, "jaxlib") == 0) {
        strcpy(cuda, "none");
        if (is_installed(facts, "jax-cuda"))
            cuda_of_runtime(facts, cuda);
    }
}

/* ---- the GPU itself ---- */

static void say_driver_is_missing(const pl_doctor_facts *facts, pl_findings *findings)
{
    bool wsl = facts->system.memory.wsl;
    if (!facts->gpu.on_bus) {
        pl_say(findings, PL_FINDING_OK, "no NVIDIA GPU: frameworks will use the CPU");
        return;
    }
    pl_say(findings, PL_FINDING_WARN,
           "an NVIDIA GPU is on the PCI bus but its driver is not loaded: frameworks will use the "
           "CPU");
    pl_fix(findings, "%s",
           wsl ? "install NVIDIA's driver for WSL on Windows"
               : "install the driver (Debian: apt install nvidia-driver), then modprobe nvidia");
}

static void say_library_fails(const pl_doctor_facts *facts, pl_findings *findings)
{
    const pl_nvml *nvml = &facts->gpu.nvml;
    switch (nvml->status) {
    case -ENOENT:
        pl_say(findings, PL_FINDING_WARN,
               "driver %s is loaded but libnvidia-ml.so.1 was not found: a container without the "
               "driver's libraries cannot use the GPU",
               facts->gpu.driver);
        pl_fix(findings, "start the container with GPUs: docker run --gpus all");
        break;
    case -ETIMEDOUT:
        pl_say(findings, PL_FINDING_FAIL,
               "NVML did not answer within 5 s: programs that start CUDA will hang too");
        pl_fix(findings,
               "look for NVRM in dmesg; reset the GPU (nvidia-smi --gpu-reset) or reboot");
        break;
    case PL_NVML_MISMATCH:
        pl_say(findings, PL_FINDING_FAIL,
               "the driver's library and the loaded kernel module (%s) have different versions: "
               "CUDA will not start",
               facts->gpu.driver[0] ? facts->gpu.driver : "unknown");
        pl_fix(findings, "reboot, or: rmmod nvidia_uvm nvidia && modprobe nvidia");
        break;
    case PL_NVML_NO_PERMISSION:
        pl_say(
            findings, PL_FINDING_FAIL,
            "this user has no permission to use the GPU (/dev/nvidia*): CUDA will find no device");
        pl_fix(findings, "add the user to the group of /dev/nvidia0: usermod -aG video USER");
        break;
    default:
        pl_say(findings, PL_FINDING_FAIL, "NVML failed (%s %d): CUDA will not start",
               nvml->status < 0 ? "it crashed," : "NVML error", nvml->status);
        pl_fix(findings, "reinstall the driver, then reboot");
    }
}

static void say_devices(const pl_nvml *nvml, pl_findings *findings)
{
    char list[400] = "", longer[400];
    for (int i = 0; i < nvml->n_devices && i < PL_GPU_DEVICES; i++) {
        const pl_gpu_device *device = &nvml->devices[i];
        if (pl_format(longer, sizeof longer, "%s%s%s (%s, %s free, compute %d.%d)", list,
                      i > 0 ? ", " : "", device->name, PL_SIZE(device->total_bytes),
                      PL_SIZE(device->free_bytes), device->major, device->minor))
            strcpy(list, longer);
    }
    pl_say(findings, PL_FINDING_OK, "driver %s, for CUDA up to %d.%d: %s", nvml->driver,
           nvml->cuda_version / 1000, nvml->cuda_version % 1000 / 10, list);
}

static void say_hidden(pl_findings *findings)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (visible == NULL || (visible[0] != '\0' && visible[0] != '-'))
        return;
    pl_say(findings, PL_FINDING_WARN,
           "CUDA_VISIBLE_DEVICES='%s' hides every GPU: frameworks will use the CPU", visible);
    pl_fix(findings, "unset CUDA_VISIBLE_DEVICES");
}

void pl_check_gpu(const pl_doctor_facts *facts, pl_findings *findings)
{
    const pl_nvml *nvml = &facts->gpu.nvml;
    bool loaded = facts->gpu.driver[0] != '\0' || nvml->status == 0;
    bool library_only = nvml->status == PL_NVML_DRIVER_NOT_LOADED || nvml->status == -ENOENT;
    if (!loaded && library_only) {
        say_driver_is_missing(facts, findings);
    } else if (nvml->status != 0) {
        say_library_fails(facts, findings);
    } else if (nvml->n_devices == 0) {
        pl_say(findings, PL_FINDING_WARN, "driver %s is loaded but finds no GPU", nvml->driver);
        pl_fix(findings, "look for NVRM in dmesg; in a container: docker run --gpus all");
    } else {
        say_devices(nvml, findings);
        say_hidden(findings);
    }
}

/* ---- frameworks on it ---- */

static bool driver_serves(const pl_doctor_facts *facts, const char *cuda, const char **ret_needs)
{
    const char *words[] = {facts->system.memory.wsl ? "wsl" : "linux"};
    const char *driver = facts->gpu.nvml.driver;
    for (const pl_rule *rule = NULL;
         (rule = pl_rules_next(&facts->rules, rule, "driver", "cuda", cuda));) {
        if (!pl_rule_is_for(rule, words, 1) || pl_version_in(driver, rule->needs) != 0)
            continue;
        *ret_needs = rule->needs;
        return false;
    }
    return true;
}

/* Parses "8.6", "12.0+PTX", "sm_86" or "compute_90". PTX also runs on later capabilities. */
static bool word_serves(const char *word, const pl_gpu_device *device)
{
    int major = 0, minor = 0, number = 0;
    bool ptx = strstr(word, "+PTX") != NULL || strncmp(word, "compute_", 8) == 0;
    if (sscanf(word, "sm_%d", &number) == 1 || sscanf(word, "compute_%d", &number) == 1) {
        major = number / 10;
        minor = number % 10;
    } else if (sscanf(word, "%d.%d", &major, &minor) != 2) {
        return true; /* not understood: do not raise a false alarm */
    }
    bool later = device->major > major || (device->major == major && device->minor >= minor);
    return later && (ptx || device->major == major);
}

static bool list_serves(const char *list, const pl_gpu_device *device)
{
    char words[160];
    if (list[0] == '\0' || device->major == 0 || !pl_format(words, sizeof words, "%s", list))
        return true;
    for (char *rest, *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        if (word_serves(word, device))
            return true;
    return false;
}

/* Returns the compute capabilities a build supports: as its own files say, else by rule. */
static const char *capabilities(const pl_doctor_facts *facts, const pl_package *package,
                                const char *cuda)
{
    pl_version version;
    char tag[24] = "";
    if (package->compute[0] != '\0')
        return package->compute;
    if (pl_version_parse(cuda, &version) == 0)
        pl_format(tag, sizeof tag, "cu%u%u", version.parts[0], version.parts[1]);
    const char *const words[] = {tag, "gpu", facts->processor.machine};
    const char *framework = pl_rules_framework(&facts->rules, package->name);
    for (const pl_rule *rule = NULL;
         (rule = pl_rules_next(&facts->rules, rule, "capability", framework, package->version));)
        if (package->wheel && pl_rule_is_for(rule, words, PL_COUNT_OF(words)))
            return rule->needs;
    return "";
}

static void check_capability(const pl_doctor_facts *facts, pl_findings *findings,
                             const pl_package *package, const char *cuda)
{
    const char *list = capabilities(facts, package, cuda);
    for (int i = 0; i < facts->gpu.nvml.n_devices && i < PL_GPU_DEVICES; i++) {
        const pl_gpu_device *device = &facts->gpu.nvml.devices[i];
        if (list_serves(list, device))
            continue;
        pl_say(findings, PL_FINDING_FAIL,
               "%s %s is built for compute capability %s but %s has %d.%d: it fails with 'no "
               "kernel image is available for execution on the device'",
               package->name, package->version, list, device->name, device->major, device->minor);
        pl_fix(findings, "install a build of %s for this GPU: %s", package->name,
               device->major < 7 ? "an older release, or one for CUDA 12.6 or older"
                                 : "the newest release");
    }
}

static void check_framework(const pl_doctor_facts *facts, pl_findings *findings,
                            const pl_package *package)
{
    char cuda[16];
    const char *needs = "";
    pl_cuda_of(facts, package, cuda);
    if (cuda[0] == '\0')
        return;
    if (strcmp(cuda, "none") == 0) {
        pl_say(findings, PL_FINDING_WARN,
               "%s %s was built without GPU support: it uses the CPU, and the GPU stays idle",
               package->name, package->version);
        pl_fix(findings, "install its build for CUDA (see its installation page)");
    } else if (!driver_serves(facts, cuda, &needs)) {
        pl_say(findings, PL_FINDING_FAIL,
               "%s %s is built for CUDA %s, which needs driver %s, but %s is loaded: CUDA will not "
               "start ('driver version is insufficient')",
               package->name, package->version, cuda, needs, facts->gpu.nvml.driver);
        pl_fix(findings, "install a driver %s, or a build for CUDA %d or older", needs,
               facts->gpu.nvml.cuda_version / 1000);
    } else {
        check_capability(facts, findings, package, cuda);
    }
}

void pl_check_cuda(const pl_doctor_facts *facts, pl_findings *findings)
{
    const pl_nvml *nvml = &facts->gpu.nvml;
    if (nvml->status != 0 || nvml->n_devices == 0) {
        pl_say(findings, PL_FINDING_OK, "no GPU to check builds against");
        return;
    }
    for (const pl_package *package = NULL; (package = pl_next_package(facts, package));)
        check_framework(facts, findings, package);
    if (pl_findings_silent(findings))
        pl_say(findings, PL_FINDING_OK, "driver %s supports the installed frameworks",
               nvml->driver);
}
