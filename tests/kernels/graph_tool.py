# SPDX-License-Identifier: Apache-2.0
"""Builds tests/programs/graph_tool.c and talks to it: one command a line, one answer a line."""

import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
FLAGS = ("-std=gnu17", "-D_GNU_SOURCE", "-g", "-fno-strict-aliasing", "-Wall", "-Wextra", "-Werror",
         "-Wno-missing-field-initializers", f"-I{ROOT}/include", f"-I{ROOT}/src")  # fmt: skip
SANITIZED = ("-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")
PLAIN = ("-O2",)


def sources():
    yield ROOT / "tests/programs/graph_tool.c"
    yield from sorted((ROOT / "src/graph").glob("*.c"))
    for name in ("tensor/dtype.c", "tensor/shape.c", "tensor/region.c", "tensor/device_name.c",
                 "base/error.c", "util/fork.c", "util/links.c"):
        yield ROOT / "src" / name


def build(folder, *flags):
    program = folder / "graph_tool"
    words = ["gcc", *FLAGS, *flags, *sources(), "-lm", "-lpthread", "-o", program]
    subprocess.run([str(word) for word in words], check=True)
    return program


def ask(program, commands, *arguments, **how):
    """The answers to commands, which begin with an empty graph."""
    lines = "".join(f"{line}\n" for line in commands)
    done = subprocess.run([str(program), *arguments], input=lines, capture_output=True, text=True,
                          timeout=300, **how)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def shape_text(shape):
    return "[" + ",".join("?" if dim is None else str(dim) for dim in shape) + "]"


def attr_text(attrs):
    """{"axes": [0, 1]} as the tool reads it."""

    def one(value):
        if isinstance(value, bool):
            return f"b:{value:d}"
        if isinstance(value, int):
            return f"i:{value}"
        if isinstance(value, float):
            return f"f:{value!r}"
        if isinstance(value, list):
            return "l:" + (",".join(str(number) for number in value) or "-")
        if isinstance(value, tuple):
            return "s:" + shape_text(value)
        return value if value.startswith("d:") else f"t:{value}"

    return " ".join(f"{name}={one(value)}" for name, value in attrs.items())
