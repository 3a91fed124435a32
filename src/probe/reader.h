/* SPDX-License-Identifier: Apache-2.0 */
/* Bounded looks at the inspected memory, for the files of probe/ only.
 * A view is borrowed: it points into the caller's scratch or, for pl_reader_own, straight at the
 * memory itself, which saves the copy on the path that runs inside malloc(). */
#ifndef PL_PROBE_READER_H
#define PL_PROBE_READER_H

#include <string.h>

#include "probe/python.h"

/* Can a pointer of a process have this value? User space ends at 2^47 on x86-64 and at 2^48 on
 * arm64 (higher only for programs that ask), and the page at 0 is never mapped. */
#if defined(__aarch64__)
#define PL_ADDRESSES_END (UINT64_C(1) << 48)
#else
#define PL_ADDRESSES_END (UINT64_C(1) << 47)
#endif

static inline bool pl_address_plausible(uint64_t address)
{
    return address >= 4096 && address < PL_ADDRESSES_END;
}

/* Returns the n bytes at `address`, or NULL. `scratch` has room for n. */
static inline const uint8_t *pl_view(const pl_reader *reader, uint64_t address, void *scratch,
                                     size_t n)
{
    if (PL_UNLIKELY(!pl_address_plausible(address)))
        return NULL;
    if (PL_LIKELY(reader == &pl_reader_own))
        return (const uint8_t *)(uintptr_t)address;
    return reader->peek(reader, address, scratch, n) < 0 ? NULL : scratch;
}

static inline uint64_t pl_load_u64(const uint8_t *view, size_t offset)
{
    uint64_t value;
    memcpy(&value, view + offset, sizeof(value));
    return value;
}

static inline uint32_t pl_load_u32(const uint8_t *view, size_t offset)
{
    uint32_t value;
    memcpy(&value, view + offset, sizeof(value));
    return value;
}

/* Returns the pointer stored at `address`; 0 when it cannot be read or cannot point to an
 * object. */
static inline uint64_t pl_view_pointer(const pl_reader *reader, uint64_t address)
{
    uint64_t scratch;
    const uint8_t *view = pl_view(reader, address, &scratch, sizeof(scratch));
    if (!view)
        return 0;
    uint64_t pointer = pl_load_u64(view, 0);
    return pl_address_plausible(pointer) && pointer % 8 == 0 ? pointer : 0;
}

#endif
