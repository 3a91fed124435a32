# SPDX-License-Identifier: Apache-2.0
"""A real Jupyter server as its page sees it: kernels over REST, cells over the websocket.

    with serving(command, environment, folder) as server:
        kernel = server.start_kernel()
        outcome = server.run(kernel, "1 + 1")      # an Outcome, as in kernels.py
"""
import contextlib
import importlib.metadata
import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

import pytest
import websocket

from kernels import Outcome
from support import HANG_S, wait_until


def version_of(package):
    """(4, 0) of "4.0.11"; (0,) where it is not installed."""
    try:
        return tuple(map(int, importlib.metadata.version(package).split(".")[:2]))
    except importlib.metadata.PackageNotFoundError:
        return (0,)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def request(method, url, token, body=None):
    """Any request with a token; returns the decoded answer."""
    asked = urllib.request.Request(url, method=method, headers={"Authorization": f"token {token}"},
                                   data=None if body is None else json.dumps(body).encode())
    with urllib.request.urlopen(asked, timeout=HANG_S) as answer:
        text = answer.read()
    return json.loads(text) if text else None


class Server:
    """What is served at `url` (with a slash at its end)."""

    def __init__(self, url, token):
        self.url, self.token = url, token

    def api(self, method, path, body=None):
        return request(method, self.url + "api/" + path, self.token, body)

    def is_up(self):
        try:
            return self.api("GET", "status")
        except (urllib.error.URLError, ConnectionError):
            return None

    def start_kernel(self, name="python3"):
        return self.api("POST", "kernels", {"name": name})["id"]

    def end_kernel(self, kernel):
        self.api("DELETE", f"kernels/{kernel}")

    def run(self, kernel, code):
        """Runs a cell to its end; "died" when the server says that the kernel restarts."""
        address = self.url.replace("http", "ws", 1) + f"api/kernels/{kernel}/channels"
        # In the header: JupyterHub 5 takes no token from an address.
        page = websocket.create_connection(address, timeout=HANG_S,
                                           header=[f"Authorization: token {self.token}"])
        with contextlib.closing(page):
            wait_until_heard(page)
            message = request_of("execute_request", code=code, silent=False, store_history=True,
                                 user_expressions={}, allow_stdin=False, stop_on_error=False)
            page.send(json.dumps(message))
            outcome = read_outcome(page, message["header"]["msg_id"])
        print(outcome)  # pytest shows it when the test fails
        return outcome


def request_of(kind, **content):
    header = {"msg_id": uuid.uuid4().hex, "msg_type": kind, "username": "",
              "session": uuid.uuid4().hex, "version": "5.3"}
    return {"header": header, "parent_header": {}, "metadata": {}, "channel": "shell",
            "content": content, "buffers": []}


def received(page, spell_s):
    """What comes from the server, until nothing came for so long. Its pings come more often than
    HANG_S, so silence is measured in short spells."""
    page.settimeout(spell_s)
    while True:
        try:
            yield json.loads(page.recv())
        except websocket.WebSocketTimeoutException:
            return


def wait_until_heard(page):
    """Asks until the kernel is heard. Requests reach a kernel that has just started before the server
    has subscribed to what it says, and the results of a cell that is run meanwhile are lost. The
    server sees to that itself, but not where it takes the kernel for busy: as it takes the one that
    follows on one that died in a cell."""
    asked, deadline = set(), time.monotonic() + HANG_S
    while time.monotonic() < deadline:
        request = request_of("kernel_info_request")
        asked.add(request["header"]["msg_id"])
        page.send(json.dumps(request))
        for message in received(page, 1):
            if message["channel"] == "iopub" and message["parent_header"].get("msg_id") in asked:
                return
    pytest.fail("the server does not hear the kernel")


def read_outcome(page, message_id):
    outcome, deadline = Outcome(), time.monotonic() + HANG_S
    while time.monotonic() < deadline:
        for message in received(page, 5):
            if take_message(outcome, message, message_id):
                return outcome
    pytest.fail(f"no end of the cell: {outcome}")


def take_message(outcome, message, message_id):
    """True: it was the last of the cell. Its reply and its `idle` come in any order."""
    content = message["content"]
    if content.get("execution_state") in ("restarting", "dead"):
        outcome.status = "died"
        return True
    if message["parent_header"].get("msg_id") != message_id:
        return False
    if message["msg_type"] == "execute_reply":
        outcome.status, outcome.number = content["status"], content["execution_count"]
    elif message["channel"] == "iopub":
        outcome.take(message)
    idle = any(one["content"].get("execution_state") == "idle" for one in outcome.messages)
    return idle and outcome.status != ""


def end_group(process):
    """Asks a server to end, which ends its kernels; what is left after that is killed."""
    process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        pass
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextlib.contextmanager
def started(command, environment, folder):
    """A server's process in a session of its own, and its log; its log is shown on failure."""
    log = folder / "server.log"
    with open(log, "ab") as out:
        process = subprocess.Popen([str(word) for word in command], env=environment, cwd=folder,
                                   stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                   start_new_session=True)
    try:
        yield process, log
    finally:
        end_group(process)
        print(log.read_text()[-5000:])


@contextlib.contextmanager
def serving(command, environment, folder):
    """Starts `command` as a server on a port of its own; its options are those of Debian's."""
    port, token = free_port(), uuid.uuid4().hex
    options = ["--no-browser", "--ip=127.0.0.1", f"--port={port}", "--allow-root",
               f"--ServerApp.token={token}", f"--NotebookApp.token={token}"]
    with started([*command, *options], environment, folder) as (process, log):
        server = Server(f"http://127.0.0.1:{port}/", token)
        server.log, server.process = log, process
        wait_until(lambda: server.is_up() or process.poll() is not None, "the server")
        if process.poll() is not None:
            pytest.fail(f"the server ended with status {process.returncode}")
        yield server
