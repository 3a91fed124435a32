# SPDX-License-Identifier: Apache-2.0
"""The death of a kernel as its user sees it: Chromium on the page of the classic notebook.

The server runs in a memory cgroup, as in a container; the notebook's kernel is the twin that
`plimsoll jupyter install` makes. With PLIMSOLL_SCREENSHOT set, or when it is missing, the picture in
docs/ is taken anew.
"""
import re

import pytest

from browser import pages


@pytest.fixture
def page(tmp_path):
    with pages.opened_page(pages.CLASSIC.script, tmp_path) as page:
        yield page


@pytest.fixture
def notebook_server(tmp_path, cgroup):
    with pages.serving(pages.CLASSIC, tmp_path, cgroup(pages.LIMIT_BYTES)) as server:
        yield server


RESTARTING = ["Kernel Restarting",
              "The kernel appears to have died. It will restart automatically."]


def let_it_restart(page):
    """The box that Jupyter shows has no reason in it; the user closes it."""
    words = [line for line in page.dialog().splitlines() if line not in ("", "\u00d7", "OK")]
    assert words == RESTARTING
    page.dismiss()


def is_told_once(page, words, picture=None):
    """The third cell shows the explanation with all `words`, and its own output; run again, only
    its own output. `%plimsoll`, the fourth, shows it again, and the cells."""
    shown = page.run(index=2)
    assert shown["prompt"] == "In\xa0[1]:", "a new kernel"
    explanation, own = shown["outputs"]
    assert pages.is_explanation(explanation, "output_html")
    for word in words:
        assert word in explanation["text"]
    assert own["text"] == "my own output\n"
    if picture:
        pages.take_screenshot(page, picture, first=0, last=2)

    again = page.run(index=2)
    assert [output["text"] for output in again["outputs"]] == ["my own output\n"], "told once"

    asked = "\n".join(output["text"] for output in page.run(index=3)["outputs"])
    for word in words:
        assert word in asked
    # The cell's number is that of its second run.
    assert re.search(r'In \[2\]\t2\t.*\tprint\("my own output"\)', asked), asked


def test_a_crash_is_explained_in_the_page(page, notebook_server):
    page.open(url=notebook_server.notebook(
        "import ctypes\naddress = 0", pages.CRASH, 'print("my own output")', "%plimsoll"))
    assert page.run(index=0)["outputs"] == []
    page.start(index=1)
    let_it_restart(page)
    is_told_once(page, pages.CRASH_WORDS, picture="notebook-death.png")


def test_a_kill_for_memory_is_explained_in_the_page(page, notebook_server):
    page.open(url=notebook_server.notebook(
        "import os, time", pages.GROWTH, 'print("my own output")', "%plimsoll"))
    page.run(index=0)
    page.start(index=1)
    notebook_server.group.overtake(notebook_server.notebooks / "go")
    let_it_restart(page)
    is_told_once(page, pages.GROWTH_WORDS)
