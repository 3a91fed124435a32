/* SPDX-License-Identifier: Apache-2.0 */
/* hang.json: what the supervisor saw of a hanging tree, in the shape of the report's "hang". */
#ifndef PL_REPORT_HANG_H
#define PL_REPORT_HANG_H

#include "report/json.h"

/* *ret_hang becomes the object; it stays as it is when the record has none that can be read. Frames
 * in cells are marked as such: the supervisor that wrote them does not know of cells. 0 or -ENOMEM.
 */
PL_MUST_CHECK int pl_hang_load(const char *record_directory, const pl_place_context *places,
                               json_t **ret_hang);

bool pl_hang_has_cycle(const json_t *hang);

#endif
