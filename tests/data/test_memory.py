# SPDX-License-Identifier: Apache-2.0
"""What passes cost, measured from outside: in a memory cgroup that has the budget and 8 MiB beside
what the program had before."""

import pathlib
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from support import HANG_S, cgroup  # noqa: E402, F401: a fixture

MIB = 1 << 20
BESIDE_BYTES = 8 * MIB
PROGRAM = pathlib.Path(__file__).with_name("memory_pass.py")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("pictures")
    chance = np.random.default_rng(1)
    for i in range(48):
        shape = (int(chance.integers(200, 900)), int(chance.integers(200, 900)), 3)
        smooth = np.resize(np.arange(256, dtype="u1"), shape)
        Image.fromarray(smooth).save(made / f"{i:03}.jpg", quality=90)
    return made


def run_in(group, folder, budget_bytes, n_epochs, stalls):
    """What the program says: see memory_pass.py."""
    command = ["/usr/bin/python3", PROGRAM, folder, budget_bytes, n_epochs, stalls]
    process = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE, text=True,
                               stdout=subprocess.PIPE, preexec_fn=group.enter)
    try:
        word, before = process.stdout.readline().split()
        assert word == "ready"
        group.limit(int(before) + budget_bytes + BESIDE_BYTES)
        out, _ = process.communicate("go\n", timeout=HANG_S)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0 and group.n_oom_kills() == 0
    return [int(word) for word in out.split()]


@pytest.mark.parametrize("stalls", ["stalls", "goes"])
@pytest.mark.parametrize("budget_mib", [24, 64])
def test_the_peak_stays_within_the_budget_and_a_little(cgroup, folder, budget_mib, stalls):
    budget = budget_mib * MIB
    over, _, _, claimed = run_in(cgroup(512 * MIB), folder, budget, 3, stalls)
    assert claimed <= budget
    assert over <= budget + BESIDE_BYTES


def test_a_hundred_epochs_leave_nothing(cgroup, folder):
    few = folder / "few"
    few.mkdir(exist_ok=True)
    for path in sorted(folder.glob("*.jpg"))[:8]:
        (few / path.name).write_bytes(path.read_bytes())
    _, grown, steadily, _ = run_in(cgroup(512 * MIB), few, 32 * MIB, 110, "goes")
    assert steadily < MIB // 4 and grown < 4 * MIB
