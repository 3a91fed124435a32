# SPDX-License-Identifier: Apache-2.0
"""Datasets on files, by ctypes: what tests/kernels/runtime.py is for tensors and graphs."""

import ctypes
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "kernels"))

import runtime as base  # noqa: E402

INHERIT, FAIL, SKIP, QUARANTINE = range(4)


class Value(ctypes.Structure):
    _fields_ = [("tensor", ctypes.c_void_p), ("dataset", ctypes.c_void_p)]


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("on_error", ctypes.c_int), ("max_bad", ctypes.c_uint64),
                ("max_bad_fraction", ctypes.c_double), ("quarantine_path", ctypes.c_char_p),
                ("watchdog_ms", ctypes.c_uint64), ("budget_bytes", ctypes.c_uint64),
                ("n_threads", ctypes.c_int), ("nondeterministic", ctypes.c_bool)]


class FilesOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("shuffle", ctypes.c_bool), ("seed", ctypes.c_uint64),
                ("same_each_pass", ctypes.c_bool)]


class String(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char_p), ("n", ctypes.c_size_t)]

    @classmethod
    def of(cls, text):
        return cls(text, len(text))


class CsvDefault(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int), ("required", ctypes.c_bool), ("bits", ctypes.c_uint64),
                ("text", String)]


class CsvLayout(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("columns", ctypes.POINTER(CsvDefault)), ("n_columns", ctypes.c_int),
                ("selected", ctypes.POINTER(ctypes.c_int64)), ("delimiter", ctypes.c_char),
                ("plain_quotes", ctypes.c_bool), ("header", ctypes.c_bool), ("na_value", String),
                ("compression", ctypes.c_int)]


class FeatureSpec(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_int), ("shape", base.Shape),
                ("variable", ctypes.c_bool), ("fallback", ctypes.c_void_p)]


class BadCount(ctypes.Structure):
    _fields_ = [("n_bad", ctypes.c_uint64), ("n_items", ctypes.c_uint64)]


def library():
    found = base.library()
    found.pl_dataset_unref.restype = None
    found.pl_iterator_free.restype = None
    found.pl_dataset_cardinality.restype = ctypes.c_int64
    found.pl_dataset_class_name.restype = ctypes.c_char_p
    found.pl_dataset_class_name.argtypes = [ctypes.c_void_p, ctypes.c_int64]
    found.pl_iterator_bad_count.restype = BadCount
    return found


def texts(items):
    return (ctypes.c_char_p * (len(items) + 1))(*(base.path_text(item) for item in items))


class Dataset(base.Handle):
    release = "pl_dataset_unref"

    def __init__(self, function, owner, *arguments):
        """Calls pl_dataset_FUNCTION with the runtime or input first."""
        pointer = ctypes.c_void_p()
        base.call("pl_dataset_" + function, owner, *arguments, ctypes.byref(pointer))
        super().__init__(pointer.value)
        self.runtime = owner.runtime if isinstance(owner, Dataset) else owner

    def with_policy(self, on_error, **options):
        return Dataset("with_options", self, ctypes.byref(Options(0, on_error, **options)))

    def batch(self, n):
        return Dataset("batch", self, ctypes.c_int64(n), False)

    def prefetch(self, n):
        return Dataset("prefetch", self, ctypes.c_int64(n))

    @property
    def cardinality(self):
        return library().pl_dataset_cardinality(self)

    @property
    def n_components(self):
        return library().pl_dataset_n_components(self)

    def __iter__(self):
        return Pass(self)


def value_of(tensor):
    """Bytes, a number, or an array of either."""
    if tensor.dtype != "string":
        array = tensor.numpy()
        return array[()] if array.ndim == 0 else array
    if not tensor.shape:
        return string_at(tensor, ())
    assert len(tensor.shape) == 1
    return [string_at(tensor, (i,)) for i in range(tensor.shape[0])]


def string_at(tensor, at):
    string = String()
    places = (ctypes.c_int64 * base.RANK_MAX)(*at)
    base.call("pl_tensor_pin_string", tensor, places, ctypes.byref(string))
    pointer = ctypes.cast(ctypes.byref(string), ctypes.POINTER(ctypes.c_void_p))[0]
    found = ctypes.string_at(pointer, string.n) if string.n else b""
    base.library().pl_tensor_unpin(tensor)
    return found


class Pass(base.Handle):
    release = "pl_iterator_free"

    def __init__(self, dataset):
        pointer = ctypes.c_void_p()
        library()
        base.call("pl_iterator_new", dataset, ctypes.byref(pointer))
        super().__init__(pointer.value)
        self.dataset = dataset

    def __iter__(self):
        return self

    def __next__(self):
        values = (Value * self.dataset.n_components)()
        if base.call("pl_iterator_next", self, values) == 0:
            raise StopIteration
        tensors = [base.Tensor(value.tensor, self.dataset.runtime) for value in values]
        found = tuple(value_of(tensor) for tensor in tensors)
        for tensor in tensors:
            tensor.close()
        return found if len(found) > 1 else found[0]

    def everything(self):
        """Elements, and Refused in the place of those that are bad."""
        found = []
        while True:
            try:
                found.append(next(self))
            except StopIteration:
                return found
            except base.Refused as refused:
                found.append(refused)

    @property
    def bad_count(self):
        count = library().pl_iterator_bad_count(self)
        return count.n_bad, count.n_items


def paths(runtime, *names):
    return Dataset("paths", runtime, texts(names), ctypes.c_int64(len(names)))


def files(runtime, *patterns, shuffle=False, seed=0, same_each_pass=False):
    options = FilesOptions(0, shuffle, seed, same_each_pass)
    return Dataset("files", runtime, texts(patterns), len(patterns), ctypes.byref(options))


def image_folder(runtime, folder):
    return Dataset("image_folder", runtime, base.path_text(folder), None)


def lines(source, compression=0):
    return Dataset("lines", source, compression)


def records(source, compression=0):
    return Dataset("records", source, compression)


def fixed_records(source, record, head=0, foot=0, compression=0):
    return Dataset("fixed_records", source, *map(ctypes.c_uint64, (head, record, foot)), compression)


def samples(source, *extensions):
    return Dataset("samples", source, texts(extensions), len(extensions))


def csv(source, columns, selected=None, delimiter=",", header=False, na_value=b"",
        compression=0):
    """columns: (dtype, default), the default None where a field is required."""
    made = []
    for dtype, default in columns:
        one = CsvDefault(base.NUMBER_OF[dtype], default is None)
        if dtype == "string":
            one.text = String.of(default or b"")
        elif default is not None:
            one.bits = int.from_bytes(base.np.array(default, dtype).tobytes(), "little")
        made.append(one)
    layout = CsvLayout(0, (CsvDefault * len(made))(*made), len(made),
                       selected and (ctypes.c_int64 * len(selected))(*selected),
                       delimiter.encode(), False, header, String.of(na_value), compression)
    return Dataset("csv", source, ctypes.byref(layout))


def parse_examples(source, *features, n_parallel=1):
    """features: (name, dtype, shape or None for any length, default tensor or None)."""
    specs = [FeatureSpec(name.encode(), base.NUMBER_OF[dtype], base.Shape.of(shape or ()),
                         shape is None, default and default.pointer)
             for name, dtype, shape, default in features]
    return Dataset("parse_examples", source, (FeatureSpec * len(specs))(*specs), len(specs),
                   n_parallel)
