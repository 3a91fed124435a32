# SPDX-License-Identifier: Apache-2.0
"""Elements by index and by condition."""
from __future__ import annotations

from builtins import range as span
from typing import Any, NamedTuple, Sequence

from plimsoll import _core
from plimsoll.tf._values import types as _types
from plimsoll.tf._ops.reshape import cast, squeeze
from plimsoll.tf._values.convert import (
    Tensor, axis_in, booleans, dims, invalid, numpy_call, numpy_calls, one_int, pair, rank_of,
    tensor,
)
from plimsoll.tf._ops.creation import zeros

__all__ = [
    "boolean_mask", "dynamic_partition", "dynamic_stitch", "gather", "gather_nd",
    "histogram_fixed_width", "reverse_sequence", "scatter_nd", "tensor_scatter_nd_add",
    "tensor_scatter_nd_max", "tensor_scatter_nd_min", "tensor_scatter_nd_sub",
    "tensor_scatter_nd_update", "unique", "unique_with_counts", "unravel_index", "where",
]

_op = _core.op
_PAST = (1 << 63) - 1  # an index that no axis has


def gather(params: Any, indices: Any, validate_indices: Any = None, axis: Any = None,
           batch_dims: int = 0, name: str | None = None) -> Tensor:
    """The parts of `params` that `indices` name, along an axis.

    >>> tf.gather([10, 20, 30], [2, 0]).numpy().tolist()
    [30, 10]
    """
    x, places = tensor(params), tensor(indices)
    at = one_int(batch_dims if axis is None else axis, "gather: axis")
    if batch_dims == 0:
        return _op("gather", [x, places], {"axis": at}, name)
    return _gather_in_batches(x, places, at, batch_dims, name)


def _gather_in_batches(x: Tensor, places: Tensor, axis: int, n_batch: int,
                       name: str | None) -> Tensor:
    n_axes = rank_of(x, "gather")
    at, n_places = axis_in(axis, n_axes, "gather"), rank_of(places, "gather")
    n_batch = n_batch if n_batch >= 0 else n_batch + n_places
    known, index_dims = dims(x), dims(places)
    if at < n_batch:
        raise ValueError(f"gather: 'batch_dims' ({n_batch}) is more than 'axis' ({at})")
    shape = known[:at] + index_dims[n_batch:] + known[at + 1:]

    def taken(array: Any, index: Any) -> Any:
        import numpy as np

        batch = array.shape[:n_batch]
        if batch != index.shape[:n_batch]:
            invalid(f"gather: the first {n_batch} axes of {list(array.shape)} and "
                    f"{list(index.shape)} differ")
        n_rows = int(np.prod(batch, dtype=np.int64))  # not -1: there may be no elements
        rows = array.reshape((n_rows,) + array.shape[n_batch:])
        which = index.reshape((n_rows,) + index.shape[n_batch:])
        parts = [np.take(row, i, axis=at - n_batch) for row, i in zip(rows, which)]
        whole = array.shape[:at] + index.shape[n_batch:] + array.shape[at + 1:]
        return np.stack(parts).reshape(whole) if parts else np.zeros(whole, array.dtype)

    return numpy_call(taken, [x, places], x.dtype, shape, name)


def gather_nd(params: Any, indices: Any, batch_dims: int = 0, name: str | None = None) -> Tensor:
    """The parts of `params` that the rows of `indices` name: each an index into the first axes.

    >>> tf.gather_nd([[1, 2], [3, 4]], [[0, 0], [1, 1]]).numpy().tolist()
    [1, 4]
    """
    x, places = tensor(params), tensor(indices)
    known, index_dims = dims(x), dims(places)
    if not places.dtype.is_integer:
        invalid(f"gather_nd: indices are whole numbers, and {places.dtype.name} was given")
    if index_dims == ():
        invalid("gather_nd: indices have at least one axis, and a scalar was given")
    if batch_dims or known is None or index_dims is None or index_dims[-1] is None:
        return _gather_nd_in_batches(x, places, batch_dims, name)
    depth = index_dims[-1]
    if depth > len(known):
        invalid(f"gather_nd: indices have {depth} numbers each, and {x.shape} has {len(known)} "
                "axes")
    if depth == 1:
        row = squeeze(cast(places, _types.int64), [-1])
        # gather() counts negative ones from the end; here they are refused.
        row = _op("where", [_core.binary("less", row, 0), _core.convert(_PAST, row.dtype), row])
        return _op("gather", [x, row], {"axis": 0}, name)
    if None in known[:depth]:
        return _gather_nd_in_batches(x, places, 0, name)
    keep = [-1, *span(depth, len(known))]
    flat = _op("reshape", [x], {"shape": [_product(known[:depth])] + [-1] * (len(keep) - 1),
                                "keep": keep})
    return _op("gather", [flat, _flat_places(places, known[:depth])], {"axis": 0}, name)


def _product(numbers: Any) -> int:
    n = 1
    for number in numbers:
        n *= number
    return n


def _flat_places(places: Tensor, lengths: Sequence[int]) -> Tensor:
    """Rows of indices as one number each; past the end if one of them is out of its axis."""
    places = cast(places, _types.int64)
    if not lengths:
        return _op("sum", [places], {"axes": [-1]})
    limits = _core.constant(list(lengths), _types.int64)
    strides = [_product(lengths[i + 1:]) for i in span(len(lengths))]
    flat = _op("sum", [_core.binary("mul", places, _core.constant(strides, _types.int64))],
               {"axes": [-1]})
    inside = _core.binary("logical_and", _core.binary("greater_equal", places, 0),
                          _core.binary("less", places, limits))
    return _op("where", [_op("all", [inside], {"axes": [-1]}), flat,
                         _core.constant(_product(lengths), _types.int64)])


def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """x where the condition is true, else y; without them the indices of true elements.

    >>> tf.where([True, False], [1, 2], 0).numpy().tolist()
    [1, 0]
    >>> tf.where([True, False, True]).numpy().tolist()
    [[0], [2]]
    """
    if (x is None) != (y is None):
        raise ValueError("x and y must both be non-None or both be None.")
    if x is not None:
        return _op("where", [booleans(condition, "where"), *pair(x, y)], None, name)
    condition = tensor(condition)
    known = dims(condition)

    def places(array: Any) -> Any:
        import numpy as np

        return np.argwhere(array)

    shape = [None, None if known is None else len(known)]
    return numpy_call(places, [condition], _types.int64, shape, name)


def _gather_nd_in_batches(x: Tensor, places: Tensor, n: int, name: str | None) -> Tensor:
    def taken(array: Any, index: Any) -> Any:
        import numpy as np

        if not index.ndim or n >= index.ndim or n + index.shape[-1] > array.ndim:
            invalid(f"gather_nd: indices of shape {list(index.shape)} do not name parts of "
                    f"{list(array.shape)} behind {n} batch axes")
        if array.shape[:n] != index.shape[:n]:
            invalid(f"gather_nd: the first {n} axes of {list(array.shape)} and "
                    f"{list(index.shape)} differ")
        sizes = array.shape[n:n + index.shape[-1]]
        if index.size and not ((index >= 0).all() and (index < sizes).all()):
            invalid(f"gather_nd: an index is outside of shape {list(sizes)}")
        grids = np.ogrid[tuple(slice(size) for size in array.shape[:n])]
        spread = [grid.reshape(grid.shape + (1,) * (index.ndim - 1 - n)) for grid in grids]
        if not n and not index.shape[-1]:  # no numbers: the whole, for each row
            return np.broadcast_to(array, index.shape[:-1] + array.shape)
        return array[tuple(spread) + tuple(np.moveaxis(index, -1, 0))]

    known, index_dims = dims(x), dims(places)
    shape = None
    if known is not None and index_dims is not None and index_dims[-1] is not None:
        if known[:n] != index_dims[:n] and None not in known[:n] + index_dims[:n]:
            invalid(f"gather_nd: the first {n} axes of {x.shape} and {places.shape} differ")
        shape = index_dims[:-1] + known[n + index_dims[-1]:]
    return numpy_call(taken, [x, places], x.dtype, shape, name)


def boolean_mask(tensor: Any, mask: Any, axis: Any = None,
                 name: str | None = "boolean_mask") -> Tensor:
    """The elements where the mask is true, along one new axis in place of the mask's.

    >>> tf.boolean_mask([0, 1, 2, 3], [True, False, True, False]).numpy().tolist()
    [0, 2]
    """
    x, chosen = _core.convert(tensor), booleans(mask, "boolean_mask")
    known, chosen_dims = dims(x), dims(chosen)
    at = 0 if axis is None else one_int(axis, "boolean_mask: axis")
    if chosen_dims is None or known is None:
        raise ValueError("Number of mask dimensions must be specified, even if some dimensions are "
                         "None. E.g. shape=[None] is ok, but shape=None is not.")
    if not chosen_dims:
        raise ValueError("mask cannot be scalar.")
    at = at if at >= 0 else at + len(known)
    masked = known[at:at + len(chosen_dims)]
    if len(masked) != len(chosen_dims) or any(
            a is not None and b is not None and a != b for a, b in zip(masked, chosen_dims)):
        raise ValueError(f"Shapes {masked} and {chosen_dims} are incompatible")

    def places(array: Any) -> Any:
        import numpy as np

        return np.flatnonzero(array)

    if len(chosen_dims) > 1:
        keep = list(span(at)) + [-1] + list(span(at + len(chosen_dims), len(known)))
        x = _op("reshape", [x], {"shape": [-1] * len(keep), "keep": keep})
    index = numpy_call(places, [chosen], _types.int64, [None])
    return _op("gather", [x, index], {"axis": at}, name)


class _Unique(NamedTuple):
    y: Tensor
    idx: Tensor


class _UniqueWithCounts(NamedTuple):
    y: Tensor
    idx: Tensor
    count: Tensor


def _unique_arrays(array: Any, dtype: Any) -> tuple[Any, Any, Any]:
    """In the order of their first places, as TensorFlow's; NumPy sorts."""
    import numpy as np

    if array.dtype == object:
        array = array.astype("S") if len(array) else array.astype("S1")
        values, first, back, n = np.unique(array, True, True, True)
        values = values.astype(object)
    else:
        values, first, back, n = np.unique(array, True, True, True)
    order = np.argsort(first, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    number = dtype.as_numpy_dtype
    return values[order], place[back].astype(number), n[order].astype(number)


def unique(x: Any, out_idx: Any = _types.int32, name: str | None = None) -> _Unique:
    """The values of a vector, each once, and for each element where its value is among them.

    >>> y, idx = tf.unique([1, 1, 2, 4, 4, 4, 7, 8, 8])
    >>> y.numpy().tolist(), idx.numpy().tolist()
    ([1, 2, 4, 7, 8], [0, 0, 1, 2, 2, 2, 3, 4, 4])
    """
    return _Unique(*unique_with_counts(x, out_idx, name)[:2])


def unique_with_counts(x: Any, out_idx: Any = _types.int32,
                       name: str | None = None) -> _UniqueWithCounts:
    """The same, and how often each is there.

    >>> tf.unique_with_counts([7, 8, 7]).count.numpy().tolist()
    [2, 1]
    """
    values, dtype = tensor(x), _types.as_dtype(out_idx)
    known = dims(values)
    if known is not None and len(known) != 1:
        invalid(f"unique: a vector is needed, and shape {values.shape} was given")
    length = known[0] if known else None
    return _UniqueWithCounts(*numpy_calls(
        lambda array: _unique_arrays(array, dtype), [values],
        [(values.dtype, [None]), (dtype, [length]), (dtype, [None])], name))


_shape = dims  # where an argument has that name


def unravel_index(indices: Any, dims: Any, name: str | None = None) -> Tensor:
    """Flat indices as indices along each axis.

    >>> tf.unravel_index([2, 5, 7], [3, 3]).numpy().tolist()
    [[0, 1, 2], [2, 2, 1]]
    """
    def unravelled(index: Any, shape: Any) -> Any:
        import numpy as np

        return np.array(np.unravel_index(index, tuple(shape)), index.dtype)

    places, sizes = tensor(indices), tensor(dims)
    of_places, of_sizes = _shape(places), _shape(sizes)
    shape = None if of_places is None or not of_sizes else of_sizes[:1] + of_places
    return numpy_call(unravelled, [places, sizes], places.dtype, shape, name)


def dynamic_partition(data: Any, partitions: Any, num_partitions: int,
                      name: str | None = None) -> list[Tensor]:
    """The parts of `data` by the number that each has.

    >>> [part.numpy().tolist() for part in tf.dynamic_partition([1, 2, 3], [1, 0, 1], 2)]
    [[2], [1, 3]]
    """
    x, which = tensor(data), tensor(partitions)
    known, of_which = dims(x), dims(which)

    def parts(array: Any, numbers: Any) -> Any:
        if numbers.size and not ((numbers >= 0) & (numbers < num_partitions)).all():
            invalid(f"dynamic_partition: a partition is not one of {num_partitions}")
        return [array[numbers == i] for i in span(num_partitions)]

    shape = None
    if known is not None and of_which is not None:
        shape = (None,) + known[len(of_which):]
    return numpy_calls(parts, [x, which], [(x.dtype, shape)] * num_partitions, name)


def dynamic_stitch(indices: Sequence[Any], data: Sequence[Any], name: str | None = None) -> Tensor:
    """Its inverse: parts where their indices say; the last wins.

    >>> tf.dynamic_stitch([[1], [0, 2]], [[2], [1, 3]]).numpy().tolist()
    [1, 2, 3]
    """
    places, values = [tensor(i) for i in indices], [tensor(d) for d in data]
    n = len(places)

    def stitched(*arrays: Any) -> Any:
        import numpy as np

        size = max((int(i.max()) + 1 for i in arrays[:n] if i.size), default=0)
        rest = arrays[n].shape[arrays[0].ndim:]
        out = np.zeros((size,) + rest, arrays[n].dtype)
        for i, part in zip(arrays[:n], arrays[n:]):
            out[i] = part
        return out

    of_places, of_values = _shape(places[0]), _shape(values[0])
    shape = None if of_places is None or of_values is None else \
        (None,) + of_values[len(of_places):]
    return numpy_call(stitched, places + values, values[0].dtype, shape, name)


def reverse_sequence(input: Any, seq_lengths: Any, seq_axis: int | None = None,
                     batch_axis: int | None = None, name: str | None = None) -> Tensor:
    """The first so many elements of each row backwards.

    >>> tf.reverse_sequence([[1, 2, 3], [4, 5, 6]], [2, 3], seq_axis=1).numpy().tolist()
    [[2, 1, 3], [6, 5, 4]]
    """
    x, along, rows = tensor(input), seq_axis or 0, batch_axis or 0

    def turned(array: Any, lengths: Any) -> Any:
        import numpy as np

        out = np.moveaxis(array.copy(), (rows, along), (0, 1))
        if lengths.shape != out.shape[:1]:
            invalid(f"reverse_sequence: {lengths.size} lengths for {len(out)} rows")
        for row, n in zip(out, lengths):
            if n > len(row):
                invalid(f"reverse_sequence: {n} elements of a row of {len(row)}")
            row[:n] = row[:n][::-1].copy()
        return np.moveaxis(out, (0, 1), (rows, along))

    return numpy_call(turned, [x, tensor(seq_lengths)], x.dtype, dims(x), name)


def histogram_fixed_width(values: Any, value_range: Any, nbins: int = 100,
                          dtype: Any = _types.int32, name: str | None = None) -> Tensor:
    """How many lie in each of equal parts of a range; those outside go to its ends.

    >>> tf.histogram_fixed_width([-1.0, 0.0, 1.5, 2.0, 5.0, 15.0], [0.0, 5.0], 5).numpy().tolist()
    [2, 1, 1, 0, 2]
    """
    out = _types.as_dtype(dtype)

    def counted(array: Any, ends: Any) -> Any:
        import numpy as np

        if not ends[0] < ends[1]:
            invalid(f"histogram_fixed_width: the range {ends.tolist()} is empty")
        place = np.floor((array.ravel() - ends[0]) / (ends[1] - ends[0]) * nbins)
        place = np.clip(place, 0, nbins - 1).astype(np.int64)
        return np.bincount(place, minlength=nbins).astype(out.as_numpy_dtype)

    return numpy_call(counted, [tensor(values), tensor(value_range)], out, [nbins], name)


# ---- scattered ----


def scatter_nd(indices: Any, updates: Any, shape: Any, name: str | None = None) -> Tensor:
    """Zeros, to which `updates` are added where `indices` say.

    >>> tf.scatter_nd([[1], [3]], [9, 10], [5]).numpy().tolist()
    [0, 9, 0, 10, 0]
    """
    values = tensor(updates)
    return tensor_scatter_nd_add(zeros(shape, values.dtype), indices, values, name)


def _scatter(method: str | None):
    def scatter(tensor: Any, indices: Any, updates: Any, name: str | None = None) -> Tensor:
        def placed(array: Any, places: Any, values: Any) -> Any:
            import numpy as np

            out = array.copy()
            shape = array.shape[:places.shape[-1]]
            if places.size and not ((places >= 0).all() and (places < shape).all()):
                invalid(f"an index in 'indices' is outside of shape {list(shape)}")
            where_ = tuple(np.moveaxis(places, -1, 0))
            if method is None:
                out[where_] = values
            else:
                getattr(np, method).at(out, where_, values)
            return out

        x = _core.convert(tensor)
        values = _core.convert(updates, x.dtype)
        return numpy_call(placed, [x, _core.convert(indices), values], x.dtype, dims(x), name)

    return scatter


def _named(function: Any, name: str, doc: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


tensor_scatter_nd_update = _named(_scatter(None), "tensor_scatter_nd_update", """A copy with \
`updates` where `indices` say.

    >>> tf.tensor_scatter_nd_update([0, 0, 0], [[1]], [5]).numpy().tolist()
    [0, 5, 0]
    """)
tensor_scatter_nd_add = _named(_scatter("add"), "tensor_scatter_nd_add", """A copy to which \
`updates` are added where `indices` say.

    >>> tf.tensor_scatter_nd_add([1, 1], [[1], [1]], [5, 6]).numpy().tolist()
    [1, 12]
    """)
tensor_scatter_nd_sub = _named(_scatter("subtract"), "tensor_scatter_nd_sub", """A copy from which \
`updates` are taken where `indices` say.

    >>> tf.tensor_scatter_nd_sub([1, 1], [[1]], [5]).numpy().tolist()
    [1, -4]
    """)
tensor_scatter_nd_max = _named(_scatter("maximum"), "tensor_scatter_nd_max", """The larger of both \
where `indices` say.

    >>> tf.tensor_scatter_nd_max([0, 0, 0], [[1]], [5]).numpy().tolist()
    [0, 5, 0]
    """)
tensor_scatter_nd_min = _named(_scatter("minimum"), "tensor_scatter_nd_min", """The smaller of \
both where `indices` say.

    >>> tf.tensor_scatter_nd_min([0, 0, 0], [[1]], [-5]).numpy().tolist()
    [0, -5, 0]
    """)
