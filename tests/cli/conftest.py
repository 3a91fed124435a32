# SPDX-License-Identifier: Apache-2.0
"""Where the sources and the build are, for every test of this folder."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))  # for support.py
BUILD = pathlib.Path(os.environ.get("PLIMSOLL_BUILD", ROOT / "build"))


@pytest.fixture(scope="session")
def root():
    return ROOT


@pytest.fixture(scope="session")
def version():
    """The one that meson.build states; tools/release sets the others."""
    return re.search(r"version: '([\d.]+)'", (ROOT / "meson.build").read_text())[1]


@pytest.fixture(scope="session")
def meson_build():
    return BUILD / "meson"


@pytest.fixture
def call():
    """Runs a command; returns the finished process, its output as text."""

    def run(*command, **how):
        words = [str(word) for word in command]
        return subprocess.run(words, capture_output=True, text=True, timeout=300, **how)

    return run
