# SPDX-License-Identifier: Apache-2.0
"""The kernel provisioner: every kernel is guarded, and no kernelspec is changed for it."""
import asyncio
import json
import os
import pathlib
import signal
import sys

import pytest
from jupyter_client import AsyncKernelManager, KernelManager
from jupyter_client.kernelspec import KernelSpecManager
from traitlets.config import Config

from conftest import PLAIN_SPECS, prepare_child
from kernels import Kernel
from servers import serving
from support import BUILD, HANG_S, PYTHON, alive, wait_until

# Where Jupyter meets the package and its entry point, as it does in a prefix after `make install`.
sys.path.insert(0, str(BUILD / "python"))

PROGRAM = str(BUILD / "plimsoll")
PLAIN_COMMAND = ["/usr/bin/python3", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
# Said by a cell: the command that Jupyter launched (the kernel's parent, when it is guarded).
PARENT = "import os; open(f'/proc/{os.getppid()}/cmdline').read().split('\\0')[:-1]"


def command_of(pid):
    return pathlib.Path(f"/proc/{pid}/cmdline").read_text().split("\0")[:-1]


def write_spec(folder, argv=PLAIN_COMMAND, **config):
    """A kernelspec `python3` that names the provisioner; returns the manager that finds it."""
    spec = folder / "specs" / "python3"
    spec.mkdir(parents=True)
    provisioner = {"provisioner_name": "plimsoll-provisioner", "config": config}
    content = {"argv": argv, "display_name": "Python 3", "language": "python",
               "metadata": {"kernel_provisioner": provisioner}}
    (spec / "kernel.json").write_text(json.dumps(content))
    return KernelSpecManager(kernel_dirs=[str(spec.parent)], ensure_native_kernel=False)


# The command


@pytest.fixture
def guard_command(tmp_path_factory):
    """What Jupyter would launch: guard_command(argv, {configuration}, **of_the_kernelspec)."""
    def make(argv, configuration=None, **of_the_spec):
        folder = tmp_path_factory.mktemp("spec")
        manager = AsyncKernelManager(
            config=Config({"PlimsollProvisioner": configuration or {}}), kernel_name="python3",
            kernel_spec_manager=write_spec(folder, argv, **of_the_spec),
            connection_file=str(folder / "kernel.json"))
        command, _ = asyncio.run(manager.pre_start_kernel(kernel_id="k1"))
        return [word.replace(str(folder), "") for word in command]

    return make


def test_the_command_goes_through_plimsoll_run(guard_command):
    assert guard_command(["R", "-f", "{connection_file}"]) == [
        PROGRAM, "run", "--kernel", "/kernel.json", "--", "R", "-f", "/kernel.json"]


def test_the_budget_of_the_kernelspec_goes_before_the_configured_one(guard_command):
    configured = guard_command(["R"], {"budget": "2G"})
    assert configured[-4:] == ["--budget", "2G", "--", "R"]
    assert guard_command(["R"], {"budget": "2G"}, budget="3G")[-4:] == ["--budget", "3G", "--", "R"]
    # JSON has numbers too.
    assert guard_command(["R"], budget=1 << 30)[-4:] == ["--budget", "1073741824", "--", "R"]


def test_a_guarded_kernelspec_is_not_guarded_twice(guard_command):
    twin = ["/opt/bin/plimsoll", "run", "--kernel", "k.json", "--", "R"]
    assert guard_command(twin, {"budget": "2G"}) == twin


def test_the_configured_program_is_used(guard_command, tmp_path):
    other = tmp_path / "other"
    other.symlink_to(PROGRAM)
    assert guard_command(["R"], {"program": str(other)})[:2] == [str(other), "run"]


def test_without_the_program_a_kernel_starts_unguarded_and_the_log_says_so(guard_command, caplog):
    assert guard_command(["R"], {"program": "/nowhere/plimsoll"}) == ["R"]
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == [
        "cannot guard kernel 'k1': no program '/nowhere/plimsoll'; it starts without a budget: "
        "install plimsoll, or set c.PlimsollProvisioner.program to its path"]


# The kernel


@pytest.fixture
def provisioned(homes):
    """Starts a kernel whose spec names the provisioner, with a budget: a Kernel, as `guarded`."""
    def start(budget):
        home = homes.home()
        specs = write_spec(home.folder, budget=budget).kernel_dirs[0]
        kernel = Kernel(homes.server, specs, "python3", home.folder, home.environment(),
                        prepare_child(None))
        kernel.home = home
        homes.kernels.append(kernel)
        return kernel

    return start


def run_of(kernel):
    """The id of the run that the kernel is in."""
    record = kernel.run("import os; print(os.path.dirname(os.environ['PLIMSOLL_LEDGER']))").stdout
    return os.path.basename(record.strip())


def test_a_provisioned_kernel_has_the_budget_of_its_kernelspec(provisioned):
    kernel = provisioned("300M")
    file = str(kernel.folder / "runtime" / "kernel.json")
    assert command_of(kernel.launched_pid)[:7] == [
        PROGRAM, "run", "--kernel", file, "--budget", "300M", "--"]
    kernel.run("kept = bytearray(100 << 20)")
    refused = kernel.run("bytearray(400 << 20)")
    assert (refused.status, refused.error.ename) == ("error", "MemoryError")
    assert kernel.run("len(kept)").text == str(100 << 20)
    run = run_of(kernel)
    kernel.shutdown()
    assert kernel.home.explain(run)["memory"]["limit_bytes"] == 300 << 20


def test_a_provisioned_kernel_is_interrupted_once_and_goes_on(provisioned):
    kernel = provisioned("300M")
    cell = kernel.start("print('begun', flush=True)\nimport time\ntime.sleep(600)")
    kernel.wait_for_output(cell, "begun")
    kernel.interrupt()
    assert kernel.finish(cell).error.ename == "KeyboardInterrupt"
    assert kernel.run("40 + 2").text == "42"


def test_a_restarted_kernel_has_the_same_command_and_a_new_run(provisioned):
    kernel = provisioned("300M")
    kernel.run("kept = 1")
    pid, run, command = kernel.launched_pid, run_of(kernel), command_of(kernel.launched_pid)
    kernel.restart()
    assert kernel.run("kept").error.ename == "NameError"
    assert kernel.launched_pid != pid and not alive(pid)
    assert command_of(kernel.launched_pid) == command
    assert run_of(kernel) != run


def test_after_a_death_the_next_kernel_knows_the_run_before(provisioned):
    kernel = provisioned("300M")
    command, run = command_of(kernel.launched_pid), run_of(kernel)
    assert kernel.run("import ctypes; ctypes.string_at(0)").status == "died"
    kernel.wait_for_restart()
    assert command_of(kernel.launched_pid) == command
    next_run = run_of(kernel)
    kernel.shutdown()
    assert kernel.home.explain(run)["verdict"] == "crashed"
    assert kernel.home.explain(next_run)["notebook"]["previous"] == run


def test_shutdown_leaves_no_process(provisioned):
    kernel = provisioned("300M")
    kernel.run("import subprocess; subprocess.Popen(['sleep', '600'])")
    assert len(kernel.processes()) >= 3  # supervisor, kernel, sleep
    kernel.shutdown()
    # What a kernel started may stay, as without us; the kernel and its supervisor may not.
    left = [command_of(pid) for pid in kernel.processes()]
    assert [command for command in left if command[0] != "sleep"] == []


def test_the_blocking_manager_starts_a_guarded_kernel_too(homes):
    """What nbclient, nbconvert and papermill use underneath."""
    home = homes.home()
    specs = write_spec(home.folder, budget="300M")
    manager = KernelManager(kernel_name="python3", kernel_spec_manager=specs,
                            connection_file=str(home.folder / "runtime" / "kernel.json"))
    manager.start_kernel(env=home.environment(), cwd=str(home.folder))
    try:
        assert command_of(manager.provisioner.pid)[:2] == [PROGRAM, "run"]
        client = manager.blocking_client()
        client.start_channels()
        client.wait_for_ready(timeout=HANG_S)
        reply = client.execute_interactive("1 + 1", timeout=HANG_S)
        assert reply["content"]["status"] == "ok"
        client.stop_channels()
    finally:
        manager.shutdown_kernel(now=True)


# The server: the provisioner is its default, and Debian's own kernelspec is used as it is


def server_environment(home, **more):
    return home.environment({"PYTHONPATH": str(BUILD / "python"), **more})


by_variable = pytest.param(
    [PYTHON, "-m", "jupyter_server"], {"JUPYTER_DEFAULT_PROVISIONER_NAME": "plimsoll-provisioner"},
    id="jupyter-server-by-variable")
by_configuration = pytest.param(
    [PYTHON, "-m", "notebook",
     "--KernelProvisionerFactory.default_provisioner_name=plimsoll-provisioner",
     "--PlimsollProvisioner.budget=300M"], {}, id="notebook-by-configuration")


@pytest.mark.parametrize("command, variables", [by_variable, by_configuration])
def test_a_server_guards_every_kernel(homes, command, variables):
    home = homes.home()
    before = (PLAIN_SPECS / "python3" / "kernel.json").read_bytes()
    spec = json.loads(before)
    with serving(command, server_environment(home, **variables), home.folder) as server:
        kernel = server.start_kernel()
        parent = eval(server.run(kernel, PARENT).text)
        assert parent[:3] == [PROGRAM, "run", "--kernel"]
        assert pathlib.Path(parent[3]).parent == home.folder / "runtime"
        assert ("--budget" in parent) == ("notebook" in command)
        assert parent[parent.index("--") + 1:][:-1] == spec["argv"][:-1]

        assert server.run(kernel, "import ctypes; ctypes.string_at(0)").status == "died"
        assert eval(server.run(kernel, PARENT).text) == parent
        server.end_kernel(kernel)
    assert home.explain()["notebook"]["previous"]
    assert (PLAIN_SPECS / "python3" / "kernel.json").read_bytes() == before


def test_a_killed_server_leaves_no_kernel(homes):
    """ipykernel ends when the process that started it is gone: behind a supervisor too."""
    home = homes.home()
    variables = {"JUPYTER_DEFAULT_PROVISIONER_NAME": "plimsoll-provisioner"}
    with serving([PYTHON, "-m", "jupyter_server"], server_environment(home, **variables),
                 home.folder) as server:
        pids = "import os; print(os.getpid(), os.getppid())"
        kernel, supervisor = map(int, server.run(server.start_kernel(), pids).stdout.split())
        try:
            os.kill(server.process.pid, signal.SIGKILL)
            wait_until(lambda: not alive(kernel) and not alive(supervisor), "both to end")
        finally:
            for pid in filter(alive, (kernel, supervisor)):
                os.kill(pid, signal.SIGKILL)
