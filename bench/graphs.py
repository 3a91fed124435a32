#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Times graphs of many small nodes: building, planning, running; and a small one beside NumPy.

usage: bench/graphs.py [--rounds N]

Nothing passes or fails here: a machine may be busy."""

import argparse
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
TITLE = "graphs of small nodes, 10 elements each"
N_NODES = 10000
N_SMALL = 100
REPEATS = 5  # of each case in a round

CASES = {
    "chain": "a chain of additions",
    "wide": "half of the nodes from one, added up in pairs",
    "shared": "every node used by three others",
    "constants": "half of the nodes are constants",
    "steps": "every tenth node a reduction",
}


def build_program(folder):
    library = BUILD / "src"
    program = pathlib.Path(folder) / "graphs"
    subprocess.run([os.environ.get("CC", "cc"), "-std=gnu17", "-O2", "-g", f"-I{ROOT}/include",
                    ROOT / "bench/graphs.c", f"-L{library}", "-lplimsoll",
                    f"-Wl,-rpath,{library}", "-o", program], check=True)
    return program


def times_us(program, case, n_nodes):
    """Of each repeat: build, plan, first run, second run."""
    done = subprocess.run([program, case, str(n_nodes), str(REPEATS)], check=True, text=True,
                          capture_output=True)
    return [[float(word) for word in line.split()] for line in done.stdout.splitlines()]


def numpy_us():
    x = np.full(10, 1e-9)
    taken = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        y = x
        for _ in range(N_SMALL - 1):
            y = y + x
        taken.append((time.perf_counter() - begin) * 1e6)
    return taken


def spread(values, unit, digits):
    low, median, high = statistics.quantiles(values, n=4)
    return f"{median:.{digits}f} {unit} ({low:.{digits}f}-{high:.{digits}f})"


def rows_of(case, times):
    made_ms = [(build + plan) / 1e3 for build, plan, _, _ in times]
    node_us = [again / N_NODES for _, _, _, again in times]
    return [
        {"what": f"{CASES[case]}: {N_NODES} built and planned",
         "measured": spread(made_ms, "ms", 1), "target": "< 50 ms"},
        {"what": f"{CASES[case]}: run, for each node, its kernel included",
         "measured": spread(node_us, "us", 3), "target": "< 1 us"},
    ]


def costs(directory, n_rounds, say):
    """The rows of the table."""
    program = build_program(directory)
    times = {case: [] for case in CASES}
    small, peer = [], []
    for i in range(n_rounds):
        say(f"graphs: round {i + 1} of {n_rounds}")
        for case, taken in times.items():
            taken += times_us(program, case, N_NODES)
        small += [build + run for build, _, run, _ in times_us(program, "chain", N_SMALL)]
        peer += numpy_us()
    rows = [row for case, taken in times.items() for row in rows_of(case, taken)]
    ratios = [ours / theirs for ours, theirs in zip(small, peer)]
    return rows + [{"what": f"a chain of {N_SMALL} built, planned and run, beside NumPy "
                            f"({statistics.median(peer):.0f} us)",
                    "measured": spread(ratios, "x", 2), "target": "3 x"}]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    sys.path.insert(0, str(ROOT / "bench"))
    import document

    with tempfile.TemporaryDirectory(prefix="plimsoll-bench-") as directory:
        print(document.cost_table(TITLE, costs(directory, arguments.rounds,
                                               lambda text: print(text, file=sys.stderr))))


if __name__ == "__main__":
    main()
