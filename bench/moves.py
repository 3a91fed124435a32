#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Times what moves, reduces and sorts elements, through sessions with two threads, against NumPy and
against the memory's bandwidth, interleaved in each round, as ratios.

usage: bench/moves.py [--rounds N] [--sizes large,cached] [--check] [PATTERN]

Each result is new memory, for NumPy as for sessions. `of bandwidth` is the time that two threads in
C take for the same bytes: to read the input and write as much new memory as the output has, or only
to read where the output is small. `CPU` is NumPy's CPU time over the session's, all threads together, and
`CPU of bandwidth` that of the two threads in C: they say the same on a machine that is busy with
other things. Nothing passes or fails here."""

import argparse
import ctypes
import dataclasses
import functools
import os
import re
import subprocess
import sys
import tempfile
import time
import typing

sys.dont_write_bytecode = True

import numpy as np

import document
import measure
import runtime

N_THREADS = 2
HERE = os.path.dirname(os.path.abspath(__file__))
SHORT = {"f32": "float32", "f64": "float64", "i32": "int32", "u8": "uint8", "i64": "int64"}


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    op: str
    attrs: dict
    arrays: list
    numpy: typing.Callable


@functools.lru_cache(maxsize=64)
def some(shape, dtype, seed=1):
    """The same numbers over and over: making new ones would take longer than all that is timed."""
    chance = np.random.default_rng(seed)
    if dtype.startswith("f"):
        few = chance.standard_normal(100003, SHORT[dtype])
    else:
        few = chance.integers(0, 200, 100003, SHORT[dtype])
    return np.resize(few, shape)


def transposes(n):
    """`n` bytes of input, as for all that follow."""
    side = int((n // 4) ** 0.5)
    for dtype in ("f32", "f64", "u8"):
        m = int((n // np.dtype(SHORT[dtype]).itemsize) ** 0.5)
        yield f"{dtype} square", some((m, m), dtype), (1, 0)
        yield f"{dtype} square, rows a power of 2 apart", some((m, 1 << (m.bit_length() - 1)),
                                                               dtype), (1, 0)
    yield "f32 to 5 rows", some((n // 20, 5), "f32"), (1, 0)
    yield "f32 from 5 rows", some((5, n // 20), "f32"), (1, 0)
    for dtype in ("f32", "u8"):
        pixels = int((n / np.dtype(SHORT[dtype]).itemsize / 32) ** 0.5)
        yield f"{dtype} NHWC to NCHW, 32", some((1, pixels, pixels, 32), dtype), (0, 3, 1, 2)
        yield f"{dtype} NCHW to NHWC, 32", some((1, 32, pixels, pixels), dtype), (0, 2, 3, 1)
        pixels = int((n / np.dtype(SHORT[dtype]).itemsize / 12) ** 0.5)
        yield f"{dtype} NHWC to NCHW, 3", some((4, pixels, pixels, 3), dtype), (0, 3, 1, 2)
        yield f"{dtype} NCHW to NHWC, 3", some((4, 3, pixels, pixels), dtype), (0, 2, 3, 1)
    third = max(int((side * side) ** (1 / 3)), 2)
    cube = some((third, third, third), "f32")
    for axes in ((2, 1, 0), (1, 0, 2), (0, 2, 1), (2, 0, 1)):
        yield f"f32 cube {axes}", cube, axes


def slices(n):
    for dtype in ("f32", "u8", "f64"):
        m = int((n // np.dtype(SHORT[dtype]).itemsize) ** 0.5)
        x = some((m, m), dtype)
        yield f"slice {dtype} [:, ::2]", [0, 0], [m, m], [1, 2], x, lambda x: x[:, ::2].copy()
        yield f"slice {dtype} [::2]", [0, 0], [m, m], [2, 1], x, lambda x: x[::2].copy()
        yield (f"slice {dtype} [:, ::-1]", [0, m - 1], [m, -m - 1], [1, -1], x,
               lambda x: x[:, ::-1].copy())
        yield (f"slice {dtype} [::-1]", [m - 1, 0], [-m - 1, m], [-1, 1], x,
               lambda x: x[::-1].copy())


def logsumexp(x, axis):
    top = x.max(axis=axis, keepdims=True)
    return np.log(np.exp(x - top).sum(axis=axis)) + top.squeeze(axis)


def reductions(n):
    by_op = {"sum": np.sum, "mean": np.mean, "max": np.max, "argmax": np.argmax, "any": np.any,
             "variance": np.var, "logsumexp": logsumexp}
    for dtype in ("f32", "f64", "i32", "u8"):
        items = n // np.dtype(SHORT[dtype]).itemsize
        side, third = int(items ** 0.5), max(int(items ** (1 / 3)), 2)
        square, cube = some((side, side), dtype), some((third, third, third), dtype)
        for op, function in by_op.items():
            if op == "logsumexp" and not dtype.startswith("f"):
                continue
            x, y = (square, cube) if op != "any" else (np.zeros_like(square), np.zeros_like(cube))
            for where, array, axis in (("first", x, 0), ("middle", y, 1), ("last", x, 1),
                                       ("all", x, (0, 1))):
                if op == "argmax":
                    if where == "all":
                        continue
                    attrs = {"axis": axis}
                else:
                    attrs = {"axes": [axis] if where != "all" else [0, 1]}
                yield Case(f"{op} {dtype} {where}", op, attrs, [array],
                           lambda x, f=function, axis=axis: f(x, axis=axis))


def moves(n):
    side = int((n // 4) ** 0.5)
    x, y = some((side, side), "f32"), some((side, side), "f32", 2)
    for axis in (0, 1):
        yield Case(f"concat f32 axis {axis}", "concat", {"axis": axis}, [x, y],
                   lambda x, y, axis=axis: np.concatenate([x, y], axis))
    for axis in (0, 2):
        yield Case(f"stack f32 axis {axis}", "stack", {"axis": axis}, [x, y],
                   lambda x, y, axis=axis: np.stack([x, y], axis))
    yield Case("pad f32", "pad", {"before": [3, 5], "after": [2, 1]}, [x],
               lambda x: np.pad(x, ((3, 2), (5, 1))))
    yield Case("tile f32 2 x 2", "tile", {"multiples": [2, 2]}, [x], lambda x: np.tile(x, (2, 2)))
    rows = np.random.default_rng(3).integers(0, side, side)
    yield Case("gather f32 rows", "gather", {"axis": 0}, [x, rows],
               lambda x, rows: np.take(x, rows, axis=0))
    yield Case("gather f32 columns", "gather", {"axis": 1}, [x, rows],
               lambda x, rows: np.take(x, rows, axis=1))
    few = some((n // 32, 8), "f32")
    at = np.random.default_rng(3).integers(0, n // 32, n // 32)
    yield Case("gather f32 rows of 8", "gather", {"axis": 0}, [few, at],
               lambda x, rows: np.take(x, rows, axis=0))


def softmax(x, axis):
    powers = np.exp(x - x.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


def row_ops(n):
    side = int((n // 4) ** 0.5)
    x = some((side, side), "f32")
    for axis in (0, 1):
        yield Case(f"cumsum f32 axis {axis}", "cumsum", {"axis": axis}, [x],
                   lambda x, axis=axis: np.cumsum(x, axis))
        yield Case(f"softmax f32 axis {axis}", "softmax", {"axis": axis}, [x],
                   lambda x, axis=axis: softmax(x, axis))
    for dtype in ("f32", "i32", "f64"):
        for length in (16, 64, 256, 4096):
            items = n // np.dtype(SHORT[dtype]).itemsize // 4
            rows = some((max(items // length, 1), length), dtype)
            yield Case(f"sort {dtype} rows of {length}", "sort", {}, [rows], np.sort)
    wide = some((side, side), "f64")
    yield Case("cast f32 to f64", "cast", {"dtype": "float64"}, [x], lambda x: x.astype("f8"))
    yield Case("cast f64 to f32", "cast", {"dtype": "float32"}, [wide], lambda x: x.astype("f4"))
    pixels = some((n,), "u8")
    yield Case("cast u8 to f32", "cast", {"dtype": "float32"}, [pixels], lambda x: x.astype("f4"))


def cases(n):
    for name, array, axes in transposes(n):
        yield Case(f"transpose {name}", "transpose", {"axes": list(axes)}, [array],
                   lambda x, axes=axes: np.ascontiguousarray(x.transpose(axes)))
    for name, start, stop, step, array, function in slices(n):
        yield Case(name, "slice", {"start": start, "stop": stop, "step": step}, [array], function)
    yield from reductions(n)
    yield from moves(n)
    yield from row_ops(n)


def build_lines(folder):
    path = os.path.join(folder, "bandwidth.so")
    subprocess.run([os.environ.get("CC", "cc"), "-std=gnu17", "-O3", "-march=native", "-shared",
                    "-fPIC", os.path.join(HERE, "bandwidth.c"), "-pthread", "-o", path], check=True)
    library = ctypes.CDLL(path)
    for name, n_sizes in (("bandwidth_copy", 2), ("bandwidth_read", 1)):
        getattr(library, name).restype = ctypes.c_double
        getattr(library, name).argtypes = [ctypes.c_void_p, *[ctypes.c_size_t] * n_sizes,
                                           ctypes.c_int, ctypes.POINTER(ctypes.c_double)]
    return library


def timed(function, n_times, after=None):
    """(wall, CPU) seconds of one call."""
    wall, cpu = 0, 0
    for _ in range(n_times):
        begin, cpu_begin = time.perf_counter(), time.process_time()
        result = function()
        wall += time.perf_counter() - begin
        cpu += time.process_time() - cpu_begin
        del result
        if after:
            after()
    return wall / n_times, cpu / n_times


def line_sizes(case, out_bytes):
    """Bytes that are read for the memory's line, and that are written if they are not few."""
    in_bytes = sum(array.nbytes for array in case.arrays)
    return (in_bytes,) if out_bytes * 8 < in_bytes else (in_bytes, out_bytes)


def measure_case(plimsoll, lines, source, case, n_rounds, check):
    op = runtime.Op(plimsoll, case.op, case.arrays, case.attrs)
    try:
        expected = np.asarray(case.numpy(*case.arrays))
        op.run()
        if check:
            got = plimsoll.array(op.result)
            np.testing.assert_allclose(got, expected, 1e-3, 1e-2, err_msg=case.name)
        op.drop()
        sizes = line_sizes(case, expected.nbytes)
        n_times = max(1, int(4e6 * len(sizes) / max(sum(sizes), 4096)))
        draw = lines.bandwidth_copy if len(sizes) == 2 else lines.bandwidth_read
        walls, cpus, line_cpu = ([], [], []), ([], [], []), ctypes.c_double()
        for _ in range(n_rounds):
            for i, (function, after) in enumerate(((op.run, op.drop),
                                                   (lambda: case.numpy(*case.arrays), None))):
                wall, cpu = timed(function, n_times, after)
                walls[i].append(wall)
                cpus[i].append(cpu)
            walls[2].append(draw(source, *sizes, n_times, line_cpu) / n_times)
            cpus[2].append(line_cpu.value / n_times)
    finally:
        op.close()
    return {"ratio": measure.ratio_of(walls[1], walls[0]), "cpu": measure.ratio_of(cpus[1], cpus[0]),
            "bandwidth": measure.ratio_of(walls[2], walls[0]),
            "cpu_bandwidth": measure.ratio_of(cpus[2], cpus[0]), "best_ms": 1e3 * min(walls[0])}


def rows(sizes, n_rounds, pattern="", check=False, say=lambda text: None):
    """Of the table, as text."""
    plimsoll = runtime.Runtime(N_THREADS)
    table = []
    with tempfile.TemporaryDirectory(prefix="plimsoll-bench-") as folder:
        lines = build_lines(folder)
        source = np.ones(4 * max(sizes.values()), np.uint8).ctypes
        for size, n in sizes.items():
            for case in cases(n):
                if not re.search(pattern, f"{case.name} {size}"):
                    continue
                r = measure_case(plimsoll, lines, source.data, case, n_rounds, check)
                table.append([case.name, size, document.show_ratio(r["ratio"], 2),
                              document.show_ratio(r["cpu"], 2),
                              document.show_ratio(r["bandwidth"], 2),
                              document.show_ratio(r["cpu_bandwidth"], 2), f"{r['best_ms']:.3f} ms"])
                say("  ".join(text.ljust(24) for text in table[-1]))
    plimsoll.close()
    return table


HEADER = ["op", "size", "NumPy's time / ours", "CPU", "of bandwidth", "CPU of bandwidth",
          "best"]
SIZES = {"large": 64 << 20, "cached": 256 << 10}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sizes", default=",".join(SIZES))
    parser.add_argument("--check", action="store_true", help="hold results against NumPy's")
    parser.add_argument("pattern", nargs="?", default="", help="which: a regular expression")
    arguments = parser.parse_args()
    sizes = {name: SIZES[name] for name in arguments.sizes.split(",")}
    rows(sizes, arguments.rounds, arguments.pattern, arguments.check,
         lambda text: print(text, flush=True))


if __name__ == "__main__":
    main()
