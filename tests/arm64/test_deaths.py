# SPDX-License-Identifier: Apache-2.0
"""Deaths of arm64 programs: registers, native and Python stacks, and instructions that are missing."""
import signal
import textwrap

import pytest

from conftest import SYSROOT

PYTHON = SYSROOT / "usr" / "bin" / "python3"


def symbols(result):
    return [frame.get("symbol", "") for frame in result.report["native"]]


def test_a_fault_is_unwound_from_its_registers(run, program):
    result = run(program("null_read"))
    assert result.rc == 128 + signal.SIGSEGV, result.stderr
    assert result.report["verdict"] == "crashed"
    assert result.report["crash"]["address"] == "0x0"
    assert symbols(result)[:3] == ["read_row", "sum_rows", "main"]
    # gcc 16 counts the read to the line that closes the function.
    assert result.report["native"][0]["source"].endswith(("null_read.c:11", "null_read.c:12"))


@pytest.mark.parametrize("flag, name", [("sve", "SVE"), ("asimdhp", "FP16 vectors"),
                                        ("bf16", "BF16")])
def test_a_missing_instruction_set_is_named(run, program, flag, name):
    result = run(program("illegal_instruction"), flag)
    assert result.rc == 128 + signal.SIGILL
    assert result.report["verdict"] == "illegal-instruction", result.stderr
    assert result.report["instruction"]["set"] == name
    assert result.report["instruction"]["cpu_has_set"] is False
    assert f"needs {name}, which this CPU lacks" in result.stderr
    assert symbols(result)[0] == "add_vectors"


def test_a_newer_processor_runs_the_same(run, program):
    assert run(program("illegal_instruction"), "sve", cpu="max").rc == 0


def test_a_trap_is_not_blamed_on_the_processor(run, program):
    result = run(program("illegal_instruction"))
    assert result.report["verdict"] == "crashed"
    assert result.report["instruction"]["deliberate"] is True
    assert "udf #0" in result.stderr


def test_the_python_line_of_a_crash(run, tmp_path):
    script = tmp_path / "crash.py"
    script.write_text(textwrap.dedent("""\
        import ctypes
        def read(address):
            return ctypes.string_at(address, 4)
        def walk(depth):
            return walk(depth - 1) if depth else read(8)
        walk(3)
        """))
    result = run(PYTHON, script)
    assert result.rc == 128 + signal.SIGSEGV, result.stderr
    frames = [(frame["function"], frame["line"]) for frame in result.report["python"]]
    assert frames[-6:] == [("read", 3), *[("walk", 5)] * 4, ("<module>", 6)]


def test_a_python_that_grows_gets_an_error_with_its_line(run, tmp_path):
    script = tmp_path / "grow.py"
    script.write_text(textwrap.dedent("""\
        kept = []
        def grow():
            kept.append(bytearray(20_000_000))
        while True:
            grow()
        """))
    result = run(PYTHON, script, options=["--budget", "300M"])
    assert result.rc == 1 and "MemoryError" in result.stderr
    assert result.report["verdict"] == "refused", result.stderr
    assert result.report["python"][0]["line"] == 3
