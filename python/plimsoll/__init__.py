# SPDX-License-Identifier: Apache-2.0
"""Plimsoll in Python: the parts for a notebook kernel, for any Python, and the runtime.

Nothing is imported here: kernels and servers load the part that they need. The runtime's functions
in this package are loaded when they are first used:

    budget()               the line, the claimed bytes, and their peak
    explain(tensor)        the cost of computing a tensor, or of iterating a dataset
    live(scope="")         live values, by scope and call site
    errors(dataset)        the elements that the last pass skipped; also the module of exceptions
    save(tensor, path)     to an .npy file, piece by piece: larger than the budget, too
    open(path)             an .npy file as a tensor that is read as it is needed
    progress(on)           bars for runs that take over two seconds: in terminals and notebooks

TensorFlow's names are in plimsoll.tf.
"""

__version__ = "0.1.0"

_OWN = ("budget", "explain", "live", "open", "progress", "save")
_MODULES = ("errors", "tf")

__all__ = ["budget", "errors", "explain", "live", "open", "progress", "save", "tf"]


def _hint(name):
    if name.startswith("_"):
        return ""
    import difflib

    near = difflib.get_close_matches(name, __all__, n=1, cutoff=0.7)
    return f": did you mean {__name__}.{near[0]}?" if near else ""


def __getattr__(name):
    if name in _OWN:
        from . import _introspection

        value = getattr(_introspection, name)
    elif name in _MODULES:
        import importlib

        value = importlib.import_module("." + name, __name__)
    else:
        hint = _hint(name)
        absent = AttributeError(f"module '{__name__}' has no attribute '{name}'{hint}")
        if hint:  # else a traceback adds a guess of Python's own to it
            absent.name, absent.obj = name, None
        raise absent
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *__all__})
