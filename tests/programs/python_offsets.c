/* SPDX-License-Identifier: Apache-2.0 */
/* Prints, from CPython's own headers, the offsets that src/probe/offsets.c claims; 0 for a field
 * that the version does not have. Compiled once per installed version. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define Py_BUILD_CORE 1
#include <Python.h>
#include <frameobject.h>
#include <internal/pycore_pystate.h>
#if PY_VERSION_HEX >= 0x03090000
#include <internal/pycore_interp.h>
#include <internal/pycore_runtime.h>
#endif
#if PY_VERSION_HEX >= 0x030b0000
#include <internal/pycore_code.h>
#include <internal/pycore_frame.h>
#endif

static void show(const char *name, size_t offset)
{
    printf("%s %zu\n", name, offset);
}

/* Of a field that is a bit: its number, counted from the lowest of the word. */
static size_t lowest_bit(const void *word)
{
    unsigned value;
    memcpy(&value, word, sizeof value);
    return (size_t)__builtin_ctz(value);
}

static void show_running(void)
{
#if PY_VERSION_HEX < 0x030c0000
    show("runtime_current", offsetof(_PyRuntimeState, gilstate.tstate_current));
    show("state_status", 0);
#else
    PyThreadState state;
    memset(&state, 0, sizeof state);
    state._status.active = 1;
    show("runtime_current", 0);
    show("state_status", offsetof(PyThreadState, _status));
    if (lowest_bit(&state._status) != 4)
        show("the bit that says that a thread runs", lowest_bit(&state._status));
#endif
}

static void show_state(void)
{
    show("runtime_main", offsetof(_PyRuntimeState, interpreters.main));
    show("state_next", offsetof(PyThreadState, next));
    show("state_interp", offsetof(PyThreadState, interp));
    show("state_ident", offsetof(PyThreadState, thread_id));
#if PY_VERSION_HEX < 0x030b0000
    show("interp_threads", offsetof(PyInterpreterState, tstate_head));
    show("state_frame", offsetof(PyThreadState, frame));
    show("state_tid", 0);
#else
    show("interp_threads", offsetof(PyInterpreterState, threads.head));
    show("state_tid", offsetof(PyThreadState, native_thread_id));
#if PY_VERSION_HEX < 0x030d0000
    show("state_frame", offsetof(PyThreadState, cframe));
#else
    show("state_frame", offsetof(PyThreadState, current_frame));
#endif
#endif
}

static void show_frame(void)
{
#if PY_VERSION_HEX < 0x030b0000
    show("cframe_frame", 0);
    show("frame_code", offsetof(PyFrameObject, f_code));
    show("frame_previous", offsetof(PyFrameObject, f_back));
    show("frame_instruction", offsetof(PyFrameObject, f_lasti));
    show("frame_owner", 0);
#else
    show("frame_previous", offsetof(_PyInterpreterFrame, previous));
    show("frame_owner", offsetof(_PyInterpreterFrame, owner));
#if PY_VERSION_HEX < 0x030d0000
    show("cframe_frame", offsetof(_PyCFrame, current_frame));
    show("frame_code", offsetof(_PyInterpreterFrame, f_code));
    show("frame_instruction", offsetof(_PyInterpreterFrame, prev_instr));
#else
    show("cframe_frame", 0);
    show("frame_code", offsetof(_PyInterpreterFrame, f_executable));
    show("frame_instruction", offsetof(_PyInterpreterFrame, instr_ptr));
#endif
#endif
}

static void show_copies(void)
{
#if PY_VERSION_HEX >= 0x030e0000 && defined(Py_GIL_DISABLED)
    show("frame_bytecode", offsetof(_PyInterpreterFrame, tlbc_index));
    show("code_bytecodes", offsetof(PyCodeObject, co_tlbc));
#else
    show("frame_bytecode", 0);
    show("code_bytecodes", 0);
#endif
}

static void show_text(void)
{
    PyASCIIObject text;
    memset(&text, 0, sizeof text);
    text.state.kind = 1;
    show("text_length", offsetof(PyASCIIObject, length));
    show("text_state", offsetof(PyASCIIObject, state));
    show("text_kind_bit", lowest_bit(&text.state));
    show("text_ascii_bytes", sizeof(PyASCIIObject));
    show("text_compact_bytes", sizeof(PyCompactUnicodeObject));
}

static void show_code(void)
{
    show("code_file", offsetof(PyCodeObject, co_filename));
    show("code_first_line", offsetof(PyCodeObject, co_firstlineno));
#if PY_VERSION_HEX < 0x030a0000
    show("code_lines", offsetof(PyCodeObject, co_lnotab));
#else
    show("code_lines", offsetof(PyCodeObject, co_linetable));
#endif
#if PY_VERSION_HEX < 0x030b0000
    show("code_function", offsetof(PyCodeObject, co_name));
    show("code_first_traceable", 0);
    show("code_instructions", 0);
#else
    show("code_function", offsetof(PyCodeObject, co_qualname));
    show("code_first_traceable", offsetof(PyCodeObject, _co_firsttraceable));
    show("code_instructions", offsetof(PyCodeObject, co_code_adaptive));
#endif
}

int main(void)
{
    show_running();
    show_state();
    show_frame();
    show_code();
    show_copies();
    show("object_type", offsetof(PyObject, ob_type));
    show("type_name", offsetof(PyTypeObject, tp_name));
    show("bytes_size", offsetof(PyVarObject, ob_size));
    show("bytes_data", offsetof(PyBytesObject, ob_sval));
    show_text();
    return 0;
}
