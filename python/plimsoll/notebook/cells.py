# SPDX-License-Identifier: Apache-2.0
"""Records in the ledger when a cell begins, the file name of its source, and when it ends.

The two hooks run around every cell, so everything that they use is bound beforehand, and nothing in
them starts a program. Code that is not in the history (silent cells, those that magics run inside a
cell) is not a cell to the user: its work counts for the cell around it.
"""
from .environment import in_kernel

_64_BITS = (1 << 64) - 1


class Cells:
    def __init__(self, shell, guard, sources, leaks, refusals, limit, before_first):
        self._shell, self._guard = shell, guard
        self._sources, self._leaks, self._refusals = sources, leaks, refusals
        self._limit = limit
        # Shows what ended the kernel before; True once there is nothing more to show.
        self._before_first = before_first
        self._running = None  # the id of the cell that runs
        self._number = 0
        self._file = None  # the file name of its source in tracebacks, once it is compiled
        self._compile = shell.compile
        self._n_ahead = _n_counted_before(shell)

    def load(self):
        self._shell.events.register("pre_run_cell", self._begin)
        self._shell.events.register("post_run_cell", self._end)
        self._cache = self._compile.cache
        self._compile.cache = self._cache_and_report

    def unload(self):
        self._shell.events.unregister("pre_run_cell", self._begin)
        self._shell.events.unregister("post_run_cell", self._end)
        if self._compile.__dict__.get("cache") == self._cache_and_report:
            del self._compile.cache
        self._end()  # the cell that unloads
        self._sources.close()

    def _begin(self, info):
        if not info.store_history or not in_kernel():
            return
        try:
            cell_id, number = _id_of(info), self._shell.execution_count - self._n_ahead
            if self._before_first is not None and self._before_first(cell_id):
                self._before_first = None
            self._limit.end()  # of a cell before, if an interrupt kept it from ending there
            self._refusals.begin_cell()
            # Fails in a shell inside a kernel: the cells of a run belong to the first one.
            if self._guard.begin_cell(cell_id.encode("utf-8", "replace"), number) >= 0:
                self._running, self._number, self._file = cell_id, number, None
        except Exception:
            self._running = None

    def _cache_and_report(self, code, *arguments, **options):
        """Wraps the compiler's cache(), which chooses the file name of the source."""
        file = self._cache(code, *arguments, **options)
        if self._running is not None and in_kernel():
            try:
                self._name_file(file, options.get("raw_code") or code)
            except Exception:
                pass
        return file

    def _name_file(self, file, source):
        if self._file is None:
            self._file = file
        self._guard.name_cell_file(file.encode("utf-8", "replace"))
        self._sources.write(self._number, self._running, file, source)

    def _end(self, result=None):
        if self._running is None or not in_kernel():
            return
        try:
            if _is_inner(result):
                if self._file is not None:
                    self._guard.name_cell_file(self._file.encode("utf-8", "replace"))
                return
            cell_id, self._running = self._running, None
            run = self._guard.end_cell()
            self._refusals.end_cell()
            if run is not None:
                self._leaks.look(cell_id, run)
        except Exception:
            pass


def _n_counted_before(shell):
    """By how much `execution_count` is ahead of the cell when its hooks run. Newer versions of IPython
    9 count first, and keep the cell's own number in a variable of that name."""
    code = getattr(shell.run_cell_async, "__code__", None)
    return int(code is not None and "execution_count" in code.co_varnames + code.co_cellvars)


def _id_of(info):
    """The notebook's own id of the cell; the classic notebook has none, so a hash of its text."""
    return getattr(info, "cell_id", None) or "#%016x" % (hash(info.raw_cell) & _64_BITS)


def _is_inner(result):
    """Was it code that a magic ran inside the cell, such as %%capture?"""
    info = getattr(result, "info", None)
    return info is not None and not info.store_history
