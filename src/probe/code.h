/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the names and lines of a code object. For the files of probe/ only. */
#ifndef PL_PROBE_CODE_H
#define PL_PROBE_CODE_H

#include "probe/offsets.h"

/* Is `type` the address of the type object with this name? */
bool pl_python_type_is(const pl_reader *reader, const pl_python_offsets *offsets, uint64_t type,
                       const char *name);

/* Gives file, function and line of an instruction (in code units) of the code object at `code`. */
PL_MUST_CHECK int pl_python_code_describe(const pl_reader *reader, const pl_python_offsets *offsets,
                                          uint64_t code, uint64_t instruction,
                                          pl_python_frame *ret_frame);

#endif
