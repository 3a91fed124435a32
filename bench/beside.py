#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Our own runtime under the guard: each program takes turns with itself, alone and guarded, and says
what it took from its second round on. Page faults hang on neither clock nor load: what is kept for
reuse, or is not, shows in them first.

usage: bench/beside.py [--rounds N] [--scale PART]

Nothing passes or fails here: a machine may be busy."""

import argparse
import os
import pathlib
import statistics
import sys
import tempfile

sys.dont_write_bytecode = True

import datasets
import document
import measure

TITLE = "our runtime under `plimsoll run`, to itself alone"
TARGET = "<= 1.02 x"
N_PICTURES = 600

CASES = {
    "chain": ("a * a + sin(a) of 4,194,304 floats", 50),
    "product": ("product of 1024 x 1024 floats", 30),
    "small": ("a hundred additions of ten numbers", 30_000),
    "tensors": ("a tensor of 100 x 100 doubles, made and let go of", 100_000),
}


def programs(folder, scale):
    """name -> (what it is, its command)"""
    folder = pathlib.Path(folder)
    datasets.make_pictures(folder, max(40, int(N_PICTURES * scale)))
    images, beside = datasets.build(folder, "images"), datasets.build(folder, "beside")
    found = {"jpeg": ("JPEG to batches", [images, "decode_jpeg", 0, 2, folder / "jpg/*.jpg"])}
    for name, (what, n) in CASES.items():
        found[name] = (what, [beside, name, max(2, int(n * scale))])
    return found


def run(command):
    """CPU seconds and page faults, as the program tells them."""
    done = measure.run([str(word) for word in command], datasets.AT_REST)
    words = done.stdout.split()
    return float(words[2]), int(words[3])


def rows_of(what, alone, guarded):
    ratio = measure.ratio_of([cpu for cpu, _ in guarded], [cpu for cpu, _ in alone])
    faults = [statistics.median(n for _, n in runs) for runs in (guarded, alone)]
    return [{"what": f"{what}: processor time", "measured": document.show_ratio(ratio),
             "target": TARGET},
            {"what": f"{what}: page faults, guarded and alone",
             "measured": f"{faults[0]:.0f}, {faults[1]:.0f}", "target": "-"}]


def costs(directory, plimsoll, scale, n_rounds, say):
    """The rows of the table. A first round warms caches."""
    rows, prefix = [], [plimsoll, "run", "--quiet", "--"]
    with tempfile.TemporaryDirectory(prefix="beside-", dir=directory) as folder:
        for name, (what, command) in programs(folder, scale).items():
            alone, guarded = [], []
            for i in range(n_rounds + 1):
                turns = [(alone, command), (guarded, [*prefix, *command])]
                for runs, line in turns if i % 2 else reversed(turns):
                    runs.append(run(line))
                say(f"beside, {name}: round {i} of {n_rounds}")
            rows += rows_of(what, alone[1:], guarded[1:])
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--scale", type=float, default=1.0)
    arguments = parser.parse_args()
    plimsoll = os.path.join(datasets.ROOT, "build", "plimsoll")
    with tempfile.TemporaryDirectory(prefix="plimsoll-bench-") as directory:
        print(document.cost_table(TITLE, costs(directory, plimsoll, arguments.scale,
                                               arguments.rounds,
                                               lambda text: print(text, file=sys.stderr))))


if __name__ == "__main__":
    main()
