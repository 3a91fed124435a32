/* SPDX-License-Identifier: Apache-2.0 */
/* hang.json: the supervisor's findings about a hanging tree, in the format of the report's
 * "hang". */
#ifndef PL_REPORT_HANG_H
#define PL_REPORT_HANG_H

#include "report/json.h"

/* Loads the object, and marks frames that are in notebook cells, which the supervisor did not know
 * when it wrote them. *ret_hang is untouched when the record has no readable one. 0 or -ENOMEM. */
PL_MUST_CHECK int pl_hang_load(const char *record_directory, const pl_place_context *places,
                               json_t **ret_hang);

bool pl_hang_has_cycle(const json_t *hang);

#endif
