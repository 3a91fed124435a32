/* SPDX-License-Identifier: Apache-2.0 */
/* Exceptions in Python code that grows by small objects.
 *
 * Nothing of Python is linked: the functions are looked up once, at the start. From inside malloc()
 * only two calls are made into the interpreter, and neither allocates: Py_AddPendingCall(), for the
 * main thread, and PyThreadState_SetAsyncExc(), for another thread that holds the GIL. The sentence
 * is put together later, when the exception is raised or printed, where allocating is safe. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/size.h"
#include "guard/guard.h"
#include "sys/proc.h"

typedef struct python_object python_object;

typedef struct python_method {
    const char *name;
    python_object *(*call)(python_object *self, python_object *arguments);
    int flags;
    const char *documentation;
} python_method;

enum { METHOD_ARGUMENTS = 1 }; /* METH_VARARGS */

static struct {
    int (*is_initialized)(void);
    int (*add_pending_call)(int (*call)(void *), void *argument);
    int (*set_async_exception)(unsigned long ident, python_object *exception);
    unsigned long (*thread_ident)(void);
    void *(*this_thread_state)(void);
    int (*holds_gil)(void);
    void (*set_error)(python_object *exception, const char *text);
    ssize_t (*collect)(void);
    python_object *(*new_exception)(const char *name, python_object *base, python_object *dict);
    python_object *(*new_function)(python_method *method, python_object *self, python_object *name);
    python_object *(*new_dict)(void);
    int (*set_item)(python_object *dict, const char *key, python_object *value);
    python_object *(*new_text)(const char *text, ssize_t n, const char *errors);
    python_object *(*build)(const char *format, ...);
    void (*clear_error)(void);
    void (*release)(python_object *object);
    python_object **memory_error;
    void *runtime;
    const char *(*version_text)(void);
} api;

static bool found;
static uint32_t version;
static _Atomic(python_object *) exception_class;
static _Atomic bool preparing, raising;

static bool find_all(void)
{
    static const struct {
        const char *name;
        void *place;
    } symbols[] = {
        {"Py_IsInitialized", &api.is_initialized},
        {"Py_AddPendingCall", &api.add_pending_call},
        {"PyThreadState_SetAsyncExc", &api.set_async_exception},
        {"PyThread_get_thread_ident", &api.thread_ident},
        {"PyGILState_GetThisThreadState", &api.this_thread_state},
        {"PyGILState_Check", &api.holds_gil},
        {"PyErr_SetString", &api.set_error},
        {"PyGC_Collect", &api.collect},
        {"PyErr_NewException", &api.new_exception},
        {"PyCFunction_NewEx", &api.new_function},
        {"PyDict_New", &api.new_dict},
        {"PyDict_SetItemString", &api.set_item},
        {"PyUnicode_DecodeUTF8", &api.new_text},
        {"Py_BuildValue", &api.build},
        {"PyErr_Clear", &api.clear_error},
        {"Py_DecRef", &api.release},
        {"PyExc_MemoryError", &api.memory_error},
        {"_PyRuntime", &api.runtime},
        {"Py_GetVersion", &api.version_text},
    };
    for (size_t i = 0; i < PL_COUNT_OF(symbols); i++) {
        void *symbol = dlsym(RTLD_DEFAULT, symbols[i].name);
        if (!symbol)
            return false;
        memcpy(symbols[i].place, &symbol, sizeof symbol);
    }
    return true;
}

/* "3.11.2 (main, ...)" -> 0x030b02f0; 0 for "3.13.0rc1 ...", whose layouts are nobody's promise. */
static uint32_t parse_version(const char *text)
{
    unsigned major = 0, minor = 0, micro = 0;
    char next = '\0';
    int n = sscanf(text, "%u.%u.%u%c", &major, &minor, &micro, &next);
    if (n < 3 || next == 'a' || next == 'b' || next == 'r')
        return 0;
    return major << 24 | minor << 16 | micro << 8 | 0xf0;
}

void pl_interpreter_find(void)
{
    found = find_all();
    if (found)
        version = parse_version(api.version_text());
}

bool pl_interpreter_present(void)
{
    return found && api.is_initialized();
}

uint32_t pl_interpreter_version(void)
{
    return version;
}

uint64_t pl_interpreter_runtime(void)
{
    return found ? (uint64_t)(uintptr_t)api.runtime : 0;
}

void *pl_interpreter_thread(void)
{
    return pl_interpreter_present() ? api.this_thread_state() : NULL;
}

/* What was so when the exception was raised: kept as it was, put into words when it is read. */
enum { HOLDERS = 3 };

typedef struct moment {
    uint64_t charged_bytes;
    uint64_t limit_bytes;
    struct {
        pl_python_frame place;
        int64_t bytes;
    } holders[HOLDERS]; /* largest first; bytes 0: none */
} moment;

static moment last_raised; /* of the last one in any thread but the main one */

static void note_holder(moment *now, const pl_site *site, int64_t bytes)
{
    for (int i = 0; i < HOLDERS; i++) {
        if (bytes <= now->holders[i].bytes)
            continue;
        memmove(&now->holders[i + 1], &now->holders[i],
                (size_t)(HOLDERS - 1 - i) * sizeof now->holders[0]);
        now->holders[i].place = site->python;
        now->holders[i].bytes = bytes;
        return;
    }
}

static void take_moment(moment *now)
{
    pl_ledger *ledger = pl_guard_state.ledger;
    memset(now, 0, sizeof *now);
    now->charged_bytes = pl_ledger_charged_bytes(ledger);
    now->limit_bytes = pl_ledger_limit_bytes(ledger);
    for (int i = 0; i < PL_SITES; i++) {
        const pl_site *site = &ledger->sites[i];
        if (atomic_load(&site->owner_pid) != 0 && site->python.line)
            note_holder(now, site, atomic_load(&site->held_bytes));
    }
}

/* What the user reads: how much, of how much, who holds it, what to do. */
static void write_sentence(const moment *then, char *text, size_t size)
{
    int n = snprintf(text, size, "%s of the %s budget are in use (plimsoll)",
                     PL_SIZE(then->charged_bytes), PL_SIZE(then->limit_bytes));
    for (int i = 0; i < HOLDERS && then->holders[i].bytes > 0 && (size_t)n < size; i++) {
        const pl_python_frame *place = &then->holders[i].place;
        const char *file = strrchr(place->file, '/');
        n += snprintf(text + n, size - (size_t)n, "%s%s:%u in %s() %s",
                      i ? ", " : "; largest holders: ", file ? file + 1 : place->file, place->line,
                      place->function, PL_SIZE((uint64_t)then->holders[i].bytes));
    }
    if ((size_t)n < size)
        snprintf(text + n, size - (size_t)n,
                 "; free or batch some of it, or allow more with --budget");
}

static python_object *sentence_object(void)
{
    char text[1024];
    write_sentence(&last_raised, text, sizeof text);
    return api.new_text(text, (ssize_t)strlen(text), "replace");
}

static python_object *exception_text(python_object *self, python_object *arguments)
{
    (void)self;
    (void)arguments;
    return sentence_object();
}

/* Pickles as a plain MemoryError, so that it can travel from a worker to its parent. */
static python_object *exception_reduce(python_object *self, python_object *arguments)
{
    (void)self;
    (void)arguments;
    return api.build("(O(N))", *api.memory_error, sentence_object());
}

/* A MemoryError that knows its sentence: an asynchronous exception can only be given as a class. */
static python_object *make_class(void)
{
    static python_method methods[] = {
        {"__str__", exception_text, METHOD_ARGUMENTS, NULL},
        {"__reduce__", exception_reduce, METHOD_ARGUMENTS, NULL},
    };
    python_object *dict = api.new_dict();
    for (size_t i = 0; dict && i < PL_COUNT_OF(methods); i++) {
        python_object *function = api.new_function(&methods[i], NULL, NULL);
        if (function) {
            api.set_item(dict, methods[i].name, function);
            api.release(function);
        }
    }
    python_object *made =
        dict ? api.new_exception("builtins.MemoryError", *api.memory_error, dict) : NULL;
    if (dict)
        api.release(dict);
    if (!made)
        api.clear_error();
    return made;
}

static int prepare_now(void *argument)
{
    (void)argument;
    if (!atomic_load(&exception_class))
        atomic_store(&exception_class, make_class());
    return 0;
}

void pl_interpreter_prepare(void)
{
    if (atomic_load_explicit(&preparing, memory_order_relaxed) || !pl_interpreter_thread())
        return;
    if (!atomic_exchange(&preparing, true) && api.add_pending_call(prepare_now, NULL) != 0)
        atomic_store(&preparing, false); /* the queue was full: next time */
}

static bool has_children(void)
{
    pid_t child;
    return pl_proc_children(getpid(), &child, 1) != 0;
}

/* Runs in the main thread, between two instructions of its Python code. Cyclic garbage goes first,
 * unless there are forked children: a collection writes to every object and copies their pages. */
static int raise_now(void *argument)
{
    (void)argument;
    atomic_store(&raising, false);
    pl_ledger *ledger = pl_guard_state.ledger;
    if (!has_children()) {
        api.collect();
        pl_line_look();
    }
    if (pl_ledger_headroom_bytes(ledger) > 0)
        return 0;
    moment now;
    char text[1024];
    take_moment(&now);
    write_sentence(&now, text, sizeof text);
    api.set_error(*api.memory_error, text);
    return -1;
}

static bool raise_in_main_thread(void)
{
    if (atomic_exchange(&raising, true))
        return false;
    if (api.add_pending_call(raise_now, NULL) == 0)
        return true;
    atomic_store(&raising, false);
    return false;
}

static bool raise_in_this_thread(void)
{
    if (!api.holds_gil())
        return false;
    python_object *exception = atomic_load(&exception_class);
    if (!exception)
        exception = *api.memory_error;
    take_moment(&last_raised);
    return api.set_async_exception(api.thread_ident(), exception) == 1;
}

bool pl_interpreter_raise(bool may_lock)
{
    if (!pl_interpreter_thread())
        return false;
    if (syscall(SYS_gettid) == getpid())
        return raise_in_main_thread();
    return may_lock && raise_in_this_thread();
}
