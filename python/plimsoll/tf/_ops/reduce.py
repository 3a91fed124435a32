# SPDX-License-Identifier: Apache-2.0
"""Along axes: reductions, running sums, order, and products of matrices.

The library sums integers in 64 bits and takes their mean in float64; TensorFlow keeps the dtype, so
results are cast back.
"""
from __future__ import annotations

from builtins import range as span
from typing import Any, Callable, NamedTuple

from plimsoll import _core
from plimsoll.tf._values import types as _types
from plimsoll.tf._ops.reshape import cast, dim_tensor, expand_dims, reshape, squeeze, transpose
from plimsoll.tf._values.convert import (
    Dim, Tensor, axes_of, axis_in, booleans, dims, floats, invalid, numpy_call, one_int, pair, rank_of, static,
    tensor,
)
from plimsoll.tf._ops.elementwise import named

__all__ = [
    "argmax", "argmin", "argsort", "cumsum", "einsum", "matmul", "norm", "reduce_all", "reduce_any",
    "reduce_logsumexp", "reduce_max", "reduce_mean", "reduce_min", "reduce_prod", "reduce_sum",
    "searchsorted", "sort", "tensordot",
]

_op = _core.op


# ---- reductions ----


def _reduced(op: str, x: Tensor, axis: Any, keepdims: bool, name: str | None) -> Tensor:
    """With the dtype of the input."""
    attrs: dict[str, Any] = {"keepdims": True} if keepdims else {}
    axes = axes_of(axis, op)
    if axes is not None:
        attrs["axes"] = axes
    out = _op(op, [x], attrs or None, name)
    if out.dtype == x.dtype:
        return out
    if op == "mean" and _may_be_empty(x):
        # The mean of no integers is NaN, which no integer is: 0, as in TensorFlow.
        out = _op("where", [_core.unary("is_nan", out), _core.convert(0, out.dtype), out])
    return _op("cast", [out], {"dtype": x.dtype})


def _may_be_empty(x: Tensor) -> bool:
    known = x.shape._dims
    return known is None or not all(known)


def _reduction(name: str, op: str, doc: str, example: str,
               convert: Callable[[Any, str], Tensor]) -> Callable[..., Tensor]:
    def function(input_tensor: Any, axis: Any = None, keepdims: bool = False,
                 name: str | None = None) -> Tensor:
        return _reduced(op, convert(input_tensor, op), axis, keepdims, name)

    return named(function, name, doc, example, __name__)


def _numbers(value: Any, op: str) -> Tensor:
    x = value if type(value) is Tensor else tensor(value)
    if x.dtype == _types.bool or x.dtype == _types.string:
        invalid(f"reduce_{op}: numbers are needed, and {x.dtype.name} was given")
    return x


def _real(value: Any, op: str) -> Tensor:
    x = tensor(value)
    if not x.dtype.is_floating:
        raise TypeError(f"reduce_{op}: input must be either real or complex, and is {x.dtype!r}")
    return x


_WHICH = " Over these axes, or all."
reduce_sum = _reduction("reduce_sum", "sum", "The sum." + _WHICH,
                        "reduce_sum([[1, 1, 1], [1, 1, 1]], 0) => [2, 2, 2]", _numbers)
reduce_prod = _reduction("reduce_prod", "prod", "The product." + _WHICH,
                         "reduce_prod([[1, 2], [3, 4]], 1) => [2, 12]", _numbers)
reduce_mean = _reduction("reduce_mean", "mean", "The mean; of integers without its fraction." +
                         _WHICH, "reduce_mean([[1.0, 1.0], [2.0, 2.0]], 1) => [1.0, 2.0]", _numbers)
reduce_max = _reduction("reduce_max", "max", "The largest." + _WHICH,
                        "reduce_max([[1, 5], [4, 2]], 0) => [4, 5]", _numbers)
reduce_min = _reduction("reduce_min", "min", "The smallest." + _WHICH,
                        "reduce_min([[1, 5], [4, 2]], 0) => [1, 2]", _numbers)
reduce_any = _reduction("reduce_any", "any", "Is one of them true?" + _WHICH,
                        "reduce_any([[True, False], [False, False]], 1) => [True, False]", booleans)
reduce_all = _reduction("reduce_all", "all", "Are all of them true?" + _WHICH,
                        "reduce_all([[True, True], [False, True]], 1) => [True, False]", booleans)
reduce_logsumexp = _reduction("reduce_logsumexp", "logsumexp",
                              "log(sum(exp(x))), without overflow." + _WHICH,
                              "reduce_logsumexp([[0.0]], 1) => [0.0]", _real)
reduce_variance = _reduction("reduce_variance", "variance",
                             "The mean square distance from the mean." + _WHICH,
                             "math.reduce_variance([[1.0, 2.0], [3.0, 4.0]], 0) => [1.0, 1.0]",
                             _real)


def reduce_std(input_tensor: Any, axis: Any = None, keepdims: bool = False,
               name: str | None = None) -> Tensor:
    """The standard deviation.

    >>> tf.math.reduce_std([[1.0, 2.0], [3.0, 4.0]], 0).numpy().tolist()
    [1.0, 1.0]
    """
    return _core.unary("sqrt", reduce_variance(input_tensor, axis, keepdims), name)


def widened(x: Tensor) -> Tensor:
    """float16 and bfloat16 as float32, in which squares neither overflow nor vanish."""
    return cast(x, _types.float32) if x.dtype in (_types.float16, _types.bfloat16) else x


def root_of_squares(x: Tensor, axis: Any = None, keepdims: bool = False,
                    name: str | None = None) -> Tensor:
    """The square root of the sum of squares."""
    squares = reduce_sum(_core.unary("square", widened(x)), axis, keepdims)
    return cast(_core.unary("sqrt", squares), x.dtype, name)


def reduce_euclidean_norm(input_tensor: Any, axis: Any = None, keepdims: bool = False,
                          name: str | None = None) -> Tensor:
    """The square root of the sum of squares.

    >>> tf.math.reduce_euclidean_norm([3.0, 4.0]).numpy().tolist()
    5.0
    """
    x = tensor(input_tensor)
    wide = x if x.dtype.is_floating else cast(x, _types.float64)
    return cast(root_of_squares(wide, axis, keepdims), x.dtype, name)


def count_nonzero(input: Any, axis: Any = None, keepdims: bool | None = None,
                  dtype: Any = _types.int64, name: str | None = None) -> Tensor:
    """How many are not 0, or no empty text.

    >>> tf.math.count_nonzero([0, 3, 0, 5]).numpy().tolist()
    2
    """
    x = tensor(input)
    none = b"" if x.dtype == _types.string else (False if x.dtype == _types.bool else 0)
    there = _core.binary("not_equal", x, _core.convert(none, x.dtype))
    attrs: dict[str, Any] = {"keepdims": bool(keepdims)}
    axes = axes_of(axis, "count_nonzero")
    if axes is not None:
        attrs["axes"] = axes
    return cast(_op("sum", [there], attrs), dtype, name)


def _placed(name: str, doc: str, example: str) -> Callable[..., Tensor]:
    def function(input: Any, axis: Any = None, output_type: Any = _types.int64,
                 name: str | None = None) -> Tensor:
        at = 0 if axis is None else one_int(axis, f"{op}: axis")
        out = _op(op, [tensor(input)], {"axis": at}, name)
        return cast(out, output_type)

    op = name
    return named(function, name, doc, example, __name__)


argmax = _placed("argmax", "Where the first largest is, along an axis (the first).",
                 "argmax([[1, 9], [7, 3]], 1) => [1, 0]")
argmin = _placed("argmin", "Where the first smallest is, along an axis (the first).",
                 "argmin([[1, 9], [7, 3]], 1) => [0, 1]")


# ---- running ----


def cumsum(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False,
           name: str | None = None) -> Tensor:
    """The sum of the elements up to this one.

    >>> tf.cumsum([2, 4, 6, 8]).numpy().tolist()
    [2, 6, 12, 20]
    """
    x = tensor(x)
    attrs = {"axis": one_int(axis, "cumsum: axis"), "exclusive": exclusive, "reverse": reverse}
    return cast(_op("cumsum", [x], attrs, name), x.dtype)


def _running(start: float, accumulate: str, name: str, doc: str, example: str) -> Any:
    def function(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False,
                 name: str | None = None) -> Tensor:
        x = tensor(x)
        at = one_int(axis, "axis")

        def along(array: Any) -> Any:
            import numpy as np

            line = np.moveaxis(array, at, 0)
            line = line[::-1] if reverse else line
            if exclusive:
                first = np.full_like(line[:1], start)
                line = np.concatenate([first, line[:-1]])
            line = getattr(np, accumulate).accumulate(line, axis=0, dtype=array.dtype)
            return np.moveaxis(line[::-1] if reverse else line, 0, at)

        return numpy_call(along, [x], x.dtype, dims(x), name)

    return named(function, name, doc, example, __name__)


cumprod = _running(1, "multiply", "cumprod", "The product of what is before, and of the element.",
                   "math.cumprod([2, 3, 4]) => [2, 6, 24]")
cumulative_logsumexp = _running(float("-inf"), "logaddexp", "cumulative_logsumexp",
                                "log(cumsum(exp(x))), without overflow.",
                                "math.cumulative_logsumexp([0.0]) => [0.0]")


# ---- in order ----


def _descending(direction: str) -> bool:
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ValueError(f"direction is '{direction}': 'ASCENDING' or 'DESCENDING'")
    return direction == "DESCENDING"


def sort(values: Any, axis: int = -1, direction: str = "ASCENDING",
         name: str | None = None) -> Tensor:
    """In order.

    >>> tf.sort([1, 10, 26, 3], direction='DESCENDING').numpy().tolist()
    [26, 10, 3, 1]
    """
    attrs = {"axis": one_int(axis, "sort: axis"), "descending": _descending(direction)}
    return _op("sort", [tensor(values)], attrs, name)


def argsort(values: Any, axis: int = -1, direction: str = "ASCENDING", stable: bool = False,
            name: str | None = None) -> Tensor:
    """Where the elements of sort() come from; int32. Always stable.

    >>> tf.argsort([1, 10, 26, 3]).numpy().tolist()
    [0, 3, 1, 2]
    """
    attrs = {"axis": one_int(axis, "argsort: axis"), "descending": _descending(direction)}
    return cast(_op("argsort", [tensor(values)], attrs, name), _types.int32)


class TopKV2(NamedTuple):
    """The result of top_k()."""

    values: Tensor
    indices: Tensor


def top_k(input: Any, k: Any = 1, sorted: bool = True, index_type: Any = _types.int32,
          name: str | None = None) -> TopKV2:
    """The k largest along the last axis, largest first, and where they are.

    >>> tf.math.top_k([1, 2, 98, 1, 1, 99, 3], k=3).values.numpy().tolist()
    [99, 98, 3]
    """
    x, n = tensor(input), one_int(k, "math.top_k: k")
    places = cast(_op("top_k_indices", [x], {"k": n}), index_type)
    return TopKV2(_op("top_k_values", [x], {"k": n}, name), places)


def in_top_k(targets: Any, predictions: Any, k: Any, name: str | None = None) -> Tensor:
    """Is the target's prediction among the k largest of its row?

    >>> tf.math.in_top_k([1, 0], [[0.1, 0.9], [0.1, 0.9]], 1).numpy().tolist()
    [True, False]
    """
    def among(which: Any, scores: Any) -> Any:
        import numpy as np

        inside = (which >= 0) & (which < scores.shape[1])
        own = scores[np.arange(len(which)), np.where(inside, which, 0)]
        return inside & np.isfinite(own) & ((scores > own[:, None]).sum(1) < n)

    n, which = one_int(k, "math.in_top_k: k"), tensor(targets)
    return numpy_call(among, [which, predictions], _types.bool, dims(which), name)


def searchsorted(sorted_sequence: Any, values: Any, side: str = "left",
                 out_type: Any = _types.int32, name: str | None = None) -> Tensor:
    """Where values would have to stand in rows that are in order.

    >>> tf.searchsorted([1, 3, 5, 7], [0, 3, 8]).numpy().tolist()
    [0, 1, 4]
    """
    if side not in ("left", "right"):
        raise ValueError(f"side is '{side}': 'left' or 'right'")
    rows, wanted = pair(sorted_sequence, values)
    dtype = _types.as_dtype(out_type)

    def places(array: Any, keys: Any) -> Any:
        import numpy as np

        if array.shape[:-1] != keys.shape[:-1]:
            invalid(f"searchsorted: shapes {list(array.shape)} and {list(keys.shape)} differ before "
                    "the last axis")
        found = np.empty(keys.shape, dtype.as_numpy_dtype)
        for row in np.ndindex(array.shape[:-1]):
            found[row] = np.searchsorted(array[row], keys[row], side)
        return found

    return numpy_call(places, [rows, wanted], dtype, dims(wanted), name)


# ---- products ----


def matmul(a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False,
           adjoint_a: bool = False, adjoint_b: bool = False, a_is_sparse: bool = False,
           b_is_sparse: bool = False, output_type: Any = None, grad_a: bool = False,
           grad_b: bool = False, name: str | None = None) -> Tensor:
    """The product of matrices: the last two axes; those before broadcast.

    >>> tf.matmul([[1, 2], [3, 4]], [[1], [1]]).numpy().tolist()
    [[3], [7]]
    """
    if (transpose_a and adjoint_a) or (transpose_b and adjoint_b):
        raise ValueError("Only one of `transpose` and `adjoint` can be True.")
    x, y = pair(a, b)
    attrs = None
    if transpose_a or transpose_b or adjoint_a or adjoint_b:
        attrs = {"transpose_a": transpose_a or adjoint_a, "transpose_b": transpose_b or adjoint_b}
    if output_type is not None:
        x, y = cast(x, output_type), cast(y, output_type)
    return _op("matmul", [x, y], attrs, name)


def matvec(a: Any, b: Any, transpose_a: bool = False, adjoint_a: bool = False,
           a_is_sparse: bool = False, b_is_sparse: bool = False, name: str | None = None) -> Tensor:
    """A matrix times a vector.

    >>> tf.linalg.matvec([[1, 2], [3, 4]], [1, 1]).numpy().tolist()
    [3, 7]
    """
    x, y = pair(a, b)
    return squeeze(matmul(x, expand_dims(y, -1), transpose_a, adjoint_a=adjoint_a), [-1], name)


def _permuted(x: Tensor, order: list[int]) -> Tensor:
    return x if order == list(span(len(order))) else transpose(x, order)


def _flat(x: Tensor, groups: list[list[int]]) -> Tensor:
    """Neighbouring axes of x, merged group by group; a group of none is an axis of 1."""
    known = dims(x)
    wanted: list[Any] = []
    keep: list[int] = []
    for group in groups:
        sizes = [known[i] for i in group]
        product = 1
        for n in sizes:
            product = None if n is None or product is None else product * n
        wanted.append(-1 if product is None else product)
        keep.append(group[0] if len(group) == 1 else -1)
    if all(len(group) == 1 for group in groups):
        return x
    if sum(1 for n, k in zip(wanted, keep) if n < 0 and k < 0) <= 1:
        return _op("reshape", [x], {"shape": wanted, "keep": keep})
    return reshape(x, [_product_of(x, group) for group in groups])


def _product_of(x: Tensor, axes: list[int]) -> Tensor:
    """How many elements these axes have, where only a run tells."""
    product = _core.convert(1, _types.int64)
    for i in axes:
        n = dims(x)[i]
        size = _core.convert(n, _types.int64) if n is not None else dim_tensor(Dim(x, i),
                                                                               _types.int64)
        product = size if len(axes) == 1 else _core.binary("mul", product, size)
    return product


def tensordot(a: Any, b: Any, axes: Any, name: str | None = None) -> Tensor:
    """Sums of products over some axes of both.

    >>> tf.tensordot([[1, 2], [3, 4]], [[1, 0], [0, 1]], axes=1).numpy().tolist()
    [[1, 2], [3, 4]]
    """
    x, y = pair(a, b)
    n, m = rank_of(x, "tensordot"), rank_of(y, "tensordot")
    of_x, of_y = _tensordot_axes(static(axes), n, m)
    for i, j in zip(of_x, of_y):
        left, right = dims(x)[i], dims(y)[j]
        if left != right and None not in (left, right):
            invalid(f"tensordot: axis {i} of {x.shape} and axis {j} of {y.shape} are not the same")
    free_x = [i for i in span(n) if i not in of_x]
    free_y = [j for j in span(m) if j not in of_y]
    return _contracted(x, y, ([], free_x, of_x), ([], free_y, of_y), name)


def _tensordot_axes(axes: Any, n: int, m: int) -> tuple[list[int], list[int]]:
    if isinstance(axes, int):
        if not 0 <= axes <= min(n, m):
            raise ValueError(f"`axes` must be in [0, {min(n, m)}], and is {axes}")
        return list(span(n - axes, n)), list(span(axes))
    if not isinstance(axes, list) or len(axes) != 2:
        raise ValueError("`axes` must be an integer or have length 2")
    of_x, of_y = ([e] if isinstance(e, int) else e for e in axes)
    if len(of_x) != len(of_y):
        raise ValueError(f"Different number of contraction axes `a` and `b`, {len(of_x)} != "
                         f"{len(of_y)}.")
    of_x = [axis_in(i, n, "tensordot") for i in of_x]
    of_y = [axis_in(j, m, "tensordot") for j in of_y]
    if len(set(of_x)) != len(of_x) or len(set(of_y)) != len(of_y):
        invalid(f"tensordot: axes {axes}: each is named once")
    return of_x, of_y


def _contracted(x: Tensor, y: Tensor, of_x: Any, of_y: Any, name: str | None) -> Tensor:
    """One matmul: of_x and of_y have axes that both keep (in one order), own ones, and those that
    are summed. The result has the first, x's own and y's own."""
    batch, own_x, summed_x = of_x
    batch_y, own_y, summed_y = of_y
    n_batch = len(batch)
    sizes = [dims(x)[i] for i in batch + own_x] + [dims(y)[j] for j in own_y]
    left = _permuted(x, batch + own_x + summed_x)
    right = _permuted(y, batch_y + summed_y + own_y)
    ends = n_batch + len(own_x)
    left = _flat(left, [[i] for i in span(n_batch)] + [list(span(n_batch, ends))] +
                 [list(span(ends, ends + len(summed_x)))])
    ends = n_batch + len(summed_y)
    right = _flat(right, [[i] for i in span(n_batch)] + [list(span(n_batch, ends))] +
                  [list(span(ends, ends + len(own_y)))])
    out = _op("matmul", [left, right], None, name)
    if len(own_x) == 1 and len(own_y) == 1:
        return out
    origins = [(x, i) for i in batch + own_x] + [(y, j) for j in own_y]
    return _reshape_product(out, sizes, origins, n_batch, len(own_x), len(own_y))


def _reshape_product(out: Tensor, sizes: list, origins: list, n_batch: int, n_x: int,
                     n_y: int) -> Tensor:
    """The merged axes of a product apart again. What stands alone in the product is kept; of what
    does not, one dimension may be unknown, unless it is what no elements leave."""
    keep = list(span(n_batch))
    keep += [n_batch] if n_x == 1 else [-1] * n_x
    keep += [n_batch + 1] if n_y == 1 else [-1] * n_y
    apart = [n for n, k in zip(sizes, keep) if k < 0]
    if apart.count(None) == 0 or (apart.count(None) == 1 and 0 not in apart):
        wanted = [-1 if n is None or k >= 0 else n for n, k in zip(sizes, keep)]
        return _op("reshape", [out], {"shape": wanted, "keep": keep})
    shape = [_core.convert(n, _types.int64) if n is not None else
             dim_tensor(Dim(*origin), _types.int64) for n, origin in zip(sizes, origins)]
    return reshape(out, shape)


def einsum(equation: str, *inputs: Any, **kwargs: Any) -> Tensor:
    """Sums of products by labels.

    >>> tf.einsum('ij,jk->ik', [[1, 2], [3, 4]], [[1], [1]]).numpy().tolist()
    [[3], [7]]
    """
    from plimsoll.tf._ops.einsum import contract

    return contract(equation, [tensor(x) for x in inputs], kwargs.get("name"))


def norm(tensor: Any, ord: Any = "euclidean", axis: Any = None, keepdims: bool | None = None,
         name: str | None = None) -> Tensor:
    """The norm of vectors (one axis, or all of it) or matrices (two axes).

    >>> tf.norm([3.0, 4.0]).numpy().tolist()
    5.0
    """
    x, keep = floats(tensor), bool(keepdims)
    if ord in ("fro", "euclidean") or (ord == 2 and not isinstance(axis, (list, tuple))):
        return root_of_squares(x, axis, keep, name)
    if isinstance(axis, (list, tuple)) and len(axis) == 2:
        return _matrix_norm(x, ord, list(axis), keep, name)
    size = _core.unary("abs", x)
    if ord == float("inf"):
        return reduce_max(size, axis, keep, name)
    if ord == 1:
        return reduce_sum(size, axis, keep, name)
    if isinstance(ord, str) or ord <= 0:
        raise ValueError(f"'ord' must be a supported vector norm, and is '{ord}'")
    size = widened(size)
    power = _core.convert(ord, size.dtype)
    total = reduce_sum(_core.binary("pow", size, power), axis, keep)
    return cast(_core.binary("pow", total, _core.unary("reciprocal", power)), x.dtype, name)


def _matrix_norm(x: Tensor, ord: Any, axes: list, keep: bool, name: str | None) -> Tensor:
    n_axes = rank_of(x, "norm")
    rows, columns = (axis_in(axis, n_axes, "norm") for axis in axes)
    size = _core.unary("abs", x)
    if ord in (1, float("inf")):
        first, second = (rows, columns) if ord == 1 else (columns, rows)
        total = reduce_sum(size, first, keepdims=True)
        out = reduce_max(total, second, keepdims=True)
        if keep:
            return out
        return squeeze(out, [rows, columns], name)

    def by_numpy(array: Any) -> Any:
        import numpy as np

        return np.linalg.norm(array, ord, (rows, columns), keep).astype(array.dtype)

    if ord != 2:
        raise ValueError("'ord' must be a supported matrix norm in ['euclidean', 'fro', 1, 2, inf]"
                         f", and is '{ord}'")
    shape = [1 if i in (rows, columns) else d for i, d in enumerate(dims(x))
             if keep or i not in (rows, columns)]
    return numpy_call(by_numpy, [x], x.dtype, shape, name)
