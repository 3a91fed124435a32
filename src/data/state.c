/* SPDX-License-Identifier: Apache-2.0 */
/* State is gathered in memory, and written or read as a whole. */
#include "data/state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct pl_saver {
    char *bytes;
    size_t n, n_room;
};

struct pl_loader {
    const char *bytes;
    size_t n, at;
};

int pl_save_bytes(pl_saver *saver, const void *bytes, size_t n, pl_error *reterr)
{
    if (n > saver->n_room - saver->n) {
        size_t n_room = (saver->n + n) * 2;
        char *more = realloc(saver->bytes, n_room);
        if (!more)
            return pl_error_set(reterr, -ENOMEM, "no memory for %zu bytes of state", n_room);
        saver->bytes = more;
        saver->n_room = n_room;
    }
    memcpy(saver->bytes + saver->n, bytes, n);
    saver->n += n;
    return 0;
}

int pl_save_int(pl_saver *saver, int64_t value, pl_error *reterr)
{
    return pl_save_bytes(saver, &value, sizeof value, reterr);
}

int pl_load_bytes(pl_loader *loader, void *bytes, size_t n, pl_error *reterr)
{
    if (n > loader->n - loader->at)
        return pl_error_set(reterr, PL_ECORRUPT, "the state ends at byte %zu", loader->n);
    memcpy(bytes, loader->bytes + loader->at, n);
    loader->at += n;
    return 0;
}

int pl_load_int(pl_loader *loader, int64_t least, int64_t most, int64_t *ret_value,
                pl_error *reterr)
{
    int64_t value = 0;
    int r = pl_load_bytes(loader, &value, sizeof value, reterr);
    if (r < 0)
        return r;
    if (value < least || value > most)
        return pl_error_set(reterr, PL_ECORRUPT, "the state has %lld, not within %lld and %lld",
                            (long long)value, (long long)least, (long long)most);
    *ret_value = value;
    return 0;
}
