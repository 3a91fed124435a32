/* SPDX-License-Identifier: Apache-2.0 */
/* See dtype.h. Nothing here is arithmetic on dtypes: that is kernels/. */
#include "tensor/dtype.h"

#include <string.h>

static const pl_dtype_info infos[] = {
    [PL_DTYPE_NONE] = {.name = "none", .descr = "", .kind = PL_KIND_NONE},
#define ROW(number, constant, the_name, the_descr, bytes, the_kind)                                \
    [constant] = {.name = the_name,                                                                \
                  .descr = the_descr,                                                              \
                  .item_bytes = bytes,                                                             \
                  .is_storage = constant == PL_F16 || constant == PL_BF16,                         \
                  .kind = the_kind},
    PL_DTYPE_TABLE(ROW)
#undef ROW
};

const pl_dtype_info *pl_dtype_info_of(pl_dtype dtype)
{
    return &infos[(size_t)dtype < PL_COUNT_OF(infos) ? dtype : PL_DTYPE_NONE];
}

pl_dtype pl_dtype_by_name(const char *name)
{
    for (size_t i = 1; i < PL_COUNT_OF(infos); i++)
        if (strcmp(infos[i].name, name) == 0)
            return (pl_dtype)i;
    return PL_DTYPE_NONE;
}

#define SWAP(bits)                                                                                 \
    static void swap_##bits(uint8_t *at, size_t n)                                                 \
    {                                                                                              \
        for (size_t i = 0; i < n; i++, at += bits / 8) {                                           \
            uint##bits##_t value;                                                                  \
            memcpy(&value, at, sizeof value);                                                      \
            value = __builtin_bswap##bits(value);                                                  \
            memcpy(at, &value, sizeof value);                                                      \
        }                                                                                          \
    }
SWAP(16)
SWAP(32)
SWAP(64)
#undef SWAP

void pl_bytes_swap(void *elements, size_t n, size_t item_bytes)
{
    switch (item_bytes) {
    case 2:
        swap_16(elements, n);
        break;
    case 4:
        swap_32(elements, n);
        break;
    case 8:
        swap_64(elements, n);
        break;
    default:
        break;
    }
}
