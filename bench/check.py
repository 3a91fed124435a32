#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Times `plimsoll check` beside the same work without the check, on warm files.

usage: bench/check.py [--scale PART] [--rounds N] [--jobs N] [--folder PATH]

The data is made here, with fixed seeds. Interleaved rounds, as many threads each; ratios of speed by
wall time, and by processor time. The check's own times are those of the whole process, its walk
included. Nothing passes or fails here: a machine may be busy."""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

import datasets
import document
import measure

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("PLIMSOLL_BUILD", ROOT / "build")) / "meson"
N_JOBS = len(os.sched_getaffinity(0))
TITLE = f"plimsoll check, warm files, {N_JOBS} threads"
N_PICTURES = 2000
N_SHARDS, SHARD_BYTES, EXAMPLE_BYTES = 8, 128 << 20, 65536  # about a picture each
N_SMALL = 100_000


def build(folder):
    libraries = [BUILD / "src/libplimsoll-runtime.a"]
    libraries += sorted((BUILD / "src/kernels").glob("libplimsoll-kernels-*.a"))
    libraries += sorted((BUILD / "src").glob("*/libplimsoll-core.a"))
    program = folder / "check_bare"
    subprocess.run([os.environ.get("CC", "cc"), "-std=gnu17", "-D_GNU_SOURCE", "-O2",
                    f"-I{ROOT}/include", f"-I{ROOT}/src", ROOT / "bench/check_bare.c", *libraries,
                    "-Wl,--as-needed", "-lsleef", "-lopenblas", "-ljpeg", "-lspng", "-ldeflate",
                    "-lisal", "-lm", "-pthread", "-o", program], check=True)
    return program


def make_shards(program, folder, scale):
    n = max(10, int(SHARD_BYTES * scale) // EXAMPLE_BYTES)
    folder.mkdir()
    for i in range(N_SHARDS):
        with open(folder / f"{i}.tfrecord", "wb") as file:
            subprocess.run([program, "make", str(n + i), str(EXAMPLE_BYTES)], stdout=file, check=True)


def make_small(folder, n):
    for i in range(n):
        if i % 1000 == 0:
            (folder / f"{i // 1000:03}").mkdir(parents=True)
        (folder / f"{i // 1000:03}/{i:06}.txt").write_text(f"file {i}\n" * 20)


def bare_speed(program, mode, jobs, paths):
    done = subprocess.run([program, mode, str(jobs)], input=paths, text=True, check=True,
                          stdout=subprocess.PIPE)
    n, seconds, cpu = (float(word) for word in done.stdout.split())
    return n / seconds, n / cpu


def check_speed(jobs, folder, n):
    run = measure.run([str(BUILD / "src/cli/plimsoll"), "check", "--jsonl", "--jobs", str(jobs),
                       str(folder)], {})
    return n / run.wall_s, n / run.cpu_s


def row(program, mode, what, target, folder, jobs, n_rounds, say):
    files = sorted(str(path) for path in folder.rglob("*") if path.is_file())
    paths = "".join(path + "\n" for path in files)
    speeds = {"ours": [], "bare": []}
    for i in range(n_rounds + 1):
        ours = check_speed(jobs, folder, len(files))
        bare = bare_speed(program, mode, jobs, paths)
        if i > 0:  # the first round warms caches
            speeds["ours"].append(ours)
            speeds["bare"].append(bare)
        say(f"{mode}: round {i} of {n_rounds}")
    wall, cpu = (datasets.ratio(speeds, "ours", "bare", at) for at in (0, 1))
    return {"what": f"{what} ({datasets.median(speeds, 'ours', 0):.0f} files/s)",
            "measured": f"{wall}; {cpu} by processor time", "target": target}


def costs(directory, scale, jobs, n_rounds, say):
    with tempfile.TemporaryDirectory(dir=directory) as name:
        folder = pathlib.Path(name)
        program = build(folder)
        say("making files")
        (folder / "pictures").mkdir()
        datasets.make_pictures(folder / "pictures", int(N_PICTURES * scale))
        make_shards(program, folder / "shards", scale)
        make_small(folder / "small", int(N_SMALL * scale))
        how = (jobs, n_rounds, say)
        return [
            row(program, "records", "TFRecord of Examples: to the pipeline's reader", ">= 0.9 x",
                folder / "shards", *how),
            row(program, "jpeg", "JPEG: to bare libjpeg-turbo", ">= 0.95 x",
                folder / "pictures/jpg", *how),
            row(program, "files", "small files: to open, read, close", ">= 0.8 x",
                folder / "small", *how),
        ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=1, help="of the data, to try this")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=N_JOBS)
    parser.add_argument("--folder", help="for the files (default: a temporary one)")
    options = parser.parse_args()
    rows = costs(options.folder, options.scale, options.jobs, options.rounds,
                 lambda text: print(text, file=sys.stderr, flush=True))
    print(document.cost_table(TITLE, rows))


if __name__ == "__main__":
    sys.exit(main())
