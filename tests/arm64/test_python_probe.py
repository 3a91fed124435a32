# SPDX-License-Identifier: Apache-2.0
"""Debian's arm64 Python, read from raw memory, against its headers and what it says of itself."""
import json
import subprocess

import pytest

from conftest import HANG_S, PLIMSOLL, PROGRAMS, ROOT, RUN, SYSROOT, compile_program

PYTHON = SYSROOT / "usr" / "bin" / "python3"
SOURCES = [PROGRAMS / "probe_dump.c", *sorted((ROOT / "src" / "probe").glob("*.c")),
           PLIMSOLL.parents[1] / "probe" / "own_files.c",
           ROOT / "src" / "sys" / "proc.c", ROOT / "src" / "sys" / "fixed_text.c"]


@pytest.fixture(scope="module")
def dump(tmp_path_factory):
    program = compile_program(tmp_path_factory.mktemp("probe"), *SOURCES,
                              flags=[f"-I{ROOT}/include", f"-I{ROOT}/src", "-static"])
    return lambda *arguments: read(program, *arguments)


def read(*command):
    done = subprocess.run([RUN, *map(str, command)], capture_output=True, text=True, timeout=HANG_S,
                          check=True)
    return done.stdout


@pytest.fixture(scope="module")
def child():
    """A process of 17 threads that stay where they are, and said where that is."""
    with subprocess.Popen([RUN, PYTHON, PROGRAMS / "python_threads.py"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as process:
        said = json.loads(process.stdout.readline())
        yield [process.pid, said["runtime"], said["version"]], said["threads"]
        process.kill()


def test_the_offsets_are_those_of_the_headers(child, dump, tmp_path):
    folder = read(PYTHON, "-c", "import sysconfig; print(sysconfig.get_path('include'))").strip()
    headers = compile_program(tmp_path, PROGRAMS / "python_offsets.c",
                              flags=[f"-isystem{folder}", f"-isystem{folder}/internal"])
    claimed, true = dump("offsets", *child[0]), read(headers)
    assert sorted(claimed.splitlines()) == sorted(true.splitlines())
    assert len(true.splitlines()) > 30


def test_every_thread_is_read_as_python_sees_it(child, dump):
    threads = {}
    for kind, *fields in (line.split("\t") for line in dump(*child[0]).splitlines()):
        if kind == "thread":
            frames = threads.setdefault(fields[0], [])
        else:
            frames.append((int(fields[0]), fields[1]))
    said = child[1]
    assert len(said) == 17 and set(said) < set(threads)
    for ident, frames in said.items():
        lines = [line for line, *_ in frames]
        assert [line for line, _ in threads[ident]] == lines and lines
        # names that are too long, or no UTF-8, are shown otherwise: tests/run has those
        for (_, shown), (_, name, _) in zip(threads[ident], frames):
            assert shown == name or not name.isascii() or len(name) > 60
