# SPDX-License-Identifier: Apache-2.0
"""The least that a graph of the extension's is: names, and the nodes that were made in it."""
from plimsoll import _core


class Trace:
    """with Trace(): nodes are made in it."""

    def __init__(self):
        self.nodes = []
        self.n_named = {}

    def _unique_name(self, name, is_op=False):
        n = self.n_named.get(name, 0)
        self.n_named[name] = n + 1
        return f"{name}_{n}" if n else name

    def _add(self, node):
        self.nodes.append(node)

    def __enter__(self):
        self.before = _core.context(self, "", None)
        return self

    def __exit__(self, *error):
        _core.context(*self.before)


def traced(function, *specs):
    """A Function of what function() makes of a placeholder for each spec, (dtype, shape)."""
    with Trace():
        inputs = [_core.placeholder(dtype, shape) for dtype, shape in specs]
        outputs = function(*inputs)
    return _core.Function(inputs, outputs if isinstance(outputs, (list, tuple)) else [outputs])
