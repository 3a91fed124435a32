#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Times `plimsoll.tf`: imports and small ops beside NumPy's, passes beside the same loop in C.

usage: bench/tf.py [--scale PART] [--rounds N]

Interleaved rounds; ratios of processor time, which is what the Python around it costs. Nothing
passes or fails here: a machine may be busy."""

import argparse
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True

import datasets
import document
import measure

PACKAGE = datasets.BUILD.parent / "python"
TITLE = "`plimsoll.tf`"
N_ELEMENTS = 1_000_000
N_MAPPED = 200_000
N_OPS = 100
N_CHAINS = 200

# Each prints how many, and the seconds and processor seconds that they took.

IMPORT = """
import sys, time
sys.path.insert(0, sys.argv[1])
begin, cpu = time.perf_counter(), time.process_time()
import {module}
print(1, time.perf_counter() - begin, time.process_time() - cpu)
"""

CHAIN = """
import sys, time
sys.path.insert(0, sys.argv[1])
n_chains, n_ops = int(sys.argv[2]), int(sys.argv[3])
{prepare}
def chain():
    y = x
    for _ in range(n_ops):
        y = y + x
    {finish}
for _ in range(20):
    chain()
begin, cpu = time.perf_counter(), time.process_time()
for _ in range(n_chains):
    chain()
print(n_chains, time.perf_counter() - begin, time.process_time() - cpu)
"""
NUMPY_CHAIN = CHAIN.format(prepare="import numpy as np; x = np.full(10, 1e-9, np.float32)",
                           finish="return y")
OUR_CHAIN = CHAIN.format(
    prepare="import plimsoll.tf as tf; x = tf.constant([1e-9] * 10); x.numpy()",
    finish="return y.numpy()")

PASS = """
import sys, time
sys.path.insert(0, sys.argv[1])
import plimsoll.tf as tf
n, n_batch, mapped = map(int, sys.argv[2:])
dataset = tf.data.Dataset.range(n)
if n_batch:
    dataset = dataset.batch(n_batch)
if mapped:
    dataset = dataset.map(lambda x: x * 2 + 1)
begin, cpu, found = time.perf_counter(), time.process_time(), 0
if n_batch:
    for x in dataset:
        found += x.shape[0]
else:
    for x in dataset:
        found += 1
print(found, time.perf_counter() - begin, time.process_time() - cpu)
"""


def python(program, *arguments):
    return [datasets.PYTHON, "-c", program, PACKAGE, *arguments]


def import_rows(n_rounds, say):
    speeds = datasets.take_turns({"ours": python(IMPORT.format(module="plimsoll.tf")),
                                  "numpy": python(IMPORT.format(module="numpy"))},
                                 2 * n_rounds, say)
    times = {name: [1 / speed[1] for speed in found] for name, found in speeds.items()}
    ratio = document.show_ratio(measure.ratio_of(times["ours"], times["numpy"]))
    return [{"what": "`import plimsoll.tf`: to `import numpy`", "measured": ratio,
             "target": "<= 1.3 x"}]


def chain_rows(scale, n_rounds, say):
    n = int(N_CHAINS * scale) + 1
    speeds = datasets.take_turns({"ours": python(OUR_CHAIN, n, N_OPS),
                                  "numpy": python(NUMPY_CHAIN, n, N_OPS)}, n_rounds, say)
    times = {name: [1e6 / speed[1] for speed in found] for name, found in speeds.items()}
    ratio = document.show_ratio(measure.ratio_of(times["ours"], times["numpy"]))
    median_us = 1e6 / datasets.median(speeds, "ours", 1)
    return [{"what": f"a chain of {N_OPS} ops on 10 elements, built and evaluated "
                     f"({median_us:.0f} us): to NumPy", "measured": ratio, "target": "<= 3 x"}]


def pass_rows(program, scale, n_rounds, say):
    rows = []
    for what, n, n_batch, mapped, target in (
        ("`Dataset.range`, element by element", N_ELEMENTS, 0, 0, ">= 500,000 elements/s"),
        ("`Dataset.range(...).batch(1000)`", 20 * N_ELEMENTS, 1000, 0, ">= 0.9 x"),
        ("a traced map of two ops, element by element", N_MAPPED, 0, 1, "1 x"),
        ("a traced map of two ops over batches of 1000", 10 * N_ELEMENTS, 1000, 1, "1 x"),
    ):
        n = int(n * scale)
        speeds = datasets.take_turns({"ours": python(PASS, n, n_batch, mapped),
                                      "C": [program, n, n_batch, mapped]}, n_rounds, say)
        speed = datasets.median(speeds, "ours", 1)
        rows.append({"what": f"{what} ({speed:,.0f} elements/s): speed, to the same loop in C",
                     "measured": datasets.ratio(speeds, "ours", "C", 1), "target": target})
    return rows


def costs(directory, scale, n_rounds, say):
    """Rows for document.cost_table()."""
    with tempfile.TemporaryDirectory(dir=directory) as name:
        program = datasets.build(pathlib.Path(name), "mapped")
        return (import_rows(n_rounds, say) + chain_rows(scale, n_rounds, say)
                + pass_rows(program, scale, n_rounds, say))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=1, help="of the work, to try this")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    rows = costs(None, options.scale, options.rounds,
                 lambda text: print(text, file=sys.stderr, flush=True))
    print(document.cost_table(TITLE, rows))


if __name__ == "__main__":
    sys.exit(main())
