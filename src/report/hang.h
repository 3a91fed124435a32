/* SPDX-License-Identifier: Apache-2.0 */
/* hang.json: what the supervisor saw of a hanging tree, in the shape of the report's "hang". */
#ifndef PL_REPORT_HANG_H
#define PL_REPORT_HANG_H

#include "report/json.h"

/* The object, or NULL when the record has none that can be read. */
json_t *pl_hang_load(const char *record_directory);

bool pl_hang_has_cycle(const json_t *hang);

#endif
