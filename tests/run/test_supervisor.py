# SPDX-License-Identifier: Apache-2.0
"""The supervisor: what passes through it, what it survives, and what it says to bad input."""
import fcntl
import json
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import time

import pytest

from conftest import HANG_S, MIB, PLIMSOLL, PYTHON, alive, state_of, wait_until

# ---- status, input, output ----


@pytest.mark.parametrize("status", [0, 1, 2, 42, 100, 124, 125, 126, 127, 128, 137, 200, 254, 255])
def test_the_exit_status_is_the_programs(run, status):
    result = run("sh", "-c", f"exit {status}")
    assert result.rc == status and result.report["exit"]["status"] == status


@pytest.mark.parametrize("name", ["SIGHUP", "SIGINT", "SIGUSR1", "SIGTERM", "SIGKILL", "SIGALRM"])
def test_a_signal_is_128_and_its_number(run, name):
    result = run("sh", "-c", f"kill -{name[3:]} $$")
    assert result.rc == 128 + signal.Signals[name]
    assert result.report["exit"]["signal"] == name


def test_what_cannot_be_run_is_126_and_what_is_not_there_127(session, tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("echo no\n")
    for command, status in ((tmp_path, 126), (plain, 126), ("no-such-program", 127),
                            (tmp_path / "missing", 127)):
        done = session.plimsoll("run", "--", command)
        assert done.returncode == status, (command, done)
        assert done.stderr.startswith("plimsoll: ") and done.stderr.count("\n") == 1, done
        assert str(command) in done.stderr, done


def test_input_and_output_pass_through(run):
    text = "".join(f"line {i}\n" for i in range(20_000))
    result = run("sh", "-c", "cat; echo end >&2", stdin=text)
    assert result.rc == 0 and result.stdout == text and "end\n" in result.stderr


def test_arguments_and_environment_pass_through(session):
    script = session.script(
        "import os, sys\nprint(sys.argv[1:], os.environ['COLOUR'], os.getcwd())")
    arguments = ["--budget", "", "a b", "--", "é\n"]
    result = session.run(*script, *arguments, env={"COLOUR": "blue"})
    assert result.stdout == f"{arguments} blue {session.folder}\n"


def test_no_descriptor_of_ours_leaks_into_the_program(run):
    result = run("ls", "-l", "/proc/self/fd")
    open_fds = [line.split()[-3] for line in result.stdout.splitlines() if "->" in line]
    # 3 is the folder that ls itself reads.
    assert open_fds == ["0", "1", "2", "3"]


def test_signal_settings_pass_through(run):
    """Nothing is left blocked or ignored by the supervisor."""
    result = run("grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status")
    plain = subprocess.run(["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"],
                           capture_output=True, text=True)
    assert result.stdout == plain.stdout


# ---- signals ----

INTERRUPTED = """
import sys, time
try:
    print("ready", flush=True)
    time.sleep(600)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(7)
"""


def test_an_interrupt_to_the_group_is_the_programs_to_handle(session):
    process = session.start(script=INTERRUPTED)
    assert process.stdout.readline() == "ready\n"
    os.killpg(process.pid, signal.SIGINT)
    result = session.finish(process)
    assert result.rc == 7 and result.stdout == "interrupted\n"
    assert result.verdict == "failed"


def test_many_interrupts_do_not_end_the_supervisor(session):
    """A notebook kernel ignores them between cells."""
    process = session.start(script="""
        import signal, sys, time
        n = 0
        def count(*_):
            global n
            n += 1
        signal.signal(signal.SIGINT, count)
        print("ready", flush=True)
        while n < 1:
            time.sleep(0.01)
        sys.stdin.readline()
        sys.exit(5)
        """, stdin=-1)
    assert process.stdout.readline() == "ready\n"
    for _ in range(5):
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.02)
    assert session.finish(process, stdin="\n").rc == 5


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_to_the_supervisor_is_passed_on(session, name):
    process = session.start("sh", "-c", f"trap 'echo got; exit 9' {name[3:]}; echo ready;"
                            " while :; do sleep 0.05; done")
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.Signals[name])
    result = session.finish(process)
    assert result.rc == 9 and result.stdout == "got\n"


@pytest.mark.parametrize("name", ["SIGINT", "SIGQUIT", "SIGUSR1", "SIGUSR2"])
def test_what_is_sent_to_groups_is_passed_on_by_one_that_leads_none(session, name):
    """A group's leader takes these for the whole group's, and the program has them already."""
    line, report = session.command(
        "sh", "-c", f"trap 'echo got; exit 9' {name[3:]}; echo ready;"
        " while :; do sleep 0.05; done")
    leader = ("import subprocess, sys\nchild = subprocess.Popen(sys.argv[1:])\n"
              "print(child.pid, flush=True)\nsys.exit(child.wait())")
    process = session.popen([PYTHON, "-c", leader, *line], report)
    pid, ready = sorted((process.stdout.readline(), process.stdout.readline()))  # in whatever order
    supervisor = int(pid)
    assert ready == "ready\n"
    assert os.getpgid(supervisor) != supervisor
    os.kill(supervisor, signal.Signals[name])
    result = session.finish(process)
    assert result.rc == 9 and result.stdout == "got\n"


def test_a_signal_that_was_passed_on_and_kills_is_told_as_such(session):
    process = session.start("sh", "-c", "echo ready; exec sleep 600")
    assert process.stdout.readline() == "ready\n"
    process.terminate()
    result = session.finish(process)
    assert result.rc == 128 + signal.SIGTERM and result.verdict == "killed"


def test_orphans_are_reaped(run):
    result = run(script="""
        import os, time
        read, write = os.pipe()
        middle = os.fork()
        if middle == 0:
            middle = os.getpid()
            orphan = os.fork()
            if orphan == 0:
                while os.getppid() == middle:
                    time.sleep(0.01)
                os._exit(0)
            os.write(write, str(orphan).encode())
            os._exit(0)
        os.waitpid(middle, 0)
        orphan = os.read(read, 20).decode()
        end = time.monotonic() + 60
        while os.path.exists(f"/proc/{orphan}") and time.monotonic() < end:
            time.sleep(0.01)
        print(os.path.exists(f"/proc/{orphan}"))
        """)
    assert result.rc == 0 and result.stdout == "False\n"


def test_an_orphan_belongs_to_the_supervisor(session):
    process = session.start("sh", "-c", "(sh -c 'echo $$; exec sleep 600' &) ; exec sleep 600")
    orphan = int(process.stdout.readline())

    def parent():
        with open(f"/proc/{orphan}/stat") as stat:
            return int(stat.read().rsplit(")", 1)[1].split()[1])

    wait_until(lambda: parent() == process.pid, "the orphan to be adopted")
    os.kill(orphan, signal.SIGKILL)
    wait_until(lambda: not os.path.exists(f"/proc/{orphan}"), "the orphan to be reaped")
    process.terminate()
    session.finish(process)


def test_the_end_of_the_program_is_the_end_of_the_run(session):
    """A daemon that it left behind does not hold up its status."""
    process = session.start("sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $!; exit 4")
    left = int(process.stdout.readline())
    try:
        assert session.finish(process).rc == 4
    finally:
        if alive(left):
            os.kill(left, signal.SIGKILL)


# ---- a terminal ----


class Terminal:
    """A program in a pseudo-terminal of its own."""

    def __init__(self, argv, env):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(argv[0], argv, env)
        self.seen = ""

    def expect(self, text, again=None):
        """Reads until `text` appears; returns what came before it and drops both. `again` is typed
        each second until then: a signal that arrives just before a read() does not end it."""
        end = time.monotonic() + HANG_S
        while text not in self.seen:
            ready, _, _ = select.select([self.fd], [], [], 1)
            if not ready and time.monotonic() < end:
                self.type(again or "")
                continue
            try:
                data = os.read(self.fd, 4096) if ready else b""
            except OSError:
                data = b""
            assert data, f"'{text}' did not come; seen: {self.seen!r}"
            self.seen += data.decode()
        before, self.seen = self.seen.split(text, 1)
        return before

    def type(self, text):
        os.write(self.fd, text.encode())

    def close(self):
        if alive(self.pid):
            os.kill(self.pid, signal.SIGKILL)
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


@pytest.fixture
def terminal(session):
    opened = []

    def start(*argv, **env):
        env = session.environment({"TERM": "xterm", "PS1": "prompt> ", "HOME": str(session.folder),
                                   **env})
        opened.append(Terminal([str(a) for a in argv], env))
        return opened[-1]

    yield start
    for each in opened:
        each.close()


def test_job_control(session, terminal):
    """Stop with Ctrl-Z, do something else, continue in the foreground, interrupt with Ctrl-C."""
    script = session.script("""
        import os, sys
        print("pid", os.getpid(), "name?", flush=True)
        print("hello", sys.stdin.readline().strip(), flush=True)
        try:
            print("again?", flush=True)
            sys.stdin.readline()
        except KeyboardInterrupt:
            sys.exit(7)
        """)
    shell = terminal("/bin/bash", "--norc", "--noprofile", "-i")
    shell.expect("prompt> ")
    shell.type(f"{PLIMSOLL} run --quiet -- {' '.join(script)}\n")
    shell.expect("pid ")
    pid = int(shell.expect("name?"))
    shell.type("\x1a")
    shell.expect("Stopped")
    shell.expect("prompt> ")
    # The shell has seen only its own child stop. Whoever still wakes from a read() takes what is
    # typed now: measured with plain sh in our place too, 21 times in 300.
    wait_until(lambda: state_of(pid) == "T", "the program to stop")
    shell.type("echo $((6 * 7))\n")
    shell.expect("42")
    shell.expect("prompt> ")
    shell.type("fg\n")
    shell.expect("run --quiet")
    shell.type("world\n")
    shell.expect("hello world")
    shell.expect("again?")
    shell.expect("prompt> ", again="\x03")
    shell.type("echo status $?\n")
    shell.expect("status 7")


def test_the_program_has_the_terminal(terminal):
    run = terminal(PLIMSOLL, "run", "--quiet", "--", "sh", "-c",
                   "test -t 0 && test -t 1 && test -t 2 && stty size && ps -o stat= -p $$")
    assert "+" in run.expect("\r\n") + run.expect("\r\n"), "it is in the foreground"


def test_no_color_is_heeded_on_a_terminal(session, terminal):
    refused = session.script("import numpy as np\nnp.ones(400 << 20, dtype=np.uint8)\n")
    run = terminal(PLIMSOLL, "run", "--budget", "200M", "--", *refused, NO_COLOR="1")
    said = run.expect("MemoryError") + run.expect("plimsoll: ") + run.expect("\r\n")
    assert "\x1b[" not in said


# ---- what is said ----


def test_a_run_that_finished_says_nothing(run):
    result = run("true")
    assert result.stderr == ""


def test_quiet_says_nothing_of_a_death_and_the_record_all(session, program):
    result = session.run(program("null_read"), options=["--quiet"])
    assert result.rc == 139 and result.stderr == ""
    assert result.verdict == "crashed" and session.explain()["verdict"] == "crashed"


def test_explain_and_runs_in_json(session):
    for status in (0, 3):
        session.run("sh", "-c", f"exit {status}")
    done = session.plimsoll("runs", "--json")
    assert done.returncode == 0, done
    runs = json.loads(done.stdout)
    assert [r["verdict"] for r in runs] == ["failed", "finished"], "newest first"
    for each in runs:
        assert session.explain(each["run"])["run"] == each["run"]
    listed = session.plimsoll("runs")
    assert listed.returncode == 0 and all(r["run"] in listed.stdout for r in runs), listed


@pytest.mark.parametrize("asked, variable, line", [
    (None, "100M", 100), ("50M", "100M", 50), ("50M", "nonsense", 50), ("50M", None, 50)])
def test_the_variable_is_the_budget_where_none_is_given(session, asked, variable, line):
    env = {"PLIMSOLL_BUDGET": variable} if variable else {}
    result = session.run("sh", "-c", "echo \"${PLIMSOLL_BUDGET-none}\"", budget=asked, env=env)
    assert result.report["memory"]["limit_bytes"] == line * MIB
    # What holds is also what a run inside of the run, and the runtime, begin with.
    assert result.stdout == ("none" if variable is None else asked or variable) + "\n"
    arguments = ["--budget", asked] if asked else []
    shown = json.loads(session.plimsoll("budget", "--json", *arguments, env=env).stdout)
    assert shown["line_bytes"] == line * MIB
    detail = shown["sources"][shown["decisive"]]["detail"]
    assert detail == (f"--budget {asked}" if asked else f"environment: PLIMSOLL_BUDGET={variable}")


def test_a_variable_that_is_no_budget_is_named(session):
    for command in (["run", "--", "true"], ["budget"]):
        done = session.plimsoll(*command, env={"PLIMSOLL_BUDGET": "lots"})
        assert done.returncode == 125
        assert done.stderr.startswith("plimsoll: with PLIMSOLL_BUDGET=lots: 'lots' is not a size")
    done = session.plimsoll("run", "--", "true", env={"PLIMSOLL_BUDGET": ""})
    assert done.returncode == 0


def test_a_run_inside_of_a_run_has_the_same_budget_by_default(session, tmp_path):
    inner = tmp_path / "inner.json"
    result = session.run(PLIMSOLL, "run", "--report", inner, "--", "true", budget="60M",
                         env={"PLIMSOLL_BUDGET": "100M"})
    assert result.rc == 0
    assert json.loads(inner.read_text())["memory"]["limit_bytes"] == 60 * MIB


def test_a_run_is_found_by_the_pid_of_any_process_that_it_knows(session):
    script = """
        import os, sys
        child = os.fork()
        if child == 0:
            sys.stdin.readline()
            block = bytearray(30 << 20)
            try:
                bytearray(500 << 20)
            except MemoryError:
                os._exit(0)
        print(child, flush=True)
        os.waitpid(child, 0)
        """
    process = session.start(script=script, budget="300M", stdin=subprocess.PIPE)
    child = process.stdout.readline().strip()
    live = session.explain(child)
    assert live["verdict"] == "running" and str(live["pid"]) != child
    assert json.loads(session.plimsoll("top", "--json", child).stdout)["run"] == live["run"]
    result = session.finish(process, "go\n")
    assert result.verdict == "finished-after-refusals"
    for _ in range(2):
        session.run("true")
    assert session.explain(child)["run"] == live["run"]
    assert session.explain(live["pid"])["run"] == live["run"]
    one_line_error(session.plimsoll("explain", "4194305"),
                   "no recorded run is named '4194305' or had a process with that pid")


def test_no_runs_yet(session):
    assert json.loads(session.plimsoll("runs", "--json").stdout) == []
    done = session.plimsoll("explain")
    assert done.returncode == 125 and done.stderr.count("\n") == 1, done


def test_a_record_of_ones_own(session, tmp_path):
    folder = tmp_path / "here"
    result = session.run("true", options=["--record", folder])
    assert result.rc == 0 and (folder / "ledger").is_file()
    assert session.explain(folder)["verdict"] == "finished"
    assert json.loads(session.plimsoll("runs", "--json").stdout) == [], "it is not listed"


def test_the_supervisor_stays_small(session):
    """Under 8 MiB of memory of its own, also with 50 processes below it."""
    process = session.start("sh", "-c", "for i in $(seq 50); do sleep 600 & done; echo ready; wait")
    assert process.stdout.readline() == "ready\n"
    time.sleep(1)
    with open(f"/proc/{process.pid}/smaps_rollup") as rollup:
        fields = dict(line.split(":", 1) for line in rollup if ":" in line)
    own_kib = sum(int(fields[f].split()[0]) for f in ("Private_Dirty", "Private_Clean"))
    assert own_kib < 8 * 1024
    os.killpg(process.pid, signal.SIGTERM)
    session.finish(process)


# ---- bad input ----


def one_line_error(done, *words, status=125):
    assert done.returncode == status, done
    assert done.stdout == "" and done.stderr.count("\n") == 1, done
    assert done.stderr.startswith("plimsoll: "), done
    for word in words:
        assert word in done.stderr, done


@pytest.mark.parametrize("size", ["", "0", "abc", "-5M", "12Q", "1.2.3G", " 5M", "0%", "150%",
                                  "99999999999999999999G", "nan"])
@pytest.mark.parametrize("option", ["--budget", "--reserve"])
def test_a_size_that_is_none(session, option, size):
    one_line_error(session.plimsoll("run", f"{option}={size}", "--", "true"), f"'{size}'")


@pytest.mark.parametrize("arguments, word", [
    (["run"], "command"),
    (["run", "--"], "command"),
    (["run", "--budget", "1G"], "command"),
    (["run", "--no-such-option", "--", "true"], "--no-such-option"),
    (["run", "--budget"], "--budget"),
    (["run", "--hang-after", "soon", "--", "true"], "soon"),
    (["explain", "no-such-run"], "no-such-run"),
    (["explain", "--no-such-option"], "--no-such-option"),
    (["runs", "--no-such-option"], "--no-such-option"),
    (["no-such-command"], "no-such-command"),
])
def test_a_command_line_that_is_wrong(session, arguments, word):
    one_line_error(session.plimsoll(*arguments), word)


def test_a_record_folder_that_cannot_be_written(session, tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    # Below a plain file: not even root can make it.
    one_line_error(session.plimsoll("run", "--record", file / "run", "--", "touch",
                                    tmp_path / "ran"), str(file))
    done = session.plimsoll("run", "--", "touch", tmp_path / "ran",
                            env={"PLIMSOLL_STATE": str(file / "state")})
    one_line_error(done, str(file))
    assert not (tmp_path / "ran").exists(), "nothing was run"


def test_a_record_folder_that_holds_a_run_already(session, tmp_path):
    assert session.plimsoll("run", "--record", tmp_path / "once", "--", "true").returncode == 0
    one_line_error(session.plimsoll("run", "--record", tmp_path / "once", "--", "true"), "once")


def test_a_report_that_cannot_be_written_does_not_change_the_status(session, tmp_path):
    done = session.plimsoll("run", "--report", tmp_path / "no" / "such" / "r.json", "--", "sh",
                            "-c", "exit 3")
    assert done.returncode == 3 and str(tmp_path / "no") in done.stderr, done


@pytest.fixture
def record(session):
    """The folder of a finished run, without its report: only the ledger tells."""
    session.run("true")
    folder = next((session.state / "runs").iterdir())
    (folder / "report.json").unlink()
    assert session.explain(folder)["verdict"] == "finished", "the ledger alone is enough"
    (folder / "report.json").unlink(missing_ok=True)
    return folder


@pytest.mark.parametrize("keep", [0, 7, 100, 4096, 8192, 9000, -1])
def test_a_truncated_record(session, record, keep):
    ledger = record / "ledger"
    data = ledger.read_bytes()
    ledger.write_bytes(data[:keep])
    one_line_error(session.plimsoll("explain", record), str(record))


def test_a_corrupt_record(session, record):
    ledger = record / "ledger"
    data = bytearray(ledger.read_bytes())
    data[:8] = b"nonsense"
    ledger.write_bytes(data)
    one_line_error(session.plimsoll("explain", record), str(record))


def test_a_record_of_another_version(session, record):
    with open(record / "ledger", "r+b") as file:
        file.seek(8)
        file.write(struct.pack("<I", 999))
    one_line_error(session.plimsoll("explain", record), "version")


def test_a_record_full_of_noise_is_explained_or_refused_but_never_crashes(session, record):
    """Everything behind the header's first fields is random: counts, offsets, text without end."""
    ledger = record / "ledger"
    data = ledger.read_bytes()
    for seed in range(8):
        noise = bytearray(data)
        # Repeatable, and cheap to make for megabytes.
        block = b"".join(struct.pack("<Q", (seed * 2 + 1) * 0x9e3779b97f4a7c15 * i % 2**64)
                         for i in range(1, 4096))
        start = 24 + seed * 509
        for at in range(start, len(noise), len(block)):
            noise[at:at + len(block)] = block[:len(noise) - at]
        ledger.write_bytes(noise[:len(data)])
        done = session.plimsoll("explain", "--json", record)
        (record / "report.json").unlink(missing_ok=True)
        assert done.returncode in (0, 125), (seed, done.returncode, done.stderr)
        if done.returncode == 0:
            json.loads(done.stdout)
        else:
            assert done.stderr.count("\n") == 1, done.stderr


def test_a_corrupt_report_is_made_again_from_the_ledger(session):
    session.run("true")
    folder = next((session.state / "runs").iterdir())
    (folder / "report.json").write_text('{"schema": 1, "verdict": "fin')
    assert session.explain(folder)["verdict"] == "finished"


def test_a_damaged_run_does_not_hide_the_others(session):
    first = session.state / "runs" / session.run("true").report["run"]
    session.run("sh", "-c", "exit 3")
    shutil.rmtree(first)
    first.mkdir()
    (first / "ledger").write_bytes(b"broken")
    done = session.plimsoll("runs", "--json")
    assert done.returncode == 0, done
    assert "failed" in [r.get("verdict") for r in json.loads(done.stdout)], done


def test_a_budget_that_nothing_could_run_in(session):
    one_line_error(session.plimsoll("run", "--budget", "4M", "--", "true"), "4.0 MiB")


def test_a_budget_that_is_too_small_for_the_program_to_start(run):
    """It ends with an exception and an explanation, not with a crash."""
    result = run(PYTHON, "-c", "import pandas", budget="20M", options=["--reserve", "4M"])
    assert result.rc == 1 and "MemoryError" in result.stderr
    assert "20.0 MiB" in result.stderr.partition("\nplimsoll: ")[2]
    assert result.verdict in ("refused", "leak")


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_the_report_is_written_when_we_are_asked_to_end_as_the_command_does(session, name):
    """systemd ends a service's other processes when the OOM killer ended one. The supervisor is held
    still until both are there: the end of the command, and the signal."""
    process = session.start(script="""
        import os, time
        print(os.getpid(), flush=True)
        time.sleep(600)
        """)
    pid = int(process.stdout.readline())
    os.kill(process.pid, signal.SIGSTOP)
    wait_until(lambda: state_of(process.pid) == "T", "the supervisor to stand still")
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: state_of(pid) == "Z", "the command to end")
    os.killpg(process.pid, signal.Signals[name])
    os.kill(process.pid, signal.SIGCONT)
    result = session.finish(process)
    assert result.rc == 128 + signal.SIGKILL
    assert result.verdict == "killed" and result.report["exit"]["signal"] == "SIGKILL"
    assert "SIGKILL from outside ended" in result.stderr


def test_a_report_that_nobody_reads_does_not_outlive_a_request_to_end(session):
    """Its text waits for a reader, with the signals blocked; it gets some seconds, and no more. What
    was written before the text stays."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    os.write(writer, b"x" * 4096)
    process = session.start("sh", "-c", "kill -9 $$", stderr=writer)
    os.close(writer)
    wait_until(process.report.exists, "the report")
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait(HANG_S) == 128 + signal.SIGKILL
    os.close(reader)
    assert json.loads(process.report.read_text())["verdict"] == "killed"
