/* SPDX-License-Identifier: Apache-2.0 */
/* plimsoll._core.RecordWriter: writes TFRecord files. Compression uses Python's zlib, imported when
 * it is needed. Only one thread may use a writer at a time. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "python/convert/features.h"
#include "python/dataset/dataset_type.h"
#include "python/module/failure.h"

typedef struct record_writer {
    PyObject ob_base;
    FILE *file;           /* NULL: closed */
    PyObject *compressor; /* NULL: none */
    PyObject *path;
} record_writer;

static PyTypeObject *record_writer_type;

/* ---- bytes to the file ---- */

/* Raises an OSError from errno; always -1. */
static int fail(const record_writer *self)
{
    int number = errno;
    pl_error error = {0};
    PyObject *text = PyObject_Str(self->path);
    const char *path = text ? PyUnicode_AsUTF8(text) : NULL;
    PyErr_Clear();
    pl_error_set(&error, -number, "cannot write '%.300s': %s", path ? path : "?", strerror(number));
    Py_XDECREF(text);
    failure_raise(&error);
    return -1;
}

static int write_plain(record_writer *self, const void *data, size_t n)
{
    return fwrite(data, 1, n, self->file) == n ? 0 : fail(self);
}

/* Writes the compressor's output; takes over the reference. */
static int write_packed(record_writer *self, PyObject *packed)
{
    char *data;
    Py_ssize_t n;
    int r = packed && PyBytes_AsStringAndSize(packed, &data, &n) == 0
                ? write_plain(self, data, (size_t)n)
                : -1;
    Py_XDECREF(packed);
    return r;
}

static int write_bytes(record_writer *self, const void *data, size_t n)
{
    if (!self->compressor)
        return write_plain(self, data, n);
    return write_packed(
        self, PyObject_CallMethod(self->compressor, "compress", "y#", data, (Py_ssize_t)n));
}

static int check_open(const record_writer *self)
{
    if (self->file)
        return 0;
    PyErr_Format(PyExc_ValueError, "the writer of %R is closed", self->path);
    return -1;
}

static PyObject *write_record(PyObject *object, PyObject *record)
{
    record_writer *self = (record_writer *)object;
    Py_buffer bytes;
    if (check_open(self) < 0 || PyObject_GetBuffer(record, &bytes, PyBUF_SIMPLE) < 0)
        return NULL;
    uint8_t head[PL_RECORD_HEAD_BYTES], foot[PL_RECORD_FOOT_BYTES];
    pl_record_frame(bytes.buf, (size_t)bytes.len, head, foot);
    int r = write_bytes(self, head, sizeof head);
    if (r == 0)
        r = write_bytes(self, bytes.buf, (size_t)bytes.len);
    if (r == 0)
        r = write_bytes(self, foot, sizeof foot);
    PyBuffer_Release(&bytes);
    return r < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *flush(PyObject *object, PyObject *unused)
{
    (void)unused;
    record_writer *self = (record_writer *)object;
    if (check_open(self) < 0)
        return NULL;
    if (self->compressor && /* zlib.Z_SYNC_FLUSH */
        write_packed(self, PyObject_CallMethod(self->compressor, "flush", "i", 2)) < 0)
        return NULL;
    return fflush(self->file) != 0 && fail(self) < 0 ? NULL : Py_NewRef(Py_None);
}

/* A second call does nothing. */
static PyObject *close_file(PyObject *object, PyObject *unused)
{
    (void)unused;
    record_writer *self = (record_writer *)object;
    if (!self->file)
        Py_RETURN_NONE;
    int r = self->compressor
                ? write_packed(self, PyObject_CallMethod(self->compressor, "flush", NULL))
                : 0;
    FILE *file = self->file;
    self->file = NULL;
    if (fclose(file) != 0 && r == 0)
        r = fail(self);
    return r < 0 ? NULL : Py_NewRef(Py_None);
}

/* ---- the type ---- */

/* In zlib, 31 and 15 select gzip's frame and zlib's own. */
static int add_compressor(record_writer *self, pl_compression compression, int level)
{
    if (compression == PL_COMPRESSION_NONE || compression == PL_COMPRESSION_AUTO)
        return 0;
    PyObject *zlib = PyImport_ImportModule("zlib");
    if (zlib)
        self->compressor = PyObject_CallMethod(zlib, "compressobj", "iii", level, 8,
                                               compression == PL_COMPRESSION_GZIP ? 31 : 15);
    Py_XDECREF(zlib);
    return self->compressor ? 0 : -1;
}

static int open_file(record_writer *self, PyObject *path)
{
    PyObject *bytes;
    if (!PyUnicode_FSConverter(path, &bytes))
        return -1;
    self->path = Py_NewRef(path);
    self->file = fopen(PyBytes_AS_STRING(bytes), "wbe");
    int r = self->file ? 0 : fail(self);
    Py_DECREF(bytes);
    return r;
}

static PyObject *make(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"path", "compression", "level", NULL};
    PyObject *path;
    const char *text = NULL;
    int level = -1; /* zlib's own */
    pl_compression compression;
    pl_error error = {0};
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O|zi:RecordWriter", names, &path, &text,
                                     &level))
        return NULL;
    if (compression_of(text, &compression, &error) < 0)
        return failure_raise(&error);
    record_writer *self = (record_writer *)type->tp_alloc(type, 0);
    if (self && (add_compressor(self, compression, level) < 0 || open_file(self, path) < 0))
        Py_CLEAR(self);
    return (PyObject *)self;
}

static void dealloc(PyObject *object)
{
    record_writer *self = (record_writer *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject *class, *value, *trace;
    PyErr_Fetch(&class, &value, &trace);
    PyObject *closed = close_file(object, NULL);
    if (!closed)
        PyErr_WriteUnraisable(self->path);
    Py_XDECREF(closed);
    PyErr_Restore(class, value, trace);
    Py_XDECREF(self->compressor);
    Py_XDECREF(self->path);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyObject *enter(PyObject *self, PyObject *unused)
{
    (void)unused;
    return Py_NewRef(self);
}

static PyObject *leave(PyObject *self, PyObject *arguments)
{
    (void)arguments;
    return close_file(self, NULL);
}

static PyMethodDef methods[] = {
    {"write", write_record, METH_O, "Writes one record: bytes."},
    {"flush", flush, METH_NOARGS, "Hands what was written to the system."},
    {"close", close_file, METH_NOARGS, "Ends the file."},
    {"__enter__", enter, METH_NOARGS, NULL},
    {"__exit__", leave, METH_VARARGS, NULL},
    {NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, make},
    {Py_tp_dealloc, dealloc},
    {Py_tp_methods, methods},
    {Py_tp_doc, "RecordWriter(path, compression=None, level=-1): writes a TFRecord file"},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "plimsoll._core.RecordWriter",
    .basicsize = sizeof(record_writer),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = slots,
};

int module_add_records(PyObject *module)
{
    record_writer_type = dataset_add_type(module, &spec);
    return record_writer_type ? 0 : -1;
}
