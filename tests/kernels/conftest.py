# SPDX-License-Identifier: Apache-2.0
"""Kernels are run by small C programs that read and write .npy files, linked with the build that
$PLIMSOLL_BUILD names (build/ by default)."""

import os
import pathlib
import platform
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("PLIMSOLL_BUILD", ROOT / "build")) / "meson"
FLAGS = (
    "-std=gnu17", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror",
    f"-I{ROOT}/include", f"-I{ROOT}/src",
)  # fmt: skip


def libraries():
    """In an order that a linker takes: a library before what it needs."""
    found = [BUILD / "src/libplimsoll-runtime.a"]
    found += sorted((BUILD / "src/kernels").glob("libplimsoll-kernels-*.a"))
    found += sorted((BUILD / "src").glob("*/libplimsoll-core.a"))
    assert len(found) >= 3, f"{BUILD} has not been built: run `make build`"
    sleef = ["-lsleef"] if platform.machine() == "x86_64" else []
    # OpenBLAS starts threads when it is loaded: only in programs that multiply.
    images = ["-ljpeg", "-lspng", "-ldeflate", "-lisal"]
    return [*map(str, found), *sleef, "-Wl,--as-needed", "-lopenblas", *images, "-lm", "-pthread"]


@pytest.fixture(scope="session")
def compile_tool(tmp_path_factory):
    """Compiles tests/programs/NAME.c; returns the program's path."""

    def compile_one(name):
        program = tmp_path_factory.mktemp("tool") / name
        source = ROOT / "tests/programs" / f"{name}.c"
        command = ["gcc", *FLAGS, str(source), *libraries(), "-o", str(program)]
        subprocess.run(command, check=True)
        return program

    return compile_one


@pytest.fixture(scope="session")
def build_tool(compile_tool):
    """Compiles tests/programs/NAME.c; returns a function that gives it commands, a line each, and
    returns its answers."""

    def build(name):
        program = compile_tool(name)

        def run(*commands):
            lines = "".join(" ".join(str(word) for word in words) + "\n" for words in commands)
            done = subprocess.run(
                [str(program)], input=lines, capture_output=True, text=True, timeout=300
            )
            assert done.returncode == 0, done.stderr
            answers = done.stdout.splitlines()
            assert len(answers) == len(commands), done.stdout
            return answers

        return run

    return build
