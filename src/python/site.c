/* SPDX-License-Identifier: Apache-2.0 */
/* See site.h. Python 3.11 keeps frames in a chain of plain structs; asking it for frame objects
 * would make one for every call of every function of ours. Its layout is read from CPython's own
 * header; other versions are asked by the public functions. */
#include "python/module.h"

#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
#define SITE_PLAIN_FRAMES 1
#define Py_BUILD_CORE     1
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE
#else
#define SITE_PLAIN_FRAMES 0
#endif

#include "python/site.h"

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

#if SITE_PLAIN_FRAMES

PyCodeObject *site_capture(int *ret_instruction)
{
    const _PyInterpreterFrame *frame = PyThreadState_Get()->cframe->current_frame;
    while (frame && site_is_ours(frame->f_code))
        frame = frame->previous;
    if (!frame)
        return NULL;
    *ret_instruction = _PyInterpreterFrame_LASTI(frame) * (int)sizeof(_Py_CODEUNIT);
    return (PyCodeObject *)Py_NewRef((PyObject *)frame->f_code);
}

#else

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
    return NULL;
}

#endif
