# SPDX-License-Identifier: Apache-2.0
"""Every allocation of the command fails in turn, once alone and once with all that follow.

Whichever it is: no death by a signal, no hang; an answer is whole and status 0, or there is none,
one line on stderr says why, and the status is 125. A run's status stays the program's. No record
loses anything. tests/programs/alloc_shim.c fails the allocations, of the supervisor only.

Two sweeps of what needs libdw: of our own and jansson's requests, which must keep all of that, and
of everybody's. With the latter, native stacks may lack names (libdw does not tell that it ran out
of memory), and libdw 0.188 may end the process; what it was seen to do:
  - a garbage Dwarf_CFI from dwfl_module_eh_cfi(), read by tfind() in dwarf_cfi_addrframe();
  - a null pointer read in dwarf_attr() below dwarf_getsrclines();
  - a null pointer read in the compare function of tsearch() below dwfl_module_getsrc();
  - exit(1) with "libdw: Cannot allocate memory", from its own allocator of DWARF objects.
`plimsoll explain` may end so, then; `plimsoll run` may not.
"""
import hashlib
import json
import re
import shutil
import subprocess

import pytest

from conftest import C_FLAGS, HANG_S, PLIMSOLL, PROGRAMS, Session

OURS = "plimsoll,libjansson,"
EVERYBODY = None
ALL_UP_TO = 200  # each of these is failed; from there on the steps grow
STEP = 25  # ... by a 25th of what was passed already
# Reading libc's debug information takes 80 ms of each call that needs libdw: fewer of those.
DEAR_STEP = 8
WAYS = pytest.mark.parametrize("onward", [False, True], ids=["once", "onward"])
CRASH = "import ctypes\nctypes.string_at(0)\n"
REFUSED = "import numpy\nnumpy.ones(1 << 27)\n"
KILLED_IN_A_CELL = """
    import ctypes, json, os
    folder = os.path.dirname(os.environ["PLIMSOLL_LEDGER"])
    with open(folder + "/cells.jsonl", "w") as out:
        for i in range(1, 20):
            line = {"number": i, "id": f"cell-{i}", "file": f"/tmp/{i}.py", "source": "pass\\n" * i}
            out.write(json.dumps(line) + "\\n")
    ctypes.CDLL(None).pl_guard_cell_begin(b"cell-19", 19)
    os.kill(os.getpid(), 9)
"""


@pytest.fixture(scope="session")
def shim(tmp_path_factory):
    library = tmp_path_factory.mktemp("shim") / "alloc_shim.so"
    subprocess.run(["gcc", *C_FLAGS, "-shared", "-fPIC", PROGRAMS / "alloc_shim.c", "-o", library],
                   check=True)
    return library


class Outcome:
    def __init__(self, number, done, log):
        self.number, self.rc = number, done.returncode
        self.stdout, self.stderr = done.stdout, done.stderr
        self.failed_for = log.read_text().split("\n")[0] if log.exists() else None
        log.unlink(missing_ok=True)

    def __repr__(self):
        return (f"allocation {self.number} failed, for {self.failed_for}: rc {self.rc}\n"
                f"--- stdout\n{self.stdout[-2000:]}\n--- stderr\n{self.stderr[-2000:]}")


def call(session, shim, argv, number, modules=EVERYBODY, onward=False, env=None):
    """One `plimsoll`, whose allocation `number` fails; 0: none does."""
    log = session.folder / "shim.log"
    shim_env = {"LD_PRELOAD": str(shim), "PLIMSOLL_SHIM_FAIL": str(number),
                "PLIMSOLL_SHIM_LOG": str(log), **(env or {})}
    if modules is not EVERYBODY:
        shim_env["PLIMSOLL_SHIM_MODULES"] = modules
    if onward:
        shim_env["PLIMSOLL_SHIM_ONWARD"] = "1"
    # A tail of bytes that are not UTF-8 is no reason to lose the outcome.
    done = subprocess.run([str(PLIMSOLL), *map(str, argv)], env=session.environment(shim_env),
                          cwd=session.folder, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, errors="replace", timeout=HANG_S)
    return Outcome(number, done, log)


def numbers(all_up_to, step):
    number = 1
    while True:
        yield number
        number += 1 if number < all_up_to else max(1, number // step)


def sweep(session, shim, argv, check, all_up_to=ALL_UP_TO, step=STEP, **how):
    """Fails one allocation after the other, until there are no more; returns how many were."""
    n_failed = 0
    for number in numbers(all_up_to, step):
        outcome = call(session, shim, argv, number, **how)
        if outcome.failed_for is None:
            assert outcome.rc == call(session, shim, argv, 0).rc, outcome
            return n_failed
        n_failed += 1
        check(outcome)


def is_one_line_of_ours(text):
    return text.startswith("plimsoll: ") and text.count("\n") == 1 and len(text) > 12


def whole_or_nothing(expected, normal=lambda text: text):
    """The same answer as with memory, or none and the reason."""

    def check(outcome):
        if outcome.rc == 0:
            assert normal(outcome.stdout) == normal(expected) and outcome.stderr == "", outcome
        else:
            assert outcome.rc == 125 and is_one_line_of_ours(outcome.stderr), outcome
            assert outcome.stdout == "", outcome

    return check


def digests(folder):
    """Every file below, with what is in it."""
    return {path.relative_to(folder): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(folder.rglob("*")) if path.is_file()}


def check_answer(session, shim, argv, normal=lambda text: text, **how):
    expected = call(session, shim, argv, 0)
    assert expected.rc == 0 and expected.stdout, expected
    before = digests(session.state)
    n_failed = sweep(session, shim, argv, whole_or_nothing(expected.stdout, normal), **how)
    assert digests(session.state) == before
    return n_failed


# ---- the shim itself ----


def test_the_shim_fails_what_it_is_told_to_and_nothing_else(session, shim):
    assert call(session, shim, ["budget", "--json"], 0).failed_for is None
    assert call(session, shim, ["budget", "--json"], 1 << 40).failed_for is None
    first = call(session, shim, ["budget", "--json"], 1, modules=OURS)
    assert first.rc == 125 and re.match(r"(plimsoll|libjansson\S*)\+0x", first.failed_for), first
    nobody = call(session, shim, ["budget", "--json"], 1, modules="libnobody,")
    assert nobody.rc == 0 and nobody.failed_for is None, nobody


def test_the_shim_stays_out_of_the_program(session, shim):
    outcome = call(session, shim, ["run", "--quiet", "--", "sh", "-c", "echo $LD_PRELOAD"], 0)
    assert outcome.rc == 0 and "guard" in outcome.stdout and "shim" not in outcome.stdout, outcome


# ---- commands that only read ----


def without_numbers(text):
    """What memory there is changes from one call to the next."""
    return re.sub(r"\s*\d[\d.]*( [KMGT]?i?B)?", " N", text)


@WAYS
@pytest.mark.parametrize("argv", [["budget"], ["budget", "--json"]], ids=" ".join)
def test_budget(session, shim, argv, onward):
    session.state.mkdir()
    assert check_answer(session, shim, argv, without_numbers, onward=onward) >= 1


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """State folders, by what happened in them: made once, only read here."""
    made = {}

    def make(name, **how):
        session = Session(tmp_path_factory.mktemp(name))
        result = session.run(**how)
        assert result.verdict == name, result.text()
        made[name] = session.state

    make("crashed", script=CRASH)
    make("refused", script=REFUSED, budget="300M")
    make("hang", script="import threading as t\nlock = t.Lock()\nlock.acquire()\nlock.acquire()\n",
         options=["--hang-after", "0.5s", "--hang-stop"])
    make("killed", script=KILLED_IN_A_CELL, options=["--kernel", "kernel.json"])
    return made


@pytest.fixture
def recorded(session, records):
    """Puts copies of records into the session: recorded("hang", ..., reports=False)."""

    def put(*names, reports=True):
        for name in names:
            for run in (records[name] / "runs").iterdir():
                shutil.copytree(run, session.state / "runs" / run.name)
                if not reports:
                    (session.state / "runs" / run.name / "report.json").unlink()

    return put


@WAYS
@pytest.mark.parametrize("argv", [["runs"], ["runs", "--json"]], ids=" ".join)
def test_runs(session, shim, recorded, argv, onward):
    recorded("crashed", "refused", "hang")
    assert check_answer(session, shim, argv, all_up_to=60, onward=onward) >= 60


@WAYS
@pytest.mark.parametrize("name", ["crashed", "refused", "hang"])
def test_explain_from_the_report(session, shim, recorded, name, onward):
    recorded(name)
    assert check_answer(session, shim, ["explain", "--json"], onward=onward) > ALL_UP_TO


def test_explain_as_text(session, shim, recorded):
    recorded("crashed")
    assert check_answer(session, shim, ["explain"]) > ALL_UP_TO


# By number 120 the stack of the crash is read; what follows is jansson's.
@pytest.mark.parametrize("name, all_up_to, step", [("crashed", 120, DEAR_STEP),
                                                   ("refused", 120, DEAR_STEP),
                                                   ("hang", ALL_UP_TO, STEP),
                                                   ("killed", ALL_UP_TO, STEP)])
def test_explain_from_the_ledger(session, shim, recorded, name, all_up_to, step):
    recorded(name, reports=False)
    n_failed = check_answer(session, shim, ["explain", "--json"], modules=OURS,
                            all_up_to=all_up_to, step=step)
    assert n_failed > all_up_to


@WAYS
@pytest.mark.parametrize("argv", [["top", "last"], ["top", "last", "--json"]], ids=" ".join)
def test_top(session, shim, recorded, argv, onward):
    recorded("killed")
    assert "In [19]" in call(session, shim, ["top", "last"], 0).stdout
    assert check_answer(session, shim, argv, modules=OURS, onward=onward) > ALL_UP_TO


def is_excused(outcome):
    """libdw's own ways to end the process; see the top."""
    asked_by = re.match(r"lib(dw|elf|c|z|lzma|bz2)\b", outcome.failed_for)
    by_exit = outcome.rc == 1 and "libdw: Cannot allocate memory" in outcome.stderr
    return asked_by and outcome.stdout == "" and (outcome.rc in (-11, -6) or by_exit)


@WAYS
def test_explain_from_the_ledger_when_libdw_is_not_spared(session, shim, recorded, onward):
    recorded("crashed", reports=False)
    argv = ["explain", "--json"]
    expected = json.loads(call(session, shim, argv, 0).stdout)
    before = digests(session.state)

    def check(outcome):
        if is_excused(outcome):
            return
        assert outcome.rc in (0, 125), outcome
        if outcome.rc == 125:
            assert is_one_line_of_ours(outcome.stderr) and outcome.stdout == "", outcome
            return
        report = json.loads(outcome.stdout)
        # What rests on libdw: frames without names, and the advice that is made from them.
        for key in set(expected) - {"native", "next", "sites", "brief"}:
            assert report[key] == expected[key], (key, outcome)

    assert sweep(session, shim, argv, check, all_up_to=50, step=DEAR_STEP, onward=onward) > 50
    assert digests(session.state) == before


# ---- runs ----


def check_run(session, shim, command, status, verdict, all_up_to, **how):
    """The status is the program's, or 125 when it never began; what the record holds tells the
    verdict in either case."""
    state = session.folder / "run-state"

    def check(outcome):
        runs = list((state / "runs").iterdir()) if (state / "runs").exists() else []
        if outcome.rc == 125:
            assert is_one_line_of_ours(outcome.stderr) and runs == [], outcome
            return
        assert outcome.rc == status and len(runs) == 1, outcome
        names = {path.name for path in runs[0].iterdir()}
        assert "ledger" in names, outcome
        assert not [name for name in names if name.startswith("report.json.")], names
        if "report.json" not in names:
            assert f"plimsoll explain {runs[0].name}" in outcome.stderr or \
                ": out of memory" in outcome.stderr, outcome
            done = session.plimsoll("explain", "--json", env={"PLIMSOLL_STATE": str(state)})
            report = json.loads(done.stdout)
        else:
            report = json.loads((runs[0] / "report.json").read_text())
        assert report["verdict"] == verdict and report["exit"]["status"] == status, outcome
        shutil.rmtree(state)

    return sweep(session, shim, ["run", "--", *command], check, all_up_to,
                 env={"PLIMSOLL_STATE": str(state)}, **how)


@WAYS
def test_run(session, shim, onward):
    assert check_run(session, shim, ["sh", "-c", "exit 7"], 7, "failed", 60, onward=onward) > 60


# The end of libdw is the end of the report, never of the run: 6 of its first 25 failures were that.
@pytest.mark.parametrize("modules", [OURS, "libdw,"], ids=["ours", "libdw"])
def test_run_of_a_python_that_crashes(session, shim, modules):
    command = session.script(CRASH)
    n_failed = check_run(session, shim, command, 128 + 11, "crashed", 25, step=DEAR_STEP,
                         modules=modules)
    assert n_failed > 25
