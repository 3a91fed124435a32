# SPDX-License-Identifier: Apache-2.0
"""Interrupt, restart and shutdown, and the ways in which a kernel ends by itself: as without us.

Each is done to a plain kernel and to a guarded one; the first says what is to be expected."""
import subprocess
import textwrap
import time

import pytest

from conftest import PLAIN_SPECS
from kernels import MARK, kill_marked, marked_processes
from support import PYTHON, alive, wait_until


@pytest.fixture(params=["plain", "guarded"])
def kernel(request, homes):
    """The same test for both: what the plain kernel fails at cannot be asked of the guarded."""
    return getattr(homes, request.param)()


def interrupted(kernel, code, n_times=1):
    """Runs a cell that prints 'ready' and then goes on for ever, and interrupts it."""
    cell = kernel.start(textwrap.dedent(code).lstrip("\n"))
    kernel.wait_for_output(cell, "ready")
    for _ in range(n_times):
        time.sleep(0.3)  # from the print to what is to be interrupted
        kernel.interrupt()
    return kernel.finish(cell, timeout=60)


ENDLESS = {
    "a sleep": """
        import time
        print("ready", flush=True)
        time.sleep(600)
        """,
    "a busy loop": """
        print("ready", flush=True)
        while True:
            pass
        """,
    "a loop that allocates": """
        print("ready", flush=True)
        while True:
            made = [bytes(2_000_000) for _ in range(10)] + [str(n) for n in range(10_000)]
        """,
    "a thread that is joined": """
        import threading, time
        worker = threading.Thread(target=time.sleep, args=(600,), daemon=True)
        worker.start()
        print("ready", flush=True)
        worker.join()
        """,
    "a program that is waited for": """
        import subprocess
        print("ready", flush=True)
        subprocess.run(["sleep", "600"])
        """,
    "NumPy": """
        import numpy as np
        matrix = np.ones((300, 300))
        print("ready", flush=True)
        while True:
            matrix = (matrix @ matrix) / 300
        """,
    "a pool": """
        import multiprocessing, time
        print("ready", flush=True)
        with multiprocessing.get_context("fork").Pool(2) as pool:
            pool.map(time.sleep, [600, 600])
        """,
}


def test_an_interrupt_reaches_whatever_runs(kernel):
    kernel.run("kept = 42")
    for name, code in ENDLESS.items():
        outcome = interrupted(kernel, code)
        assert (outcome.status, outcome.error.ename) == ("error", "KeyboardInterrupt"), name
        assert "plimsoll" not in outcome.error.traceback + outcome.stderr, name
    assert kernel.run("kept").text == "42" and kernel.n_deaths == 0


def test_an_interrupt_that_is_caught_is_the_programs_own(kernel):
    outcome = interrupted(kernel, """
        import time
        n_caught = 0
        while n_caught < 3:
            try:
                print("ready", flush=True)
                time.sleep(600)
            except KeyboardInterrupt:
                n_caught += 1
        n_caught
        """, n_times=3)
    assert (outcome.status, outcome.text) == ("ok", "3")


def test_an_interrupt_of_nothing_does_nothing(kernel):
    kernel.run("x = 5")
    kernel.interrupt()
    time.sleep(0.3)
    assert kernel.run("x").text == "5" and kernel.n_deaths == 0


def test_an_interrupt_ends_the_wait_for_input(kernel):
    cell = kernel.start("input('never answered: ')")
    wait_until(lambda: kernel._drain(cell) or cell.outcome.prompts, "the question")
    kernel.interrupt()
    assert kernel.finish(cell).error.ename == "KeyboardInterrupt"
    assert kernel.run("input('again: ')", answers=["yes"]).text == "'yes'"


def test_an_interrupt_goes_to_the_whole_process_group_once(kernel):
    outcome = interrupted(kernel, r"""
        import subprocess
        script = "trap 'echo INT >> caught' INT; echo ready; while :; do sleep 0.05; done"
        child = subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE)
        child.stdout.readline()
        print("ready", flush=True)
        child.wait()
        """)
    assert outcome.error.ename == "KeyboardInterrupt"
    caught = kernel.folder / "caught"
    wait_until(lambda: caught.exists() and caught.read_text(), "the child to be interrupted")
    assert kernel.run("child.poll() is None").text == "True"
    kernel.run("child.kill(); child.wait()")
    assert caught.read_text() == "INT\n"


# Restart


def test_a_restart_keeps_the_connection_and_loses_the_variables(kernel):
    connection, pid = kernel.manager.get_connection_info(), kernel.launched_pid
    kernel.run("x = 1")
    for now in (False, True):
        kernel.restart(now=now)
        assert kernel.manager.get_connection_info() == connection and not alive(pid)
        pid = kernel.launched_pid
        outcome = kernel.run("x")
        assert (outcome.number, outcome.error.ename) == (1, "NameError")
        assert outcome.displays == [] and outcome.stderr == ""
    assert kernel.run("1").number == 2


def test_a_restart_in_the_middle_of_a_cell_ends_it(kernel):
    cell = kernel.start("import time\nprint('ready', flush=True)\ntime.sleep(600)")
    kernel.wait_for_output(cell, "ready")
    pid = kernel.launched_pid
    kernel.restart(now=True)
    assert not alive(pid)
    assert kernel.run("1 + 1").text == "2"


# The end

WORKERS = """
import multiprocessing, subprocess, sys, time
workers = [multiprocessing.get_context(how).Process(target=time.sleep, args=(600,), daemon=True)
           for how in ("fork", "spawn")]
for worker in workers:
    worker.start()
"""


@pytest.mark.parametrize("now", [False, True], ids=["asked", "killed"])
@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
def test_a_shutdown_leaves_no_process(kernel, now, busy):
    assert kernel.run(WORKERS).status == "ok"
    assert len(kernel.processes()) >= 3
    if busy:
        cell = kernel.start("print('ready', flush=True)\ntime.sleep(600)")
        kernel.wait_for_output(cell, "ready")
    kernel.shutdown(now=now)
    wait_until(lambda: not kernel.processes(), "every process to end")
    assert kernel.n_deaths == 0


@pytest.mark.parametrize("code", ["exit()", "quit()", "exit"])
def test_exit_ends_the_kernel_and_says_nothing(homes, code):
    """The kernel's process ends well, and the restarter starts another."""
    seen = []
    for kernel in (homes.plain(), homes.guarded()):
        kernel.run("x = 1")
        pid, n_deaths = kernel.launched_pid, kernel.n_deaths
        outcome = kernel.run(code)
        wait_until(lambda: kernel.n_deaths > n_deaths, "the kernel to end")
        assert not alive(pid)
        kernel.wait_for_restart()
        fresh = kernel.run("x")
        seen.append((outcome.status, outcome.stdout, outcome.stderr, outcome.displays,
                     fresh.number, fresh.error.ename, fresh.displays, fresh.stderr))
    assert seen[0] == seen[1] and seen[0][-3] == "NameError"


SERVER = """
import sys, time
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager
specs = KernelSpecManager(kernel_dirs=[sys.argv[1]], ensure_native_kernel=False)
manager = KernelManager(kernel_name=sys.argv[2], kernel_spec_manager=specs)
manager.start_kernel()
client = manager.client()
client.start_channels()
client.wait_for_ready()
print("ready", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("guard", [False, True], ids=["plain", "guarded"])
def test_a_kernel_ends_with_its_server(homes, guard):
    """A kernel whose server was killed ends by itself; so must one with a supervisor in between."""
    home = homes.home()
    specs, name = (home.specs, home.install()) if guard else (PLAIN_SPECS, "python3")
    server = subprocess.Popen(
        [PYTHON, "-c", SERVER, str(specs), name], stdout=subprocess.PIPE, text=True,
        env=home.environment({MARK: str(home.folder)}), cwd=home.folder)
    try:
        assert server.stdout.readline() == "ready\n"
        assert len(marked_processes(home.folder)) == (3 if guard else 2)
        server.kill()
        wait_until(lambda: not marked_processes(home.folder), "the kernel to end", timeout=30)
    finally:
        server.kill()
        server.wait()
        server.stdout.close()
        kill_marked(home.folder)
