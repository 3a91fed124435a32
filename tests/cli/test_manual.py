# SPDX-License-Identifier: Apache-2.0
"""Manual pages render without a warning, and tell of the options that the program has."""

import os
import pathlib
import re

import pytest

MAN = pathlib.Path(__file__).parents[2] / "man"
COMMANDS = tuple(sorted(page.stem.removeprefix("plimsoll-") for page in MAN.glob("plimsoll-*.1")))
PAGES = ("plimsoll",) + tuple(f"plimsoll-{command}" for command in COMMANDS)


@pytest.mark.parametrize("page", PAGES)
def test_page_renders_without_warnings(root, call, page):
    done = call("groff", "-mdoc", "-ww", "-z", "-Tutf8", root / f"man/{page}.1")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("page", PAGES)
def test_page_is_named_for_what_it_describes(root, call, page):
    done = call("lexgrog", root / f"man/{page}.1")
    assert done.returncode == 0 and f'"{page} - ' in done.stdout


def test_every_page_is_installed(root):
    listed = set(re.findall(r"'([\w-]+)\.1'", (root / "man/meson.build").read_text()))
    assert listed == set(PAGES) == {path.stem for path in (root / "man").glob("*.1")}


def test_every_command_has_a_page(meson_build, call):
    shown = call(meson_build / "src/cli/plimsoll", "help").stdout
    assert set(re.findall(r"^  (\w+) ", shown, re.MULTILINE)) == {*COMMANDS, "help"}


def options_in_page(root, command):
    text = (root / f"man/plimsoll-{command}.1").read_text()
    return {"--" + name for name in re.findall(r"^\.It Fl -([a-z-]+)", text, re.MULTILINE)}


@pytest.mark.parametrize("command", COMMANDS)
def test_page_and_help_tell_of_the_same_options(root, meson_build, call, command):
    done = call(meson_build / "src/cli/plimsoll", command, "--help")
    assert done.returncode == 0
    assert set(re.findall(r"--[a-z][a-z-]+", done.stdout)) | {"--help"} == options_in_page(
        root, command
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_page_and_synopsis_agree(root, command):
    text = (root / f"man/plimsoll-{command}.1").read_text()
    synopsis = text.partition(".Sh SYNOPSIS")[2].partition(".Sh ")[0]
    named = {"--" + name for name in re.findall(r"Fl -([a-z-]+)", synopsis)}
    assert named | {"--help"} == options_in_page(root, command)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_what_the_command_shows(meson_build, call, command):
    tool = meson_build / "src/cli/plimsoll"
    done = call(tool, "help", command)
    assert done.returncode == 0 and done.stdout == call(tool, command, "--help").stdout
    assert f"  {command} " in call(tool, "help").stdout


def test_help_of_no_command_is_refused(meson_build, call):
    done = call(meson_build / "src/cli/plimsoll", "help", "oops")
    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr == "plimsoll: unknown command 'oops' (see 'plimsoll help')\n"


@pytest.mark.parametrize("arguments, meant", [
    (["expalin"], "explain"), (["rnu", "--", "true"], "run"), (["budgets"], "budget"),
    (["run", "--buget=1G", "--", "true"], "--budget"), (["run", "--hang-afer", "9"], "--hang-after"),
    (["budget", "--jsn"], "--json"), (["explain", "--jason"], "--json"), (["top", "--jso"], ""),
    (["explain", "lsat"], "last"), (["check", "--quarentine", "/tmp"], "--quarantine"),
    (["doctor", "--pyton=x"], "--python"), (["jupyter", "list", "--josn"], "--json"),
    (["run", "--frobnicate"], ""), (["frobnicate"], ""),
])
def test_a_misspelt_word_is_answered_with_the_one_that_was_meant(
        meson_build, call, tmp_path, arguments, meant):
    done = call(meson_build / "src/cli/plimsoll", *arguments,
                env={**os.environ, "PLIMSOLL_STATE": str(tmp_path)})
    if meant:
        assert done.returncode == (2 if arguments[0] == "check" else 125)
        assert f": did you mean '{meant}'? " in done.stderr and len(done.stderr.splitlines()) == 1
    else:
        assert "did you mean" not in done.stderr


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("words", ["--oops", "-z", "-zy", "--oops=1"])
def test_an_option_that_is_none_is_named_in_one_line(meson_build, call, command, words):
    done = call(meson_build / "src/cli/plimsoll", command, words)
    assert done.returncode in (2, 125) and done.stdout == ""
    assert len(done.stderr.splitlines()) == 1 and f"unknown option '{words}'" in done.stderr


HEADERS = sorted((pathlib.Path(__file__).parents[2] / "include/plimsoll").glob("*.h"))


@pytest.fixture
def library_page(root, call, tmp_path):
    """The page of a header, as the build makes it."""

    def make(header):
        done = call(root / "tools/make-man3", "--page", "0.1.0", header)
        assert done.returncode == 0, done.stderr
        name = "libplimsoll" if header.stem == "plimsoll" else f"plimsoll-{header.stem}"
        page = tmp_path / f"{name}.3"
        page.write_text(done.stdout)
        return page

    return make


@pytest.mark.parametrize("header", HEADERS, ids=lambda path: path.stem)
def test_page_of_a_header_renders_without_warnings(call, library_page, header):
    page = library_page(header)
    done = call("groff", "-mdoc", "-ww", "-z", "-Tutf8", page)
    assert (done.returncode, done.stderr) == (0, "")
    done = call("lexgrog", page)
    assert done.returncode == 0 and f'"{page.stem} - ' in done.stdout


@pytest.mark.parametrize("header", HEADERS, ids=lambda path: path.stem)
def test_page_of_a_header_has_all_of_its_functions_and_comments(call, library_page, header):
    text = header.read_text()
    declared = set(re.findall(r"^PL_API [^;{]*?\b(pl_\w+)\(", text, re.MULTILINE))
    shown = call("man", "-l", library_page(header), env={"MANWIDTH": "200", "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}).stdout
    assert declared == set(re.findall(r"^     (pl_\w+)\(", shown.partition("DESCRIPTION")[0], re.MULTILINE))
    words = " ".join(shown.replace("\u2010\n", "").split())
    for comment in re.findall(r"^/\* (.*?)\*/", text, re.MULTILINE | re.DOTALL):
        first = " ".join(re.sub(r"\n ?\*", "\n", comment).split()[:4])
        if not first.startswith(("SPDX", "----")):
            assert first in words, first


def test_every_header_has_its_page_installed(root):
    listed = re.search(r"public_headers = \[(.*?)\]", (root / "man/meson.build").read_text(), re.DOTALL)
    assert set(re.findall(r"'(\w+)'", listed[1])) == {path.stem for path in HEADERS}
