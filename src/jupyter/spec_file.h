/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a kernel.json within limits, and writes it as a whole. */
#ifndef PL_JUPYTER_SPEC_FILE_H
#define PL_JUPYTER_SPEC_FILE_H

#include <jansson.h>

#include "base/base.h"

#define PL_SPEC_FILE "kernel.json"

/* Reads an object with a command, of the types that jupyter_client takes. -ENOMEM, -errno, or
 * PL_ECORRUPT for anything else; the message names the file. */
PL_MUST_CHECK int pl_spec_load(const char *path, json_t **ret_spec, pl_error *reterr);

/* Parses a text; the message names `path`. */
PL_MUST_CHECK int pl_spec_parse(const char *text, uint64_t n, const char *path, json_t **ret_spec,
                                pl_error *reterr);

/* Writes a new file. */
PL_MUST_CHECK int pl_spec_save(const json_t *spec, const char *path);

#endif
