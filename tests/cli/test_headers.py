# SPDX-License-Identifier: Apache-2.0
"""Every header compiles alone; the installed ones in C++ and in strict C as well."""

import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PUBLIC = sorted(path.name for path in (ROOT / "include/plimsoll").glob("*.h"))
PRIVATE = sorted(str(path.relative_to(ROOT / "src")) for path in (ROOT / "src").rglob("*.h"))
PYTHON_H = subprocess.run(
    ["/usr/bin/python3", "-c", "import sysconfig; print(sysconfig.get_path('include'))"],
    stdout=subprocess.PIPE, text=True, check=True).stdout.strip()  # fmt: skip
STRICT = ("-Wall", "-Wextra", "-Wundef", "-Wshadow", "-Werror", "-fsyntax-only")


def compile_alone(call, tmp_path, compiler, include, suffix):
    # Twice, which the include guard must bear.
    source = tmp_path / f"alone{suffix}"
    source.write_text(f"#include {include}\n#include {include}\nextern int nothing;\n")
    return call(*compiler, *STRICT, f"-I{ROOT}/include", f"-I{ROOT}/src", source)


@pytest.mark.parametrize("header", PUBLIC)
@pytest.mark.parametrize(
    "compiler, suffix",
    [
        (("gcc", "-std=c17", "-pedantic"), ".c"),
        (("clang", "-std=c17", "-pedantic"), ".c"),
        (("g++", "-std=c++17", "-pedantic"), ".cc"),
        (("clang++", "-std=c++17", "-pedantic"), ".cc"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else None,
)
def test_public_header_stands_alone(call, tmp_path, compiler, suffix, header):
    done = compile_alone(call, tmp_path, compiler, f"<plimsoll/{header}>", suffix)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("header", PRIVATE)
def test_private_header_stands_alone(call, tmp_path, header):
    compiler = ("gcc", "-std=gnu17", "-D_GNU_SOURCE", '-DPL_VERSION="0"',
                "-DPL_ISA=plain", f"-isystem{PYTHON_H}")
    done = compile_alone(call, tmp_path, compiler, f'"{header}"', ".c")
    assert done.returncode == 0, done.stderr


def test_umbrella_includes_every_public_header():
    text = (ROOT / "include/plimsoll/plimsoll.h").read_text()
    missing = [name for name in PUBLIC if f'"plimsoll/{name}"' not in text]
    assert missing == ["plimsoll.h"]
