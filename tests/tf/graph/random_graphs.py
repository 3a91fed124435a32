# SPDX-License-Identifier: Apache-2.0
"""Graphs of random ops, with what NumPy makes of each.

    value    an array, and whether it is exact
    step     an op of tensors, with the numbers of the values that it takes
    program  input arrays, steps, and which values are wanted

Most values are whole numbers that their dtype holds, so that any order of additions gives the same and
results are compared to the bit. What is rounded goes only into what is smooth, and is compared with a
tolerance; what is not finite goes only into what NumPy defines it for.
"""
import dataclasses
import random

import numpy as np
import random_ops_arithmetic  # noqa: F401
import random_ops_shapes  # noqa: F401
from random_programs import FLOATS, INTEGERS, OPS, Unfit, as_array

WHOLE_MOST = {"float16": 1 << 9, "float32": 1 << 18, "float64": 1 << 40}  # sums of many are exact too
TOLERANCE = {"float16": 2e-2, "float32": 2e-4, "float64": 1e-9}
SMALL, LARGE = 60, 30_000  # elements


@dataclasses.dataclass
class Value:
    number: int
    array: np.ndarray
    near: bool = False  # rounded
    scale: float = 1.0  # the largest that went into it

    @property
    def kind(self):
        return self.array.dtype.kind

    @property
    def is_finite(self):
        return self.kind != "f" or bool(np.isfinite(self.array).all())


@dataclasses.dataclass
class Step:
    text: str
    function: object  # of tensors
    inputs: list


class Program:
    """Made by its seed alone."""

    def __init__(self, seed, large=False):
        self.seed = seed
        self.chance = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.most = LARGE if large else SMALL
        self.values, self.steps, self.n_inputs = [], [], 0
        for _ in range(self.chance.randint(1, 3)):
            self._source()
        self.n_inputs = len(self.values)
        makers = list(OPS.values())
        with np.errstate(all="ignore"):
            for _ in range(self.chance.randint(1, 9)):
                self._add(self.chance.choice(makers))
        last = len(self.values) - 1
        others = self.chance.sample(range(last + 1), min(last + 1, self.chance.randint(0, 2)))
        self.wanted = sorted({last, *others})

    def _source(self):
        chance = self.chance
        dtype = chance.choice(INTEGERS + FLOATS * 3 + ("bool", "object"))
        shape = self.shape(chance.choice((0, 1, 1, 2, 2, 2, 3, 3, 4)))
        array = np.asarray(self.whole(shape, dtype), dtype)
        if array.dtype.kind == "f" and chance.random() < 0.15:
            special = self.numbers.choice([np.nan, np.inf, -np.inf, -0.0, 1.0], array.shape)
            array = np.where(self.numbers.random(array.shape) < 0.2, special, array).astype(dtype)
        self.values.append(Value(len(self.values), array))

    def _add(self, maker):
        for _ in range(4):
            try:
                text, function, inputs, array, *near = maker(self)
            except Unfit:
                continue
            array = as_array(array)
            if array.size > 4 * self.most or array.ndim > 6:
                continue
            near = array.dtype.kind == "f" and (any(near) or any(value.near for value in inputs))
            if array.dtype.kind == "f" and not self._holds(array, near):
                continue
            scale = max([value.scale for value in inputs], default=1.0)
            if array.dtype.kind == "f" and array.size:
                scale = max(scale, float(np.abs(np.nan_to_num(array.astype("f8"), posinf=1, neginf=1)).max()))
            self.values.append(Value(len(self.values), array, near, scale))
            self.steps.append(Step(text, function, [value.number for value in inputs]))
            return

    def _holds(self, array, near):
        finite = array[np.isfinite(array)]
        if near and finite.size != array.size:
            return False
        return not finite.size or np.abs(finite).max() <= WHOLE_MOST[array.dtype.name]

    # ---- what makers ask for ----

    def shape(self, rank):
        if self.most == SMALL or rank == 0:
            return tuple(self.chance.choice((0, 1, 2, 3, 3, 4, 5)) for _ in range(rank))
        each = max(int(self.most ** (1 / rank)), 2)
        return tuple(self.chance.choice((0,) * (self.chance.random() < 0.05) + (1, each, each, each + 1))
                     for _ in range(rank))

    def whole(self, shape, dtype, low=-9, high=10):
        if dtype == "object":
            some = np.array([b"", b"a", b"bc", "\u00e9".encode(), b"x" * 40], object)
            return some[self.numbers.integers(0, len(some), shape)]
        if dtype == "bool":
            return self.numbers.integers(0, 2, shape).astype(bool)
        low = max(low, 0) if dtype.startswith("u") else low
        return np.asarray(self.numbers.integers(low, high, shape)).astype(dtype)

    def pick(self, test=lambda value: True, finite=True, exact=True, texts=False):
        """Later ones are likelier, so that programs become deep."""
        some = [v for v in self.values if (v.is_finite or not finite) and not (v.near and exact)
                and (texts or v.kind != "O") and test(v)]
        if not some:
            raise Unfit
        return some[max(self.chance.randrange(len(some)), self.chance.randrange(len(some)))]

    def anything(self, rank=0, most=6, texts=False):
        """A value to be moved: whether it is exact or finite does not matter."""
        return self.pick(lambda v: rank <= v.array.ndim <= most, False, False, texts)

    def numeric(self, rank=0, kinds="iuf", **how):
        return self.pick(lambda v: v.kind in kinds and v.array.ndim >= rank, **how)

    def axis(self, value):
        """From the front or from the end."""
        rank = value.array.ndim
        return self.chance.randrange(-rank, rank)

    def axes(self, value):
        """All (None), one, or some."""
        rank = value.array.ndim
        if rank == 0 or self.chance.random() < 0.2:
            return None
        some = self.chance.sample(range(rank), self.chance.randint(1, rank))
        return [axis - rank * (self.chance.random() < 0.3) for axis in some]

    def partner(self, value, exact=True, finite=True):
        """One of the same dtype that broadcasts with it: another value, or itself."""

        def fits(other):
            try:
                shape = np.broadcast_shapes(other.array.shape, value.array.shape)
            except ValueError:
                return False
            return other.array.dtype == value.array.dtype and np.prod(shape) <= 4 * self.most

        return self.pick(fits, finite, exact)

    # ---- run ----

    def __call__(self, *tensors, wanted=None):
        made = list(tensors)
        wanted = wanted or self.wanted
        for step in self.steps[:max(wanted) + 1 - self.n_inputs]:
            made.append(step.function(*[made[i] for i in step.inputs]))
        return [made[i] for i in wanted]

    @property
    def inputs(self):
        return [value.array for value in self.values[:self.n_inputs]]

    def __str__(self):
        lines = [f"{v.number} = {v.array.dtype}{list(v.array.shape)}" for v in self.values[:self.n_inputs]]
        for value, step in zip(self.values[self.n_inputs:], self.steps):
            lines.append(f"{value.number} = {step.text} of {step.inputs}: {value.array.dtype}"
                         f"{list(value.array.shape)}{' rounded' * value.near}")
        return "\n".join([f"seed {self.seed}, wanted {self.wanted}", *lines])

    def differs(self, number, got):
        """What is wrong with a result, or None."""
        value = self.values[number]
        if (got.dtype, got.shape) != (value.array.dtype, value.array.shape):
            return f"{got.dtype}{list(got.shape)} is not {value.array.dtype}{list(value.array.shape)}"
        if not value.near:
            alike = (got == value.array) | ((got != got) & (value.array != value.array))
        else:
            error = np.abs(got.astype("f8") - value.array.astype("f8"))
            alike = error <= TOLERANCE[got.dtype.name] * (1 + value.scale)
        if alike.all():
            return None
        where = tuple(np.argwhere(~np.asarray(alike))[0])
        return f"{got[where]} at {where} is not {value.array[where]}"
