/* SPDX-License-Identifier: Apache-2.0 */
/* Where CPython keeps what the probe reads: byte offsets into its structures, per version.
 * LP64 on x86-64, release builds with a GIL. docs/python-stacks.md says how each was checked. */
#ifndef PL_PROBE_OFFSETS_H
#define PL_PROBE_OFFSETS_H

#include "probe/python.h"

/* The same in every supported version. */
enum {
    PL_PYTHON_OBJECT_TYPE = 8, /* PyObject.ob_type */
    PL_PYTHON_TYPE_NAME = 24,  /* PyTypeObject.tp_name */
    PL_PYTHON_BYTES_SIZE = 16, /* PyVarObject.ob_size */
    PL_PYTHON_BYTES_DATA = 32, /* PyBytesObject.ob_sval */
    PL_PYTHON_TEXT_LENGTH = 16,
    PL_PYTHON_TEXT_STATE = 32, /* PyASCIIObject.state */
    PL_PYTHON_TEXT_BYTES = 40, /* smallest sizeof(PyASCIIObject) */
};

/* Room for one view of each structure; every offset into it plus the field ends before. */
enum {
    PL_PYTHON_STATE_BYTES = 184,
    PL_PYTHON_FRAME_BYTES_MAX = 128,
    PL_PYTHON_CODE_BYTES_MAX = 256,
};

enum pl_python_lines {
    PL_PYTHON_LINES_LNOTAB,    /* 3.8, 3.9: co_lnotab */
    PL_PYTHON_LINES_RANGES,    /* 3.10: PEP 626 */
    PL_PYTHON_LINES_LOCATIONS, /* 3.11 on: PEP 657 */
};

typedef struct pl_python_offsets {
    uint32_t runtime_main;    /* _PyRuntime.interpreters.main */
    uint32_t runtime_current; /* .gilstate.tstate_current; 0: the GIL is the interpreter's */
    uint32_t interp_threads;  /* PyInterpreterState: its list of thread states */
    uint32_t interp_gil;      /* pointer to its _gil_runtime_state */
    uint32_t gil_holder;
    uint32_t gil_locked;

    uint32_t state_next; /* PyThreadState */
    uint32_t state_interp;
    uint32_t state_frame; /* its innermost frame, or the _PyCFrame that points to it */
    uint32_t state_ident;
    uint32_t state_tid; /* 0: not kept */
    bool has_cframe;
    uint32_t cframe_frame;

    bool has_frame_objects; /* PyFrameObject chains of old, not _PyInterpreterFrame */
    uint32_t frame_code;
    uint32_t frame_previous;
    uint32_t frame_instruction; /* address of the instruction; in frame objects f_lasti, an int */
    uint32_t frame_owner;       /* not in frame objects */
    uint32_t frame_bytes;       /* how much of it to view */
    uint32_t lasti_unit_bytes;  /* of f_lasti: 1 byte, or one code unit of 2 */

    uint32_t code_file; /* PyCodeObject */
    uint32_t code_function;
    uint32_t code_lines;
    uint32_t code_first_line;
    uint32_t code_first_traceable; /* 3.11 on */
    uint32_t code_instructions;    /* 3.11 on: the bytecode itself */
    uint32_t code_bytes;           /* how much of it to view */
    enum pl_python_lines lines;

    uint32_t text_ascii_bytes;   /* sizeof(PyASCIIObject): characters follow */
    uint32_t text_compact_bytes; /* sizeof(PyCompactUnicodeObject) */
} pl_python_offsets;

/* The offsets for python->version, or NULL. 3.13 describes itself in memory: those are read into
 * `scratch`. */
const pl_python_offsets *pl_python_offsets_of(const pl_python *python, pl_python_offsets *scratch);

#endif
