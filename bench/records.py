#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Times reading TFRecord files, in the page cache, by one core: the reader beside a loop of a few
lines that looks at no checksum, and beside Python; packed files beside zlib.

usage: bench/records.py [--rounds N] [--mebibytes N]

Ratios of processor time in interleaved rounds. Nothing passes or fails here: a machine may be
busy."""

import argparse
import os
import pathlib
import random
import statistics
import struct
import subprocess
import tempfile
import time
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("PLIMSOLL_BUILD", ROOT / "build")) / "meson"
TITLE = "records: GB of data per second and core"
HEADER = ("TFRecord files, records", "read by", "GB/s per core", "ratio")
WINDOW = 524288
LENGTHS = {"small": 200, "medium": 4000, "large": 100000}  # of a record, about


def build_program(folder):
    libraries = [BUILD / "src/libplimsoll-runtime.a"]
    libraries += sorted((BUILD / "src/kernels").glob("libplimsoll-kernels-*.a"))
    libraries += sorted((BUILD / "src").glob("*/libplimsoll-core.a"))
    program = pathlib.Path(folder) / "records"
    subprocess.run([os.environ.get("CC", "cc"), "-std=gnu17", "-D_GNU_SOURCE", "-O2", "-g",
                    f"-I{ROOT}/include", f"-I{ROOT}/src", ROOT / "bench/records.c", *libraries,
                    "-Wl,--as-needed", "-lsleef", "-lopenblas", "-ljpeg", "-lspng", "-ldeflate",
                    "-lisal", "-lz", "-lm", "-pthread", "-o", program], check=True)
    return program


def make_file(program, folder, name, mebibytes):
    """Bytes that gzip makes about a third smaller, in records of lengths around the given one."""
    chance = random.Random(1)
    block = bytes(chance.choices(range(64), k=1 << 20))
    path = pathlib.Path(folder) / name
    about, left = LENGTHS[name], mebibytes << 20
    lengths = []
    while left > 0:
        lengths.append(chance.randrange(about // 2, about + about // 2))
        left -= lengths[-1] + 16
    feed = b"".join(struct.pack("<I", length) for length in lengths)
    subprocess.run([program, "make", path, "0"], input=block + feed, check=True,
                   stdout=subprocess.DEVNULL)
    return path


def pack(path):
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    packed = path.with_suffix(".gz")
    packed.write_bytes(packer.compress(path.read_bytes()) + packer.flush())
    return packed


def python_loop(path):
    """What people write who have no reader: no checksum either."""
    n_bytes = 0
    begin = time.process_time()
    with open(path, "rb") as file:
        while head := file.read(12):
            (n,) = struct.unpack_from("<Q", head)
            n_bytes += len(file.read(n))
            file.read(4)
    return n_bytes / (time.process_time() - begin) / 1e9


def speed(program, mode, path):
    if mode == "python":
        return python_loop(path)
    done = subprocess.run([program, mode, path, str(WINDOW)], check=True, text=True,
                          capture_output=True)
    _, n_bytes, seconds = done.stdout.split()
    return int(n_bytes) / float(seconds) / 1e9


def rounds_of(program, modes, path, n_rounds):
    speeds = {mode: [] for mode in modes}
    for number in range(n_rounds):
        first = number % len(modes)
        for mode in modes[first:] + modes[:first]:
            speeds[mode].append(speed(program, mode, path))
    return speeds


def spread(values, digits=2):
    if len(values) < 2:
        return f"{values[0]:.{digits}f}"
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{median:.{digits}f} ({low:.{digits}f}-{high:.{digits}f})"


def row(file, speeds, mode, peer):
    ratios = [ours / other for ours, other in zip(speeds[mode], speeds[peer])]
    return (file, mode, spread(speeds[mode]), f"{spread(ratios)} x {peer}")


def measure_all(n_rounds, mebibytes):
    rows = []
    with tempfile.TemporaryDirectory(prefix="plimsoll-bench-") as folder:
        program = build_program(folder)
        for name in LENGTHS:
            path = make_file(program, folder, name, mebibytes)
            modes = ["bare", "sums", "reader", "table", "python"]
            speeds = rounds_of(program, modes, path, n_rounds)
            rows += [row(name, speeds, mode, "bare") for mode in modes]
            if name == "medium":
                packed = pack(path)
                speeds = rounds_of(program, ["zlib", "unpack", "reader"], packed, n_rounds)
                rows += [row("medium, gzip", speeds, mode, "zlib") for mode in speeds]
            path.unlink()
    return rows


def main():
    parser = argparse.ArgumentParser(description=TITLE)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--mebibytes", type=int, default=256)
    arguments = parser.parse_args()
    print("| records | read by | GB/s | ratio |\n|---|---|---|---|")
    for cells in measure_all(arguments.rounds, arguments.mebibytes):
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
