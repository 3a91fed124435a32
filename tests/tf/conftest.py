# SPDX-License-Identifier: Apache-2.0
"""The package as it was built, in a process with a budget of its own.

A test that needs another budget, or a fresh process, starts one: `run_python(text)`.
"""
import os
import subprocess
import sys

os.environ["PLIMSOLL_BUDGET"] = "512M"

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from support import BUILD, HANG_S, PYTHON  # noqa: E402

PACKAGE = str(BUILD / "python")
sys.path.insert(0, PACKAGE)
# What tests start finds it as well.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [PACKAGE, os.environ.get("PYTHONPATH")]))

import numpy as np  # noqa: E402
import pytest  # noqa: E402


def pytest_configure():
    if not any((BUILD / "python/plimsoll").glob("_core.*.so")):
        pytest.exit(f"no plimsoll._core in '{PACKAGE}': run make build", 2)


@pytest.fixture(autouse=True)
def eager():
    """Whatever a test built, the next one begins outside of every graph, scope and device."""
    yield
    from plimsoll import _core

    _core.context(None, "", None)


@pytest.fixture
def plain_numbers():
    """NumPy's numbers are shown as 1.5, as in the examples, and not as np.float64(1.5)."""
    if int(np.__version__.split(".")[0]) >= 2:
        with np.printoptions(legacy="1.25"):
            yield
    else:
        yield


@pytest.fixture
def run_python():
    """Runs a program in a process of its own, and gives what it printed; it must succeed."""

    def run(text, **environment):
        done = subprocess.run(
            [PYTHON, "-c", text],
            env=os.environ | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            timeout=HANG_S,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
