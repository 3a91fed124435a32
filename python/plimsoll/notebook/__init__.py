# SPDX-License-Identifier: Apache-2.0
"""The IPython extension: a notebook's cells in the ledger, the ledger's answers in the notebook.

`plimsoll run --kernel` has every IPython kernel load it; elsewhere `%load_ext plimsoll.notebook`.
In a process that no guard is in, it gives `%plimsoll`, which says so, and hooks nothing.

What it hooks into must not show, and must not fail for reasons of its own: whatever goes wrong in
here, the cell runs, and its error is shown, as without us.
"""
from .. import _guard
from . import environment

_loaded = None


def load_ipython_extension(shell):
    """Called by IPython, with its shell. A second call changes nothing."""
    global _loaded
    if _loaded is None:
        start = environment.restore()
        try:
            guard = _guard.Guard()
        except _guard.Absent as absent:
            from . import magics

            _loaded = magics.Unguarded(shell, str(absent))
        else:
            from . import session

            _loaded = session.Session(shell, guard, start)
        _loaded.load()


def unload_ipython_extension(shell):
    """Called by IPython. Every hook is taken out again."""
    global _loaded
    if _loaded is not None:
        _loaded.unload()
        _loaded = None
