# SPDX-License-Identifier: Apache-2.0
"""A graph that runs out of memory: an error, nothing lost, nothing leaked. Each allocation that
building makes is failed in turn (tests/programs/alloc_shim.c)."""

import os
import subprocess

import pytest

import graph_tool

# Long enough that everything has to grow: the nodes, the hash of names, the arena, a long name.
COMMANDS = [
    "add placeholder x - dtype=d:float32 shape=s:[?,64]",
    "push layer",
    "add relu - x",
    "add relu - layer/relu",
    *(f"add relu - layer/relu_{i}" for i in range(1, 149)),
    "pop",
    f"add transpose {'long' * 100} x axes=l:1,0",
    "push layer/",
    "stack all x,layer/relu,layer/relu_1 1",
    "split part layer/relu_2 1 4",
    "einsum e layer/relu_3,layer/relu_4 ij,kj->ki",
    "pop",
    "add add bad x,layer/all",
    "infer x=[3,64]",
    "dump",
]
N_FAILURES_AT_LEAST = 12


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return graph_tool.build(tmp_path_factory.mktemp("graph"), *graph_tool.PLAIN)


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    library = tmp_path_factory.mktemp("shim") / "alloc_shim.so"
    source = graph_tool.ROOT / "tests/programs/alloc_shim.c"
    flags = ("-D_GNU_SOURCE", "-O2", "-shared", "-fPIC")
    subprocess.run(["gcc", *flags, str(source), "-o", str(library)], check=True)
    return library


def call(program, shim, log, number, onward=False):
    log.unlink(missing_ok=True)
    environment = dict(os.environ, LD_PRELOAD=str(shim), PLIMSOLL_SHIM_FAIL=str(number),
                       PLIMSOLL_SHIM_MODULES="graph_tool,", PLIMSOLL_SHIM_LOG=str(log),
                       GLIBC_TUNABLES="glibc.malloc.tcache_count=0")  # it counts as not freed
    if onward:
        environment["PLIMSOLL_SHIM_ONWARD"] = "1"
    answers = graph_tool.ask(program, COMMANDS, "retry", env=environment)
    return answers, log.exists()


def kept(answers):
    """All answers but those on a split or einsum: begun twice, they leave parts."""
    n = next(i for i, command in enumerate(COMMANDS) if command.startswith("split"))
    return answers[:n], [line for line in answers if ": layer/relu" in line]


def test_after_any_failed_allocation_the_graph_goes_on_as_before(program, shim, tmp_path):
    log = tmp_path / "log"
    whole, failed = call(program, shim, log, 0)
    assert not failed and whole[-1] == "0 bytes are left" and whole[-2] == "end"
    number = 2  # the first is made before anything is measured
    while True:
        answers, failed = call(program, shim, log, number)
        if not failed:
            break
        assert answers[-1] == "0 bytes are left", (number, answers[-1])
        assert not [line for line in answers if line.startswith("no memory")], number
        assert kept(answers) == kept(whole), number
        number += 1
    assert number > N_FAILURES_AT_LEAST
    assert len(kept(whole)[1]) == 150


def test_when_all_further_allocations_fail_it_says_so_and_frees_everything(program, shim, tmp_path):
    number = 2  # the first is made before anything is measured
    while True:
        answers, failed = call(program, shim, tmp_path / "log", number, onward=True)
        if not failed:
            break
        assert "no memory" in answers[-2], (number, answers[-2:])
        assert answers[-1] == "0 bytes are left", (number, answers[-2:])
        number += 1
    assert number > N_FAILURES_AT_LEAST
