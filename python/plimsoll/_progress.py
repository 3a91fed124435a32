# SPDX-License-Identifier: Apache-2.0
"""Bars for runs that take longer than two seconds: one line in a terminal, one output in a
notebook, and nothing where output is not shown.

The extension calls show(fraction, node name) from two seconds of a run on, at most ten times a
second, and once at its end: with 1, or, if it failed, with no name.
"""
from __future__ import annotations

import os
import sys
import time
from typing import Any, Optional

from . import _core

_WIDTH = 30
_wanted: Optional[bool] = None  # None: where there is somebody to look


def progress(on: Optional[bool] = None) -> None:
    """Bars always (True), never (False), or in terminals and notebooks (None, as it is at first).

    >>> import plimsoll
    >>> plimsoll.progress(False)
    >>> plimsoll.progress(None)
    """
    global _wanted
    _wanted = on
    _core.set_progress(None if on is False else show)


class _Bar:
    """One run's: where it is shown, and since when."""

    def __init__(self) -> None:
        self.begun = time.monotonic()
        self.begun_at = 0.0  # the fraction then
        self.handle: Any = None

    def text(self, fraction: float, name: str) -> str:
        n = int(fraction * _WIDTH)
        left = self._left(fraction)
        bar = "#" * n + "." * (_WIDTH - n)
        return f"[{bar}] {fraction:4.0%}{left}{'  ' + name if name else ''}"

    def _left(self, fraction: float) -> str:
        done, took = fraction - self.begun_at, time.monotonic() - self.begun
        if done <= 0.01 or took < 0.5:
            return ""
        return f"  {took * (1 - fraction) / done:.0f} s left"


_bar: Optional[_Bar] = None


def show(fraction: float, name: str) -> None:
    """See the top."""
    global _bar
    if _wanted is None and not _is_watched():
        return
    is_over = fraction >= 1 or not name
    if _bar is None:
        if is_over:
            return
        _bar = _Bar()
        _bar.begun_at = fraction
    bar = _bar
    if is_over:
        _bar = None
    (_in_notebook if _notebook() else _in_terminal)(bar, fraction, name, is_over)


def _is_watched() -> bool:
    return _notebook() or (sys.stderr is not None and sys.stderr.isatty())


def _notebook() -> bool:
    """A kernel's shell, which shows what is displayed; a terminal's IPython is a terminal."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and getattr(shell, "kernel", None) is not None


def _in_terminal(bar: _Bar, fraction: float, name: str, is_over: bool) -> None:
    try:
        width = os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError, AttributeError):
        width = 80
    text = "" if is_over else bar.text(fraction, name)[: width - 1]
    sys.stderr.write(f"\r\x1b[K{text}")
    sys.stderr.flush()


def _in_notebook(bar: _Bar, fraction: float, name: str, is_over: bool) -> None:
    import html

    from IPython.display import HTML, display

    if is_over:
        body = ""
    else:
        label = html.escape(f"{fraction:.0%} {name}")
        body = f'<progress value="{fraction:.3f}" max="1" style="width:20em"></progress> {label}'
    if bar.handle is None:
        bar.handle = display(HTML(body), display_id=True)
    else:
        bar.handle.update(HTML(body))
