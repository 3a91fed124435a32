# SPDX-License-Identifier: Apache-2.0
"""`plimsoll --version`: the version for scripts, and what the program was built with."""

import json
import os
import re
import subprocess

import pytest


@pytest.fixture
def version(meson_build, call):
    return lambda *words: call(meson_build / "src/cli/plimsoll", "--version", *words)


def modversion(name):
    said = subprocess.run(("pkg-config", "--modversion", name), capture_output=True, text=True)
    return said.stdout.strip()


def test_the_first_line_is_the_version_alone(version, root):
    stated = re.search(r"version: '([\d.]+)'", (root / "meson.build").read_text())[1]
    done = version()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == f"plimsoll {stated}"


def test_it_names_what_it_was_built_with(version):
    lines = dict(line.split(maxsplit=1) for line in version().stdout.splitlines()[1:])
    here = os.confstr("CS_GNU_LIBC_VERSION").split()[1]
    assert lines["machine"] == os.uname().machine
    assert re.match(r"(gcc|clang) \d+\.\d+\.\d+, \w+$", lines["compiler"])
    assert lines["glibc"] == f"{here}; here: {here}"
    assert lines["elfutils"] == modversion("libdw")
    assert lines["libjpeg-turbo"] == modversion("libjpeg")
    assert lines["OpenBLAS"].startswith(modversion("openblas"))


def test_json_says_the_same(version):
    done = version("--json")
    answer = json.loads(done.stdout)
    text = version().stdout
    assert answer["schema"] == 1 and text.startswith(f"plimsoll {answer['version']}\n")
    assert f"{answer['compiler']}, {answer['build']}\n" in text
    assert f"{answer['glibc']}; here: {answer['glibc_here']}\n" in text
    assert len(answer["libraries"]) >= 9
    for name, said in answer["libraries"].items():
        assert re.search(rf"^  {re.escape(name)} +{re.escape(said)}$", text, re.MULTILINE)


@pytest.mark.parametrize("word", ["--jason", "more"])
def test_what_it_does_not_know_is_refused(version, word):
    done = version(word)
    assert (done.returncode, done.stdout) == (125, "") and f"'{word}'" in done.stderr


def test_an_answer_that_cannot_be_written_is_a_failure(meson_build):
    with open("/dev/full", "w") as full:
        done = subprocess.run((meson_build / "src/cli/plimsoll", "--version"), stdout=full,
                              stderr=subprocess.PIPE, text=True)
    assert done.returncode == 125 and "cannot write the answer" in done.stderr
