/* SPDX-License-Identifier: Apache-2.0 */
/* See site.h. */
#include "python/module/module.h"

#include "python/module/site.h"

#include <string.h>

static PyObject *package; /* str, ends with '/' */

int site_set_package(PyObject *folder)
{
    PyObject *made = PyUnicode_FromFormat("%U/", folder);
    if (!made)
        return -1;
    Py_XSETREF(package, made);
    return 0;
}

bool site_is_ours(const PyCodeObject *code)
{
    PyObject *file = code->co_filename;
    if (!package || PyUnicode_KIND(file) != PyUnicode_KIND(package))
        return false;
    Py_ssize_t n = PyUnicode_GET_LENGTH(package);
    return PyUnicode_GET_LENGTH(file) > n && memcmp(PyUnicode_DATA(file), PyUnicode_DATA(package),
                                                    (size_t)n * PyUnicode_KIND(file)) == 0;
}

PyCodeObject *site_capture(int *ret_instruction)
{
    PyFrameObject *frame = PyThreadState_GetFrame(PyThreadState_Get());
    while (frame) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        if (!site_is_ours(code)) {
            *ret_instruction = PyFrame_GetLasti(frame);
            Py_DECREF(frame);
            return code;
        }
        Py_DECREF(code);
        PyFrameObject *back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
    }
    PyErr_Clear(); /* since 3.11 PyFrame_GetBack() makes an object, and may be out of memory */
    return NULL;
}
