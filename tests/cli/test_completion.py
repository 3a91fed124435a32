# SPDX-License-Identifier: Apache-2.0
"""Bash completion, asked as bash asks it: words, cursor, then COMPREPLY."""

import re
import shlex

import pytest

from test_manual import COMMANDS


@pytest.fixture
def complete(root, tmp_path, call):
    """Completes the last word of a line; returns the sorted candidates."""

    def ask(*words, helpers=False):
        library = "source /usr/share/bash-completion/bash_completion\n" if helpers else ""
        script = (
            f"{library}source {root}/completion/plimsoll\n"
            "compopt() { :; }\n"  # a shell that completes nothing has no options to change
            f"COMP_WORDS=({' '.join(map(shlex.quote, words))})\n"
            f"COMP_CWORD={len(words) - 1}\n"
            f"COMP_LINE={shlex.quote(' '.join(words))}\n"
            "COMP_POINT=${#COMP_LINE}\n"
            "_plimsoll\n"
            'printf "%s\\n" "${COMPREPLY[@]}"\n'
        )
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
        environment["PLIMSOLL_STATE"] = str(tmp_path / "state")
        done = call("bash", "--norc", "-c", script, env=environment, cwd=tmp_path)
        assert done.stderr == ""
        return sorted(done.stdout.split())

    return ask


def test_commands(complete):
    assert complete("plimsoll", "") == sorted(["--help", "--version", "help", *COMMANDS])
    assert complete("plimsoll", "ru") == ["run", "runs"]
    assert complete("plimsoll", "help", "ex") == ["explain"]
    assert complete("plimsoll", "--version", "") == ["--json"]


@pytest.mark.parametrize("command", COMMANDS)
def test_options_are_those_of_the_manual(root, complete, command):
    text = (root / f"man/plimsoll-{command}.1").read_text()
    options = {"--" + name for name in re.findall(r"^\.It Fl -([a-z-]+)", text, re.MULTILINE)}
    assert set(complete("plimsoll", command, "--")) - {"--"} == options


def test_arguments_of_options(complete):
    assert complete("plimsoll", "run", "--hang-after", "9") == ["90s"]
    assert complete("plimsoll", "budget", "--reserve", "8") == ["80M"]
    assert complete("plimsoll", "run", "--budget", "51") == ["512M"]


def test_record_completes_folders_and_report_files(complete, tmp_path):
    (tmp_path / "records").mkdir()
    (tmp_path / "report.json").touch()
    assert complete("plimsoll", "run", "--record", "re") == ["records"]
    assert complete("plimsoll", "run", "--report", "re") == ["records", "report.json"]


def test_jupyter_completes_its_words_then_their_options(complete):
    assert complete("plimsoll", "jupyter", "u") == ["uninstall"]
    assert complete("plimsoll", "jupyter", "list", "-") == ["--help", "--json"]
    assert "--budget" in complete("plimsoll", "jupyter", "install", "--")
    assert "--budget" not in complete("plimsoll", "jupyter", "uninstall", "--")
    assert complete("plimsoll", "jupyter", "install", "--budget", "51") == ["512M"]


def test_jupyter_completes_kernels(complete, meson_build, tmp_path):
    program = meson_build.resolve() / "src/cli/plimsoll"
    for name in ("zebra", "zoo", "zbroken"):
        folder = tmp_path / ".local/share/jupyter/kernels" / name
        folder.mkdir(parents=True)
        (folder / "kernel.json").write_text('{"argv": ["x"]}' if name != "zbroken" else "")
    assert complete(str(program), "jupyter", "install", "--kernel", "z") == [
        "zbroken", "zebra", "zoo"
    ]  # fmt: skip
    assert "kernel" not in complete(str(program), "jupyter", "install", "--kernel", "k")


def test_explain_completes_runs(complete, tmp_path):
    (tmp_path / "state/runs/20261116-031522-4121").mkdir(parents=True)
    assert complete("plimsoll", "explain", "2026") == ["20261116-031522-4121"]
    assert complete("plimsoll", "explain", "l") == ["last"]
    assert complete("plimsoll", "top", "2026") == ["20261116-031522-4121"]


@pytest.mark.parametrize(
    "before", [["--"], ["--quiet", "--"], ["--budget", "1G"], ["--sparse", "=", "java"], []]
)
@pytest.mark.parametrize("helpers", [False, True])
def test_the_command_to_run_is_completed(complete, before, helpers):
    assert "setarch" in complete("plimsoll", "run", *before, "setar", helpers=helpers)


def test_options_after_the_command_are_its_own(complete):
    assert "--budget" not in complete("plimsoll", "run", "--", "true", "--b")
    assert "--budget" not in complete("plimsoll", "run", "true", "--b")
