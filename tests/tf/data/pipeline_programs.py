# SPDX-License-Identifier: Apache-2.0
"""Random pipelines of tf.data, and a model of them in plain Python lists.
    pipeline  a dataset, the elements that it has in the model, and how it was made, as text
    element   an array, or a tuple of elements
    stage     makes one pipeline of another; Unfit if its elements are not such as it takes
What a shuffle gives is looked at, and is what the model goes on with."""
import itertools

import numpy as np

import plimsoll.tf as tf

Dataset = tf.data.Dataset
MOST = 60  # elements that a stage goes on with
SOURCES, STAGES = [], []


class Unfit(Exception):
    """The stage does not take such elements."""


class Pipeline:
    def __init__(self, dataset, elements, text):
        self.dataset, self.elements, self.text = dataset, list(elements), text


def source(function):
    SOURCES.append(function)
    return function


def stage(function):
    STAGES.append(function)
    return function


def leaves(element):
    if isinstance(element, tuple):
        return [leaf for part in element for leaf in leaves(part)]
    return [element]


def mapped(function, element):
    if isinstance(element, tuple):
        return tuple(mapped(function, part) for part in element)
    return function(element)


def like(element, values):
    """These leaves in the structure of the element."""
    values = iter(values)
    return mapped(lambda _: next(values), element)


def form(element):
    return mapped(lambda leaf: leaf.dtype, element)


def shapes(elements):
    return {tuple(leaf.shape for leaf in leaves(element)) for element in elements}


def need(fits):
    if not fits:
        raise Unfit


def first_of(p):
    need(p.elements)
    return p.elements[0]


def total(element):
    return sum(int(leaf.sum(dtype=np.int64)) for leaf in leaves(element))


def total_in_graph(*element):
    sums = [tf.reduce_sum(tf.cast(leaf, tf.int64)) for leaf in tf.nest.flatten(element)]
    return tf.add_n(sums)


def parallel(rng):
    return [None, 1, 3, tf.data.AUTOTUNE][rng.integers(4)]


# ---- sources ----


@source
def range_(rng, make):
    start, step = int(rng.integers(-5, 5)), int(rng.choice([-3, -1, 1, 2]))
    stop = start + step * int(rng.integers(0, 30)) + int(rng.integers(0, 2))
    return Pipeline(Dataset.range(start, stop, step),
                    [np.int64(i) for i in np.arange(start, stop, step)], f"range({start}, {stop}, {step})")


@source
def slices(rng, make):
    n, rank = int(rng.integers(0, 25)), int(rng.integers(0, 3))
    arrays = []
    for _ in range(rng.integers(1, 4)):
        shape = (n, *rng.integers(0 if rng.random() < 0.1 else 1, 4, rank))
        dtype = [np.int64, np.int32, np.uint8][rng.integers(3)]
        arrays.append(rng.integers(0, 50, shape).astype(dtype))
    given = tuple(arrays) if len(arrays) > 1 else arrays[0]
    elements = list(zip(*arrays)) if len(arrays) > 1 else list(arrays[0])
    return Pipeline(Dataset.from_tensor_slices(given), elements, f"slices of {[a.shape for a in arrays]}")


@source
def tensors(rng, make):
    array = rng.integers(0, 50, rng.integers(0, 4, rng.integers(0, 3)))
    return Pipeline(Dataset.from_tensors(array), [array], f"tensors of {array.shape}")


@source
def generated(rng, make):
    arrays = [rng.integers(0, 9, rng.integers(0, 5)) for _ in range(rng.integers(0, 20))]
    made = Dataset.from_generator(lambda: iter(arrays), output_signature=tf.TensorSpec([None], tf.int64))
    return Pipeline(made, arrays, f"generated {[len(a) for a in arrays]}")


# ---- of two ----


@source
def zipped(rng, make):
    a, b = make(), make()
    return Pipeline(Dataset.zip((a.dataset, b.dataset)), zip(a.elements, b.elements),
                    f"zip({a.text}, {b.text})")


@stage
def concatenate(rng, p, make):
    other = make() if rng.random() < 0.5 else p
    a, b = first_of(p), first_of(other)
    need(form(a) == form(b) and [x.ndim for x in leaves(a)] == [x.ndim for x in leaves(b)])
    return Pipeline(p.dataset.concatenate(other.dataset), p.elements + other.elements,
                    f"{p.text}.concatenate({other.text})")


@stage
def chosen(rng, p, make):
    need(p.elements)
    picks = rng.integers(0, 2, rng.integers(1, 12))
    branches = [p.elements, p.elements[1:]]
    out, places = [], [0, 0]
    for which in picks:
        if places[which] == len(branches[which]):
            break
        out.append(branches[which][places[which]])
        places[which] += 1
    made = Dataset.choose_from_datasets([p.dataset, p.dataset.skip(1)],
                                        Dataset.from_tensor_slices(picks.astype(np.int64)),
                                        stop_on_empty_dataset=True)
    return Pipeline(made, out, f"choose({p.text}, {picks})")


# ---- functions ----


@stage
def arithmetic(rng, p, make):
    a, b = int(rng.integers(1, 4)), int(rng.integers(0, 9))
    made = p.dataset.map(lambda *e: tf.nest.map_structure(lambda x: x * a + b, e if len(e) > 1 else e[0]),
                         num_parallel_calls=parallel(rng))
    with np.errstate(over="ignore"):
        out = [mapped(lambda x: (x * x.dtype.type(a) + x.dtype.type(b)).astype(x.dtype), e)
               for e in p.elements]
    return Pipeline(made, out, f"{p.text}.map(x * {a} + {b})")


@stage
def doubled(rng, p, make):
    made = p.dataset.map(lambda *e: (e if len(e) > 1 else e[0], total_in_graph(*e)),
                         num_parallel_calls=parallel(rng))
    return Pipeline(made, [(e, np.int64(total(e))) for e in p.elements], f"{p.text}.map(with its sum)")


@stage
def branched(rng, p, make):
    def function(*e):
        even = total_in_graph(*e) % 2 == 0
        flat = tf.nest.flatten(e)
        return tuple(tf.cond(even, lambda x=x: x + x, lambda x=x: x) for x in flat) + (even,)

    with np.errstate(over="ignore"):
        out = [tuple((x + x).astype(x.dtype) if total(e) % 2 == 0 else x for x in leaves(e))
               + (np.int64(total(e) % 2 == 0),) for e in p.elements]
    made = p.dataset.map(function, num_parallel_calls=parallel(rng))
    made = made.map(lambda *e: (*e[:-1], tf.cast(e[-1], tf.int64)))
    return Pipeline(made, out, f"{p.text}.map(branched)")


@stage
def ragged(rng, p, make):
    made = p.dataset.map(lambda *e: tf.range(total_in_graph(*e) % 5), num_parallel_calls=parallel(rng))
    return Pipeline(made, [np.arange(total(e) % 5) for e in p.elements], f"{p.text}.map(range)")


@stage
def in_python(rng, p, make):
    def function(*e):
        flat = tf.nest.flatten(e)
        return flat[0] + 1 if int(tf.reduce_sum(tf.cast(flat[0], tf.int64))) % 2 else flat[0]

    first_of(p)
    out = [(x + 1).astype(x.dtype) if total(x) % 2 else x for x in (leaves(e)[0] for e in p.elements)]
    return Pipeline(p.dataset.map(function), out, f"{p.text}.map(in Python)")


@stage
def bad(rng, p, make):
    """Some elements cannot be made, and are left out."""
    by = int(rng.integers(2, 5))

    def checked(value):
        if value % by == 0:
            raise ValueError("bad")
        return value

    def function(*e):
        checks = tf.numpy_function(checked, [total_in_graph(*e)], tf.int64)
        return (e if len(e) > 1 else e[0], tf.ensure_shape(checks, []))

    made = p.dataset.map(function, num_parallel_calls=parallel(rng)).ignore_errors()
    return Pipeline(made, [(e, np.int64(total(e))) for e in p.elements if total(e) % by != 0],
                    f"{p.text}.map(bad {by}).ignore_errors()")


@stage
def filtered(rng, p, make):
    by = int(rng.integers(2, 4))
    return Pipeline(p.dataset.filter(lambda *e: total_in_graph(*e) % by != 0),
                    [e for e in p.elements if total(e) % by != 0], f"{p.text}.filter({by})")


@stage
def taken_while(rng, p, make):
    most = int(rng.integers(5, 200))
    return Pipeline(p.dataset.take_while(lambda *e: total_in_graph(*e) < most),
                    itertools.takewhile(lambda e: total(e) < most, p.elements),
                    f"{p.text}.take_while({most})")


@stage
def scanned(rng, p, make):
    sums = np.cumsum([total(e) for e in p.elements], dtype=np.int64)
    made = p.dataset.scan(np.int64(3), lambda s, *e: (s + total_in_graph(*e), (s, s + total_in_graph(*e))))
    return Pipeline(made, [(np.int64(3 + s - total(e)), np.int64(3 + s)) for s, e in zip(sums, p.elements)],
                    f"{p.text}.scan()")


# ---- datasets of elements ----


def inner(element):
    """What flat_map and interleave make of an element."""
    return [np.int64(total(element) * 10 + i) for i in range(total(element) % 4)]


def inner_dataset(*element):
    n = total_in_graph(*element)
    return Dataset.range(n % 4).map(lambda i: i + n * 10)


@stage
def flat_mapped(rng, p, make):
    return Pipeline(p.dataset.flat_map(inner_dataset), [x for e in p.elements for x in inner(e)],
                    f"{p.text}.flat_map()")


@stage
def interleaved(rng, p, make):
    cycle, block = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    made = p.dataset.interleave(inner_dataset, cycle, block, num_parallel_calls=parallel(rng))
    out, slots, at = [], [None] * cycle, 0
    coming = iter([inner(e) for e in p.elements])
    ended = False
    while not ended or any(slot is not None for slot in slots):
        if slots[at] is None:
            slots[at] = next(coming, None)
            ended = ended or slots[at] is None
        if slots[at] is not None:
            out += slots[at][:block]
            slots[at] = slots[at][block:] if len(slots[at]) >= block else None
        at = (at + 1) % cycle
    return Pipeline(made, out, f"{p.text}.interleave({cycle}, {block})")


@stage
def windowed(rng, p, make):
    size, shift, stride = (int(rng.integers(1, 5)) for _ in range(3))
    drop = bool(rng.integers(2))
    first = first_of(p)
    need(not isinstance(first, tuple) and len(shapes(p.elements)) == 1)
    made = p.dataset.window(size, shift, stride, drop).flat_map(lambda w: w.batch(size))
    windows = [p.elements[i : i + (size - 1) * stride + 1 : stride]
               for i in range(0, len(p.elements), shift)]
    return Pipeline(made, [np.stack(w) for w in windows if len(w) == size or not drop],
                    f"{p.text}.window({size}, {shift}, {stride}, {drop})")


# ---- batches ----


@stage
def batched(rng, p, make):
    n, drop = int(rng.integers(1, 6)), bool(rng.integers(2))
    need(len(shapes(p.elements)) == 1)
    groups = [p.elements[i : i + n] for i in range(0, len(p.elements), n)]
    made = p.dataset.batch(n, drop_remainder=drop, num_parallel_calls=parallel(rng))
    out = [like(g[0], map(np.stack, zip(*map(leaves, g)))) for g in groups if len(g) == n or not drop]
    return Pipeline(made, out, f"{p.text}.batch({n}, {drop})")


@stage
def padded(rng, p, make):
    n, drop = int(rng.integers(1, 6)), bool(rng.integers(2))
    first_of(p)
    need(all(tf.TensorShape(spec.shape).rank is not None for spec in tf.nest.flatten(p.dataset.element_spec)))
    need(len({tuple(x.ndim for x in leaves(e)) for e in p.elements}) == 1)
    groups = [p.elements[i : i + n] for i in range(0, len(p.elements), n)]

    def stacked(arrays, known):
        shape = [max(sizes) if size is None else size
                 for size, *sizes in zip(known, *(a.shape for a in arrays))]
        out = np.zeros((len(arrays), *shape), arrays[0].dtype)
        for i, array in enumerate(arrays):
            out[(i, *map(slice, array.shape))] = array
        return out

    known = [spec.shape.as_list() for spec in tf.nest.flatten(p.dataset.element_spec)]
    out = [like(g[0], map(stacked, zip(*map(leaves, g)), known)) for g in groups if len(g) == n or not drop]
    return Pipeline(p.dataset.padded_batch(n, drop_remainder=drop), out,
                    f"{p.text}.padded_batch({n}, {drop})")


def rows(element):
    return [like(element, [leaf[i] for leaf in leaves(element)]) for i in range(len(leaves(element)[0]))]


def need_rows(p):
    first_of(p)
    need(all(x.ndim > 0 for x in leaves(p.elements[0])))
    need(all(len({len(x) for x in leaves(e)}) == 1 for e in p.elements))


@stage
def unbatched(rng, p, make):
    need_rows(p)
    return Pipeline(p.dataset.unbatch(), [row for e in p.elements for row in rows(e)], f"{p.text}.unbatch()")


@stage
def rebatched(rng, p, make):
    need_rows(p)
    n, drop = int(rng.integers(1, 6)), bool(rng.integers(2))
    every = [row for e in p.elements for row in rows(e)]
    need(len(shapes(every)) == 1)
    groups = [every[i : i + n] for i in range(0, len(every), n)]
    out = [like(g[0], map(np.stack, zip(*map(leaves, g)))) for g in groups if len(g) == n or not drop]
    return Pipeline(p.dataset.rebatch(n, drop_remainder=drop), out, f"{p.text}.rebatch({n}, {drop})")


# ---- which elements, and in which order ----


@stage
def repeated(rng, p, make):
    if rng.random() < 0.3 and p.elements:
        n = int(rng.integers(0, 3 * len(p.elements)))
        return Pipeline(p.dataset.repeat().take(n), itertools.islice(itertools.cycle(p.elements), n),
                        f"{p.text}.repeat().take({n})")
    n = int(rng.integers(0, 4))
    return Pipeline(p.dataset.repeat(n), p.elements * n, f"{p.text}.repeat({n})")


@stage
def taken(rng, p, make):
    n = int(rng.integers(-1, 12))
    return Pipeline(p.dataset.take(n), p.elements if n < 0 else p.elements[:n], f"{p.text}.take({n})")


@stage
def skipped(rng, p, make):
    n = int(rng.integers(-1, 8))
    return Pipeline(p.dataset.skip(n), [] if n < 0 else p.elements[n:], f"{p.text}.skip({n})")


@stage
def sharded(rng, p, make):
    n = int(rng.integers(1, 5))
    i = int(rng.integers(n))
    return Pipeline(p.dataset.shard(n, i), p.elements[i::n], f"{p.text}.shard({n}, {i})")


@stage
def enumerated(rng, p, make):
    start = int(rng.integers(-3, 9))
    return Pipeline(p.dataset.enumerate(start), [(np.int64(start + i), e) for i, e in enumerate(p.elements)],
                    f"{p.text}.enumerate({start})")


@stage
def unique(rng, p, make):
    need(not isinstance(first_of(p), tuple) and first_of(p).ndim == 0)
    need(first_of(p).dtype in (np.int32, np.int64))  # of the rest TensorFlow takes texts alone
    firsts = {int(e): e for e in p.elements[::-1]}
    return Pipeline(p.dataset.unique(), [firsts[i] for i in dict.fromkeys(map(int, p.elements))],
                    f"{p.text}.unique()")


@stage
def kept(rng, p, make):
    return Pipeline(p.dataset.cache(), p.elements, f"{p.text}.cache()")


@stage
def ahead(rng, p, make):
    n = [1, 4, tf.data.AUTOTUNE][rng.integers(3)]
    return Pipeline(p.dataset.prefetch(n), p.elements, f"{p.text}.prefetch({n})")


@stage
def shuffled(rng, p, make):
    """An element comes when those before it leave it room in the buffer, and each comes once."""
    n, seed = int(rng.integers(1, 12)), int(rng.integers(1000))
    numbered = p.dataset.enumerate().shuffle(n, seed, reshuffle_each_iteration=False)
    places = [int(place) for place, *_ in numbered.as_numpy_iterator()]
    assert sorted(places) == list(range(len(p.elements))), p.text
    assert all(place < i + n for i, place in enumerate(places)), (p.text, n, places)
    made = numbered.map(lambda place, element: element)
    return Pipeline(made, [p.elements[place] for place in places], f"{p.text}.shuffle({n}, {seed})")


# ---- making and looking at them ----


def make(rng, depth=0):
    sources = SOURCES if depth < 2 else [s for s in SOURCES if s is not zipped]

    def again():
        return make(rng, depth + 1)

    p = sources[rng.integers(len(sources))](rng, again)
    for _ in range(rng.integers(0, 10 if depth == 0 else 4)):
        try:
            staged = STAGES[rng.integers(len(STAGES))](rng, p, again)
        except Unfit:
            continue
        if p.elements and not staged.elements and rng.random() < 0.9:
            continue  # it would stay empty
        p = staged
        if len(p.elements) > MOST:
            p = Pipeline(p.dataset.take(MOST), p.elements[:MOST], f"{p.text}.take({MOST})")
    return p


def same(got, expected, text):
    got = list(got)
    assert len(got) == len(expected), f"{text}: {len(got)} elements for {len(expected)}"
    for i, (one, other) in enumerate(zip(got, expected)):
        assert form(mapped(np.asarray, one)) == form(mapped(np.asarray, other)), f"{text}: element {i}"
        for a, b in zip(leaves(one), leaves(other)):
            np.testing.assert_array_equal(a, b, err_msg=f"{text}: element {i}")


def check_saved(p, rng, path, text):
    """A pass that is saved goes on in another one."""
    n = int(rng.integers(0, len(p.elements) + 1))
    iterator = iter(p.dataset)
    before = [next(iterator) for _ in range(n)]
    iterator.save(path)
    other = iter(p.dataset)
    other.restore(path)
    got = [tf.nest.map_structure(lambda leaf: leaf.numpy(), element) for element in [*before, *other]]
    same(got, p.elements, f"{text}, saved behind {n}")


def check_in_session(p, text):
    """An iterator of a graph gives the same, run by run."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        element = tf.compat.v1.data.make_one_shot_iterator(p.dataset).get_next()
        got = [session.run(element) for _ in p.elements]
        try:
            assert False, f"{text}: behind the end, {session.run(element)}"
        except tf.errors.OutOfRangeError:
            pass
    same(got, p.elements, f"{text}, in a session")


def check(seed, path):
    """Makes a pipeline and looks at it as a user would; AssertionError where the model says otherwise."""
    rng = np.random.default_rng(seed)
    p = make(rng)
    text = f"seed {seed}: {p.text}"
    same(p.dataset.as_numpy_iterator(), p.elements, text)
    same(p.dataset.as_numpy_iterator(), p.elements, f"{text}, again")
    n = int(p.dataset.cardinality())
    if "ignore_errors" not in text:  # as in TensorFlow, what is left out counts
        assert n in (len(p.elements), tf.data.UNKNOWN_CARDINALITY), f"{text}: cardinality {n}"
    for element in p.elements[:5]:
        for spec, leaf in zip(tf.nest.flatten(p.dataset.element_spec), leaves(element)):
            assert spec.shape.is_compatible_with(leaf.shape) and spec.dtype == leaf.dtype, text
    summed = p.dataset.reduce((np.int64(0), np.int64(0)),
                              lambda s, *e: (s[0] * 3 + total_in_graph(*e), s[1] + 1))
    expected = np.int64(0)
    with np.errstate(over="ignore"):
        for element in p.elements:
            expected = expected * np.int64(3) + np.int64(total(element))
    assert [int(value) for value in summed] == [int(expected), len(p.elements)], f"{text}: reduce"
    check_saved(p, rng, path, text)
    check_in_session(p, text)
