/* SPDX-License-Identifier: Apache-2.0 */
/* Turns the fixed fields of a record into JSON values. A record may be torn or corrupt: text is
 * bounded by its field and made valid UTF-8, counts are clamped to the range of a JSON integer. */
#ifndef PL_REPORT_JSON_H
#define PL_REPORT_JSON_H

#include <jansson.h>

#include "base/base.h"
#include "ledger/layout.h"
#include "report/cell_sources.h"
#include "supervise/inspect.h"

/* Copies at most `size` bytes of `field`, up to a NUL, as valid UTF-8, with U+FFFD for invalid
 * bytes. Always ends `text` with a NUL; cuts between characters. */
void pl_json_clean(const char *field, size_t size, char *text, size_t n);

/* Makes a string from a field, or from a whole string. NULL when out of memory. */
json_t *pl_json_field(const char *field, size_t size);
json_t *pl_json_text(const char *text);

json_t *pl_json_u64(uint64_t number);

/* Makes a number of seconds, rounded to a millisecond. */
json_t *pl_json_seconds(double seconds);

/* A document under construction: one flag remembers that memory ran out anywhere. */
typedef struct pl_json {
    bool failed;
} pl_json;

/* Both take over `value`; a NULL value, or a NULL container, sets the flag. */
void pl_json_put(pl_json *json, json_t *object, const char *key, json_t *value);
void pl_json_add(pl_json *json, json_t *array, json_t *value);

/* Puts the text unless it is empty. */
void pl_json_put_text(pl_json *json, json_t *object, const char *key, const char *text);

/* Makes a frame. A frame in a notebook's cell also has the cell's number and the source of the
 * line. */
json_t *pl_json_python_frame(pl_json *json, const pl_place_context *places,
                             const pl_python_frame *frame);
json_t *pl_json_python_stack(pl_json *json, const pl_place_context *places,
                             const pl_python_frame *frames, size_t n);

/* Adds these two to a frame that was written without knowledge of cells. */
void pl_json_find_cell(pl_json *json, const pl_place_context *places, json_t *frame);

json_t *pl_json_native_stack(pl_json *json, const pl_native_frame *frames, size_t n);

/* Is this frame filled in? */
bool pl_json_has_frame(const pl_python_frame *frame);

#endif
