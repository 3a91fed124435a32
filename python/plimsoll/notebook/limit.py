# SPDX-License-Identifier: Apache-2.0
"""A tighter line for one cell: `%%plimsoll limit=500M` on top of it.

The cell magic is replaced by a line magic before the cell is compiled. What follows is then the
cell itself, not a text that a magic runs: its lines have their own numbers, its last expression is
shown, `await` works, its error is shown once. The line is restored when the
cell has ended, in whatever way.
"""
from IPython.core.inputtransformer2 import cell_magic

from . import sizes

MAGIC = "%%plimsoll"


class Limit:
    def __init__(self, shell, guard):
        self._shell, self._guard = shell, guard
        self._n_inner = 0
        self.request = None  # "500M" while a cell has a limit
        self.before_bytes = 0  # the line without it
        self._is_tighter = False

    @property
    def is_line(self):
        """Is the line now the cell's limit, and not the budget?"""
        return self.request is not None and self._is_tighter

    def load(self):
        self._shell.input_transformers_cleanup.append(as_line_magic)

    def unload(self):
        if as_line_magic in self._shell.input_transformers_cleanup:
            self._shell.input_transformers_cleanup.remove(as_line_magic)
        self.end()

    def begin(self, request):
        """Sets the limit until the running cell ends. ValueError if `request` is not a size."""
        more_bytes = sizes.parse(request)
        self.end()
        self.before_bytes = self._guard.tighten_line(more_bytes)
        self._is_tighter = self._guard.memory().line_bytes < self.before_bytes
        self.request, self._n_inner = request, 0
        self._shell.events.register("pre_execute", self._enter)
        self._shell.events.register("post_execute", self._leave)

    def _enter(self):
        self._n_inner += 1

    def _leave(self):
        """A cell has ended: this one, or code that a magic ran inside it."""
        if self._n_inner == 0:
            self.end()
        self._n_inner -= 1

    def end(self):
        if self.request is not None:
            self._guard.restore_line(self.before_bytes)
            self.forget()

    def forget(self):
        """The line stays where it is."""
        if self.request is not None:
            self.request = None
            self._shell.events.unregister("pre_execute", self._enter)
            self._shell.events.unregister("post_execute", self._leave)


def as_line_magic(lines):
    """An input transformer of IPython's: lines in, lines out, as many as before."""
    if not lines or not lines[0].startswith(MAGIC + " "):
        return lines
    arguments = lines[0][len(MAGIC):].strip()
    if not arguments.startswith("limit"):
        return lines
    return [f"get_ipython().run_line_magic('plimsoll', {arguments!r})\n"] + _inner_magic(lines[1:])


def _inner_magic(lines):
    """A second cell magic below ours (%%time) is on top of its cell now."""
    if not lines or not lines[0].startswith("%%"):
        return lines
    return cell_magic(lines)
