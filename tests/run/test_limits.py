# SPDX-License-Identifier: Apache-2.0
"""Memory cgroups that change while a run is in them: limits that are moved, and neighbours that grow."""
import os
import signal
import subprocess

import pytest

from conftest import HANG_S, MIB, PYTHON, wait_until

GROWS = """
    import os, time
    def wait_for(name):
        while not os.path.exists(name):
            time.sleep(0.01)
    kept, said = [], []
    def grow(to_mib):
        try:
            while len(kept) < to_mib // 10:
                kept.append(bytearray(b"x") * (10 << 20))
        except MemoryError as error:
            said.append(str(error))
            return False
        return True
    print(grow(100), flush=True)
    wait_for("go")
    print(grow(400), 10 * len(kept), said[-1:], flush=True)
    wait_for("on")
    print(grow(400), flush=True)
    """


def line_of(session):
    """The line of the run that is the only one in its state folder."""
    run, = session.state.glob("runs/*")
    return session.explain(run.name)["memory"]["limit_bytes"]


def let(session, name):
    (session.folder / name).write_text("")


def changes(result, cause):
    return [change for change in result.report.get("line", []) if change["cause"] == cause]


def test_a_limit_that_is_changed_is_followed_down_and_up(session, cgroup):
    group = cgroup(700 * MIB)
    process = session.start(cgroup=group, script=GROWS)
    assert process.stdout.readline() == "True\n"
    before = line_of(session)
    assert before > 450 * MIB
    group.limit(300 * MIB)
    wait_until(lambda: line_of(session) < 300 * MIB, "the line to follow the limit down")
    let(session, "go")
    grown, n_mib, said = process.stdout.readline().split(maxsplit=2)
    assert grown == "False" and 150 <= int(n_mib) < 300
    assert "or give its memory cgroup more" in said and "--budget" not in said
    group.limit(700 * MIB)
    wait_until(lambda: line_of(session) > 450 * MIB, "the line to follow the limit up")
    let(session, "on")
    result = session.finish(process)
    assert result.stdout == "True\n" and result.rc == 0
    assert group.n_oom_kills() == 0
    assert [change["bytes"] for change in changes(result, "limit")] == [300 * MIB, 700 * MIB]
    assert str(group.folder) in changes(result, "limit")[0]["file"]
    assert "was set to 700.0 MiB" in " ".join(result.report["evidence"])
    assert abs(result.report["memory"]["true_limit_bytes"] - 700 * MIB) < 100 * MIB


def test_a_limit_that_is_raised_does_not_raise_the_line_above_the_budget(session, cgroup):
    group = cgroup(300 * MIB)
    process = session.start(cgroup=group, budget="250M", script=GROWS)
    assert process.stdout.readline() == "True\n"
    group.limit(200 * MIB)
    wait_until(lambda: line_of(session) < 200 * MIB, "the line to follow the limit down")
    group.limit(900 * MIB)
    wait_until(lambda: line_of(session) == 250 * MIB, "the line to come back to the budget")
    let(session, "go")
    let(session, "on")
    result = session.finish(process)
    assert group.n_oom_kills() == 0 and result.rc == 0
    assert result.report["memory"]["limit_bytes"] == 250 * MIB


def test_a_group_that_gets_a_limit_only_later_is_followed(session, cgroup):
    group = cgroup(1 << 62)
    process = session.start(cgroup=group, script=GROWS)
    assert process.stdout.readline() == "True\n"
    group.limit(300 * MIB)
    wait_until(lambda: line_of(session) < 300 * MIB, "the line to follow the limit")
    let(session, "go")
    assert process.stdout.readline().startswith("False")
    let(session, "on")
    result = session.finish(process)
    assert group.n_oom_kills() == 0 and result.rc == 0


@pytest.fixture
def neighbour():
    """Starts a program in a cgroup, beside the run: it takes so many MiB, keeps them, and forks."""
    started = []

    def start(group, n_mib, n_forks=0):
        code = (f"import os; kept = bytearray(b'x') * ({n_mib} << 20)\n"
                f"for _ in range({n_forks}):\n    if os.fork() == 0:\n        os.read(0, 1); os._exit(0)\n"
                "print('full', flush=True); input()")
        started.append(subprocess.Popen([PYTHON, "-c", code], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, preexec_fn=group.enter))
        assert started[-1].stdout.readline() == "full\n"
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


INNOCENT = """
    import os, time
    kept = bytearray(b"x") * (100 << 20)
    print(os.getpid(), flush=True)
    while not os.path.exists("go"):
        time.sleep(0.01)
    print("alive")
    """


def test_a_neighbour_that_grows_is_named_and_nobody_is_stopped_for_it(session, cgroup, neighbour):
    """Until hardly anything is left in the group: the command is far below its line."""
    group = cgroup(700 * MIB)
    process = session.start(cgroup=group, budget="250M", script=INNOCENT)
    process.stdout.readline()
    other = neighbour(group, 540)
    wait_until(lambda: line_of(session) < 150 * MIB, "the line to make way for the neighbour")
    let(session, "go")
    result = session.finish(process)
    assert result.rc == 0 and result.stdout == "alive\n" and group.n_oom_kills() == 0
    assert "stopped" not in result.report
    told = changes(result, "neighbour")[0]  # on its way up: it is told of once a second
    assert told["pid"] == other.pid and 300 * MIB < told["bytes"] < 700 * MIB
    assert f"(pid {other.pid})" in " ".join(result.report["evidence"])
    assert result.report["memory"]["peak_charged_bytes"] < 250 * MIB


def test_neighbours_that_share_pages_by_fork_take_nothing_of_ours(session, cgroup, neighbour):
    """Each of them has the pages as its own: five times 150 MiB, where the group has them once."""
    group = cgroup(900 * MIB)
    process = session.start(cgroup=group, budget="500M", script=GROWS)
    assert process.stdout.readline() == "True\n"
    neighbour(group, 150, n_forks=4)
    let(session, "go")
    assert process.stdout.readline() == "True 400 []\n"
    let(session, "on")
    result = session.finish(process)
    assert result.rc == 0 and result.stdout == "True\n" and group.n_oom_kills() == 0
    assert result.report["memory"]["n_refusals"] == 0
    assert max((change["bytes"] for change in changes(result, "neighbour")), default=0) < 250 * MIB


def test_who_was_killed_for_a_neighbour_is_told_to_part_from_it(session, cgroup, neighbour):
    """A smaller budget would not have helped."""
    group = cgroup(500 * MIB)
    process = session.start(cgroup=group, budget="250M", script=INNOCENT)
    process.stdout.readline()
    with pytest.raises(AssertionError):  # it is killed, too, or what is left of ours is not enough
        neighbour(group, 600)
    let(session, "go")
    result = session.finish(process)
    assert result.verdict == "killed-for-memory"
    assert "to another memory cgroup, or end it" in result.report["next"][0]
    assert "set --budget" not in " ".join(result.report["next"])


def test_a_service_that_is_stopped_while_the_killed_worker_still_dies_died_of_memory(
        session, cgroup, program):
    """systemd's OOMPolicy=stop sends SIGTERM to all that is left at the kill; to die with much memory
    takes longer than that."""
    for _ in range(3):
        group = cgroup(400 * MIB)
        process = session.start(cgroup=group, options=["--observe"], script=f"""
            import subprocess, time
            subprocess.run(["{program('grow', static=True)}", "800"])
            time.sleep({HANG_S})
            """)
        while group.n_oom_kills() == 0 and process.poll() is None:
            pass
        for pid in group.pids():
            try:
                os.kill(pid, signal.SIGTERM)
            except ProcessLookupError:
                pass
        result = session.finish(process)
        assert result.rc == 128 + signal.SIGTERM
        assert result.verdict == "killed-for-memory"
        assert "ended 'grow_static'" in result.report["summary"]
        assert "OOMPolicy=stop" in " ".join(result.report["evidence"])
        assert result.stderr.count("killed for memory") == 1
        assert "the guard saw none of it" in " ".join(result.report["next"])


def test_a_limit_that_is_not_the_tightest_is_named_all_the_same(session, cgroup):
    parent = cgroup(500 * MIB)
    group = parent.child("inner")
    group.limit(300 * MIB)
    process = session.start(cgroup=group, script=INNOCENT)
    process.stdout.readline()
    group.limit(900 * MIB)
    wait_until(lambda: line_of(session) > 400 * MIB, "the line to follow the limit")
    let(session, "go")
    result = session.finish(process)
    change, = changes(result, "limit")
    assert change["bytes"] == 900 * MIB and "/inner/" in change["file"]
    told, = [text for text in result.report["evidence"] if "was set to 900.0 MiB" in text]
    assert "inner" in told


def test_what_a_neighbour_gives_back_is_there_again(session, cgroup, neighbour):
    group = cgroup(700 * MIB)
    process = session.start(cgroup=group, budget="250M", script=INNOCENT)
    process.stdout.readline()
    other = neighbour(group, 540)
    wait_until(lambda: line_of(session) < 150 * MIB, "the line to make way for the neighbour")
    other.kill()
    wait_until(lambda: line_of(session) == 250 * MIB, "the line to come back to the budget")
    let(session, "go")
    assert session.finish(process).rc == 0


def test_a_neighbour_that_shrinks_has_taken_nothing(session, cgroup, neighbour):
    group = cgroup(700 * MIB)
    other = neighbour(group, 300)
    process = session.start(cgroup=group, script=INNOCENT)
    process.stdout.readline()
    before = line_of(session)
    other.kill()
    wait_until(lambda: line_of(session) > before + 200 * MIB, "the line to rise")
    let(session, "go")
    result = session.finish(process)
    assert result.report["line"][-1]["line_bytes"] > before + 200 * MIB
    assert "had taken" not in " ".join(result.report["evidence"])
    assert result.report["memory"]["true_limit_bytes"] > before + 200 * MIB


def test_a_neighbour_in_another_group_under_the_same_parent_is_told_apart(session, cgroup, neighbour):
    parent = cgroup(700 * MIB)
    ours, theirs = parent.child("ours"), parent.child("theirs")
    process = session.start(cgroup=ours, budget="250M", script=INNOCENT)
    process.stdout.readline()
    neighbour(theirs, 540)
    wait_until(lambda: line_of(session) < 150 * MIB, "the line to make way for the neighbour")
    let(session, "go")
    result = session.finish(process)
    assert result.rc == 0 and result.stdout == "alive\n" and parent.n_oom_kills() == 0
    assert "stopped" not in result.report
    assert changes(result, "neighbour")[0]["bytes"] > 300 * MIB


def test_what_the_system_refused_below_the_line_is_not_called_memory_without_a_part(run):
    result = run(budget="4G", script="""
        import resource
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
        kept = bytearray(1500 << 20)
        """)
    assert result.rc == 1 and result.verdict == "failed"
    assert "the system refused 1.5 GiB to 'script.py'" in result.report["summary"]
    assert "script.py:4" in result.report["summary"]
    assert "RLIMIT_AS is in force" in result.report["evidence"][0]


def test_small_objects_that_the_system_refused_are_told_of(run):
    result = run(budget="4G", script="""
        import resource
        resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20))
        kept = []
        while True:
            kept.append(bytes(200))
        """)
    assert result.rc == 1 and result.verdict == "failed"
    assert "the system refused" in result.report["summary"]
    assert "script.py:6" in result.report["summary"]
    assert "RLIMIT_AS is in force" in result.report["evidence"][0]


def test_a_limit_that_a_shell_set_leaves_open_whether_memory_had_a_part(run):
    """Small requests of C programs are refused inside of the allocator, where nobody looks."""
    result = run("sh", "-c", "ulimit -v 4000000; exit 1", budget="1G")
    assert result.verdict == "failed"
    assert "not known: RLIMIT_AS refuses beyond 3.8 GiB" in result.report["summary"]
    result = run("sh", "-c", "exit 1", budget="1G")
    assert result.report["summary"].endswith("; memory had no part in it")


def test_a_crash_after_what_the_system_refused_shows_that(run):
    result = run(budget="4G", script="""
        import os, resource
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
        try:
            kept = bytearray(1500 << 20)
        except MemoryError:
            os.abort()
        """)
    assert result.verdict == "crashed"
    assert "the system refused it: RLIMIT_AS is in force" in " ".join(result.report["evidence"])


def test_a_static_program_that_meets_our_rlimit_data_is_not_called_memory_without_a_part(run, program):
    result = run("sh", "-c", f"exec {program('grow', static=True)} 400", budget="100M")
    assert "memory had no part" not in (result.report["summary"] if result.report else "")
    result = run(program("grow", static=True), 400, budget="100M")
    assert result.rc != 0 and "memory had no part" not in result.report["summary"]


def test_an_outer_run_tells_that_its_inner_run_was_refused(session):
    inner, _ = session.command(budget="100M", script="kept = bytearray(200 << 20)")
    result = session.run(*inner, budget="1G")
    assert result.rc == 1 and result.verdict == "failed"
    assert "a run inside it ended as 'refused'" in result.report["summary"]
    said, = [text for text in result.report["evidence"] if "plimsoll explain" in text]
    assert session.explain(said.split()[2].rstrip("'"))["verdict"] == "refused"


def test_a_limit_that_nobody_changes_stays_the_true_one(session, cgroup):
    """Also when a cgroup's, which is larger, is changed."""
    group = cgroup(900 * MIB)
    process = session.start(cgroup=group, script=INNOCENT, env={"MEM_LIMIT": "300M"})
    process.stdout.readline()
    group.limit(800 * MIB)
    run, = session.state.glob("runs/*")
    wait_until(lambda: session.explain(run.name).get("line"), "the limit's change to be seen")
    let(session, "go")
    memory = session.finish(process).report["memory"]
    assert memory["true_limit_bytes"] == 300 * MIB and "MEM_LIMIT" in memory["true_limit_source"]


def test_an_outer_run_did_not_crash_itself_when_its_inner_run_tells_of_a_crash(session):
    inner, _ = session.command(budget="100M", script="import ctypes; ctypes.string_at(0)")
    result = session.run(*inner, budget="1G")
    assert result.rc == 128 + signal.SIGSEGV and result.verdict == "failed"
    assert "a run inside it ended as 'crashed'" in result.report["summary"]


def test_the_kills_of_a_group_that_was_made_anew_are_not_evidence(session, cgroup, program):
    """A container that is started again has a new group of the same name."""
    group = cgroup(300 * MIB)
    process = session.start(cgroup=group, budget="200M", script=INNOCENT)
    pid = int(process.stdout.readline())
    group.kill_all()
    process.wait()
    wait_until(lambda: not group.pids(), "the group to empty")
    group.folder.rmdir()
    group.folder.mkdir()
    group.limit(50 * MIB)
    code = "kept = bytearray(b'x') * (200 << 20)"
    subprocess.run([PYTHON, "-c", code], preexec_fn=group.enter, check=False)
    assert group.n_oom_kills() >= 1
    run, = session.state.glob("runs/*")
    report = session.explain(run.name)
    assert report["pid"] == pid and report["verdict"] == "lost"
    assert "the memory cgroup counted" not in " ".join(report["evidence"])
