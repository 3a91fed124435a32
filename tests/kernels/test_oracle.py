# SPDX-License-Identifier: Apache-2.0
"""Every op through sessions against NumPy (oracle.py), on values from memory, files and views, at
three budgets: ample, a quarter and a sixteenth of what its inputs and output take. Each plan is held
to the peak that it states (checked.py).

PLIMSOLL_TEST_ROUNDS=20 makes so many times as many cases."""

import os
import zlib

import numpy as np
import oracle
import pytest
import runtime
from checked import CAP, HOWS, MIB, Given, budgets, run_within, same_bits

ROUNDS = int(os.environ.get("PLIMSOLL_TEST_ROUNDS", "1"))
SMALL_CASES, LARGE_CASES = 8 * ROUNDS, ROUNDS
LARGE = 60000  # elements
LARGE_CAP = 8 * MIB
BLAS_CAP = 64 * MIB  # it takes some MiB at any budget
TABLE = oracle.makers()
MADE_ELSEWHERE = {"placeholder", "constant", "variable", "file", "random_uniform", "random_normal",
                  "random_truncated"}  # fmt: skip


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


def test_every_op_has_an_oracle():
    classes = ("SOURCE", "ELEMENTWISE", "VIEW", "MOVE", "REDUCE", "ROW", "MATMUL")
    assert set(TABLE) == oracle.ops_of(*classes) - MADE_ELSEWHERE


def working_bytes(case):
    pairs = zip([*case.inputs, case.wanted], [*case.dtypes, case.dtype])
    return sum(array.size * oracle.item_bytes(dtype) for array, dtype in pairs)


def check_case(maker, op, folder):
    case = TABLE[op](maker)
    cap = BLAS_CAP if op == "matmul" else CAP if maker.most < LARGE else LARGE_CAP
    hows = [maker.chance.choice(HOWS) for _ in case.inputs]
    with runtime.Graph() as graph:
        given = [Given(graph, folder, array, dtype, how)
                 for array, dtype, how in zip(case.inputs, case.dtypes, hows)]
        node = graph.add(op, *(one.node for one in given), **case.attrs)
        assert (node.dtype, node.shape) == (case.dtype, case.wanted.shape)
        fetch = (node, folder / "out.npy") if maker.chance.random() < 0.3 and \
            case.dtype != "bfloat16" else node
        first = None
        for budget in budgets(working_bytes(case), cap):
            try:
                ((got,), _) = run_within(graph, [fetch], given, budget, cap_bytes=cap)
                case.check(got)
                assert first is None or not case.bits or same_bits(first, got)
            except (AssertionError, runtime.Refused) as failure:
                shapes = [array.shape for array in case.inputs]
                raise AssertionError(f"{op} {case.dtypes} {shapes} {case.attrs} {hows} at "
                                     f"{budget}: {failure}") from failure
            first = got if first is None else first
        for one in given:
            one.forget()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("op", sorted(TABLE))
def test_an_op_gives_what_numpy_gives_at_any_budget(op, tmp_path):
    small = oracle.Maker(zlib.crc32(op.encode()))
    for _ in range(SMALL_CASES):
        check_case(small, op, tmp_path)
    large = oracle.Maker(zlib.crc32(op.encode()) + 1, LARGE)
    for _ in range(LARGE_CASES):
        check_case(large, op, tmp_path)
