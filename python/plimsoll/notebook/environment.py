# SPDX-License-Identifier: Apache-2.0
"""Removes what `plimsoll run --kernel` put into the environment for this extension alone.

Programs that the user's code starts must find the environment as it was without us: it is read
once, and removed. $LD_PRELOAD and $PLIMSOLL_LEDGER stay: they are what guards those programs.
"""
import os
import sys
from _thread import get_ident
from typing import NamedTuple, Optional


class Start(NamedTuple):
    """How this kernel was started."""

    record: Optional[str]  # the folder of this run's record
    program: Optional[str]  # the path of plimsoll
    previous: Optional[str]  # the run of the kernel before this one
    pid: int
    thread: int


_ARGUMENT = "--ext=plimsoll.notebook"  # which loads this extension

_start = None


def restore():
    """Removes our parts of os.environ, sys.path and sys.argv; keeps the answer for later calls."""
    global _start
    if _start is None:
        ledger = os.environ.get("PLIMSOLL_LEDGER")
        _start = Start(
            record=os.path.dirname(os.path.abspath(ledger)) if ledger else None,
            program=os.environ.pop("PLIMSOLL_PROGRAM", None),
            previous=os.environ.pop("PLIMSOLL_PREVIOUS", None) or None,
            pid=os.getpid(),
            thread=get_ident(),
        )
        _restore_python_path()
        _restore_arguments()
    return _start


def in_kernel():
    """Is this the kernel's main thread? Only that runs cells: a forked child inherits the hooks, and
    a subshell runs them in another thread."""
    return os.getpid() == _start.pid and get_ident() == _start.thread


def _restore_python_path():
    folder = os.environ.pop("PLIMSOLL_PYTHON_FOLDER", None)
    original = os.environ.pop("PLIMSOLL_PYTHONPATH", None)
    if not folder:
        return
    if original is not None:
        os.environ["PYTHONPATH"] = original
    else:
        os.environ.pop("PYTHONPATH", None)
    _move_to_end(folder)


def _restore_arguments():
    """Code that reads sys.argv, and processes that are spawned with it, find Jupyter's own command."""
    if _ARGUMENT in sys.argv:
        sys.argv.remove(_ARGUMENT)


def _move_to_end(folder):
    """The user's modules come first, whatever they are called."""
    if folder in sys.path:
        sys.path.remove(folder)
        sys.path.append(folder)
