# SPDX-License-Identifier: Apache-2.0
"""The IPython extension: a notebook's cells in the ledger, the ledger's answers in the notebook.

`plimsoll run --kernel` has every IPython kernel load it; elsewhere `%load_ext plimsoll.notebook`.
In a process without the guard it only defines `%plimsoll`, which says so, and hooks nothing.

The hooks must not be noticed, and must not fail by themselves: whatever goes wrong in here, the
cell runs, and its error is shown, as without the extension.
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
    """Called by IPython. Removes every hook."""
    global _loaded
    if _loaded is not None:
        _loaded.unload()
        _loaded = None
