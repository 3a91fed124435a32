# SPDX-License-Identifier: Apache-2.0
"""Python stacks read from raw memory, against what Python says of itself.

Runs on Debian's Python, on every other supported one that is installed beside it, and on those that
PLIMSOLL_TEST_PYTHONS names (paths with colons between them): free-threaded builds, say.
"""
import functools
import glob
import json
import os
import subprocess

import pytest

from conftest import HANG_S, PROGRAMS, PYTHON, ROOT, wait_until

FLAGS = ["-std=gnu17", "-g", "-O2", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-pthread",
         f"-I{ROOT}/include", f"-I{ROOT}/src"]
SANITIZERS = ["-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
FILE_BYTES, FUNCTION_BYTES = 120, 68  # of pl_python_frame
FIRST, END = 0x03080000, 0x03100000  # the versions that are read
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


@functools.lru_cache(maxsize=None)
def identity(python):
    """(hexversion, flags of the build, folder of the headers) of an interpreter, or None."""
    ask = ("import sys, sysconfig; print(sys.hexversion, '-' + getattr(sys, 'abiflags', ''), "
           "sysconfig.get_paths()['include'])")
    done = subprocess.run([python, "-c", ask], capture_output=True, text=True)
    if done.returncode != 0:
        return None
    version, flags, folder = done.stdout.split(maxsplit=2)
    return int(version), flags[1:], folder.strip()


def interpreters():
    patterns = ["/usr/bin/python3.[0-9]*", "/usr/local/bin/python3.[0-9]*",
                os.path.expanduser("~/.pyenv/versions/3.*/bin/python3")]
    paths = [path for pattern in patterns for path in sorted(glob.glob(pattern))
             if not path.endswith(("-config", "-coverage"))]
    named = os.environ.get("PLIMSOLL_TEST_PYTHONS", "")
    known = {}
    for path in [PYTHON, *paths, *filter(None, named.split(":"))]:
        who = identity(path)
        if who and FIRST <= who[0] < END and who[0] & 0xf0 == 0xf0:
            known.setdefault(who, path)
    return list(known.values())


def name_of(path):
    version, flags, _ = identity(path)
    return f"{version >> 24}.{version >> 16 & 255}.{version >> 8 & 255}{flags}"


every_python = pytest.mark.parametrize("python", interpreters(), ids=name_of)


def build(target, flags):
    sources = [str(PROGRAMS / "probe_dump.c"), *sorted(glob.glob(f"{ROOT}/src/probe/*.c")),
               f"{ROOT}/build/meson/src/probe/own_files.c",
               f"{ROOT}/src/sys/proc.c", f"{ROOT}/src/sys/fixed_text.c"]
    subprocess.run(["gcc", *FLAGS, *flags, *sources, "-o", str(target)], check=True)
    return str(target)


@pytest.fixture(scope="session")
def dump(tmp_path_factory):
    return build(tmp_path_factory.mktemp("probe") / "probe_dump", ["-static"])


@pytest.fixture(scope="session")
def sanitized_dump(tmp_path_factory):
    return build(tmp_path_factory.mktemp("probe") / "probe_dump", SANITIZERS)


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    return build(tmp_path_factory.mktemp("probe") / "probe.so", ["-shared", "-fPIC"])


class Child:
    """A Python process that stays where it is, and said where that is."""

    def __init__(self, python, *argv):
        env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUTF8": "1"}
        self.process = subprocess.Popen([python, *argv], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env=env)
        line = self.process.stdout.readline()
        assert line, f"'{python}' ended with {self.process.wait()}"
        self.said = json.loads(line)

    def where(self, version=None, runtime=None):
        return [str(self.process.pid), str(runtime or self.said["runtime"]),
                str(version or self.said["version"])]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def call(*argv, check=True):
    done = subprocess.run(argv, capture_output=True, timeout=HANG_S)
    assert not check or done.returncode == 0, done.stderr.decode()
    return done.returncode, done.stdout.decode()  # strictly UTF-8, or it raises


def stacks_of(text):
    """{ident: (tid, does it run, result of the check, frames)}."""
    threads = {}
    for kind, *fields in (line.split("\t") for line in text.splitlines()):
        if kind == "thread":
            frames = []
            threads[fields[0]] = (*map(int, fields[1:]), frames)
        else:
            frames.append([int(fields[0]), *fields[1:]])
    return threads


def shown(text, room_bytes):
    """How a str is shown in a frame: as UTF-8, its tail, in whole characters."""
    text = "".join(REPLACEMENT if "\ud800" <= c < "\ue000" else c for c in text)
    while len(text.encode()) > room_bytes - 1:
        text = text[1:]
    return text


def expected(frames):
    return [[line, shown(function, FUNCTION_BYTES), shown(file, FILE_BYTES)]
            for line, function, file in frames]


@pytest.fixture(scope="module", params=interpreters(), ids=name_of)
def blocked(request):
    with Child(request.param, str(PROGRAMS / "python_threads.py")) as child:
        yield child


@every_python
def test_the_offsets_are_those_of_the_headers(python, dump, tmp_path):
    folder = identity(python)[2]
    source = str(PROGRAMS / "python_offsets.c")
    subprocess.run(["gcc", f"-I{folder}", f"-I{folder}/internal", source, "-o",
                    str(tmp_path / "offsets")], check=True)
    with Child(python, "-c", ALONE) as child:
        claimed = call(dump, "offsets", *child.where())[1]
    true = call(str(tmp_path / "offsets"))[1]
    assert sorted(claimed.splitlines()) == sorted(true.splitlines())
    assert len(true.splitlines()) == 31


def test_every_thread_is_read_as_python_sees_it(blocked, dump):
    threads = stacks_of(call(dump, *blocked.where())[1])
    said = blocked.said["threads"]
    assert len(said) == 17
    assert set(said) < set(threads) and len(threads) == len(said) + 1  # and the one that watches
    for ident, frames in said.items():
        assert threads[ident][1:] == (0, 0, expected(frames))  # it waits, and has a known layout


def test_the_kernels_thread_numbers_are_told_where_they_are_kept(blocked, dump):
    threads = stacks_of(call(dump, *blocked.where())[1])
    tids = sorted(tid for tid, *_ in threads.values())
    if blocked.said["version"] < 0x030b0000:
        assert set(tids) == {0}
    else:
        assert tids == sorted(map(int, os.listdir(f"/proc/{blocked.process.pid}/task")))


def test_lies_are_survived(blocked, sanitized_dump):
    kind, n_stacks = call(sanitized_dump, "corrupt", *blocked.where())[1].split()
    assert kind == "stacks" and int(n_stacks) > 1000


def test_the_layout_of_another_version_reads_nothing_false(blocked, dump):
    """Nothing at all, or, where two layouts agree, files that are really there."""
    true = {shown(frame[2], FILE_BYTES) for t in blocked.said["threads"].values() for frame in t}
    others = {minor << 16 | 0xf0 for minor in range(FIRST >> 16, END >> 16)}
    for version in others - {blocked.said["version"] & 0xffff0000 | 0xf0}:
        _, text = call(dump, *blocked.where(version=version), check=False)
        files = {row.split("\t")[3] for row in text.splitlines() if row.startswith("frame")}
        assert files <= true, hex(version)


@pytest.mark.parametrize("version", [0x020712f0, 0x030710f0, 0x030b00c1, END | 0xf0], ids=hex)
def test_an_unknown_version_reads_nothing(blocked, dump, version):
    code, text = call(dump, *blocked.where(version=version), check=False)
    assert code == 1 and "thread" not in text


@pytest.mark.parametrize("runtime", [8, 4096, 1 << 46, (1 << 64) - 8], ids=hex)
def test_a_wrong_runtime_address_reads_nothing(blocked, dump, runtime):
    code, text = call(dump, *blocked.where(runtime=runtime), check=False)
    assert code == 1 and "frame" not in text


ALONE = """
import ctypes, json, os, sys
runtime = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime"))
def spin():
    while True:
        pass
os.write(1, (json.dumps({"runtime": runtime, "version": sys.hexversion}) + "\\n").encode())
spin()
"""


@every_python
def test_a_thread_that_runs_is_known(python, dump):
    with Child(python, "-c", ALONE) as child:
        def look():
            (_, runs, check, frames), = stacks_of(call(dump, *child.where())[1]).values()
            return frames[0][1] == "spin" and (runs, check, frames)

        runs, check, frames = wait_until(look, "the child to spin")
    assert (runs, check) == (1, 0)
    assert frames[0][1:] == ["spin", "<string>"] and frames[0][0] in (5, 6)
    assert frames[1] == [8, "<module>", "<string>"]


BUSY = """
import ctypes, json, os, sys, threading
def down(n):
    return up(n) if n else sum(each(5))
def up(n):
    return down(n - 1)
def each(n):
    yield from range(n)
def work():
    while True:
        down(20); exec("down(20)")
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
runtime = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime"))
os.write(1, (json.dumps({"runtime": runtime, "version": sys.hexversion}) + "\\n").encode())
work()
"""


@every_python
def test_a_stack_that_changes_while_it_is_read_shows_only_places_that_exist(python, sanitized_dump):
    seen = set()

    def look_often():
        for _ in range(20):
            _, text = call(sanitized_dump, *child.where(), check=False)
            seen.update(tuple(row.split("\t")[1:]) for row in text.splitlines()
                        if row.startswith("frame") and "/threading.py" not in row)
        return {"down", "up", "work"} <= {function for _, function, _ in seen}

    with Child(python, "-c", BUSY) as child:
        wait_until(look_often, "a look at every function")
    lines = {"down": {3, 4}, "up": {5, 6}, "each": {7, 8}, "work": {9, 10, 11},
             "<module>": {1, 12, 13, 15, 16}}
    assert {(function, file) for _, function, file in seen} <= {(f, "<string>") for f in lines}
    # 0: the line of a frame that was being set up, which is not known
    assert not [row for row in seen if int(row[0]) not in lines[row[1]] | {0}]


HERE = """
import ctypes, json, os, sys, threading

class Frame(ctypes.Structure):
    _fields_ = [("file", ctypes.c_char * 120), ("function", ctypes.c_char * 68),
                ("line", ctypes.c_uint32)]

runtime = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime"))
get_state = ctypes.pythonapi.PyGILState_GetThisThreadState
get_state.restype = ctypes.c_uint64
where = ctypes.c_uint32(sys.hexversion), ctypes.c_uint64(runtime), ctypes.c_uint64(get_state())
frames = (Frame * 16)()

def inner(library):
    return library.probe_here(*where, frames, 16)

def outer(library):
    n = inner(library)
    return [[f.line, f.function.decode(), f.file.decode()] for f in frames[:n]]

def cost(library):
    library.probe_cost_ns.restype = ctypes.c_uint64
    return library.probe_cost_ns(*where, 1000000)

running, waiting = outer(ctypes.PyDLL(sys.argv[1])), outer(ctypes.CDLL(sys.argv[1]))
print(json.dumps({"running": running, "waiting": waiting,
                  "cost_ns": cost(ctypes.PyDLL(sys.argv[1]))}))
"""


@every_python
def test_a_thread_reads_itself_while_it_runs_python(python, library):
    with Child(python, "-c", HERE, library) as child:
        assert child.said["running"] == [[15, "inner", "<string>"], [18, "outer", "<string>"],
                                         [25, "<module>", "<string>"]]
        assert child.said["waiting"] == []
        assert child.said["cost_ns"] < 1 << 63, "a look found nothing"
        print(f"{name_of(python)}: {child.said['cost_ns']} ns a look")
