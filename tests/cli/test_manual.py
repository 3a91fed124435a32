# SPDX-License-Identifier: Apache-2.0
"""Manual pages render without a warning, and tell of the options that the program has."""

import re

import pytest

COMMANDS = ("run", "explain", "top", "runs", "budget", "doctor", "check", "jupyter")
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


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("words", ["--oops", "-z", "-zy", "--oops=1"])
def test_an_option_that_is_none_is_named_in_one_line(meson_build, call, command, words):
    done = call(meson_build / "src/cli/plimsoll", command, words)
    assert done.returncode in (2, 125) and done.stdout == ""
    assert len(done.stderr.splitlines()) == 1 and f"unknown option '{words}'" in done.stderr
