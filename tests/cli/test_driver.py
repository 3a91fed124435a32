# SPDX-License-Identifier: Apache-2.0
"""The test driver misses no failure: what it makes of outputs that it may meet."""

import collections
import importlib.machinery
import importlib.util
import json
import pathlib
import shutil
import subprocess
import threading
import time

import pytest


@pytest.fixture(scope="module")
def driver(root):
    loader = importlib.machinery.SourceFileLoader("run_all", str(root / "tests/run_all"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("run_all", loader))
    loader.exec_module(module)
    return module


@pytest.fixture
def c_test(driver, tmp_path, monkeypatch):
    """Runs a shell script in the place of a C test; returns how many cases ended in which way."""
    monkeypatch.setattr(driver, "LOGS", tmp_path)

    def run(script, timeout=60):
        program = tmp_path / "program"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        test = {"name": "sample", "cmd": [str(program)], "env": {}, "timeout": timeout}
        results = driver.run_c_tests_again(driver.run_c_test(driver.Build("default"), test))
        return results, dict(collections.Counter(result.outcome for result in results))

    return run


def test_cases_are_counted_one_by_one(c_test):
    script = "echo 1..2; echo ok 1 - one; echo ok 2 - two; echo '# ok - group'"
    assert c_test(script)[1] == {"passed": 2}


def test_two_groups_in_one_program(c_test):
    script = "echo 1..1; echo ok 1 - one; echo 1..1; echo ok 1 - two"
    assert c_test(script)[1] == {"passed": 2}


def test_a_failed_case_is_one_failure(c_test):
    script = "echo 1..2; echo ok 1 - one; echo not ok 2 - two; exit 1"
    assert c_test(script)[1] == {"passed": 1, "failed": 1}


def test_a_skipped_case_says_why(c_test):
    script = "echo 1..1; echo no memory cgroup here; echo 'not ok 1 # SKIP one'"
    results, counts = c_test(script)
    assert counts == {"skipped": 1} and results[0].reason == "no memory cgroup here"


@pytest.mark.parametrize(
    "script, how",
    [
        ("echo 1..2; echo ok 1 - one; kill -SEGV $$", "SIGSEGV after 1 of 2"),
        ("echo 1..2; echo ok 1 - one", "exit status 0 after 1 of 2"),
        ("echo 1..1; echo ok 1 - one; exit 23", "exit status 23 after 1 of 1"),
        ("exit 0", "exit status 0 after 0 of 0"),
        ("echo cannot start >&2; exit 1", "exit status 1 after 0 of 0"),
    ],
)
def test_a_program_that_ends_otherwise_than_planned_has_failed(c_test, script, how):
    results, counts = c_test(script)
    assert counts["failed"] == 1 and how in results[-1].reason


def test_a_program_that_fails_once_is_named_but_passes(c_test, tmp_path):
    script = f"echo 1..1; mkdir {tmp_path}/met && {{ echo not ok 1 - one; exit 1; }}; echo ok 1 - one"
    results, counts = c_test(script)
    assert counts == {"passed": 1} and results[0].unsteady


def test_what_a_sanitizer_said_gets_no_second_chance(c_test, tmp_path):
    report = "echo ERROR: AddressSanitizer: heap-use-after-free; exit 1"
    results, counts = c_test(f"echo 1..1; mkdir {tmp_path}/met && {{ {report}; }}; echo ok 1 - one")
    assert counts == {"failed": 1} and not results[0].unsteady


@pytest.mark.parametrize("case, outcome", [("ok 1 - one", "failed"), ("not ok 1 - one", "passed")])
def test_a_leak_is_no_finding_where_a_case_failed_and_left_things_behind(
    c_test, tmp_path, case, outcome
):
    leaks = f"echo {case}; echo ERROR: LeakSanitizer: detected memory leaks; exit 23"
    _, counts = c_test(f"echo 1..1; mkdir {tmp_path}/met && {{ {leaks}; }}; echo ok 1 - one")
    assert ("failed" in counts) == (outcome == "failed")


def gone(pid):
    """Has the process ended? A zombie has."""
    stat = pathlib.Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z"


@pytest.mark.parametrize("end, counts", [("wait", {"failed": 1}), ("echo ok 1 - a", {"passed": 1})])
def test_no_child_of_a_program_stays_behind(c_test, tmp_path, end, counts):
    results, counted = c_test(f"echo 1..1; sleep 1000 & echo $! >{tmp_path}/child; {end}", timeout=2)
    assert counted == counts
    assert counted == {"passed": 1} or "hung" in results[-1].reason
    child = int((tmp_path / "child").read_text())
    while not gone(child):
        time.sleep(0.01)


def test_junit_outcomes(driver, tmp_path):
    report = tmp_path / "report.xml"
    report.write_text(
        "<testsuites><testsuite>"
        '<testcase classname="a" name="passes"/>'
        '<testcase classname="a" name="fails"><failure message="why&#10;more"/></testcase>'
        '<testcase classname="a" name="breaks"><error message="setup"/></testcase>'
        '<testcase classname="a" name="skips"><skipped message="no cgroup"/></testcase>'
        "</testsuite></testsuites>"
    )
    outcomes = [(result.outcome, result.reason) for result in driver.parse_junit("run", report)]
    assert outcomes == [
        ("passed", ""),
        ("failed", "why"),
        ("failed", "setup"),
        ("skipped", "no cgroup"),
    ]


@pytest.mark.parametrize(
    "classname, file",
    [
        ("tests.notebook.test_cells", "test_cells.py"),
        ("test_cells", "test_cells.py"),  # the part has a pytest.ini of its own
        ("browser.test_classic", "browser/test_classic.py"),
    ],
)
def test_a_case_is_found_again_by_its_file(driver, tmp_path, classname, file):
    report = tmp_path / "report.xml"
    report.write_text(f'<testsuite><testcase classname="{classname}" name="one"/></testsuite>')
    node = driver.parse_junit("notebook", report)[0].node
    assert node == f"{driver.ROOT}/tests/notebook/{file}::one"
    assert pathlib.Path(node.partition("::")[0]).exists()


@pytest.mark.parametrize(
    "outcomes, status, line",
    [
        (["passed", "passed", "skipped"], 0, "2 passed, 0 failed, 1 skipped"),
        (["passed", "failed"], 1, "1 passed, 1 failed, 0 skipped"),
        ([], 1, "0 passed, 0 failed, 0 skipped"),
    ],
)
def test_the_last_line_and_the_status(driver, tmp_path, monkeypatch, capsys, outcomes, status, line):
    monkeypatch.setattr(driver, "LOGS", tmp_path)
    results = [driver.Result("x", outcome) for outcome in outcomes]
    assert driver.summarize(results) == status
    assert capsys.readouterr().out.splitlines()[-1] == line
    assert (tmp_path / "summary").read_text() == line + "\n"


@pytest.mark.parametrize(
    "script, outcome, reason",
    [
        ("echo fine", "passed", ""),
        ("echo bad; exit 1", "failed", "exit status 1"),
        ("echo not checked: no tool; exit 77", "skipped", "not checked: no tool"),
    ],
)
def test_a_check_that_lacks_its_tool_is_skipped_and_says_why(
    driver, tmp_path, monkeypatch, script, outcome, reason
):
    for name in ("ROOT", "LOGS"):
        monkeypatch.setattr(driver, name, tmp_path)
    tool = tmp_path / "tools" / "check-sample"
    tool.parent.mkdir()
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)
    (result,) = driver.check("sample")
    assert (result.outcome, result.reason) == (outcome, reason)


def test_each_part_is_counted(driver, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(driver, "LOGS", tmp_path)
    results = driver.of_part("tf", [driver.Result("a", "passed"), driver.Result("b", "skipped")])
    results += driver.of_part("run", [driver.Result("c", "failed")])
    driver.summarize(results)
    assert json.loads((tmp_path / "summary.json").read_text()) == {
        "parts": {
            "tf": {"passed": 1, "failed": 0, "skipped": 1},
            "run": {"passed": 0, "failed": 1, "skipped": 0},
        },
        "total": {"passed": 1, "failed": 1, "skipped": 1},
    }


def test_the_core_of_a_part_is_what_the_list_names(driver):
    listing = "# tf/comment\ntf/test_math.py\n\nrun/test_tree.py::test_a\ntf/test_nn.py::test_b[x]\n"
    folder = driver.ROOT / "tests"
    assert driver.core_of("tf", listing) == [folder / "tf/test_math.py", folder / "tf/test_nn.py::test_b[x]"]
    assert driver.core_of("run", listing) == [folder / "run/test_tree.py::test_a"]


def test_the_list_of_the_core_names_files_that_exist(driver):
    listing = driver.CORE_LIST.read_text()
    listed = [path for part in driver.PYTEST_PARTS for path in driver.core_of(part, listing)]
    lines = [line for line in listing.splitlines() if line and not line.startswith("#")]
    assert len(listed) == len(lines) == len(set(lines))
    for path in listed:
        file, _, test = str(path).partition("::")
        assert pathlib.Path(file).is_file(), path
        assert not test or f"def {test.partition('[')[0]}(" in pathlib.Path(file).read_text(), path


@pytest.mark.parametrize(
    "words, wanted",
    [
        (["--core"], {"default", "tf", "run", "notebook"}),
        (["--core", "tf"], {"tf"}),
        (["--fast", "asan", "cli"], {"cli"}),
        (["--core", "cli"], None),
        (["nonsense"], None),
    ],
)
def test_which_parts_are_run(driver, monkeypatch, words, wanted):
    monkeypatch.setattr(driver.sys, "argv", ["run_all", *words])
    if wanted is None:
        with pytest.raises(SystemExit):
            driver.parse_arguments()
    else:
        assert driver.parse_arguments()[0] == wanted


@pytest.fixture
def ci(root, tmp_path):
    """Runs .ci/run with scripts in the place of `make test` and tools/try-on; returns its status and
    its last line."""

    def run(make, try_on):
        for folder in (".ci", "tools", "build/test-logs", "build/try-on"):
            (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        shutil.copy(root / ".ci/run", tmp_path / ".ci/run")
        (tmp_path / "Makefile").write_text(f"test:\n\t@{make}\n")
        script = tmp_path / "tools/try-on"
        script.write_text(f"#!/bin/sh\necho '| trixie |'\n{try_on}\n")
        script.chmod(0o755)
        done = subprocess.run([tmp_path / ".ci/run"], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout.splitlines()[-1]

    return run


HERE = "echo '7 passed, {} failed, 2 skipped' >build/test-logs/summary; exit {}"
THERE = "echo '5 passed, {} failed, 1 skipped' >build/try-on/trixie.summary; exit {}"


@pytest.mark.parametrize(
    "make, try_on, status, line",
    [
        (HERE.format(0, 0), THERE.format(0, 0), 0, "12 passed, 0 failed, 3 skipped"),
        (HERE.format(0, 0), THERE.format(3, 1), 1, "12 passed, 3 failed, 3 skipped"),
        (HERE.format(1, 1), THERE.format(0, 0), 2, "12 passed, 1 failed, 3 skipped"),
        (HERE.format(1, 1), THERE.format(1, 1), 1, "12 passed, 2 failed, 3 skipped"),
        # No archive: what was run here decides.
        (HERE.format(0, 0), "exit 69", 0, "7 passed, 0 failed, 2 skipped"),
        # A build that failed, or a try-on that crashed, has no summary.
        ("exit 1", "exit 69", 2, "0 passed, 1 failed, 0 skipped"),
        (HERE.format(0, 0), "exit 1", 1, "7 passed, 1 failed, 2 skipped"),
    ],
)
def test_ci_ends_with_one_line_for_both_machines(ci, make, try_on, status, line):
    assert ci(make, try_on) == (status, line)


def test_ci_counts_nothing_from_a_run_before(ci):
    ci(HERE.format(0, 0), THERE.format(0, 0))
    assert ci("exit 1", "exit 69") == (2, "0 passed, 1 failed, 0 skipped")


@pytest.fixture
def pytest_part(driver, tmp_path, monkeypatch):
    """Runs a test file as a part of its own; returns its results by the name of the test."""
    part = tmp_path / "tests" / "live"
    part.mkdir(parents=True)
    monkeypatch.setattr(driver, "ROOT", tmp_path)
    monkeypatch.setattr(driver, "LOGS", tmp_path)
    monkeypatch.setattr(driver, "PARTS_RUN_AGAIN", ("live",))

    def run(source):
        (part / "test_sample.py").write_text(source)
        results = driver.run_again("live", driver.run_pytest("live"))
        return {result.name.split("::")[-1]: result for result in results}

    return run


UNSTEADY = """
import pathlib
import shutil
def test_steady(): pass
def test_broken(): assert False
def test_unsteady(tmp_path):
    met = pathlib.Path(__file__).with_suffix(".met")
    if not met.exists():
        met.touch()
        assert False, "the machine was busy"
"""


def test_what_fails_once_in_a_live_part_is_named_but_passes(driver, pytest_part, capsys):
    results = pytest_part(UNSTEADY)
    outcomes = {name: (result.outcome, result.unsteady) for name, result in results.items()}
    assert outcomes == {"test_steady": ("passed", False), "test_broken": ("failed", False),
                        "test_unsteady": ("passed", True)}
    assert driver.summarize(list(results.values())) == 1
    said = capsys.readouterr().out
    assert "unsteady: live: tests.live.test_sample::test_unsteady: AssertionError: the" in said
    assert said.endswith("2 passed, 1 failed, 0 skipped\n")


def test_many_failures_get_no_second_chance(pytest_part):
    tests = UNSTEADY + "".join(f"def test_{i}(): assert False\n" for i in range(5))
    assert pytest_part(tests)["test_unsteady"].outcome == "failed"


def test_what_fails_elsewhere_gets_no_second_chance(driver, pytest_part, monkeypatch):
    monkeypatch.setattr(driver, "PARTS_RUN_AGAIN", ())
    assert pytest_part(UNSTEADY)["test_unsteady"].outcome == "failed"


@pytest.fixture
def whole_run(driver, monkeypatch):
    """Runs parts of which nothing is real but the order; returns what began and ended, and the part of
    each result."""

    def run(wanted, failing=()):
        events, lock = [], threading.Lock()

        def job(name):
            with lock:
                events.append(("begins", name))
            time.sleep(0.02)
            with lock:
                events.append(("ends", name))
            return [driver.Result(name, "failed" if name in failing else "passed")]

        test = {"name": "test_one"}
        stubs = {
            "compile_build": lambda build, strict: job(f"build-{build.name}"),
            "tests_of": lambda build, suites: [test],
            "run_c_test": lambda build, test: job(f"c-{build.name}"),
            "run_c_tests_again": lambda done: done,
            "prepare_fuzzers": lambda: ([], [test]),
            "fuzz": lambda test, seconds: job("fuzzer"),
            "check": job,
            "run_pytest": lambda part, core, n_workers: job(part),
            "run_again": lambda part, results: job(f"{part}-again") and results,
        }
        for name, stub in stubs.items():
            monkeypatch.setattr(driver, name, stub)
        results = driver.run_parts(set(wanted), 60, core=False)
        return events, {result.name: result.part for result in results}

    return run


def test_what_wants_the_processors_comes_when_all_but_fuzzers_is_done(driver, whole_run):
    builds = [build.name for build in driver.BUILDS]
    parts = ["checks", "symbols", "fuzz", *builds, *driver.PYTEST_PARTS]
    events, results = whole_run(parts)
    first = events.index(("begins", "run"))
    assert [name for what, name in events[first:] if name != "fuzzer"] == [
        "run", "run", "run-again", "run-again", *["notebook"] * 2, *["notebook-again"] * 2]  # fmt: skip
    ended = [name for what, name in events if what == "ends"]
    for build in builds:
        assert ended.index(f"build-{build}") < ended.index(f"c-{build}")
        assert results[f"build-{build}"] == build
    expected = {*driver.CHECKS, "symbols", "fuzzer", "arm64", *driver.PYTEST_PARTS}
    expected |= {f"{kind}-{build}" for kind in ("build", "c") for build in builds}
    assert set(results) == expected


def test_what_needs_a_build_that_failed_is_not_run_and_all_else_is(whole_run):
    _, results = whole_run(["default", "asan", "fuzz", "tf"], failing=["build-asan"])
    assert set(results) == {"build-default", "build-asan", "c-default", "tf"}


def test_fuzzers_bring_the_build_they_need_but_not_its_tests(whole_run):
    events, results = whole_run(["fuzz"])
    assert set(results) == {"build-asan", "fuzzer"}


@pytest.fixture
def fuzzer(driver, tmp_path, monkeypatch):
    """Runs a shell script in the place of a libFuzzer program; returns its one result."""
    for name in ("LOGS", "BUILD", "ROOT"):
        monkeypatch.setattr(driver, name, tmp_path)
    kept = tmp_path / "tests" / "fuzz" / "corpus" / "sample"
    for folder in (tmp_path / "fuzz" / "sample", kept):
        folder.mkdir(parents=True)
        for name in ("b", "a"):
            (folder / name).write_text("seed")

    def run(script, seconds=60):
        program = tmp_path / "program"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        test = {"name": "libfuzzer_sample", "cmd": [str(program), "-runs=0"], "env": {}}
        (result,) = driver.fuzz(test, seconds)
        return result

    return run


def test_a_fuzzer_that_finds_nothing_is_one_passed_test(fuzzer, tmp_path):
    result = fuzzer(f'echo "$@" >{tmp_path}/arguments')
    assert (result.name, result.outcome) == ("fuzz: sample", "passed")
    arguments = (tmp_path / "arguments").read_text().split()
    assert f"-max_total_time={30 * 60}" in arguments  # the clock's, where others have the processors
    assert "-runs=0" not in arguments  # it would end at once
    (seeds,) = (word for word in arguments if word.startswith("-seed_inputs=@"))
    listed = pathlib.Path(seeds.removeprefix("-seed_inputs=@")).read_text().split(",")
    folders = tmp_path / "fuzz" / "sample", tmp_path / "tests" / "fuzz" / "corpus" / "sample"
    assert listed == [str(folder / name) for folder in folders for name in ("a", "b")]


def test_a_search_ends_when_its_processor_time_is_over(fuzzer):
    """As libFuzzer does it: told to, it ends well."""
    assert fuzzer("trap 'exit 0' USR1; while :; do :; done", 1).outcome == "passed"


def test_a_search_ends_where_it_was_tried_but_for_one_that_is_asked_to_be_long(
    driver, fuzzer, tmp_path, monkeypatch
):
    monkeypatch.setitem(driver.FUZZ_RUNS, "sample", 1234)
    for seconds, expected in ((60, "-runs=1234"), (600, "-runs=-1"), (0, "-runs=0")):
        shutil.rmtree(tmp_path / "fuzz" / "sample-found", ignore_errors=True)
        fuzzer(f'echo "$@" >{tmp_path}/arguments', seconds)
        assert expected in (tmp_path / "arguments").read_text().split()


def test_every_target_has_a_number_of_runs(driver, root):
    targets = {path.stem.removeprefix("fuzz_") for path in (root / "tests/fuzz").glob("fuzz_*.c")}
    assert targets == set(driver.FUZZ_RUNS)


def test_no_seconds_are_a_pass_over_the_corpus(fuzzer, tmp_path):
    assert fuzzer(f'echo "$@" >{tmp_path}/arguments', 0).outcome == "passed"
    assert "-runs=0" in (tmp_path / "arguments").read_text().split()


@pytest.mark.parametrize(
    "script, reason",
    [
        (
            "echo SUMMARY: AddressSanitizer: heap-buffer-overflow; echo Test unit written to /x/fuzz-1;"
            "exit 1",
            "AddressSanitizer: heap-buffer-overflow; /x/fuzz-1",
        ),
        ("kill -SEGV $$", "ended by SIGSEGV; no input"),
        ("exit 77", "exit status 77; no input"),
    ],
)
def test_what_a_fuzzer_finds_is_a_failure_that_names_the_input(fuzzer, script, reason):
    result = fuzzer(script)
    assert (result.outcome, result.reason) == ("failed", reason)
