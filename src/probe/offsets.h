/* SPDX-License-Identifier: Apache-2.0 */
/* The byte offsets of the fields that the probe reads from CPython's structures. LP64 on x86-64 and
 * arm64, release builds. From 3.13 on CPython describes them itself, in memory; for 3.8 to 3.12
 * there is a table. docs/python-stacks.md says how each was checked. */
#ifndef PL_PROBE_OFFSETS_H
#define PL_PROBE_OFFSETS_H

#include "probe/python.h"

/* Room for one view of each structure. Every field that is read ends within it. */
enum {
    PL_PYTHON_STATE_BYTES = 256,
    PL_PYTHON_FRAME_BYTES_MAX = 128,
    PL_PYTHON_CODE_BYTES_MAX = 256,
    PL_PYTHON_HEAD_BYTES_MAX = 64, /* of a str or bytes, up to its characters */
};

enum pl_python_lines {
    PL_PYTHON_LINES_LNOTAB,    /* 3.8, 3.9: co_lnotab */
    PL_PYTHON_LINES_RANGES,    /* 3.10: PEP 626 */
    PL_PYTHON_LINES_LOCATIONS, /* 3.11 on: PEP 657 */
};

typedef struct pl_python_offsets {
    bool is_free_threaded;

    uint32_t runtime_main;    /* _PyRuntime.interpreters.main */
    uint32_t runtime_current; /* .gilstate.tstate_current: runs now; 0: see state_status */
    uint32_t interp_threads;  /* PyInterpreterState: its list of thread states */

    uint32_t state_next; /* PyThreadState */
    uint32_t state_interp;
    uint32_t state_frame; /* its innermost frame, or the _PyCFrame that points to it */
    uint32_t state_ident;
    uint32_t state_tid;    /* 0: not kept */
    uint32_t state_status; /* 3.12 on: bits, one of which says that the thread runs Python */
    bool has_cframe;
    uint32_t cframe_frame;

    bool has_frame_objects; /* old PyFrameObject chains, not _PyInterpreterFrame */
    uint32_t frame_code;
    uint32_t frame_previous;
    uint32_t frame_instruction; /* address of the instruction; in frame objects f_lasti, an int */
    uint32_t frame_owner;       /* not in frame objects */
    uint32_t frame_bytecode;    /* which of the code's copies runs; 0: there are no copies */
    uint32_t frame_bytes;       /* how much of it to view */
    uint32_t lasti_unit_bytes;  /* of f_lasti: 1 byte, or one code unit of 2 */

    uint32_t code_file; /* PyCodeObject */
    uint32_t code_function;
    uint32_t code_lines;
    uint32_t code_first_line;
    uint32_t code_first_traceable; /* 3.11 on */
    uint32_t code_instructions;    /* 3.11 on: the bytecode itself */
    uint32_t code_bytecodes;       /* array of its copies, one per thread; 0: there are none */
    uint32_t code_bytes;           /* how much of it to view */
    enum pl_python_lines lines;

    uint32_t object_type; /* PyObject.ob_type */
    uint32_t type_name;   /* PyTypeObject.tp_name */
    uint32_t bytes_size;  /* PyBytesObject.ob_size */
    uint32_t bytes_data;
    uint32_t text_length;
    uint32_t text_state;         /* PyASCIIObject.state */
    uint32_t text_kind_bit;      /* the lowest bit of kind:3, compact:1, ascii:1 in the state */
    uint32_t text_ascii_bytes;   /* sizeof(PyASCIIObject): characters follow */
    uint32_t text_compact_bytes; /* sizeof(PyCompactUnicodeObject) */
} pl_python_offsets;

/* Returns the offsets for python->version, or NULL. Offsets read from memory go to `scratch`. */
const pl_python_offsets *pl_python_offsets_of(const pl_python *python, pl_python_offsets *scratch);

#endif
