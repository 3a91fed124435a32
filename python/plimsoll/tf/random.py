# SPDX-License-Identifier: Apache-2.0
"""tf.random: random numbers, repeatable by seeds. The numbers are the library's (Philox), not
TensorFlow's.

Two seeds, as TensorFlow describes them: the global one and the operation's.
  neither is set   other numbers in every process
  only the global  the same in every process, other ones at each call; set_seed() starts again
  the operation's  the same in every process, other ones at each call, whatever else is called
  both             determined by both
Inside of a function that is traced an op draws anew at each call of the function, and in a map for
each element, the same for any number of threads. stateless_* depend on their seed alone.
"""
from __future__ import annotations

import enum
import os
import threading
from typing import Any

from plimsoll import _core
from plimsoll.tf import _not_implemented
from plimsoll.tf._graph import context as _context
from plimsoll.tf._values import types as _types
from plimsoll.tf._ops.reshape import cast, expand_dims
from plimsoll.tf._values.convert import (
    Tensor, dims, eager_call, floats, known_shape, lender, numpy_call, one_int, rank_of, static,
    tensor,
)

__all__ = [
    "Algorithm", "Generator", "categorical", "fold_in", "get_global_generator", "normal",
    "set_global_generator", "set_seed", "shuffle", "split", "stateless_categorical",
    "stateless_normal", "stateless_truncated_normal", "stateless_uniform", "truncated_normal",
    "uniform",
]

__getattr__ = _not_implemented.getter("tf.random")
_op, _binary = _core.op, _core.binary
_DEFAULT = 87654321  # in the place of a global seed that is not set, where the op has one
_MASK = (1 << 63) - 1


class _State:
    """Seeds, and how often each was drawn from."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.key: int | None = None  # of draws without any seed
        self.seed: int | None = None
        self.counts: dict[Any, int] = {}

    def reset(self, seed: int | None) -> None:
        with self.lock:
            self.key = None
            self.seed = seed
            self.counts = {}
        _core.set_streams(0)

    def unseeded(self) -> tuple[int, int]:
        """One key for the process, another for its children, and a stream for each draw: so that
        repeated draws share one program."""
        with self.lock:
            if self.key is None:
                self.key = int.from_bytes(os.urandom(8), "little") & _MASK
            return self.key, _core.next_streams()

    def next(self, key: Any) -> int:
        with self.lock:
            n = self.counts.get(key, 0)
            self.counts[key] = n + 1
            return n


_state = _State()


def _forked() -> None:
    _state.lock = threading.Lock()
    _state.key = None


os.register_at_fork(after_in_child=_forked)


def mixed(a: int, b: int) -> int:
    """Two numbers as one of 63 bits (splitmix64's steps)."""
    z = (a * 0x9E3779B97F4A7C15 + b + 0x632BE59BD9B4E019) & ((1 << 64) - 1)
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & ((1 << 64) - 1)
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & ((1 << 64) - 1)
    return (z ^ (z >> 31)) & _MASK


def set_seed(seed: int) -> None:
    """The global seed: later draws can be repeated.

    >>> tf.random.set_seed(1)
    >>> a = tf.random.uniform([2])
    >>> tf.random.set_seed(1)
    >>> bool(tf.reduce_all(a == tf.random.uniform([2])))
    True
    """
    _state.reset(int(seed))
    set_global_generator(None)


def _in_graph(graph: Any) -> int:
    """The number of a random op in its graph: the same each time that it is built."""
    n = getattr(graph, "_n_random", 0)
    graph._n_random = n + 1
    return n


def seed_of(seed: Any) -> tuple[int, int]:
    """Seed and stream of the op that is made next."""
    given = None if seed is None else static(seed)
    if isinstance(given, list):
        given = mixed(int(given[0]), int(given[-1]))
    own = None if given is None else int(given)
    graph = _context.here.graph
    if own is None and _state.seed is None:
        return _state.unseeded()
    key = mixed(_DEFAULT if _state.seed is None else _state.seed, 0 if own is None else own + 1)
    if graph is not None:
        return key, 0 if own is not None else _in_graph(graph)
    return key, _state.next(own)


def draw(op: str, shape: Any, attrs: dict[str, Any], seed: Any, name: str | None) -> Tensor:
    """A random op in this shape, or in the shape of this tensor of a trace."""
    key, stream = seed_of(seed)
    return _drawn(op, shape, dict(attrs, seed=key, stream=stream), name)


def _drawn(op: str, shape: Any, attrs: dict[str, Any], name: str | None) -> Tensor:
    if isinstance(shape, Tensor) and not shape.dtype.is_integer:
        return _op(op, [shape], attrs, name)
    known = known_shape(shape)
    if known is not None:
        return _op(op, (), dict(attrs, shape=known), name)
    return _op(op, [lender(shape)], attrs, name)


# ---- distributions, over a function that draws ----


def _uniform(draw_op: Any, shape: Any, minval: Any, maxval: Any, dtype: Any,
             name: str | None) -> Tensor:
    dtype = _types.as_dtype(dtype)
    if maxval is None:
        if dtype.is_integer:
            raise ValueError(f"Must specify maxval for integer dtype {dtype!r}")
        maxval = 1
    low, high = static(minval), static(maxval)
    if isinstance(low, (int, float)) and isinstance(high, (int, float)):
        number = int if dtype.is_integer else float
        attrs = {"dtype": dtype, "low": number(low), "high": number(high)}
        if low == high and not dtype.is_integer:
            return _binary("mul", draw_op("random_uniform", shape, {"dtype": dtype}, None),
                           0) + _core.convert(low, dtype)
        return draw_op("random_uniform", shape, attrs, name)
    first, last = cast(minval, dtype), cast(maxval, dtype)
    if dtype.is_integer:
        # 53 bits are enough for limits that are sizes.
        unit = draw_op("random_uniform", shape, {"dtype": _types.float64}, None)
        way = _binary("sub", cast(last, _types.float64), cast(first, _types.float64))
        steps = _core.unary("floor", _binary("mul", unit, way))
        return _binary("add", cast(steps, dtype), first, name)
    unit = draw_op("random_uniform", shape, {"dtype": dtype}, None)
    return _binary("add", _binary("mul", unit, _binary("sub", last, first)), first, name)


def _normal(op: str, draw_op: Any, shape: Any, mean: Any, stddev: Any, dtype: Any,
            name: str | None) -> Tensor:
    dtype = _types.as_dtype(dtype)
    middle, wide = static(mean), static(stddev)
    if isinstance(middle, (int, float)) and isinstance(wide, (int, float)) and wide >= 0:
        return draw_op(op, shape, {"dtype": dtype, "mean": float(middle), "stddev": float(wide)},
                       name)
    unit = draw_op(op, shape, {"dtype": dtype}, None)
    scaled = _binary("mul", unit, _core.convert(stddev, dtype))
    return _binary("add", scaled, _core.convert(mean, dtype), name)


def _seeded(seed: Any) -> Any:
    return lambda op, shape, attrs, name: draw(op, shape, attrs, seed, name)


def normal(shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = _types.float32,
           seed: int | None = None, name: str | None = None) -> Tensor:
    """Normally distributed.

    >>> tf.random.normal([2, 3]).shape
    TensorShape([2, 3])
    """
    return _normal("random_normal", _seeded(seed), shape, mean, stddev, dtype, name)


def truncated_normal(shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = _types.float32,
                     seed: int | None = None, name: str | None = None) -> Tensor:
    """The same, without values more than two deviations from the mean.

    >>> bool(tf.reduce_all(abs(tf.random.truncated_normal([100])) <= 2.0))
    True
    """
    return _normal("random_truncated", _seeded(seed), shape, mean, stddev, dtype, name)


def uniform(shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = _types.float32,
            seed: int | None = None, name: str | None = None) -> Tensor:
    """Evenly distributed from `minval` to before `maxval` (1).

    >>> tf.random.uniform([2], maxval=5, dtype=tf.int32).dtype
    tf.int32
    """
    return _uniform(_seeded(seed), shape, minval, maxval, dtype, name)


def shuffle(value: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """The parts along the first axis in a random order.

    >>> sorted(tf.random.shuffle([1, 2, 3]).numpy().tolist())
    [1, 2, 3]
    """
    return _shuffled(tensor(value), _seeded(seed), name)


def _shuffled(x: Tensor, draw_op: Any, name: str | None) -> Tensor:
    known = dims(x)
    if known is None:
        raise NotImplementedError("tf.random.shuffle of a tensor whose rank is not known: say its "
                                  "shape with set_shape()")
    if not known:
        raise ValueError("shuffle: a scalar has nothing to be shuffled")
    if known[0] is not None:
        keys = draw_op("random_uniform", [known[0]], {"dtype": _types.float64}, None)
    else:
        from plimsoll.tf._ops.reshape import shape

        keys = draw_op("random_uniform", [shape(x)[0]], {"dtype": _types.float64}, None)
    return _op("gather", [x, _op("argsort", [keys], None)], {"axis": 0}, name)


def _categorical(draw_op: Any, logits: Any, num_samples: Any, dtype: Any,
                 name: str | None) -> Tensor:
    """The largest of logits and Gumbel's noise is distributed so."""
    x, n = floats(logits), one_int(num_samples, "random.categorical: num_samples")
    if rank_of(x, "random.categorical") != 2:
        raise ValueError(f"categorical: logits are [batch, classes], and have shape {x.shape}")
    wide = expand_dims(x, 1)
    rows, classes = dims(x)
    if rows is None or classes is None:
        wide = _op("broadcast_to", [wide], {"shape": [-1, n, -1]})
        drawn = _op("fill", [wide], {"dtype": _types.float32, "value": 0})
        unit = draw_op("random_uniform", drawn, {"dtype": _types.float32}, None)
    else:
        unit = draw_op("random_uniform", [rows, n, classes], {"dtype": _types.float32}, None)
    unit = _binary("maximum", unit, 1e-37)
    noise = _core.unary("neg", _core.unary("log", _core.unary("neg", _core.unary("log", unit))))
    scores = _binary("add", cast(wide, _types.float32), noise)
    return cast(_op("argmax", [scores], {"axis": -1}, name), dtype)


def categorical(logits: Any, num_samples: Any, dtype: Any = None, seed: int | None = None,
                name: str | None = None) -> Tensor:
    """Classes, drawn by their logits: [batch, num_samples].

    >>> tf.random.categorical([[0.0, -1000.0]], 3).numpy().tolist()
    [[0, 0, 0]]
    """
    return _categorical(_seeded(seed), logits, num_samples, dtype or _types.int64, name)


# ---- by their seed alone ----


def _stateless(seed: Any) -> Any:
    """Makes a function that draws from this seed, a pair of whole numbers."""
    known = static(seed)
    if known is not None:
        if not isinstance(known, list) or len(known) != 2:
            raise ValueError(f"seed must have shape [2], and is {known}")
        key, stream = (int(n) & _MASK for n in known)

        def draw_now(op: str, shape: Any, attrs: dict[str, Any], name: str | None) -> Tensor:
            fixed = known_shape(shape) if not isinstance(shape, Tensor) or shape.dtype.is_integer \
                else None
            if _context.here.graph is None:
                return _drawn(op, shape, dict(attrs, seed=key, stream=stream), name)
            if fixed is None:
                return _draw_in_run(op, shape, attrs, tensor(seed), name)
            # Outside of the graph: in it, each run would draw again.
            with _context.entered(None):
                value = _drawn(op, fixed, dict(attrs, seed=key, stream=stream), None)
                _core.evaluate([value])
            return _core.unary("identity", value, name)

        return draw_now
    return lambda op, shape, attrs, name: _draw_in_run(op, shape, attrs, tensor(seed), name)


def _draw_in_run(op: str, shape: Any, attrs: dict[str, Any], seed: Tensor,
                 name: str | None) -> Tensor:
    """The seed, or the shape, is only known then."""
    lends = isinstance(shape, Tensor) and not shape.dtype.is_integer
    fixed = None if lends else known_shape(shape)
    lent = [] if fixed is not None else [shape if lends else lender(shape)]

    def run(pair: Tensor, *like: Tensor) -> Tensor:
        key, stream = (int(n) & _MASK for n in pair.numpy().tolist())
        wanted = fixed if fixed is not None else list(dims(like[0]))
        return _op(op, (), dict(attrs, seed=key, stream=stream, shape=wanted))

    known = fixed if fixed is not None else dims(lent[0])
    return eager_call(run, [seed, *lent], attrs["dtype"], known, name)


def stateless_uniform(shape: Any, seed: Any, minval: Any = 0, maxval: Any = None,
                      dtype: Any = _types.float32, name: str | None = None,
                      alg: Any = "auto_select") -> Tensor:
    """uniform(), always the same for a seed of two numbers.

    >>> a, b = (tf.random.stateless_uniform([2], [1, 2]) for _ in range(2))
    >>> bool(tf.reduce_all(a == b))
    True
    """
    return _uniform(_stateless(seed), shape, minval, maxval, dtype, name)


def stateless_normal(shape: Any, seed: Any, mean: Any = 0.0, stddev: Any = 1.0,
                     dtype: Any = _types.float32, name: str | None = None,
                     alg: Any = "auto_select") -> Tensor:
    """normal(), always the same for a seed of two numbers.

    >>> tf.random.stateless_normal([2], [1, 2]).shape
    TensorShape([2])
    """
    return _normal("random_normal", _stateless(seed), shape, mean, stddev, dtype, name)


def stateless_truncated_normal(shape: Any, seed: Any, mean: Any = 0.0, stddev: Any = 1.0,
                               dtype: Any = _types.float32, name: str | None = None,
                               alg: Any = "auto_select") -> Tensor:
    """truncated_normal(), always the same for a seed of two numbers.

    >>> tf.random.stateless_truncated_normal([2], [1, 2]).shape
    TensorShape([2])
    """
    return _normal("random_truncated", _stateless(seed), shape, mean, stddev, dtype, name)


def stateless_categorical(logits: Any, num_samples: Any, seed: Any, dtype: Any = _types.int64,
                          name: str | None = None) -> Tensor:
    """categorical(), always the same for a seed of two numbers.

    >>> tf.random.stateless_categorical([[0.0, -1000.0]], 2, [1, 2]).numpy().tolist()
    [[0, 0]]
    """
    return _categorical(_stateless(seed), logits, num_samples, dtype, name)


def split(seed: Any, num: int = 2, alg: Any = "auto_select") -> Tensor:
    """Seeds of their own, made of one: [num, 2].

    >>> tf.random.split([1, 2], 3).shape
    TensorShape([3, 2])
    """
    n = one_int(num, "random.split: num")

    def seeds(pair: Any) -> Any:
        import numpy as np

        key = mixed(int(pair[0]), int(pair[1]))
        rows = [[mixed(key, 2 * i), mixed(key, 2 * i + 1)] for i in range(n)]
        return np.array(rows, np.int64).astype(pair.dtype)

    x = tensor(seed)
    return numpy_call(seeds, [x], x.dtype, [n, 2])


def fold_in(seed: Any, data: Any, alg: Any = "auto_select") -> Tensor:
    """A seed of its own, made of one and a number.

    >>> tf.random.fold_in([1, 2], 3).shape
    TensorShape([2])
    """
    def seeds(pair: Any, number: Any) -> Any:
        import numpy as np

        key = mixed(mixed(int(pair[0]), int(pair[1])), int(number))
        return np.array([mixed(key, 0), mixed(key, 1)], np.int64).astype(pair.dtype)

    x = tensor(seed)
    return numpy_call(seeds, [x, tensor(data)], x.dtype, [2])


# ---- generators ----


class Algorithm(enum.IntEnum):
    """Names that generators take; the numbers are Philox's for each.

    >>> tf.random.Algorithm.PHILOX.value
    1
    """

    PHILOX = 1
    THREEFRY = 2
    AUTO_SELECT = 3


class Generator:
    """Random numbers with a state of its own: each call advances it.

    >>> a, b = (tf.random.Generator.from_seed(7).normal([2]) for _ in range(2))
    >>> bool(tf.reduce_all(a == b))
    True
    """

    def __init__(self, copy_from: Any = None, state: Any = None, alg: Any = None) -> None:
        if (copy_from is None) == (state is None):
            raise ValueError("Generator: give either 'copy_from' or 'state'; or use from_seed()")
        self._lock = threading.Lock()
        if copy_from is not None:
            self._key, self._count = copy_from._key, copy_from._count
        else:
            self.reset(state)

    @classmethod
    def from_seed(cls, seed: Any, alg: Any = None) -> Generator:
        """The same numbers for the same seed.

        >>> tf.random.Generator.from_seed(1).uniform([2]).shape
        TensorShape([2])
        """
        known = static(seed)
        if isinstance(known, list):
            known = mixed(int(known[0]), int(known[-1]))
        return cls(state=[0, mixed(int(known), 1)])

    @classmethod
    def from_non_deterministic_state(cls, alg: Any = None) -> Generator:
        """Other numbers each time.

        >>> tf.random.Generator.from_non_deterministic_state().normal([1]).shape
        TensorShape([1])
        """
        return cls(state=[0, int.from_bytes(os.urandom(8), "little") & _MASK])

    @classmethod
    def from_state(cls, state: Any, alg: Any = None) -> Generator:
        """Where another's `state` says.

        >>> g = tf.random.Generator.from_state(tf.random.Generator.from_seed(1).state)
        """
        return cls(state=state)

    @classmethod
    def from_key_counter(cls, key: Any, counter: Any, alg: Any = None) -> Generator:
        """A key, and how often it was drawn from.

        >>> g = tf.random.Generator.from_key_counter(5, [0, 0])
        """
        count = static(counter)
        return cls(state=[count[0] if isinstance(count, list) else count, static(key)])

    def reset(self, state: Any) -> None:
        """Goes on where `state` says."""
        values = static(state)
        self._count, self._key = int(values[0]) & _MASK, int(values[-1]) & _MASK

    def reset_from_seed(self, seed: Any) -> None:
        """Goes on as from_seed() begins."""
        other = Generator.from_seed(seed)
        self._key, self._count = other._key, other._count

    def reset_from_key_counter(self, key: Any, counter: Any) -> None:
        """Goes on as from_key_counter() begins."""
        other = Generator.from_key_counter(key, counter)
        self._key, self._count = other._key, other._count

    @property
    def state(self) -> Tensor:
        """How often it was drawn from, 0, and its key."""
        return _core.constant([self._count, 0, self._key], _types.int64)

    @property
    def key(self) -> Tensor:
        """Its key: generators with other keys draw other numbers."""
        return _core.constant(self._key, _types.int64)

    @property
    def algorithm(self) -> int:
        """Philox."""
        return Algorithm.PHILOX

    def _next(self) -> int:
        with self._lock:
            self._count += 1
            return self._count - 1

    def _draw(self, op: str, shape: Any, attrs: dict[str, Any], name: str | None) -> Tensor:
        return _drawn(op, shape, dict(attrs, seed=self._key, stream=self._next()), name)

    def normal(self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = _types.float32,
               name: str | None = None) -> Tensor:
        """Normally distributed."""
        return _normal("random_normal", self._draw, shape, mean, stddev, dtype, name)

    def truncated_normal(self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0,
                         dtype: Any = _types.float32, name: str | None = None) -> Tensor:
        """The same, without values more than two deviations from the mean."""
        return _normal("random_truncated", self._draw, shape, mean, stddev, dtype, name)

    def uniform(self, shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = _types.float32,
                name: str | None = None) -> Tensor:
        """Evenly distributed from `minval` to before `maxval`."""
        return _uniform(self._draw, shape, minval, maxval, dtype, name)

    def uniform_full_int(self, shape: Any, dtype: Any = _types.uint64,
                         name: str | None = None) -> Tensor:
        """Evenly distributed over all numbers of a dtype."""
        dtype = _types.as_dtype(dtype)
        words = self._draw("random_uniform", shape, {"dtype": _types.int64, "low": -(1 << 63),
                                                     "high": _MASK}, name)
        return cast(words, dtype)

    def skip(self, delta: Any) -> None:
        """As if it had been drawn from so often."""
        with self._lock:
            self._count += one_int(delta, "random.Generator.skip")

    def make_seeds(self, count: int = 1) -> Tensor:
        """Seeds for stateless_*: [2, count]."""
        n = one_int(count, "random.Generator.make_seeds")
        key = mixed(self._key, self._next())
        return _core.constant([[mixed(key, i) for i in range(n)], [0] * n], _types.int64)

    def split(self, count: int = 1) -> list[Generator]:
        """Generators of their own, made of this one."""
        key = mixed(self._key, self._next())
        return [Generator(state=[0, mixed(key, i)]) for i in range(count)]


_global: Generator | None = None


def get_global_generator() -> Generator:
    """The one that all share; made when it is first needed.

    >>> tf.random.get_global_generator() is tf.random.get_global_generator()
    True
    """
    global _global
    if _global is None:
        _global = (Generator.from_non_deterministic_state() if _state.seed is None
                   else Generator.from_seed(_state.seed))
    return _global


def set_global_generator(generator: Generator | None) -> None:
    """Another one in its place.

    >>> tf.random.set_global_generator(tf.random.Generator.from_seed(5))
    """
    global _global
    _global = generator
