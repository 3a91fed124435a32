# SPDX-License-Identifier: Apache-2.0
"""JupyterLab 4 and Notebook 7 in Chromium, as their user sees them: the kernel is chosen in the page,
a cell is over the line, the kernel dies, and the next one says why.

The server runs in a memory cgroup, as in a container. With PLIMSOLL_SCREENSHOT set, or when it is
missing, the picture in docs/ is taken anew, of JupyterLab.
"""
import re

import pytest

from browser import pages
from servers import version_of
from support import MIB

NO_JUPYTERLAB = pytest.mark.skipif(version_of("jupyterlab") < (4,),
                                   reason="Debian 12 has no JupyterLab 4")
FRONT_ENDS = [pytest.param(pages.JUPYTERLAB, id="jupyterlab", marks=NO_JUPYTERLAB)]
if version_of("notebook") >= (7,):  # before, it is the classic notebook: browser/
    FRONT_ENDS.append(pytest.param(pages.NOTEBOOK_7, id="notebook-7"))


@pytest.fixture(params=FRONT_ENDS)
def notebook_server(request, tmp_path, cgroup):
    with pages.serving(request.param, tmp_path, cgroup(pages.LIMIT_BYTES)) as server:
        yield server


@pytest.fixture
def page(notebook_server, tmp_path):
    with pages.opened_page(notebook_server.front_end.script, tmp_path) as page:
        yield page


def open_notebook(page, server, *cells):
    """Opens a notebook without a kernel, and chooses ours in the box that asks for one."""
    assert page.open(url=server.notebook(*cells, kernel=False), kernel=pages.KERNEL) == pages.KERNEL


def text_of(shown):
    return "\n".join(output["text"] for output in shown["outputs"])


def let_it_restart(page):
    """The box that Jupyter shows has no reason in it; the user closes it."""
    words = page.dialog()
    assert "Kernel Restarting" in words and "analysis.ipynb appears to have died" in words
    page.dismiss()


def is_told_once(page, words, picture=None):
    """As in the classic notebook: browser/test_classic.py."""
    shown = page.run(index=2)
    assert shown["prompt"] == "[1]:", "a new kernel"
    explanation, own = shown["outputs"]
    assert pages.is_explanation(explanation, "text/html")
    for word in words:
        assert word in explanation["text"]
    assert own["text"].strip() == "my own output"
    if picture:
        pages.take_screenshot(page, picture, last=2)

    assert text_of(page.run(index=2)).strip() == "my own output", "told once"
    asked = text_of(page.run(index=3))
    for word in words:
        assert word in asked


def test_a_cell_over_the_line_fails_and_the_kernel_goes_on(page, notebook_server):
    open_notebook(page, notebook_server,
                  "kept = bytearray(50 << 20)", "bytearray(2 << 30)", "print(len(kept))",
                  "%plimsoll", "print(get_ipython().parent_header['metadata']['cellId'])")
    assert page.run(index=0)["outputs"] == []
    refused = text_of(page.run(index=1))
    assert "MemoryError" in refused and "Cell In[2], line 1" in refused
    assert re.search(r"plimsoll: refused 2\.0 GiB: [\d.]+ MiB of the [\d.]+ MiB budget are in use; "
                     r"largest holders: In \[1\] line 1 50\.0 MiB", refused), refused
    assert text_of(page.run(index=2)).strip() == str(50 * MIB)

    [table] = page.run(index=3)["outputs"]
    assert table["kind"] == "text/html" and "1 request refused" in table["text"]
    assert re.search(r"In \[1\]\s+1\s+50\.0 MiB\s.*kept = bytearray\(50 << 20\)", table["text"])
    # By its own id, which is in the notebook's file, a cell is known after it was edited.
    assert text_of(page.run(index=4)).strip() in notebook_server.cell_ids()


def test_a_crash_is_explained_in_the_page(page, notebook_server):
    open_notebook(page, notebook_server, "import ctypes\naddress = 0", pages.CRASH,
                  'print("my own output")', "%plimsoll")
    assert page.run(index=0)["outputs"] == []
    page.start(index=1)
    let_it_restart(page)
    is_lab = notebook_server.front_end is pages.JUPYTERLAB
    is_told_once(page, pages.CRASH_WORDS, picture="jupyterlab-death.png" if is_lab else None)


def test_a_kill_for_memory_is_explained_in_the_page(page, notebook_server):
    open_notebook(page, notebook_server, "import os, time", pages.GROWTH, 'print("my own output")',
                  "%plimsoll")
    page.run(index=0)
    page.start(index=1)
    notebook_server.group.overtake(notebook_server.notebooks / "go")
    let_it_restart(page)
    is_told_once(page, pages.GROWTH_WORDS)
