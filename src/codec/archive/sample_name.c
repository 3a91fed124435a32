/* SPDX-License-Identifier: Apache-2.0 */
/* See sample_name.h. */
#include "codec/archive/sample_name.h"

#include <string.h>

/* Matches "__any__" or "__any__/more". */
static bool is_remark(const char *name, size_t n)
{
    const char *slash = memchr(name, '/', n);
    size_t n_first = slash ? (size_t)(slash - name) : n;
    return n_first >= 4 && memcmp(name, "__", 2) == 0 && memcmp(name + n_first - 2, "__", 2) == 0;
}

bool pl_sample_name_split(const char *name, size_t n, pl_sample_name *ret_name)
{
    const char *slash = memrchr(name, '/', n), *last = slash ? slash + 1 : name;
    const char *dot = memchr(last, '.', n - (size_t)(last - name));
    if (!dot || dot == last || is_remark(name, n))
        return false;
    size_t n_key = (size_t)(dot - name);
    *ret_name = (pl_sample_name){n_key, n - n_key - 1};
    return true;
}
