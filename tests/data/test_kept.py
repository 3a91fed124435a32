# SPDX-License-Identifier: Apache-2.0
"""What is kept on disk, between processes: checkpoints that go on elsewhere, writers that are killed
at any moment, the bytes of the files."""

import os
import random
import signal
import struct
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import keeping
import sources

base = sources.base


def pipeline(runtime, folder):
    """Of all that has a state of its own."""
    numbers = keeping.numbers(runtime, 400)
    made = keeping.mapped(numbers, lambda x: 7 * x + 1 if x % 29 else 1 // 0, n_parallel=3)
    shuffled = sources.Dataset("shuffle", made, *shuffle_by(50, 3))
    cached = keeping.cache(shuffled.with_policy(sources.SKIP), folder / "cache")
    return sources.Dataset("repeat", cached.batch(7), base.ctypes.c_int64(3)).prefetch(4)


def shuffle_by(n, seed):
    return base.ctypes.c_int64(n), base.ctypes.c_int64(seed), True


def in_a_process(body, *arguments):
    """Python that has a runtime, the modules here and its arguments; what it wrote to stdout."""
    code = textwrap.dedent("""
        import pathlib, sys
        sys.path.insert(0, sys.argv[1])
        import keeping, sources, test_kept
        base = sources.base
        folder, arguments = pathlib.Path(sys.argv[2]), sys.argv[3:]
        with base.Runtime(cap_bytes=64 << 20, spill=folder) as runtime:
    """) + textwrap.indent(textwrap.dedent(body), "    ")
    here = os.path.dirname(os.path.abspath(__file__))
    return subprocess.Popen([sys.executable, "-c", code, here, *map(str, arguments)],
                            stdout=subprocess.PIPE, text=True)


def output_of(process):
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return out


@pytest.mark.parametrize("cut", [0, 3, 60, 100])
def test_another_process_goes_on_where_a_pass_was_cut(runtime, tmp_path, cut):
    iterator = iter(pipeline(runtime, tmp_path))
    for _ in range(cut):
        next(iterator)
    keeping.checkpoint(iterator, tmp_path / "checkpoint")
    other = in_a_process("""
        iterator = keeping.restored(test_kept.pipeline(runtime, folder), folder / "checkpoint")
        for batch in iterator:
            print(*batch)
        print(iterator.bad_count)
    """, tmp_path)  # fmt: skip
    lines = output_of(other).splitlines() if cut != 3 else None
    rest = list(iterator)
    if cut == 3:  # the cache is being written: the other process sees the file when it is complete
        lines = output_of(other).splitlines()
    assert [list(map(int, line.split())) for line in lines[:-1]] == [list(batch) for batch in rest]
    assert lines[-1] == str(iterator.bad_count)


def test_the_files_are_records_with_what_the_page_says(runtime, tmp_path):
    numbers = [5, 7, 9]
    assert list(keeping.cache(keeping.numbers(runtime, 5, 11, 2), tmp_path / "cache")) == numbers
    data = (tmp_path / "cache").read_bytes()
    records = []
    while data:
        (n,) = struct.unpack_from("<Q", data)
        records.append(data[12:12 + n])
        data = data[16 + n:]
    start, piece, end = records
    assert start == b"PLIMSOLL" + b"elem" + struct.pack("<I", 1)
    tree = b"range(start=5, step=2, n=3): int64[]\n"
    elements = b"".join(b"\1" + struct.pack("<BIBq", 0, 1, 0x80 | 9, n) for n in numbers)
    tail = struct.pack("<BqBIqqq", 0, 3, 4 | 8, 0, 0, 0, 0)
    assert piece == b"P" + struct.pack("<q", len(tree)) + tree + elements + tail
    assert end[:9] == b"E" + struct.pack("<Q", len(piece) - 1)
    found = sources.records(sources.paths(runtime, tmp_path / "cache"))
    assert list(found) == records  # with all checksums


# ---- killed ----

KILLED = {
    "cache": """
        for _ in keeping.cache(test_kept.large(runtime), folder / "kept"): pass
        """,
    "snapshot": """
        for _ in keeping.snapshot(test_kept.large(runtime), folder / "kept", 3): pass
        """,
    "save": """
        keeping.save(test_kept.large(runtime), folder / "kept", 2)
        """,
    "checkpoint": """
        iterator = iter(test_kept.large(runtime).batch(20).prefetch(8))
        while True:
            keeping.checkpoint(iterator, folder / "kept")
            next(iterator)
        """,
}  # fmt: skip

N_LARGE, N_COLUMNS = 400, 1000


def large(runtime):
    rows = runtime.tensor(np.arange(N_LARGE * N_COLUMNS, dtype="f4").reshape(N_LARGE, N_COLUMNS))
    return keeping.slices(runtime, rows)


def assert_all_rows(found):
    wanted = np.arange(N_LARGE * N_COLUMNS, dtype="f4").reshape(N_LARGE, N_COLUMNS)
    np.testing.assert_array_equal(np.stack(list(found)), wanted)


def check_what_is_left(runtime, what, path):
    """A complete one or none; and the next run comes to its end whatever there is."""
    if what == "cache":
        assert_all_rows(keeping.cache(large(runtime), path))
    elif what == "snapshot":
        assert_all_rows(keeping.snapshot(large(runtime), path, 3))
    elif what == "save":
        if (path / "metadata").exists():
            assert_all_rows(keeping.load(runtime, path))
        keeping.save(large(runtime), path, 2)
        assert_all_rows(keeping.load(runtime, path))
    elif path.exists():
        rest = keeping.restored(large(runtime).batch(20).prefetch(8), path).everything()
        wanted = np.arange(N_LARGE * N_COLUMNS, dtype="f4").reshape(-1, N_COLUMNS)
        if rest:
            np.testing.assert_array_equal(np.concatenate(rest), wanted[N_LARGE - 20 * len(rest):])


def left_in(folder, what):
    """Names that are neither the result nor part of it."""
    names = set(os.listdir(folder)) - {"kept"}
    if what in ("snapshot", "save"):
        inside = sorted(os.listdir(folder / "kept"))
        shards = [name for name in inside if name.endswith(".shard")]
        assert len({name.split("-")[0] for name in shards}) == 1
        names |= set(inside) - set(shards) - {"metadata"}
    return names


@pytest.mark.parametrize("what", KILLED)
def test_a_writer_that_is_killed_leaves_a_complete_one_or_none(runtime, tmp_path, what):
    delays = random.Random(what)
    process = in_a_process("print('ready', flush=True)\n" + textwrap.dedent(KILLED[what]), tmp_path)
    process.stdout.readline()  # how long a run takes from here on, when nobody kills it
    began = time.monotonic()
    if what == "checkpoint":
        time.sleep(0.3)
    else:
        process.wait(timeout=120)
    took = time.monotonic() - began
    process.kill()
    process.communicate()
    for _ in range(3):
        if what != "checkpoint":
            subprocess.run(["rm", "-rf", tmp_path / "kept"], check=True)
        for _ in range(2):  # the second finds what the first has left
            process = in_a_process("print('ready', flush=True)\n" + textwrap.dedent(KILLED[what]),
                                   tmp_path)
            process.stdout.readline()
            time.sleep(delays.random() * took)
            process.send_signal(signal.SIGKILL)
            process.communicate()
        check_what_is_left(runtime, what, tmp_path / "kept")
        if what != "checkpoint":
            assert left_in(tmp_path, what) == set()


def test_writers_at_once_in_many_processes_do_not_harm_each_other(runtime, tmp_path):
    body = """
        found = list(keeping.cache(test_kept.large(runtime), folder / "kept"))
        print(sum(float(row.sum()) for row in found), len(found))
    """
    processes = [in_a_process(body, tmp_path) for _ in range(4)]
    outputs = {output_of(process) for process in processes}
    assert len(outputs) == 1
    assert outputs.pop().split()[1] == str(N_LARGE)
    assert_all_rows(keeping.cache(large(runtime), tmp_path / "kept"))
    assert left_in(tmp_path, "cache") == set()


# ---- what the disk refuses ----

def test_a_cache_that_passes_the_limit_on_file_sizes_is_an_error_that_names_it(tmp_path):
    process = in_a_process("""
        import resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (300000, 300000))
        try:
            for _ in keeping.cache(test_kept.large(runtime), folder / "kept"): pass
        except base.Refused as refused:
            print(refused)
        import os
        print(os.listdir(folder))
    """, tmp_path)  # fmt: skip
    message, left = output_of(process).splitlines()
    assert message.startswith(f"EFBIG: cache: cannot write '{tmp_path}/kept'")
    assert "ulimit -f" in message
    assert left == "[]"


def test_a_checkpoint_holds_more_than_memory_has(tmp_path):
    """Batches made ahead and a cache fill the budget; the file is written and read in pieces."""
    options = {"cap_bytes": 24 << 20, "spill": tmp_path}

    def made(runtime):
        rows = keeping.cache(keeping.numbers(runtime, 4 << 20).batch(1 << 16))  # 32 MiB
        return rows.prefetch(8)

    with base.Runtime(**options) as runtime:
        iterator = iter(made(runtime))
        for _ in range(50):
            next(iterator)
        keeping.checkpoint(iterator, tmp_path / "checkpoint")
        rest = [batch.sum() for batch in iterator]
        iterator.close()
        again = keeping.restored(made(runtime), tmp_path / "checkpoint")
        assert [batch.sum() for batch in again] == rest
        again.close()
        assert runtime.peak_bytes <= 24 << 20
