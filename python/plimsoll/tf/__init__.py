# SPDX-License-Identifier: Apache-2.0
"""`import plimsoll.tf as tf`: TensorFlow's names on the Plimsoll runtime.

Tensors are lazy: an op checks dtypes and shapes at once, and is computed when its value is needed,
within the budget. Names, signatures, defaults, dtypes and errors are those of TensorFlow 2.15; a name
that is not implemented in Plimsoll raises NotImplementedError when it is used.

    >>> import plimsoll.tf as tf
    >>> x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    >>> float(tf.reduce_sum(tf.matmul(x, x)))
    54.0

Where things are:

    _values/   users' objects: dtypes, shapes, tensors, variables; conversion of other values
    _graph/    graphs, traced functions, control flow, sessions, devices
    _ops/      tf's own ops: elementwise, reduce, reshape, gather_scatter ...
    _io/       formats that tf.io and tf.train read and write
    math, nn, image, data ...   TensorFlow's modules of the same name, imported when first used

tf's own names are those that the modules imported below list in their __all__.
"""
from __future__ import annotations

import importlib as _importlib
from typing import Any as _Any, List as _List

from .. import _core, _numpy, errors
from . import _not_implemented

# The names in their __all__ become names of tf. (`_graph` is the folder.)
from ._values import (
    convert as _convert,
    initializers as _initializers,
    module as _module,
    sparse_tensor as _sparse_tensor,
    tensor_methods as _tensor_methods,
    types as _types,
    variable as _variable,
    variable_slices as _variable_slices,
)
from ._graph import (
    control_flow as _control_flow,
    function as _function,
    graph as _graph_module,
    map_scan as _map_scan,
    py_function as _py_function,
)
from ._ops import (
    concat_split as _concat_split,
    creation as _creation,
    elementwise as _elementwise,
    gather_scatter as _gather_scatter,
    printing as _printing,
    reduce as _reduce,
    reshape as _reshape,
)
from ._values.convert import *
from ._values.initializers import *
from ._values.module import *
from ._values.sparse_tensor import *
from ._values.tensor_methods import *
from ._values.types import *
from ._values.variable import *
from ._values.variable_slices import *
from ._graph.control_flow import *
from ._graph.function import *
from ._graph.graph import *
from ._graph.map_scan import *
from ._graph.py_function import *
from ._ops.concat_split import *
from ._ops.creation import *
from ._ops.elementwise import *
from ._ops.gather_scatter import *
from ._ops.printing import *
from ._ops.reduce import *
from ._ops.reshape import *

_numpy.watch()

__version__ = "2.15.0-plimsoll"
__git_version__ = __version__

_MODULES = frozenset(
    "autograph bitwise compat config data debugging dtypes experimental image io linalg lookup math "
    "nest nn random sparse strings test train version".split()
)
_OF_DEBUGGING = ("Assert", "assert_equal", "assert_greater", "assert_less", "assert_rank")

__all__ = ["errors"]
__all__ += _convert.__all__ + _initializers.__all__ + _module.__all__ + _sparse_tensor.__all__
__all__ += _tensor_methods.__all__ + _types.__all__ + _variable.__all__ + _variable_slices.__all__
__all__ += _control_flow.__all__ + _function.__all__ + _graph_module.__all__ + _map_scan.__all__
__all__ += _py_function.__all__
__all__ += _concat_split.__all__ + _creation.__all__ + _elementwise.__all__
__all__ += _gather_scatter.__all__ + _printing.__all__ + _reduce.__all__ + _reshape.__all__


def _show_progress(fraction: _Any, name: _Any) -> None:
    from .._progress import show

    show(fraction, name)


_core.set_progress(_show_progress)


def __getattr__(name: str) -> _Any:
    if name in _MODULES:
        value = _importlib.import_module("." + name, __name__)
        globals()[name] = value
        return value
    if name in _OF_DEBUGGING:
        return getattr(__getattr__("debugging"), name)
    raise _not_implemented.error("tf", name)


def __dir__() -> _List[str]:
    return sorted({*__all__, *_MODULES, *_OF_DEBUGGING, "__version__"})
