# SPDX-License-Identifier: Apache-2.0
"""tools/try-on: where Debian comes from, what is removed and what is counted. That a Debian is really
made is seen by .ci/run, which does it each time."""

import importlib.machinery
import importlib.util
import json
import os
import shutil
import subprocess
import sys

import pytest


def load(name, path):
    loader = importlib.machinery.SourceFileLoader(name, str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    sys.modules[name] = module  # dataclasses look there
    loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def try_on(root):
    return load("try_on", root / "tools/try-on")


@pytest.fixture(scope="module")
def apt(try_on):
    return try_on.apt_archive


DEB822 = """\
# the archive
Types: deb
# an address in a comment: http://old.example/debian
URIs: http://mirror.example/debian/
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://security.example/debian-security
Suites: bookworm-security
Components: main
"""


@pytest.mark.parametrize(
    "name, text, archive",
    [
        ("debian.sources", DEB822, "http://mirror.example/debian"),
        ("debian.sources", DEB822.replace("Types: deb\n#", "Enabled: no\nTypes: deb\n#"), None),
        ("debian.sources", DEB822.replace("Types: deb\n#", "Types: deb-src\n#"), None),
        (
            "debian.sources",
            "Types: deb-src deb\nURIs:\n http://a.example/debian\n http://b.example/debian\n"
            "Suites: sid\nComponents: main\n",
            "http://a.example/debian",
        ),
        ("sources.list", "deb http://m.example/debian trixie main\n", "http://m.example/debian"),
        (
            "sources.list",
            "deb [arch=amd64 signed-by=/k] https://m.example/d/ stable main # ours\n",
            "https://m.example/d",
        ),
        ("sources.list", "# deb http://m.example/debian trixie main\n", None),
        ("sources.list", "deb-src http://m.example/debian trixie main\n", None),
        ("sources.list", "deb http://m.example/debian trixie contrib\n", None),
        ("sources.list", "deb http://m.example/debian-security trixie-security main\n", None),
        ("sources.list", "deb cdrom:[Debian]/ trixie main\n", None),
        ("sources.list", "deb http://m.example/ubuntu noble main\n", None),
        ("sources.list", "deb\ndeb x\n\n[", None),
        ("debian.sources", "Types\n continued\n:\nURIs: x\n", None),
        ("debian.sources", "", None),
    ],
)
def test_the_archive_is_the_first_that_has_main_of_debian(apt, name, text, archive):
    assert apt.archive_in([(f"/etc/apt/{name}", text)]) == archive


def test_files_are_read_in_order(apt):
    other = ("other.list", "deb http://other.example/apt nodistro main\n")
    second = ("x.list", "deb http://second.example/debian sid main\n")
    assert apt.archive_in([other, ("debian.sources", DEB822), second]) == "http://mirror.example/debian"
    assert apt.archive_in([other, second]) == "http://second.example/debian"


DUMP = """\
Acquire "";
Acquire::IndexTargets::deb::Packages::MetaKey "$(COMPONENT)/binary-$(ARCHITECTURE)/Packages";
Acquire::Check-Valid-Until "false";
Acquire::http "";
Acquire::http::Proxy "http://proxy.example:3128";
Acquire::https::Proxy "DIRECT";
Acquire::Languages:: "none";
APT::Install-Recommends "0";
"""


def test_what_is_inherited_is_how_things_are_fetched(apt):
    assert apt.settings_in(DUMP) == [
        'Acquire::Check-Valid-Until "false";',
        'Acquire::http::Proxy "http://proxy.example:3128";',
        'Acquire::https::Proxy "DIRECT";',
    ]
    assert apt.proxies_in(DUMP) == {"http_proxy": "http://proxy.example:3128"}
    assert apt.settings_in("") == [] and apt.proxies_in("") == {}


def test_this_machines_own_apt_is_understood(apt):
    if shutil.which("apt-config") is None:
        pytest.skip("no apt here")
    assert all(isinstance(text, str) for _, text in apt.sources())
    assert isinstance(apt.settings_in(apt.apt_config("dump")), list)


@pytest.mark.parametrize(
    "words, complaint",
    [
        ([], "SUITE"),
        (["woody"], "no such suite: 'woody'"),
        (["all", "--folder", "x"], "for one suite"),
        (["sid", "run; true"], "no such part: 'run; true'"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_status_2(try_on, capsys, words, complaint):
    with pytest.raises(SystemExit) as ended:
        try_on.parse_arguments(words)
    assert ended.value.code == 2 and complaint in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(
    "words, command, sets",
    [
        (["sid"], "make test PARTS=''", "build demo test"),
        (["sid", "tf", "run"], "make test PARTS='tf run'", "build demo test"),
        (["sid", "--core"], "make core-test PARTS=''", "build demo core-test"),
        (["sid", "--no-tests"], None, "build demo"),
    ],
)
def test_it_runs_what_a_newcomer_would(try_on, words, command, sets):
    assert try_on.test_command(try_on.parse_arguments(words)) == (command, sets)


@pytest.mark.parametrize(
    "status, output, expected",
    [
        (0, "ok      build\nok      install\n", (2, 0)),
        (1, "ok      build\nFAILED  install (log)\ntry-package: 1 steps failed\n", (1, 1)),
        (1, "try-package: it installs packages: run it as root\n", (0, 1)),
    ],
)
def test_each_step_of_the_packages_counts(try_on, status, output, expected):
    class Said(try_on.Debian):
        def __init__(self):
            pass

        def run_inside(self, name, command, **more):
            return status, output

    row = try_on.Row("sid")
    Said().try_packages(row)
    assert row.parts == {"packages": counts(*expected, 0)}


def test_without_root_it_says_so(root):
    if os.geteuid() == 0:  # another user, who may read this tree even below /root
        words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                 "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]  # fmt: skip
    else:
        words = []
    done = subprocess.run(
        [*words, sys.executable, root / "tools/try-on", "sid"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 69 and "need root" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr


def counts(passed, failed, skipped):
    return {"passed": passed, "failed": failed, "skipped": skipped}


@pytest.fixture
def rows(try_on):
    tried = try_on.Row("trixie", "3.13.5", "2.2.4", "ok", {"tf": counts(5, 0, 1), "run": counts(3, 0, 0)}, 7.04)
    broken = try_on.Row("sid", "3.14.0", "2.4.0", "failed", {}, 2.0)
    absent = try_on.Row("forky", unavailable="no archive", minutes=0.1)
    return tried, broken, absent


def test_the_table_has_a_row_for_each_suite(try_on, rows):
    assert try_on.table(rows).splitlines()[2:] == [
        "| trixie | 3.13.5 | 2.2.4 | ok | tf: 5 passed, 0 failed, 1 skipped<br>"
        "run: 3 passed, 0 failed, 0 skipped | 7.0 |",
        "| sid | 3.14.0 | 2.4.0 | failed |  | 2.0 |",
        "| forky |  |  | not run | not tried: no archive | 0.1 |",
    ]


def test_status_and_summaries(try_on, rows, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(try_on, "TRY_ON", tmp_path)
    tried, broken, absent = rows
    (tmp_path / "forky.summary").write_text("old\n")
    assert try_on.report([tried], False) == 0
    assert try_on.report([tried, absent], False) == 69
    assert try_on.report([tried, broken, absent], True) == 1
    assert (tmp_path / "trixie.summary").read_text() == "9 passed, 0 failed, 1 skipped\n"  # the demo is one
    assert (tmp_path / "sid.summary").read_text() == "0 passed, 1 failed, 0 skipped\n"
    assert not (tmp_path / "forky.summary").exists()
    assert (tmp_path / "table.md").read_text() == try_on.table(rows)
    said = capsys.readouterr().out
    assert [row["suite"] for row in json.loads(said[said.index("[\n") :])] == ["trixie", "sid", "forky"]


def test_only_a_folder_that_it_made_is_removed(try_on, tmp_path):
    folder = tmp_path / "debian"
    try_on.remove(folder)  # there is none
    folder.mkdir()
    (folder / "mine").touch()
    with pytest.raises(try_on.Unavailable, match="not made by try-on"):
        try_on.remove(folder)
    assert (folder / "mine").exists()
    (folder / try_on.MARK).touch()
    try_on.remove(folder)
    assert not folder.exists()


def test_what_is_mounted_in_a_folder_is_never_removed(root, tmp_path):
    if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "true"], check=False).returncode != 0:
        pytest.skip("a mount namespace of one's own needs root")
    folder, other = tmp_path / "debian", tmp_path / "other"
    (folder / "dev").mkdir(parents=True)
    other.mkdir()
    (other / "precious").touch()
    script = f"""
import sys; sys.path.insert(0, {str(root / 'tests/cli')!r})
import pathlib, subprocess, test_try_on
try_on = test_try_on.load("try_on", {str(root / 'tools/try-on')!r})
folder = pathlib.Path({str(folder)!r})
(folder / try_on.MARK).touch()
subprocess.run(["mount", "--bind", {str(other)!r}, folder / "dev"], check=True)
assert try_on.mounts_at(folder) == [str(folder / "dev")]
try_on.remove(folder)
assert try_on.mounts_at(folder) == []
"""
    subprocess.run(
        ["unshare", "--mount", "--propagation", "private", sys.executable, "-c", script], check=True
    )
    assert (other / "precious").exists() and not folder.exists()
