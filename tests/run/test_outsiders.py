# SPDX-License-Identifier: Apache-2.0
"""Programs that the guard cannot enter: said before they start, in one sentence, and they run."""
import os
import pathlib
import shutil
import struct
import subprocess

import pytest

from conftest import PROGRAMS

NOT_REFUSED = "requests over the line are not refused in it"


def said(result):
    return [line for line in result.stderr.splitlines() if NOT_REFUSED in line]


def script_for(folder, interpreter, name="script"):
    path = folder / name
    path.write_text(f"#!{interpreter}\n")
    path.chmod(0o755)
    return path


def test_a_musl_program_runs_within_its_data_limit(run, program):
    grow = program("grow", musl=True)
    result = run(grow, 50, budget="200M")
    assert result.rc == 0 and result.stdout == "done\n"
    assert len(said(result)) == 1 and "/lib/ld-musl-" in result.stderr and "glibc" in result.stderr
    assert "preload" not in result.stderr and "relocating" not in result.stderr
    over = run(grow, 800, budget="200M")
    assert over.rc != 0 and over.report["memory"]["peak_resident_bytes"] < 260 << 20


def test_a_musl_program_runs_as_a_child_of_a_guarded_one(run, program):
    """musl's loader does not find the guard, and says nothing; its glibc siblings are guarded."""
    grow = program("grow", musl=True)
    result = run(budget="200M", script=f"""
        import subprocess, sys
        print(subprocess.run([{str(grow)!r}, "50"], capture_output=True, text=True))
        big = "try: bytearray(300 << 20)\\nexcept MemoryError: print('refused')"
        print(subprocess.run([sys.executable, "-c", big], capture_output=True, text=True).stdout)
        """)
    assert "stdout='done\\n', stderr=''" in result.stdout and "returncode=0" in result.stdout
    assert "refused" in result.stdout


def test_what_a_musl_program_starts_is_guarded(run, tmp_path):
    source, become = tmp_path / "become.c", tmp_path / "become"
    source.write_text("#include <unistd.h>\n"
                      "int main(int n, char **words) { (void)n; return execvp(words[1], words + 1); }\n")
    subprocess.run(["musl-gcc", source, "-o", become], check=True)
    big = "try: bytearray(300 << 20)\nexcept MemoryError: print('refused')"
    result = run(become, "/usr/bin/python3", "-c", big, budget="200M")
    assert "nor in what it starts" not in result.stderr and len(said(result)) == 1
    mapped = run(become, "/bin/cat", "/proc/self/maps", budget="200M")
    assert result.stdout == "refused\n" and "libplimsoll-guard.so" in mapped.stdout


def test_a_static_program_is_said_to_be_one(run, program):
    result = run(program("grow", static=True), 50, budget="200M")
    assert result.rc == 0 and result.stdout == "done\n"
    assert len(said(result)) == 1 and "statically" in result.stderr


@pytest.mark.parametrize("through", ["", "/usr/bin/env "])
def test_a_script_is_what_its_interpreter_is(session, program, through):
    grow = program("grow", musl=True)
    name = "grow_musl" if through else grow
    script = script_for(session.folder, through + str(name))
    twice = script_for(session.folder, script, "twice")
    path = f"{grow.parent}:{os.environ['PATH']}"
    for command in script, twice:
        result = session.run(command, budget="200M", env={"PATH": path})
        assert len(said(result)) == 1 and "/lib/ld-musl-" in result.stderr


def test_a_32_bit_program_is_said_to_be_one(run, tmp_path):
    """A whole one, made by hand: it exits with status 7."""
    code = bytes([0x31, 0xC0, 0x40, 0xBB, 7, 0, 0, 0, 0xCD, 0x80])  # exit(7)
    base, n_head = 0x08048000, 52 + 32
    head = struct.pack("<16sHHIIIIIHHHHHH", b"\x7fELF\1\1\1", 2, 3, 1, base + n_head, 52, 0, 0, 52,
                       32, 1, 0, 0, 0)
    segment = struct.pack("<8I", 1, 0, base, base, n_head + len(code), n_head + len(code), 5, 4096)
    path = tmp_path / "exit32"
    path.write_bytes(head + segment + code)
    path.chmod(0o755)
    result = run(path, budget="200M", errors="replace")
    assert len(said(result)) == 1 and "32-bit" in result.stderr
    assert "preload" not in result.stderr
    # A kernel without 32-bit programs: execvp() has a shell read it, which finds no command in it.
    assert result.rc in (7, 2, 126, 127)


def test_an_older_glibc_than_the_guard_needs(run, tmp_path):
    """A program with a loader of its own, as Nix and Conda have them. The versions of a C library
    are read from the one beside that loader."""
    loader = tmp_path / "ld-linux-x86-64.so.2"
    target = tmp_path / "grow_old"
    shutil.copy(pathlib.Path("/lib64/ld-linux-x86-64.so.2").resolve(), loader)
    subprocess.run(["gcc", str(PROGRAMS / "grow.c"), "-D_GNU_SOURCE", "-o", str(target),
                    f"-Wl,--dynamic-linker={loader}"], check=True)
    library = tmp_path / "libc.so.6"
    library.write_bytes(b"GLIBC_2.2.5\0" + bytes(65520) + b"GLIBC_2.31\0")
    result = run(target, 50, budget="200M")
    assert result.rc == 0 and result.stdout == "done\n"
    assert len(said(result)) == 1 and "has glibc 2.31, and the guard needs 2." in result.stderr
    library.write_bytes(b"GLIBC_2.99\0")
    assert not said(run(target, 50, budget="200M"))


def test_nothing_is_said_of_others_nor_where_nothing_is_refused(run, program):
    assert not said(run(program("grow"), 50, budget="200M"))
    assert not said(run(program("grow", static=True), 50, budget="200M", options=["--observe"]))
    assert not said(run(program("grow", static=True), 50, budget="200M", options=["--quiet"]))
    assert run("no-such-program", budget="200M").rc == 127
