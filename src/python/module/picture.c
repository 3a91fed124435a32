/* SPDX-License-Identifier: Apache-2.0 */
/* plimsoll._core.encode_jpeg(). */
#include <stdlib.h>

#include "python/module/failure.h"

/* The buffer holds the pixels, so other threads may run meanwhile. */
static PyObject *encode(const Py_buffer *pixels, const pl_jpeg_options *options)
{
    void *bytes = NULL;
    size_t n = 0;
    pl_error error = {0};
    int r;
    Py_BEGIN_ALLOW_THREADS r = pl_jpeg_encode(pixels->buf, pixels->shape[0], pixels->shape[1],
                                              (int)pixels->shape[2], options, &bytes, &n, &error);
    Py_END_ALLOW_THREADS if (r < 0) return failure_raise(&error);
    PyObject *made = PyBytes_FromStringAndSize(bytes, (Py_ssize_t)n);
    free(bytes);
    return made;
}

static PyObject *encode_jpeg(PyObject *module, PyObject *arguments, PyObject *names)
{
    static char *keywords[] = {"pixels", "quality",   "progressive", "small", "full_colour",
                               "per_cm", "x_density", "y_density",   "xmp",   NULL};
    pl_jpeg_options options = {0};
    int progressive, small, full_colour, per_cm;
    PyObject *array, *made = NULL;
    Py_buffer pixels, xmp;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(arguments, names, "Oippppiiy*", keywords, &array,
                                     &options.quality, &progressive, &small, &full_colour, &per_cm,
                                     &options.x_density, &options.y_density, &xmp))
        return NULL;
    options.progressive = progressive;
    options.small = small;
    options.full_colour = full_colour;
    options.per_cm = per_cm;
    options.xmp = xmp.buf;
    options.xmp_bytes = (size_t)xmp.len;
    if (PyObject_GetBuffer(array, &pixels, PyBUF_ND | PyBUF_FORMAT) == 0) {
        if (pixels.ndim == 3 && pixels.itemsize == 1)
            made = encode(&pixels, &options);
        else
            PyErr_SetString(PyExc_ValueError, "[height, width, channels] of bytes are needed");
        PyBuffer_Release(&pixels);
    }
    PyBuffer_Release(&xmp);
    return made;
}

static PyMethodDef functions[] = {
    {"encode_jpeg", (PyCFunction)(void (*)(void))encode_jpeg, METH_VARARGS | METH_KEYWORDS,
     "encode_jpeg(pixels, quality, progressive, small, full_colour, per_cm, x_density, y_density, "
     "xmp)\n--\n\nThe bytes of a JPEG."},
    {NULL, NULL, 0, NULL},
};

int module_add_pictures(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
