# SPDX-License-Identifier: Apache-2.0
"""The death of a kernel as its user sees it: Chromium on the page of the classic notebook.

The server runs in a memory cgroup, as in a container; the notebook's kernel is the twin that
`plimsoll jupyter install` makes. playwright-core comes from npm, pinned by package-lock.json, into
`browser-test` in the build folder; node and chromium are Debian's. With PLIMSOLL_SCREENSHOT set,
or when it is missing, the picture in docs/ is taken anew.
"""
import fcntl
import json
import os
import pathlib
import re
import secrets
import shutil
import signal
import socket
import subprocess
import textwrap

import nbformat
import pytest

from conftest import Home
from support import BUILD, HANG_S, MIB, ROOT, wait_until

HERE = pathlib.Path(__file__).resolve().parent
SCREENSHOT = ROOT / "docs" / "notebook-death.png"
INSTALLED = BUILD / "browser-test"
LIMIT_BYTES = 600 * MIB


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
    """A page of Chromium, driven by page.js."""

    def __init__(self):
        self.process = subprocess.Popen(
            ["node", HERE / "page.js", shutil.which("chromium")], text=True, bufsize=1,
            env={**os.environ, "NODE_PATH": str(INSTALLED / "node_modules")},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)

    def __getattr__(self, name):
        """page.run(index=2): any command of page.js."""
        def command(**arguments):
            self.process.stdin.write(json.dumps({"name": name, **arguments}) + "\n")
            line = self.process.stdout.readline()
            assert line, f"page.js ended with {self.process.wait()} instead of doing '{name}'"
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


@pytest.fixture
def page():
    for name in ("node", "npm", "chromium"):
        if shutil.which(name) is None:
            pytest.fail(f"{name} is not installed: tools/install-deps test")
    install_playwright()
    page = Page()
    yield page
    page.close()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """`jupyter-notebook` in a home and a memory cgroup of its own, with a guarded kernel."""

    def __init__(self, folder, group):
        self.home, self.group = Home(folder), group
        self.notebooks = folder / "notebooks"
        self.notebooks.mkdir()
        self.kernel_name = self.home.install()
        self.token = secrets.token_hex(16)
        self.log = open(folder / "server.log", "w+")
        self.process = subprocess.Popen(
            ["/usr/bin/jupyter-notebook", "--no-browser", "--allow-root", "--ip=127.0.0.1",
             f"--port={free_port()}", f"--NotebookApp.token={self.token}",
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
        file = self.home.folder / "runtime" / f"nbserver-{self.process.pid}.json"
        try:
            return json.loads(file.read_text())["url"]
        except (FileNotFoundError, ValueError):
            return None  # not there yet, or not all of it

    def said(self):
        self.log.seek(0)
        return self.log.read()

    def notebook(self, *cells):
        """Writes a notebook for the guarded kernel, and returns the address of its page."""
        content = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(textwrap.dedent(cell).strip()) for cell in cells],
            metadata={"kernelspec": {"name": self.kernel_name, "language": "python",
                                     "display_name": "Python 3 (Plimsoll)"}})
        nbformat.write(content, self.notebooks / "analysis.ipynb")
        return f"{self.url}notebooks/analysis.ipynb?token={self.token}"

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


@pytest.fixture
def notebook_server(tmp_path, cgroup):
    server = Server(tmp_path, cgroup(LIMIT_BYTES))
    yield server
    server.close()


RESTARTING = ["Kernel Restarting",
              "The kernel appears to have died. It will restart automatically."]


def let_it_restart(page):
    """The box that Jupyter shows has no reason in it; the user closes it."""
    words = [line for line in page.dialog().splitlines() if line not in ("", "\u00d7", "OK")]
    assert words == RESTARTING
    page.dismiss()


def explanation(outputs):
    """The text of the first output, which must be HTML made of nothing but words and tables."""
    first = outputs[0]
    assert "output_html" in first["kind"], first
    assert set(re.findall(r"<(\w+)", first["html"])) <= {"div", "b", "table", "tbody", "tr", "td"}
    assert "ipykernel_" not in first["html"], "a file that the user has never seen"
    assert re.search(r"[\d.]+ MiB resident of [\d.]+ MiB \(cgroup v", first["text"]), first["text"]
    return first["text"]


def is_told_once(page, *words, picture=False):
    """The third cell shows the explanation with all `words`, and its own output; run again, only
    its own output. `%plimsoll`, the fourth, shows it again, and the cells."""
    shown = page.run(index=2)
    assert shown["prompt"] == "In\xa0[1]:", "a new kernel"
    text = explanation(shown["outputs"])
    for word in words:
        assert word in text
    assert shown["outputs"][1]["text"] == "my own output\n"
    if picture:
        take_screenshot(page)

    again = page.run(index=2)
    assert [output["text"] for output in again["outputs"]] == ["my own output\n"], "told once"

    asked = "\n".join(output["text"] for output in page.run(index=3)["outputs"])
    for word in words:
        assert word in asked
    # The cell's number is that of its second run.
    assert re.search(r'In \[2\]\t2\t.*\tprint\("my own output"\)', asked), asked


def take_screenshot(page):
    """Only when it is asked for or missing: a test does not change the tree."""
    if "PLIMSOLL_SCREENSHOT" in os.environ or not SCREENSHOT.exists():
        page.screenshot(path=str(SCREENSHOT), first=0, last=2)


def test_a_crash_is_explained_in_the_page(page, notebook_server):
    page.open(url=notebook_server.notebook(
        """
        import ctypes
        address = 0
        """,
        """
        def read_header(address):
            return ctypes.string_at(address)

        read_header(address)
        """,
        'print("my own output")',
        "%plimsoll"))
    assert page.run(index=0)["outputs"] == []
    page.start(index=1)
    let_it_restart(page)
    is_told_once(
        page, "The kernel before this one died",
        "crashed: segmentation fault in the kernel (pid ",
        ") at In [2] line 2 in read_header(): access to address 0x0, where nothing is mapped",
        "In [2] line 2: return ctypes.string_at(address)",
        "begin at In [2] line 2 in read_header()",
        "%plimsoll explain ", picture=True)


def test_a_kill_for_memory_is_explained_in_the_page(page, notebook_server):
    """Nothing that asks can come so far: the limit is lowered under the kernel."""
    page.open(url=notebook_server.notebook(
        "import os, time",
        """
        while not os.path.exists("go"):
            time.sleep(0.01)
        rows = [bytes(4000) for _ in range(250_000)]
        """,
        'print("my own output")',
        "%plimsoll"))
    page.run(index=0)
    page.start(index=1)
    notebook_server.group.limit(280 * MIB)
    (notebook_server.notebooks / "go").touch()
    let_it_restart(page)
    assert notebook_server.group.n_oom_kills() >= 1
    is_told_once(
        page, "The kernel before this one died",
        "killed for memory: the system's OOM killer ended the kernel (pid ",
        "In [2] line 3, which took most of it: rows = [bytes(4000) for _ in range(250_000)]",
        "free or batch what In [2] line 3 in <listcomp> keeps",
        "%plimsoll explain ")
