# SPDX-License-Identifier: Apache-2.0
"""`plimsoll doctor` on plimsoll itself: where it is installed, and whether its parts fit together."""

import re

import pytest

from doctor_tree import PYTHON, SITE, Machine, build_libc, build_own, build_user_of, program

GUARD = "libplimsoll-guard.so"
LAYOUTS = {
    "make install": ("/opt/env/bin", "/opt/env/lib/plimsoll", "/opt/env"),
    "a wheel": (f"{SITE}/plimsoll/command", f"{SITE}/plimsoll/command", SITE),
    "a Debian package": ("/usr/bin", "/usr/lib/x86_64-linux-gnu/plimsoll", "/usr"),
}


@pytest.fixture
def machine(meson_build, tmp_path):
    return Machine(program(meson_build), tmp_path)


def install(machine, kind="make install", version="0.1.0", guard="0.1.0"):
    """The command and its guard (None: it is missing) in one of the layouts."""
    commands, guards, _ = LAYOUTS[kind]
    build_own(machine.root / commands.lstrip("/") / "plimsoll", version).chmod(0o755)
    if guard:
        build_own(machine.root / guards.lstrip("/") / GUARD, guard)
    if kind == "a Debian package":
        machine.put("/usr/share/doc/plimsoll/copyright", "")
        machine.env["PATH"] = "/usr/bin:/opt/env/bin"


def package(machine, version="0.1.0", extensions=("cpython-311",)):
    machine.package("plimsoll", version)
    machine.put(f"{SITE}/plimsoll/__init__.py", "")
    for name in extensions:
        machine.put(f"{SITE}/plimsoll/_core.{name}-x86_64-linux-gnu.so", "")


def test_a_system_without_it_has_nothing_to_complain_of(machine):
    assert machine.finding("plimsoll") == ("ok", "plimsoll is not installed there", "")


@pytest.mark.parametrize("kind", LAYOUTS)
def test_each_way_of_installing_is_told(machine, kind):
    install(machine, kind)
    package(machine)
    verdict, says, _ = machine.finding("plimsoll")
    commands, _, folder = LAYOUTS[kind]
    assert verdict == "ok" and says.endswith("this Python has the plimsoll package")
    assert f"plimsoll 0.1.0 at '{commands}/plimsoll', from {kind} in '{folder}'" in says


@pytest.mark.parametrize(
    "kind, mends",
    [("make install", "make install"), ("a wheel", "pip install --force-reinstall"),
     ("a Debian package", "apt install --reinstall plimsoll")],
)  # fmt: skip
def test_without_the_guard_nothing_can_be_run(machine, kind, mends):
    install(machine, kind, guard=None)
    (ok, _, _), (verdict, says, fix) = machine.findings("plimsoll")
    assert (ok, verdict) == ("ok", "fail") and GUARD in says and mends in fix


def test_a_guard_of_another_version_is_a_warning(machine):
    install(machine, version="0.2.0", guard="0.1.0")
    _, (verdict, says, fix) = machine.findings("plimsoll")
    assert verdict == "warn" and "is version 0.1.0 but the command is version 0.2.0" in says and fix


def test_a_package_of_another_version_is_a_warning(machine):
    install(machine)
    package(machine, "0.3.1")
    _, (verdict, says, fix) = machine.findings("plimsoll")
    assert verdict == "warn" and f"in '{SITE}' is version 0.3.1" in says and "is version 0.1.0" in says
    assert f"{PYTHON} -m pip install plimsoll==0.1.0" in fix


@pytest.mark.parametrize(
    "python, extensions, verdicts",
    [
        ("3.11", ["cpython-311"], ["ok"]),
        ("3.11", ["cpython-310", "cpython-313"], ["ok", "warn"]),
        ("3.11", [], ["ok", "warn"]),
        ("3.13t", ["cpython-313"], ["ok", "warn"]),
        ("3.13t", ["cpython-313t"], ["ok"]),
    ],
)
def test_the_extension_is_for_one_python(machine, python, extensions, verdicts):
    install(machine)
    site = f"/opt/env2/lib/python{python}/site-packages"
    machine.interpreter("/opt/env2", python)
    machine.put(f"{site}/plimsoll/__init__.py", "")
    for name in extensions:
        machine.put(f"{site}/plimsoll/_core.{name}-x86_64-linux-gnu.so", "")
    found = machine.findings("plimsoll", "--python", "/opt/env2")
    assert [verdict for verdict, _, _ in found] == verdicts
    if len(found) > 1:
        assert f"no extension module for Python {python}" in found[1][1] and "wheel" in found[1][2]


def test_a_glibc_that_the_guard_is_too_new_for_is_a_warning(machine):
    build_libc(machine.root / "lib/x86_64-linux-gnu", "2.2.5", "2.31")
    verdict, says, _ = machine.findings("plimsoll")[-1]
    assert verdict == "warn" and "needs glibc 2.35" in says and "2.31" in says
    build_libc(machine.root / "lib/x86_64-linux-gnu", "2.2.5", "2.36")
    assert machine.finding("plimsoll")[0] == "ok"


def test_what_the_guard_needs_is_read_from_it(machine, tmp_path):
    install(machine)
    libc = build_libc(tmp_path / "newer", "2.2.5", "2.41")
    build_libc(machine.root / "lib/x86_64-linux-gnu", "2.2.5", "2.40")
    assert machine.finding("plimsoll")[0] == "ok"
    build_user_of(libc, machine.root / "opt/env/lib/plimsoll" / GUARD, 2)
    says = [says for _, says, _ in machine.findings("plimsoll")]
    assert "needs glibc 2.41 but this system has 2.40" in says[-1]
    assert "is version unknown" in says[1]


def test_the_one_that_runs_knows_itself(machine, root):
    """Not below a root: this build, with its real guard."""
    stated = re.search(r"version: '([\d.]+)'", (root / "meson.build").read_text())[1]
    found = machine.findings("plimsoll", root=False, PATH="/usr/bin:/bin")
    assert [verdict for verdict, _, _ in found] == ["ok"]
    assert found[0][1].startswith(f"plimsoll {stated} at '{machine.program}', from a build tree in")
