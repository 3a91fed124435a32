# SPDX-License-Identifier: Apache-2.0
"""`plimsoll top` and the report of a run with notebook cells, on programs that really run.

The cells here are marked as a kernel marks them, by a plain script: through the guard's exports and
a line of cells.jsonl for each. Real kernels are in tests/notebook/.
"""
import json
import os
import signal

import pytest

from conftest import MIB, wait_until

CELLS = """
    import ctypes, json, os, sys, time
    guard = ctypes.CDLL(None)
    folder = os.path.dirname(os.environ["PLIMSOLL_LEDGER"])
    names, space = set(), {}

    def cell(number, id, source):
        file = f"/tmp/ipykernel_{os.getpid()}/{sum(source.encode())}.py"
        line = {"number": number, "id": id, "file": file}
        if file not in names:
            line["source"] = source
        names.add(file)
        assert guard.pl_guard_cell_begin(id.encode(), number) == 0
        guard.pl_guard_cell_file(file.encode())
        with open(f"{folder}/cells.jsonl", "a") as out:
            out.write(json.dumps(line) + "\\n")
        exec(compile(source, file, "exec"), space)
        guard.pl_guard_cell_end(ctypes.create_string_buffer(64))

    def wait():
        print("ready", flush=True)
        sys.stdin.read()
"""
# One byte less than a whole number of MiB: a bytearray has a NUL behind it.
DEFINE = "cache = []\ndef load(n):\n    cache.append(bytearray((n << 20) - 1))\n"


def cells_script(*steps):
    return CELLS + "".join(f"    {step}\n" for step in steps)


@pytest.fixture
def start(session):
    """Starts a run that prints "ready" and then waits for the end of its stdin."""

    def begin(script, **options):
        process = session.start(script=script, stdin=-1, **options)
        assert process.stdout.readline() == "ready\n", session.finish(process).text()
        return process

    return begin


def top(session, *argv, env=None):
    done = session.plimsoll("top", "--json", *argv, env=env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_what_a_running_program_uses_is_shown_by_process_and_place(session, start):
    process = start("""
        import multiprocessing, sys
        def work(pipe):
            block = bytearray((40 << 20) - 1)
            pipe.send("held")
            pipe.recv()
        ours, theirs = multiprocessing.Pipe()
        worker = multiprocessing.get_context("fork").Process(target=work, args=(theirs,))
        worker.start()
        ours.recv()
        block = bytearray((100 << 20) - 1)
        print("ready", flush=True)
        sys.stdin.read()
        ours.send("end")
    """, budget="500M")
    state = top(session)
    assert state["running"] and state["cells"] == [] and "notebook" not in state
    assert state["memory"]["line_bytes"] == 500 * MIB
    assert 140 * MIB <= state["memory"]["charged_bytes"] <= state["memory"]["peak_bytes"]
    first, second = state["processes"][:2]
    assert first["pid"] == state["pid"] and first["python"] and first["name"] == "script.py"
    assert first["charged_bytes"] >= 100 * MIB > second["charged_bytes"] >= 40 * MIB
    assert first["charged_bytes"] == first["claimed_bytes"] + first["measured_bytes"]
    assert [(s["place"], s["bytes"]) for s in state["sites"][:2]] == [
        ("script.py:11", 100 * MIB), ("script.py:4 in work()", 40 * MIB)]
    text = session.plimsoll("top").stdout
    assert text.startswith(f"run {state['run']}: ") and " of 500.0 MiB in use (peak " in text
    assert session.finish(process, "").rc == 0


def test_what_is_resident_is_read_when_it_is_asked_for(session, start):
    """A guard looks as its program allocates; this one only touches what it mapped before."""
    process = start("""
        import mmap, sys
        mapped, piece = mmap.mmap(-1, 100 << 20), b"x" * (1 << 20)
        print("ready", flush=True)
        sys.stdin.read(1)
        for i in range(100):
            mapped.write(piece)
        print("touched", flush=True)
        sys.stdin.read()
    """, budget="500M")
    before = top(session)["processes"][0]["resident_bytes"]
    process.stdin.write("x")
    process.stdin.flush()
    assert process.stdout.readline() == "touched\n"
    shown = top(session)["processes"][0]["resident_bytes"]
    assert shown >= before + 100 * MIB
    assert session.finish(process, "").rc == 0


SHARED = """
    import mmap, os, sys
    def fill(fd, n_mib):
        os.truncate(fd, n_mib << 20)
        with mmap.mmap(fd, n_mib << 20) as mapped:
            for i in range(0, n_mib << 20, 4096):
                mapped[i] = 1
    shared, batches = os.open("/dev/shm/{name}", os.O_RDWR | os.O_CREAT), os.memfd_create("batches")
    fill(shared, 200)
    fill(batches, 40)
    if "{keeps}" == "its name":
        os.close(shared)
    else:
        os.unlink("/dev/shm/{name}")
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        bytearray(150 << 20)
    except MemoryError as error:
        print(error, flush=True)
    sys.stdin.readline()
    if "{keeps}" == "its name":
        os.unlink("/dev/shm/{name}")
    else:
        os.close(shared)
    os.close(batches)
    print("gone", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("keeps", ["its name", "a descriptor"])
def test_memory_in_files_is_named_by_them(session, start, cgroup, keeps):
    """No guard sees it; a cgroup counts it: without one it counts for nothing."""
    name = f"plimsoll-test-{os.getpid()}"
    path = f"/dev/shm/{name}"
    process = start(SHARED.format(name=name, keeps=keeps), budget="340M", cgroup=cgroup(420 * MIB))
    try:
        def held():
            """In MiB; no more than the supervisor has measured by now."""
            found = {site["place"]: site["bytes"] for site in top(session)["sites"]}
            return [found.get(place, 0) / MIB for place in (path, "memfd:batches")]

        wait_until(lambda: held() == pytest.approx([200, 40], rel=0.1), "both files to be named")
        process.stdin.write("ask\n")
        process.stdin.flush()
        assert f"; largest holders: {path} " in process.stdout.readline()
        process.stdin.write("remove\n")
        process.stdin.flush()
        assert process.stdout.readline() == "gone\n"
        wait_until(lambda: held() == [0, 0], "their end")
        result = session.finish(process, "")
    finally:
        if os.path.exists(path):
            os.unlink(path)
    largest = result.report["sites"][0]
    assert result.report["sites_at"] == "refusal"
    assert largest["file"] == largest["place"] == path and "python" not in largest
    assert result.report["next"][0] == f"close and remove '{path}': it is a file in memory"
    assert f"held:  at the last refusal: {path} " in result.stderr


def test_without_a_run_named_it_is_the_one_we_are_in_else_the_newest_that_runs(session, start):
    older = start("import sys; print('ready', flush=True); sys.stdin.read()")
    newer = start("import sys; print('ready', flush=True); sys.stdin.read()")
    runs = json.loads(session.plimsoll("runs", "--json").stdout)
    assert top(session)["run"] == runs[0]["run"]
    ledger = session.state / "runs" / runs[1]["run"] / "ledger"
    assert top(session, env={"PLIMSOLL_LEDGER": str(ledger)})["run"] == runs[1]["run"]
    assert top(session, runs[1]["pid"])["run"] == runs[1]["run"]
    session.finish(newer, "")
    assert top(session)["run"] == runs[1]["run"]
    session.finish(older, "")
    done = session.plimsoll("top")
    assert (done.returncode, done.stdout) == (125, "")
    assert done.stderr.startswith("plimsoll: nothing runs under plimsoll: ")
    assert top(session, runs[0]["run"])["running"] is False


@pytest.mark.parametrize("arguments, says", [
    (["--no"], "unknown option '--no'"), (["a", "b"], "expected at most one run, got 2"),
    (["nosuch"], "no run is named 'nosuch'")])
def test_what_is_asked_wrongly_is_one_line_and_status_125(session, arguments, says):
    done = session.plimsoll("top", *arguments)
    assert (done.returncode, done.stdout) == (125, "")
    assert says in done.stderr and done.stderr.count("\n") == 1


def test_cells_show_what_they_hold_and_how_it_grows(session, start):
    process = start(cells_script(
        f"cell(1, 'define', {DEFINE!r})",
        "for i in range(4): cell(2 + i, 'leak', '# again\\nload(16)\\n')",
        "cell(6, 'once', 'big = bytearray(50 << 20)\\n')",
        "space['wait'] = wait",
        "cell(7, 'last', 'wait()\\n')",
    ), options=["--kernel", session.folder / "kernel.json"])
    state = top(session)
    cells = {cell["id"]: cell for cell in state["cells"]}
    assert [cell["number"] for cell in state["cells"]] == [1, 5, 6, 7]
    leak = cells["leak"]
    assert (leak["n_runs"], leak["n_growing"], leak["running"]) == (4, 3, False)
    assert leak["held_series"] == [16 * MIB, 32 * MIB, 48 * MIB, 64 * MIB]
    assert (leak["held_bytes"], leak["growth_bytes"]) == (64 * MIB, 16 * MIB)
    assert leak["source"] == "load(16)"
    assert leak["sites"][0] == {
        "place": "In [1] line 3 in load()", "bytes": 64 * MIB, "growth_bytes": 16 * MIB}
    assert cells["once"]["sites"][0]["place"] == "In [6] line 1"
    assert cells["last"]["running"] and "after_bytes" not in cells["last"]
    assert state["notebook"]["cell"]["number"] == 7
    assert state["notebook"]["kernel"] == str(session.folder / "kernel.json")
    held = {site["place"]: site for site in state["sites"]}
    assert held["In [1] line 3 in load()"]["cell"] == 5
    text = session.plimsoll("top").stdout
    assert "  In [5]       4    64.0 MiB " in text and "+16.0 MiB  load(16)\n" in text
    assert "  In [7]*      1 " in text and "/tmp/ipykernel" not in text
    assert session.finish(process, "").rc == 0


def test_a_crash_in_a_cell_is_told_by_its_line(run, session):
    crash = "import ctypes\ndef crash():\n    ctypes.string_at(0)\n"
    done = run(script=cells_script(
        f"cell(1, 'a', {crash!r})", "cell(2, 'b', 'x = 1\\ncrash()\\n')"),
        options=["--kernel", "kernel.json"])
    pid = done.report["pid"]
    assert done.verdict == "crashed"
    assert done.report["summary"].startswith(
        f"crashed: segmentation fault in the kernel (pid {pid}) at In [1] line 3 in crash(): ")
    cell = done.report["notebook"]["cell"]
    assert (cell["number"], cell["line"], cell["source"]) == (2, 2, "crash()")
    frames = [frame for frame in done.report["python"] if "cell" in frame]
    assert [(f["cell"], f["line"], f["source"]) for f in frames] == [
        (1, 3, "ctypes.string_at(0)"), (2, 2, "crash()")]
    assert "\n  cell:  In [2] line 2: crash()\n  peak:  " in done.stderr
    brief = done.report["brief"]
    printed = [line for line in done.stderr.splitlines() if not line.startswith("Fatal")]
    assert printed[0] == "plimsoll: " + brief[0]["text"] and brief[0]["label"] == ""
    assert [line.strip() for line in printed[1:]] == [
        f"{line['label']}:".ljust(7) + line["text"].lstrip("%")  # a magic, as a command
        for line in brief[1:]]
    full = session.plimsoll("explain").stdout
    assert "  In [1] line 3 in crash()\n      ctypes.string_at(0)\n" in full
    assert "/tmp/ipykernel" not in full


def test_a_refusal_that_ends_the_kernel_is_told_in_a_notebooks_words(run):
    done = run(script=cells_script("cell(4, 'a', 'x = 1\\ny = bytearray(900 << 20)\\n')"),
               budget="300M", options=["--kernel", "kernel.json"])
    assert done.verdict == "refused"
    assert "asked for 900.0 MiB at In [4] line 2: " in done.report["summary"]
    assert done.report["refusals"][0]["python"]["cell"] == 4
    assert "\n  cell:  In [4] line 2: y = bytearray(900 << 20)\n" in done.stderr
    assert "%plimsoll budget SIZE" in done.stderr and "--budget" not in done.stderr
    assert "--sparse" not in json.dumps(done.report["next"])


def test_a_kernel_killed_in_a_cell_says_which_one_without_a_line(session, start):
    process = start(cells_script("space['wait'] = wait", "cell(3, 'a', '# c\\nwait()\\n')"),
                    options=["--kernel", "kernel.json"])
    os.kill(top(session)["pid"], signal.SIGKILL)
    done = session.finish(process)
    assert done.verdict == "killed"
    assert done.report["notebook"]["cell"]["source"] == "wait()"
    assert "\n  cell:  In [3], which begins: wait()" in done.stderr


def test_a_kernel_that_ends_well_says_nothing(run):
    done = run(script=cells_script("cell(3, 'a', 'pass\\n')"), options=["--kernel", "kernel.json"])
    assert (done.rc, done.stderr, done.verdict) == (0, "", "finished")
    assert "brief" not in done.report and "cell" not in done.report["notebook"]
    assert [cell["number"] for cell in done.report["cells"]] == [3]


def test_a_ledger_of_another_version_is_refused_as_explain_refuses_it(run, session):
    run("true")
    folder = next((session.state / "runs").iterdir())
    with open(folder / "ledger", "r+b") as ledger:
        ledger.seek(8)
        ledger.write((1).to_bytes(4, "little"))
    (folder / "report.json").unlink()
    explained, shown = session.plimsoll("explain"), session.plimsoll("top", folder.name)
    assert (shown.returncode, shown.stdout) == (125, "")
    assert shown.stderr == explained.stderr and "version 1" in shown.stderr


def test_a_run_that_has_just_begun_can_be_shown(session):
    process = session.start("sleep", "60")
    wait_until(lambda: session.plimsoll("top").returncode == 0, "the run to be found")
    state = top(session)
    assert state["sites"] == [] or all(site["place"] for site in state["sites"])
    os.kill(process.pid, signal.SIGTERM)
    session.finish(process)
