# SPDX-License-Identifier: Apache-2.0
"""Every verdict, each by a death that really happens."""
import os
import signal
import subprocess
import sys
import time

import pytest

from conftest import C_FLAGS, MIB, PROGRAMS, PYTHON, alive, line_of, state_of, wait_until

# ---- finished, failed ----


def test_finished(run):
    result = run("true")
    assert result.rc == 0 and result.verdict == "finished"
    assert result.report["exit"] == {"status": 0}
    assert result.report["command"] == ["true"] and result.report["schema"] == 1


def test_failed_is_not_blamed_on_memory(run):
    result = run(script="raise SystemExit(3)")
    assert result.rc == 3 and result.verdict == "failed"
    assert result.report["exit"]["status"] == 3
    assert result.report["memory"]["n_refusals"] == 0


# ---- killed ----


def start_and_find(session, ready="ready", **start):
    """Starts a run whose program prints "ready" and its pid; returns (Popen, pid)."""
    process = session.start(**start)
    words = process.stdout.readline().split()
    assert words[:1] == [ready], (words, process.poll())
    return process, int(words[1])


WAITS = """
import os, time
print("ready", os.getpid(), flush=True)
time.sleep(600)
"""


def killed_for_memory(result):
    assert result.rc == 128 + signal.SIGKILL
    assert result.verdict == "killed-for-memory"
    assert result.report["exit"]["signal"] == "SIGKILL"
    assert result.report["evidence"] and result.report["next"]


def test_killed_for_memory_when_the_cgroup_gives_less_than_the_budget(session, cgroup):
    """A budget over the limit would be cut, and a limit that is lowered is followed: so the program is
    only observed."""
    group = cgroup(600 * MIB)
    process, _ = start_and_find(session, cgroup=group, budget="400M", options=["--observe"], script="""
        import os, time
        print("ready", os.getpid(), flush=True)
        while not os.path.exists("go"):
            time.sleep(0.01)
        kept = [bytes(4000) for _ in range(250_000)]
        """)
    group.limit(100 * MIB)
    (session.folder / "go").write_text("")
    result = session.finish(process)
    assert group.n_oom_kills() >= 1
    killed_for_memory(result)
    assert result.report["next"][0].startswith("run it without --observe")


def test_killed_for_memory_of_a_static_program(run, program, cgroup):
    """The guard cannot see it, and who only observes does not stop it."""
    group = cgroup(100 * MIB)
    result = run(program("grow", static=True), 400, options=["--observe"], cgroup=group)
    assert group.n_oom_kills() >= 1
    killed_for_memory(result)
    assert result.report["memory"]["true_limit_bytes"] <= 100 * MIB
    assert "cgroup" in result.report["memory"]["true_limit_source"]


def test_a_worker_killed_for_memory_is_named(run, program, cgroup):
    """It grows for half a second: who lives shorter than the time between two samples has no name.
    """
    group = cgroup(150 * MIB)
    result = run(program("grow", static=True), options=["--observe"], cgroup=group, script="""
        import subprocess, sys
        print(subprocess.run([sys.argv[1], "400", "5000"]).returncode)
        """)
    assert group.n_oom_kills() >= 1 and result.stdout == "-9\n"
    assert result.rc == 0 and result.report["deaths"][0]["signal"] == "SIGKILL"
    assert result.report["deaths"][0]["name"] == "grow_static"


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM"])
def test_killed_by_someone_else_is_not_called_a_memory_death(session, name):
    process, pid = start_and_find(session, script=WAITS)
    os.kill(pid, signal.Signals[name])
    result = session.finish(process)
    assert result.rc == 128 + signal.Signals[name]
    assert result.verdict == "killed"
    assert result.report["exit"]["signal"] == name
    assert "out of memory" not in result.report["summary"].lower()


def test_killed_in_a_cgroup_that_killed_before_us_is_not_called_a_memory_death(session, program,
                                                                               cgroup):
    """Counters are compared with what they were at the start."""
    group = cgroup(100 * MIB)
    session.run(program("grow", static=True), 400, options=["--observe"], cgroup=group)
    assert group.n_oom_kills() >= 1
    process, pid = start_and_find(session, script=WAITS, cgroup=group)
    os.kill(pid, signal.SIGKILL)
    result = session.finish(process)
    assert result.verdict == "killed"


# ---- stopped by us ----


def test_stopped_for_memory_before_the_system_kills(run, program, cgroup):
    """A static program that a shell starts: nothing but the watcher can see it."""
    group = cgroup(400 * MIB)
    result = run("sh", "-c", f"{program('grow', static=True)} 800 6000; exit $?", budget="200M",
                 cgroup=group, options=["--reserve", "40M"])
    assert group.n_oom_kills() == 0
    # It rose steadily: that may be called a leak, but the report says who was stopped.
    assert result.verdict in ("stopped-for-memory", "leak")
    assert result.rc == 128 + signal.SIGKILL
    stopped = result.report["stopped"]
    assert stopped[0]["name"] == "grow_static" and stopped[0]["bytes"] > 150 * MIB


def test_a_static_program_as_the_command_is_refused_what_is_over_the_line(run, program):
    """RLIMIT_DATA is the backstop where no library can be loaded."""
    result = run(program("grow", static=True), 800, budget="200M")
    assert result.rc == 2 and result.stdout == ""
    assert run(program("grow", static=True), 100, budget="200M").stdout == "done\n"


# ---- crashes ----


def crash_of(result, kind, name):
    """Checks what every crash has in common."""
    assert result.rc == 128 + signal.Signals[name]
    assert result.verdict == "crashed"
    assert result.report["exit"]["signal"] == name
    crash = result.report["crash"]
    assert crash["signal"] == name and crash["kind"] == kind
    assert kind in result.stderr
    return crash


def test_segmentation_fault_in_c(run, program):
    result = run(program("null_read"))
    crash = crash_of(result, "segmentation fault", "SIGSEGV")
    assert "0x0" in crash["reason"]
    assert result.symbols()[:3] == ["read_row", "sum_rows", "main"]
    assert "null_read.c:" in result.report["native"][0]["source"]
    assert result.report["native"][0]["module"].endswith("/null_read")
    assert result.stdout == "about to read\n"
    line = result.report["native"][0]["source"].rpartition("/")[2]
    first, advice = result.stderr.splitlines()[:2]
    assert f" in 'null_read' (pid {crash['pid']}) at {line} in read_row(): access to " in first
    assert advice == f"  next:  begin at {line} in read_row()"


def test_without_debug_information_the_function_and_how_to_see_lines(run, program, tmp_path):
    bare = tmp_path / "bare"
    subprocess.run(["objcopy", "-g", program("null_read"), bare], check=True)
    result = run(bare)
    assert " at bare read_row: " in result.report["summary"]
    assert result.report["next"] == [
        "begin at bare read_row; built with -g, it would name its lines"]


@pytest.mark.parametrize("before, name", [
    (["sh", "-c", "exec $0"], "null_read"), (["env", "A=1"], "null_read"), ([], "null_read"),
    (["env", "-", PYTHON, "-c", "import os; os.abort()"], "env"),
    (["env", PYTHON, "script.py"], "script.py")])
def test_the_program_is_named_that_the_command_became(run, program, tmp_path, before, name):
    (tmp_path / "script.py").write_text("import os; os.abort()")
    result = run(*before, *([] if PYTHON in before else [program("null_read")]))
    assert f"'{name}' (pid {result.report['pid']})" in result.report["summary"]


def test_a_script_keeps_its_own_name(run, tmp_path):
    script = tmp_path / "steps"
    script.write_text("#!/bin/sh\nexit 3\n")
    script.chmod(0o700)
    assert run(script).report["summary"].startswith("failed: 'steps' (pid ")


SEGFAULT = """
import ctypes
def read_header():
    return ctypes.string_at(0)  # dies
def load():
    return read_header()
load()
"""


def test_segmentation_fault_below_python_names_the_python_line(run):
    result = run(script=SEGFAULT)
    crash_of(result, "segmentation fault", "SIGSEGV")
    users = [f for f in result.report["python"] if f["file"].endswith("script.py")]
    assert [f["function"] for f in users] == ["read_header", "load", "<module>"]
    assert users[0]["line"] == line_of(SEGFAULT, "# dies")
    assert f"script.py:{users[0]['line']}" in result.stderr
    assert any("libc.so" in f.get("module", "") for f in result.report["native"])


def test_segmentation_fault_in_a_python_thread(run):
    result = run(script="""
        import ctypes, threading
        def work():
            ctypes.string_at(0)
        thread = threading.Thread(target=work, name="loader")
        thread.start()
        thread.join()
        """)
    crash = crash_of(result, "segmentation fault", "SIGSEGV")
    assert crash["tid"] != crash["pid"]
    assert any(f["function"] == "work" for f in result.report["python"])


def test_segmentation_fault_of_a_worker_is_told(run):
    result = run(script="""
        import ctypes, multiprocessing as mp
        def work():
            ctypes.string_at(0)
        worker = mp.get_context("fork").Process(target=work)
        worker.start()
        worker.join()
        print(worker.exitcode)
        """)
    assert result.rc == 0 and result.stdout == "-11\n"
    assert result.report["crash"]["kind"] == "segmentation fault"
    assert result.report["deaths"][0]["signal"] == "SIGSEGV"
    assert any(f["function"] == "work" for f in result.report["python"])


@pytest.mark.parametrize("ending", ["command", "exit"])
def test_after_many_workers_crashes_the_commands_own_is_told(session, ending):
    """There is room for a few crashes: the command's has a place of its own."""
    result = session.run(script=f"""
        import ctypes, os, signal, sys
        def work(i):
            ctypes.string_at(i)
        def own():
            ctypes.string_at(0)
        for i in range(20):
            pid = os.fork()
            if pid == 0:
                work(i)
            os.waitpid(pid, 0)
        print(pid, flush=True)
        own() if {ending == "command"} else sys.exit(3)
        """)
    functions = [frame["function"] for frame in result.report["python"]]
    if ending == "command":
        crash_of(result, "segmentation fault", "SIGSEGV")
        assert result.report["crash"]["pid"] == result.report["pid"] and "own" in functions
        assert len(result.report["native"]) > 0
    else:
        assert result.rc == 3 and "work" in functions
        assert result.report["crash"]["pid"] == int(result.stdout), "the last one is kept"
        assert result.report["crash"]["address"] == "0x13"
    names = [path.name for path in session.state.glob("runs/*/crash.*")]
    assert 0 < len(names) <= 8 and f"crash.{result.report['crash']['pid']}" in names


def test_faulthandler_coexists(run):
    result = run(PYTHON, "-X", "faulthandler", "-c", SEGFAULT)
    crash_of(result, "segmentation fault", "SIGSEGV")
    assert "Fatal Python error: Segmentation fault" in result.stderr
    assert any(f["function"] == "read_header" for f in result.report["python"])


@pytest.mark.parametrize("thread", ["main", "thread"])
def test_stack_overflow_in_c(run, program, thread):
    result = run(program("stack_overflow"), thread)
    crash = crash_of(result, "segmentation fault", "SIGSEGV")
    assert "stack" in crash["reason"]
    assert set(result.symbols()[:10]) == {"descend"}


def test_stack_overflow_in_c_that_python_calls(run, tmp_path):
    """On every version: Python counts, or measures, only the calls that go through itself."""
    library = tmp_path / "descend.so"
    subprocess.run(["gcc", *C_FLAGS, "-shared", "-fPIC", PROGRAMS / "stack_overflow.c", "-o",
                    library], check=True)
    script = f"""
        import ctypes
        def load():
            ctypes.CDLL({str(library)!r}).descend(1)  # dies
        load()
        """
    result = run(script=script)
    crash = crash_of(result, "segmentation fault", "SIGSEGV")
    assert "stack" in crash["reason"]
    frame = result.report["python"][0]
    assert (frame["function"], frame["line"]) == ("load", line_of(script, "# dies"))
    assert set(result.symbols()[:10]) == {"descend"}


def test_python_recursion_through_c(run):
    """Overflows the stack up to 3.11. 3.12 and 3.13 count the calls from C, 3.14 looks at the stack:
    they raise, and there is nothing to explain."""
    result = run(script="""
        import sys
        sys.setrecursionlimit(1 << 30)
        class Row:
            def __getattr__(self, name):
                return getattr(self, name)
        Row().width
        """)
    if sys.version_info >= (3, 12):
        assert result.rc == 1 and result.verdict == "failed" and "RecursionError" in result.stderr
        return
    crash = crash_of(result, "segmentation fault", "SIGSEGV")
    assert "stack" in crash["reason"]
    assert result.report["python"][0]["function"].endswith("__getattr__")


def test_bus_error_by_a_file_cut_short(run, program, tmp_path):
    result = run(program("bus_error"), tmp_path / "weights.bin")
    crash = crash_of(result, "bus error", "SIGBUS")
    assert "shorter" in crash["reason"]
    assert result.symbols()[0] == "read_last_page"


def test_bus_error_by_a_full_dev_shm(session, small_tmpfs):
    """A Python program that fills shared memory, in a mount namespace whose /dev/shm is 1 MiB."""
    script = """
from multiprocessing import shared_memory
def fill():
    block = shared_memory.SharedMemory(create=True, size=8 << 20)
    block.buf[:] = bytes(8 << 20)  # dies
fill()
"""
    line, report = session.command(script=script)
    shm = small_tmpfs("1m")
    # Only /dev/shm is made private: in a chroot, / is no mount point that could be.
    inside = ["unshare", "--mount", "--propagation", "unchanged", "sh", "-c",
              f"mount --make-private /dev/shm && mount --bind {shm} /dev/shm && exec \"$@\"", "sh"]
    result = session.finish(session.popen(inside + line, report))
    crash = crash_of(result, "bus error", "SIGBUS")
    assert "/dev/shm" in crash["reason"]
    users = [f for f in result.report["python"] if f["file"].endswith("script.py")]
    assert users[0] == {"file": users[0]["file"], "function": "fill",
                        "line": line_of(script, "# dies")}


def test_floating_point_error(run, program):
    result = run(program("divide_by_zero"))
    crash = crash_of(result, "floating point error", "SIGFPE")
    assert "division by zero" in crash["reason"]
    assert result.symbols()[0] == "rows_per_batch"


@pytest.mark.parametrize("how, message, symbol", [
    ("overrun", "malloc(): corrupted top size", "main"),
    ("double-free", "free(): double free detected", "free_twice"),
])
def test_abort_by_heap_corruption(run, program, how, message, symbol):
    result = run(program("heap_corruption"), how)
    crash = crash_of(result, "abort", "SIGABRT")
    assert message in crash["reason"]
    assert symbol in result.symbols()


def test_abort_by_an_uncaught_exception(run, program):
    result = run(program("uncaught_exception"))
    crash = crash_of(result, "abort", "SIGABRT")
    assert "std::runtime_error" in crash["reason"]
    assert any(s.startswith("load_shape") for s in result.symbols())


def test_abort_by_a_failed_assertion(run, program):
    result = run(program("failed_assert"))
    crash = crash_of(result, "abort", "SIGABRT")
    assert "n_rows == n_columns" in crash["reason"]
    assert "check_square" in result.symbols()


def test_abort_below_python_names_the_python_line(run):
    script = """
import os
def give_up():
    os.abort()  # dies
give_up()
"""
    result = run(script=script)
    crash_of(result, "abort", "SIGABRT")
    assert result.where() == ("script.py", line_of(script, "# dies"))


def missing_instruction_set():
    with open("/proc/cpuinfo") as info:
        flags = next(line for line in info if line.startswith("flags")).split()
    for flag, name in (("avx512f", "AVX-512"), ("fma4", "FMA4")):
        if flag not in flags:
            return flag, name
    return None


def test_illegal_instruction_names_the_missing_set(run, program):
    missing = missing_instruction_set()
    assert missing, "a CPU with both AVX-512 and FMA4: teach the program another set"
    result = run(program("illegal_instruction"), missing[0])
    assert result.rc == 128 + signal.SIGILL
    assert result.verdict == "illegal-instruction"
    instruction = result.report["instruction"]
    assert instruction["set"].startswith(missing[1])
    assert instruction["cpu_has_set"] is False and not instruction["deliberate"]
    assert instruction["module"].endswith("illegal_instruction")
    assert instruction["text"].startswith("v")
    assert missing[1] in result.stderr
    assert "add_vectors" in result.symbols()


def test_an_instruction_that_traps_on_purpose_is_not_blamed_on_the_cpu(run, program):
    result = run(program("illegal_instruction"), "ud2")
    crash_of(result, "illegal instruction", "SIGILL")
    assert result.report["instruction"]["deliberate"] is True


# ---- leak ----

LEAK = """
import time
history = []
def step():
    history.append([float(i) for i in range(30_000)])  # leaks, about 1 MB
def train():
    for _ in range(1000):
        step()
        time.sleep(0.02)
train()
"""


def test_leak_names_the_slope_and_the_line_that_grew(run):
    """About 40 MB/s for some seconds."""
    result = run(script=LEAK, budget="200M")
    assert result.rc == 1 and "MemoryError" in result.stderr
    assert result.verdict == "leak"
    leak = result.report["leak"]
    assert 5e6 < leak["bytes_per_s"] < 2e8
    assert leak["to_bytes"] > leak["from_bytes"] and leak["over_s"] > 1
    # What is measured from start to end agrees with the slope.
    rise = leak["to_bytes"] - leak["from_bytes"]
    assert rise == pytest.approx(leak["bytes_per_s"] * leak["over_s"], rel=0.3)
    grew = leak["sites"][0]["python"]
    assert grew["file"].endswith("script.py")
    assert grew["line"] == line_of(LEAK, "# leaks")
    assert f"script.py:{grew['line']}" in result.stderr


def test_a_leak_is_one_however_seldom_it_was_sampled(session):
    """A supervisor that never has its turn: stopped before the rise begins, until it has ended."""
    script = "import os\nprint(os.getpid(), flush=True)\ninput()\n" + LEAK
    process = session.start(script=script, budget="200M", stdin=subprocess.PIPE)
    child = int(process.stdout.readline())
    process.send_signal(signal.SIGSTOP)
    try:
        process.stdin.write("\n")
        process.stdin.flush()
        wait_until(lambda: state_of(child) == "Z", "the program to end")
    finally:
        process.send_signal(signal.SIGCONT)
    result = session.finish(process)
    assert result.rc == 1 and "MemoryError" in result.stderr
    assert result.verdict == "leak"


def test_a_program_that_frees_what_it_takes_does_not_leak(run):
    result = run(budget="200M", script="""
        import time
        for _ in range(6):
            kept = [bytes(4000) for _ in range(20_000)]
            time.sleep(0.2)
            del kept
            time.sleep(0.1)
        raise SystemExit(1)
        """)
    assert result.rc == 1 and result.verdict == "failed"


# ---- hang ----


def finish_hanging(session, process):
    """Waits until the hang is seen, ends the program, returns the Result."""
    wait_until(lambda: session.explain()["verdict"] == "hang", "the hang to be seen")
    process.send_signal(signal.SIGTERM)
    return session.finish(process)


def test_hang_of_two_mutexes_shows_the_cycle(session, program):
    process = session.start(program("deadlock"), options=["--hang-after", "2"])
    tids = {int(process.stdout.readline()), int(process.stdout.readline())}
    result = finish_hanging(session, process)
    assert result.verdict == "hang"
    hang = result.report["hang"]
    assert set(hang["cycle"]) == tids
    stacks = {t["tid"]: [f.get("symbol") for f in t["native"]] for t in hang["threads"]}
    assert len(stacks) == 3
    for tid in tids:
        assert "lock_in_order" in stacks[tid]
    waits = {t["tid"]: t["waits_for"] for t in hang["threads"] if t["tid"] in tids}
    first, second = tids
    assert str(second) in waits[first] and str(first) in waits[second]
    assert hang["idle_s"] >= 2


HANG = """
import threading
weights, gradients = threading.Lock(), threading.Lock()
both = threading.Barrier(2)
def forward():
    with weights:
        both.wait()
        gradients.acquire()  # forward waits
def backward():
    with gradients:
        both.wait()
        weights.acquire()  # backward waits
threads = [threading.Thread(target=t) for t in (forward, backward)]
for thread in threads:
    thread.start()
print("ready", flush=True)
for thread in threads:
    thread.join()  # main waits
"""


def test_hang_of_python_locks_shows_every_threads_line(session):
    process = session.start(script=HANG, options=["--hang-after", "2"])
    assert process.stdout.readline() == "ready\n"
    result = finish_hanging(session, process)
    assert result.verdict == "hang"
    lines = set()
    for thread in result.report["hang"]["threads"]:
        users = [f for f in thread["python"] if f["file"].endswith("script.py")]
        lines.add(users[0]["line"])
    assert lines == {line_of(HANG, f"# {who} waits") for who in ("main", "forward", "backward")}
    assert "cycle" not in result.report["hang"], "nobody owns a Python lock: nothing is proved"


def test_a_hang_can_be_ended(session, program):
    result = session.run(program("deadlock"), options=["--hang-after", "1", "--hang-stop"])
    assert result.rc == 128 + signal.SIGTERM and result.verdict == "hang"


def test_a_program_that_only_waits_for_input_does_not_hang(session):
    process = session.start("cat", options=["--hang-after", "1"], stdin=-1)
    time.sleep(3)
    result = session.finish(process, stdin="late\n")
    assert result.rc == 0 and result.stdout == "late\n"
    assert result.verdict == "finished"


def test_a_program_that_computes_does_not_hang(run):
    result = run(options=["--hang-after", "1"], script="""
        import time
        end = time.monotonic() + 3
        while time.monotonic() < end:
            pass
        """)
    assert result.rc == 0 and result.verdict == "finished"


# ---- the supervisor dies too ----

SURVIVOR = """
import ctypes, os, time
print("ready", os.getpid(), flush=True)
while not os.path.exists("go"):
    time.sleep(0.01)
def read_header():
    ctypes.string_at(0)
if open("go").read() == "crash":
    read_header()
"""


def kill_supervisor(process):
    process.kill()
    process.wait()


def test_explain_while_it_runs(session):
    process, pid = start_and_find(session, script=WAITS)
    report = session.explain()
    assert report["verdict"] == "running" and report["pid"] == pid
    os.kill(pid, signal.SIGTERM)
    session.finish(process)
    assert session.explain()["verdict"] == "killed"


def test_a_crash_after_the_supervisor_was_killed_is_explained(session):
    process, pid = start_and_find(session, script=SURVIVOR)
    kill_supervisor(process)
    assert alive(pid), "the program outlives its supervisor"
    assert session.explain()["verdict"] == "running"
    (session.folder / "go").write_text("crash")
    wait_until(lambda: not alive(pid), "the program to crash")
    report = session.explain()
    assert report["verdict"] == "crashed", report
    assert report["crash"]["kind"] == "segmentation fault", report
    assert any(f["function"] == "read_header" for f in report["python"]), report


def test_an_end_that_nobody_saw_is_not_invented(session):
    process, pid = start_and_find(session, script=SURVIVOR)
    kill_supervisor(process)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not alive(pid), "the program to die")
    report = session.explain()
    assert report["verdict"] == "lost", report
    assert "ended" not in report, report


def test_a_whole_cgroup_that_is_killed_leaves_a_record(session, cgroup):
    """As a container that is stopped: everyone gets SIGKILL at once."""
    group = cgroup(300 * MIB)
    process, pid = start_and_find(session, script=WAITS, cgroup=group)
    assert {process.pid, pid} <= set(group.pids())
    group.kill_all()
    process.wait()
    wait_until(lambda: not alive(pid), "the program to die")
    report = session.explain()
    assert report["verdict"] in ("lost", "killed"), report


def test_a_kill_for_memory_that_the_supervisor_did_not_live_to_see(session, program, cgroup):
    """As a container that is killed whole for memory: the evidence is the cgroup's counter."""
    group = cgroup(150 * MIB)
    grow = program("grow", static=True)
    process, pid = start_and_find(session, cgroup=group, budget="1G", script=f"""
        import os, time
        print("ready", os.getpid(), flush=True)
        while not os.path.exists("go"):
            time.sleep(0.01)
        os.execv({str(grow)!r}, ["grow", "600"])
        """)
    os.kill(process.pid, signal.SIGSTOP)
    (session.folder / "go").write_text("")
    wait_until(lambda: not alive(pid), "the system to kill the program")
    assert group.n_oom_kills() >= 1
    kill_supervisor(process)
    report = session.explain()
    assert report["verdict"] == "killed-for-memory", report
    assert report["evidence"], report


def test_the_record_says_the_same_as_the_report(session, program):
    result = session.run(program("null_read"))
    report = session.explain(result.report["run"])
    assert report == result.report
    text = session.plimsoll("explain", result.report["run"])
    assert text.returncode == 0 and "segmentation fault" in text.stdout, text


# ---- seccomp ----


@pytest.mark.parametrize("how, status, words", [
    ("own", signal.SIGSYS, "its filter forbids"), ("trap", signal.SIGSYS, "its filter forbids"),
    ("guard", signal.SIGSYS, "its filter forbids"),
    ("strict", signal.SIGKILL, "its strict mode forbids")])
def test_seccomp_is_named(run, program, how, status, words):
    """Whether the forbidden call was the program's own or the guard's."""
    alone = subprocess.run([program("seccomp"), how], capture_output=True).returncode
    if alone == 77:
        pytest.skip("no seccomp filter can be installed here")
    assert alone == (0 if how == "guard" else -status)
    result = run(program("seccomp"), how, budget="1G")
    assert result.rc == 128 + status and result.verdict == "killed"
    assert "seccomp ended" in result.report["summary"] and words in result.report["summary"]
    assert any("guard" in line for line in result.report["evidence"])
    assert any("without plimsoll" in line for line in result.report["next"])
