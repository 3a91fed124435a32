# SPDX-License-Identifier: Apache-2.0
"""`plimsoll run --kernel`: a notebook's kernel, which knows the run before it.

What a user of a notebook sees of it is tested in tests/notebook.
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

from conftest import HANG_S, MIB, PLIMSOLL, PROGRAMS, PYTHON, alive, wait_until

SHOW = """
import json, os, sys
ours = ("PLIMSOLL_", "PYTHONPATH", "OMP_", "OPENBLAS_", "MKL_", "NUMEXPR_")
env = {name: value for name, value in os.environ.items() if name.startswith(ours)}
print(json.dumps({"argv": sys.argv[1:], "env": env}), flush=True)
"""
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_MAX_THREADS")
EXTENSION = "--ext=plimsoll.notebook"


class Shown:
    """What a command saw: its arguments and environment; and the run's result."""

    def __init__(self, result):
        self.result = result
        seen = json.loads(result.stdout)
        self.argv, self.env = seen["argv"], seen["env"]

    @property
    def run(self):
        return os.path.basename(os.path.dirname(self.env["PLIMSOLL_LEDGER"]))


@pytest.fixture
def show(session):
    """Runs a command that shows what it sees; `without` names variables that it shall not have."""

    def start(*argv, kernel="/run/kernel-1.json", env=None, without=(), plimsoll=None, **popen):
        options = ["--kernel", kernel] if kernel else []
        line, report = session.command(PYTHON, "-c", SHOW, *argv, options=options)
        line[0] = str(plimsoll or PLIMSOLL)
        less = [word for name in ("CPU_LIMIT", "JPY_SESSION_NAME", *without)
                if name not in (env or {}) for word in ("-u", name)]
        process = session.popen(["env", *less, *line], report, env=env, **popen)
        result = session.finish(process)
        assert result.rc == 0
        return Shown(result)

    return start


def report_of(session, shown):
    return session.explain(shown.run)


# ---- the extension ----


@pytest.mark.parametrize("argv", [
    ("-m", "ipykernel_launcher", "-f", "k.json"),
    ("-m", "ipykernel", "-f", "k.json"),
    ("/opt/env/lib/ipykernel_launcher.py", "-f", "k.json"),
    ("ipykernel_launcher.py",),
])
def test_an_ipython_kernel_gets_the_extension(show, argv):
    shown = show(*argv)
    assert shown.argv == [*argv, EXTENSION]
    folder = pathlib.Path(shown.env["PLIMSOLL_PYTHON_FOLDER"])
    assert (folder / "plimsoll" / "notebook" / "__init__.py").is_file()
    assert shown.env["PYTHONPATH"].split(":")[0] == str(folder)
    assert shown.result.stderr == ""


@pytest.mark.parametrize("argv", [
    (), ("-m", "bash_kernel", "-f", "k.json"), ("-m", "ipykernel_launcher_of_mine"), ("ipykernel",),
    ("my_ipykernel_launcher.py",), ("--file=ipykernel_launcher.py.json",),
])
def test_another_kernel_is_started_as_it_is(show, argv):
    shown = show(*argv)
    assert shown.argv == list(argv) and shown.env["PYTHONPATH"] == str(PROGRAMS)
    assert "PLIMSOLL_PYTHON_FOLDER" not in shown.env and shown.result.stderr == ""
    assert os.path.samefile(shown.env["PLIMSOLL_PROGRAM"], PLIMSOLL)


def test_a_run_without_kernel_knows_nothing_of_notebooks(show, session):
    first = show(kernel="/run/kernel-1.json")
    shown = show("-m", "ipykernel_launcher", kernel=None, env={"CPU_LIMIT": "0.5"},
                 without=["MKL_NUM_THREADS"])
    assert shown.argv == ["-m", "ipykernel_launcher"]
    added = {name for name in shown.env if name.startswith("PLIMSOLL_")}
    assert added == {"PLIMSOLL_STATE", "PLIMSOLL_LEDGER"} and "MKL_NUM_THREADS" not in shown.env
    assert "notebook" not in report_of(session, shown) and "notebook" in report_of(session, first)


@pytest.mark.parametrize("before", [None, "", "/a:/b"])
def test_the_search_path_of_python_is_kept_for_the_extension_to_restore(show, before):
    env = {} if before is None else {"PYTHONPATH": before}
    shown = show("-m", "ipykernel_launcher", env=env, without=["PYTHONPATH"])
    folder = shown.env["PLIMSOLL_PYTHON_FOLDER"]
    assert shown.env["PYTHONPATH"] == (f"{folder}:{before}" if before else folder)
    assert shown.env.get("PLIMSOLL_PYTHONPATH") == before


def test_the_command_on_record_is_the_users(show, session):
    shown = show("-m", "ipykernel_launcher")
    assert report_of(session, shown)["command"][-2:] == ["-m", "ipykernel_launcher"]


def copy_program(folder):
    """The program and its guard alone, as someone might copy them."""
    folder.mkdir(parents=True)
    guard = next(p for p in (PLIMSOLL.resolve().parent.parent / "guard", PLIMSOLL.parent)
                 if (p / "libplimsoll-guard.so").exists())
    shutil.copy(guard / "libplimsoll-guard.so", folder)
    return shutil.copy(PLIMSOLL.resolve(), folder / "plimsoll")


def test_without_the_python_package_a_kernel_is_started_with_one_line_of_warning(show, tmp_path):
    lone = copy_program(tmp_path / "lone" / "bin")
    shown = show("-m", "ipykernel_launcher", plimsoll=lone,
                 env={"PLIMSOLL_PYTHON_FOLDER": "/old", "PLIMSOLL_PYTHONPATH": "/old"})
    assert shown.argv == ["-m", "ipykernel_launcher"]
    assert shown.env["PYTHONPATH"] == str(PROGRAMS)
    assert not {"PLIMSOLL_PYTHON_FOLDER", "PLIMSOLL_PYTHONPATH"} & set(shown.env)
    assert shown.result.stderr == (
        "plimsoll: cannot find the Python package 'plimsoll' beside the program: the kernel runs"
        " without %plimsoll, and its cells are not recorded\n")


def test_the_package_is_found_where_it_is_installed(show, tmp_path):
    installed = copy_program(tmp_path / "prefix" / "bin")
    folder = tmp_path / "prefix" / "lib" / "plimsoll" / "python"
    (folder / "plimsoll").mkdir(parents=True)
    (folder / "plimsoll" / "__init__.py").touch()
    shown = show("-m", "ipykernel_launcher", plimsoll=installed)
    assert shown.env["PLIMSOLL_PYTHON_FOLDER"] == str(folder)
    assert shown.env["PLIMSOLL_PROGRAM"] == str(installed)


def test_a_real_kernel_loads_it_and_shows_its_cells_nothing_of_how(session):
    """ipykernel and jupyter_client themselves, as a server would start and ask them."""
    from jupyter_client import BlockingKernelClient as client_of, connect
    file, _ = connect.write_connection_file(str(session.folder / "kernel-7.json"))
    process = session.start(PYTHON, "-m", "ipykernel_launcher", "-f", file,
                            options=["--kernel", file],
                            env={"HOME": str(session.folder), "IPYTHONDIR": str(session.folder)})
    client = client_of(connection_file=file)
    client.load_connection_file()
    client.start_channels()
    try:
        # Not wait_for_ready(): without a manager it takes a kernel that is slow to start for dead.
        expressions = {
            "loaded": "'plimsoll.notebook' in __import__('sys').modules",
            "left": "sorted(n for n in __import__('os').environ if n.startswith('PLIMSOLL_P'))",
            "path": "__import__('os').environ['PYTHONPATH']",
        }
        reply = client.execute("", user_expressions=expressions, silent=True, reply=True,
                               timeout=HANG_S)
        seen = {name: value["data"]["text/plain"]
                for name, value in reply["content"]["user_expressions"].items()}
        assert seen == {"loaded": "True", "left": "[]", "path": repr(str(PROGRAMS))}
        client.shutdown()
        assert session.finish(process).rc == 0
    finally:
        client.stop_channels()


# ---- the kernel before this one ----


def test_a_kernel_s_run_names_the_one_before_it(show, session):
    first = show(env={"PLIMSOLL_PREVIOUS": "left by an outer kernel"})
    other = show(kernel="/run/kernel-2.json")
    second, third = show(), show()
    assert "PLIMSOLL_PREVIOUS" not in first.env and "PLIMSOLL_PREVIOUS" not in other.env
    assert second.env["PLIMSOLL_PREVIOUS"] == first.run
    assert third.env["PLIMSOLL_PREVIOUS"] == second.run
    assert report_of(session, first)["notebook"] == {"kernel": "/run/kernel-1.json"}
    assert report_of(session, third)["notebook"] == {"kernel": "/run/kernel-1.json",
                                                     "previous": second.run}


def test_a_kernel_is_the_same_by_whichever_name_its_file_is_given(show, session):
    first = show(kernel="runtime/kernel-3.json")
    file = f"{session.folder}/runtime/kernel-3.json"
    assert report_of(session, first)["notebook"]["kernel"] == file
    assert show(kernel=file).env["PLIMSOLL_PREVIOUS"] == first.run


def test_a_connection_file_with_a_very_long_path_keeps_its_name(show, session):
    folder = "/run" + "/folder" * 200
    first = show(kernel=f"{folder}/kernel-4.json")
    second = show(kernel=f"{folder}/kernel-5.json")
    assert report_of(session, first)["notebook"]["kernel"].endswith("/folder/kernel-4.json")
    assert "PLIMSOLL_PREVIOUS" not in second.env
    assert show(kernel=f"{folder}/kernel-4.json").env["PLIMSOLL_PREVIOUS"] == first.run


def test_the_notebook_is_named_where_the_server_tells_it(show, session):
    shown = show(env={"JPY_SESSION_NAME": "/home/ann/Messung Müll.ipynb"})
    assert report_of(session, shown)["notebook"]["path"] == "/home/ann/Messung Müll.ipynb"


def test_a_kernel_that_still_runs_is_not_the_one_before(show, session):
    process = session.start("sh", "-c", "echo ready; read line",
                            options=["--kernel", "/run/kernel-1.json"], stdin=subprocess.PIPE)
    assert process.stdout.readline() == "ready\n"
    assert "PLIMSOLL_PREVIOUS" not in show().env
    assert session.finish(process, stdin="\n").rc == 0


def start_kernel(session, script, **start):
    """A run of a kernel up to its first line of output, and the pid that it says there."""
    process = session.start(script=script, options=["--kernel", "/run/kernel-1.json", *start.pop(
        "options", [])], **start)
    return process, int(process.stdout.readline())


def test_a_kernel_killed_with_its_supervisor_is_named_and_explained(show, session):
    """A forced restart: Jupyter sends SIGKILL to the whole group."""
    process, pid = start_kernel(session, """
        import os, time
        print(os.getpid(), flush=True)
        time.sleep(600)
        """)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    shown = show()
    report = session.explain(shown.env["PLIMSOLL_PREVIOUS"])
    assert report["pid"] == pid and report["verdict"] == "lost"
    assert report["notebook"]["kernel"] == "/run/kernel-1.json"
    done = session.plimsoll("explain", shown.env["PLIMSOLL_PREVIOUS"])
    assert done.returncode == 0 and done.stdout, done


def test_an_oom_kill_that_took_the_supervisor_too_is_explained_from_the_record(
        show, session, cgroup):
    """As when a container is over its limit. The supervisor is stopped meanwhile, so that it has
    no part in what is said."""
    group = cgroup(200 * MIB)
    process, pid = start_kernel(session, """
        import os, sys
        print(os.getpid(), flush=True)
        sys.stdin.readline()
        kept = []
        while True:
            kept.append(b"x" * (1 << 16))
        """, cgroup=group, options=["--observe"], stdin=subprocess.PIPE)
    os.kill(process.pid, signal.SIGSTOP)
    process.stdin.write("\n")
    process.stdin.flush()
    wait_until(lambda: not alive(pid), "the OOM killer")
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    report = session.explain(show().env["PLIMSOLL_PREVIOUS"])
    assert report["pid"] == pid and report["verdict"] == "killed-for-memory"


# ---- processors and memory ----


@pytest.fixture
def two_processors():
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("with one processor there is nothing to limit")


def threads(shown):
    return {name: shown.env[name] for name in THREADS if name in shown.env}


def test_threads_follow_cpu_limit(show, two_processors):
    shown = show(env={"CPU_LIMIT": "0.5"}, without=THREADS)
    assert threads(shown) == dict.fromkeys(THREADS, "1")


def test_threads_that_the_user_chose_stay(show, two_processors):
    chosen = {"OMP_NUM_THREADS": "7", "MKL_NUM_THREADS": ""}
    shown = show(env={"CPU_LIMIT": "0.5", **chosen}, without=THREADS)
    assert threads(shown) == {**dict.fromkeys(THREADS, "1"), **chosen}


def cpu_quotas():
    """Every quota of the group that this test runs in, and of its ancestors, as the files have it:
    where only part of the hierarchy is shown, of what can be seen."""
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        path = line.split(":", 2)[2]
        for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/cpu"):
            group = pathlib.Path(root + path)
            for folder in (group, *group.parents):
                for name in ("cpu.max", "cpu.cfs_quota_us"):
                    if (folder / name).is_file():
                        yield (folder / name).read_text().split()[0]


@pytest.mark.parametrize("limit", [None, "4096", "some"])
def test_threads_are_left_alone_where_all_processors_can_be_used(show, limit):
    if set(cpu_quotas()) - {"max", "-1"}:
        pytest.skip("this machine has a quota of its own")
    shown = show(env={"CPU_LIMIT": limit} if limit else {}, without=THREADS)
    assert threads(shown) == {}


@pytest.fixture
def half_a_processor():
    """A real cgroup that may use half of one processor's time."""
    v1, v2 = pathlib.Path("/sys/fs/cgroup/cpu"), pathlib.Path("/sys/fs/cgroup")
    root = v1 if (v1 / "cpu.cfs_quota_us").exists() or (v1 / "cpu.shares").exists() else v2
    try:
        if root == v2:
            (v2 / "cgroup.subtree_control").write_text("+cpu")
        folder = pathlib.Path(tempfile.mkdtemp(prefix="plimsoll-test-", dir=root))
    except OSError as error:
        pytest.skip(f"no cpu cgroup can be made in '{root}': {error.strerror}")
    try:
        quota = folder / ("cpu.max" if root == v2 else "cpu.cfs_quota_us")
        if not quota.exists():
            pytest.skip(f"this kernel has no '{quota.name}'")
        quota.write_text("50000 100000" if root == v2 else "50000")
        yield folder
    finally:
        folder.rmdir()


def test_threads_follow_the_quota_of_a_cgroup(show, session, half_a_processor, two_processors):
    enter = 'echo $$ > "$0/cgroup.procs" && exec "$@"'
    line, report = session.command(PYTHON, "-c", SHOW, options=["--kernel", "/run/kernel-1.json"])
    less = [word for name in ("CPU_LIMIT", *THREADS) for word in ("-u", name)]
    process = session.popen(["sh", "-c", enter, str(half_a_processor), "env", *less, *line], report)
    shown = Shown(session.finish(process))
    assert threads(shown) == dict.fromkeys(THREADS, "1")


def test_mem_limit_is_the_kernel_s_true_limit(show, session):
    memory = report_of(session, show(env={"MEM_LIMIT": str(300 * MIB)}))["memory"]
    assert memory["true_limit_bytes"] == 300 * MIB and "MEM_LIMIT" in memory["true_limit_source"]
    assert memory["limit_bytes"] + memory["reserve_bytes"] == 300 * MIB


# ---- signals ----


def test_an_interrupt_reaches_a_kernel_once(session):
    """Jupyter signals the group of what it started, which the supervisor leads."""
    process, _ = start_kernel(session, """
        import os, signal, sys, time
        n = 0
        def count(*_):
            global n
            n += 1
            os.write(1, b"interrupted\\n")
        signal.signal(signal.SIGINT, count)
        print(os.getpid(), flush=True)
        while n < 20:
            time.sleep(0.01)
        sys.stdin.readline()
        print(n, flush=True)
        """, stdin=subprocess.PIPE)
    for _ in range(20):
        os.killpg(process.pid, signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
        time.sleep(0.05)  # a second one that follows at once may be taken together with the first
    result = session.finish(process, stdin="\n")
    assert result.rc == 0 and result.stdout == "20\n"


def test_a_connection_file_must_be_named(session):
    for argv in (["--kernel"], ["--kernel", "", "--", "true"]):
        done = session.plimsoll("run", *argv)
        assert done.returncode == 125 and "--kernel" in done.stderr, done
        assert done.stderr.count("\n") == 1
