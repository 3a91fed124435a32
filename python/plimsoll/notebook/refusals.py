# SPDX-License-Identifier: Apache-2.0
"""Adds a line below the traceback of an error that a refusal caused: why, and what to do."""
from . import sizes
from .environment import in_kernel

# The errors by which C code reports that it got no memory. Others say so in their text, or come
# from the user's own code.
_FROM_C = (MemoryError, OSError, RuntimeError, SystemError, ImportError)
_WORDS = ("memory", "alloc", "oom")
_CHAIN = 16


class Refusals:
    def __init__(self, shell, guard, limit):
        self._shell, self._guard, self._limit = shell, guard, limit
        self._n_known = 0
        self.begin_cell = self.end_cell = self._know

    def load(self):
        self._know()
        self._show = self._shell._showtraceback
        self._shell._showtraceback = self._show_with_refusal

    def unload(self):
        if self._shell.__dict__.get("_showtraceback") == self._show_with_refusal:
            del self._shell._showtraceback

    def _know(self):
        """Refusals up to now have been shown, or need not be."""
        self._n_known = self._guard.n_refusals()

    def _show_with_refusal(self, etype, evalue, stb, *rest, **options):
        try:
            stb = list(stb) + self._lines(evalue)
        except Exception:
            pass
        return self._show(etype, evalue, stb, *rest, **options)

    def _lines(self, error):
        if not in_kernel() or self._guard.n_refusals() == self._n_known:
            return []
        self._know()
        if not _is_about_memory(error):
            return []
        sentence = self._guard.refusal()
        # An exception that the guard raised has its own sentence, with the numbers of that moment.
        says_so = str(error).startswith("plimsoll: ")
        lines = [] if not sentence or says_so else [f"plimsoll: {sentence}"]
        return lines + self._about_limit()

    def _about_limit(self):
        limit = self._limit
        if not limit.is_line:
            return []
        return [
            f"plimsoll: it was this cell's own limit={limit.request} that was reached, not the "
            f"budget of {sizes.show(limit.before_bytes)}: allow the cell more, or leave its limit "
            "out"
        ]


def _is_about_memory(error):
    """Can a refusal have caused it? One that the cell caught does not explain a later error."""
    for _ in range(_CHAIN):
        if error is None:
            return False
        if isinstance(error, _FROM_C) or any(word in str(error).lower() for word in _WORDS):
            return True
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return False
