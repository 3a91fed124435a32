# SPDX-License-Identifier: Apache-2.0
"""NumPy's own arrays, in a process that has imported plimsoll.tf: one that there is no room for is a
MemoryError, where the kernel would kill the process. In a real memory cgroup."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests"))

from support import cgroup  # noqa: E402, F401: a fixture

MIB = 1 << 20
LIMIT_S = 300


@pytest.fixture
def run(cgroup, tmp_path):  # noqa: F811
    """Runs a program in 512 MiB; its outputs, status, and how many were killed."""

    def call(text, **more):
        group = cgroup(512 * MIB)
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "build/python"),
                       "PLIMSOLL_BUDGET": "400M", "PLIMSOLL_SPILL": str(tmp_path), **more}
        done = subprocess.run(["/usr/bin/python3", "-c", text], env=environment, text=True,
                              capture_output=True, preexec_fn=group.enter, timeout=LIMIT_S)
        return done, group.n_oom_kills()

    return call


def check(outcome, wanted):
    done, n_kills = outcome
    assert (n_kills, done.returncode) == (0, 0), done.stderr
    assert done.stdout.split() == wanted
    return done.stderr


REFUSED = """
def refused(make):
    try:
        make()
    except MemoryError as error:
        return "llocate" in str(error) or str(error)
    return False
"""


@pytest.mark.parametrize("first", ["import plimsoll.tf, numpy as np", "import numpy as np, plimsoll.tf"])
def test_an_array_without_room_is_an_exception(run, first):
    told = check(run(first + REFUSED + """
print(refused(lambda: np.random.rand(100 * 1000 * 1000)))  # 763 MiB
print(refused(lambda: np.ones((1000, 100 * 1000))))
print(refused(lambda: np.zeros((1000, 100 * 1000))))       # calloc
print(np.ones(20 * 1000 * 1000).sum())                     # 153 MiB
"""), ["True", "True", "True", "20000000.0"])
    assert "no room for a NumPy array of 0.75 GiB" in told


def test_many_that_are_kept_are_refused_in_time(run):
    check(run("import plimsoll.tf, numpy as np" + REFUSED + """
kept = []
def keep():
    for _ in range(1000):
        kept.append(np.ones(2 << 20, np.uint8))
print(refused(keep))
print(100 < len(kept) < 256)
kept.clear()
print(refused(lambda: np.ones(200 << 20, np.uint8)))
"""), ["True", "True", "False"])


def test_growing_in_place_is_looked_at(run):
    check(run("import plimsoll.tf, numpy as np" + REFUSED + """
array = np.ones(50 << 20, np.uint8)
print(refused(lambda: array.resize(600 << 20, refcheck=False)))
print(array.size >> 20, int(array[-1]))
array.resize(60 << 20, refcheck=False)
print(array.size >> 20)
"""), ["True", "50", "1", "60"])


def test_other_threads_and_children_are_watched(run):
    check(run("import plimsoll.tf, numpy as np, os, threading" + REFUSED + """
large = lambda: np.ones(700 << 20, np.uint8)
thread = threading.Thread(target=lambda: print(refused(large), flush=True))
thread.start()
thread.join()
if os.fork() == 0:
    print(refused(large), flush=True)
    os._exit(0)
os.wait()
"""), ["True", "True"])


def test_idle_tensors_make_room(run):
    check(run("import plimsoll, plimsoll.tf as tf, numpy as np" + REFUSED + """
kept = [tf.constant(np.full(20 << 20, i, np.uint8)) + tf.constant(1, tf.uint8) for i in range(15)]
for i, tensor in enumerate(kept):
    assert int(tensor[7]) == i + 1
print(refused(lambda: np.ones(250 << 20, np.uint8)))
print(all(int(tensor[-1]) == i + 1 for i, tensor in enumerate(kept)))
"""), ["False", "True"])


def test_it_can_be_left_alone(run):
    check(run("import plimsoll.tf, numpy as np" + REFUSED + """
print(refused(lambda: np.zeros(700 << 20, np.uint8)))  # not touched: nobody needs the memory
""", PLIMSOLL_NUMPY="off"), ["False"])


def test_numpy_is_what_it_was(run):
    """Who only asks whether NumPy is there changes nothing, and the loader is NumPy's own."""
    check(run("import sys, importlib.util, plimsoll.tf" + REFUSED + """
n = len(sys.meta_path)
print(importlib.util.find_spec("numpy").name, "numpy" in sys.modules)
import numpy as np
print(type(np.__loader__).__name__, np.__spec__.loader is np.__loader__, n - len(sys.meta_path))
print(refused(lambda: np.ones(700 << 20, np.uint8)))
"""), ["numpy", "False", "SourceFileLoader", "True", "1", "True"])
