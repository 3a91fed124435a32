/* SPDX-License-Identifier: Apache-2.0 */
/* Call sites: the instruction of the user's code that made a node. Frames of this package are
 * skipped. Cheap enough for every node: it makes no object, and looks up lines only on request. */
#ifndef PL_PYTHON_MODULE_SITE_H
#define PL_PYTHON_MODULE_SITE_H

#include "python/module/module.h"

/* A new reference to the code object, and the offset in it for PyCode_Addr2Line(). NULL: no Python
 * code of the user is running. */
PyCodeObject *site_capture(int *ret_instruction);

/* Sets the folder whose files are skipped: this package's. 0, or -1 with an exception. */
int site_set_package(PyObject *folder);
bool site_is_ours(const PyCodeObject *code);

#endif
