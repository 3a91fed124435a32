# SPDX-License-Identifier: Apache-2.0
"""What `make install` puts where, and that it works from there: program, library, headers."""

import os
import pathlib
import re
import subprocess

import pytest

PROGRAM = """
#include <plimsoll/plimsoll.h>
#include <stdio.h>

int main(void)
{
    printf("%s %d.%d.%d\\n", pl_error_name(PL_EBUDGET), PLIMSOLL_VERSION_MAJOR,
           PLIMSOLL_VERSION_MINOR, PLIMSOLL_VERSION_PATCH);
    return PLIMSOLL_VERSION >= PLIMSOLL_VERSION_OF(0, 1, 0) ? 0 : 1;
}
"""
STRICT = ("-Wall", "-Wextra", "-Wundef", "-Wshadow", "-pedantic", "-Werror")


def install(root, work, destdir):
    """A build of its own, configured with a prefix in `work` and installed."""
    environment = {name: value for name, value in os.environ.items() if name != "DESTDIR"}
    if destdir:
        environment["DESTDIR"] = str(destdir)
    build = work / "build"
    for command in (
        ("meson", "setup", f"--prefix={work}/prefix", "--libdir=lib", build, root),
        ("meson", "install", "-C", build),
    ):
        subprocess.run(
            [str(word) for word in command], env=environment, check=True, stdout=subprocess.DEVNULL
        )
    return pathlib.Path(f"{destdir or ''}{work}/prefix")


@pytest.fixture(scope="module")
def prefix(root, tmp_path_factory):
    return install(root, tmp_path_factory.mktemp("install"), None)


@pytest.fixture(scope="module")
def staged(root, tmp_path_factory):
    """Installed below a DESTDIR, as a package is built: nothing is at the prefix itself."""
    work = tmp_path_factory.mktemp("staged")
    return install(root, work, work / "destdir")


def relative_files(prefix):
    return {
        str(path.relative_to(prefix)) for path in prefix.rglob("*") if not path.is_dir()
    }


def test_everything_is_installed_and_nothing_else(root, staged):
    headers = {f"include/plimsoll/{path.name}" for path in (root / "include/plimsoll").glob("*.h")}
    pages = {f"share/man/man1/{path.name}" for path in (root / "man").glob("*.1")}
    assert relative_files(staged) == headers | pages | {
        "bin/plimsoll",
        "lib/libplimsoll.so",
        "lib/libplimsoll.so.0",
        "lib/libplimsoll.so.0.1.0",
        "lib/pkgconfig/plimsoll.pc",
        "lib/plimsoll/libplimsoll-guard.so",
        "share/bash-completion/completions/plimsoll",
    }


def guard_of(program, call, state):
    """The guard that a run under `program` has mapped."""
    done = call(
        program, "run", "--budget", "64M", "--", "cat", "/proc/self/maps",
        env={"PATH": "/usr/bin:/bin", "PLIMSOLL_STATE": str(state)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    guards = set(re.findall(r"/\S*libplimsoll-guard\.so", done.stdout))
    assert len(guards) == 1
    return guards.pop()


def test_program_finds_the_guard_at_the_prefix(prefix, call, tmp_path):
    guard = guard_of(prefix / "bin/plimsoll", call, tmp_path)
    assert guard == str(prefix / "lib/plimsoll/libplimsoll-guard.so")


def test_program_finds_the_guard_through_a_link(prefix, call, tmp_path):
    (tmp_path / "linked").symlink_to(prefix / "bin/plimsoll")
    guard = guard_of(tmp_path / "linked", call, tmp_path / "state")
    assert guard == str(prefix / "lib/plimsoll/libplimsoll-guard.so")


def test_program_in_the_build_tree_finds_the_guard_there(meson_build, call, tmp_path):
    guard = guard_of(meson_build.parent / "plimsoll", call, tmp_path)
    assert pathlib.Path(guard).resolve().is_relative_to(meson_build.resolve())


def test_program_without_a_guard_says_so(prefix, call, tmp_path):
    """A program that cannot guard must not run the command as if it did."""
    hidden = prefix / "lib/plimsoll/libplimsoll-guard.so"
    aside = hidden.with_suffix(".aside")
    hidden.rename(aside)
    try:
        done = call(
            prefix / "bin/plimsoll", "run", "--", "echo", "ran",
            env={"PATH": "/usr/bin:/bin", "PLIMSOLL_STATE": str(tmp_path)},
        )  # fmt: skip
    finally:
        aside.rename(hidden)
    assert (done.returncode, done.stdout) == (125, "")
    assert "libplimsoll-guard.so" in done.stderr and len(done.stderr.splitlines()) == 1


def test_pkg_config_builds_a_program(prefix, call, tmp_path):
    environment = dict(os.environ, PKG_CONFIG_PATH=str(prefix / "lib/pkgconfig"))
    flags = call("pkg-config", "--cflags", "--libs", "plimsoll", env=environment)
    assert flags.returncode == 0
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text(PROGRAM)
    built = call("gcc", "-std=c17", *STRICT, source, "-o", program, *flags.stdout.split())
    assert built.returncode == 0, built.stderr
    done = call(program, env={"LD_LIBRARY_PATH": str(prefix / "lib")})
    version = call("pkg-config", "--modversion", "plimsoll", env=environment).stdout.strip()
    assert (done.returncode, done.stdout) == (0, f"PL_EBUDGET {version}\n")


def test_version_is_the_same_everywhere(prefix, root, call):
    stated = re.search(r"version: '([\d.]+)'", (root / "meson.build").read_text())[1]
    done = call(prefix / "bin/plimsoll", "--version")
    assert done.returncode == 0 and re.findall(r"\d+\.\d+\.\d+", done.stdout) == [stated]


def test_manual_is_found(prefix, call):
    done = call("man", "-M", prefix / "share/man", "-w", "plimsoll-run")
    assert done.stdout.strip() == str(prefix / "share/man/man1/plimsoll-run.1")
