# SPDX-License-Identifier: Apache-2.0
"""Kernels as VS Code starts them, read from microsoft/vscode-jupyter and done here in the same order.

It runs a kernelspec's `argv` itself, in its own process group, with a new connection file for every
start; it fills in the first word with {connection_file} in it, and no other; it interrupts by SIGINT
to that process alone; cells are named by the address of their document. docs/notebook.md names the
files. No provisioner and no restarter of Jupyter's takes part.
"""
import json
import os
import pathlib
import signal
import subprocess
import types
import uuid

import pytest

from conftest import prepare_child
from kernels import MARK, Kernel, free_ports, kill_marked
from support import alive, wait_until

PLACEHOLDER = "{connection_file}"


class VSCodeKernel(Kernel):
    """A Kernel of kernels.py that no manager of Jupyter's has started."""

    def __init__(self, home, notebook):
        self.home, self.folder, self.notebook = home, home.folder, notebook
        self.environment = {**home.environment(), MARK: str(home.folder)}
        self.log = home.folder / "kernel.log"
        self.log_file = open(self.log, "ab")
        self.client = None
        spec = json.loads((home.specs / "plimsoll-python3" / "kernel.json").read_text())
        self.connection_file, connection = self._write_connection_file()
        self.process = subprocess.Popen(
            self._command(spec["argv"]), env={**self.environment, **spec.get("env", {})},
            cwd=home.folder, stdout=self.log_file, stderr=self.log_file,
            preexec_fn=prepare_child(None))
        self.manager = types.SimpleNamespace(get_connection_info=lambda: connection)
        self.connect()

    def _write_connection_file(self):
        path = self.home.folder / "runtime" / f"kernel-v2-{uuid.uuid4().hex}.json"
        connection = {**free_ports(), "ip": "127.0.0.1", "transport": "tcp",
                      "key": uuid.uuid4().hex, "signature_scheme": "hmac-sha256",
                      "kernel_name": "plimsoll-python3"}
        path.write_text(json.dumps(connection))
        return path, connection

    def _command(self, argv):
        first = next(i for i, word in enumerate(argv) if PLACEHOLDER in word)
        return [*argv[:first], argv[first].replace(PLACEHOLDER, str(self.connection_file)),
                *argv[first + 1:]]

    @property
    def n_deaths(self):
        return int(self.process.poll() is not None)

    @property
    def launched_pid(self):
        return self.process.pid

    def run(self, code, cell="W0sZmlsZQ%3D%3D", **how):
        return super().run(code, cell_id=f"vscode-notebook-cell:{self.notebook}#{cell}", **how)

    def interrupt(self):
        os.kill(self.process.pid, signal.SIGINT)

    def close(self):
        """As its KernelProcess.dispose() does: the tree, then the process, by SIGTERM."""
        self.disconnect()
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait()
        self.connection_file.unlink()
        self.log_file.close()


@pytest.fixture
def vscode(homes):
    """Starts a kernel for a notebook: vscode("/home/ada/analysis.ipynb") -> VSCodeKernel."""
    home, started = homes.home(), []
    home.install()

    def start(notebook="/home/ada/some/long/way/down/to/the/notebooks/analysis%20of%20it.ipynb"):
        started.append(VSCodeKernel(home, notebook))
        return started[-1]

    yield start
    for kernel in started:
        kernel.disconnect()
    kill_marked(home.folder)
    for kernel in started:
        kernel.process.wait()
        kernel.log_file.close()


def test_the_command_of_a_twin_has_one_connection_file(vscode):
    kernel = vscode()
    argv = pathlib.Path(f"/proc/{kernel.launched_pid}/cmdline").read_text().split("\0")
    assert PLACEHOLDER not in " ".join(argv)
    assert kernel.run("6 * 7").text == "42"
    assert kernel.home.explain()["notebook"]["kernel"] == str(kernel.connection_file)


@pytest.mark.parametrize("words, found", [
    (["-f", "/run/a b/kernel-1.json"], "/run/a b/kernel-1.json"),
    (["--f=/run/kernel-1.json", "--debug"], "/run/kernel-1.json"),
    (['--f="/run/a b/kernel-1.json"'], "/run/a b/kernel-1.json"),
    (["--config=/etc/kernel.json", "/run/kernel-1.json"], "/run/kernel-1.json"),
    (["R -f /run/kernel-1.json --slave"], "/run/kernel-1.json"),
    (["kernel-1.json"], "{cwd}/kernel-1.json"),
    (["--file=kernel-1.json"], "{cwd}/kernel-1.json"),
    (["/run/kernel-1.jso", ""], None),
])
def test_the_connection_file_is_found_in_the_command(homes, words, found):
    home = homes.home()
    done = home.plimsoll("run", "--quiet", "--kernel", "auto", "--", "/bin/true", *words)
    assert done.returncode == 0, done.stderr
    kernel = home.explain().get("notebook", {}).get("kernel")
    assert kernel == (found and found.format(cwd=home.folder))


def test_an_interrupt_of_the_supervisor_alone_reaches_the_cell(vscode):
    kernel = vscode()
    cell = kernel.start("print('begun', flush=True)\nimport time\ntime.sleep(600)")
    kernel.wait_for_output(cell, "begun")
    kernel.interrupt()
    assert kernel.finish(cell).error.ename == "KeyboardInterrupt"
    assert kernel.run("40 + 2").text == "42"


def test_cells_are_told_apart_by_the_end_of_their_long_names(vscode):
    kernel = vscode()
    kernel.run("first = bytearray(30 << 20)", cell="W0sZmlsZQ%3D%3D")
    kernel.run("second = bytearray(50 << 20)", cell="W1sZmlsZQ%3D%3D")
    kernel.run("second = bytearray(70 << 20)", cell="W1sZmlsZQ%3D%3D")
    table = kernel.run("%plimsoll", cell="W2sZmlsZQ%3D%3D").displays[0]["text/plain"].splitlines()
    cells = {line.split()[1]: line for line in table if line.strip().startswith("In [")}
    assert "first = bytearray(30 << 20)" in cells["[1]"]
    assert "second = bytearray(70 << 20)" in cells["[3]"] and " 2 " in cells["[3]"]
    assert "[2]" not in cells


def test_the_next_kernel_of_the_notebook_explains_the_death(vscode):
    """It has another connection file: only the names of its cells say whose it is."""
    dying, other = vscode(), vscode("/home/ada/other.ipynb")
    assert other.run("1 + 1").displays == []
    assert dying.run("import ctypes\nctypes.string_at(0)").status == "died"
    assert vscode("/home/ada/analysis.ipynb").run("1 + 1").displays == [], "another notebook"

    following = vscode()
    assert following.connection_file != dying.connection_file
    first = following.run("1 + 1", cell="W1sZmlsZQ%3D%3D")
    assert first.text == "2"
    told = first.displays[0]["text/plain"]
    assert "The kernel before this one died" in told and "segmentation fault" in told
    assert "ctypes.string_at(0)" in told
    assert following.run("1 + 1").displays == [], "it is told once"
    assert "segmentation fault" in dying.log.read_text(), "the Jupyter channel of the output panel"


def test_what_vscode_ends_itself_is_no_death(vscode):
    kernel = vscode()
    pid = int(kernel.run("import os\nos.getpid()").text)
    kernel.close()
    wait_until(lambda: not alive(pid), "the kernel to end")
    assert vscode().run("1 + 1").displays == []
