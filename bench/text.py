#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Times reading lines, CSV and tar files against what Python has for it: CPU time, interleaved in each
round. The files are made with a fixed seed, and are in the page cache.

usage: bench/text.py [--megabytes N] [--rounds N] [--folder PATH]

Nothing passes or fails here: a machine may be busy."""

import argparse
import io
import os
import pathlib
import statistics
import subprocess
import sys
import tarfile
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("PLIMSOLL_BUILD", ROOT / "build")) / "meson"

# Each reads the file `path` to its end, and says its CPU time without that of starting.
PEER = """
import csv, sys, tarfile, time
import numpy as np, pandas as pd
path, kinds = sys.argv[1], sys.argv[2]
begin = time.process_time()
{body}
print(time.process_time() - begin)
"""
LINES = {"Python's lines": "for line in open(path, 'rb'): pass"}
NUMBERS = {
    "csv.reader, fields as text": "for row in csv.reader(open(path, newline='')): pass",
    "csv.reader, floats": "rows = csv.reader(open(path, newline=''))\nnext(rows)\n"
                          "for row in rows: [float(x) for x in row]",
    "numpy.loadtxt": "np.loadtxt(path, delimiter=',', skiprows=1, dtype=kinds)",
    "pandas, exact": "pd.read_csv(path, dtype=kinds, float_precision='round_trip')",
    "pandas": "pd.read_csv(path, dtype=kinds)",
}  # fmt: skip
MIXED = {
    "csv.reader, fields as text": NUMBERS["csv.reader, fields as text"],
    "pandas": "pd.read_csv(path)",
}
TAR = {"tarfile": "tar = tarfile.open(path, 'r|')\n"
                  "for info in tar: tar.extractfile(info).read()"}


def build_program(folder):
    program = pathlib.Path(folder) / "text"
    libraries = [next(BUILD.glob("src/**/libplimsoll-runtime.a")),
                 *sorted(BUILD.glob("src/kernels/libplimsoll-kernels-*.a")),
                 next(BUILD.glob("src/*/libplimsoll-core.a"))]
    subprocess.run([os.environ.get("CC", "cc"), "-std=gnu17", "-O2", "-g", "-D_GNU_SOURCE",
                    f"-I{ROOT}/include", f"-I{ROOT}/src", ROOT / "bench/text.c", *libraries,
                    "-Wl,--as-needed", "-lopenblas", "-lsleef", "-ljpeg", "-lspng", "-ldeflate", "-lisal",
                    "-lm", "-pthread", "-o", program], check=True)
    return program


def write_repeated(path, n_bytes, header, rows):
    """`rows`, again and again."""
    block = "".join(rows).encode()
    with open(path, "wb") as file:
        file.write(header.encode())
        for _ in range(max(1, n_bytes // len(block))):
            file.write(block)


def make_files(folder, n_bytes):
    chance = np.random.default_rng(1)
    folder = pathlib.Path(folder)
    n = 20000
    lengths = chance.integers(0, 160, n)
    write_repeated(folder / "lines", n_bytes, "", ("x" * length + "\n" for length in lengths))
    names = ",".join(f"c{i}" for i in range(10)) + "\n"
    values = chance.normal(0, 100, (n, 10))
    write_repeated(folder / "f32.csv", n_bytes, names,
                   (",".join("%.6g" % x for x in row) + "\n" for row in values))
    write_repeated(folder / "f64.csv", n_bytes, names,
                   (",".join(map(repr, row)) + "\n" for row in values.tolist()))
    write_repeated(folder / "i64.csv", n_bytes, names,
                   (",".join(map(str, row)) + "\n"
                    for row in chance.integers(-(10**9), 10**9, (n, 10)).tolist()))
    words = ["plain", '"quoted"', '"with, comma"', '"a ""name"""', "longer text without quotes"]
    write_repeated(folder / "mixed.csv", n_bytes, "a,b,c,d,e\n",
                   (f"{i},{x:.4f},{words[i % 5]},{words[i % 3]},{i * 7}\n"
                    for i, x in enumerate(values[:, 0])))
    with tarfile.open(folder / "tar", "w") as tar:
        for i in range(n_bytes // 100000):
            info = tarfile.TarInfo(f"{i:06}.jpg")
            info.size = 100000
            tar.addfile(info, io.BytesIO(bytes(info.size)))


CASES = (  # file, our reader, its columns, NumPy's dtype, who else reads it
    ("lines", "lines", "", "", LINES),
    ("f32.csv", "csv", "f" * 10, "float32", NUMBERS),
    ("f64.csv", "csv", "d" * 10, "float64", NUMBERS),
    ("i64.csv", "csv", "l" * 10, "int64", {
        name: body for name, body in NUMBERS.items() if "float" not in name and "exact" not in name}),
    ("mixed.csv", "csv", "ifssi", "", MIXED),
    ("tar", "tar", "", "", TAR),
)  # fmt: skip


def cpu_s(argv):
    done = subprocess.run(list(map(str, argv)), check=True, capture_output=True, text=True)
    return float(done.stdout.split()[0])


def show(path, times):
    n_bytes = path.stat().st_size
    ours = times.pop("Plimsoll")
    print(f"{path.name}: {n_bytes / statistics.median(ours) / 1e9:.2f} GB/s of CPU time")
    for name, taken in times.items():
        ratio = statistics.median(a / b for a, b in zip(taken, ours))
        print(f"  {ratio:7.2f} x the time: {name} ({n_bytes / statistics.median(taken) / 1e9:.3f} GB/s)")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        program = build_program(folder)
        make_files(folder, options.megabytes * 10**6)
        for name, kind, columns, dtype, peers in CASES:
            path = pathlib.Path(folder) / name
            times = {"Plimsoll": [], "only reading the bytes": []} | {peer: [] for peer in peers}
            for _ in range(options.rounds):
                times["Plimsoll"].append(cpu_s([program, kind, path, columns]))
                times["only reading the bytes"].append(cpu_s([program, "read", path]))
                for peer, body in peers.items():
                    times[peer].append(cpu_s([sys.executable, "-c", PEER.format(body=body), path,
                                              dtype]))
            show(path, times)


if __name__ == "__main__":
    main()
