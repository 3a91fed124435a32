/* SPDX-License-Identifier: Apache-2.0 */
/* See gpu.h. */
#include "preflight/gpu.h"

#include <ctype.h>
#include <string.h>

#include "preflight/sysroot.h"

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 ...": takes the first
 * word that begins with a number and a point. */
void pl_gpu_parse_driver(const char *text, char driver[32])
{
    driver[0] = '\0';
    for (const char *word = text; *(word += strspn(word, " \t")) != '\0' && *word != '\n';) {
        size_t n = strcspn(word, " \t\n"), digits = strspn(word, "0123456789");
        if (digits > 0 && word[digits] == '.' && isdigit((unsigned char)word[digits + 1]) &&
            strspn(word, "0123456789.") == n && pl_format(driver, 32, "%.*s", (int)n, word))
            return;
        word += n;
    }
}

static bool starts_with(const char *root, const char *device, const char *file, const char *start)
{
    char path[PATH_MAX], text[32];
    return pl_format(path, sizeof path, "/sys/bus/pci/devices/%s/%s", device, file) &&
           pl_sysroot_read_proc(root, path, text, sizeof text) > 0 &&
           strncmp(text, start, strlen(start)) == 0;
}

/* PCI class 03 is display; vendor 10de is NVIDIA. */
static bool is_on_bus(const char *root)
{
    pl_folder_names names = {0};
    bool found = false;
    if (pl_sysroot_list(root, "/sys/bus/pci/devices", &names) < 0)
        return false;
    for (size_t i = 0; i < names.n && !found; i++)
        found = starts_with(root, names.items[i], "vendor", "0x10de") &&
                starts_with(root, names.items[i], "class", "0x03");
    pl_folder_names_done(&names);
    return found;
}

void pl_gpu_read(const char *root, pl_gpu *ret_gpu)
{
    pl_gpu gpu = {.on_bus = is_on_bus(root)};
    char text[512];
    if (pl_sysroot_read_proc(root, "/proc/driver/nvidia/version", text, sizeof text) > 0)
        pl_gpu_parse_driver(text, gpu.driver);
    pl_nvml_read(&gpu.nvml);
    *ret_gpu = gpu;
}
