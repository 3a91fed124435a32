# SPDX-License-Identifier: Apache-2.0
"""What tests of more than one folder need: the build, processes, memory cgroups.

The build is $PLIMSOLL_BUILD, or `build` at the root of the source. A timeout here only protects
against a hang; no test judges speed.
"""
import os
import pathlib
import signal
import tempfile
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("PLIMSOLL_BUILD", ROOT / "build")).resolve()
PYTHON = "/usr/bin/python3"
HANG_S = 180
MIB = 1 << 20


def find_plimsoll():
    for place in ("src/cli/plimsoll", "plimsoll", "bin/plimsoll"):
        if (BUILD / place).is_file():
            return BUILD / place
    return None


PLIMSOLL = find_plimsoll()


def need_plimsoll():
    """For pytest_configure: without a build there is nothing to test."""
    if PLIMSOLL is None:
        pytest.exit(f"no plimsoll in '{BUILD}': build first, or set PLIMSOLL_BUILD", 2)


def wait_until(condition, what, timeout=HANG_S):
    """Polls until `condition()` is true, and returns its value."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    pytest.fail(f"waited {timeout} s in vain for {what}")


def state_of(pid):
    """R, S, D, T, Z ... as the kernel has it; X when there is no such process."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "X"


def alive(pid):
    """Does the process live? A zombie does not."""
    return state_of(pid) not in "ZX"


class Cgroup:
    """A memory cgroup with a hard limit, swap included."""

    def __init__(self, folder, version):
        self.folder, self.version, self.children = folder, version, []

    def limit(self, n_bytes):
        if self.version == 2:
            (self.folder / "memory.max").write_text(str(n_bytes))
            swap = self.folder / "memory.swap.max"
            if swap.exists():
                swap.write_text("0")
            return
        one, both = (self.folder / f"memory.{name}limit_in_bytes" for name in ("", "memsw."))
        files = [file for file in (one, both) if file.exists()]
        if both.exists() and n_bytes > int(both.read_text()):
            files.reverse()  # with swap is never less than without
        for file in files:
            file.write_text(str(n_bytes))

    def child(self, name):
        """A group below this one, with no limit of its own; removed with it."""
        if self.version == 2:
            (self.folder / "cgroup.subtree_control").write_text("+memory")
        folder = self.folder / name
        folder.mkdir()
        self.children.append(Cgroup(folder, self.version))
        return self.children[-1]

    def enter(self):
        """For preexec_fn: the child moves itself."""
        with open(self.folder / "cgroup.procs", "w") as procs:
            procs.write(str(os.getpid()))

    def pids(self):
        return [int(pid) for pid in (self.folder / "cgroup.procs").read_text().split()]

    def n_oom_kills(self):
        name = "memory.events" if self.version == 2 else "memory.oom_control"
        fields = dict(f.split() for f in (self.folder / name).read_text().splitlines())
        return int(fields["oom_kill"])

    def usage(self):
        name = "memory.current" if self.version == 2 else "memory.usage_in_bytes"
        return int((self.folder / name).read_text())

    def supervised(self):
        """The supervisor of a run in the group, and its command."""
        for pid in self.pids():
            children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            if os.readlink(f"/proc/{pid}/exe").endswith("/plimsoll") and children:
                return pid, int(children[0])
        raise LookupError("no supervisor")

    def overtake(self, go):
        """Has the system kill the kernel of the group, which grows once `go` is there: the limit is
        lowered in the middle of that, while the supervisor, which would lower the line, does not look."""
        supervisor, kernel = self.supervised()
        before = self.usage()
        go.touch()
        wait_until(lambda: self.usage() > before + 60 * MIB, "the kernel to grow")
        os.kill(kernel, signal.SIGSTOP)
        os.kill(supervisor, signal.SIGSTOP)
        name = "memory.max" if self.version == 2 else "memory.limit_in_bytes"
        limit = int((self.folder / name).read_text())
        self.limit(self.usage() + 20 * MIB)
        os.kill(kernel, signal.SIGCONT)
        wait_until(lambda: self.n_oom_kills() >= 1, "the system to kill the kernel")
        self.limit(limit)
        os.kill(supervisor, signal.SIGCONT)

    def kill_all(self):
        for pid in self.pids():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def remove(self):
        for child in self.children:
            child.remove()
        self.kill_all()
        wait_until(lambda: not self.pids(), "the cgroup to empty")
        self.folder.rmdir()


def memory_cgroup_root():
    """(folder, version) below which memory cgroups can be made, or the reason why not."""
    v1, v2 = pathlib.Path("/sys/fs/cgroup/memory"), pathlib.Path("/sys/fs/cgroup")
    if (v1 / "memory.limit_in_bytes").exists():
        return (v1, 1) if os.access(v1, os.W_OK) else f"'{v1}' is not writable"
    control = v2 / "cgroup.subtree_control"
    if not control.exists():
        return "no memory cgroup controller is mounted"
    try:
        if "memory" not in control.read_text().split():
            control.write_text("+memory")
        return v2, 2
    except OSError as error:
        return f"'{control}': {error.strerror}"


@pytest.fixture
def cgroup():
    """Makes memory cgroups: cgroup(limit_bytes) -> Cgroup."""
    made = []

    def make(limit_bytes):
        root = memory_cgroup_root()
        if isinstance(root, str):
            pytest.skip(root)
        folder = pathlib.Path(tempfile.mkdtemp(prefix="plimsoll-test-", dir=root[0]))
        made.append(Cgroup(folder, root[1]))
        made[-1].limit(limit_bytes)
        return made[-1]

    yield make
    for group in made:
        group.remove()
