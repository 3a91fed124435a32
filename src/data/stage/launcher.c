/* SPDX-License-Identifier: Apache-2.0 */
#include "data/stage/launcher.h"

#include <errno.h>
#include <stdlib.h>

/* The innermost first: the others may start torchrun, once for each node. */
static const struct {
    const char *index, *n;
} launchers[] = {
    {"RANK", "WORLD_SIZE"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PMI_RANK", "PMI_SIZE"},
    {"SLURM_PROCID", "SLURM_NTASKS"},
};

static int read_number(const char *name, int64_t *ret_value, pl_error *reterr)
{
    const char *text = getenv(name);
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end || errno || value < 0)
        return pl_error_set(reterr, -EINVAL, "shard: the environment's %s is '%s', no number", name,
                            text);
    *ret_value = value;
    return 0;
}

int pl_launcher_place(int64_t *ret_n, int64_t *ret_index, pl_error *reterr)
{
    *ret_n = 1;
    *ret_index = 0;
    for (size_t i = 0; i < PL_COUNT_OF(launchers); i++) {
        const char *index = launchers[i].index, *n = launchers[i].n;
        if (!getenv(index) && !getenv(n))
            continue;
        if (!getenv(index) || !getenv(n))
            return pl_error_set(reterr, -EINVAL, "shard: the environment has %s, but no %s",
                                getenv(n) ? n : index, getenv(n) ? index : n);
        int r = read_number(n, ret_n, reterr);
        if (r == 0)
            r = read_number(index, ret_index, reterr);
        if (r == 0 && *ret_index >= *ret_n)
            r = pl_error_set(reterr, -EINVAL, "shard: the environment has %s=%lld of %s=%lld",
                             index, (long long)*ret_index, n, (long long)*ret_n);
        return r;
    }
    return 0;
}
