#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Times products of matrices against one bare BLAS call, interleaved in each round, as ratios.

usage: bench/matmul.py [--size N] [--budgets MB,MB] [--rounds N] [--peers] [--folder PATH]

Operands and result of the products from disk are .npy files in the folder; these run in a memory
cgroup of the budget and 16 MiB for the program itself, where the user may make one. --peers adds
numpy.memmap, and dask where it is installed, in cgroups of the same size: they take long. Nothing
passes or fails here: a machine may be busy."""

import argparse
import contextlib
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("PLIMSOLL_BUILD", ROOT / "build")) / "meson"
CGROUPS = pathlib.Path("/sys/fs/cgroup/memory")
PROGRAM_BYTES = 16 << 20
PEER_SECONDS = 600

MEMMAP = """
import numpy as np, time
a, b = (np.load(n, mmap_mode="r") for n in ("a.npy", "b.npy"))
begin = time.perf_counter()
c = np.lib.format.open_memmap("c.npy", "w+", a.dtype, (a.shape[0], b.shape[1]))
np.matmul(a, b, out=c)
c.flush()
print(time.perf_counter() - begin)
"""

DASK = """
import dask, dask.array as da, numpy as np, time
a, b = (np.load(n, mmap_mode="r") for n in ("a.npy", "b.npy"))
begin = time.perf_counter()
c = np.lib.format.open_memmap("c.npy", "w+", a.dtype, (a.shape[0], b.shape[1]))
chunks = (a.shape[0] // 10, a.shape[1] // 10)
with dask.config.set(scheduler="threads", num_workers=2):
    da.store(da.from_array(a, chunks) @ da.from_array(b, chunks), c)
c.flush()
print(time.perf_counter() - begin)
"""


def build_tool(folder):
    tool = folder / "matmul_tool"
    libraries = [BUILD / "src/codec/libplimsoll-runtime.a"]
    libraries += sorted((BUILD / "src/kernels").glob("*.a"))
    libraries += sorted((BUILD / "src").glob("*/libplimsoll-core.a"))
    command = ["cc", "-std=gnu17", "-D_GNU_SOURCE", "-O2", f"-I{ROOT}/src", f"-I{ROOT}/include"]
    command += [ROOT / "tests/programs/matmul_tool.c", *libraries]
    command += ["-lsleef", "-lopenblas", "-lm", "-pthread", "-o", tool]
    subprocess.run(command, check=True)
    return tool


@contextlib.contextmanager
def cgroup(limit_bytes):
    """A memory cgroup (version 1), or None where there is none to be had."""
    path = CGROUPS / f"plimsoll-bench-{os.getpid()}"
    try:
        path.mkdir()
    except OSError:
        yield None
        return
    try:
        (path / "memory.limit_in_bytes").write_text(str(limit_bytes))
        yield path
    finally:
        path.rmdir()


def run(argv, folder, words="", limit_bytes=None):
    """The program's last answer, and what its cgroup had at most and how often it met its limit."""
    with cgroup(limit_bytes) if limit_bytes else contextlib.nullcontext() as group:
        join = (lambda: (group / "cgroup.procs").write_text("0")) if group else None
        try:
            done = subprocess.run(argv, input=words, cwd=folder, capture_output=True, text=True,
                                  preexec_fn=join, timeout=PEER_SECONDS)
        except subprocess.TimeoutExpired:
            return None, f"not done after {PEER_SECONDS} s"
        if done.returncode != 0:
            return None, f"status {done.returncode}: {done.stderr.strip()[-100:]}"
        note = ""
        if group:
            peak = int((group / "memory.max_usage_in_bytes").read_text())
            note = f"cgroup peak {peak / 1e6:.0f} MB, failcnt {(group / 'memory.failcnt').read_text().strip()}"
        return float(done.stdout.split()[-1]), note


def save(folder, name, shape, seed):
    """In pieces, so that the file is as large as it likes."""
    out = np.lib.format.open_memmap(folder / name, "w+", np.float32, shape)
    chance = np.random.default_rng(seed)
    for row in range(0, shape[0], 512):
        out[row : row + 512] = chance.standard_normal(out[row : row + 512].shape, np.float32)
    out.flush()


def contenders(tool, options):
    """Name -> (argv, words on stdin, limit); the first is what the others are compared with."""
    ours = "matmul {} 0 {} {} {} {} c.npy\n"
    yield "bare BLAS", ([tool], "blas 2 a.npy b.npy c.npy\n", None)
    yield "in memory", ([tool], ours.format(1 << 40, 0, "rrr", "a.npy", "b.npy"), None)
    yield "A x A-transposed", ([tool], ours.format(1 << 40, 1, "rrr", "a.npy", "a.npy"), None)
    for megabytes in options.budgets:
        budget = megabytes * 10**6
        words = ours.format(budget, 0, "fff", "a.npy", "b.npy")
        yield f"files, {megabytes} MB", ([tool], words, budget + PROGRAM_BYTES)
        if options.peers:
            for name, program in (("numpy.memmap", MEMMAP), ("dask", DASK)):
                argv = ["/usr/bin/python3", "-c", program]
                yield f"{name}, {megabytes} MB", (argv, "", budget + PROGRAM_BYTES)


def batches(tool):
    yield "looped BLAS, 4096 of 64", ([tool], "blas 2 sa.npy sb.npy sc.npy\n" * 3, None)
    yield "batch, 4096 of 64", ([tool], "batch sa.npy sb.npy sc.npy\n" * 3, None)


def measure(group, folder, n_rounds):
    times, notes = {}, {}
    for _ in range(n_rounds):
        for name, (argv, words, limit) in group.items():
            seconds, notes[name] = run(argv, folder, words, limit)
            times.setdefault(name, []).append(seconds)
    base = times[next(iter(group))]
    for name, values in times.items():
        ratios = [value / first for value, first in zip(values, base) if value and first]
        median = f"{statistics.median(ratios):.3f}" if ratios else "-"
        shown = " ".join("-" if value is None else f"{value:.3f}" for value in values)
        print(f"{name:28} {median:>7}  ({shown} s)  {notes[name]}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=10000)
    parser.add_argument("--budgets", default="100,400", type=lambda text: [int(n) for n in text.split(",")])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--folder", default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = pathlib.Path(name)
        tool = build_tool(folder)
        for operand, seed in (("a.npy", 1), ("b.npy", 2)):
            save(folder, operand, (options.size, options.size), seed)
            save(folder, "s" + operand, (4096, 64, 64), seed)
        os.sync()
        print(f"{options.size} x {options.size} float32; time as a ratio to the first", flush=True)
        measure(dict(contenders(tool, options)), folder, options.rounds)
        measure(dict(batches(tool)), folder, options.rounds)


if __name__ == "__main__":
    sys.exit(main())
