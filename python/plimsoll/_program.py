# SPDX-License-Identifier: Apache-2.0
"""Where the program `plimsoll` is that this package belongs to."""
import os
import shutil
from typing import Optional


def find() -> Optional[str]:
    """In the package, if a wheel brought it; beside the folder that the package lies in, as built and
    as installed; else on $PATH."""
    as_named, as_resolved = os.path.abspath(__file__), os.path.realpath(__file__)
    places = [
        _climb(as_resolved, 1) + "/command/plimsoll",
        _climb(as_named, 3) + "/plimsoll",  # build/python/plimsoll is a link into the sources
        _climb(as_resolved, 5) + "/bin/plimsoll",  # from PREFIX/lib/plimsoll/python/plimsoll
    ]
    return next(filter(_is_program, places), shutil.which("plimsoll"))


def _climb(path: str, n_levels: int) -> str:
    for _ in range(n_levels):
        path = os.path.dirname(path)
    return path


def _is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)
