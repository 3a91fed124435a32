# SPDX-License-Identifier: Apache-2.0
"""What tests of reductions, sorting and random numbers share: arrays for
tests/programs/reduce_tool.c, and a fixture that runs it for each instruction set. Import `tool` and
`reduce_tool` both."""

import itertools
import pathlib

import numpy as np
import pytest


class Tool:
    """Runs commands of reduce_tool.c: words are passed on, arrays as files."""

    def __init__(self, ask, folder, isa):
        self.ask, self.folder, self.isa, self.names = ask, folder, isa, itertools.count()

    def save(self, array):
        path = self.folder / f"{next(self.names)}.npy"
        np.save(path, array)
        return path

    def run(self, *command, n_outputs=1):
        """The arrays that the command writes; its words are followed by their names."""
        words = [self.save(word) if isinstance(word, np.ndarray) else word for word in command]
        outputs = [self.folder / f"out{next(self.names)}.npy" for _ in range(n_outputs)]
        self.said = self.ask(("isa", self.isa), (*words, *outputs))[1]
        arrays = [np.load(path) for path in outputs if path.exists()]
        for path in (*outputs, *(word for word in words if isinstance(word, pathlib.Path))):
            path.unlink(missing_ok=True)
        return arrays[0] if len(arrays) == 1 else arrays


@pytest.fixture(scope="session")
def reduce_tool(build_tool):
    return build_tool("reduce_tool")


@pytest.fixture(params=["plain", "avx2"])
def tool(request, tmp_path, reduce_tool):
    if request.param == "avx2" and "avx2" not in pathlib.Path("/proc/cpuinfo").read_text():
        pytest.skip("this processor has no AVX2")
    return Tool(reduce_tool, tmp_path, request.param)


@pytest.fixture
def chance():
    return np.random.default_rng(4)


def numbers(chance, dtype, shape):
    """Numbers of all sizes that the dtype has, but not its NaN and infinities."""
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        sizes = np.exp(chance.standard_normal(shape) * 4)
        return (chance.standard_normal(shape) * sizes).astype(dtype)
    if dtype.kind == "b":
        return chance.integers(0, 2, shape).astype(dtype)
    info = np.iinfo(dtype)
    return chance.integers(info.min, info.max, shape, dtype, endpoint=True)


def specials(chance, dtype, shape):
    """Few different numbers, and of floats also NaN, infinities and both zeros."""
    values = [0, 1, 2, 3] if np.dtype(dtype).kind in "bu" else [-2, -1, 0, 1, 2]
    if np.dtype(dtype).kind == "f":
        values += [np.nan, np.inf, -np.inf, -0.0]
    return chance.choice(np.array(values, dtype), shape)
