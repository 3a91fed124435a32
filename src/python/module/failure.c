/* SPDX-License-Identifier: Apache-2.0 */
/* See failure.h. */
#include "python/module/failure.h"

#include <errno.h>
#include <frameobject.h> /* PyFrame_New() */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "python/module/site.h"

#define MARK "python exception "

/* ---- what the user's code raised, until it is raised again ---- */

static struct {
    unsigned number; /* 0: free */
    PyObject *exception;
} kept[FAILURE_KEPT];
static unsigned last_number;

/* Takes over the reference. The oldest gives way. */
static unsigned keep(PyObject *exception)
{
    unsigned number = ++last_number ? last_number : ++last_number;
    PyObject *before = kept[number % FAILURE_KEPT].exception;
    kept[number % FAILURE_KEPT].number = number;
    kept[number % FAILURE_KEPT].exception = exception;
    Py_XDECREF(before);
    return number;
}

/* Out of the list, with its reference; NULL if it is not there any more. */
static PyObject *find(unsigned number)
{
    if (number == 0 || kept[number % FAILURE_KEPT].number != number)
        return NULL;
    PyObject *exception = kept[number % FAILURE_KEPT].exception;
    kept[number % FAILURE_KEPT].number = 0;
    kept[number % FAILURE_KEPT].exception = NULL;
    return exception;
}

/* A new reference; NULL if there is none, or None (with_traceback(None)). */
static PyObject *trace_of(PyObject *exception)
{
    PyObject *trace = PyException_GetTraceback(exception);
    if (!trace || PyTraceBack_Check(trace))
        return trace;
    Py_DECREF(trace);
    return NULL;
}

/* The same place of the same code, in a frame that has nothing else: no local variables, and none
 * that called it. */
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

/* From the innermost out. */
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

/* Frames have local variables, and those an element's tensors; and they have the frames that called
 * them: of a function that the consumer's thread called for it these are the consumer's, with the
 * iterator, which would not end. Files, functions and lines are all that is told. */
static void clear_frames(PyObject *exception)
{
    enum { TOLD_MAX = 64 }; /* of a recursion without end the outermost are enough */
    PyObject *trace = trace_of(exception);
    int n = 0;
    for (PyTracebackObject *at = (PyTracebackObject *)trace; at && n < TOLD_MAX; at = at->tb_next)
        n++;
    PyObject *bare = n > 0 ? bare_trace((PyTracebackObject *)trace, n) : NULL;
    if (n > 0)
        PyException_SetTraceback(exception, bare ? bare : Py_None);
    PyErr_Clear(); /* without memory for it nothing is told */
    Py_XDECREF(bare);
    Py_XDECREF(trace);
}

/* Of the exception, and of those that it came from. */
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

/* A new reference to something of plimsoll.errors; NULL, without an exception, if it is not there.
 */
static PyObject *of_errors(const char *name)
{
    PyObject *module = PyImport_ImportModule("plimsoll.errors");
    PyObject *found = module ? PyObject_GetAttrString(module, name) : NULL;
    Py_XDECREF(module);
    if (!found)
        PyErr_Clear();
    return found;
}

/* ---- exceptions as errors ---- */

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

/* " (train.py:12)": the innermost line of the traceback that is not the package's own; "" if there
 * is none. */
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

/* What is raised anew has the class of such a one, and says it. */
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
    pl_error_set(reterr, r, MARK "%u: %s%s%.200s%s", keep(Py_NewRef(exception)), own ? "" : name,
                 own ? "" : ": ", words ? words : "", where);
    bool interrupts = PyErr_GivenExceptionMatches(exception, PyExc_KeyboardInterrupt);
    Py_XDECREF(text);
    Py_DECREF(class);
    Py_DECREF(exception);
    Py_XDECREF(trace);
    /* The pass or run that it interrupts is cancelled as well, and may say only that: whoever
     * raises that finds the note again. Last, because destructors above run Python, which would
     * take it. */
    if (interrupts)
        PyErr_SetInterrupt();
    return r;
}

/* ---- errors as exceptions ---- */

static PyObject *plain_class(int code)
{
    return code == PL_EBUDGET || code == -ENOMEM ? PyExc_MemoryError
           : code == -EINVAL                     ? PyExc_ValueError
                                                 : PyExc_RuntimeError;
}

/* As TensorFlow sees it: what cannot be decoded is an invalid argument of the op (a dataset says
 * before that which element it is), and so is a file that does not end with a whole record of the
 * size that was said; what does not fit its padding is a loss of data. */
static int code_as_raised(const pl_error *error)
{
    if (error->code == PL_ECORRUPT && strstr(error->message, "which are not a record of "))
        return -EINVAL;
    if (error->code == -EINVAL && strstr(error->message, "to which it is to be padded"))
        return PL_ECORRUPT;
    bool undecodable = error->code == PL_ECORRUPT && (strncmp(error->message, "decode_", 7) == 0 ||
                                                      strstr(error->message, ": decode_"));
    return undecodable || error->code == PL_EFORMAT ? -EINVAL : error->code;
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

/* An exception of TensorFlow's kind, which is made of (node_def, op, message), or of a plain one.
 */
static PyObject *make(PyObject *class, PyObject *plain, const char *message)
{
    PyObject *text = PyUnicode_DecodeUTF8(message, (Py_ssize_t)strlen(message), "replace");
    PyObject *made = NULL;
    if (text && class)
        made = PyObject_CallFunctionObjArgs(class, Py_None, Py_None, text, NULL);
    else if (text)
        made = PyObject_CallOneArg(plain, text);
    Py_XDECREF(text);
    return made;
}

/* The message without the number, and the exception that it names; a new reference or NULL. */
static PyObject *split(const pl_error *error, char message[PL_ERROR_MESSAGE_BYTES])
{
    memcpy(message, error->message, PL_ERROR_MESSAGE_BYTES);
    char *mark = strstr(message, MARK), *end;
    if (!mark)
        return NULL;
    unsigned long number = strtoul(mark + strlen(MARK), &end, 10);
    if (strncmp(end, ": ", 2) != 0)
        return NULL;
    memmove(mark, end + 2, strlen(end + 2) + 1);
    return find((unsigned)number);
}

PyObject *failure_words(const char *text)
{
    char *words = PyMem_Malloc(strlen(text) + 1), *end;
    if (!words)
        return PyErr_NoMemory();
    memcpy(words, text, strlen(text) + 1);
    for (char *at = words; (at = strstr(at, MARK)) != NULL;) {
        (void)strtoul(at + strlen(MARK), &end, 10);
        if (strncmp(end, ": ", 2) == 0)
            memmove(at, end + 2, strlen(end + 2) + 1);
        else
            at++;
    }
    PyObject *made = PyUnicode_DecodeFSDefault(words);
    PyMem_Free(words);
    return made;
}

static void set_cause(PyObject *exception, PyObject *cause)
{
    if (cause)
        PyException_SetCause(exception, Py_NewRef(cause));
}

PyObject *failure_raise(const pl_error *error)
{
    char message[PL_ERROR_MESSAGE_BYTES];
    if (PyErr_CheckSignals() < 0)
        return NULL;
    PyObject *cause = split(error, message);
    if (cause && !PyErr_GivenExceptionMatches(cause, PyExc_Exception)) {
        PyErr_SetObject((PyObject *)Py_TYPE(cause), cause);
        Py_DECREF(cause);
        return NULL;
    }
    PyObject *class = class_of(code_as_raised(error));
    const char *text = message[0] ? message : pl_error_text(error->code);
    PyObject *made = make(class, plain_class(error->code), text);
    PyObject *code = made ? PyLong_FromLong(error->code) : NULL;
    if (code && PyObject_SetAttrString(made, "_code", code) < 0)
        PyErr_Clear(); /* it then has the code of its class */
    if (made) {
        set_cause(made, cause);
        PyErr_SetObject((PyObject *)Py_TYPE(made), made);
    }
    Py_XDECREF(code);
    Py_XDECREF(made);
    Py_XDECREF(class);
    Py_XDECREF(cause);
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
    PyObject *made = make(of_tensorflow ? class : NULL, class ? class : PyExc_TypeError, message);
    if (made)
        PyErr_SetObject((PyObject *)Py_TYPE(made), made);
    Py_XDECREF(made);
    Py_XDECREF(class);
    Py_XDECREF(base);
    return NULL;
}
