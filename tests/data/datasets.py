# SPDX-License-Identifier: Apache-2.0
"""Stages, by ctypes, with Python's functions as callbacks. An element is a tuple of numbers, arrays
and bytes, or the one of them that it has; a component that is a dataset is a list.

    from_range(runtime, 10).map(lambda x: (x * x,), ["int64"], n_parallel=2).batch(4)

What a function raises makes its element bad."""

import ctypes
import errno

import numpy as np
import sources
from sources import base

AUTO = -1
UNKNOWN, INFINITE = -2, -1
I64 = "int64"


class Spec(ctypes.Structure):
    pass


Spec._fields_ = [("dtype", ctypes.c_int), ("shape", base.Shape), ("of", ctypes.POINTER(Spec)),
                 ("n_of", ctypes.c_int)]  # fmt: skip

CALL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(sources.Value), ctypes.c_int,
                        ctypes.POINTER(sources.Value), ctypes.c_int, ctypes.c_void_p)  # fmt: skip
BEGIN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p),
                         ctypes.c_void_p)  # fmt: skip
NEXT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(sources.Value), ctypes.c_int,
                        ctypes.c_void_p)  # fmt: skip
END = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Function(ctypes.Structure):
    _fields_ = [("session", ctypes.c_void_p), ("inputs", ctypes.c_void_p),
                ("outputs", ctypes.c_void_p), ("call", CALL), ("output_specs", ctypes.POINTER(Spec)),
                ("n_inputs", ctypes.c_int), ("n_outputs", ctypes.c_int),
                ("context", ctypes.c_void_p), ("release", ctypes.c_void_p)]  # fmt: skip


class Generator(ctypes.Structure):
    _fields_ = [("begin", BEGIN), ("next", NEXT), ("end", END), ("specs", ctypes.POINTER(Spec)),
                ("n_components", ctypes.c_int), ("cardinality", ctypes.c_int64),
                ("context", ctypes.c_void_p), ("release", ctypes.c_void_p)]  # fmt: skip


def make_spec(spec):
    """dtype, (dtype, shape or None for any rank), or a list of such for a dataset of these."""
    if isinstance(spec, list):
        of = make_specs(spec)
        return Spec(0, base.Shape(), of, len(spec))
    dtype, shape = spec if isinstance(spec, tuple) else (spec, ())
    made = base.Shape(-1) if shape is None else base.Shape.of(shape)
    return Spec(base.NUMBER_OF[dtype], made)


def make_specs(specs):
    return (Spec * len(specs))(*(make_spec(spec) for spec in specs))


def read_spec(spec):
    """The other way round; an unknown dimension is None."""
    if spec.dtype == 0:
        return [read_spec(spec.of[i]) for i in range(spec.n_of)]
    shape = None if spec.shape.rank < 0 else tuple(
        None if dim < 0 else dim for dim in spec.shape.tuple())
    return base.DTYPES[spec.dtype], shape


def tensor_of(runtime, value):
    if isinstance(value, bytes):
        value = np.array(value, object)
    value = np.asarray(value)
    if value.dtype != object:
        return runtime.tensor(value)
    strings = (sources.String * (value.size + 1))(*map(sources.String.of, value.ravel()))
    pointer, shape = ctypes.c_void_p(), base.Shape.of(value.shape)
    base.call("pl_tensor_new_strings", runtime, ctypes.byref(shape), strings, b"given",
              ctypes.byref(pointer))
    return base.Tensor(pointer.value, runtime)


def give(runtime, results, outputs):
    """Python's values become the library's."""
    for i, value in enumerate(results):
        if isinstance(value, sources.Dataset):
            base.library().pl_dataset_ref(value)
            outputs[i].dataset = value.pointer
            if value.kept:
                runtime.kept.append(value)  # its callbacks
        else:
            tensor = tensor_of(runtime, value)
            outputs[i].tensor, tensor.pointer = tensor.pointer, None


def strings_in(tensor):
    return np.array([sources.string_at(tensor, at) for at in np.ndindex(*tensor.shape)],
                    object).reshape(tensor.shape)  # fmt: skip


def value_of(runtime, value, owned):
    """`owned`: it is ours to give back."""
    if value.dataset:
        if not owned:
            base.library().pl_dataset_ref(ctypes.c_void_p(value.dataset))
        dataset = Stage.of(value.dataset, runtime)
        return list(dataset) if owned else dataset
    if not owned:
        base.library().pl_tensor_ref(ctypes.c_void_p(value.tensor))
    with base.Tensor(value.tensor, runtime) as tensor:
        if tensor.dtype == "string":
            return strings_in(tensor) if tensor.shape else sources.string_at(tensor, ())
        array = tensor.numpy()
        return array[()] if array.ndim == 0 else array


def refuse(error, exception):
    text = str(exception).encode()[:400]
    return base.library().pl_error_set(ctypes.c_void_p(error), -errno.EIO, b"%s", text)


def function_of(runtime, python, specs, n_inputs):
    """The pl_function, and what must live as long."""

    def call(_context, inputs, n, outputs, _n_outputs, error):
        try:
            given = [value_of(runtime, inputs[i], owned=False) for i in range(n)]
            give(runtime, python(*given), outputs)
            return 0
        except Exception as exception:
            return refuse(error, exception)

    made, kept = CALL(call), make_specs(specs)
    return Function(call=made, output_specs=kept, n_inputs=n_inputs, n_outputs=len(specs)), kept


class Stage(sources.Dataset):
    def __init__(self, function, owner, *arguments, kept=None):
        library()
        super().__init__(function, owner, *arguments)
        self.kept = owner, kept

    @classmethod
    def of(cls, pointer, runtime):
        made = cls.__new__(cls)
        base.Handle.__init__(made, pointer)
        made.runtime, made.kept = runtime, None
        return made

    def _with_function(self, stage, python, specs, *arguments, state=()):
        function, kept = function_of(self.runtime, python, specs, len(state) + self.n_components)
        first = [base.pointers(state), len(state)] if state else []
        return Stage(stage, self, *first, ctypes.byref(function), *arguments,
                     kept=(function, kept, state))

    @property
    def specs(self):
        found = base.library().pl_dataset_spec
        return [read_spec(found(self, i).contents) for i in range(self.n_components)]

    def options(self, **options):
        return Stage("with_options", self, ctypes.byref(sources.Options(**options)))

    def named(self, name):
        base.call("pl_dataset_set_name", self, name.encode())
        return self

    def map(self, python, specs=(I64,), n_parallel=1):
        return self._with_function("map", python, list(specs), n_parallel)

    def filter(self, python, specs=("bool",)):
        return self._with_function("filter", lambda *x: (np.bool_(python(*x)),), list(specs))

    def flat_map(self, python, specs=(I64,)):
        return self._with_function("flat_map", lambda *x: (python(*x),), [list(specs)])

    def interleave(self, python, specs=(I64,), cycle_length=AUTO, block_length=1, n_parallel=1):
        return self._with_function("interleave", lambda *x: (python(*x),), [list(specs)],
                                   ctypes.c_int64(cycle_length), ctypes.c_int64(block_length),
                                   n_parallel)

    def zip(self, *others):
        every = (self, *others)
        pointer = ctypes.c_void_p()
        base.call("pl_dataset_zip", base.pointers(every), len(every), ctypes.byref(pointer))
        made = Stage.of(pointer.value, self.runtime)
        made.kept = every
        return made

    def concatenate(self, other):
        return Stage("concatenate", self, other, kept=other)

    def batch(self, n, drop_remainder=False):
        return Stage("batch", self, ctypes.c_int64(n), drop_remainder)

    def padded_batch(self, n, shapes=None, values=None, drop_remainder=False):
        made = shapes and (base.Shape * len(shapes))(*map(base.Shape.of, shapes))
        padding = values and [value if value is None else tensor_of(self.runtime, value)
                              for value in values]
        pointers = padding and (ctypes.c_void_p * len(padding))(
            *(one and one.pointer for one in padding))
        return Stage("padded_batch", self, ctypes.c_int64(n), made, pointers, drop_remainder)

    def unbatch(self):
        return Stage("unbatch", self)

    def window(self, size, shift=None, stride=1, drop_remainder=False):
        numbers = map(ctypes.c_int64, (size, size if shift is None else shift, stride))
        return Stage("window", self, *numbers, drop_remainder)

    def shuffle(self, buffer_size, seed=AUTO, reshuffle_each_iteration=True):
        return Stage("shuffle", self, ctypes.c_int64(buffer_size), ctypes.c_int64(seed),
                     reshuffle_each_iteration)

    def repeat(self, n=-1):
        return Stage("repeat", self, ctypes.c_int64(n))

    def take(self, n):
        return Stage("take", self, ctypes.c_int64(n))

    def skip(self, n):
        return Stage("skip", self, ctypes.c_int64(n))

    def shard(self, n, index=0):
        return Stage("shard", self, ctypes.c_int64(n), ctypes.c_int64(index))

    def enumerate(self, start=0):
        return Stage("enumerate", self, ctypes.c_int64(start))

    def prefetch(self, n):
        return Stage("prefetch", self, ctypes.c_int64(n))

    def scan(self, initial, python, specs):
        state = [tensor_of(self.runtime, value) for value in initial]
        return self._with_function("scan", python, list(specs), state=state)

    def reduce(self, initial, python, specs):
        state = [tensor_of(self.runtime, value) for value in initial]
        function, kept = function_of(self.runtime, python, list(specs),
                                     len(state) + self.n_components)
        values = (sources.Value * len(state))()
        base.call("pl_dataset_reduce", self, base.pointers(state), len(state),
                  ctypes.byref(function), values)
        del kept
        return [value_of(self.runtime, value, owned=True) for value in values]

    def __iter__(self):
        return Pass(self)


class Pass(sources.Pass):
    def __next__(self):
        values = (sources.Value * self.dataset.n_components)()
        if base.call("pl_iterator_next", self, values) == 0:
            raise StopIteration
        found = tuple(value_of(self.dataset.runtime, value, owned=True) for value in values)
        return found if len(found) > 1 else found[0]


def library():
    found = sources.library()
    found.pl_dataset_ref.restype = ctypes.c_void_p
    found.pl_dataset_spec.restype = ctypes.POINTER(Spec)
    return found


def from_range(runtime, *numbers):
    start, stop, step = {1: (0, *numbers, 1), 2: (*numbers, 1), 3: numbers}[len(numbers)]
    return Stage("range", runtime, *map(ctypes.c_int64, (start, stop, step)))


def from_slices(runtime, *arrays):
    tensors = [tensor_of(runtime, array) for array in arrays]
    return Stage("from_slices", runtime, base.pointers(tensors), len(tensors))


def from_tensors(runtime, *arrays):
    tensors = [tensor_of(runtime, array) for array in arrays]
    return Stage("from_tensors", runtime, base.pointers(tensors), len(tensors))


def from_generator(runtime, python, specs=(I64,), cardinality=UNKNOWN):
    """`python` makes an iterable; what its iterator raises makes an element bad."""
    running = {}

    def begin(_context, ret_state, error):
        try:
            number = len(running) + 1
            running[number] = iter(python())
            ret_state[0] = number
            return 0
        except Exception as exception:
            return refuse(error, exception)

    def following(state, values, _n, error):
        try:
            value = next(running[state])
            give(runtime, value if isinstance(value, tuple) else (value,), values)
            return 1
        except StopIteration:
            return 0
        except Exception as exception:
            return refuse(error, exception)

    def end(state):
        running[state] = None

    made = make_specs(list(specs))
    generator = Generator(BEGIN(begin), NEXT(following), END(end), made, len(specs), cardinality)
    stage = Stage("generator", runtime, ctypes.byref(generator), kept=(generator, made))
    stage.running = running
    return stage


def everything(dataset):
    """All elements of one pass, and Refused in the place of those that are bad."""
    with Pass(dataset) as one:
        return one.everything()
