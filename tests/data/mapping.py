# SPDX-License-Identifier: Apache-2.0
"""Graphs mapped over datasets, options, and what a pass tells of itself; beside sources.py."""

import contextlib
import ctypes
import json

import sources
from sources import base

AUTO = -1


class Function(ctypes.Structure):
    _fields_ = [("session", ctypes.c_void_p), ("inputs", ctypes.c_void_p),
                ("outputs", ctypes.c_void_p), ("call", ctypes.c_void_p),
                ("output_specs", ctypes.c_void_p), ("n_inputs", ctypes.c_int),
                ("n_outputs", ctypes.c_int), ("context", ctypes.c_void_p),
                ("release", ctypes.c_void_p)]  # fmt: skip


class Bad(ctypes.Structure):
    _fields_ = [("message", ctypes.c_char_p), ("stage", ctypes.c_char_p),
                ("index", ctypes.c_int64), ("path", ctypes.c_char_p), ("offset", ctypes.c_int64),
                ("code", ctypes.c_int), ("reason", ctypes.c_char_p),
                ("error", ctypes.c_void_p)]  # fmt: skip


def mapped(dataset, session, inputs, outputs, n_parallel=AUTO):
    nodes = [base.pointers(some) for some in (inputs, outputs)]
    function = Function(session.pointer, *(ctypes.addressof(some) for some in nodes), None, None,
                        len(inputs), len(outputs))
    made = sources.Dataset("map", dataset, ctypes.byref(function), n_parallel)
    made.session = session  # which it does not own
    return made


@contextlib.contextmanager
def pictures(runtime, paths, size=(64, 64), n_parallel=AUTO, **decoding):
    """Files, read, decoded, resized: (pixels, path)."""
    with base.Graph() as graph:
        path = graph.placeholder("string", ())
        pixels = graph.add("decode_image", graph.add("read_file", path), channels=3, **decoding)
        resized = graph.add("resize", pixels, size=list(size))
        with base.Session(graph, runtime) as session:
            found = sources.paths(runtime, *paths)
            yield mapped(found, session, [path], [resized, path], n_parallel)


def bads(iterator, n_most=100):
    found = (Bad * n_most)()
    n = base.library().pl_iterator_bads(iterator, found, n_most)
    return list(found[:n])


def explain(iterator):
    text = ctypes.c_char_p()
    base.call("pl_iterator_explain", iterator, True, ctypes.byref(text))
    return json.loads(text.value)
