# SPDX-License-Identifier: Apache-2.0
"""cells.jsonl in the run's record: which cell a file name in a traceback stands for, and its text.

One line per run of a cell, by one write(), before its code runs: whoever explains a death has it.
The text is there once per file name, so that a cell that is run again costs a short line.
"""
import json
import os

SOURCE_BYTES = 64 << 10
NAME = "cells.jsonl"


class Sources:
    def __init__(self, record):
        self._files = set()  # whose text is written
        self._short_lines = {}  # by cell and file: all but the number of a line without the text
        self._fd = -1
        if record:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            try:
                self._fd = os.open(os.path.join(record, NAME), flags, 0o600)
            except OSError:
                pass  # a record that cannot be written has no sources, and no report either

    def write(self, number, cell_id, file, source):
        if self._fd < 0:
            return
        rest = self._short_lines.get((cell_id, file))
        if rest is None:
            rest = self._short_lines[cell_id, file] = _rest_of_line({"id": cell_id, "file": file})
        if file not in self._files:
            rest = _rest_of_line({"id": cell_id, "file": file, "source": _cut(source)})
            self._files.add(file)
        os.write(self._fd, b'{"number": %d, %s' % (number, rest))

    def close(self):
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _rest_of_line(fields):
    text = json.dumps(fields, ensure_ascii=False)[1:] + "\n"
    return text.encode("utf-8", "replace")


def _cut(source):
    """The text whose lines are those of tracebacks: IPython drops the empty ones on top."""
    lines = source.splitlines(keepends=True)
    n_empty = next((i for i, line in enumerate(lines) if not line.isspace()), 0)
    text = "".join(lines[n_empty:]).encode("utf-8", "replace")
    return text[:SOURCE_BYTES].decode("utf-8", "ignore")
