# SPDX-License-Identifier: Apache-2.0
"""NumPy as programs use it: expressions that make temporaries of 10 KB to 8 MB, reductions, matrix
products. Usage: arrays.py [SCALE]"""

import numpy as np

import region

FULL_ROUNDS = 130

# Bytes of an operand, and how often a round uses it: about the same time for each size.
SIZES = [(10_000, 800), (100_000, 80), (1_000_000, 8), (8_000_000, 1)]


def expressions(operands, repeats):
    a, b = operands
    total = 0.0
    for _ in range(repeats):
        c = a * b + a
        d = np.sqrt(np.abs(c - b)) * 2.0
        total += float(d[::7].sum() + c.max())
    return total


def main():
    rng = np.random.default_rng(1)
    operands = [[rng.random(n_bytes // 8) for _ in range(2)] for n_bytes, _ in SIZES]
    matrix = rng.random((384, 384))
    total = 0.0
    with region.measured():
        for _ in range(max(1, round(region.scale() * FULL_ROUNDS))):
            for pair, (_, repeats) in zip(operands, SIZES):
                total += expressions(pair, repeats)
            total += float((matrix @ matrix.T).trace())
    # Seven digits: the order of a threaded product's sums may differ between two runs.
    print(f"{total:.7g}")


main()
