/* SPDX-License-Identifier: Apache-2.0 */
/* See failure.h. */
#include "python/module/failure.h"

#include <errno.h>
#include <frameobject.h> /* PyFrame_New() */
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "python/module/gil.h"
#include "python/module/site.h"

/* ---- an exception as the payload of an error ---- */

typedef struct kept {
    pl_error_payload payload;
    PyObject *exception;
    struct kept *after; /* next in the list of those to be released */
} kept;

/* Any thread may drop an error, with or without the GIL, and perhaps under a lock that a thread
 * with the GIL waits for. So the exception is not released there, but listed here until Python
 * runs. */
static _Atomic(kept *) dropped;

static void release_dropped(void)
{
    kept *at = atomic_exchange(&dropped, NULL);
    while (at) {
        kept *after = at->after;
        Py_DECREF(at->exception);
        PyMem_RawFree(at);
        at = after;
    }
}

static int release_pending(void *unused)
{
    (void)unused;
    release_dropped();
    return 0;
}

static void drop(pl_error_payload *payload)
{
    kept *own = (kept *)payload, *first = atomic_load(&dropped);
    do
        own->after = first;
    while (!atomic_compare_exchange_weak(&dropped, &first, own));
    if (!first && !gil_has_ended())
        (void)Py_AddPendingCall(release_pending,
                                NULL); /* if there are too many, a later call does it */
}

/* Takes over the reference. Out of memory, the exception is lost, but not its text. */
static void attach(pl_error *error, PyObject *exception)
{
    kept *own = error ? PyMem_RawMalloc(sizeof *own) : NULL;
    if (!own) {
        Py_DECREF(exception);
        return;
    }
    *own = (kept){{.n_refs = 1, .free = drop}, exception, NULL};
    pl_error_attach(error, &own->payload);
    pl_error_of_kind(error, PL_KIND_EXCEPTION);
}

/* A new reference; NULL: there is none. */
static PyObject *attached(const pl_error *error)
{
    bool is_ours = error->payload && error->payload->free == drop;
    return is_ours ? Py_NewRef(((const kept *)error->payload)->exception) : NULL;
}

/* ---- its traceback ---- */

/* A new reference; NULL if there is none, or None (with_traceback(None)). */
static PyObject *trace_of(PyObject *exception)
{
    PyObject *trace = PyException_GetTraceback(exception);
    if (!trace || PyTraceBack_Check(trace))
        return trace;
    Py_DECREF(trace);
    return NULL;
}

/* Makes a frame with the same code and line, without local variables or callers. */
static PyObject *bare_entry(const PyTracebackObject *at, PyObject *next)
{
    PyCodeObject *code = PyFrame_GetCode(at->tb_frame);
    PyObject *globals = PyFrame_GetGlobals(at->tb_frame), *entry = NULL;
    PyFrameObject *frame = PyFrame_New(PyThreadState_Get(), code, globals, NULL);
    if (frame)
        entry = PyObject_CallFunction((PyObject *)&PyTraceBack_Type, "OOii", next, frame,
                                      at->tb_lasti, PyCode_Addr2Line(code, at->tb_lasti));
    Py_XDECREF(frame);
    Py_DECREF(globals);
    Py_DECREF(code);
    return entry;
}

/* From the innermost frame out. */
static PyObject *bare_trace(const PyTracebackObject *trace, int n)
{
    PyObject *made = Py_NewRef(Py_None);
    for (int i = n - 1; made && i >= 0; i--) {
        const PyTracebackObject *at = trace;
        for (int j = 0; j < i; j++)
            at = at->tb_next;
        PyObject *entry = bare_entry(at, made);
        Py_DECREF(made);
        made = entry;
    }
    return made;
}

/* Frames keep local variables alive, and with them an element's tensors; and they keep the frames
 * that called them: the consumer's, if its thread called the function, and with them the iterator,
 * which would never be freed. Only files, functions and lines stay. */
static void clear_frames(PyObject *exception)
{
    enum { ENTRIES_MAX = 64 }; /* after endless recursion, the outermost frames are enough */
    PyObject *trace = trace_of(exception);
    int n = 0;
    for (PyTracebackObject *at = (PyTracebackObject *)trace; at && n < ENTRIES_MAX;
         at = at->tb_next)
        n++;
    PyObject *bare = n > 0 ? bare_trace((PyTracebackObject *)trace, n) : NULL;
    if (n > 0)
        PyException_SetTraceback(exception, bare ? bare : Py_None);
    PyErr_Clear(); /* out of memory: without a traceback */
    Py_XDECREF(bare);
    Py_XDECREF(trace);
}

/* Also strips the exceptions that it came from. */
static void forget_locals(PyObject *exception)
{
    enum { CHAIN_MAX = 32 };
    PyObject *at = Py_NewRef(exception);
    for (int i = 0; at && i < CHAIN_MAX; i++) {
        clear_frames(at);
        PyObject *before = PyException_GetCause(at);
        if (!before)
            before = PyException_GetContext(at);
        Py_DECREF(at);
        at = before;
    }
    Py_XDECREF(at);
}

/* A new reference to a name in plimsoll.errors; NULL, without an exception, if it is not there. */
static PyObject *of_errors(const char *name)
{
    PyObject *module = PyImport_ImportModule("plimsoll.errors");
    PyObject *found = module ? PyObject_GetAttrString(module, name) : NULL;
    Py_XDECREF(module);
    if (!found)
        PyErr_Clear();
    return found;
}

/* ---- exceptions to errors ---- */

static int number_of(PyObject *object, const char *attribute, int fallback)
{
    PyObject *number = PyObject_GetAttrString(object, attribute);
    long value = number && PyLong_Check(number) ? PyLong_AsLong(number) : fallback;
    Py_XDECREF(number);
    if (PyErr_Occurred())
        PyErr_Clear();
    return value == -1 || value < INT32_MIN || value > INT32_MAX ? fallback : (int)value;
}

static int code_of(PyObject *exception)
{
    int own = number_of(exception, "_code", 0);
    if (own < 0)
        return own;
    struct {
        PyObject *class;
        int code;
    } const table[] = {
        {PyExc_KeyboardInterrupt, -ECANCELED}, {PyExc_StopIteration, -ERANGE},
        {PyExc_NotImplementedError, -ENOTSUP}, {PyExc_MemoryError, PL_EBUDGET},
        {PyExc_ValueError, -EINVAL},           {PyExc_TypeError, -EINVAL},
        {PyExc_TimeoutError, -ETIMEDOUT},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (PyErr_GivenExceptionMatches(exception, table[i].class))
            return table[i].code;
    int number = PyErr_GivenExceptionMatches(exception, PyExc_OSError)
                     ? number_of(exception, "errno", 0)
                     : 0;
    return number > 0 && number < 4096 ? -number : -EIO;
}

/* " (train.py:12)": the innermost line of the traceback that is not in this package; "" if there is
 * not one. */
static void where_raised(PyObject *exception, char *text, size_t bytes)
{
    text[0] = '\0';
    PyObject *trace = trace_of(exception);
    if (!trace)
        return;
    for (PyTracebackObject *at = (PyTracebackObject *)trace; at; at = at->tb_next) {
        PyCodeObject *code = PyFrame_GetCode(at->tb_frame);
        const char *file = site_is_ours(code) ? NULL : PyUnicode_AsUTF8(code->co_filename);
        if (file)
            snprintf(text, bytes, " (%.150s:%d)", file, PyCode_Addr2Line(code, at->tb_lasti));
        else
            PyErr_Clear(); /* a name that cannot be printed */
        Py_DECREF(code);
    }
    Py_DECREF(trace);
}

/* For the library's own exceptions, the text need not name the class. */
static bool is_of_errors(PyObject *exception)
{
    PyObject *base = of_errors("OpError");
    bool is = base && PyErr_GivenExceptionMatches(exception, base);
    Py_XDECREF(base);
    return is;
}

int failure_take(pl_error *reterr)
{
    PyObject *class, *exception, *trace, *text;
    PyErr_Fetch(&class, &exception, &trace);
    if (!class)
        return pl_error_set(reterr, -EIO, "a Python function failed without an exception");
    PyErr_NormalizeException(&class, &exception, &trace);
    if (trace)
        PyException_SetTraceback(exception, trace);
    Py_CLEAR(trace);
    char where[200];
    where_raised(exception, where, sizeof where);
    forget_locals(exception);
    text = PyObject_Str(exception);
    const char *words = text ? PyUnicode_AsUTF8(text) : NULL;
    if (!words)
        PyErr_Clear();
    int r = code_of(exception);
    const char *name = strrchr(Py_TYPE(exception)->tp_name, '.');
    name = name ? name + 1 : Py_TYPE(exception)->tp_name;
    bool own = is_of_errors(exception);
    pl_error_set(reterr, r, "%s%s%.200s%s", own ? "" : name, own ? "" : ": ", words ? words : "",
                 where);
    attach(reterr, Py_NewRef(exception));
    bool interrupts = PyErr_GivenExceptionMatches(exception, PyExc_KeyboardInterrupt);
    Py_XDECREF(text);
    Py_DECREF(class);
    Py_DECREF(exception);
    Py_XDECREF(trace);
    /* The interrupt also cancels a pass or run, which may report only the cancellation: the call
     * that raises it finds the note again. Last, because destructors above run Python, which would
     * clear the note. */
    if (interrupts)
        PyErr_SetInterrupt();
    return r;
}

/* ---- errors to exceptions ---- */

static PyObject *plain_class(int code)
{
    return code == PL_EBUDGET || code == -ENOMEM ? PyExc_MemoryError
           : code == -EINVAL                     ? PyExc_ValueError
                                                 : PyExc_RuntimeError;
}

/* TensorFlow's classes: data that an op cannot decode is an invalid argument of the op (the dataset
 * says which element it is), and so is a file that does not end with a whole record of the given
 * size; an element that is larger than its padding is data loss. */
static int code_as_raised(const pl_error *error)
{
    bool is_argument = error->kind == PL_KIND_UNDECODABLE || error->kind == PL_KIND_PARTIAL_RECORD;
    if (error->kind == PL_KIND_TOO_LARGE_TO_PAD)
        return PL_ECORRUPT;
    return error->code == PL_EFORMAT || (error->code == PL_ECORRUPT && is_argument) ? -EINVAL
                                                                                    : error->code;
}

static PyObject *class_of(int code)
{
    PyObject *classes = of_errors("_by_code"), *number = PyLong_FromLong(code), *found = NULL;
    if (classes && number && PyDict_Check(classes))
        found = Py_XNewRef(PyDict_GetItemWithError(classes, number));
    Py_XDECREF(classes);
    Py_XDECREF(number);
    if (!found)
        PyErr_Clear();
    return found ? found : of_errors("UnknownError");
}

/* A new reference; None for "". */
static PyObject *text_or_none(const char *text)
{
    return text[0] ? PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace")
                   : Py_NewRef(Py_None);
}

/* Makes an exception of TensorFlow's kind, which takes (node_def, op, message), or a plain one. */
static PyObject *make(PyObject *class, PyObject *plain, const char *op, const char *message)
{
    PyObject *text = PyUnicode_DecodeUTF8(message, (Py_ssize_t)strlen(message), "replace");
    PyObject *name = text_or_none(op), *made = NULL;
    if (text && name && class)
        made = PyObject_CallFunctionObjArgs(class, Py_None, name, text, NULL);
    else if (text && name)
        made = PyObject_CallOneArg(plain, text);
    Py_XDECREF(name);
    Py_XDECREF(text);
    return made;
}

/* Takes over the value. Out of memory, the attribute keeps the class's default, None. */
static void set(PyObject *exception, const char *name, PyObject *value)
{
    if (!value || PyObject_SetAttrString(exception, name, value) < 0)
        PyErr_Clear();
    Py_XDECREF(value);
}

static PyObject *number_or_none(int64_t number)
{
    return number >= 0 ? PyLong_FromLongLong(number) : Py_NewRef(Py_None);
}

/* As plimsoll/errors.py describes them. */
static void set_fields(PyObject *exception, const pl_error *error)
{
    set(exception, "_code", PyLong_FromLong(error->code));
    set(exception, "path",
        error->path[0] ? PyUnicode_DecodeFSDefault(error->path) : Py_NewRef(Py_None));
    set(exception, "offset", number_or_none(pl_error_offset(error)));
    set(exception, "element", number_or_none(error->element));
    set(exception, "stage", text_or_none(pl_error_stage(error)));
}

static void set_cause(PyObject *exception, PyObject *cause)
{
    if (cause)
        PyException_SetCause(exception, Py_NewRef(cause));
}

static PyObject *exception_of(const pl_error *error, PyObject *cause)
{
    PyObject *class = class_of(code_as_raised(error));
    const char *text = error->message[0] ? error->message : pl_error_text(error->code);
    PyObject *made = make(class, plain_class(error->code), error->op, text);
    Py_XDECREF(class);
    if (made) {
        set_fields(made, error);
        set_cause(made, cause);
    }
    return made;
}

PyObject *failure_raise(pl_error *error)
{
    if (error->code >= 0) /* its fields are undefined then */
        pl_error_set(error, -EIO, "the library failed without a reason");
    PyObject *cause = attached(error), *made = NULL;
    if (PyErr_CheckSignals() == 0) {
        bool is_error = !cause || PyErr_GivenExceptionMatches(cause, PyExc_Exception);
        made = is_error ? exception_of(error, cause) : Py_NewRef(cause);
        if (made)
            PyErr_SetObject((PyObject *)Py_TYPE(made), made);
    }
    Py_XDECREF(made);
    Py_XDECREF(cause);
    pl_error_done(error);
    PyObject *class, *exception, *trace;
    PyErr_Fetch(&class, &exception, &trace); /* destructors run Python */
    release_dropped();
    PyErr_Restore(class, exception, trace);
    return NULL;
}

PyObject *failure_raise_class(const char *name, const char *format, ...)
{
    char message[PL_ERROR_MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    PyObject *class = of_errors(name), *base = of_errors("OpError");
    bool of_tensorflow = class && base && PyObject_IsSubclass(class, base) == 1;
    PyErr_Clear();
    PyObject *made =
        make(of_tensorflow ? class : NULL, class ? class : PyExc_TypeError, "", message);
    if (made)
        PyErr_SetObject((PyObject *)Py_TYPE(made), made);
    Py_XDECREF(made);
    Py_XDECREF(class);
    Py_XDECREF(base);
    return NULL;
}
