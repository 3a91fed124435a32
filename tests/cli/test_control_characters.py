# SPDX-License-Identifier: Apache-2.0
"""What comes from outside (words of the command line, names of files, what files hold, the
environment) reaches a terminal without its control characters, whichever command says it, and
without what turns the direction of writing, which would show another name."""

import json
import os
import re
import subprocess

import pytest

NASTY = "\x1b]0;title\x07\x1b[31m\x9b2J\x7f\u202e\u2066\r\nplimsoll: forged"
WORDS = [
    [NASTY], ["help", NASTY], ["--" + NASTY],
    ["run", "--budget", NASTY, "true"], ["run", "--" + NASTY], ["run", "--", "/nowhere/" + NASTY],
    ["run", "--record", "{}/file/" + NASTY, "--", "true"], ["run", "--report", "{}/no/" + NASTY, "true"],
    ["run", "--hang-after", NASTY, "--", "true"],
    ["explain", NASTY], ["explain", "--" + NASTY], ["explain", "a", NASTY], ["top", NASTY],
    ["runs", NASTY], ["runs", "--" + NASTY], ["budget", NASTY], ["budget", "--request", NASTY],
    ["check", "/nowhere/" + NASTY], ["check", "--format", NASTY, "."], ["check", "--jobs", NASTY, "."],
    ["check", "--" + NASTY], ["check", "--restore", "{}/" + NASTY], ["check", "{}/nasty"],
    ["check", "{}/nasty", "--json"], ["check", "{}/nasty", "--jsonl"], ["check", "--plan", "{}/nasty", "--json"],
    ["doctor", "--facts", "{}/facts", "--json"], ["jupyter", "list", "--json"],
    ["check", "{}/nasty", "--quarantine", "{}/file/" + NASTY], ["check", "--restore", "{}/away"],
    ["doctor", "--python", NASTY], ["doctor", "--root", "{}/" + NASTY], ["doctor", "--" + NASTY],
    ["doctor", "--facts", "{}/" + NASTY], ["doctor", "--facts", "{}/facts"],
    ["doctor", "--workers", NASTY],
    ["jupyter", NASTY], ["jupyter", "list"], ["jupyter", "install", "--kernel", NASTY],
    ["jupyter", "install", "--kernel", "bad"], ["jupyter", "install", "--all"],
    ["jupyter", "install", "--kernel", "good", "--prefix", "{}/" + NASTY],
    ["jupyter", "uninstall", "--kernel", NASTY], ["jupyter", "uninstall", "--prefix", "{}/" + NASTY],
    ["jupyter", "install", "--kernel", "good", "--budget", NASTY],
]  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    """A home in which whatever has a name or a content has a nasty one."""
    (tmp_path / "file").touch()
    nasty = tmp_path / "nasty" / NASTY.replace("/", "_")
    nasty.mkdir(parents=True)
    (nasty / (NASTY + ".json")).write_text('{"a": ' + NASTY)
    (nasty / "a.csv").write_text(f'x,y\n1,"{NASTY}\n')
    (tmp_path / "facts").write_text(f"requires,{NASTY}\n{NASTY},{NASTY}\n")
    kernels = tmp_path / "data/kernels"
    for name, text in [("bad", '{"argv": ["' + NASTY), ("worse", '{"argv": [' + NASTY),
                       ("good", json.dumps({"argv": ["sh", NASTY], "display_name": NASTY,
                                            "language": NASTY, "env": {}}))]:
        (kernels / name).mkdir(parents=True)
        (kernels / name / "kernel.json").write_text(text)
    away = tmp_path / "away"
    away.mkdir()
    (away / "000001-a").write_text("x")
    line = {"from": str(tmp_path / NASTY), "to": "000001-a", "reason": NASTY}
    (away / "manifest.jsonl").write_text(json.dumps(line) + "\n")
    return tmp_path


@pytest.mark.parametrize("words", WORDS, ids=lambda words: " ".join(words).replace(NASTY, "X"))
def test_no_control_character_of_another_s_reaches_the_terminal(meson_build, folder, words):
    env = {**os.environ, "HOME": str(folder), "PLIMSOLL_STATE": str(folder / "state"),
           "JUPYTER_DATA_DIR": str(folder / "data"), "LC_ALL": "C.UTF-8",
           "PYTHON_VERSION": NASTY, "MEM_LIMIT": NASTY, "VIRTUAL_ENV": str(folder / NASTY)}
    command = [str((meson_build / "src/cli/plimsoll").resolve()), *(w.replace("{}", str(folder)) for w in words)]
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, timeout=300,
                          stdin=subprocess.DEVNULL)
    said = (done.stdout + done.stderr).decode()
    assert said and done.returncode != -11
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", said), said
    assert not re.search("[\u200e\u200f\u2028-\u202e\u2066-\u2069]", said), said
    assert not re.search("^plimsoll: forged", said, re.M), said
