/* SPDX-License-Identifier: Apache-2.0 */
/* See json_scan.h. A state says what may come next; strings, which hold most bytes, are scanned by
 * a loop of their own. */
#include "codec/text/json_scan.h"

#include <string.h>

#include "codec/text/utf8.h"

enum state {
    VALUE,        /* a value must follow */
    VALUE_OR_END, /* after '[' */
    KEY,          /* after ',' in an object */
    KEY_OR_END,   /* after '{' */
    COLON,
    BEHIND_VALUE, /* within an array or object */
    TOP,          /* between values of the document */
    STRING,
    ESCAPE,
    HEX,
    LITERAL,
    MINUS, /* all others are parts of a number */
    ZERO,
    WHOLE,
    POINT,
    FRACTION,
    EXPONENT,
    EXPONENT_SIGN,
    POWER,
};

void pl_json_scan_init(pl_json_scan *scan, bool lines)
{
    memset(scan, 0, sizeof *scan);
    scan->line = 1;
    scan->lines = lines;
    scan->state = TOP;
}

static bool refuse(pl_json_scan *scan, const char *fault)
{
    scan->fault = fault;
    return false;
}

static bool in_object(const pl_json_scan *scan)
{
    uint32_t level = scan->depth - 1;
    return scan->is_object[level / 64] >> level % 64 & 1;
}

static bool open_level(pl_json_scan *scan, bool object)
{
    uint32_t level = scan->depth;
    if (level == PL_JSON_DEPTH_MAX)
        return refuse(scan, "arrays and objects lie within each other more than 1024 deep");
    uint64_t bit = UINT64_C(1) << level % 64;
    scan->is_object[level / 64] = (scan->is_object[level / 64] & ~bit) | (object ? bit : 0);
    scan->depth++;
    scan->state = object ? KEY_OR_END : VALUE_OR_END;
    return true;
}

static void end_value(pl_json_scan *scan)
{
    scan->state = scan->depth ? BEHIND_VALUE : TOP;
    scan->n_values += scan->depth == 0;
    scan->line_has_value |= scan->depth == 0;
}

static bool close_level(pl_json_scan *scan, bool object)
{
    if (in_object(scan) != object)
        return refuse(scan, object ? "'}' closes an array" : "']' closes an object");
    scan->depth--;
    end_value(scan);
    return true;
}

static void begin_string(pl_json_scan *scan, int after)
{
    scan->state = STRING;
    scan->after_string = after;
}

static bool begin_literal(pl_json_scan *scan, const char *rest)
{
    scan->literal = rest;
    scan->state = LITERAL;
    return true;
}

static bool begin_value(pl_json_scan *scan, char c)
{
    switch (c) {
    case '"':
        begin_string(scan, BEHIND_VALUE);
        return true;
    case '{':
        return open_level(scan, true);
    case '[':
        return open_level(scan, false);
    case '-':
        scan->state = MINUS;
        return true;
    case '0':
        scan->state = ZERO;
        return true;
    case 't':
        return begin_literal(scan, "rue");
    case 'f':
        return begin_literal(scan, "alse");
    case 'n':
        return begin_literal(scan, "ull");
    case 'N':
    case 'I':
        return refuse(scan, "NaN and Infinity are no JSON");
    default:
        break;
    }
    if (c < '1' || c > '9')
        return refuse(scan, "a value is expected");
    scan->state = WHOLE;
    return true;
}

static bool begin_at_top(pl_json_scan *scan, char c)
{
    if (scan->n_values > 0 && !scan->lines)
        return refuse(scan, "something follows the value (JSON lines are named .jsonl)");
    if (scan->line_has_value && scan->lines)
        return refuse(scan, "something follows the value of this line");
    return begin_value(scan, c);
}

static bool take_behind_value(pl_json_scan *scan, char c)
{
    if (c == ']' || c == '}')
        return close_level(scan, c == '}');
    if (c != ',')
        return refuse(scan, in_object(scan) ? "',' or '}' is expected" : "',' or ']' is expected");
    scan->state = in_object(scan) ? KEY : VALUE;
    return true;
}

/* Checks that values end with their line: a reader of JSON lines parses line by line. */
static bool end_line(pl_json_scan *scan)
{
    if (scan->lines && scan->depth > 0)
        return refuse(scan, "the line ends within a value");
    scan->line_has_value = false;
    scan->line++;
    return true;
}

/* Takes anything but a string, an escape, a literal or a number. Blanks are allowed between all of
 * these. */
static bool take_mark(pl_json_scan *scan, char c)
{
    if (c == '\n')
        return end_line(scan);
    if (c == ' ' || c == '\t' || c == '\r')
        return true;
    switch (scan->state) {
    case TOP:
        return begin_at_top(scan, c);
    case VALUE_OR_END:
        if (c == ']')
            return close_level(scan, false);
        return begin_value(scan, c);
    case KEY_OR_END:
        if (c == '}')
            return close_level(scan, true);
        __attribute__((fallthrough));
    case KEY:
        if (c != '"')
            return refuse(scan, "a name in quotes is expected");
        begin_string(scan, COLON);
        return true;
    case COLON:
        scan->state = VALUE;
        return c == ':' || refuse(scan, "':' is expected");
    case BEHIND_VALUE:
        return take_behind_value(scan, c);
    default:
        return begin_value(scan, c);
    }
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Returns the state after `c` in a number; -1: it is not part of it. */
static int next_in_number(int state, char c)
{
    bool digit = is_digit(c), power = c == 'e' || c == 'E';
    switch (state) {
    case MINUS:
        return c == '0' ? ZERO : digit ? WHOLE : -1;
    case ZERO:
        return c == '.' ? POINT : power ? EXPONENT : -1;
    case WHOLE:
        return digit ? WHOLE : c == '.' ? POINT : power ? EXPONENT : -1;
    case POINT:
        return digit ? FRACTION : -1;
    case FRACTION:
        return digit ? FRACTION : power ? EXPONENT : -1;
    case EXPONENT:
        return c == '+' || c == '-' ? EXPONENT_SIGN : digit ? POWER : -1;
    default: /* EXPONENT_SIGN, POWER */
        return digit ? POWER : -1;
    }
}

static bool may_end_number(int state)
{
    return state == ZERO || state == WHOLE || state == FRACTION || state == POWER;
}

static bool take_in_number(pl_json_scan *scan, char c)
{
    int next = next_in_number(scan->state, c);
    if (next >= 0) {
        scan->state = next;
        return true;
    }
    if (!may_end_number(scan->state) || is_digit(c))
        return refuse(scan, "a number is malformed");
    end_value(scan);
    return take_mark(scan, c);
}

static bool take_in_literal(pl_json_scan *scan, char c)
{
    if (c != *scan->literal)
        return refuse(scan, "true, false or null is malformed");
    if (*++scan->literal == '\0')
        end_value(scan);
    return true;
}

static bool take_escape(pl_json_scan *scan, char c)
{
    bool hex = is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    if (scan->state == HEX) {
        scan->state = ++scan->n_hex == 4 ? STRING : HEX;
        return hex || refuse(scan, "\\u is followed by four hexadecimal digits");
    }
    scan->state = c == 'u' ? HEX : STRING;
    scan->n_hex = 0;
    return strchr("\"\\/bfnrtu", c) != NULL && c != '\0'
               ? true
               : refuse(scan, "there is no such escape in a string");
}

static bool take_in_string(pl_json_scan *scan, char c)
{
    if ((uint8_t)c < 0x20)
        return refuse(scan, "a control character in a string: a quote may be missing");
    if (c == '\\')
        scan->state = ESCAPE;
    else if (c == '"' && scan->after_string == COLON)
        scan->state = COLON;
    else if (c == '"')
        end_value(scan);
    return true;
}

static bool take(pl_json_scan *scan, char c)
{
    switch (scan->state) {
    case STRING:
        return take_in_string(scan, c);
    case ESCAPE:
    case HEX:
        return take_escape(scan, c);
    case LITERAL:
        return take_in_literal(scan, c);
    default:
        return scan->state >= MINUS ? take_in_number(scan, c) : take_mark(scan, c);
    }
}

/* Returns how many bytes from here on are plain bytes of a string. */
static size_t plain_bytes(const char *bytes, size_t n)
{
    size_t i = 0;
    while (i < n && (uint8_t)bytes[i] >= 0x20 && bytes[i] != '"' && bytes[i] != '\\')
        i++;
    return i;
}

static bool scan_bytes(pl_json_scan *scan, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (scan->state == STRING) {
            size_t plain = plain_bytes(bytes + i, n - i);
            scan->offset += plain;
            i += plain;
            if (i == n)
                break;
        }
        if (!take(scan, bytes[i]))
            return false;
        scan->offset++;
    }
    return true;
}

/* Scans whole characters. Skips a byte order mark at the very beginning. */
static bool scan_characters(pl_json_scan *scan, const void *bytes, size_t n)
{
    size_t mark = scan->offset == 0 ? pl_utf8_mark_bytes(bytes, n) : 0;
    scan->offset += mark;
    return scan_bytes(scan, (const char *)bytes + mark, n - mark);
}

/* Completes a character that the previous piece began: it was held back, so that an error has the
 * character's place. False: an error; else *ret_n bytes have been taken. */
static bool end_character(pl_json_scan *scan, const uint8_t *bytes, size_t n, size_t *ret_n)
{
    bool cut;
    *ret_n = 0;
    while (scan->n_utf8 > 0 && *ret_n < n) {
        scan->utf8[scan->n_utf8++] = bytes[(*ret_n)++];
        size_t all = (size_t)scan->n_utf8;
        if (pl_utf8_valid_bytes(scan->utf8, all, &cut) == all) {
            scan->n_utf8 = 0;
            return scan_characters(scan, scan->utf8, all);
        }
        if (!cut)
            return refuse(scan, "it is not UTF-8 here");
    }
    return true;
}

bool pl_json_scan_go_on(pl_json_scan *scan, const void *bytes, size_t n)
{
    size_t from;
    bool cut;
    if (scan->fault || !end_character(scan, bytes, n, &from))
        return false;
    if (from == n)
        return true;
    const uint8_t *at = (const uint8_t *)bytes + from;
    size_t good = pl_utf8_valid_bytes(at, n - from, &cut), left = n - from - good;
    if (!scan_characters(scan, at, good))
        return false;
    if (left > 0 && !cut)
        return refuse(scan, "it is not UTF-8 here");
    memcpy(scan->utf8, at + good, left); /* 3 at most */
    scan->n_utf8 = (int)left;
    return true;
}

bool pl_json_scan_end(pl_json_scan *scan)
{
    if (scan->fault)
        return false;
    if (may_end_number(scan->state) && scan->depth == 0)
        end_value(scan);
    if (scan->state != TOP || scan->n_utf8 > 0)
        return refuse(scan, "it is cut off: it ends within a value");
    return scan->n_values > 0 || scan->lines || refuse(scan, "there is no value");
}
