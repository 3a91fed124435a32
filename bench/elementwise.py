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

sys.dont_write_bytecode = True

import numpy as np

import measure
import runtime
from runtime import ROOT

TITLE = "sum of a * b + sin(a), float32"
F32 = runtime.DTYPES["float32"]
PIECE = 1 << 22
BUDGET = 100 * 10**6

DASK = """
import sys, time
import dask, dask.array as da, numpy as np
a, b = (da.from_array(np.load(name, mmap_mode="r"), 1 << 22) for name in sys.argv[1:3])
begin = time.perf_counter()
with dask.config.set(scheduler="threads", num_workers=int(sys.argv[3])):
    (a * b + da.sin(a)).sum(dtype="f8").compute()
print(time.perf_counter() - begin)
"""


class Chain:
    """sum(a * b + sin(a)) in a runtime of its own."""

    def __init__(self, n, n_threads, cap_bytes=0):
        make = (own := runtime.Runtime(n_threads, cap_bytes)).make
        self.runtime, self.graph = own, make("pl_graph_new")
        shape = ctypes.byref(runtime.Shape([n]))
        self.places = [make("pl_graph_placeholder", self.graph, name, F32, shape)
                       for name in (b"a", b"b")]
        a, b = self.places
        product = make("pl_graph_binary", self.graph, b"mul", None, a, b)
        sine = make("pl_graph_unary", self.graph, b"sin", None, a)
        both = make("pl_graph_binary", self.graph, b"add", None, product, sine)
        self.sum = make("pl_graph_reduce", self.graph, b"sum", None, both, None, 0, False)
        self.session = make("pl_session_new", self.graph, own.handle)
        self.tensors = []

    def give_arrays(self, arrays):
        self.tensors = [self.runtime.tensor(array) for array in arrays]

    def give_files(self, paths):
        self.tensors = [self.runtime.make("pl_tensor_open_npy", self.runtime.handle,
                                          os.fsencode(path)) for path in paths]

    def run(self):
        fetch = runtime.Pair(self.sum, None)
        feeds = (runtime.Pair * 2)(*(runtime.Pair(place, tensor)
                                     for place, tensor in zip(self.places, self.tensors)))
        tensor = self.runtime.make("pl_session_run", self.session, ctypes.byref(fetch), 1, feeds, 2,
                                   None)
        value = self.runtime.array(tensor)
        self.runtime.library.pl_tensor_unref(tensor)
        return float(value)

    def peak_bytes(self):
        peak = self.runtime.library.pl_runtime_peak_bytes
        peak.restype = ctypes.c_uint64
        return peak(self.runtime.handle)

    def close(self):
        for tensor in self.tensors:
            self.runtime.library.pl_tensor_unref(tensor)
        self.runtime.library.pl_session_free(self.session)
        self.runtime.library.pl_graph_free(self.graph)
        self.runtime.close()


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
    found = measure.ratio_of(taken[name], taken[ours])
    return f"{found.median:.2f} x ({found.low:.2f}-{found.high:.2f})"


def same(what, got, wanted):
    if abs(got - wanted) > 1e-5 * abs(wanted):
        raise measure.RunFailed(f"{what} gives {got}, and not {wanted}")


def rows_in_memory(loops, n, n_threads, n_rounds, say):
    chance = np.random.default_rng(4)
    a, b = (chance.standard_normal(n, np.float32) for _ in range(2))
    places = [array.ctypes.data_as(ctypes.c_void_p) for array in (a, b)]

    def fused(own_sine):
        return loops.bench_fused(*places, ctypes.c_long(n), n_threads, own_sine)

    chain = Chain(n, n_threads)
    chain.give_arrays([a, b])
    same("plimsoll", chain.run(), fused(0))
    taken = rounds({"plimsoll": chain.run, "loop": lambda: fused(0), "own": lambda: fused(1),
                    "NumPy": lambda: (a * b + np.sin(a)).sum(dtype="f8")}, n_rounds, say, again=2)
    chain.close()
    what = f"{n:.0e} elements in memory, {n_threads} threads"
    return [{"what": f"{what}: speed to a loop by hand with SLEEF's sine",
             "measured": ratio(taken, "loop"), "target": "> 0.85 x"},
            {"what": "to the same loop with our own sine in it", "measured": ratio(taken, "own"),
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


def rows_from_disk(loops, folder, n, budget, n_threads, n_rounds, say):
    paths = [pathlib.Path(folder) / name for name in ("a.npy", "b.npy")]
    for seed, path in enumerate(paths):
        save(path, n, seed)
    names = (ctypes.c_char_p * 2)(*map(os.fsencode, paths))

    def read():
        got = loops.bench_read(names, 2, 2 * n_threads)  # as many as the session has frames
        if got < 0:
            raise OSError(-got, os.strerror(-got))

    chain = Chain(n, n_threads, budget)
    chain.give_files(paths)
    forget(paths)
    taken = rounds({"plimsoll": chain.run, "direct read": read}, n_rounds, say)
    claimed = chain.peak_bytes()
    chain.close()
    forget(paths)
    dask = dask_seconds(paths, n_threads)
    for path in paths:
        path.unlink()
    rows = [{"what": f"{n:.0e} elements from two files in {budget / 1e6:.0f} MB (claimed "
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
    loops, rows = build_loops(folder), []
    if n:
        rows += rows_in_memory(loops, n, n_threads, n_rounds, say)
    if n_in_files:
        rows += rows_from_disk(loops, folder, n_in_files, budget, n_threads, n_rounds, say)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--elements", type=lambda text: int(float(text)), default=10**8)
    parser.add_argument("--file-elements", type=lambda text: int(float(text)), default=10**9)
    parser.add_argument("--budget", type=int, default=BUDGET // 10**6, help="in MB")
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
