/* SPDX-License-Identifier: Apache-2.0 */
/* Options from callers that were compiled with the headers of another release: see docs/abi.md. */
#include <string.h>

#include "base/base.h"

int pl_options_take(void *own, size_t own_bytes, size_t first_bytes, const void *given,
                    pl_error *reterr)
{
    size_t size;
    memcpy(&size, given, sizeof size);
    size_t n = size == 0 ? first_bytes : size;
    if (n < first_bytes)
        return pl_error_set(reterr, -EINVAL, "options of %zu bytes: 'size' is below the least, %zu",
                            n, first_bytes);
    for (size_t i = own_bytes; i < n; i++)
        if (((const char *)given)[i] != 0)
            return pl_error_set(reterr, -E2BIG,
                                "an option is set that this version of the library does not know: "
                                "'size' is %zu, and it knows %zu bytes",
                                n, own_bytes);
    memset(own, 0, own_bytes);
    memcpy(own, given, n < own_bytes ? n : own_bytes);
    return 0;
}
