/* SPDX-License-Identifier: Apache-2.0 */
/* Raises exceptions in Python code that grows by small objects.
 *
 * The guard does not link to Python: it looks up the functions once, at the start. From inside
 * malloc() it makes only two calls into the interpreter, and neither allocates:
 * Py_AddPendingCall(), for the main thread, and PyThreadState_SetAsyncExc(), for another thread
 * that holds the GIL while the lock of the interpreter's list of threads is free.
 *
 * The MemoryError that CPython makes of a refused request has no text. So, from the first refusal
 * on, the guard replaces MemoryError's own __str__: an exception without arguments then describes
 * the last refusal. The guard keeps the refusal as numbers, and writes the text when it is asked
 * for, where allocating is safe. */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/size.h"
#include "guard/guard.h"
#include "ledger/cell.h"
#include "ledger/refusal.h"
#include "probe/frame_text.h"
#include "probe/python.h"
#include "sys/proc.h"

typedef struct python_object python_object;

typedef python_object *(*text_function)(python_object *self);

/* PyTypeObject.tp_name and .tp_str, the same in every Python 3, except that a free-threaded build
 * has a longer header before them. */
enum { TYPE_NAME = 24, TYPE_TEXT = 136, FREE_THREADED_MORE = 16 };

static struct {
    int (*is_initialized)(void);
    int (*add_pending_call)(int (*call)(void *), void *argument);
    int (*set_async_exception)(unsigned long ident, python_object *exception);
    unsigned long (*thread_ident)(void);
    void *(*this_thread_state)(void);
    void (*set_error)(python_object *exception, const char *text);
    ssize_t (*collect)(void);
    python_object *(*new_text)(const char *text, ssize_t n, const char *errors);
    python_object *(*get_attribute)(python_object *object, const char *name);
    ssize_t (*length)(python_object *object);
    void (*clear_error)(void);
    void (*release)(python_object *object);
    python_object **memory_error;
    void *runtime;
    const char *(*version_text)(void);
} api;

static bool found;
static uint32_t version;
static bool free_threaded;
static _Atomic bool raising;
static _Atomic(text_function) original_text; /* MemoryError's own __str__, once it is replaced */
static uintptr_t code_low, code_high;        /* where the interpreter's own code lies */

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
        {"PyErr_SetString", &api.set_error},
        {"PyGC_Collect", &api.collect},
        {"PyUnicode_DecodeUTF8", &api.new_text},
        {"PyObject_GetAttrString", &api.get_attribute},
        {"PyObject_Size", &api.length},
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

/* "3.11.2 (main, ...)" -> 0x030b02f0; 0 for "3.13.0rc1 ...", whose layouts may still change. */
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
    if (!found)
        return;
    version = parse_version(api.version_text());
    pl_python python = {&pl_reader_own, version, (uint64_t)(uintptr_t)api.runtime};
    free_threaded = pl_python_is_free_threaded(&python);
    struct dl_find_object code;
    if (_dl_find_object((void *)api.add_pending_call, &code) == 0) {
        code_low = (uintptr_t)code.dlfo_map_start;
        code_high = (uintptr_t)code.dlfo_map_end;
    }
}

bool pl_interpreter_calls(const void *return_address)
{
    return (uintptr_t)return_address >= code_low && (uintptr_t)return_address < code_high;
}

bool pl_interpreter_is_free_threaded(void)
{
    return free_threaded;
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

/* The last refusal, kept as numbers until the text of the exception is read: its event in the
 * ledger, and more. See ledger/refusal.h. */
enum { HOLDERS = 3 };

typedef struct refusal_snapshot {
    pl_event event;       /* kind 0: nothing has been refused yet */
    bool line_is_cells;   /* a cell's own limit, not the budget */
    bool line_is_cgroups; /* a cgroup leaves less than the budget */
    struct {
        pl_python_frame place;
        uint32_t cell_number; /* of the notebook cell that ran; 0: none */
        uint64_t bytes;
    } holders[HOLDERS]; /* largest first; bytes 0: none */
} refusal_snapshot;

static refusal_snapshot last_refusal;

static uint32_t cell_number_of(const pl_site *site)
{
    uint32_t place = pl_site_cell(pl_guard_state.ledger, site);
    return place >= 1 && place <= PL_CELLS
               ? atomic_load(&pl_guard_state.ledger->cells[place - 1].number)
               : 0;
}

static void note_holder(refusal_snapshot *now, const pl_site *site, uint64_t bytes)
{
    for (int i = 0; i < HOLDERS; i++) {
        if (bytes <= now->holders[i].bytes)
            continue;
        memmove(&now->holders[i + 1], &now->holders[i],
                (size_t)(HOLDERS - 1 - i) * sizeof now->holders[0]);
        now->holders[i].place = site->python;
        now->holders[i].cell_number = cell_number_of(site);
        now->holders[i].bytes = bytes;
        return;
    }
}

static void take_snapshot(refusal_snapshot *now, const pl_event *event)
{
    pl_ledger *ledger = pl_guard_state.ledger;
    memset(now, 0, sizeof *now);
    memcpy(&now->event, event, sizeof now->event);
    now->line_is_cells = atomic_load(&ledger->sum.cell_limit_bytes) != 0;
    now->line_is_cgroups = event->limit_bytes < pl_ledger_wanted_bytes(ledger);
    pl_unclaimed unclaimed = {0};
    uint64_t sum = 0;
    for (int i = 0; i < PL_SITES; i++) {
        const pl_site *site = &ledger->sites[i];
        uint64_t bytes = pl_site_held_bytes(ledger, site, &unclaimed);
        sum = pl_add_sat_u64(sum, bytes);
        if (atomic_load(&site->owner_pid) != 0 && site->python.line)
            note_holder(now, site, bytes);
    }
    /* Other threads allocate meanwhile: the sum of the holders is limited to the bytes in use. */
    uint64_t charged = event->charged_bytes;
    for (int i = 0; i < HOLDERS && sum > charged; i++)
        now->holders[i].bytes =
            (uint64_t)((double)now->holders[i].bytes * ((double)charged / (double)sum));
}

enum { PLACE_BYTES = 256, SENTENCE_BYTES = 1280 };

/* Writes what pl_frame_text() does, without folders, and " run by In [5]" where another cell called
 * it. */
static void write_place(const pl_python_frame *place, uint32_t run_by, char text[PLACE_BYTES])
{
    uint32_t cell = pl_cell_number_of(pl_guard_state.ledger, place->file);
    const char *slash = strrchr(place->file, '/');
    const char *file = slash && place->line != PL_LINE_OF_FILE ? slash + 1 : place->file;
    size_t n = pl_frame_text(file, place->line, place->function, cell, text, PLACE_BYTES);
    if (run_by && run_by != cell && place->line != PL_LINE_OF_FILE)
        snprintf(text + n, PLACE_BYTES - n, " run by In [%u]", run_by);
}

static_assert(PLACE_BYTES > sizeof(pl_python_frame) + 48, "a place always fits");

/* Freeing memory does not help a request that is larger than the line, nor does a larger budget
 * where a cgroup sets the line. */
static void write_what_to_do(const refusal_snapshot *then, char *text, size_t size)
{
    const pl_ledger *ledger = pl_guard_state.ledger;
    uint64_t true_limit = ledger->header.true_limit_bytes;
    bool in_notebook = atomic_load(&ledger->sum.kernel_pid) == (uint32_t)pl_guard_state.pid;
    const char *option = pl_line_option(then->line_is_cells, in_notebook);
    char more[64];
    if (then->line_is_cgroups && !then->line_is_cells)
        snprintf(more, sizeof more, "give its memory cgroup more");
    else
        snprintf(more, sizeof more, "allow more with %s", option);
    switch (
        pl_refusal_fit(pl_refusal_asked_bytes(&then->event), then->event.limit_bytes, true_limit)) {
    case PL_FIT_WHEN_FREED:
        snprintf(text, size, "free or batch some of it, or %s", more);
        break;
    case PL_FIT_HIGHER_LINE:
        snprintf(text, size, "it can never fit: ask for less at once, or in slices, or %s", more);
        break;
    case PL_FIT_NEVER:
        snprintf(text, size,
                 "it can never fit, not even in the %s that the system would give: ask for less at "
                 "once, or in slices",
                 PL_SIZE(true_limit));
        break;
    }
}

/* Writes what the user reads: how much was asked for, how much is in use, what holds it, what to
 * do. */
static void write_sentence(const refusal_snapshot *then, char text[SENTENCE_BYTES])
{
    char what_to_do[160];
    uint64_t asked_bytes = pl_refusal_asked_bytes(&then->event);
    int n = asked_bytes ? snprintf(text, SENTENCE_BYTES, "refused %s: ", PL_SIZE(asked_bytes)) : 0;
    n += snprintf(text + n, (size_t)(SENTENCE_BYTES - n), "%s of the %s budget are in use",
                  PL_SIZE(then->event.charged_bytes), PL_SIZE(then->event.limit_bytes));
    for (int i = 0; i < HOLDERS && then->holders[i].bytes > 0; i++) {
        char place[PLACE_BYTES];
        write_place(&then->holders[i].place, then->holders[i].cell_number, place);
        n += snprintf(text + n, (size_t)(SENTENCE_BYTES - n), "%s%s %s",
                      i ? ", " : "; largest holders: ", place, PL_SIZE(then->holders[i].bytes));
    }
    write_what_to_do(then, what_to_do, sizeof what_to_do);
    snprintf(text + n, (size_t)(SENTENCE_BYTES - n), "; %s", what_to_do);
}

static_assert(SENTENCE_BYTES > 240 + HOLDERS * (PLACE_BYTES + 32), "a sentence always fits");

/* Writes the text of an exception, which must say that it comes from plimsoll. */
static void write_error(const refusal_snapshot *then, char text[SENTENCE_BYTES])
{
    static const char who[] = "plimsoll: ";
    char sentence[SENTENCE_BYTES];
    write_sentence(then, sentence);
    snprintf(text, SENTENCE_BYTES, "%s%.*s", who, SENTENCE_BYTES - (int)sizeof who, sentence);
}

int pl_interpreter_refusal(char *text, size_t size)
{
    char sentence[SENTENCE_BYTES] = "";
    if (last_refusal.event.kind != PL_EVENT_NONE)
        write_sentence(&last_refusal, sentence);
    return snprintf(text, size, "%s", sentence);
}

static bool has_no_arguments(python_object *self)
{
    python_object *arguments = api.get_attribute(self, "args");
    ssize_t n = arguments ? api.length(arguments) : -1;
    if (arguments)
        api.release(arguments);
    if (n < 0)
        api.clear_error();
    return n == 0;
}

/* A later notebook cell may raise a MemoryError itself, which this refusal does not explain. */
static bool is_of_another_cell(const refusal_snapshot *then)
{
    uint32_t running = atomic_load(&pl_guard_state.ledger->sum.cell_number);
    return running != 0 && running != then->event.cell_number;
}

static python_object *text_of_error(python_object *self)
{
    if (!has_no_arguments(self) || !pl_guard_state.ledger || is_of_another_cell(&last_refusal))
        return atomic_load(&original_text)(self);
    char text[SENTENCE_BYTES];
    write_error(&last_refusal, text);
    return api.new_text(text, (ssize_t)strlen(text), "replace");
}

/* A static type's slot is a plain pointer in writable memory; its subclasses have copies. */
static void stand_in_for_text(void)
{
    char *type = (char *)*api.memory_error + (free_threaded ? FREE_THREADED_MORE : 0);
    const char *name;
    memcpy(&name, type + TYPE_NAME, sizeof name);
    if (atomic_load(&original_text) || strcmp(name, "MemoryError") != 0)
        return;
    _Atomic(text_function) *slot = (_Atomic(text_function) *)(type + TYPE_TEXT);
    text_function before = atomic_load(slot);
    text_function none = NULL;
    if (before && atomic_compare_exchange_strong(&original_text, &none, before))
        atomic_store(slot, text_of_error);
}

void pl_interpreter_refused(const pl_event *event)
{
    if (!pl_interpreter_present())
        return;
    take_snapshot(&last_refusal, event);
    stand_in_for_text();
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
    if (!pl_guard_state.ledger)
        return 0; /* forked since, and could not join */
    if (pl_kernel_is_at_work(0) || pl_handling_is_under_way()) {
        atomic_store(&pl_guard_state.raised_at, 0); /* the cell may have ended: try the next */
        return 0;
    }
    if (!has_children()) {
        api.collect();
        pl_line_look();
    }
    if (pl_ledger_headroom_bytes(pl_guard_state.ledger) > 0 || !pl_callsite_catches(1, true))
        return 0; /* there is room again, or no exception may be raised here */
    char text[SENTENCE_BYTES];
    pl_line_raised();
    write_error(&last_refusal, text);
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

/* The exception may appear in this function or in those that called it. */
static bool raise_in_this_thread(void)
{
    enum { CALLERS = 4 };
    if (!pl_callsite_may_interrupt() || !pl_callsite_catches(CALLERS, false) ||
        api.set_async_exception(api.thread_ident(), *api.memory_error) != 1)
        return false;
    pl_thread.is_raising = true;
    pl_line_raised();
    return true;
}

void pl_interpreter_take_back(void)
{
    if (pl_thread.is_raising && pl_callsite_may_interrupt())
        (void)api.set_async_exception(api.thread_ident(), NULL);
    pl_thread.is_raising = false;
}

/* Never in a free-threaded build: both calls may wait for a lock there, and while a thread waits,
 * its objects may be collected, although it is inside the allocator that they come from. */
bool pl_interpreter_raise(void)
{
    if (free_threaded || !pl_interpreter_thread())
        return false;
    if (syscall(SYS_gettid) == getpid())
        return raise_in_main_thread();
    return raise_in_this_thread();
}
