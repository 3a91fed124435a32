/* SPDX-License-Identifier: Apache-2.0 */
/* See device_name.h. A name is a list of parts, each after a '/', the first of which may be left
 * out: "/job:localhost/replica:0/task:0/device:GPU:0". */
#include "tensor/device_name.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* The part that all processes of a machine share. */
static bool is_here(const char *part, size_t n)
{
    static const char *const here[] = {"job:localhost", "replica:0", "task:0"};
    for (size_t i = 0; i < PL_COUNT_OF(here); i++)
        if (strlen(here[i]) == n && strncasecmp(part, here[i], n) == 0)
            return true;
    return false;
}

static bool parse_kind(const char **at, pl_device_kind *ret_kind)
{
    bool is_cpu = strncasecmp(*at, "cpu", 3) == 0, is_gpu = strncasecmp(*at, "gpu", 3) == 0;
    *ret_kind = is_gpu ? PL_DEVICE_GPU : PL_DEVICE_CPU;
    *at += 3 * (is_cpu || is_gpu);
    return is_cpu || is_gpu;
}

/* Parses ":12", or nothing. */
static bool parse_number(const char *at, int *ret_number)
{
    int number = 0;
    size_t n = strspn(*at ? at + 1 : at, "0123456789");
    *ret_number = PL_DEVICE_ANY;
    if (*at == '\0')
        return true;
    if (*at != ':' || n < 1 || n > 4 || at[1 + n] != '\0')
        return false;
    for (size_t i = 1; i <= n; i++)
        number = 10 * number + (at[i] - '0');
    *ret_number = number;
    return true;
}

bool pl_device_name_parse(const char *text, pl_device_name *ret_name)
{
    pl_device_name name;
    for (;;) {
        text += *text == '/';
        size_t n = strcspn(text, "/");
        if (!is_here(text, n))
            break;
        text += n;
    }
    if (strncasecmp(text, "device:", 7) == 0)
        text += 7;
    if (!parse_kind(&text, &name.kind) || !parse_number(text, &name.number))
        return false;
    *ret_name = name;
    return true;
}

const char *pl_device_name_format(pl_device_name name, char text[PL_DEVICE_NAME_BYTES])
{
    snprintf(text, PL_DEVICE_NAME_BYTES, "/%s:%d", name.kind == PL_DEVICE_GPU ? "GPU" : "CPU",
             name.number == PL_DEVICE_ANY ? 0 : name.number);
    return text;
}
