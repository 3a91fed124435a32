# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's array operations, in one place: see _axes.py, _pieces.py, _make.py and _index.py."""
from plimsoll.tf import _axes, _index, _make, _pieces
from plimsoll.tf._axes import *  # noqa: F401,F403
from plimsoll.tf._index import *  # noqa: F401,F403
from plimsoll.tf._make import *  # noqa: F401,F403
from plimsoll.tf._pieces import *  # noqa: F401,F403

__all__ = [*_axes.__all__, *_pieces.__all__, *_make.__all__, *_index.__all__]
