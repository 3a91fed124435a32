# SPDX-License-Identifier: Apache-2.0
"""What debian/ says twice agrees: symbols, versions, and the packages that a build needs. That the
packages build, install, work and go is tried by tools/try-package, in a Debian of its own."""

import re


def test_the_symbols_file_lists_what_the_library_exports(root):
    lines = (root / "debian/libplimsoll0.symbols").read_text().splitlines()
    listed = [line.split()[0] for line in lines if line.startswith(" ")]
    exported = (root / "tests/symbols/libplimsoll.exports").read_text().split()
    assert listed == [f"{name}@Base" for name in exported]


def test_the_package_has_the_version_of_the_project(root, version):
    assert (root / "debian/changelog").read_text().startswith(f"plimsoll ({version}) unstable; ")


def build_depends(root):
    field = re.search(r"^Build-Depends:\n((?: .*\n)+)", (root / "debian/control").read_text(), re.M)
    return {re.split(r"[ ,]", line)[0] for line in field[1].replace("\n ", "\n").strip().splitlines()}


def install_set(root, name):
    text = (root / "tools/install-deps").read_text()
    return set(re.search(rf"^{name}='([^']*)'", text, re.M)[1].split())


def test_a_package_build_needs_what_any_build_does(root):
    """Apart from debhelper's own, and what build-essential and Meson bring."""
    brought = {"gcc", "libc6-dev", "make", "ninja-build", "pkg-config"}
    needed = build_depends(root) - {"debhelper-compat", "dh-sequence-python3", "pkgconf"}
    assert needed == install_set(root, "build") - brought
    assert {"debhelper", "dh-python", "pkgconf"} <= install_set(root, "deb")


def test_every_package_test_is_there_and_runs(root):
    named = re.findall(r"^Tests: (.*)$", (root / "debian/tests/control").read_text(), re.M)
    there = {path.name for path in (root / "debian/tests").iterdir()} - {"control"}
    assert set(named) == there and len(named) == len(there)
    for name in named:
        path = root / "debian/tests" / name
        assert path.stat().st_mode & 0o111 and path.read_text().startswith("#!/")
