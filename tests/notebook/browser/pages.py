# SPDX-License-Identifier: Apache-2.0
"""A page of Chromium, and a notebook server for it, in a memory cgroup, as in a container.

playwright-core comes from npm, pinned by package-lock.json, into `browser-test` in the build folder;
node and chromium are Debian's.
"""
import contextlib
import fcntl
import json
import os
import pathlib
import re
import secrets
import shutil
import signal
import subprocess
import sys
import textwrap
from typing import NamedTuple

import nbformat
import pytest

from conftest import Home
from servers import free_port
from support import BUILD, HANG_S, MIB, ROOT, wait_until

HERE = pathlib.Path(__file__).resolve().parent
INSTALLED = BUILD / "browser-test"
LIMIT_BYTES = 600 * MIB
KERNEL = "Python 3 (Plimsoll)"


def install_playwright():
    """`npm ci`, once for each package-lock.json; workers of xdist take turns."""
    INSTALLED.mkdir(parents=True, exist_ok=True)
    with open(INSTALLED / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = (HERE / "package-lock.json").read_bytes()
        done = INSTALLED / "done"
        if done.exists() and done.read_bytes() == wanted:
            return
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, INSTALLED)
        npm = subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=INSTALLED,
                             capture_output=True, text=True, timeout=HANG_S)
        if npm.returncode != 0:
            pytest.fail("npm cannot install playwright-core, which this test needs: see that its "
                        f"registry can be reached\n{npm.stderr}")
        done.write_bytes(wanted)


class Page:
    """A page of Chromium, driven by a script of this folder."""

    def __init__(self, script, folder):
        """What a command that fails saw is left in the folder, as page.png."""
        self.script = script
        self.process = subprocess.Popen(
            ["node", HERE / script, shutil.which("chromium"), folder / "page.png"],
            text=True, bufsize=1,
            env={**os.environ, "NODE_PATH": str(INSTALLED / "node_modules")},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)

    def __getattr__(self, name):
        """page.run(index=2): any command of the script."""
        def command(**arguments):
            self.process.stdin.write(json.dumps({"name": name, **arguments}) + "\n")
            line = self.process.stdout.readline()
            assert line, f"{self.script} ended with {self.process.wait()} instead of doing '{name}'"
            answer = json.loads(line)
            assert "error" not in answer, f"{name}({arguments}): {answer['error']}"
            return answer["value"]
        return command

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.process.stdout.close()


@contextlib.contextmanager
def opened_page(script, folder):
    """A Page, for a while."""
    for name in ("node", "npm", "chromium"):
        if shutil.which(name) is None:
            pytest.fail(f"{name} is not installed: tools/install-deps test")
    install_playwright()
    page = Page(script, folder)
    try:
        yield page
    finally:
        page.close()


class FrontEnd(NamedTuple):
    """A server with pages of its own kind."""

    command: str
    options: tuple  # what only it needs
    app: str  # the class that its token belongs to
    file: str  # beginning of the file in which it writes where it listens
    path: str  # of a notebook's page
    script: str  # what drives such a page
    without: tuple = ()  # parts of the page that are switched off


# Debian's Notebook 7.4 has parts of its own and of JupyterLab's in one page (its console: "Unsatisfied
# version 0.16.6 of @jupyter/web-components"). When the buttons in the active cell are drawn, their
# styles notify each other without end in most runs, with any kernel: "RangeError: Maximum call stack
# size exceeded", and the page answers no more while it takes gigabytes.
CELL_BUTTONS = "@jupyterlab/cell-toolbar-extension:plugin"

# The page must be able to say that it hears the kernel: see lab.js.
CLASSIC = FrontEnd("jupyter-notebook", (), "NotebookApp", "nbserver", "notebooks", "classic.js")
NOTEBOOK_7 = FrontEnd("jupyter-notebook", ("--JupyterNotebookApp.expose_app_in_browser=True",),
                      "ServerApp", "jpserver", "notebooks", "lab.js", (CELL_BUTTONS,))
JUPYTERLAB = FrontEnd("jupyter-lab", ("--LabApp.expose_app_in_browser=True",),
                      "ServerApp", "jpserver", "lab/tree", "lab.js")


# No news and no questions from outside of the machine.
QUIET = {"fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": True}


class Server:
    """A server in a home and a memory cgroup of its own, with a guarded kernel."""

    def __init__(self, front_end, folder, group):
        self.home, self.group, self.front_end = Home(folder), group, front_end
        self.notebooks = folder / "notebooks"
        self.notebooks.mkdir()
        self.kernel_name = self.home.install()
        self.token = secrets.token_hex(16)
        settings = folder / "jupyter/lab/user-settings/@jupyterlab/apputils-extension"
        settings.mkdir(parents=True)
        (settings / "notification.jupyterlab-settings").write_text(json.dumps(QUIET))
        pages = folder / "jupyter/labconfig/page_config.json"
        pages.parent.mkdir()
        pages.write_text(json.dumps({"disabledExtensions": dict.fromkeys(front_end.without, True)}))
        self.log = open(folder / "server.log", "w+")
        self.process = subprocess.Popen(
            [f"/usr/bin/{front_end.command}", "--no-browser", "--allow-root", "--ip=127.0.0.1",
             f"--port={free_port()}", f"--{front_end.app}.token={self.token}", *front_end.options,
             # Who dies in its first ten seconds would get other ports, and the page would not learn
             # of them: so it is with every kernel.
             "--KernelRestarter.random_ports_until_alive=False"],
            cwd=self.notebooks, env=self.home.environment(), start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, preexec_fn=group.enter)
        self.url = wait_until(self.find_url, "the server to listen")

    def find_url(self):
        """The server writes where it listens once it does: another port, if ours was taken."""
        if self.process.poll() is not None:
            pytest.fail(f"the notebook server ended:\n{self.said()}")
        name = f"{self.front_end.file}-{self.process.pid}.json"
        try:
            return json.loads((self.home.folder / "runtime" / name).read_text())["url"]
        except (FileNotFoundError, ValueError):
            return None  # not there yet, or not all of it

    def said(self):
        self.log.seek(0)
        return self.log.read()

    def notebook(self, *cells, kernel=True):
        """Writes a notebook for the guarded kernel, or for none, and returns its page's address."""
        spec = {"name": self.kernel_name, "language": "python", "display_name": KERNEL}
        content = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(textwrap.dedent(cell).strip()) for cell in cells],
            metadata={"kernelspec": spec} if kernel else {})
        nbformat.write(content, self.notebooks / "analysis.ipynb")
        return f"{self.url}{self.front_end.path}/analysis.ipynb?token={self.token}"

    def cell_ids(self):
        file = self.notebooks / "analysis.ipynb"
        return [cell["id"] for cell in nbformat.read(file, nbformat.NO_CONVERT).cells]

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            pass
        self.group.kill_all()  # kernels are sessions of their own
        self.process.wait()
        print(self.said())  # pytest shows it when the test fails
        self.log.close()


@contextlib.contextmanager
def serving(front_end, folder, group):
    """A Server, for a while."""
    server = Server(front_end, folder, group)
    try:
        yield server
    finally:
        server.close()


# What a page shows


def is_explanation(output, html_kind):
    """HTML made of nothing but words and tables, which names nothing that is not the user's."""
    assert html_kind in output["kind"], output
    assert set(re.findall(r"<(\w+)", output["html"])) <= {"div", "b", "table", "tbody", "tr", "td"}
    assert not re.search(r"ipykernel_\d", output["html"]), "a file that the user has never seen"
    assert re.search(r"[\d.]+ MiB resident of [\d.]+ MiB \(cgroup v", output["text"]), output
    return True


def take_screenshot(page, name, **what):
    """Only when it is asked for or missing: a test does not change the tree."""
    picture = ROOT / "docs" / name
    if "PLIMSOLL_SCREENSHOT" in os.environ or not picture.exists():
        page.screenshot(path=str(picture), **what)


# What is died of: the cells before the death, and what is then read of it

CRASH = """
    def read_header(address):
        return ctypes.string_at(address)

    read_header(address)
    """
CRASH_WORDS = (
    "The kernel before this one died",
    "crashed: segmentation fault in the kernel (pid ",
    ") at In [2] line 2 in read_header(): access to address 0x0, where nothing is mapped",
    "In [2] line 2: return ctypes.string_at(address)",
    "begin at In [2] line 2 in read_header()",
    "%plimsoll explain ",
)

# Nothing that asks can come so far: the limit is lowered under the kernel.
GROWTH = """
    while not os.path.exists("go"):
        time.sleep(0.01)
    rows = [bytes(4000) for _ in range(250_000)]
    """
# Since Python 3.12 a comprehension is no function of its own.
LISTCOMP = " in <listcomp>" if sys.version_info < (3, 12) else ""
GROWTH_WORDS = (
    "The kernel before this one died",
    "killed for memory: the system's OOM killer ended the kernel (pid ",
    "In [2] line 3, which took most of it: rows = [bytes(4000) for _ in range(250_000)]",
    f"free or batch what In [2] line 3{LISTCOMP} keeps",
    "%plimsoll explain ",
)
