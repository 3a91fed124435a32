/* SPDX-License-Identifier: Apache-2.0 */
/* See wire.h. */
#include "codec/record/wire.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* The limits of protobuf's own readers. */
enum { GROUP_DEPTH_MAX = 100, VARINT_BYTES_MAX = 10, NUMBER_BITS = 29 };

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are stored as they are");

int pl_wire_refuse(const pl_wire *wire, const uint8_t *at, const char *what, pl_error *reterr)
{
    pl_error_set(reterr, PL_ECORRUPT, "%s, at byte %td of the record", what, at - wire->record);
    pl_error_at_byte(reterr, (uint64_t)(at - wire->record));
    return PL_ECORRUPT;
}

bool pl_wire_varint(pl_wire *wire, uint64_t *ret_value)
{
    uint64_t value = 0;
    const uint8_t *at = wire->at;
    for (unsigned i = 0; i < VARINT_BYTES_MAX && at < wire->end; i++, at++) {
        value |= (uint64_t)(*at & 0x7f) << 7 * i; /* the tenth byte has room for one bit */
        if (*at < 0x80) {
            wire->at = at + 1;
            *ret_value = value;
            return true;
        }
    }
    return false;
}

int64_t pl_wire_count_varints(const pl_wire *wire, const uint8_t **ret_at)
{
    int64_t n = 0;
    const uint8_t *begin = wire->at;
    for (const uint8_t *at = begin; at < wire->end; at++) {
        if (*at >= 0x80)
            continue;
        if (at - begin >= VARINT_BYTES_MAX)
            break;
        begin = at + 1;
        n++;
    }
    *ret_at = begin;
    return begin == wire->end ? n : -1;
}

static int take_fixed(pl_wire *wire, pl_wire_field *field, size_t n, pl_error *reterr)
{
    if ((size_t)(wire->end - wire->at) < n)
        return pl_wire_refuse(wire, field->begin, "a number is cut off", reterr);
    memcpy(&field->value, wire->at, n);
    wire->at += n;
    return 1;
}

static int take_bytes(pl_wire *wire, pl_wire_field *field, pl_error *reterr)
{
    uint64_t n;
    if (!pl_wire_varint(wire, &n))
        return pl_wire_refuse(wire, field->begin, "a length does not end", reterr);
    if (n > (uint64_t)(wire->end - wire->at))
        return pl_wire_refuse(wire, field->begin, "a length is more than what is left", reterr);
    field->message = (pl_wire){wire->at, wire->at + n, wire->record};
    wire->at += n;
    return 1;
}

/* Takes the number and the type. */
static int take_tag(pl_wire *wire, pl_wire_field *field, pl_error *reterr)
{
    uint64_t tag;
    field->begin = wire->at;
    if (!pl_wire_varint(wire, &tag))
        return pl_wire_refuse(wire, field->begin, "a field's number does not end", reterr);
    if (tag >> 3 == 0 || tag >> 3 >> NUMBER_BITS)
        return pl_wire_refuse(wire, field->begin, "a field has a number that there is not", reterr);
    field->number = (uint32_t)(tag >> 3);
    field->type = (pl_wire_type)(tag & 7);
    field->value = 0;
    return 1;
}

/* Takes the value after the tag, except for groups. */
static int take_value(pl_wire *wire, pl_wire_field *field, pl_error *reterr)
{
    switch (field->type) {
    case PL_WIRE_VARINT:
        return pl_wire_varint(wire, &field->value)
                   ? 1
                   : pl_wire_refuse(wire, field->begin, "a number does not end", reterr);
    case PL_WIRE_FIXED64:
        return take_fixed(wire, field, 8, reterr);
    case PL_WIRE_BYTES:
        return take_bytes(wire, field, reterr);
    case PL_WIRE_FIXED32:
        return take_fixed(wire, field, 4, reterr);
    default:
        return pl_wire_refuse(wire, field->begin, "a field has a type that there is not", reterr);
    }
}

/* Skips everything from a group's tag to its end. */
static int skip_group(pl_wire *wire, const pl_wire_field *group, pl_error *reterr)
{
    uint32_t open[GROUP_DEPTH_MAX];
    size_t depth = 0;
    pl_wire_field field;
    open[depth++] = group->number;
    while (depth > 0) {
        if (wire->at == wire->end)
            return pl_wire_refuse(wire, group->begin, "a group does not end", reterr);
        int r = take_tag(wire, &field, reterr);
        if (r < 0)
            return r;
        if (field.type == PL_WIRE_GROUP_END) {
            if (field.number != open[--depth])
                return pl_wire_refuse(wire, field.begin, "another group ends", reterr);
        } else if (field.type == PL_WIRE_GROUP) {
            if (depth == GROUP_DEPTH_MAX)
                return pl_wire_refuse(wire, field.begin, "groups are nested too deep", reterr);
            open[depth++] = field.number;
        } else if ((r = take_value(wire, &field, reterr)) < 0) {
            return r;
        }
    }
    return 1;
}

int pl_wire_next(pl_wire *wire, pl_wire_field *ret_field, pl_error *reterr)
{
    pl_wire_field field;
    if (wire->at == wire->end)
        return 0;
    int r = take_tag(wire, &field, reterr);
    if (r > 0)
        r = field.type == PL_WIRE_GROUP ? skip_group(wire, &field, reterr)
                                        : take_value(wire, &field, reterr);
    if (r > 0)
        *ret_field = field;
    return r;
}

int pl_wire_expect(const pl_wire_field *field, pl_wire_type type, const char *what,
                   const pl_wire *wire, pl_error *reterr)
{
    if (PL_LIKELY(field->type == type))
        return 1;
    char text[160];
    snprintf(text, sizeof text, "%s has wire type %d, not %d", what, (int)field->type, (int)type);
    return pl_wire_refuse(wire, field->begin, text, reterr);
}
