/* SPDX-License-Identifier: Apache-2.0 */
/* Protocol buffers' wire format: a message is a sequence of fields, each with a number, a type and
 * a value; the meaning of the numbers is defined elsewhere.
 *   record  the outermost message; offsets in error messages count from its beginning
 *   group   an old way to nest; skipped as one field, GROUP_DEPTH_MAX deep at most
 *
 * Every length is checked against the rest of the message. Nothing is recursive. Never allocates;
 * safe from any thread. For example.c. */
#ifndef PL_CODEC_RECORD_WIRE_H
#define PL_CODEC_RECORD_WIRE_H

#include "base/base.h"

typedef enum pl_wire_type {
    PL_WIRE_VARINT = 0,
    PL_WIRE_FIXED64 = 1,
    PL_WIRE_BYTES = 2, /* bytes, text, a nested message, or packed numbers */
    PL_WIRE_GROUP = 3,
    PL_WIRE_GROUP_END = 4,
    PL_WIRE_FIXED32 = 5,
} pl_wire_type;

/* The rest of a message. */
typedef struct pl_wire {
    const uint8_t *at, *end;
    const uint8_t *record;
} pl_wire;

typedef struct pl_wire_field {
    const uint8_t *begin; /* of its tag */
    uint32_t number;      /* at least 1 */
    pl_wire_type type;
    uint64_t value;  /* of VARINT, FIXED64, FIXED32 */
    pl_wire message; /* of BYTES */
} pl_wire_field;

/* Takes the next field: 1; 0 at the end; PL_ECORRUPT. */
PL_MUST_CHECK int pl_wire_next(pl_wire *wire, pl_wire_field *ret_field, pl_error *reterr);

/* Returns 1 if the field has the type that its number requires, else PL_ECORRUPT. */
PL_MUST_CHECK int pl_wire_expect(const pl_wire_field *field, pl_wire_type type, const char *what,
                                 const pl_wire *wire, pl_error *reterr);

/* Reports PL_ECORRUPT, with the byte. */
int pl_wire_refuse(const pl_wire *wire, const uint8_t *at, const char *what, pl_error *reterr);

/* Takes a varint. False if it does not end within 10 bytes, or within the message. */
bool pl_wire_varint(pl_wire *wire, uint64_t *ret_value);

/* Counts the varints up to the end; negative if one does not end, with its place in *ret_at. */
int64_t pl_wire_count_varints(const pl_wire *wire, const uint8_t **ret_at);

/* ---- writing ---- */

static inline unsigned pl_wire_varint_bytes(uint64_t value)
{
    return (unsigned)(63 - __builtin_clzll(value | 1)) / 7 + 1;
}

static inline uint8_t *pl_wire_put_varint(uint8_t *to, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *to++ = (uint8_t)(value | 0x80);
    *to++ = (uint8_t)value;
    return to;
}

#endif
