# SPDX-License-Identifier: Apache-2.0
"""libplimsoll from Python, as far as benchmarks need it: tensors, graphs of one op, sessions."""

import ctypes
import os
import pathlib

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("PLIMSOLL_BUILD", ROOT / "build")) / "meson"
RANK_MAX = 8
DTYPES = {"bool": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "uint32": 6, "int32": 7,
          "uint64": 8, "int64": 9, "float16": 10, "float32": 12, "float64": 13}


class Shape(ctypes.Structure):
    _fields_ = [("rank", ctypes.c_int32), ("dims", ctypes.c_int64 * RANK_MAX)]

    def __init__(self, dims):
        super().__init__(len(dims), (ctypes.c_int64 * RANK_MAX)(*dims))


class Error(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int), ("message", ctypes.c_char * 480)]


class Attr(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_int), ("n", ctypes.c_int32),
                ("value", ctypes.c_int64)]


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("budget_text", ctypes.c_char_p), ("cap_bytes", ctypes.c_uint64),
                ("spill_directory", ctypes.c_char_p), ("spill_limit_bytes", ctypes.c_uint64),
                ("n_threads", ctypes.c_int)]


class Pair(ctypes.Structure):
    """A feed, or a fetch: a node, and a tensor or a path."""

    _fields_ = [("node", ctypes.c_void_p), ("other", ctypes.c_void_p)]


class Runtime:
    def __init__(self, n_threads, cap_bytes=0):
        self.library = ctypes.CDLL(str(BUILD / "src/libplimsoll.so"))
        for name in ("int", "float", "bool", "dtype", "ints"):
            getattr(self.library, f"pl_attr_{name}").restype = Attr
        for name in ("pl_session_free", "pl_graph_free", "pl_tensor_unref", "pl_runtime_unref"):
            getattr(self.library, name).argtypes = [ctypes.c_void_p]
        self.keep = []
        options = Options(n_threads=n_threads, cap_bytes=cap_bytes)
        self.handle = self.make("pl_runtime_new", ctypes.byref(options))

    def call(self, name, *arguments):
        error = Error()
        if getattr(self.library, name)(*arguments, ctypes.byref(error)) < 0:
            raise RuntimeError(f"{name}: {error.message.decode()}")

    def make(self, name, *arguments):
        made = ctypes.c_void_p()
        self.call(name, *arguments, ctypes.byref(made))
        return made

    def attr(self, name, value):
        """Points into the name and the list, which `keep` holds."""
        key = name.encode()
        self.keep.append(key)
        if isinstance(value, bool):
            return self.library.pl_attr_bool(key, value)
        if isinstance(value, int):
            return self.library.pl_attr_int(key, ctypes.c_int64(value))
        if isinstance(value, str):
            return self.library.pl_attr_dtype(key, DTYPES[value])
        self.keep.append((ctypes.c_int64 * len(value))(*value))
        return self.library.pl_attr_ints(key, self.keep[-1], len(value))

    def tensor(self, array):
        return self.make("pl_tensor_new", self.handle, DTYPES[array.dtype.name],
                         ctypes.byref(Shape(array.shape)), array.ctypes.data_as(ctypes.c_void_p),
                         b"bench")

    def array(self, tensor):
        """A copy of what a tensor holds."""
        self.library.pl_tensor_shape.restype = ctypes.POINTER(Shape)
        shape = self.library.pl_tensor_shape(tensor).contents
        dtype = {number: name for name, number in DTYPES.items()}
        dims = list(shape.dims)[:shape.rank]
        array = np.empty(dims, dtype[self.library.pl_tensor_dtype(tensor)])
        self.call("pl_tensor_read", tensor, (ctypes.c_int64 * RANK_MAX)(),
                  (ctypes.c_int64 * RANK_MAX)(*dims), array.ctypes.data_as(ctypes.c_void_p))
        return array

    def close(self):
        self.library.pl_runtime_unref(self.handle)


class Op:
    """A graph of one op on placeholders, its session, and tensors to feed."""

    def __init__(self, runtime, op, arrays, attrs):
        self.runtime = runtime
        self.graph = runtime.make("pl_graph_new")
        nodes = [runtime.make("pl_graph_placeholder", self.graph, None, DTYPES[array.dtype.name],
                              ctypes.byref(Shape(array.shape))) for array in arrays]
        inputs = (ctypes.c_void_p * len(nodes))(*(node.value for node in nodes))
        made = [runtime.attr(name, value) for name, value in attrs.items()]
        if op == "stack":  # made of several nodes
            node = runtime.make("pl_graph_stack", self.graph, None, inputs, len(nodes),
                                attrs["axis"])
        else:
            node = runtime.make("pl_graph_add", self.graph, op.encode(), None, inputs, len(nodes),
                                (Attr * len(made))(*made), len(made))
        self.session = runtime.make("pl_session_new", self.graph, runtime.handle)
        self.tensors = [runtime.tensor(array) for array in arrays]
        self.feeds = (Pair * len(nodes))(*(Pair(node.value, tensor.value)
                                           for node, tensor in zip(nodes, self.tensors)))
        self.fetch = Pair(node.value, None)
        self.result = ctypes.c_void_p()
        self.error = Error()

    def run(self):
        """As short as it can be: what Python adds is measured too."""
        code = self.runtime.library.pl_session_run(
            self.session, ctypes.byref(self.fetch), 1, self.feeds, len(self.feeds), None,
            ctypes.byref(self.result), ctypes.byref(self.error))
        if code < 0:
            raise RuntimeError(self.error.message.decode())

    def drop(self):
        self.runtime.library.pl_tensor_unref(self.result)

    def close(self):
        for tensor in self.tensors:
            self.runtime.library.pl_tensor_unref(tensor)
        self.runtime.library.pl_session_free(self.session)
        self.runtime.library.pl_graph_free(self.graph)
