/* SPDX-License-Identifier: Apache-2.0 */
/* JSON documents as files of a record. */
#ifndef PL_REPORT_JSON_FILE_H
#define PL_REPORT_JSON_FILE_H

#include <jansson.h>

#include "base/base.h"

/* Reads an object. -ENOENT when there is no file, -ENOMEM when memory ran out, PL_ECORRUPT when it
 * is not a JSON object, or is larger than plimsoll writes. */
PL_MUST_CHECK int pl_json_file_load(const char *path, json_t **ret_object, pl_error *reterr);

/* Parses an object from text. The message is the reason alone. */
PL_MUST_CHECK int pl_json_file_parse(const char *text, size_t n, json_t **ret_object,
                                     pl_error *reterr);

#endif
