# SPDX-License-Identifier: Apache-2.0
"""The measured part of a Python workload: see region.h."""

import contextlib
import ctypes
import os
import sys


def scale():
    """The workload's one argument: how much of its full work to do."""
    return float(sys.argv[1]) if len(sys.argv) > 1 else 1.0


@contextlib.contextmanager
def measured():
    library = ctypes.CDLL(os.environ["BENCH_REGION"]) if "BENCH_REGION" in os.environ else None
    if library:
        library.region_begin()
    yield
    if library:
        library.region_end()
