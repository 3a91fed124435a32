# SPDX-License-Identifier: Apache-2.0
"""What every test of `plimsoll run` needs: the build, records of its own, programs, cgroups.

A timeout here only protects against a hang; no test judges speed.
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import textwrap

import pytest

from support import (  # noqa: F401: tests import these from here
    BUILD, HANG_S, MIB, PLIMSOLL, PYTHON, ROOT, alive, cgroup, need_plimsoll, state_of, wait_until,
)

PROGRAMS = ROOT / "tests" / "programs"
C_FLAGS = [
    "-g", "-O1", "-D_GNU_SOURCE", "-pthread", "-Wall", "-Wextra", "-Werror",
    # malloc and friends as functions: a compiler that knows them removes calls and errno checks.
    "-fno-builtin",
]


def pytest_configure():
    need_plimsoll()


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


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    """Compiles tests/programs/NAME.c or .cc on demand, and returns its path."""
    folder = tmp_path_factory.mktemp("programs")

    def compile(name, static=False, musl=False):
        source = next(p for p in (PROGRAMS / f"{name}.c", PROGRAMS / f"{name}.cc") if p.exists())
        target = folder / (name + "_static" * static + "_musl" * musl)
        if not target.exists():
            compiler = "g++" if source.suffix == ".cc" else "musl-gcc" if musl else "gcc"
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
