# SPDX-License-Identifier: Apache-2.0
"""The guard that is preloaded into this process, through the functions of src/guard/notebook.h.

They are called with the interpreter's lock held (PyDLL): they last microseconds, and a lock that is
released may come back only after another thread's turn of 5 ms.
"""
import ctypes
import os
from ctypes import POINTER, byref, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_uint64

INTERFACE = 1
TEXT_BYTES = 2048


class Absent(Exception):
    """There is no guard to call; the message says why, and how to fix that."""


class Refused(Exception):
    """The guard refused the request; the text says why."""


class CellRun(ctypes.Structure):
    """The result of one run of a cell: pl_cell_run in src/ledger/cell.h."""

    _fields_ = [
        ("number", c_uint32),
        ("n_runs", c_uint32),
        ("n_growing", c_uint32),
        ("spare", c_uint32),
        ("before_bytes", c_uint64),
        ("after_bytes", c_uint64),
        ("peak_bytes", c_uint64),
        ("held_bytes", c_uint64),
        ("growth_bytes", c_int64),
    ]


class Memory(ctypes.Structure):
    """The memory of the run now: pl_guard_memory."""

    _fields_ = [
        ("line_bytes", c_uint64),
        ("charged_bytes", c_uint64),
        ("peak_bytes", c_uint64),
        ("reserve_bytes", c_uint64),
        ("true_limit_bytes", c_uint64),
    ]


SIGNATURES = {
    "pl_guard_interface": (c_int, []),
    "pl_guard_cell_begin": (c_int, [c_char_p, c_uint32]),
    "pl_guard_cell_file": (c_int, [c_char_p]),
    "pl_guard_cell_end": (c_int, [POINTER(CellRun)]),
    "pl_guard_n_refusals": (c_uint64, []),
    "pl_guard_refusal": (c_int, [c_char_p, c_size_t]),
    "pl_guard_memory_read": (c_int, [POINTER(Memory)]),
    "pl_guard_set_line": (c_int, [c_char_p, POINTER(c_uint64), c_char_p, c_size_t]),
    "pl_guard_tighten_line": (c_int, [c_uint64, POINTER(c_uint64)]),
    "pl_guard_restore_line": (c_int, [c_uint64]),
}


class Guard:
    """The guard's functions, bound once. Raises Absent where there is none."""

    def __init__(self):
        library = ctypes.PyDLL(None)
        if not hasattr(library, "pl_guard_interface"):
            raise Absent(
                "this kernel does not run under Plimsoll: choose the kernel 'Python 3 (Plimsoll)' "
                "(plimsoll jupyter install makes it), or start with 'plimsoll run -- ipython'"
            )
        found = library.pl_guard_interface()
        if found != INTERFACE:
            raise Absent(
                f"the guard in this process speaks version {found} of the notebook interface, the "
                f"Python package version {INTERFACE}: install both from the same Plimsoll"
            )
        for name, (result, arguments) in SIGNATURES.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
        self._library = library
        self.begin_cell = library.pl_guard_cell_begin
        self.name_cell_file = library.pl_guard_cell_file
        self.n_refusals = library.pl_guard_n_refusals
        self.restore_line = library.pl_guard_restore_line
        self._end_cell = library.pl_guard_cell_end
        self._run = CellRun()
        self._run_pointer = byref(self._run)
        self.memory()

    def end_cell(self):
        """Ends the cell that runs. Its CellRun, good until the next call; None if none ran."""
        return self._run if self._end_cell(self._run_pointer) >= 0 else None

    def refusal(self):
        """The sentence of the last refusal in this process; empty when there was none."""
        text = ctypes.create_string_buffer(TEXT_BYTES)
        length = self._library.pl_guard_refusal(text, TEXT_BYTES)
        return text.value.decode("utf-8", "replace") if length > 0 else ""

    def memory(self):
        memory = Memory()
        code = self._library.pl_guard_memory_read(byref(memory))
        if code < 0:
            raise Absent(
                f"the guard in this process has no ledger ({_text_of(code)}): start the kernel "
                "with 'plimsoll run'"
            )
        return memory

    def set_line(self, request):
        """Moves the line to `request` ("2G", "80%"). Returns its new place."""
        line, message = c_uint64(), ctypes.create_string_buffer(TEXT_BYTES)
        code = self._library.pl_guard_set_line(request.encode(), byref(line), message, TEXT_BYTES)
        if code < 0:
            raise Refused(message.value.decode("utf-8", "replace") or _text_of(code))
        return line.value

    def tighten_line(self, more_bytes):
        """Moves the line to `more_bytes` above what is in use, if tighter. Returns the old one."""
        before = c_uint64()
        code = self._library.pl_guard_tighten_line(more_bytes, byref(before))
        if code < 0:
            raise Refused(_text_of(code))
        return before.value


def _text_of(code):
    """The meaning of a negative result; Plimsoll's own codes lie beyond those of errno."""
    return os.strerror(-code) if -code < 4096 else f"error {code}"
