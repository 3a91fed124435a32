# SPDX-License-Identifier: Apache-2.0
"""What every test in a notebook needs: kernels, plain and guarded, with folders of their own.

    kernel = guarded(budget="1G")      # the twin of `python3` that `plimsoll jupyter install` makes
    outcome = kernel.run("1 + 1")      # see kernels.py
"""
import json
import os
import pathlib
import subprocess

import pytest

from kernels import Kernel, ServerLoop
from servers import version_of
from support import HANG_S, PLIMSOLL, cgroup, need_plimsoll  # noqa: F401: cgroup is a fixture

# Notebook 7 is made of JupyterLab's parts: test_jupyterlab.py opens it.
collect_ignore = ["browser/test_classic.py"] if version_of("notebook") >= (7,) else []

PLAIN_SPECS = pathlib.Path("/usr/share/jupyter/kernels")


def pytest_configure():
    need_plimsoll()


class Home:
    """A home folder of its own: kernels' records, kernelspecs, IPython's profile and history."""

    def __init__(self, folder):
        self.folder = folder
        self.state = folder / "state"
        self.specs = folder / "jupyter" / "kernels"
        (folder / "runtime").mkdir()
        (folder / "home").mkdir()

    def environment(self, extra=None):
        dropped = ("LD_PRELOAD", "MEM_LIMIT", "CPU_LIMIT", "PYTHONPATH", "JPY_SESSION_NAME")
        env = {name: value for name, value in os.environ.items()
               if name not in dropped and not name.startswith(("PLIMSOLL_", "JUPYTER", "PYTEST"))}
        jupyter = str(self.folder / "jupyter")
        env.update(
            HOME=str(self.folder / "home"), PLIMSOLL_STATE=str(self.state),
            JUPYTER_DATA_DIR=jupyter, JUPYTER_RUNTIME_DIR=str(self.folder / "runtime"),
            JUPYTER_CONFIG_DIR=jupyter, IPYTHONDIR=str(self.folder / "ipython"),
            PYTHONDONTWRITEBYTECODE="1", OPENBLAS_NUM_THREADS="2", OMP_NUM_THREADS="2")
        env.update(extra or {})
        return env

    def plimsoll(self, *words, env=None):
        """Any other command, as a CompletedProcess."""
        return subprocess.run([str(PLIMSOLL), *map(str, words)], env=self.environment(env),
                              cwd=self.folder, capture_output=True, text=True, timeout=HANG_S)

    def install(self, budget=None):
        """Installs the guarded twin of Debian's python3 kernel, and returns its name."""
        options = ["--budget", budget] if budget else []
        done = self.plimsoll("jupyter", "install", "--kernel", "python3", *options)
        assert done.returncode == 0, done.stderr
        return "plimsoll-python3"

    def explain(self, *words):
        done = self.plimsoll("explain", "--json", *words)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


def prepare_child(group):
    def before_exec():
        # A guard that fails lets a cell eat the machine: the kernel, not others, shall die.
        pathlib.Path("/proc/self/oom_score_adj").write_text("1000")
        if group:
            group.enter()

    return before_exec


class Homes:
    """Starts kernels, each in a home of its own, and ends what a failed test has left."""

    def __init__(self, folder, server):
        self.folder, self.server = folder, server
        self.kernels = []

    def home(self):
        folder = self.folder / f"home-{len(list(self.folder.glob('home-*')))}"
        folder.mkdir()
        return Home(folder)

    def plain(self, cgroup=None, env=None):
        home = self.home()
        return self._start(home, PLAIN_SPECS, "python3", cgroup, env)

    def guarded(self, budget=None, cgroup=None, env=None):
        home = self.home()
        return self._start(home, home.specs, home.install(budget), cgroup, env)

    def _start(self, home, specs, name, group, env):
        kernel = Kernel(self.server, specs, name, home.folder, home.environment(env),
                        prepare_child(group))
        kernel.home = home
        self.kernels.append(kernel)
        return kernel

    def close(self):
        for kernel in self.kernels:
            kernel.close()


@pytest.fixture(scope="session")
def server():
    """The event loop in which all managers live, as in a notebook server."""
    server = ServerLoop()
    yield server
    server.close()


@pytest.fixture
def homes(tmp_path, server, cgroup):  # noqa: F811: kernels end before the cgroup they are in
    homes = Homes(tmp_path, server)
    yield homes
    homes.close()


@pytest.fixture
def plain(homes):
    """Starts a kernel as it is without us: plain(cgroup=, env=) -> Kernel."""
    return homes.plain


@pytest.fixture
def guarded(homes):
    """Starts its guarded twin: guarded(budget="1G", cgroup=, env=) -> Kernel."""
    return homes.guarded
