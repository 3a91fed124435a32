# SPDX-License-Identifier: Apache-2.0
"""Files, descriptors, arguments and clocks that fail: the program's status stays its own, every
failure of ours is one line, and no record is lost."""
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess

import pytest

from conftest import HANG_S, PLIMSOLL, PYTHON, wait_until

CRASH = "import ctypes\nctypes.string_at(0)\n"
KEPT_RUNS = 100  # PL_RECORD_KEEP in src/supervise/run_record.h


def is_one_line_of_ours(text):
    return text.startswith("plimsoll: ") and text.count("\n") == 1


def call(session, *argv, env=None, **options):
    """`plimsoll` with whatever of subprocess.run() a test needs."""
    defaults = {"stdin": subprocess.DEVNULL, "capture_output": True, "cwd": session.folder}
    if "stdout" in options or "stderr" in options:
        defaults.pop("capture_output")
    return subprocess.run([str(PLIMSOLL), *argv], env=session.environment(env), timeout=HANG_S,
                          **{"text": True, **defaults, **options})


def only_run(session):
    runs = list((session.state / "runs").iterdir())
    assert len(runs) == 1, runs
    return runs[0]


# ---- disks ----


def test_a_disk_too_full_for_the_record(session, small_tmpfs):
    session.state = small_tmpfs("256k")
    done = call(session, "run", "--", "touch", "began")
    assert done.returncode == 125 and is_one_line_of_ours(done.stderr), done
    assert "No space left on device" in done.stderr, done
    assert not (session.folder / "began").exists()
    assert list((session.state / "runs").iterdir()) == [], "half a record was left behind"


def test_a_kernel_starts_where_its_record_has_no_room(session, small_tmpfs):
    session.state = small_tmpfs("256k")
    temporary = session.folder / "temporary"
    temporary.mkdir()
    done = call(session, "run", "--kernel", "/run/kernel-1.json", "--", "sh", "-c",
                "echo $PLIMSOLL_STATE", env={"TMPDIR": str(temporary)})
    folder = temporary / f"plimsoll-{os.geteuid()}"
    assert done.returncode == 0 and done.stdout == f"{folder}\n", done
    assert is_one_line_of_ours(done.stderr) and f"is kept in '{folder}'" in done.stderr, done
    assert list((session.state / "runs").iterdir()) == [], "half a record was left behind"
    assert len(list((folder / "runs").iterdir())) == 1 and folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("n_taken", [1, 3, 10])
@pytest.mark.parametrize("how", ["writable by others", "another user's", "a link", "a file"])
def test_a_kernels_record_goes_into_no_folder_of_others_and_the_kernel_starts(
        session, small_tmpfs, n_taken, how):
    """Whoever has its name taken in /tmp must not keep a kernel from starting."""
    session.state = small_tmpfs("256k")
    temporary = session.folder / "temporary"
    temporary.mkdir()
    names = [f"plimsoll-{os.geteuid()}{f'-{i}' if i else ''}" for i in range(10)]
    for name in names[:n_taken]:
        if how == "a link":
            (temporary / name).symlink_to(session.folder)
        elif how == "a file":
            (temporary / name).touch()
        else:
            (temporary / name).mkdir(0o700)
            (temporary / name).chmod(0o777 if how == "writable by others" else 0o700)
            if how == "another user's":
                os.chown(temporary / name, 12345, -1)
    before = {path: path.lstat().st_mtime_ns for path in temporary.iterdir()}
    folders = []
    for _ in range(2):
        done = call(session, "run", "--kernel", "/run/kernel-1.json", "--", "sh", "-c",
                    "echo $PLIMSOLL_STATE", env={"TMPDIR": str(temporary)})
        assert done.returncode == 0 and is_one_line_of_ours(done.stderr), done
        folders.append(pathlib.Path(done.stdout.strip()))
    assert {path: path.lstat().st_mtime_ns for path in before} == before
    assert all(path.parent == temporary and path not in before for path in folders)
    assert [len(list((path / "runs").iterdir())) for path in folders]
    if n_taken < 10:  # the second kernel finds the first one's record
        assert [path.name for path in folders] == [names[n_taken]] * 2
    else:
        assert all(path.stat().st_mode & 0o777 == 0o700 for path in folders)


def script_that_fills(folder):
    """Takes all the space that is left; goes on at line 7."""
    return f"""\
filler = open({str(folder / 'filler')!r}, "wb", buffering=0)
try:
    while True:
        filler.write(b"x" * 4096)
except OSError:
    pass
"""


# So that the ledger gives none of its space back at the end: PL_SLOTS, into pl_ledger_sum.n_slots.
USE_ALL_SLOTS = """\
import os, struct
with open(os.environ["PLIMSOLL_LEDGER"], "r+b") as file:
    os.pwrite(file.fileno(), struct.pack("<I", 32768), 8192 + 40)
"""


def test_a_disk_that_filled_up_has_room_for_the_report(session, small_tmpfs):
    """That of the ledger's slots that nobody used."""
    session.state = small_tmpfs("8m")
    result = session.run(script=script_that_fills(session.state) + "raise SystemExit(7)\n")
    assert result.rc == 7 and (only_run(session) / "report.json").exists(), result.text()


def test_a_disk_that_is_full_at_the_end(session, small_tmpfs):
    session.state = small_tmpfs("8m")
    script = script_that_fills(session.state) + USE_ALL_SLOTS + "raise SystemExit(7)\n"
    result = session.run(script=script)
    assert result.rc == 7 and "No space left on device" in result.stderr, result.text()
    assert result.report["exit"]["status"] == 7, "--report was on another disk"
    assert [path.name for path in only_run(session).iterdir()] == ["ledger"]
    (session.state / "filler").unlink()
    assert session.explain()["exit"]["status"] == 7


def test_a_crash_on_a_full_disk_is_told_without_its_stack(session, small_tmpfs):
    session.state = small_tmpfs("8m")
    result = session.run(script=script_that_fills(session.state) + CRASH)
    assert result.rc == 128 + signal.SIGSEGV and result.verdict == "crashed", result.text()
    assert "script.py:8" in result.report["summary"], "the Python stack is in the ledger"
    assert session.explain()["verdict"] == "crashed"


def test_a_state_folder_that_is_read_only(session, small_tmpfs):
    folder = small_tmpfs("8m")
    session.state = folder
    assert session.run("true").rc == 0
    subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
    done = call(session, "run", "--", "true")
    assert done.returncode == 125 and is_one_line_of_ours(done.stderr), done
    assert "Read-only file system" in done.stderr and "--record" in done.stderr, done
    assert session.explain()["verdict"] == "finished", "reading needs no writing"
    assert call(session, "runs").returncode == 0


def test_a_state_folder_that_is_a_file(session):
    session.state.write_text("mine")
    for argv in (["run", "--", "true"], ["runs"], ["explain"]):
        done = call(session, *argv)
        assert done.returncode == 125 and is_one_line_of_ours(done.stderr), (argv, done)
        assert "Not a directory" in done.stderr, (argv, done)
    assert session.state.read_text() == "mine"


def test_no_home(session, tmp_path):
    env = session.environment()
    for name in ("HOME", "XDG_STATE_HOME", "PLIMSOLL_STATE"):
        env.pop(name, None)

    def plimsoll(*argv):
        return subprocess.run([PLIMSOLL, *argv], env=env, capture_output=True, text=True)

    for argv in (["run", "--", "true"], ["runs"], ["explain"]):
        done = plimsoll(*argv)
        assert done.returncode == 125 and is_one_line_of_ours(done.stderr), (argv, done)
        assert "HOME is not set" in done.stderr, (argv, done)
    assert plimsoll("run", "--record", tmp_path / "record", "--", "true").returncode == 0
    assert plimsoll("explain", tmp_path / "record").returncode == 0


@pytest.mark.parametrize("place, reason", [("missing/report.json", "No such file"),
                                           ("/proc/report.json", "'/proc/report.json'"),
                                           ("state", "Is a directory"), ("/dev/full", "No space")])
def test_a_report_that_cannot_be_written(session, place, reason):
    done = call(session, "run", "--report", place, "--", "sh", "-c", "exit 3")
    assert done.returncode == 3, done
    assert [line for line in done.stderr.splitlines()
            if line.startswith("plimsoll: cannot write") and reason in line], done
    assert session.explain()["exit"]["status"] == 3


# ---- records that are changed under a run ----


def wait_for_file(path):
    return wait_until(path.exists, path)


def test_a_record_deleted_while_it_runs(session):
    go = session.folder / "go"
    process = session.start(script=f"""
        import os, pathlib, time
        pathlib.Path("began").touch()
        while not os.path.exists({str(go)!r}):
            time.sleep(0.02)
        raise SystemExit(7)
    """)
    wait_for_file(session.folder / "began")
    shutil.rmtree(only_run(session))
    go.touch()
    result = session.finish(process)
    assert result.rc == 7, result.text()
    assert "plimsoll: cannot write" in result.stderr, result.text()
    assert result.report["exit"]["status"] == 7, "the ledger is mapped, deleted or not"


# ---- pipes in the place of files ----


def test_a_record_of_pipes_is_not_waited_for(session):
    """Whoever gives somebody a record may put anything into it."""
    assert session.run("sh", "-c", "kill -SEGV $$").rc == 128 + signal.SIGSEGV
    run = only_run(session)
    names = {path.name for path in run.iterdir()} | {"report.json", "ledger", "cells"}
    kept = shutil.copytree(run, session.folder / "kept")
    for name in names:
        shutil.rmtree(run)
        shutil.copytree(kept, run)
        if name == "ledger":
            (run / "report.json").unlink()
        (run / name).unlink(missing_ok=True)
        os.mkfifo(run / name)
        for argv in ["explain", run], ["explain", "--json", run], ["runs"]:
            assert session.plimsoll(*argv).returncode in (0, 125)


@pytest.mark.parametrize("left", [0, 100, 100_000])
@pytest.mark.parametrize("ends", ["time.sleep(0.5)", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_a_ledger_that_a_program_cuts_short_does_not_end_the_supervisor(run, left, ends):
    result = run(script=f"""
        import os, signal, time
        os.truncate(os.environ["PLIMSOLL_LEDGER"], {left})
        {ends}
        """)
    # Whoever goes on may need a part of the ledger that is gone, or not.
    assert result.rc in ([128 + signal.SIGKILL] if "KILL" in ends else [0, 128 + signal.SIGBUS])
    assert result.verdict == ("failed" if result.rc else "finished")
    assert "truncated the file of its record" in result.report["summary"]


def test_a_crash_does_not_wait_for_a_pipe_of_its_files_name(run):
    result = run(script="""
        import os
        folder = os.path.dirname(os.environ["PLIMSOLL_LEDGER"])
        os.mkfifo(f"{folder}/crash.{os.getpid()}")
        os.abort()
        """)
    assert result.rc == 134 and result.verdict == "crashed"


@pytest.mark.parametrize("script", [False, True], ids=["program", "interpreter"])
def test_a_command_that_is_a_pipe_is_not_waited_for(session, script):
    os.mkfifo(session.folder / "pipe", 0o700)
    command = session.folder / "script" if script else session.folder / "pipe"
    if script:
        command.write_text(f"#!{session.folder}/pipe\n")
        command.chmod(0o700)
    result = session.run(command)
    assert result.rc == 126 and "Permission denied" in result.stderr


# ---- descriptors ----


@pytest.mark.parametrize("argv", [["runs"], ["runs", "--json"], ["explain"], ["explain", "--json"],
                                  ["budget"], ["budget", "--json"]], ids=" ".join)
def test_an_answer_that_nobody_can_read(session, argv):
    assert session.run("true").rc == 0
    with open("/dev/full", "w") as full:
        done = call(session, *argv, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 125 and is_one_line_of_ours(done.stderr), done
    closed = call(session, *argv, stdout=None, stderr=subprocess.PIPE,
                  preexec_fn=lambda: os.close(1))
    assert closed.returncode == 125 and is_one_line_of_ours(closed.stderr), closed


@pytest.mark.parametrize("which", [(0,), (1,), (2,), (0, 1, 2)], ids=str)
def test_descriptors_that_were_closed_at_the_start(session, which):
    """The program finds them as closed as without us, and no word of ours lands in a file."""

    def close_them():
        for fd in which:
            os.close(fd)

    seen = session.folder / "seen"
    script = session.script(f"""
        import os
        def is_open(fd):
            try:
                os.fstat(fd)
                return True
            except OSError:
                return False
        with open({str(seen)!r}, "w") as seen:
            seen.write(str([fd for fd in range(3) if is_open(fd) and fd != seen.fileno()]))
        import ctypes  # libffi 3.5 keeps a file open from here on
        ctypes.string_at(0)
    """)
    call(session, "run", "--", *script, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    plain = seen.read_text()
    assert plain == "[0, 1, 2]"
    done = call(session, "run", "--", *script, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, preexec_fn=close_them)
    assert done.returncode == 128 + signal.SIGSEGV
    # CPython opens /dev/null for none of them: what it finds is what it was given.
    assert seen.read_text() == str([fd for fd in range(3) if fd not in which])
    report = session.explain()
    assert report["verdict"] == "crashed"
    for run in (session.state / "runs").iterdir():
        assert json.loads((run / "report.json").read_text())["verdict"] == "crashed"


# ---- arguments ----


def test_a_very_long_argument(session):
    text = "x" * (100 << 10)
    result = session.run(PYTHON, "-c", "import sys; print(len(sys.argv[1]))", text)
    assert result.rc == 0 and result.stdout == f"{len(text)}\n"
    command = session.explain()["command"]
    assert command[:2] == [PYTHON, "-c"] and command[-1] == "...", "it is said that more was cut"
    assert call(session, "runs").returncode == 0


def test_very_many_arguments(session):
    result = session.run(PYTHON, "-c", "import sys; print(len(sys.argv))", *range(20_000))
    assert result.rc == 0 and result.stdout == "20001\n"
    command = session.explain()["command"]
    assert command[0] == PYTHON and command[-1] == "..."


def test_arguments_that_are_not_text(session):
    done = call(session, "run", "--", b"printf", b"%s", b"\xff\xfe\x80", text=False)
    assert done.returncode == 0 and done.stdout == b"\xff\xfe\x80"
    assert session.explain()["command"] == ["printf", "%s", "\ufffd" * 3]


def test_control_characters_never_reach_the_terminal(session):
    nasty = "\033[31mred\033]0;title\007\r\n\u009b1m"
    result = session.run("sh", "-c", "kill -SEGV $$", nasty)
    assert result.rc == 128 + signal.SIGSEGV
    shown = result.stderr + call(session, "explain").stdout + call(session, "runs").stdout
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", shown), shown
    assert nasty in session.explain()["command"], "the report itself has it all, as JSON"


def test_a_working_directory_that_is_gone(session):
    gone = session.folder / "gone"
    gone.mkdir()
    done = call(session, "run", "--", "sh", "-c", "exit 7", cwd=gone, preexec_fn=gone.rmdir)
    assert done.returncode == 7, done
    assert session.explain()["exit"]["status"] == 7


# ---- many runs, and clocks ----


def copy_of_run(template, session, name):
    """As a run leaves it, but with a ledger that takes no space."""
    folder = session.state / "runs" / name
    folder.mkdir()
    for part in ("ledger", "report.json"):
        if (template / part).exists():
            os.link(template / part, folder / part)
    return folder


def test_old_runs_are_removed_and_running_ones_kept(session):
    running = session.start("sleep", "1000", options=["--quiet"])
    wait_until(lambda: call(session, "explain").returncode == 0, "a run on record")
    kept = only_run(session)
    assert session.run("true").rc == 0
    template = next(run for run in (session.state / "runs").iterdir() if run != kept)
    for i in range(1000):
        copy_of_run(template, session, f"20200101-{i:06}-{i + 1}")
    mine = session.state / "runs" / "notes"  # no run: nobody else's to remove
    mine.mkdir()
    # By the ledger's time, not by name: the copies are newer than what still runs.
    assert session.run("true").rc == 0
    left = {run.name for run in (session.state / "runs").iterdir()}
    assert kept.name in left and "notes" in left
    assert len(left - {"notes", kept.name}) == KEPT_RUNS
    assert len(json.loads(call(session, "runs", "--json").stdout)) == KEPT_RUNS + 1
    os.killpg(running.pid, signal.SIGTERM)
    session.finish(running)


def test_runs_that_begin_in_the_same_second(session):
    processes = [session.start("sh", "-c", f"exit {i}") for i in range(20)]
    assert [session.finish(process).rc for process in processes] == list(range(20))
    runs = json.loads(call(session, "runs", "--json").stdout)
    assert len({run["run"] for run in runs}) == 20


def test_a_run_folder_of_that_name_already(session, tmp_path):
    """The same second and the same pid: in another pid namespace, or after a reboot."""
    assert session.run("true").rc == 0
    template = only_run(session)
    # The shell's own pid becomes plimsoll's by exec; every second that can come is taken.
    script = f"""
        now=$(date +%s)
        for i in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14; do
            mkdir "{session.state}/runs/$(date -d @$((now + i)) +%Y%m%d-%H%M%S)-$$"
        done
        exec "{PLIMSOLL}" run -- sh -c 'exit 7'
    """
    done = subprocess.run(["sh", "-c", script], env=session.environment(), capture_output=True,
                          text=True, timeout=HANG_S)
    assert done.returncode == 7, done
    report = session.explain()
    assert report["exit"]["status"] == 7 and report["run"].endswith("-2"), report["run"]
    assert template.exists()


def header_time_at(ledger):
    """Where the ledger keeps its wall clock start: found by its value, not by a copied layout."""
    began_s = (ledger.parent.stat().st_mtime_ns // 10**9)
    data = ledger.read_bytes()[:8192]
    places = [at for at in range(0, len(data), 8)
              if abs(int.from_bytes(data[at:at + 8], "little") // 10**9 - began_s) < 60]
    return places


def test_a_clock_that_went_backwards(session):
    """The start is an hour in the future of the end: as after a correction of the clock."""
    assert session.run("sh", "-c", "exit 7").rc == 7
    run = only_run(session)
    ledger = run / "ledger"
    places = header_time_at(ledger)
    assert len(places) == 2, "the start and the end of the run"
    start, end = sorted(places, key=lambda at: ledger.read_bytes()[at:at + 8][::-1])
    later = int.from_bytes(ledger.read_bytes()[end:end + 8], "little") + 3600 * 10**9
    with open(ledger, "r+b") as file:
        file.seek(start)
        file.write(later.to_bytes(8, "little"))
    (run / "report.json").unlink()
    report = session.explain()
    assert report["verdict"] == "failed" and 0 <= report["duration_s"] < 60, report
    # It is listed as the newest, and a later one is not taken for it.
    assert session.run("true").rc == 0
    runs = json.loads(call(session, "runs", "--json").stdout)
    assert [entry["verdict"] for entry in runs] == ["failed", "finished"]


# ---- signals ----


@pytest.mark.parametrize("kib", [100, 700])
def test_a_handler_of_the_programs_own_has_the_stack_that_it_would_have(run, program, kib):
    """SA_ONSTACK without a stack: it runs on the guard's."""
    result = run(program("own_handler"), kib)
    assert result.rc == 0 and result.stdout == "3 handled\n"


def test_a_crash_in_a_child_of_vfork_leaves_the_guard_in_its_parent(run, program):
    result = run(program("vfork_crash"), 100, budget="64M")
    assert result.rc == 0 and result.stdout == f"{int(signal.SIGSEGV)} refused\n"


def test_a_parent_that_crashes_after_its_child_of_vfork_is_explained(run, program):
    result = run(program("vfork_crash"), 1, "again", budget="64M")
    assert result.rc == 128 + signal.SIGSEGV and result.verdict == "crashed"
    assert result.report["crash"]["pid"] == result.report["pid"]
    assert "crash_in_parent" in result.symbols()


# ---- long paths ----


def test_a_crash_is_explained_in_a_record_with_a_long_path(session, tmp_path):
    folder = tmp_path
    while len(str(folder)) < 700:
        folder /= "n" * 100
    folder.mkdir(parents=True)
    before = set(os.listdir("/"))
    result = session.run(PYTHON, "-c", CRASH, options=["--record", folder / "run"])
    assert result.verdict == "crashed" and result.symbols(), "the stack was not read"
    assert len(list((folder / "run").glob("crash.*"))) == 1
    assert {name for name in set(os.listdir("/")) - before if name.startswith("crash.")} == set()


# ---- descriptors ----


@pytest.mark.parametrize("n", range(4, 12))
def test_few_descriptors_are_named_as_such(session, n):
    """It runs with those that there are, or says what was missing; never that a table is full. With
    three the loader does not find our libraries."""
    done = call(session, "run", "--", "true", preexec_fn=lambda: resource.setrlimit(
        resource.RLIMIT_NOFILE, (n, n)))
    assert done.returncode in (0, 125), done
    if done.returncode == 125:
        assert is_one_line_of_ours(done.stderr) and "Too many open files" in done.stderr, done
        assert "ulimit -n" in done.stderr, done
