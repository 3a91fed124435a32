# SPDX-License-Identifier: Apache-2.0
"""Python without a GIL under the line: its objects come from mimalloc, many threads run at once."""
import glob
import os
import subprocess

import pytest

from conftest import MIB, line_of


def interpreters():
    """Those that PLIMSOLL_TEST_PYTHONS names, and python3.13t and later where they are usual."""
    named = os.environ.get("PLIMSOLL_TEST_PYTHONS", "").split(":")
    patterns = ["/usr/bin/python3.*t", "/usr/local/bin/python3.*t",
                os.path.expanduser("~/.pyenv/versions/3.*t/bin/python3")]
    paths = [*filter(None, named), *(p for pattern in patterns for p in sorted(glob.glob(pattern)))]
    ask = "import sys, sysconfig; sys.exit(not sysconfig.get_config_var('Py_GIL_DISABLED'))"
    return [p for p in paths if subprocess.run([p, "-c", ask]).returncode == 0]


@pytest.fixture(params=interpreters() or [None])
def python(request):
    if request.param is None:
        pytest.skip("no free-threaded Python here: Debian has none; build one with --disable-gil, "
                    "and name it in PLIMSOLL_TEST_PYTHONS")
    return request.param


def run_script(run, python, tmp_path, script, budget="300M"):
    path = tmp_path / "grow.py"
    path.write_text(script)
    return run(python, str(path), budget=budget)


GROW = """
keep = []
def grow():
    while True:
        keep.append({what})  # grows
grow()
"""


@pytest.mark.parametrize("what", ["[object() for _ in range(1000)]", "bytearray(100_000)",
                                  "bytearray(1_100_000)"])
def test_what_grows_gets_a_memory_error_with_its_line(run, python, tmp_path, what):
    script = GROW.format(what=what)
    result = run_script(run, python, tmp_path, script)
    line = line_of(script, "# grows")
    assert result.rc == 1
    assert f"line {line}, in grow" in result.stderr and "MemoryError: plimsoll: " in result.stderr
    assert result.report["memory"]["n_refusals"] > 0
    assert result.report["memory"]["peak_charged_bytes"] < 360 * MIB  # a segment past the line


def test_a_program_that_catches_it_goes_on(run, python, tmp_path):
    result = run_script(run, python, tmp_path, """
def grow():
    keep = []
    while True:
        keep.append([object() for _ in range(1000)])
n_caught = 0
for _ in range(3):
    try:
        grow()
    except MemoryError:
        n_caught += 1
print(n_caught)
""")
    assert result.rc == 0 and result.stdout == "3\n"


def test_threads_that_grow_at_once_are_held(run, python, tmp_path):
    result = run_script(run, python, tmp_path, """
import threading
n_caught = [0] * 4
def grow(i):
    keep = []
    try:
        while True:
            keep.append([object() for _ in range(1000)])
    except MemoryError:
        n_caught[i] += 1
threads = [threading.Thread(target=grow, args=(i,)) for i in range(4)]
for t in threads: t.start()
for t in threads: t.join()
print(sum(n_caught))
""")
    assert result.rc == 0 and result.stdout == "4\n"
    assert result.report["memory"]["peak_charged_bytes"] < 600 * MIB  # each maps 32 MiB at a time


def test_a_crash_in_a_thread_has_its_line(run, python, tmp_path):
    script = """
import ctypes, threading
def load():
    ctypes.memset(8, 0, 8)  # dies
others = [threading.Thread(target=sum, args=(range(1 << 60),), daemon=True) for _ in range(2)]
for t in others: t.start()
thread = threading.Thread(target=load)
thread.start()
thread.join()
"""
    result = run_script(run, python, tmp_path, script)
    assert result.verdict == "crashed"
    frame = result.report["python"][0]
    assert (frame["function"], frame["line"]) == ("load", line_of(script, "# dies"))


def test_forked_workers_are_held_too(run, python, tmp_path):
    result = run_script(run, python, tmp_path, """
import multiprocessing
def grow():
    keep = []
    while True:
        keep.append([object() for _ in range(1000)])
multiprocessing.set_start_method("fork")
with multiprocessing.Pool(2) as pool:
    print(sum(pool.map(abs, range(-1000, 0))))
worker = multiprocessing.Process(target=grow)
worker.start()
worker.join()
print(worker.exitcode)
""")
    assert result.rc == 0 and result.stdout == "500500\n1\n"
    assert "MemoryError: plimsoll: " in result.stderr
