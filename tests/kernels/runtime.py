# SPDX-License-Identifier: Apache-2.0
"""libplimsoll in this process, by ctypes: thin, and the same names as in include/plimsoll/.

    with Runtime(cap_bytes=64 << 20) as runtime, Graph() as graph:
        x = graph.placeholder("float32", (None, 3))
        y = graph.add("sum", x, axes=[0])
        with Session(graph, runtime) as session:
            (array,) = session.run([y], {x: runtime.tensor(numpy_array)})

Attributes are Python's: bool, int, float, a list of integers, a tuple for a shape (None: unknown),
numpy.dtype or "d:NAME" for a dtype, other texts as they are. bfloat16, which NumPy has not, is
float32 on this side. What fails raises Refused."""

import ctypes
import os
import pathlib

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("PLIMSOLL_BUILD", ROOT / "build")) / "meson"
RANK_MAX = 8
DTYPES = ("", "bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64",
          "float16", "bfloat16", "float32", "float64", "string")  # by number  # fmt: skip
NUMBER_OF = {name: number for number, name in enumerate(DTYPES)}


class Shape(ctypes.Structure):
    _fields_ = [("rank", ctypes.c_int32), ("dims", ctypes.c_int64 * RANK_MAX)]

    @classmethod
    def of(cls, dims):
        known = [-1 if dim is None else dim for dim in dims]
        return cls(len(known), (ctypes.c_int64 * RANK_MAX)(*known))

    def tuple(self):
        return tuple(self.dims[:self.rank])


class ErrorText(ctypes.Structure):
    _fields_ = [
        ("code", ctypes.c_int),
        ("kind", ctypes.c_int),
        ("payload", ctypes.c_void_p),
        ("numbers", ctypes.c_int64 * 6),
        ("stage", ctypes.c_char * 24),
        ("stage_name", ctypes.c_char * 64),
        ("op", ctypes.c_char * 32),
        ("node", ctypes.c_char * 64),
        ("path", ctypes.c_char * 256),
        ("what_at", ctypes.c_uint16),
        ("reason_at", ctypes.c_uint16),
        ("reason_names_path", ctypes.c_bool),
        ("message", ctypes.c_char * 480),
    ]


class AttrValue(ctypes.Union):
    _fields_ = [("i", ctypes.c_int64), ("f", ctypes.c_double), ("dtype", ctypes.c_int),
                ("values", ctypes.POINTER(ctypes.c_int64)), ("text", ctypes.c_char_p)]


class Attr(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_int), ("n", ctypes.c_int32),
                ("value", AttrValue)]


class RuntimeOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("budget_text", ctypes.c_char_p), ("cap_bytes", ctypes.c_uint64),
                ("spill_directory", ctypes.c_char_p), ("spill_limit_bytes", ctypes.c_uint64),
                ("n_threads", ctypes.c_int)]


class Feed(ctypes.Structure):
    _fields_ = [("placeholder", ctypes.c_void_p), ("tensor", ctypes.c_void_p)]


class Fetch(ctypes.Structure):
    _fields_ = [("node", ctypes.c_void_p), ("npy_path", ctypes.c_char_p)]


class RunOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("budget_bytes", ctypes.c_uint64), ("cancel", ctypes.c_void_p),
                ("progress", ctypes.c_void_p), ("progress_context", ctypes.c_void_p),
                ("random_stream", ctypes.c_uint64)]


class RunCost(ctypes.Structure):
    _fields_ = [("peak_bytes", ctypes.c_uint64), ("disk_bytes", ctypes.c_uint64),
                ("flops", ctypes.c_double), ("n_unknown", ctypes.c_int)]


class Refused(Exception):
    """What the library refused: `code` by its name, and the message."""

    def __init__(self, code, message):
        super().__init__(f"{code}: {message}")
        self.code, self.message = code, message


def _declare(library):
    """All that returns something else than an int."""
    results = {
        ctypes.c_void_p: ("pl_tensor_ref", "pl_graph_find", "pl_graph_node", "pl_node_input"),
        ctypes.POINTER(Shape): ("pl_tensor_shape", "pl_node_shape"),
        ctypes.c_char_p: ("pl_node_name", "pl_node_op", "pl_error_name"),
        ctypes.c_uint64: ("pl_runtime_claimed_bytes", "pl_runtime_peak_bytes", "pl_tensor_bytes"),
        None: ("pl_runtime_unref", "pl_tensor_unref", "pl_tensor_unpin", "pl_graph_free",
               "pl_session_free", "pl_graph_pop_scope"),
    }  # fmt: skip
    for result, names in results.items():
        for name in names:
            getattr(library, name).restype = result
    return library


_library = None


def library():
    global _library
    if _library is None:
        path = BUILD / "src/libplimsoll.so"
        assert path.exists(), f"{path} has not been built: run `make build`"
        _library = _declare(ctypes.CDLL(str(path)))
    return _library


def call(name, *arguments):
    """Calls a function that takes a pl_error last; raises what it says."""
    error = ErrorText()
    code = getattr(library(), name)(*arguments, ctypes.byref(error))
    if code < 0:
        raise Refused(library().pl_error_name(code).decode(), error.message.decode())
    return code


def path_text(path):
    return None if path is None else os.fsencode(path)


def to_bfloat16(array):
    """The upper halves of float32, rounded to the nearest, ties to even."""
    bits = np.frombuffer(np.asarray(array, "f4").tobytes(), "u4").reshape(np.shape(array))
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(array), bits >> 16 | 0x40, rounded).astype("u2")


def from_bfloat16(halves):
    bits = np.asarray(halves.astype("u4") << np.uint32(16), "u4")
    return np.frombuffer(bits.tobytes(), "f4").reshape(bits.shape).copy()


class Handle:
    """Something of the library's: given back by close(), by `with`, or when it is forgotten."""

    release = ""

    def __init__(self, pointer):
        self.pointer = pointer

    def close(self):
        pointer, self.pointer = getattr(self, "pointer", None), None
        if pointer and _library:
            getattr(_library, self.release)(ctypes.c_void_p(pointer))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        self.close()

    @property
    def _as_parameter_(self):
        assert self.pointer, "it is closed"
        return ctypes.c_void_p(self.pointer)


class Runtime(Handle):
    release = "pl_runtime_unref"

    def __init__(self, cap_bytes=0, threads=2, spill=None, budget=None, spill_limit_bytes=0):
        options = RuntimeOptions(0, budget and budget.encode(), cap_bytes, path_text(spill),
                                 spill_limit_bytes, threads)
        pointer = ctypes.c_void_p()
        call("pl_runtime_new", ctypes.byref(options), ctypes.byref(pointer))
        super().__init__(pointer.value)

    @property
    def claimed_bytes(self):
        return library().pl_runtime_claimed_bytes(self)

    @property
    def peak_bytes(self):
        return library().pl_runtime_peak_bytes(self)

    def tensor(self, array, dtype=None, what="given"):
        """A copy of a NumPy array."""
        array = np.asarray(array)
        dtype = dtype or array.dtype.name
        dense = np.array(to_bfloat16(array) if dtype == "bfloat16" else array, order="C")
        shape, pointer = Shape.of(array.shape), ctypes.c_void_p()
        call("pl_tensor_new", self, NUMBER_OF[dtype], ctypes.byref(shape),
             ctypes.c_void_p(dense.ctypes.data), what.encode(), ctypes.byref(pointer))
        return Tensor(pointer.value, self)

    def open(self, path):
        pointer = ctypes.c_void_p()
        call("pl_tensor_open_npy", self, path_text(path), ctypes.byref(pointer))
        return Tensor(pointer.value, self)


class Tensor(Handle):
    release = "pl_tensor_unref"

    def __init__(self, pointer, runtime):
        super().__init__(pointer)
        self.runtime = runtime

    @property
    def dtype(self):
        return DTYPES[library().pl_tensor_dtype(self)]

    @property
    def shape(self):
        return library().pl_tensor_shape(self).contents.tuple()

    @property
    def n_bytes(self):
        return library().pl_tensor_bytes(self)

    def read(self, begin, extent):
        stored = np.dtype("u2" if self.dtype == "bfloat16" else self.dtype)
        array = np.empty(extent, stored)
        both = [(ctypes.c_int64 * RANK_MAX)(*some) for some in (begin, extent)]
        call("pl_tensor_read", self, *both, ctypes.c_void_p(array.ctypes.data))
        return from_bfloat16(array) if self.dtype == "bfloat16" else array

    def numpy(self):
        return self.read([0] * len(self.shape), self.shape)

    def save(self, path):
        call("pl_tensor_save_npy", self, path_text(path))

    def slice(self, start, step, count):
        pointer = ctypes.c_void_p()
        lists = [(ctypes.c_int64 * RANK_MAX)(*some) for some in (start, step, count)]
        call("pl_tensor_slice", self, *lists, ctypes.byref(pointer))
        return Tensor(pointer.value, self.runtime)

    def transpose(self, axes):
        pointer = ctypes.c_void_p()
        call("pl_tensor_transpose", self, (ctypes.c_int * RANK_MAX)(*axes), ctypes.byref(pointer))
        return Tensor(pointer.value, self.runtime)


INT, FLOAT, BOOL, DTYPE, SHAPE, INTS, STRING = range(1, 8)


def _dtype_of(value):
    if isinstance(value, np.dtype):
        return NUMBER_OF[value.name]
    return NUMBER_OF[value[2:]] if isinstance(value, str) and value.startswith("d:") else None


def make_attr(name, value):
    attr = Attr(name.encode())
    if isinstance(value, bool):
        attr.type, attr.value.i = BOOL, value
    elif isinstance(value, (int, np.integer)):
        attr.type, attr.value.i = INT, value
    elif isinstance(value, float):
        attr.type, attr.value.f = FLOAT, value
    elif isinstance(value, (list, tuple)):
        known = [-1 if number is None else int(number) for number in value]
        attr.type, attr.n = (INTS if isinstance(value, list) else SHAPE), len(known)
        attr.value.values = (ctypes.c_int64 * (len(known) + 1))(*known)
    elif _dtype_of(value):
        attr.type, attr.value.dtype = DTYPE, _dtype_of(value)
    else:
        attr.type, attr.value.text = STRING, str(value).encode()
    return attr


class Node:
    """Belongs to its graph."""

    def __init__(self, pointer, graph):
        self.pointer, self.graph = pointer, graph

    @property
    def _as_parameter_(self):
        return ctypes.c_void_p(self.pointer)

    @property
    def name(self):
        return library().pl_node_name(self).decode()

    @property
    def op(self):
        return library().pl_node_op(self).decode()

    @property
    def dtype(self):
        return DTYPES[library().pl_node_dtype(self)]

    @property
    def shape(self):
        return library().pl_node_shape(self).contents.tuple()


def pointers(handles):
    return (ctypes.c_void_p * (len(handles) + 1))(*(handle.pointer for handle in handles))


class Graph(Handle):
    release = "pl_graph_free"

    def __init__(self):
        pointer = ctypes.c_void_p()
        call("pl_graph_new", ctypes.byref(pointer))
        super().__init__(pointer.value)

    def add(self, op, *inputs, name=None, **attrs):
        made = [make_attr(key, value) for key, value in attrs.items() if value is not None]
        pointer = ctypes.c_void_p()
        call("pl_graph_add", self, op.encode(), name and name.encode(), pointers(inputs),
             len(inputs), (Attr * (len(made) + 1))(*made), len(made), ctypes.byref(pointer))
        return Node(pointer.value, self)

    def source(self, op, dtype, shape, name=None, **attrs):
        return self.add(op, name=name, dtype=f"d:{dtype}", shape=tuple(shape), **attrs)

    def placeholder(self, dtype, shape, name=None):
        return self.source("placeholder", dtype, shape, name)

    def constant(self, tensor, name=None):
        node = self.source("constant", tensor.dtype, tensor.shape, name)
        call("pl_constant_set", node, tensor)
        return node


class Session(Handle):
    release = "pl_session_free"

    def __init__(self, graph, runtime):
        pointer = ctypes.c_void_p()
        call("pl_session_new", graph, runtime, ctypes.byref(pointer))
        super().__init__(pointer.value)
        self.graph, self.runtime = graph, runtime

    def set(self, variable, tensor):
        call("pl_session_set", self, variable, tensor)

    def get(self, variable):
        pointer = ctypes.c_void_p()
        call("pl_session_get", self, variable, ctypes.byref(pointer))
        return Tensor(pointer.value, self.runtime) if pointer.value else None

    def _request(self, fetches, feeds, budget_bytes):
        """A fetch is a node, or a pair of a node and the path of its file."""
        pairs = [(one, None) if isinstance(one, Node) else one for one in fetches]
        wanted = (Fetch * (len(pairs) + 1))(
            *(Fetch(node.pointer, path_text(path)) for node, path in pairs))
        given = (Feed * (len(feeds) + 1))(
            *(Feed(node.pointer, tensor.pointer) for node, tensor in feeds.items()))
        options = RunOptions(0, budget_bytes)
        return wanted, len(pairs), given, len(feeds), ctypes.byref(options)

    def run_tensors(self, fetches, feeds=None, budget_bytes=0):
        """A tensor for each fetch; None for those that went to files."""
        request = self._request(fetches, feeds or {}, budget_bytes)
        results = (ctypes.c_void_p * (len(fetches) + 1))()
        call("pl_session_run", self, *request, results)
        return [Tensor(pointer, self.runtime) if pointer else None
                for pointer in results[:len(fetches)]]

    def run(self, fetches, feeds=None, budget_bytes=0):
        """An array for each fetch, read from its file if it has one."""
        return self.read(fetches, self.run_tensors(fetches, feeds, budget_bytes))

    def read(self, fetches, tensors):
        """Arrays of what run_tensors() gave, and closes it."""
        arrays = []
        for fetch, tensor in zip(fetches, tensors):
            arrays.append(tensor.numpy() if tensor else np.load(fetch[1]))
            if tensor:
                tensor.close()
        return arrays

    def cost(self, fetches, feeds=None, budget_bytes=0):
        """What the plan of such a run states."""
        cost = RunCost()
        request = self._request(fetches, feeds or {}, budget_bytes)
        call("pl_session_explain", self, *request, False, None, ctypes.byref(cost))
        return cost

    def explain(self, fetches, feeds=None, budget_bytes=0, as_json=False):
        text = ctypes.c_void_p()
        request = self._request(fetches, feeds or {}, budget_bytes)
        call("pl_session_explain", self, *request, as_json, ctypes.byref(text), None)
        try:
            return ctypes.string_at(text).decode()
        finally:
            ctypes.CDLL(None).free(text)
