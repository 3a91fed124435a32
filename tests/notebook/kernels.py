# SPDX-License-Identifier: Apache-2.0
"""A real kernel, with what a notebook server has around it: the manager and the restarter that
jupyter_server uses, in an event loop of their own, and a client in the test's thread.

    outcome = kernel.run("1 + 1")              # runs a cell to its end
    cell = kernel.start("import time; ...")    # starts one, to do something meanwhile
    outcome = kernel.finish(cell)
"""
import asyncio
import dataclasses
import itertools
import os
import pathlib
import queue
import re
import signal
import socket
import threading
import time

import pytest
from jupyter_client.blocking import BlockingKernelClient
from jupyter_client.ioloop import AsyncIOLoopKernelManager
from jupyter_client.kernelspec import KernelSpecManager
from traitlets.config import Config

from support import HANG_S, alive, wait_until

ANSI = re.compile(r"\x1b\[[0-9;]*m")
# Found in the environment of whatever a kernel starts, and nowhere else.
MARK = "NOTEBOOK_TEST_FOLDER"


@dataclasses.dataclass
class Error:
    """The exception that a cell ended with, its traceback as text without colours."""

    ename: str
    evalue: str
    traceback: str


@dataclasses.dataclass
class Outcome:
    """What came of a cell. `status` is that of its reply, or "died" when the kernel did."""

    status: str = ""
    number: int = 0
    stdout: str = ""
    stderr: str = ""
    result: dict = None
    error: Error = None
    displays: list = dataclasses.field(default_factory=list)
    order: list = dataclasses.field(default_factory=list)  # of kinds: "stdout", "display" ...
    prompts: list = dataclasses.field(default_factory=list)  # (prompt, is it a password)
    messages: list = dataclasses.field(default_factory=list, repr=False)  # all, as they came

    @property
    def text(self):
        """The text/plain of the last expression."""
        return self.result and self.result["text/plain"]

    def take(self, message):
        """Adds a message that came for the cell on the iopub channel."""
        kind, content = message["msg_type"], message["content"]
        self.messages.append(message)
        if kind == "stream":
            kind = content["name"]
            setattr(self, kind, getattr(self, kind) + content["text"])
        elif kind == "display_data":
            self.displays.append(content["data"])
        elif kind == "execute_result":
            self.result = content["data"]
        elif kind == "error":
            lines = ANSI.sub("", "\n".join(content["traceback"]))
            self.error = Error(content["ename"], content["evalue"], lines)
        elif kind in ("status", "execute_input"):
            return
        if self.order[-1:] != [kind]:
            self.order.append(kind)


@dataclasses.dataclass
class Cell:
    """A cell that was sent to the kernel and has not come to its end."""

    message_id: str
    answers: list
    outcome: Outcome = dataclasses.field(default_factory=Outcome)
    idle: bool = False

    @property
    def done(self):
        return self.outcome.status == "died" or (self.idle and self.outcome.status != "")


def marked_processes(folder):
    """Every live process that has MARK, with this folder, in its environment."""
    mark = f"{MARK}={folder}".encode()
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            marked = mark in (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue  # it has ended meanwhile
        if marked and alive(int(entry.name)):
            found.append(int(entry.name))
    return found


def kill_marked(folder):
    for pid in marked_processes(folder):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


PORT_NAMES = ("shell_port", "iopub_port", "stdin_port", "hb_port", "control_port")
N_PORTS = 100  # of each test process
next_ports = itertools.cycle(range(10_000 + os.getpid() % 200 * N_PORTS,
                                   10_000 + os.getpid() % 200 * N_PORTS + N_PORTS))


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_ports():
    """Ports for one kernel. They lie below those that the system hands out to connections: of
    those, any other program may get one between the look and the kernel's bind."""
    ports = []
    while len(ports) < len(PORT_NAMES):
        port = next(next_ports)
        if not listens(port):
            ports.append(port)
    return dict(zip(PORT_NAMES, ports))


class ServerLoop:
    """The event loop of a notebook server, in a thread."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def wait_for(self, coroutine, timeout=HANG_S):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(timeout)

    def close(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()


class Kernel:
    """One kernel, restarted by the server's restarter when it dies."""

    def __init__(self, server, spec_folder, name, folder, environment, before_exec):
        self.server, self.folder = server, folder
        self.environment = {**environment, MARK: str(folder)}
        self.log = folder / "kernel.log"  # what a server would have on its own stderr
        self.log_file = open(self.log, "ab")
        self.n_deaths = 0
        self.client = None
        self.before_exec = before_exec
        server.wait_for(self._launch(spec_folder, name))
        self.connect()

    async def _launch(self, spec_folder, name):
        config = Config({"KernelRestarter": {"time_to_dead": 0.2}})  # a server looks every 3 s
        specs = KernelSpecManager(kernel_dirs=[str(spec_folder)], ensure_native_kernel=False)
        self.manager = AsyncIOLoopKernelManager(
            kernel_name=name, kernel_spec_manager=specs, config=config, autorestart=True,
            connection_file=str(self.folder / "runtime" / "kernel.json"), cache_ports=False,
            **free_ports())
        await self.manager.start_kernel(
            env=self.environment, cwd=str(self.folder), stdout=self.log_file, stderr=self.log_file,
            preexec_fn=self.before_exec)
        self.manager.add_restart_callback(self._note_death)

    def _note_death(self):
        self.dead_pid = self.launched_pid
        self.n_deaths += 1

    def connect(self):
        """A fresh client, as a page that is loaded again has it; waits until the kernel answers."""
        self.disconnect()
        connection = self.manager.get_connection_info()
        # A channel that is refused tries again some time later; a kernel that asks for input before
        # that asks nobody.
        wait_until(lambda: all(listens(connection[name]) for name in PORT_NAMES),
                   f"the kernel to listen; see '{self.log}'")
        self.client = BlockingKernelClient()
        self.client.load_connection_info(connection)
        self.client.start_channels(hb=False)
        # The first messages may come before iopub is subscribed to: until one is seen, ask again.
        end = time.monotonic() + HANG_S
        while time.monotonic() < end:
            self.client.kernel_info()
            try:
                self.client.get_shell_msg(timeout=1)
                self.client.get_iopub_msg(timeout=1)
                return
            except queue.Empty:
                pass
        pytest.fail(f"no answer from the kernel in {HANG_S} s\n{self.log.read_text()[-3000:]}")

    def disconnect(self):
        if self.client:
            self.client.stop_channels()
            self.client = None

    # ---- cells ----

    def start(self, code, answers=(), cell_id=None, **how):
        """Sends a cell. `answers` are what is typed when it asks for input. A `cell_id` names it as
        JupyterLab does; the classic notebook gives none."""
        content = {"code": code, "silent": False, "store_history": True, "user_expressions": {},
                   "allow_stdin": True, "stop_on_error": False, **how}
        metadata = {"cellId": cell_id} if cell_id else None
        message = self.client.session.msg("execute_request", content, metadata=metadata)
        self.client.shell_channel.send(message)
        return Cell(message["header"]["msg_id"], list(answers))

    def finish(self, cell, timeout=HANG_S):
        self._pump(cell, lambda: cell.done, timeout)
        return cell.outcome

    def run(self, code, timeout=HANG_S, **how):
        outcome = self.finish(self.start(code, **how), timeout)
        print(outcome)  # pytest shows it when the test fails
        return outcome

    def wait_for_output(self, cell, text):
        self._pump(cell, lambda: text in cell.outcome.stdout or cell.done, HANG_S)
        assert text in cell.outcome.stdout, f"the cell ended without '{text}': {cell.outcome}"

    def _pump(self, cell, until, timeout):
        """Reads messages until `until()`."""
        n_deaths, end = self.n_deaths, time.monotonic() + timeout
        while not until():
            if self.n_deaths != n_deaths:
                self._drain(cell)  # what the kernel still said before it died
                if not cell.done:
                    cell.outcome.status = "died"
            elif time.monotonic() > end:
                pytest.fail(f"the cell still ran after {timeout} s: {cell.outcome}\n"
                            f"{self.log.read_text()[-3000:]}")
            self._drain(cell)

    def _drain(self, cell):
        for message in self._messages(self.client.get_iopub_msg, cell, first_wait=0.05):
            state = message["content"].get("execution_state")
            cell.idle = cell.idle or state == "idle"
            cell.outcome.take(message)
        for message in self._messages(self.client.get_stdin_msg, cell):
            content = message["content"]
            cell.outcome.prompts.append((content["prompt"], content["password"]))
            if cell.answers:
                self.client.input(cell.answers.pop(0))
        for message in self._messages(self.client.get_shell_msg, cell):
            cell.outcome.status = message["content"]["status"]
            cell.outcome.number = message["content"].get("execution_count", 0)

    @staticmethod
    def _messages(receive, cell, first_wait=0):
        """The messages that are there for the cell; others are for nobody."""
        wait = first_wait
        while True:
            try:
                message = receive(timeout=wait)
            except queue.Empty:
                return
            wait = 0
            if message["parent_header"].get("msg_id") == cell.message_id:
                yield message

    def ask(self, request, *arguments, **more):
        """The content of the reply to any other request: ask("complete", "pri")."""
        send = getattr(self.client, request)
        return send(*arguments, reply=True, timeout=HANG_S, **more)["content"]

    # ---- as the buttons of the page do ----

    def interrupt(self):
        self.server.wait_for(self.manager.interrupt_kernel())

    def restart(self, now=False):
        self.server.wait_for(self.manager.restart_kernel(now=now))
        self.connect()

    def shutdown(self, now=False):
        self.disconnect()
        self.server.wait_for(self.manager.shutdown_kernel(now=now))

    def wait_for_restart(self):
        """After a death: the restarter's kernel is ready."""
        wait_until(lambda: self.launched_pid not in (None, self.dead_pid), "the kernel's restart")
        self.connect()

    # ---- processes ----

    @property
    def launched_pid(self):
        """Of the process that Jupyter launched: the kernel itself, or its supervisor."""
        return self.manager.provisioner.pid

    def processes(self):
        """Every live process that the kernel, or an earlier one, has led to."""
        return marked_processes(self.folder)

    def close(self):
        """Whatever a failed test left running."""
        self.disconnect()

        async def stop():
            self.manager.stop_restarter()
            if self.manager.has_kernel:
                await self.manager.shutdown_kernel(now=True)

        self.server.wait_for(stop())
        self.log_file.close()
        kill_marked(self.folder)
