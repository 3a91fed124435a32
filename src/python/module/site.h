/* SPDX-License-Identifier: Apache-2.0 */
/* Call sites: which instruction of the user's code made a node. Frames of this package are passed
 * over. Cheap enough for every node: no object is made, and lines are looked up when asked for. */
#ifndef PL_PYTHON_MODULE_SITE_H
#define PL_PYTHON_MODULE_SITE_H

#include "python/module/module.h"

/* A new reference to the code object, and the offset in it as PyCode_Addr2Line() wants it. NULL: no
 * Python code of the user's is running. */
PyCodeObject *site_capture(int *ret_instruction);

/* The folder whose files are ours: this package's. 0, or -1 with an exception. */
int site_set_package(PyObject *folder);
bool site_is_ours(const PyCodeObject *code);

#endif
