/* SPDX-License-Identifier: Apache-2.0 */
/* Public names of CPython's C API that older versions lack, as CPython documents them. The oldest
 * supported version is 3.9. */
#ifndef PL_PYTHON_MODULE_BACKPORT_H
#define PL_PYTHON_MODULE_BACKPORT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#if PY_VERSION_HEX < 0x030A0000
static inline PyObject *Py_NewRef(PyObject *object)
{
    Py_INCREF(object);
    return object;
}

static inline PyObject *Py_XNewRef(PyObject *object)
{
    Py_XINCREF(object);
    return object;
}

static inline int PyModule_AddObjectRef(PyObject *module, const char *name, PyObject *value)
{
    Py_XINCREF(value); /* PyModule_AddObject() takes it over, but only on success */
    int r = PyModule_AddObject(module, name, value);
    if (r < 0)
        Py_XDECREF(value);
    return r;
}

/* Calls gc's functions: 1 if that worked and gc was enabled before, 0 if not. */
static inline int backport_gc_switch(const char *function)
{
    PyObject *gc = PyImport_ImportModule("gc");
    PyObject *was = gc ? PyObject_CallMethod(gc, "isenabled", NULL) : NULL;
    PyObject *done = was ? PyObject_CallMethod(gc, function, NULL) : NULL;
    int enabled = done && was == Py_True;
    if (!done)
        PyErr_Clear();
    Py_XDECREF(done);
    Py_XDECREF(was);
    Py_XDECREF(gc);
    return enabled;
}

static inline int PyGC_Disable(void)
{
    return backport_gc_switch("disable");
}

static inline int PyGC_Enable(void)
{
    return backport_gc_switch("enable");
}

#define Py_TPFLAGS_IMMUTABLETYPE 0
#endif

#if PY_VERSION_HEX < 0x030B0000
#include <frameobject.h>

static inline int PyFrame_GetLasti(PyFrameObject *frame)
{
#if PY_VERSION_HEX >= 0x030A0000
    return frame->f_lasti < 0 ? -1 : frame->f_lasti * 2; /* counted in instructions of 2 bytes */
#else
    return frame->f_lasti;
#endif
}

static inline PyObject *PyFrame_GetGlobals(PyFrameObject *frame)
{
    return Py_NewRef(frame->f_globals);
}

/* The same functions under their older names. */
#define PyFloat_Pack2(x, bytes, little) _PyFloat_Pack2(x, (unsigned char *)(bytes), little)
#define PyFloat_Unpack2(bytes, little)  _PyFloat_Unpack2((const unsigned char *)(bytes), little)
#endif

#if PY_VERSION_HEX < 0x030D0000
#define PyThreadState_GetUnchecked() _PyThreadState_UncheckedGet()
#endif

#endif
