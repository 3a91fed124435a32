# SPDX-License-Identifier: Apache-2.0
"""NumPy's arrays, watched from the moment that NumPy is there: src/python/module/numpy_arrays.c.

NumPy is not imported for that: when it is imported later, it is watched. PLIMSOLL_NUMPY=off in the
environment leaves it alone.
"""
import importlib.util
import os
import sys

from . import _core

CORES = ("numpy.core._multiarray_umath", "numpy._core._multiarray_umath")


def watch_now():
    core = next((sys.modules[name] for name in reversed(CORES) if name in sys.modules), None)
    return core is not None and _core.watch_numpy(core)


class Loader:
    """NumPy's own, and then us."""

    def __init__(self, loader, finder):
        self.loader, self.finder = loader, finder

    def __getattr__(self, name):
        return getattr(self.loader, name)

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        module.__loader__ = module.__spec__.loader = self.loader
        if self.finder in sys.meta_path:
            sys.meta_path.remove(self.finder)
        self.loader.exec_module(module)
        watch_now()


class Finder:
    """Waits for the first import of NumPy, and is gone with it."""

    def __init__(self):
        self.is_asking = False

    def find_spec(self, name, path=None, target=None):
        if name != "numpy" or self.is_asking:
            return None
        self.is_asking = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.is_asking = False
        if spec is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = Loader(spec.loader, self)
        return spec


def watch():
    """The guard, where it is, watches more than NumPy."""
    if os.environ.get("PLIMSOLL_NUMPY", "on") == "off" or "PLIMSOLL_LEDGER" in os.environ:
        return
    if "numpy" in sys.modules:
        watch_now()
    else:
        sys.meta_path.insert(0, Finder())
