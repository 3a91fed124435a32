# SPDX-License-Identifier: Apache-2.0
"""Plimsoll in Python: what a notebook kernel needs, whichever Python it is.

Nothing is imported here: kernels and servers load the part that they want.
"""

__version__ = "0.1.0"
