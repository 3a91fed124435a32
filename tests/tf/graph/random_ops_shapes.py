# SPDX-License-Identifier: Apache-2.0
"""Makers of steps that move: shapes, pieces, indices, segments. See random_graphs.py."""
import numpy as np
from random_programs import Unfit, op

import plimsoll.tf as tf

# ---- other axes ----


@op
def reshape(p):
    x = p.anything(texts=True)
    shape = x.array.shape
    way = p.chance.choice(("flat", "merged", "split", "by shape", "by shape and rest"))
    if way == "flat":
        return "reshape([-1])", lambda t: tf.reshape(t, [-1]), [x], x.array.reshape(-1)
    if len(shape) < 2:
        raise Unfit
    if way == "merged":
        at = p.chance.randrange(len(shape) - 1)
        to = shape[:at] + (shape[at] * shape[at + 1],) + shape[at + 2:]
        return f"reshape({to})", lambda t: tf.reshape(t, to), [x], x.array.reshape(to)
    if way == "split":
        to = (1, *shape[1:], shape[0])
        return f"reshape({to})", lambda t: tf.reshape(t, to), [x], x.array.reshape(to)
    if way == "by shape":
        to = shape[1:] + shape[:1]
        return "reshape(rolled shape)", lambda t: tf.reshape(t, tf.roll(tf.shape(t), -1, 0)), [x], \
            x.array.reshape(to)
    if x.array.size == 0:
        raise Unfit  # the rest of nothing cannot be told
    return "reshape([shape[0], -1])", lambda t: tf.reshape(t, [tf.shape(t)[0], -1]), [x], \
        x.array.reshape(shape[0], -1)


@op
def transpose(p):
    x = p.anything(texts=True)
    axes = p.chance.sample(range(x.array.ndim), x.array.ndim)
    if p.chance.random() < 0.2:
        return "transpose", tf.transpose, [x], x.array.T
    return f"transpose({axes})", lambda t: tf.transpose(t, axes), [x], x.array.transpose(axes)


@op
def ones(p):
    """Axes of 1 come and go."""
    x = p.anything(most=5, texts=True)
    if p.chance.random() < 0.5:
        at = p.chance.randint(-x.array.ndim - 1, x.array.ndim)
        return f"expand_dims({at})", lambda t: tf.expand_dims(t, at), [x], np.expand_dims(x.array, at)
    alone = [i for i, n in enumerate(x.array.shape) if n == 1]
    some = p.chance.sample(alone, p.chance.randint(0, len(alone)))
    if not some:
        n = x.array.squeeze().ndim  # with unknown dimensions nobody else can know
        return "squeeze", lambda t: tf.ensure_shape(tf.squeeze(t), [None] * n), [x], x.array.squeeze()
    return f"squeeze({some})", lambda t: tf.squeeze(t, some), [x], x.array.squeeze(tuple(some))


@op
def broadcast_to(p):
    x = p.anything(most=3, texts=True)
    shape = [p.chance.randint(0, 3) if n == 1 else n for n in x.array.shape]
    shape = [p.chance.randint(0, 3) for _ in range(p.chance.randint(0, 2))] + shape
    return f"broadcast_to({shape})", lambda t: tf.broadcast_to(t, shape), [x], np.broadcast_to(x.array, shape)


@op
def like(p):
    """What takes only the shape."""
    x = p.anything(texts=True)
    shape = x.array.shape
    name, function, wanted = p.chance.choice((
        ("zeros_like", tf.zeros_like, np.full(shape, b"", object) if x.kind == "O" else np.zeros_like(x.array)),
        ("shape", tf.shape, np.array(shape, "i4")), ("size", tf.size, np.int32(x.array.size)),
        ("rank", tf.rank, np.int32(x.array.ndim)),
        ("fill", lambda t: tf.fill(tf.shape(t), 7), np.full(shape, 7, "i4")),
        ("zeros", lambda t: tf.zeros(tf.shape(t)[:1]), np.zeros(shape[:1], "f4"))))
    return f"{name} of a shape", function, [x], wanted


# ---- pieces ----


@op
def turned(p):
    x = p.anything(1, texts=True)
    if p.chance.random() < 0.4:
        axes = p.chance.sample(range(x.array.ndim), p.chance.randint(0, x.array.ndim))
        return f"reverse({axes})", lambda t: tf.reverse(t, axes), [x], np.flip(x.array, tuple(axes))
    n = p.chance.randint(1, x.array.ndim)
    axes = [p.axis(x) for _ in range(n)]
    shifts = [p.chance.randint(-9, 9) for _ in range(n)]
    return f"roll({shifts}, {axes})", lambda t: tf.roll(t, shifts, axes), [x], np.roll(x.array, shifts, axes)


@op
def tiled(p):
    x = p.anything(1, 5, texts=True)
    if p.chance.random() < 0.5:
        times = [p.chance.choice((0, 1, 1, 2, 3)) for _ in x.array.shape]
        return f"tile({times})", lambda t: tf.tile(t, times), [x], np.tile(x.array, times)
    times, axis = p.chance.choice((0, 1, 2, 3)), p.axis(x)
    if p.chance.random() < 0.4:
        times = [p.chance.randint(0, 2) for _ in range(x.array.shape[axis])]
    return f"repeat({times if isinstance(times, int) else '...'}, {axis})", \
        lambda t: tf.repeat(t, times, axis), [x], np.repeat(x.array, times, axis)


@op
def padded(p):
    x = p.anything(1)
    how = p.chance.choice(("CONSTANT", "CONSTANT", "REFLECT", "SYMMETRIC"))
    limits = [3 if how == "CONSTANT" else max(n - (how == "REFLECT"), 0) for n in x.array.shape]
    sides = [[p.chance.randint(0, min(n, 2)) if p.chance.random() < 0.6 else 0 for _ in "ab"] for n in limits]
    if how == "CONSTANT":
        if p.chance.random() < 0.5 or x.kind == "b":
            return f"pad({sides})", lambda t: tf.pad(t, sides), [x], np.pad(x.array, sides)
        return f"pad({sides}, 5)", lambda t: tf.pad(t, sides, constant_values=5), [x], \
            np.pad(x.array, sides, constant_values=5)
    return f"pad({sides}, {how})", lambda t: tf.pad(t, sides, how), [x], np.pad(x.array, sides, how.lower())


@op
def together(p):
    x = p.anything(0, 4, texts=True)
    others = [p.pick(lambda v: v.array.dtype == x.array.dtype and v.array.shape == x.array.shape, False, False,
                     texts=True)
              for _ in range(p.chance.randint(0, 2))]
    parts = [x, *others]
    arrays = [part.array for part in parts]
    if x.array.ndim and p.chance.random() < 0.6:
        axis = p.axis(x)
        return f"concat({axis})", lambda *t: tf.concat(list(t), axis), parts, np.concatenate(arrays, axis)
    axis = p.chance.randint(-x.array.ndim - 1, x.array.ndim)
    return f"stack({axis})", lambda *t: tf.stack(list(t), axis), parts, np.stack(arrays, axis)


@op
def apart(p):
    x = p.anything(1, texts=True)
    axis = p.axis(x)
    n = x.array.shape[axis]
    if p.chance.random() < 0.5 and 0 < n < 20:
        i = p.chance.randrange(n)
        return f"unstack({n}, {axis})[{i}]", lambda t: tf.unstack(t, n, axis)[i], [x], \
            np.take(x.array, i, axis)
    cut = p.chance.randint(0, n)
    return f"split([{cut}, {n - cut}], {axis})[1]", lambda t: tf.split(t, [cut, n - cut], axis)[1], [x], \
        np.split(x.array, [cut], axis)[1]


@op
def box(p):
    x = p.anything(1, texts=True)
    begin = [p.chance.randint(0, n) for n in x.array.shape]
    size = [p.chance.randint(-1, n - b) for n, b in zip(x.array.shape, begin)]
    index = tuple(slice(b, None if n < 0 else b + n) for b, n in zip(begin, size))
    return f"slice({begin}, {size})", lambda t: tf.slice(t, begin, size), [x], x.array[index]


@op
def indexed(p):
    """What Python's brackets take."""
    x = p.anything(1, texts=True)
    index = []
    for n in x.array.shape[:p.chance.randint(1, x.array.ndim)]:
        way = p.chance.random()
        if way < 0.2 and n:
            index.append(p.chance.randrange(-n, n))
        elif way < 0.3:
            index.append(None)
            index.append(slice(None))
        else:
            ends = (None, 0, 1, 2, -1, -2, n, 9, -9)
            index.append(slice(p.chance.choice(ends), p.chance.choice(ends),
                               p.chance.choice((None, None, 1, 2, 3, -1, -2))))
    if p.chance.random() < 0.2:
        index.append(...)
    index = tuple(index)
    return f"[{index}]", lambda t: t[index], [x], x.array[index]


# ---- by index ----


@op
def gathered(p):
    x = p.anything(1, texts=True)
    n_batch = p.chance.randint(0, min(2, x.array.ndim - 1)) if p.chance.random() < 0.4 else 0
    axis = p.chance.randrange(n_batch, x.array.ndim)
    n = x.array.shape[axis]
    shape = x.array.shape[:n_batch] + tuple(p.chance.choice((0, 1, 2, 3)) for _ in range(p.chance.randint(0, 2)))
    if n == 0:
        shape += (0,)
    index = p.numbers.integers(0, max(n, 1), shape)
    if n_batch:
        rows = x.array.reshape((int(np.prod(shape[:n_batch])),) + x.array.shape[n_batch:])
        which = index.reshape((len(rows),) + shape[n_batch:])
        parts = [np.take(row, i, axis - n_batch) for row, i in zip(rows, which)]
        whole = x.array.shape[:axis] + shape[n_batch:] + x.array.shape[axis + 1:]
        wanted = np.array(parts, x.array.dtype).reshape(whole)
    else:
        wanted = np.take(x.array, index, axis)
    return f"gather({list(index.shape)}, {axis}, {n_batch})", \
        lambda t: tf.gather(t, index, axis=axis, batch_dims=n_batch), [x], wanted


@op
def gathered_nd(p):
    x = p.anything(1, texts=True)
    depth = p.chance.randint(1, x.array.ndim)
    rows = tuple(p.chance.choice((0, 1, 2, 3)) for _ in range(p.chance.randint(0, 2)))
    sizes = x.array.shape[:depth]
    if 0 in sizes:
        rows += (0,)
    index = np.stack([p.numbers.integers(0, max(n, 1), rows) for n in sizes], -1)
    return f"gather_nd({list(index.shape)})", lambda t: tf.gather_nd(t, index), [x], \
        x.array[tuple(np.moveaxis(index, -1, 0))]


@op
def scattered(p):
    x = p.numeric(1)
    n = x.array.shape[0]
    index = p.numbers.permutation(n)[:p.chance.randint(0, n)][:, None]
    updates = p.whole((len(index),) + x.array.shape[1:], x.array.dtype.name)
    name, oracle = p.chance.choice((("update", None), ("add", np.add), ("max", np.maximum)))
    wanted = x.array.copy()
    if oracle is None:
        wanted[index[:, 0]] = updates
    else:
        oracle.at(wanted, index[:, 0], updates)
    function = getattr(tf, f"tensor_scatter_nd_{name}")
    return f"tensor_scatter_nd_{name}", lambda t: function(t, index, updates), [x], wanted


@op
def masked(p):
    x = p.anything(1, texts=True)
    mask = p.numbers.random(x.array.shape[:p.chance.randint(1, x.array.ndim)]) < 0.6
    return "boolean_mask", lambda t: tf.boolean_mask(t, mask), [x], x.array[mask]


@op
def places_of_true(p):
    x = p.numeric(1, kinds="b")
    return "where(condition)", tf.where, [x], np.argwhere(x.array)


@op
def hot(p):
    x = p.numeric(kinds="iu")
    if x.array.dtype.name not in ("uint8", "int8", "int32", "int64") or x.array.ndim > 3:
        raise Unfit
    axis = p.chance.randint(-1, x.array.ndim)
    wanted = np.moveaxis(x.array[..., None] == np.arange(4), -1, axis).astype("f4")
    return f"one_hot(4, {axis})", lambda t: tf.one_hot(t, 4, axis=axis), [x], wanted


@op
def segments(p):
    x = p.numeric(1, kinds="iuf")
    n = x.array.shape[0]
    ids = np.sort(p.numbers.integers(0, 4, n))
    name, how, start = p.chance.choice((("sum", np.add, 0), ("prod", np.multiply, 1),
                                        ("max", np.maximum, None), ("min", np.minimum, None)))
    if name == "prod" and x.kind == "f":
        raise Unfit
    wanted = np.zeros((int(ids.max(initial=-1)) + 1,) + x.array.shape[1:], x.array.dtype)
    for i in range(len(wanted)):
        rows = x.array[ids == i]
        if name == "prod" and not len(rows):
            wanted[i] = 1
        elif len(rows):
            wanted[i] = how.reduce(rows, 0, x.array.dtype)
    function = getattr(tf.math, f"segment_{name}")
    return f"segment_{name}", lambda t: function(t, ids), [x], wanted


@op
def counted(p):
    x = p.numeric(kinds="iu")
    if x.array.size and (x.array.min() < 0 or x.array.max() > 50) or x.array.ndim < 1:
        raise Unfit
    least, most = p.chance.choice((None, 0, 3, 20)), p.chance.choice((None, 0, 3, 20))
    flat = x.array.ravel().astype("i8")
    n = max(least or 0, int(flat.max(initial=-1)) + 1)
    n = n if most is None else min(n, most)
    wanted = np.bincount(flat[flat < n], minlength=n)[:n].astype("i4")
    return f"bincount({least}, {most})", \
        lambda t: tf.math.bincount(tf.cast(t, tf.int32), minlength=least, maxlength=most), [x], wanted


@op
def searched(p):
    x = p.numeric(1, kinds="if")
    keys = p.whole(x.array.shape[:-1] + (3,), x.array.dtype.name)
    rows, side = np.sort(x.array, -1), p.chance.choice(("left", "right"))
    wanted = np.zeros(keys.shape, "i4")
    for row in np.ndindex(keys.shape[:-1]):
        wanted[row] = np.searchsorted(rows[row], keys[row], side)
    return f"searchsorted({side})", lambda t: tf.searchsorted(tf.sort(t), keys, side), [x], wanted


@op
def unique(p):
    x = p.pick(lambda v: v.array.ndim == 1 and v.kind in "iu")
    values, first = np.unique(x.array, return_index=True)
    return "unique", lambda t: tf.unique(t)[0], [x], values[np.argsort(first)]


@op
def sequences_reversed(p):
    x = p.anything(2)
    lengths = p.numbers.integers(0, x.array.shape[1] + 1, x.array.shape[0])
    wanted = x.array.copy()
    for row, n in zip(wanted, lengths):
        row[:n] = row[:n][::-1].copy()
    return "reverse_sequence", lambda t: tf.reverse_sequence(t, lengths, 1, 0), [x], wanted


# ---- matrices ----


@op
def diagonals(p):
    x = p.anything(2, 4)
    rows, columns = x.array.shape[-2:]
    way = p.chance.choice(("part", "band", "set", "diag", "trace"))
    if way == "part":
        k = p.chance.randint(1 - rows, columns - 1) if rows and columns else 0
        return f"diag_part({k})", lambda t: tf.linalg.diag_part(t, k=k), [x], \
            np.diagonal(x.array, k, -2, -1)
    if way == "band":
        lower, upper = p.chance.randint(-1, 3), p.chance.randint(-1, 3)
        off = np.arange(columns) - np.arange(rows)[:, None]
        inside = ((lower < 0) | (off >= -lower)) & ((upper < 0) | (off <= upper))
        return f"band_part({lower}, {upper})", lambda t: tf.linalg.band_part(t, lower, upper), [x], \
            np.where(inside, x.array, x.array.dtype.type(0))
    if way == "diag":
        if not x.is_finite or x.array.size * columns > 4 * p.most:
            raise Unfit
        line = x.array[..., None] * np.eye(columns, dtype=x.array.dtype)
        return "diag", tf.linalg.diag, [x], line
    if way == "trace" and x.kind != "b" and x.is_finite and not x.near:
        return "trace", tf.linalg.trace, [x], np.trace(x.array, 0, -2, -1, x.array.dtype)
    new = p.whole(x.array.shape[:-2] + (min(rows, columns),), x.array.dtype.name)
    wanted = x.array.copy()
    i = np.arange(min(rows, columns))
    wanted[..., i, i] = new
    return "set_diag", lambda t: tf.linalg.set_diag(t, new), [x], wanted


# ---- cut by number and put together ----


@op
def partitioned(p):
    """Cut into parts, and stitched again in another order."""
    x = p.anything(1)
    n = x.array.shape[0]
    which = p.numbers.integers(0, 3, n)
    if p.chance.random() < 0.5:
        i = p.chance.randrange(3)
        return f"dynamic_partition[{i}]", lambda t: tf.dynamic_partition(t, which, 3)[i], [x], \
            x.array[which == i]
    places = [np.flatnonzero(which == i)[::-1].copy() for i in range(3)]
    wanted = np.empty_like(x.array)
    for i, place in enumerate(places):
        wanted[place] = x.array[which == i]
    return "dynamic_stitch", lambda t: tf.dynamic_stitch(places, tf.dynamic_partition(t, which, 3)), [x], \
        wanted


@op
def unsorted(p):
    x = p.numeric(1, kinds="iuf")
    ids, n = p.numbers.integers(-1, 4, x.array.shape[:1]), p.chance.randint(4, 6)
    wanted = np.zeros((n,) + x.array.shape[1:], x.array.dtype)
    kept = ids >= 0
    np.add.at(wanted, ids[kept], x.array[kept])
    return f"unsorted_segment_sum({n})", lambda t: tf.math.unsorted_segment_sum(t, ids, n), [x], wanted


@op
def sequence_mask(p):
    x = p.pick(lambda v: v.array.dtype.name in ("int32", "int64", "uint8") and v.array.ndim < 3)
    if x.array.size and x.array.max() > 20:
        raise Unfit
    n = max(int(x.array.max(initial=0)), 0)
    return "sequence_mask", tf.sequence_mask, [x], np.arange(n) < x.array[..., None].astype("i8")
