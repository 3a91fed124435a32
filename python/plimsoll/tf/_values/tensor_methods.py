# SPDX-License-Identifier: Apache-2.0
"""The methods of Tensor that are written in Python: indexing, iteration, printing.
"""
from __future__ import annotations

from typing import Any, Iterator

from plimsoll import _core, errors
from plimsoll.tf._values.convert import Dim, Tensor, dims, is_eager, invalid, numpy_call, partial, remember
from plimsoll.tf._ops.reshape import dim_tensor
from plimsoll.tf._values.convert import static
from plimsoll.tf._values import types as _types

__all__ = ["Tensor"]

_WHOLE = (1 << 63) - 1
_op = _core.op
# A loop over more than that is not written out while a function is traced.
UNROLLED = 10_000
# The device of eager tensors that were not placed.
_CPU = "/job:localhost/replica:0/task:0/device:CPU:0"


# ---- x[...] ----


def _bad_index(index: Any) -> TypeError:
    return TypeError("Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and "
                     f"scalar tf.int32/tf.int64 tensors are valid indices, got {index!r}")


class _Late(Exception):
    """An index that only a run tells."""


def _whole_number(index: Any) -> int:
    """An index or end of a slice; _Late if it is a tensor without a value."""
    if type(index) is int:
        return index
    if isinstance(index, bool) or isinstance(index, (str, bytes, float, list, tuple)):
        raise _bad_index(index)
    if isinstance(index, Tensor) or hasattr(index, "__plimsoll_tensor__"):
        index = _core.convert(index)
        if not index.dtype.is_integer or index.shape.rank not in (0, None):
            raise _bad_index(index)
        known = static(index)
        if known is None:
            raise _Late
        return int(known)
    try:
        return index.__index__()
    except (AttributeError, TypeError):
        raise _bad_index(index) from None


def _expanded(index: tuple, rank: int) -> list[Any]:
    """Without "...": one item for each axis, and those that make new ones."""
    taken = sum(1 for item in index if item is not None and item is not Ellipsis)
    n_dots = sum(1 for item in index if item is Ellipsis)
    if n_dots > 1:
        raise ValueError("Multiple ellipses in slice spec not allowed")
    if taken > rank:
        invalid(f"Index out of range using input dim {rank}; input has only {rank} dims")
    items: list[Any] = []
    for item in index:
        items += [slice(None)] * (rank - taken) if item is Ellipsis else [item]
    return items


class _Cut:
    """start, stop and step for each axis of x, and what happens to the axes then."""

    def __init__(self, known: tuple) -> None:
        self.known = known
        self.start: list[int] = []
        self.stop: list[int] = []
        self.step: list[int] = []
        self.keep: list[int] = []  # axes of the result: one of x's, or -1: new
        self.n_gone = 0

    def add(self, item: Any) -> None:
        if item is None:
            self.keep.append(-1)
            return
        axis = len(self.start)
        if isinstance(item, slice):
            self.keep.append(axis)
            self._add_slice(item)
        else:
            self._add_number(_whole_number(item), axis)

    def _add_slice(self, item: slice) -> None:
        step = 1 if item.step is None else _whole_number(item.step)
        if step == 0:
            invalid("strides must be non-zero")
        first, last = (0, _WHOLE) if step > 0 else (_WHOLE - 1, -_WHOLE)
        self.start.append(first if item.start is None else _whole_number(item.start))
        self.stop.append(last if item.stop is None else _whole_number(item.stop))
        self.step.append(step)

    def _add_number(self, number: int, axis: int) -> None:
        n = self.known[axis]
        if n is not None and not -n <= number < n:
            invalid(f"slice index {number} of dimension {axis} out of bounds.")
        self.start.append(number)
        self.stop.append(_WHOLE if number == -1 else number + 1)
        self.step.append(1)
        self.n_gone += 1

    def apply(self, x: Tensor) -> Tensor:
        if any(s != 0 or e != _WHOLE or n != 1
               for s, e, n in zip(self.start, self.stop, self.step)):
            attrs: dict[str, Any] = {"start": self.start, "stop": self.stop}
            if any(n != 1 for n in self.step):
                attrs["step"] = self.step
            x = _op("slice", [x], attrs)
        rest = list(range(len(self.start), len(self.known)))
        keep = self.keep + rest
        if keep == list(range(len(self.known))):
            return x
        return _op("reshape", [x], {"shape": [1 if k < 0 else -1 for k in keep], "keep": keep})


def _is_mask(index: Any) -> bool:
    """Booleans, one for each element of the first axes."""
    return (type(index) not in (int, slice, tuple) and hasattr(index, "dtype")
            and getattr(index.dtype, "name", "") == "bool")


def _getitem(x: Tensor, index: Any) -> Tensor:
    """x[index] as Python and TensorFlow have it: numbers, slices, None and "...", or a mask.

    >>> x = tf.constant([[1, 2, 3], [4, 5, 6]])
    >>> x[1, ::2].numpy().tolist()
    [4, 6]
    >>> x[x > 3].numpy().tolist()
    [4, 5, 6]
    """
    known = dims(x)
    if type(index) is int and known and None not in known and not hasattr(x, "_known"):
        return _row(x, index, known)
    if _is_mask(index):
        from plimsoll.tf._ops.gather_scatter import boolean_mask

        return boolean_mask(x, index)
    index = index if isinstance(index, tuple) else (index,)
    if known is None:
        return _get_in_run(x, index, None)
    try:
        cut = _Cut(known)
        for item in _expanded(index, len(known)):
            cut.add(item)
    except _Late:
        return _get_late(x, index, known)
    said = partial(x)
    if isinstance(said, list) and len(index) == 1 and index[0] is not None and index[0] is not ...:
        return _of_shape(x, index[0], cut, said)
    return cut.apply(x)


def _of_shape(x: Tensor, index: Any, cut: _Cut, said: list) -> Tensor:
    """A part of the result of shape(): known dimensions stay known."""
    if isinstance(index, slice):
        return remember(cut.apply(x), said[cut.start[0]:_end(cut.stop[0]):cut.step[0]])
    part = said[cut.start[0]]
    return dim_tensor(part, x.dtype) if isinstance(part, Dim) else _core.constant(part, x.dtype)


def _end(stop: int) -> int | None:
    return None if abs(stop) == _WHOLE else stop


def _row(x: Tensor, number: int, known: tuple) -> Tensor:
    """x[number], of a known shape, as loops need it."""
    if not -known[0] <= number < known[0]:
        invalid(f"slice index {number} of dimension 0 out of bounds.")
    number %= known[0]
    part = _op("slice", (x,), {"start": (number,), "stop": (number + 1,)})
    return _op("reshape", (part,), {"shape": known[1:]})


def _get_late(x: Tensor, index: tuple, known: tuple) -> Tensor:
    """One number along an axis, that only a run tells, is a gather; anything else is NumPy's."""
    items = _expanded(index, len(known))
    late = [i for i, item in enumerate(items) if isinstance(item, Tensor)]
    if len(late) == 1 and None not in items:
        axis = late[0]
        picked = _op("gather", [x, items[axis]], {"axis": axis})
        rest = items[:axis] + items[axis + 1:]
        try:
            return _getitem(picked, tuple(rest)) if rest else picked
        except _Late:
            pass
    n_axes = sum(1 for item in items if item is None or isinstance(item, slice))
    n_axes += len(known) - sum(1 for item in items if item is not None)
    return _get_in_run(x, index, [None] * n_axes)


def _get_in_run(x: Tensor, index: tuple, shape: Any) -> Tensor:
    late: list[Tensor] = []

    def hold(item: Any) -> Any:
        if isinstance(item, slice):
            return slice(hold(item.start), hold(item.stop), hold(item.step))
        if isinstance(item, Tensor):
            late.append(item)
            return Dim(None, len(late) - 1)
        return item

    held = [hold(item) for item in index]

    def fetch(item: Any, values: Any) -> Any:
        if isinstance(item, slice):
            return slice(*(fetch(end, values) for end in (item.start, item.stop, item.step)))
        return int(values[item.axis]) if isinstance(item, Dim) else item

    def cut(array: Any, *values: Any) -> Any:
        return array[tuple(fetch(item, values) for item in held)]

    return numpy_call(cut, [x, *late], x.dtype, shape)


# ---- for row in x ----


def _iterate(x: Tensor) -> Iterator[Tensor]:
    known = dims(x)
    if known == ():
        raise TypeError("Cannot iterate over a scalar tensor.")
    if known is None or known[0] is None or (not is_eager(x) and known[0] > UNROLLED):
        raise errors.OperatorNotAllowedInGraphError(
            "Iterating over a symbolic `tf.Tensor` is not allowed: how many elements it has is "
            "only known when it is run")
    if is_eager(x):
        _core.evaluate([x])
    return (x[i] for i in range(known[0]))


# ---- as text ----


def _value_text(x: Tensor, is_repr: bool) -> str:
    value = x.numpy()
    text = _types.value_repr(value) if is_repr else str(value)
    return "\n" + text if "\n" in text else text


def _repr(x: Tensor) -> str:
    if is_eager(x):
        value = _value_text(x, True)
        return f"<tf.Tensor: shape={x.shape}, dtype={x.dtype.name}, numpy={value}>"
    return f"<tf.Tensor '{x.name}' shape={x.shape} dtype={x.dtype.name}>"


def _str(x: Tensor) -> str:
    if is_eager(x):
        return f"tf.Tensor({_value_text(x, False)}, shape={x.shape}, dtype={x.dtype.name})"
    shape = "" if x.shape.rank is None else f", shape={x.shape}"
    return f'Tensor("{x.name}"{shape}, dtype={x.dtype.name})'


def _format(x: Tensor, spec: str) -> str:
    return format(x.numpy(), spec) if is_eager(x) and spec else format(str(x), spec)


# ---- small things ----


class Reference:
    """A tensor as a key: equal to itself alone.

    >>> x = tf.constant(5)
    >>> {x.ref(): 'five'}[x.ref()]
    'five'
    """

    __slots__ = ("_tensor",)

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor

    def deref(self) -> Any:
        """The tensor."""
        return self._tensor

    def __hash__(self) -> int:
        return id(self._tensor)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Reference) and self._tensor is other._tensor

    def __repr__(self) -> str:
        return f"<Reference wrapping {self._tensor!r}>"


def _eval(x: Tensor, feed_dict: Any = None, session: Any = None) -> Any:
    if x.graph is None and not x.is_symbolic:
        raise NotImplementedError("eval is not supported when eager execution is enabled, is "
                                  ".numpy() what you're looking for?")
    if session is None:
        from plimsoll.tf.compat import v1

        session = v1.get_default_session()
    if session is None:
        raise ValueError("Cannot evaluate tensor using `eval()`: No default session is registered. "
                         "Use `with sess.as_default()` or pass an explicit session to "
                         "`eval(session=sess)`")
    return session.run(x, feed_dict)


def _attach() -> None:
    placed = Tensor.__dict__["device"]

    def device(x: Tensor) -> str:
        """Where it is to be computed; '' in a graph: anywhere."""
        return placed.__get__(x) or (_CPU if is_eager(x) else "")

    members = {"__getitem__": _getitem, "__iter__": _iterate, "__repr__": _repr, "__str__": _str,
               "__format__": _format, "eval": _eval, "ref": lambda x: Reference(x),
               "get_shape": lambda x: x.shape, "device": property(device)}
    for name, member in members.items():
        setattr(Tensor, name, member)


_attach()
