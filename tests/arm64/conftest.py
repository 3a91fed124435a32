# SPDX-License-Identifier: Apache-2.0
"""`plimsoll run` of the arm64 build on arm64 programs, all of it by qemu-user.

The kernel here starts no arm64 program by itself: what the supervisor starts is the emulator, with the
program as its argument. To the supervisor that is a program of another machine, which the guard cannot
enter: the emulator is told itself to preload it.
"""
import json
import os
import pathlib
import subprocess
import sys
import types

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))  # for support.py
from support import HANG_S, ROOT  # noqa: E402

SYSROOT = ROOT / "build" / "arm64-sysroot"
PLIMSOLL = ROOT / "build" / "meson-arm64" / "src" / "cli" / "plimsoll"
GUARD = ROOT / "build" / "meson-arm64" / "src" / "guard" / "libplimsoll-guard.so"
RUN = ROOT / "tools" / "cross" / "arm64-run"
PROGRAMS = ROOT / "tests" / "programs"
COMPILER = ["aarch64-linux-gnu-gcc", f"--sysroot={SYSROOT}", "-g", "-O1", "-D_GNU_SOURCE", "-Wall",
            "-Wextra", "-Werror", "-pthread"]
# A processor of 2015: Armv8.0 with CRC32 and AES, without what came later.
OLD_CPU = "cortex-a72"


def pytest_configure():
    if not PLIMSOLL.is_file():
        pytest.exit(f"no '{PLIMSOLL}': tests/run_all arm64 builds it", 2)


def compile_program(folder, *sources, flags=()):
    program = folder / pathlib.Path(sources[0]).stem
    subprocess.run([*COMPILER, *flags, *sources, "-o", program], check=True)
    return program


@pytest.fixture
def program(tmp_path):
    return lambda name: compile_program(tmp_path, PROGRAMS / f"{name}.c")


@pytest.fixture
def run(tmp_path):
    """Runs a command under the line; returns its status, what it said, and the report."""

    def run(*command, cpu=OLD_CPU, options=()):
        report = tmp_path / "report.json"
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PLIMSOLL_")}
        environment |= {"PLIMSOLL_STATE": str(tmp_path / "state"), "QEMU_CPU": cpu,
                        "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [RUN, PLIMSOLL, "run", "--report", report, *options, "--",
             RUN, "-E", f"LD_PRELOAD={GUARD}", *command],
            env=environment, capture_output=True, text=True, timeout=HANG_S)
        return types.SimpleNamespace(
            rc=done.returncode, stderr=done.stderr, stdout=done.stdout,
            report=json.loads(report.read_text()) if report.exists() else {})

    return run
