#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Times the sum of a * b + sin(a) against a loop written for it by hand, and from disk against
reading the same files and nothing else: interleaved in each round, as ratios.

usage: bench/elementwise.py [--elements N] [--file-elements N] [--budget MB] [--rounds N]
                            [--threads N] [--folder PATH]

Nothing passes or fails here: a machine may be busy."""

import argparse
import ctypes
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("PLIMSOLL_BUILD", ROOT / "build")) / "meson"
F32 = 12  # PL_F32
RANK_MAX = 8
PIECE = 1 << 22

DASK = """
import sys, time
import dask, dask.array as da, numpy as np
a, b = (da.from_array(np.load(name, mmap_mode="r"), 1 << 22) for name in sys.argv[1:3])
begin = time.perf_counter()
with dask.config.set(scheduler="threads", num_workers=int(sys.argv[3])):
    (a * b + da.sin(a)).sum(dtype="f8").compute()
print(time.perf_counter() - begin)
"""


class Shape(ctypes.Structure):
    _fields_ = [("rank", ctypes.c_int32), ("dims", ctypes.c_int64 * RANK_MAX)]


class RuntimeOptions(ctypes.Structure):
    _fields_ = [("budget_text", ctypes.c_char_p), ("cap_bytes", ctypes.c_uint64),
                ("spill_directory", ctypes.c_char_p), ("spill_limit_bytes", ctypes.c_uint64),
                ("n_threads", ctypes.c_int)]


class Fetch(ctypes.Structure):
    _fields_ = [("node", ctypes.c_void_p), ("npy_path", ctypes.c_char_p)]


class Feed(ctypes.Structure):
    _fields_ = [("placeholder", ctypes.c_void_p), ("tensor", ctypes.c_void_p)]


class Error(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int), ("message", ctypes.c_char * 480)]


class Library:
    """libplimsoll, with its errors as exceptions."""

    def __init__(self):
        self.functions = ctypes.CDLL(str(BUILD / "src/codec/libplimsoll.so"))

    def make(self, name, *arguments):
        """Calls a function that gives an object or a failure."""
        result, error = ctypes.c_void_p(), Error()
        code = self.functions[name](*arguments, ctypes.byref(result), ctypes.byref(error))
        if code < 0:
            raise RuntimeError(error.message.decode())
        return result

    def drop(self, name, thing):
        self.functions[name](thing)


class Chain:
    """sum(a * b + sin(a)) in a runtime of its own."""

    def __init__(self, library, n, n_threads, cap_bytes=0):
        self.library = library
        options = RuntimeOptions(None, cap_bytes, None, 0, n_threads)
        self.runtime = library.make("pl_runtime_new", ctypes.byref(options))
        self.graph = library.make("pl_graph_new")
        self.shape = Shape(1, (ctypes.c_int64 * RANK_MAX)(n))
        self.places = [library.make("pl_graph_placeholder", self.graph, name, F32,
                                    ctypes.byref(self.shape)) for name in (b"a", b"b")]
        a, b = self.places
        product = library.make("pl_graph_binary", self.graph, b"mul", None, a, b)
        sine = library.make("pl_graph_unary", self.graph, b"sin", None, a)
        both = library.make("pl_graph_binary", self.graph, b"add", None, product, sine)
        self.sum = library.make("pl_graph_reduce", self.graph, b"sum", None, both, None, 0, False)
        self.session = library.make("pl_session_new", self.graph, self.runtime)
        self.tensors = []

    def give_arrays(self, arrays):
        self.tensors = [
            self.library.make("pl_tensor_new", self.runtime, F32, ctypes.byref(self.shape),
                              array.ctypes.data_as(ctypes.c_void_p), b"given")
            for array in arrays]

    def give_files(self, paths):
        self.tensors = [self.library.make("pl_tensor_open_npy", self.runtime, os.fsencode(path))
                        for path in paths]

    def run(self):
        fetch = Fetch(self.sum, None)
        feeds = (Feed * 2)(*(Feed(place, tensor)
                             for place, tensor in zip(self.places, self.tensors)))
        tensor = self.library.make("pl_session_run", self.session, ctypes.byref(fetch), 1, feeds, 2,
                                   None)
        value, zero = ctypes.c_float(), (ctypes.c_int64 * RANK_MAX)()
        error = Error()
        code = self.library.functions.pl_tensor_read(tensor, zero, zero, ctypes.byref(value),
                                                     ctypes.byref(error))
        self.library.drop("pl_tensor_unref", tensor)
        if code < 0:
            raise RuntimeError(error.message.decode())
        return value.value

    def close(self):
        for tensor in self.tensors:
            self.library.drop("pl_tensor_unref", tensor)
        self.library.drop("pl_session_free", self.session)
        self.library.drop("pl_graph_free", self.graph)
        self.library.drop("pl_runtime_unref", self.runtime)


def build_loops(folder):
    path = pathlib.Path(folder) / "libloops.so"
    command = [os.environ.get("CC", "cc"), "-std=gnu17", "-O3", "-march=native", "-ffast-math",
               "-Wno-psabi", "-DPL_ISA=bench", f"-I{ROOT}/src", f"-I{ROOT}/include", "-shared",
               "-fPIC", str(ROOT / "bench/elementwise_loop.c"), "-lsleef", "-lm", "-pthread", "-o",
               str(path)]
    subprocess.run(command, check=True)
    loops = ctypes.CDLL(str(path))
    loops.bench_fused.restype = ctypes.c_double
    loops.bench_read.restype = ctypes.c_long
    return loops


def rounds(contenders, n_rounds, say, again=1):
    """Seconds of each, by name: the best of `again` in each round, all in turn."""
    taken = {name: [] for name in contenders}
    for i in range(n_rounds):
        for name, work in contenders.items():
            best = []
            for _ in range(again):
                begin = time.perf_counter()
                work()
                best.append(time.perf_counter() - begin)
            taken[name].append(min(best))
        say(f"elementwise: round {i + 1} of {n_rounds}: "
            + ", ".join(f"{name} {values[-1]:.3f} s" for name, values in taken.items()))
    return taken


def ratio(taken, name, ours="plimsoll"):
    """How many times as fast as `name`: median and quartiles of the rounds."""
    values = [theirs / mine for theirs, mine in zip(taken[name], taken[ours])]
    if len(values) == 1:
        return f"{values[0]:.2f} x"
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{median:.2f} x ({low:.2f}-{high:.2f})"


def same(what, got, wanted):
    if abs(got - wanted) > 1e-5 * abs(wanted):
        raise RuntimeError(f"{what} gives {got}, and not {wanted}")


def rows_in_memory(library, loops, n, n_threads, n_rounds, say):
    chance = np.random.default_rng(4)
    a, b = (chance.standard_normal(n, np.float32) for _ in range(2))
    places = [array.ctypes.data_as(ctypes.c_void_p) for array in (a, b)]

    def fused(own_sine):
        return loops.bench_fused(*places, ctypes.c_long(n), n_threads, own_sine)

    chain = Chain(library, n, n_threads)
    chain.give_arrays([a, b])
    same("plimsoll", chain.run(), fused(0))
    taken = rounds({"plimsoll": chain.run, "loop": lambda: fused(0), "own": lambda: fused(1),
                    "NumPy": lambda: (a * b + np.sin(a)).sum(dtype="f8")}, n_rounds, say, again=2)
    chain.close()
    what = f"sum of a * b + sin(a), {n:.0e} float32 in memory, {n_threads} threads"
    return [{"what": f"{what}: speed to a loop by hand with SLEEF's sine",
             "measured": ratio(taken, "loop"), "target": "> 0.85 x"},
            {"what": "the same with our own sine in it", "measured": ratio(taken, "own"),
             "target": "> 0.85 x"},
            {"what": "to NumPy", "measured": ratio(taken, "NumPy"), "target": "> 5 x"}]


def save(path, n, seed):
    out = np.lib.format.open_memmap(path, "w+", np.float32, (n,))
    chance = np.random.default_rng(seed)
    piece = chance.standard_normal(min(n, PIECE), np.float32)
    for at in range(0, n, PIECE):
        out[at : at + PIECE] = piece[: min(PIECE, n - at)]
    out.flush()
    del out


def forget(paths):
    """So that nobody finds them in the page cache."""
    for path in paths:
        fd = os.open(path, os.O_RDONLY)
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def dask_seconds(paths, n_threads):
    argv = ["/usr/bin/python3", "-c", DASK, *map(str, paths), str(n_threads)]
    done = subprocess.run(argv, capture_output=True, text=True)
    return float(done.stdout) if done.returncode == 0 else None


def rows_from_disk(library, loops, folder, n, budget, n_threads, n_rounds, say):
    paths = [pathlib.Path(folder) / name for name in ("a.npy", "b.npy")]
    for seed, path in enumerate(paths):
        save(path, n, seed)
    names = (ctypes.c_char_p * 2)(*map(os.fsencode, paths))

    def read():
        got = loops.bench_read(names, 2, n_threads)
        if got < 0:
            raise OSError(-got, os.strerror(-got))

    chain = Chain(library, n, n_threads, budget)
    chain.give_files(paths)
    forget(paths)
    taken = rounds({"plimsoll": chain.run, "direct read": read}, n_rounds, say)
    peak = library.functions.pl_runtime_peak_bytes
    peak.restype = ctypes.c_uint64
    claimed = peak(chain.runtime)
    chain.close()
    forget(paths)
    dask = dask_seconds(paths, n_threads)
    for path in paths:
        path.unlink()
    rows = [{"what": f"the same, {n:.0e} from two files in {budget / 1e6:.0f} MB (claimed "
                     f"{claimed / 1e6:.0f} MB): speed to a direct read of the files "
                     f"({8 * n / statistics.median(taken['direct read']) / 1e9:.2f} GB/s)",
             "measured": ratio(taken, "direct read"), "target": "> 0.9 x"}]
    if dask:
        ours = statistics.median(taken["plimsoll"])
        rows.append({"what": "to dask.array, which has no budget",
                     "measured": f"{dask / ours:.1f} x", "target": "-"})
    return rows


def costs(folder, n, n_in_files, budget, n_threads, n_rounds, say):
    """The rows of the table."""
    library, loops = Library(), build_loops(folder)
    rows = []
    if n:
        rows += rows_in_memory(library, loops, n, n_threads, n_rounds, say)
    if n_in_files:
        rows += rows_from_disk(library, loops, folder, n_in_files, budget, n_threads, n_rounds, say)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--elements", type=lambda text: int(float(text)), default=10**8)
    parser.add_argument("--file-elements", type=lambda text: int(float(text)), default=10**9)
    parser.add_argument("--budget", type=int, default=100, help="in MB")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for row in costs(folder, options.elements, options.file_elements, options.budget * 10**6,
                         options.threads, options.rounds,
                         lambda text: print(text, file=sys.stderr, flush=True)):
            print(f"{row['measured']:24} {row['target']:10} {row['what']}")


if __name__ == "__main__":
    sys.exit(main())
