# SPDX-License-Identifier: Apache-2.0
"""tf.linalg: matrices. Products are the library's; decompositions are NumPy's, in memory and not
planned: they need the whole matrix at once."""
from __future__ import annotations

from typing import Any, Callable, NamedTuple

from plimsoll import _core
from plimsoll.tf import _not_implemented
from plimsoll.tf._values import types as _types
from plimsoll.tf._ops.reshape import expand_dims, reshape, transpose
from plimsoll.tf._values.convert import (
    Tensor, dims, eager_call, floats, invalid, numpy_call, numpy_calls, one_int, pair, rank_of, static, tensor,
)
from plimsoll.tf._ops.elementwise import global_norm, named  # noqa: F401
from plimsoll.tf._ops.creation import eye  # noqa: F401
from plimsoll.tf._ops.concat_split import pad
from plimsoll.tf._ops.reduce import (  # noqa: F401
    einsum, matmul, matvec, norm, reduce_sum, tensordot,
)
from plimsoll.tf.nn import l2_normalize, normalize  # noqa: F401

__all__ = [
    "adjoint", "band_part", "cholesky", "cross", "det", "diag", "diag_part", "eigh", "eigvalsh",
    "einsum", "eye", "global_norm", "inv", "l2_normalize", "logdet", "lstsq", "matmul",
    "matrix_rank", "matrix_transpose", "matvec", "norm", "normalize", "pinv", "qr", "set_diag",
    "slogdet", "solve", "svd", "tensor_diag", "tensor_diag_part", "tensordot", "trace", "triangular_solve",
]

__getattr__ = _not_implemented.getter("tf.linalg")
_op, _binary = _core.op, _core.binary


# ---- views and diagonals ----


def matrix_transpose(a: Any, name: str | None = "matrix_transpose",
                     conjugate: bool = False) -> Tensor:
    """The last two axes exchanged.

    >>> tf.linalg.matrix_transpose([[1, 2], [3, 4]]).numpy().tolist()
    [[1, 3], [2, 4]]
    """
    x = tensor(a)
    n = rank_of(x, "linalg.matrix_transpose")
    if n < 2:
        raise ValueError(f"Argument `a` should be a (batch) matrix with rank >= 2. Received a with "
                         f"shape {x.shape}")
    return transpose(x, [*range(n - 2), n - 1, n - 2], name=name)


def adjoint(matrix: Any, name: str | None = None) -> Tensor:
    """The same: numbers are real here.

    >>> tf.linalg.adjoint([[1.0, 2.0]]).numpy().tolist()
    [[1.0], [2.0]]
    """
    return matrix_transpose(matrix, name)


def _on_diagonal(rows: int, columns: int, k: int = 0) -> Tensor:
    """True where column - row is k."""
    down = expand_dims(_op("range", (), {"dtype": _types.int64, "stop": rows}), 1)
    across = expand_dims(_op("range", (), {"dtype": _types.int64, "stop": columns}), 0)
    return _binary("equal", _binary("sub", across, down), k)


def _matrix_dims(x: Tensor, op: str) -> tuple[int | None, int | None]:
    """Rows and columns; None where only a run tells."""
    known = dims(x)
    if known is not None and len(known) < 2:
        invalid(f"linalg.{op}: matrices are needed, and shape {list(known)} was given")
    if known is None:
        raise NotImplementedError(f"tf.linalg.{op} of matrices whose rank is not known while a "
                                  "function is traced: say it with set_shape()")
    return known[-2], known[-1]


def _element(value: Any, x: Tensor) -> Tensor:
    """A number as an element of x; 0 and 1 are bools too."""
    if x.dtype == _types.bool and not isinstance(value, Tensor):
        value = bool(value)
    return _core.convert(value, x.dtype)


def diag(diagonal: Any, name: str | None = "diag", k: Any = 0, num_rows: int = -1,
         num_cols: int = -1, padding_value: Any = 0, align: str = "RIGHT_LEFT") -> Tensor:
    """Matrices with these diagonals; k: so far above the main one.

    >>> tf.linalg.diag([1, 2]).numpy().tolist()
    [[1, 0], [0, 2]]
    """
    x, off = tensor(diagonal), one_int(k, "linalg.diag: k")
    known = dims(x)
    if known == ():
        invalid("linalg.diag: a vector is needed, and a scalar was given")
    if known is None or known[-1] is None:
        return eager_call(lambda d: diag(d, None, off, num_rows, num_cols, padding_value), [x],
                          x.dtype, known and known[:-1] + (None, None), name)
    n = known[-1]
    rows = num_rows if num_rows > 0 else n + abs(off)
    columns = num_cols if num_cols > 0 else n + abs(off)
    # A row of the matrix has the element of its own number; below the main one, of a smaller one.
    up, down = max(-off, 0), rows - n - max(-off, 0)
    if down < 0 or columns < n + max(off, 0):
        invalid(f"diag: {n} elements on diagonal {off} do not fit [{rows},{columns}]")
    sides = [[0, 0]] * (len(known) - 1) + [[up, down]]
    column = expand_dims(pad(x, sides), -1)
    return _op("where", [_on_diagonal(rows, columns, off), column,
                         _element(padding_value, x)], None, name)


def diag_part(input: Any, name: str | None = "diag_part", k: Any = 0, padding_value: Any = 0,
              align: str = "RIGHT_LEFT") -> Tensor:
    """The diagonals of matrices; k: so far above the main one.

    >>> tf.linalg.diag_part([[1, 2], [3, 4]]).numpy().tolist()
    [1, 4]
    """
    x, off = tensor(input), one_int(k, "linalg.diag_part: k")
    rows, columns = _matrix_dims(x, "diag_part")
    if rows is None or columns is None:
        return eager_call(lambda m: diag_part(m, None, off), [x], x.dtype, dims(x)[:-2] + (None,),
                          name)
    n = min(rows - max(-off, 0), columns - max(off, 0))
    if n < 0 or (n == 0 and off):
        invalid(f"diag_part: [{rows},{columns}] has no diagonal {off}")
    start = max(-off, 0) * columns + max(off, 0)
    places = _op("range", (), {"dtype": _types.int64, "start": start,
                               "stop": start + n * (columns + 1), "step": columns + 1})
    n_axes = len(dims(x))
    keep = [*range(n_axes - 2), -1]
    flat = _op("reshape", [x], {"shape": [-1] * (n_axes - 2) + [rows * columns], "keep": keep})
    return _op("gather", [flat, places], {"axis": n_axes - 2}, name)


def set_diag(input: Any, diagonal: Any, name: str | None = "set_diag", k: Any = 0,
             align: str = "RIGHT_LEFT") -> Tensor:
    """Matrices with other diagonals.

    >>> tf.linalg.set_diag([[7, 7], [7, 7]], [1, 2]).numpy().tolist()
    [[1, 7], [7, 2]]
    """
    x, off = tensor(input), one_int(k, "linalg.set_diag: k")
    rows, columns = _matrix_dims(x, "set_diag")
    values = _core.convert(diagonal, x.dtype)
    known, of_values = dims(x), dims(values)
    if None in known or of_values is None or None in of_values:
        return eager_call(lambda m, d: set_diag(m, d, None, off), [x, values], x.dtype, known, name)
    n = min(rows - max(-off, 0), columns - max(off, 0))
    if n < 0 or (n == 0 and off):
        invalid(f"set_diag: [{rows},{columns}] has no diagonal {off}")
    if of_values != known[:-2] + (n,):
        invalid(f"set_diag: diagonal {off} of {list(known)} is {list(known[:-2] + (n,))}, and shape "
                f"{list(of_values)} was given")
    new = diag(values, k=off, num_rows=rows, num_cols=columns)
    return _op("where", [_on_diagonal(rows, columns, off), new, x], None, name)


def tensor_diag(diagonal: Any, name: str | None = None) -> Tensor:
    """A diagonal tensor: of a vector, a matrix.

    >>> tf.linalg.tensor_diag([1, 2]).numpy().tolist()
    [[1, 0], [0, 2]]
    """
    x = tensor(diagonal)
    known = list(dims(x) or [None])
    if None in known:
        return eager_call(tensor_diag, [x], x.dtype, dims(x) and known + known, name)
    return reshape(diag(reshape(x, [-1])), known + known, name)


def tensor_diag_part(input: Any, name: str | None = None) -> Tensor:
    """Its inverse.

    >>> tf.linalg.tensor_diag_part([[1, 0], [0, 2]]).numpy().tolist()
    [1, 2]
    """
    x = tensor(input)
    known = list(dims(x) or [None])
    half = len(known) // 2
    if None in known:
        return eager_call(tensor_diag_part, [x], x.dtype, dims(x) and known[:half], name)
    if known[:half] != known[half:]:
        invalid(f"tensor_diag_part: {x.shape} is not one shape twice")
    n = 1
    for d in known[:half]:
        n *= d
    return reshape(diag_part(reshape(x, [n, n])), known[:half], name)


def band_part(input: Any, num_lower: Any, num_upper: Any, name: str | None = None) -> Tensor:
    """Zeros further from the diagonal; -1: none on that side.

    >>> tf.linalg.band_part([[1, 2], [3, 4]], 0, -1).numpy().tolist()
    [[1, 2], [0, 4]]
    """
    x = tensor(input)
    rows, columns = _matrix_dims(x, "band_part")
    lower, upper = one_int(num_lower, "linalg.band_part"), one_int(num_upper, "linalg.band_part")
    if rows is None or columns is None:
        return eager_call(lambda m: band_part(m, lower, upper), [x], x.dtype, dims(x), name)
    down = expand_dims(_op("range", (), {"dtype": _types.int64, "stop": rows}), 1)
    across = expand_dims(_op("range", (), {"dtype": _types.int64, "stop": columns}), 0)
    off = _binary("sub", across, down)
    inside = _binary("logical_and",
                     _binary("greater_equal", off, -lower if lower >= 0 else -rows),
                     _binary("less_equal", off, upper if upper >= 0 else columns))
    return _op("where", [inside, x, _element(0, x)], None, name)


def trace(x: Any, name: str | None = None) -> Tensor:
    """The sum of the diagonal.

    >>> tf.linalg.trace([[1, 2], [3, 4]]).numpy().tolist()
    5
    """
    return reduce_sum(diag_part(x), [-1], name=name)


def cross(a: Any, b: Any, name: str | None = None) -> Tensor:
    """The cross product of vectors of three.

    >>> tf.linalg.cross([1, 0, 0], [0, 1, 0]).numpy().tolist()
    [0, 0, 1]
    """
    x, y = pair(a, b)
    x1, y1 = x[..., 1:], y[..., 1:]
    first = [x1[..., :1], x1[..., 1:], x[..., :1]]
    second = [y1[..., 1:], y[..., :1], y1[..., :1]]
    third = [x1[..., 1:], x[..., :1], x1[..., :1]]
    fourth = [y1[..., :1], y1[..., 1:], y[..., :1]]
    parts = [_binary("sub", _binary("mul", p, q), _binary("mul", r, s))
             for p, q, r, s in zip(first, second, third, fourth)]
    return _op("concat", parts, {"axis": -1}, name)


# ---- NumPy's ----


def _like_matrix(known: Any) -> Any:
    return known


def _numpy(name: str, function: str, result: Callable[[Any], Any], doc: str, example: str,
           before: Callable[[Any], Any] = lambda array: array) -> Callable[..., Tensor]:
    def call(input: Any, name: str | None = None) -> Tensor:
        def run(array: Any) -> Any:
            import numpy as np

            try:
                return getattr(np.linalg, function)(before(array)).astype(array.dtype)
            except np.linalg.LinAlgError as error:
                invalid(f"{function}: {error}: the input is not invertible, or not positive "
                        "definite")

        x = floats(input)
        known = dims(x)
        return numpy_call(run, [x], x.dtype, None if known is None else result(known), name)

    return named(call, name, doc, example, __name__)


det = _numpy("det", "det", lambda d: d[:-2], "Determinants.",
             "linalg.det([[2.0, 0.0], [0.0, 4.0]]) => 8.0")
_inv = _numpy("inv", "inv", _like_matrix, "Inverse matrices.",
              "linalg.inv([[2.0, 0.0], [0.0, 4.0]]) => [[0.5, 0.0], [0.0, 0.25]]")


def inv(input: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """Inverse matrices; with `adjoint`, of the transposed ones.

    >>> tf.linalg.inv([[2.0, 0.0], [0.0, 4.0]]).numpy().tolist()
    [[0.5, 0.0], [0.0, 0.25]]
    """
    return _inv(matrix_transpose(floats(input)) if adjoint else input, name)


def pinv(a: Any, rcond: Any = None, validate_args: bool = False,
         name: str | None = None) -> Tensor:
    """Pseudo-inverses; singular values up to `rcond` times the largest count as 0.

    >>> tf.linalg.pinv([[2.0]]).numpy().tolist()
    [[0.5]]
    """
    def run(array: Any, *share: Any) -> Any:
        import numpy as np

        least = share[0] if share else 10 * max(array.shape[-2:]) * np.finfo(array.dtype).eps
        return np.linalg.pinv(array, least).astype(array.dtype)

    x = floats(a)
    known = dims(x)
    shape = None if known is None else known[:-2] + (known[-1], known[-2])
    given = [] if rcond is None else [_core.convert(rcond, x.dtype)]
    return numpy_call(run, [x, *given], x.dtype, shape, name)


def slogdet(input: Any, name: str | None = None) -> Any:
    """Signs of determinants, and the logarithms of their absolute values.

    >>> [part.numpy().tolist() for part in tf.linalg.slogdet([[-1.0]])]
    [-1.0, 0.0]
    """
    def run(array: Any) -> Any:
        import numpy as np

        return [part.astype(array.dtype) for part in np.linalg.slogdet(array)]

    x = floats(input)
    shape = None if dims(x) is None else dims(x)[:-2]
    return SLogDet(*numpy_calls(run, [x], [(x.dtype, shape)] * 2, name))


class SLogDet(NamedTuple):
    """The result of slogdet()."""

    sign: Any
    log_abs_determinant: Any


cholesky = _numpy("cholesky", "cholesky", _like_matrix, "Lower triangles whose square they are.",
                  "linalg.cholesky([[4.0]]) => [[2.0]]")
_eigvalsh = _numpy("eigvalsh", "eigvalsh", lambda d: d[:-1], "Eigenvalues of symmetric matrices.",
                   "linalg.eigvalsh([[2.0, 0.0], [0.0, 1.0]]) => [1.0, 2.0]")


def eigvalsh(tensor: Any, name: str | None = None) -> Tensor:
    """Eigenvalues of symmetric matrices.

    >>> tf.linalg.eigvalsh([[2.0, 0.0], [0.0, 1.0]]).numpy().tolist()
    [1.0, 2.0]
    """
    return _eigvalsh(tensor, name)


def logdet(matrix: Any, name: str | None = None) -> Tensor:
    """The logarithm of the determinant of a positive definite matrix.

    >>> tf.linalg.logdet([[1.0]]).numpy().tolist()
    0.0
    """
    lower = diag_part(cholesky(matrix))
    return _binary("mul", reduce_sum(_core.unary("log", lower), [-1]), 2, name)


def solve(matrix: Any, rhs: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """Solves matrix @ x = rhs.

    >>> tf.linalg.solve([[2.0]], [[4.0]]).numpy().tolist()
    [[2.0]]
    """
    a, b = pair(floats(matrix), rhs)

    def run(left: Any, right: Any) -> Any:
        import numpy as np

        try:
            return np.linalg.solve(np.swapaxes(left, -1, -2) if adjoint else left, right)
        except np.linalg.LinAlgError as error:
            invalid(f"solve: {error}: Input matrix is not invertible.")

    return numpy_call(run, [a, b], a.dtype, dims(b), name)


def triangular_solve(matrix: Any, rhs: Any, lower: bool = True, adjoint: bool = False,
                     name: str | None = None) -> Tensor:
    """The same for a matrix with one relevant triangle.

    >>> tf.linalg.triangular_solve([[2.0, 9.0], [0.0, 1.0]], [[4.0], [1.0]]).numpy().tolist()
    [[2.0], [1.0]]
    """
    return solve(band_part(floats(matrix), -1 if lower else 0, 0 if lower else -1), rhs, adjoint,
                 name)


def lstsq(matrix: Any, rhs: Any, l2_regularizer: float = 0.0, fast: bool = True,
          name: str | None = None) -> Tensor:
    """The best solution of an overdetermined system, by least squares.

    >>> tf.linalg.lstsq([[2.0]], [[4.0]]).numpy().round(3).tolist()
    [[2.0]]
    """
    a, b = pair(floats(matrix), rhs)
    square = matmul(a, a, transpose_a=True)
    if l2_regularizer:
        ridge = _binary("mul", eye(dims(a)[-1], dtype=a.dtype), l2_regularizer)
        square = _binary("add", square, ridge)
    return solve(square, matmul(a, b, transpose_a=True), name=name)


def _smaller(rows: int | None, columns: int | None) -> int | None:
    return None if rows is None or columns is None else min(rows, columns)


def qr(input: Any, full_matrices: bool = False, name: str | None = None) -> tuple[Tensor, Tensor]:
    """An orthogonal matrix and an upper triangle, whose product the input is.

    >>> q, r = tf.linalg.qr([[2.0]])
    >>> abs(r).numpy().tolist()
    [[2.0]]
    """
    x = floats(input)
    rows, columns = _matrix_dims(x, "qr")
    inner = rows if full_matrices else _smaller(rows, columns)
    batch = dims(x)[:-2]

    def run(array: Any) -> Any:
        import numpy as np

        return np.linalg.qr(array, "complete" if full_matrices else "reduced")

    return tuple(numpy_calls(run, [x], [(x.dtype, batch + (rows, inner)),
                                        (x.dtype, batch + (inner, columns))], name))


def eigh(tensor: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Eigenvalues and eigenvectors of symmetric matrices.

    >>> tf.linalg.eigh([[2.0, 0.0], [0.0, 1.0]])[0].numpy().tolist()
    [1.0, 2.0]
    """
    x = floats(tensor)
    known = dims(x)

    def run(array: Any) -> Any:
        import numpy as np

        return np.linalg.eigh(array)

    return tuple(numpy_calls(run, [x], [(x.dtype, known and known[:-1]), (x.dtype, known)], name))


def svd(tensor: Any, full_matrices: bool = False, compute_uv: bool = True,
        name: str | None = None) -> Any:
    """Singular values, and the matrices before and behind them: s, u, v.

    >>> s, u, v = tf.linalg.svd([[2.0]])
    >>> s.numpy().tolist()
    [2.0]
    """
    x = floats(tensor)
    rows, columns = _matrix_dims(x, "svd")
    batch, inner = dims(x)[:-2], _smaller(rows, columns)

    def values(array: Any) -> Any:
        import numpy as np

        return np.linalg.svd(array, compute_uv=False)

    def run(array: Any) -> Any:
        import numpy as np

        u, s, vh = np.linalg.svd(array, full_matrices)
        return s, u, np.swapaxes(vh, -1, -2)

    if not compute_uv:
        return numpy_call(values, [x], x.dtype, batch + (inner,), name)
    wide = (rows, columns) if full_matrices else (inner, inner)
    return tuple(numpy_calls(run, [x], [(x.dtype, batch + (inner,)),
                                        (x.dtype, batch + (rows, wide[0])),
                                        (x.dtype, batch + (columns, wide[1]))], name))


def matrix_rank(a: Any, tol: Any = None, validate_args: bool = False,
                name: str | None = None) -> Tensor:
    """How many of its rows are independent.

    >>> tf.linalg.matrix_rank([[1.0, 2.0], [2.0, 4.0]]).numpy().tolist()
    1
    """
    x, limit = floats(a), None if tol is None else static(tol)
    known = dims(x)

    def run(array: Any) -> Any:
        import numpy as np

        if array.size == 0:
            return np.zeros(array.shape[:-2], np.int32)
        return np.asarray(np.linalg.matrix_rank(array, limit), np.int32)

    return numpy_call(run, [x], _types.int32, known and known[:-2], name)
