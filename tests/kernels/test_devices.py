# SPDX-License-Identifier: Apache-2.0
"""Devices: what is placed on /GPU:0 gives what NumPy gives, within the device's budget, and what
cannot be there is computed on the CPU or refused. The device is PoCL, a CPU that counts as a GPU by
a setting."""

import itertools
import json
import os
import shutil
import subprocess

import numpy as np
import op_cases
import pytest
from conftest import FLAGS, ROOT, libraries

from graph_tool import attr_text, shape_text

AMPLE = 1 << 30


@pytest.fixture(scope="session")
def tool(tmp_path_factory):
    """The program, and the environment that it runs in: one cache of compiled kernels for all."""
    folder = tmp_path_factory.mktemp("device")
    program = folder / "device_tool"
    source = ROOT / "tests/programs/device_tool.c"
    subprocess.run(["gcc", *FLAGS, source, *libraries(), "-o", program], check=True)
    (folder / "cache").mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PLIMSOLL_")}
    return program, kept | {"POCL_CACHE_DIR": str(folder / "cache"), "POCL_DEVICES": "pthread"}


class Tool:
    """Lines for the program, and arrays in files."""

    def __init__(self, tool, folder):
        self.program, self.environment = tool
        self.folder, self.lines = folder, []
        self.names = itertools.count()
        self.environment = dict(self.environment)

    def say(self, *words):
        self.lines.append(" ".join(str(word) for word in words))

    def ask(self, *words):
        """The answer to one more line, after all that were said."""
        self.say(*words)
        return self.answers()[-1]

    def answers(self):
        done = subprocess.run([self.program], input="\n".join(self.lines) + "\n", text=True,
                              capture_output=True, env=self.environment, timeout=300)
        assert done.returncode == 0, done.stderr
        answers = done.stdout.splitlines()
        assert len(answers) == len(self.lines), done.stdout
        return answers

    def give(self, array, how="window"):
        name = f"n{next(self.names)}"
        array = np.asarray(array)
        path = self.folder / f"{name}.npy"
        np.save(path, array.T if how == "transposed" else array)
        self.say("add", "placeholder", name, "-", f"dtype=d:{array.dtype}",
                 f"shape=s:{shape_text(array.shape)}")
        self.say("give", name, how, path)
        return name

    def add(self, op, *inputs, **attrs):
        name = f"n{next(self.names)}"
        self.say("add", op, name, ",".join(inputs) or "-", attr_text(attrs))
        return name

    def path(self, name):
        return self.folder / f"out-{name}.npy"

    def run(self, *names, cap=AMPLE):
        """Arrays, after a run that went well and claimed no more than its plan stated; and what was
        told meanwhile."""
        said = self.ask("run", cap, *(f"{name}={self.path(name)}" for name in names))
        assert said.startswith("ok "), said
        numbers, *told = said.split("|")
        peak, stated = map(int, numbers.split()[1:])
        assert peak <= max(stated, 0) + self.given_bytes(), said
        self.told = told
        return [np.load(self.path(name)) for name in names]

    def given_bytes(self):
        return sum(path.stat().st_size for path in self.folder.glob("n*.npy"))

    def steps(self, *names):
        said = self.ask("explain", *names)
        self.lines.pop()
        assert said.startswith("ok {"), said
        return json.loads(said[3:])["steps"]


@pytest.fixture
def gpu(tool, tmp_path):
    """With /GPU:0, on which everything is placed from the start."""
    made = Tool(tool, tmp_path)
    made.say("set", "strict", "cpu=1")
    made.say("device", "/GPU:0")
    return made


@pytest.fixture
def bare(tool, tmp_path):
    return Tool(tool, tmp_path)


@pytest.fixture
def chance():
    return np.random.default_rng(11)
