# SPDX-License-Identifier: Apache-2.0
"""Graphs at random, in every style of program and at several budgets: what NumPy gives, to the bit where it
is exact. Small budgets make plans cut values into tiles and move them to disk.

Longer, by hand:  PLIMSOLL_TEST_ROUNDS=50 PLIMSOLL_TEST_SEED=1 pytest tests/tf/graph/test_random_graphs.py
One again:        python3 tests/tf/graph/test_random_graphs.py SEED [--cap BYTES] [--large]"""
import argparse
import json
import os
import sys
import traceback
import warnings

if __name__ == "__main__":
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../build/python"))
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))

import pytest
import random_programs
from random_graphs import Program

from plimsoll import _core, errors

KIB, MIB = 1 << 10, 1 << 20
# bytes that values may take (0: what the process may have), whether they are large, programs
RUNS = ((0, False, 150), (0, True, 40), (MIB, True, 40), (256 * KIB, True, 40))


def first_wrong(program, style):
    """Which step is it?"""
    for number in range(program.n_inputs, len(program.values)):
        try:
            got = random_programs.run(lambda *x: program(*x, wanted=[number]), program.inputs, style)[0]
        except Exception as error:
            return f"{number}: {type(error).__name__}: {error}"
        if wrong := program.differs(number, got):
            return f"{number}: {wrong}"
    return "each step alone is right"


def check(program, style):
    """"right", "absent" where an op has to know more, "no room" within a small budget; else what is wrong."""
    try:
        got = random_programs.run(program, program.inputs, style)
    except NotImplementedError:
        return "absent"
    except errors.ResourceExhaustedError:
        return "no room"
    except Exception:
        return f"{program}\n{style}: {traceback.format_exc(limit=-2)}{first_wrong(program, style)}"
    for number, array in zip(program.wanted, got):
        if wrong := program.differs(number, array):
            return f"{program}\n{style}: value {number}: {wrong}\n{first_wrong(program, style)}"
    return "right"


def search(first, count, cap, large):
    """Verdicts by style, and what is wrong."""
    warnings.simplefilter("ignore")
    if cap:
        _core.configure(cap_bytes=cap)
    verdicts = {style: {"right": 0, "absent": 0, "no room": 0} for style in random_programs.STYLES}
    wrong = []
    for seed in range(first, first + count):
        program = Program(seed, large)
        for style in random_programs.STYLES:
            verdict = check(program, style)
            if verdict in verdicts[style]:
                verdicts[style][verdict] += 1
            else:
                wrong.append(verdict)
    return {"verdicts": verdicts, "wrong": wrong}


@pytest.mark.parametrize("cap, large, count", RUNS)
def test_every_style_gives_what_numpy_gives(run_python, cap, large, count):
    text = f"""
import json, sys
sys.path[:0] = {[os.path.dirname(__file__), os.path.dirname(random_programs.__file__)]!r}
import test_random_graphs
print(json.dumps(test_random_graphs.search({random_programs.SEED * 10**6}, {count}, {cap}, {large})))
"""
    for i in range(random_programs.ROUNDS):
        found = json.loads(run_python(text.replace(f"({random_programs.SEED * 10**6},",
                                                   f"({random_programs.SEED * 10**6 + i * count},")))
        assert not found["wrong"], "\n\n".join(found["wrong"])
        for style, verdicts in found["verdicts"].items():
            # A test in which most programs are refused would show nothing.
            assert verdicts["right"] > 0.6 * count, (style, verdicts)


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("seed", type=int)
    options.add_argument("--count", type=int, default=1)
    options.add_argument("--cap", type=int, default=0)
    options.add_argument("--large", action="store_true")
    options = options.parse_args()
    answer = search(options.seed, options.count, options.cap, options.large)
    print("\n\n".join(answer["wrong"]))
    print(answer["verdicts"])
