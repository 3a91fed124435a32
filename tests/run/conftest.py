# SPDX-License-Identifier: Apache-2.0
"""What every test of `plimsoll run` needs: the build, records of its own, programs, cgroups.

The build is $PLIMSOLL_BUILD, or `build` at the root of the source. A timeout here only protects
against a hang; no test judges speed.
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import textwrap
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests" / "programs"
BUILD = pathlib.Path(os.environ.get("PLIMSOLL_BUILD", ROOT / "build")).resolve()
PYTHON = "/usr/bin/python3"
HANG_S = 180
MIB = 1 << 20
C_FLAGS = [
    "-g", "-O1", "-D_GNU_SOURCE", "-pthread", "-Wall", "-Wextra", "-Werror",
    # malloc and friends as functions: a compiler that knows them removes calls and errno checks.
    "-fno-builtin",
]


def find_plimsoll():
    for place in ("src/cli/plimsoll", "plimsoll", "bin/plimsoll"):
        if (BUILD / place).is_file():
            return BUILD / place
    return None


PLIMSOLL = find_plimsoll()


def pytest_configure():
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


def line_of(script, mark):
    """The line number of the only line of `script` that contains `mark`."""
    lines = [i for i, text in enumerate(script.splitlines(), 1) if mark in text]
    assert len(lines) == 1, f"{len(lines)} lines contain '{mark}'"
    return lines[0]


class Result:
    """How a run ended, and what was said and written of it."""

    def __init__(self, rc, stdout, stderr, report):
        self.rc, self.stdout, self.stderr = rc, stdout, stderr
        self.report = json.loads(report.read_text()) if report.exists() else None

    @property
    def verdict(self):
        return self.report and self.report["verdict"]

    def where(self):
        """The (file name, line) of the innermost Python frame that the verdict points at."""
        frames = self.report.get("python", [])
        return (os.path.basename(frames[0]["file"]), frames[0]["line"]) if frames else None

    def symbols(self):
        return [frame.get("symbol", "") for frame in self.report.get("native", [])]

    def text(self):
        """Everything, for whoever has to find out why a test failed."""
        report = {k: v for k, v in (self.report or {}).items() if k not in ("timeline", "sites")}
        parts = {"stdout": self.stdout[-3000:], "stderr": self.stderr[-5000:],
                 "report": json.dumps(report, indent=1)[:6000]}
        return f"rc {self.rc}" + "".join(f"\n--- {name}\n{text}" for name, text in parts.items())


class Session:
    """`plimsoll` with a state folder of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.state = folder / "state"
        self.n_runs = 0
        self.started = []

    def environment(self, extra=None):
        env = {k: v for k, v in os.environ.items() if not k.startswith("PLIMSOLL_")}
        env.pop("MEM_LIMIT", None)
        env.update(PLIMSOLL_STATE=str(self.state), PYTHONPATH=str(PROGRAMS),
                   PYTHONDONTWRITEBYTECODE="1", OPENBLAS_NUM_THREADS="2", OMP_NUM_THREADS="2")
        env.update(extra or {})
        return env

    def script(self, text, name="script.py"):
        """Writes a Python script and returns the command that runs it."""
        path = self.folder / name
        path.write_text(textwrap.dedent(text))
        return [PYTHON, str(path)]

    def command(self, *argv, budget=None, script=None, options=()):
        """The whole command line of a run, and the report file that it will write."""
        self.n_runs += 1
        report = self.folder / f"report-{self.n_runs}.json"
        line = [str(PLIMSOLL), "run", "--report", str(report)]
        line += ["--budget", budget] if budget else []
        line += [*options, "--"]
        line += self.script(script) if script else []
        return line + [str(a) for a in argv], report

    def start(self, *argv, cgroup=None, env=None, budget=None, script=None, options=(), **popen):
        """Starts a run and returns its Popen, with `report` in it."""
        line, report = self.command(*argv, budget=budget, script=script, options=options)
        return self.popen(line, report, cgroup=cgroup, env=env, **popen)

    def popen(self, line, report, cgroup=None, env=None, **popen):
        defaults = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE,
                    "stderr": subprocess.PIPE, "text": True, "cwd": self.folder}

        def before_exec():
            # A guard that fails lets these programs eat the machine: they, not others, shall die.
            pathlib.Path("/proc/self/oom_score_adj").write_text("1000")
            if cgroup:
                cgroup.enter()

        process = subprocess.Popen(line, env=self.environment(env), start_new_session=True,
                                   preexec_fn=before_exec, **{**defaults, **popen})
        process.report = report
        self.started.append(process)
        return process

    def finish(self, process, stdin=None, timeout=HANG_S):
        try:
            stdout, stderr = process.communicate(stdin, timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            stdout, stderr = process.communicate()
            pytest.fail(f"still ran after {timeout} s:\n{stdout[-2000:]}\n{stderr[-2000:]}")
        result = Result(process.returncode, stdout, stderr, process.report)
        print(result.text())  # pytest shows it when the test fails
        return result

    def run(self, *argv, stdin=None, timeout=HANG_S, **start):
        """Runs to the end: see start()."""
        if stdin is not None:
            start["stdin"] = subprocess.PIPE
        return self.finish(self.start(*argv, **start), stdin, timeout)

    def plimsoll(self, *argv, env=None, timeout=HANG_S):
        """Any other command, as a CompletedProcess."""
        return subprocess.run([str(PLIMSOLL), *map(str, argv)], env=self.environment(env),
                              cwd=self.folder, capture_output=True, text=True, timeout=timeout)

    def explain(self, *argv):
        done = self.plimsoll("explain", "--json", *argv)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def close(self):
        """Whatever a failed test left running: each run is a session (in the kernel's sense)."""
        for process in self.started:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe:
                    pipe.close()


@pytest.fixture
def session(tmp_path):
    """A state folder of its own, and every way to call `plimsoll` in it."""
    session = Session(tmp_path)
    yield session
    session.close()


@pytest.fixture
def run(session):
    """Runs a command, or a Python `script`, to its end; returns a Result."""
    return session.run


class Cgroup:
    """A memory cgroup with a hard limit, swap included."""

    def __init__(self, folder, version):
        self.folder, self.version = folder, version

    def limit(self, n_bytes):
        if self.version == 2:
            (self.folder / "memory.max").write_text(str(n_bytes))
            swap = self.folder / "memory.swap.max"
            if swap.exists():
                swap.write_text("0")
            return
        (self.folder / "memory.limit_in_bytes").write_text(str(n_bytes))
        both = self.folder / "memory.memsw.limit_in_bytes"
        if both.exists():
            both.write_text(str(n_bytes))

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

    def kill_all(self):
        for pid in self.pids():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def remove(self):
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
    root = memory_cgroup_root()
    if isinstance(root, str):
        pytest.skip(root)
    made = []

    def make(limit_bytes):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="plimsoll-test-", dir=root[0]))
        made.append(Cgroup(folder, root[1]))
        made[-1].limit(limit_bytes)
        return made[-1]

    yield make
    for group in made:
        group.remove()


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    """Compiles tests/programs/NAME.c or .cc on demand, and returns its path."""
    folder = tmp_path_factory.mktemp("programs")

    def compile(name, static=False):
        source = next(p for p in (PROGRAMS / f"{name}.c", PROGRAMS / f"{name}.cc") if p.exists())
        target = folder / (f"{name}_static" if static else name)
        if not target.exists():
            compiler = "g++" if source.suffix == ".cc" else "gcc"
            flags = C_FLAGS + (["-static"] if static else [])
            subprocess.run([compiler, *flags, str(source), "-o", str(target)], check=True)
        return target

    return compile


@pytest.fixture
def small_tmpfs(tmp_path):
    """Mounts a tmpfs of a few bytes: small_tmpfs("1m") -> folder. Needs root."""
    if os.geteuid() != 0:
        pytest.skip("mounting a tmpfs needs root")
    made = []

    def mount(size):
        folder = tmp_path / f"tmpfs-{len(made)}"
        folder.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
        made.append(folder)
        return folder

    yield mount
    for folder in made:
        subprocess.run(["umount", folder], check=True)


@pytest.fixture
def open_folder():
    """A folder that another user may enter: pytest's own are for one user only."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="plimsoll-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)
