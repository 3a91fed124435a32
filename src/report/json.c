/* SPDX-License-Identifier: Apache-2.0 */
/* See json.h. jansson refuses text that is not UTF-8, so the names that processes give themselves
 * are cleaned first. */
#include "report/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */

/* Returns the length of the valid UTF-8 sequence at `s`, of at most `n` bytes; 0 when there is
 * none. Overlong forms, surrogates and anything over U+10FFFF are not valid (RFC 3629). */
static size_t sequence_bytes(const unsigned char *s, size_t n)
{
    if (s[0] < 0x80)
        return 1;
    size_t length = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || length > n)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    bool bad = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
               (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f);
    return bad ? 0 : length;
}

void pl_json_clean(const char *field, size_t size, char *text, size_t n)
{
    size_t length = strnlen(field, size), used = 0;
    for (size_t i = 0; i < length;) {
        size_t bytes = sequence_bytes((const unsigned char *)field + i, length - i);
        const char *from = bytes > 0 ? field + i : replacement;
        size_t n_from = bytes > 0 ? bytes : sizeof(replacement) - 1;
        if (used + n_from >= n)
            break;
        memcpy(text + used, from, n_from);
        used += n_from;
        i += bytes > 0 ? bytes : 1;
    }
    if (n > 0)
        text[used] = '\0';
}

json_t *pl_json_field(const char *field, size_t size)
{
    size_t length = strnlen(field, size);
    size_t n = length * (sizeof(replacement) - 1) + 1;
    char *text = malloc(n);
    if (text == NULL)
        return NULL;
    pl_json_clean(field, length, text, n);
    json_t *value = json_string(text);
    free(text);
    return value;
}

json_t *pl_json_text(const char *text)
{
    return pl_json_field(text, strlen(text));
}

json_t *pl_json_u64(uint64_t number)
{
    return json_integer((json_int_t)pl_min_u64(number, INT64_MAX));
}

json_t *pl_json_seconds(double seconds)
{
    return json_real(isfinite(seconds) ? round(seconds * 1000) / 1000 : 0);
}

void pl_json_put(pl_json *json, json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) < 0)
        json->failed = true;
}

void pl_json_add(pl_json *json, json_t *array, json_t *value)
{
    if (json_array_append_new(array, value) < 0)
        json->failed = true;
}

void pl_json_put_text(pl_json *json, json_t *object, const char *key, const char *text)
{
    if (text[0] != '\0')
        pl_json_put(json, object, key, pl_json_text(text));
}

bool pl_json_has_frame(const pl_python_frame *frame)
{
    return frame->line != 0 || frame->file[0] != '\0';
}

void pl_json_find_cell(pl_json *json, const pl_place_context *places, json_t *frame)
{
    const char *file = json_string_value(json_object_get(frame, "file"));
    json_int_t line = json_integer_value(json_object_get(frame, "line"));
    uint32_t number = file != NULL ? pl_cell_sources_number(places->cells, file) : 0;
    if (number == 0)
        return;
    char text[PL_CELLS_TEXT_BYTES];
    pl_cell_sources_line(places->cells, file, line > 0 ? (uint64_t)line : 0, text);
    pl_json_put(json, frame, "cell", json_integer(number));
    pl_json_put_text(json, frame, "source", text);
}

json_t *pl_json_python_frame(pl_json *json, const pl_place_context *places,
                             const pl_python_frame *frame)
{
    json_t *object = json_object();
    pl_json_put(json, object, "file", pl_json_field(frame->file, sizeof(frame->file)));
    pl_json_put(json, object, "line", json_integer(frame->line));
    pl_json_put(json, object, "function", pl_json_field(frame->function, sizeof(frame->function)));
    pl_json_find_cell(json, places, object);
    return object;
}

json_t *pl_json_python_stack(pl_json *json, const pl_place_context *places,
                             const pl_python_frame *frames, size_t n)
{
    json_t *array = json_array();
    for (size_t i = 0; i < n; i++)
        pl_json_add(json, array, pl_json_python_frame(json, places, &frames[i]));
    return array;
}

json_t *pl_json_native_stack(pl_json *json, const pl_native_frame *frames, size_t n)
{
    json_t *array = json_array();
    for (size_t i = 0; i < n; i++) {
        const pl_native_frame *frame = &frames[i];
        json_t *object = json_object();
        pl_json_put_text(json, object, "module", frame->module);
        pl_json_put(json, object, "offset",
                    pl_json_u64(frame->module[0] != '\0' ? frame->offset : frame->address));
        pl_json_put_text(json, object, "symbol", frame->symbol);
        pl_json_put_text(json, object, "source", frame->source);
        pl_json_add(json, array, object);
    }
    return array;
}
