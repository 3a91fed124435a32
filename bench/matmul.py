#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Times products of matrices, as sessions compute them, against bare BLAS calls of the same rounds.

usage: bench/matmul.py [--sizes N,N] [--scale PART] [--rounds N] [--no-peers] [--folder PATH]

What is from files has operands and result in .npy files, and runs in a memory cgroup (version 1) of
the budget and 16 MiB for the program itself, where the user may make one. numpy.memmap and dask get
cgroups of the same size, and one round: they take long. The bare call has the kernels that our library
chooses (exec/matmul/blas_set_up.h); where OpenBLAS by itself would choose others, they have a row of their
own. Nothing passes or fails here: a machine may be busy."""

import argparse
import contextlib
import dataclasses
import os
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

import document
import measure
import numpy as np
from subjects import PYTHON

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("PLIMSOLL_BUILD", ROOT / "build")) / "meson"
CGROUPS = pathlib.Path("/sys/fs/cgroup/memory")
PROGRAM_BYTES = 16 << 20
PEER_SECONDS = 600
BATCH = 4096, 64, 64
N_RUNS = 2  # of what is in memory, in one process: the first one pays for touching memory, the last counts

# size -> what is measured: in memory, and from files, each with the speed wanted, to bare BLAS.
IN_MEMORY = {4096: 0.98, 10000: 0.98}
FROM_FILES = {10000: {100: 0.90, 400: 0.93}, 20000: {100: 0.83, 400: 0.93}}  # megabytes
SQUARES = (10000,)
SQUARE_TIME, BATCH_SPEED = 0.6, 1.6
PEERS_AT = {10000: 400}

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


@dataclasses.dataclass
class Contender:
    what: str
    argv: list
    words: str = ""
    limit_bytes: int = 0  # of its cgroup
    environment: dict = dataclasses.field(default_factory=dict)  # and what is there
    target: str = ""
    as_time: bool = False  # the ratio that is shown: of times, else of speeds
    n_rounds: int = 0  # at most; 0: all
    seconds: list = dataclasses.field(default_factory=list)
    note: str = ""


def build(source, folder, *how):
    program = folder / source.stem
    command = ["cc", "-std=gnu17", "-D_GNU_SOURCE", "-O2", f"-I{ROOT}/include", source, *how]
    subprocess.run([*command, "-o", program], check=True)
    return program


def inside():
    """For a program that calls what the library does not export."""
    libraries = [BUILD / "src/libplimsoll-runtime.a"]
    libraries += sorted((BUILD / "src/kernels").glob("*.a"))
    libraries += sorted((BUILD / "src").glob("*/libplimsoll-core.a"))
    others = "-lsleef -Wl,--as-needed -lopenblas -ljpeg -lspng -ldeflate -lm -pthread"
    return [f"-I{ROOT}/src", *libraries, *others.split()]


def outside():
    library = BUILD / "src"
    return [f"-L{library}", "-lplimsoll", f"-Wl,-rpath,{library}"]


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


def run(contender, folder):
    """The seconds that the program says last, or None; and what its cgroup had at most."""
    with cgroup(contender.limit_bytes) if contender.limit_bytes else contextlib.nullcontext() as group:
        join = (lambda: (group / "cgroup.procs").write_text("0")) if group else None
        try:
            done = subprocess.run(contender.argv, input=contender.words, cwd=folder, text=True,
                                  capture_output=True, preexec_fn=join, timeout=PEER_SECONDS,
                                  env={**os.environ, **contender.environment})
        except subprocess.TimeoutExpired:
            return None, f"not done after {PEER_SECONDS} s"
        if done.returncode != 0:
            last = done.stderr.strip().splitlines()[-1:]
            return None, f"status {done.returncode} {' '.join(last)[-100:]}".strip()
        note = ""
        if group:
            peak = int((group / "memory.max_usage_in_bytes").read_text())
            met = (group / "memory.failcnt").read_text().strip()
            note = f"cgroup peak {peak / 1e6:.0f} MB, failcnt {met}"
        return float(done.stdout.split()[-1]), note


def save(path, shape, seed):
    """In pieces, so that the file is as large as it likes."""
    out = np.lib.format.open_memmap(path, "w+", np.float32, shape)
    chance = np.random.default_rng(seed)
    for row in range(0, shape[0], 512):
        out[row : row + 512] = chance.standard_normal(out[row : row + 512].shape, np.float32)
    out.flush()


def kernels(library):
    """The name of the kernels that OpenBLAS uses in a process that has loaded a library."""
    words = f"""
import ctypes
library = ctypes.CDLL({str(library)!r})
name = ctypes.CDLL("libopenblas.so.0").openblas_get_corename
name.restype = ctypes.c_char_p
print(name().decode())"""
    return subprocess.check_output([PYTHON, "-c", words], text=True).strip()


class Programs:
    def __init__(self, folder):
        self.own_kernels = kernels("libopenblas.so.0")
        self.our_kernels = kernels(BUILD / "src/libplimsoll.so")
        self.bare = build(ROOT / "tests/programs/matmul_tool.c", folder, *inside())
        self.ours = build(ROOT / "bench/product.c", folder, *outside())

    def blas(self, what, times):
        return Contender(what, [self.bare], "blas 2 a.npy b.npy c.npy\n" * times)

    def session(self, what, where, cap_bytes=0, operands=("a.npy", "b.npy"), **more):
        runs = N_RUNS if where == "memory" else 1
        turned = "1" if operands[0] == operands[1] else "0"
        argv = [self.ours, where, str(cap_bytes), turned, str(runs), *operands, "c.npy"]
        return Contender(what, argv, **more)


def large(programs, size, scale, peers):
    """The contenders of one size; the first is what the others are compared with. `scale`: smaller
    matrices, to try this, and budgets that are smaller alike."""
    n = int(size * scale)
    yield programs.blas(f"{n}: bare sgemm, in memory, {programs.our_kernels}'s kernels", N_RUNS)
    if programs.own_kernels != programs.our_kernels and size in IN_MEMORY:
        own = programs.blas(f"{n}: the same with OpenBLAS's own choice, {programs.own_kernels}'s", 1)
        own.environment = {"OPENBLAS_CORETYPE": programs.own_kernels}
        own.n_rounds = 3
        yield own
    if size in IN_MEMORY:
        yield programs.session(f"{n}: in memory", "memory", target=f">= {IN_MEMORY[size]}")
    if size in SQUARES:
        yield programs.session(f"{n}: a matrix times itself transposed, in memory", "memory",
                               operands=("a.npy", "a.npy"), as_time=True,
                               target=f"time <= {SQUARE_TIME}")
    for megabytes, wanted in FROM_FILES.get(size, {}).items():
        budget = max(int(megabytes * 10**6 * scale**2), 8 * 10**6)
        what = f"{n}: from files, in {budget / 10**6:.0f} MB"
        limit = budget + PROGRAM_BYTES
        yield programs.session(what, "files", budget, limit_bytes=limit, target=f">= {wanted}")
        if peers and megabytes == PEERS_AT.get(size):
            for name, program in (("numpy.memmap", MEMMAP), ("dask.array", DASK)):
                yield Contender(f"{n}: {name}, from files, in {budget / 10**6:.0f} MB",
                                [PYTHON, "-c", program], limit_bytes=limit, n_rounds=1)


def batches(programs):
    count, rows, _ = BATCH
    yield programs.blas(f"{count} of {rows} x {rows}: sgemm in a loop", N_RUNS)
    yield programs.session(f"{count} of {rows} x {rows}: in one step", "memory",
                           target=f">= {BATCH_SPEED}")


def take_turns(field, folder, n_rounds, say):
    for i in range(n_rounds):
        for contender in field:
            if contender.n_rounds and i >= contender.n_rounds:
                continue
            seconds, contender.note = run(contender, folder)
            contender.seconds.append(seconds)
            told = "failed" if seconds is None else f"{seconds:.2f} s"
            say(f"{contender.what}, round {i + 1} of {n_rounds}: {told} {contender.note}")


def measured(contender, base):
    pairs = [(mine, bare) for mine, bare in zip(contender.seconds, base.seconds) if mine and bare]
    if not pairs:
        return f"failed: {contender.note}"
    mine, bare = zip(*pairs)
    ratio = measure.ratio_of(mine, bare) if contender.as_time else measure.ratio_of(bare, mine)
    shown = document.show_ratio(ratio)
    if contender is base:
        shown = f"{np.median(mine):.2f} s"
    return f"{shown}; {contender.note}" if contender.note else shown


def costs(directory, sizes, scale, n_rounds, peers, say):
    """Rows for document.cost_table()."""
    rows = []
    with tempfile.TemporaryDirectory(dir=directory) as name:
        folder = pathlib.Path(name)
        programs = Programs(folder)
        for size in (*sizes, BATCH):
            shape = size if size is BATCH else (int(size * scale),) * 2
            save(folder / "a.npy", shape, 1)
            save(folder / "b.npy", shape, 2)
            os.sync()
            field = list(batches(programs) if size is BATCH else large(programs, size, scale, peers))
            is_long = size is not BATCH and size >= 20000
            take_turns(field, folder, min(n_rounds, 2) if is_long else n_rounds, say)
            rows += [{"what": one.what, "measured": measured(one, field[0]), "target": one.target}
                     for one in field]
    return rows


TITLE = "speed, to bare BLAS in memory"
SIZES = tuple(sorted({*IN_MEMORY, *FROM_FILES}))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default=SIZES, type=lambda text: [int(n) for n in text.split(",")])
    parser.add_argument("--scale", type=float, default=1, help="of the matrices' sides, to try this")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--folder", help="for the files (default: a temporary one)")
    options = parser.parse_args()
    rows = costs(options.folder, options.sizes, options.scale, options.rounds, not options.no_peers,
                 lambda text: print(text, file=sys.stderr, flush=True))
    print(document.cost_table(TITLE, rows))


if __name__ == "__main__":
    sys.exit(main())
