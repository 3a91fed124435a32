# SPDX-License-Identifier: Apache-2.0
"""Writes cells.jsonl in the run's record: the cell of each file name in tracebacks, and its text.

There is one line per run of a cell, written before its code runs, so that a death can be explained.
The text is there once per file name, so that a cell that is run again costs a short line.

The file is mapped, and its space allocated before: a line is a copy in memory, which outlives the
process as a write() does, and never waits for the disk (a write() was seen to take 0.6 ms where
others were busy there). The unused part at the end is zero bytes, which
are cut off when all goes well.
"""
import atexit
import json
import mmap
import os

SOURCE_BYTES = 64 << 10
CHUNK_BYTES = 256 << 10
NAME = "cells.jsonl"


class Sources:
    def __init__(self, record):
        self._files = set()  # whose text is written
        self._short_lines = {}  # by cell and file: all but the number of a line without the text
        self._fd, self._map, self._used, self._size = -1, None, 0, 0
        self._pid = os.getpid()
        if record:
            try:
                flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
                self._fd = os.open(os.path.join(record, NAME), flags, 0o600)
                self._used = os.fstat(self._fd).st_size  # 0, unless loaded for a second time
                self._grow(1)
                atexit.register(self.close)
            except (OSError, ValueError):
                self.close()  # a record that cannot be written has no sources, and no report either

    def write(self, number, cell_id, file, source):
        if self._map is None:
            return
        rest = self._short_lines.get((cell_id, file))
        if rest is None:
            rest = self._short_lines[cell_id, file] = _rest_of_line({"id": cell_id, "file": file})
        if file not in self._files:
            rest = _rest_of_line({"id": cell_id, "file": file, "source": _cut(source)})
            self._files.add(file)
        self._append(b'{"number": %d, %s' % (number, rest))

    def _append(self, line):
        end = self._used + len(line)
        if end > self._size:
            self._grow(len(line))
        self._map[self._used : end] = line
        self._used = end

    def _grow(self, n_bytes):
        """Room for `n_bytes` more. Space that is not there must be an error here, not SIGBUS later."""
        size = self._used + n_bytes + CHUNK_BYTES
        os.posix_fallocate(self._fd, 0, size)
        if self._map is None:
            self._map = mmap.mmap(self._fd, size)
        else:
            self._map.resize(size)
        self._size = size

    def close(self):
        atexit.unregister(self.close)
        if self._map is not None:
            self._map.close()
            if os.getpid() == self._pid:  # a forked child may end by sys.exit()
                os.ftruncate(self._fd, self._used)
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self._map = -1, None


def beginning_of_id(text):
    """How a line goes on behind its number, of a cell whose id begins with `text`."""
    return _rest_of_line({"id": text}).rpartition(b'"')[0]


def _rest_of_line(fields):
    text = json.dumps(fields, ensure_ascii=False)[1:] + "\n"
    return text.encode("utf-8", "replace")


def _cut(source):
    """The text whose lines are those of tracebacks: IPython drops the empty ones on top."""
    lines = source.splitlines(keepends=True)
    n_empty = next((i for i, line in enumerate(lines) if not line.isspace()), 0)
    text = "".join(lines[n_empty:]).encode("utf-8", "replace")
    return text[:SOURCE_BYTES].decode("utf-8", "ignore")
