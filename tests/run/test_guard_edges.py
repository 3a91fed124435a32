# SPDX-License-Identifier: Apache-2.0
"""Corners of the allocator's world where the guard once went wrong: each was a bug."""
import signal
import textwrap

import pytest

from conftest import MIB


@pytest.mark.parametrize("how", ["fork", "_Fork", "clone"])
def test_a_child_that_frees_its_parents_block_gives_nothing_back(run, program, how):
    result = run(program("guard_edges"), "fork-unseen", how, budget="600M")
    assert result.rc == 0
    assert result.stdout == "200 0 granted\n" or result.stdout == "200 2 granted\n"


def test_malloc_is_no_cancellation_point(run, program):
    for _ in range(3):
        assert run(program("guard_edges"), "cancel", budget="600M").stdout == "free\n"


def test_free_of_null_takes_nothing_with_it(run, program):
    assert run(program("guard_edges"), "free-null", budget="600M").stdout == "2 0\n"


def test_mappings_that_end_together_hide_no_later_block(run, program):
    assert run(program("guard_edges"), "unmapped-together", budget="600M").stdout == "0\n"


def test_a_block_that_changes_its_size_counts_once(run, program):
    result = run(program("guard_edges"), "resize-meanwhile", budget="2G")
    assert 290 <= int(result.stdout) < 400


def test_a_crash_after_one_in_a_vforked_child_ends_the_program(run, program):
    result = run(program("guard_edges"), "crash-after-vfork")
    assert result.stdout == f"{int(signal.SIGSEGV)}\n"
    assert result.rc == 128 + signal.SIGSEGV


def test_forks_near_the_line_are_not_refused(run, program):
    result = run(program("guard_edges"), "forks-near-the-line", budget="400M")
    assert result.rc == 0 and result.stdout == "0\n"


def test_a_profiler_that_reads_all_frames_does_not_deadlock(run):
    """sys._current_frames() allocates with the interpreter's list of threads locked."""
    result = run(budget="300M", options=["--reserve", "60M"], script="""
        import sys, threading
        wait = threading.Event()
        for _ in range(40):
            threading.Thread(target=wait.wait, daemon=True).start()
        n_caught = 0
        def sample():
            global n_caught
            for _ in range(3):
                try:
                    keep = [sys._current_frames() for _ in range(1_000_000)]
                except MemoryError:
                    n_caught += 1
                keep = None
        thread = threading.Thread(target=sample)
        thread.start()
        thread.join()
        print(n_caught)
        """)
    assert result.rc == 0 and result.stdout == "3\n"


def test_a_buffer_that_shrank_is_not_said_to_hold_what_it_was(run):
    result = run(budget="400M", script="""
        import tempfile
        import numpy as np
        file = tempfile.TemporaryFile(buffering=0)
        file.write(b"x" * 100)
        keep = []
        for _ in range(20):
            file.seek(0)
            keep.append(file.read(50 << 20))
        try:
            np.ones(10**10)
        except MemoryError:
            print("refused")
        """)
    assert result.stdout == "refused\n"
    held = sum(site["bytes"] for site in result.report["sites"])
    assert held < 100 << 20


# Growing to 64 KiB, a list is given 600 KiB in all, a bytearray of 40 KB 300 KB.
GROWING = {
    "list": """
        grows = []
        for _ in range(8000):
            grows.append(None)
        """,
    "bytearray": """
        grows = bytearray()
        for _ in range(100):
            grows += bytes(400)
        """,
    "shrunk": """
        grows = bytearray(300_000)
        del grows[50_000:]
        """,
}


@pytest.mark.parametrize("kind", GROWING)
def test_what_grew_step_by_step_is_held_once(run, kind):
    """A block that is resized is drawn as a sample at each of its sizes: only the last one counts."""
    result = run(budget="200M", script="kept = []\nwhile True:\n"
                 + textwrap.indent(textwrap.dedent(GROWING[kind]), "    ")
                 + "    kept.append(grows)\n")
    assert "MemoryError" in result.stderr
    held = sum(site["bytes"] for site in result.report["sites"])
    assert 120 * MIB < held <= result.report["memory"]["peak_charged_bytes"]
