# SPDX-License-Identifier: Apache-2.0
"""The guard stands in front of exactly what its table says, and answers its kernel; the library exports what its headers do."""

import re


def pinned(root, name):
    return set((root / "tests/symbols" / name).read_text().split())


def test_guard_exports_are_those_of_its_table(root):
    text = (root / "src/guard/guard.h").read_text()
    table = text.partition("#define PL_REAL_FUNCTIONS(X)")[2].partition("\n\n")[0]
    names = set(re.findall(r"X\((\w+),", table))
    assert {"malloc", "free", "mmap"} <= names
    asked = re.findall(r"^PL_EXPORT [^;]*?\b(pl_guard_\w+)\(",
                       (root / "src/guard/notebook.h").read_text(), re.MULTILINE)
    assert "pl_guard_cell_begin" in asked
    runtime = (root / "src/guard/runtime.c").read_text()
    asked += re.findall(r"^EXPORT (pl_guard_\w+)_function \1;", runtime, re.MULTILINE)
    assert "pl_guard_owner" in asked
    # mmap64 is mmap by its other name.
    assert pinned(root, "guard.exports") == names | {"mmap64"} | set(asked)


def test_guard_prints_nothing(root):
    """It lives in other people's processes: their stdout and stderr are not its own."""
    stdio = {"printf", "fprintf", "vfprintf", "puts", "fputs", "fopen", "fwrite", "perror", "stderr"}
    fortified = {f"__{name}_chk" for name in stdio}
    assert not pinned(root, "guard.imports") & (stdio | fortified)


def test_library_exports_are_those_of_its_headers(root):
    declared = set()
    for header in (root / "include/plimsoll").glob("*.h"):
        declared |= set(re.findall(r"^PL_API [^;{]*?\b(pl_\w+)\(", header.read_text(), re.MULTILINE))
    assert "pl_ledger_claim" in declared
    assert pinned(root, "libplimsoll.exports") == declared
