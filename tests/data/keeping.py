# SPDX-License-Identifier: Apache-2.0
"""What is kept on disk, by ctypes: checkpoints, caches, snapshots. Over sources.py."""

import ctypes

import sources
from sources import Dataset, Pass, base


class Spec(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int), ("shape", base.Shape), ("of", ctypes.c_void_p),
                ("n_of", ctypes.c_int)]


CALL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(sources.Value), ctypes.c_int,
                        ctypes.POINTER(sources.Value), ctypes.c_int, ctypes.c_void_p)


class Function(ctypes.Structure):
    _fields_ = [("session", ctypes.c_void_p), ("inputs", ctypes.c_void_p),
                ("outputs", ctypes.c_void_p), ("call", CALL),
                ("output_specs", ctypes.POINTER(Spec)), ("n_inputs", ctypes.c_int),
                ("n_outputs", ctypes.c_int), ("context", ctypes.c_void_p),
                ("release", ctypes.c_void_p)]


_called = []


def numbers(runtime, *limits):
    start, stop, step = {1: (0, *limits, 1), 2: (*limits, 1)}.get(len(limits), limits)
    return Dataset("range", runtime, *map(ctypes.c_int64, (start, stop, step)))


def _tensors(function, runtime, tensors):
    pointers = (ctypes.c_void_p * len(tensors))(*(tensor.pointer for tensor in tensors))
    return Dataset(function, runtime, pointers, len(tensors))


def slices(runtime, *tensors):
    return _tensors("from_slices", runtime, tensors)


def one(runtime, *tensors):
    return _tensors("from_tensors", runtime, tensors)


def mapped(source, number, n_parallel=1):
    """A callback over int64 scalars: what `number` returns; what it raises makes the element bad."""

    def call(_context, inputs, _n_inputs, outputs, _n_outputs, _error):
        value = base.Tensor(sources.library().pl_tensor_ref(ctypes.c_void_p(inputs[0].tensor)),
                            source.runtime)
        try:
            made = source.runtime.tensor(base.np.array(number(int(value.numpy())), "i8"))
        except ArithmeticError:
            return -5  # EIO
        finally:
            value.close()
        outputs[0].tensor, made.pointer = made.pointer, None
        return 0

    called = CALL(call)
    spec = Spec(base.NUMBER_OF["int64"], base.Shape.of(()))
    function = Function(None, None, None, called, ctypes.pointer(spec), 1, 1)
    _called.append(called)  # the dataset may outlive the object that stands for it
    return Dataset("map", source, ctypes.byref(function), n_parallel)


def cache(source, path=None):
    return Dataset("cache", source, base.path_text(path))


def snapshot(source, path, n_shards=1):
    return Dataset("snapshot", source, base.path_text(path), ctypes.c_int64(n_shards))


def save(source, path, n_shards=1):
    base.call("pl_dataset_save", source, base.path_text(path), ctypes.c_int64(n_shards))


def load(runtime, path):
    return Dataset("load", runtime, base.path_text(path))


def checkpoint(iterator, path):
    base.call("pl_iterator_save", iterator, base.path_text(path))


def restored(dataset, path):
    iterator = Pass(dataset)
    base.call("pl_iterator_restore", iterator, base.path_text(path))
    return iterator
