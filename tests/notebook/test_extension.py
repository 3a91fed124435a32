# SPDX-License-Identifier: Apache-2.0
"""The IPython extension itself: what it hooks, what it leaves behind, and that it does not show."""
import json
import os
import re
import signal
import subprocess
import sys

import pytest

from support import BUILD, HANG_S, MIB, PLIMSOLL, PYTHON, wait_until

sys.path.insert(0, str(BUILD / "python"))

from plimsoll.notebook import death, limit, refusals, sizes, tables  # noqa: E402

MAKE_ROOM = "import numpy as np\ndef fill(n_mib):\n    return np.ones(n_mib << 17)"


def records(kernel):
    """The records of the kernel and those before it, oldest first."""
    return sorted((kernel.home.state / "runs").iterdir())


def lines_of(kernel):
    """cells.jsonl of the newest record, as it stands."""
    text = (records(kernel)[-1] / "cells.jsonl").read_text().rstrip("\0")
    return [json.loads(line) for line in text.split("\n")[:-1]]


def line_bytes(kernel):
    """Where the line is, by %plimsoll budget."""
    shown = kernel.run("%plimsoll budget").stdout
    return sizes.parse(re.match(r"the line is ([\d.]+ \w+):", shown)[1].replace(" ", ""))


# ---- sizes ----


@pytest.mark.parametrize("text, n_bytes", [
    ("4096", 4096), ("512M", 512 * MIB), ("1.5G", 1536 * MIB), ("2GiB", 2048 * MIB), ("1kb", 1024),
    ("10B", 10), ("0.1K", 102),
])
def test_sizes_are_read_as_the_program_reads_them(text, n_bytes):
    assert sizes.parse(text) == n_bytes


@pytest.mark.parametrize("text", ["", "50%", "1.5", "M", "1..5G", "-1M", "0", "1.G", "9E9", "10E"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(ValueError, match="is not a size"):
        sizes.parse(text)


@pytest.mark.parametrize("n_bytes, text", [
    (0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (MIB - 1, "1.0 MiB"), (32 * MIB, "32.0 MiB"),
    (-2 * MIB, "-2.0 MiB"), (1 << 60, "1.0 EiB"),
])
def test_sizes_are_shown_as_the_program_shows_them(n_bytes, text):
    assert sizes.show(n_bytes) == text


# ---- pages ----


def test_a_page_says_the_same_in_text_and_in_html():
    page = tables.Page("A title")
    page.pairs([("", "a sentence"), ("peak", "1.0 GiB"), ("next", "do this")])
    page.table(("cell", "held"), "lr", [("In [3]", "12.0 MiB"), ("In [10]", "1.0 MiB")])
    assert page.text() == "\n".join([
        "A title", "a sentence", "  peak  1.0 GiB", "  next  do this",
        "  cell         held", "  In [3]   12.0 MiB", "  In [10]   1.0 MiB"])
    words = re.sub(r"<[^>]*>", " ", page.html()).split()
    assert words == page.text().split()


def test_nothing_in_a_page_becomes_html():
    page = tables.Page("<b>title</b>")
    page.line("<script>alert(1)</script>")
    page.table(("<i>",), "c", [("x < 1 and y > '\"&'",)])
    html = page.html()
    tags = "div div b div table tr th tr td"
    assert re.findall(r"<(\w+)", html) == tags.split()
    assert "&lt;script&gt;" in html and "x &lt; 1 and y &gt; &#x27;&quot;&amp;&#x27;" in html


# ---- deaths, refusals ----


@pytest.mark.parametrize("report, news", [
    ({}, False),
    ({"verdict": "crashed"}, False),  # written before the field was
    ({"verdict": "finished", "news_for": "nobody"}, False),
    ({"verdict": "killed", "news_for": "log"}, False),
    ({"verdict": "killed", "news_for": "user"}, True),
])
def test_the_report_says_what_is_shown_to_the_user(report, news):
    assert death.is_news(report) is news


def chained(error, cause):
    error.__context__ = cause
    return error


@pytest.mark.parametrize("error, by_memory", [
    (MemoryError(), True),
    (RuntimeError("can't start new thread"), True),
    (OSError(12, "Cannot allocate memory"), True),
    (ValueError("DefaultCPUAllocator: can't allocate memory"), True),
    (ValueError("wrong"), False),
    (KeyboardInterrupt(), False),
    (chained(ValueError("wrong"), MemoryError()), True),
    (chained(ValueError("wrong"), KeyError("x")), False),
])
def test_an_error_that_memory_had_no_part_in_is_told_apart(error, by_memory):
    assert refusals._is_about_memory(error) is by_memory


def test_a_refusal_that_was_caught_is_not_shown_below_another_error(guarded):
    kernel = guarded(budget="600M")
    kernel.run(MAKE_ROOM)
    outcome = kernel.run("try:\n    fill(1000)\nexcept MemoryError:\n    pass\n{}['x']")
    assert outcome.error.ename == "KeyError" and "plimsoll" not in outcome.error.traceback
    outcome = kernel.run("raise RuntimeError('of the next cell')")
    assert "plimsoll" not in outcome.error.traceback
    assert "plimsoll: refused" in kernel.run("fill(1000)").error.traceback


def test_a_failure_of_ours_leaves_the_error_as_it_was(guarded):
    kernel = guarded(budget="600M")
    kernel.run(MAKE_ROOM)
    kernel.run("import plimsoll.notebook as p\ndef fail(*_): raise TypeError('ours')\n"
               "p._loaded.refusals._guard.refusal = p._loaded.cells._sources.write = fail")
    outcome = kernel.run("fill(1000)")
    assert outcome.error.ename == "MemoryError" and "ours" not in outcome.error.traceback
    assert outcome.stdout == outcome.stderr == ""


# ---- cells.jsonl ----


def test_each_run_of_a_cell_is_one_line_and_its_source_is_there_once(guarded):
    kernel = guarded()
    for source in ("x = 1", "y = 'ü'", "x = 1", "x = 1"):
        kernel.run(source)
    lines = lines_of(kernel)
    assert [line["number"] for line in lines] == [1, 2, 3, 4]
    assert [line.get("source") for line in lines] == ["x = 1", "y = 'ü'", None, None]
    assert lines[0]["file"] == lines[2]["file"] == lines[3]["file"] != lines[1]["file"]
    assert lines[0]["id"] == lines[2]["id"] != lines[1]["id"]
    file = kernel.run("def f(): pass\nf.__code__.co_filename").text
    assert file == repr(lines_of(kernel)[4]["file"])


def test_the_line_is_there_before_the_code_runs(guarded):
    kernel = guarded()
    file = records(kernel)[-1] / "cells.jsonl"
    assert kernel.run(f"open('{file}').read().count(chr(10))").text == "1"
    assert kernel.run(f"open('{file}').read().count(chr(10))").text == "2"


def test_the_file_grows_with_its_lines_and_is_cut_to_them_at_the_end(guarded):
    kernel = guarded()
    file = records(kernel)[-1] / "cells.jsonl"
    for i in range(12):
        kernel.run(f"x = {i}  # " + "y" * (60 << 10))
    assert [line["number"] for line in lines_of(kernel)] == list(range(1, 13))
    kernel.run("import os, sys\nif os.fork() == 0:\n    import plimsoll.notebook as n; n._loaded.cells._sources.close(); os._exit(0)"
               "\nelse:\n    os.wait()")
    kernel.run("x = 14")
    assert len(lines_of(kernel)) == 14
    kernel.run("%unload_ext plimsoll.notebook")
    assert file.read_bytes().endswith(b"}\n") and len(lines_of(kernel)) == 15
    kernel.run("%load_ext plimsoll.notebook")
    kernel.run("z = 1")
    assert [line["number"] for line in lines_of(kernel)] == [*range(1, 16), 17]
    kernel.shutdown()
    assert file.read_bytes().endswith(b"}\n")


def test_a_source_counts_its_lines_as_tracebacks_do(guarded):
    kernel = guarded()
    outcome = kernel.run("\n   \n\nx = 1\n1 / 0\n")
    assert "line 2" in outcome.error.traceback
    assert lines_of(kernel)[-1]["source"].splitlines()[1] == "1 / 0"


def test_a_long_source_is_cut_and_an_odd_one_does_no_harm(guarded):
    kernel = guarded()
    kernel.run("x = 1  # " + "ü" * (64 << 10))
    assert len(lines_of(kernel)[0]["source"].encode()) in ((64 << 10) - 1, 64 << 10)
    assert kernel.run("x = '\\ud800'; x").status == "ok"
    assert kernel.run("x = '\u2028\x0c\"\\\\'\n1").text == "1"
    assert lines_of(kernel)[-1]["source"] == "x = '\u2028\x0c\"\\\\'\n1"


def test_code_that_is_no_cell_leaves_no_line(guarded):
    kernel = guarded()
    kernel.run("x = 1", silent=True)
    kernel.run("x = 2", store_history=False)
    kernel.run("x = 3")
    assert [line["source"] for line in lines_of(kernel)] == ["x = 3"]


def test_what_a_magic_runs_inside_of_a_cell_is_the_cells(guarded):
    kernel = guarded(budget="600M")
    kernel.run(MAKE_ROOM)
    kernel.run("%%capture\n\nkept = fill(100)")
    kernel.run("pass")
    assert [(line["number"], line["source"]) for line in lines_of(kernel)[1:]] == [
        (2, "%%capture\n\nkept = fill(100)"), (2, "kept = fill(100)\n"), (3, "pass")]
    outcome = kernel.run("%%capture\nmore = np.ones(300 << 17)\nmore = [more, np.ones(400 << 17)]")
    assert "In [4] line 1 300.0 MiB" in outcome.error.traceback.splitlines()[-1]


def test_a_cell_goes_on_after_what_a_magic_ran_inside_of_it(guarded):
    kernel = guarded(budget="600M")
    kernel.run(MAKE_ROOM)
    outcome = kernel.run("get_ipython().run_cell('x = 1')\nmore = np.ones(300 << 17)\nfill(400)")
    assert "In [2] line 2 300.0 MiB" in outcome.error.traceback.splitlines()[-1]
    cells = json.loads(kernel.home.plimsoll("top", "--json", records(kernel)[-1]).stdout)["cells"]
    assert [cell["held_bytes"] for cell in cells if cell["number"] == 2][0] >= 300 * MIB


def test_a_forked_child_marks_no_cells(guarded):
    kernel = guarded()
    kernel.run("""if True:
        import os
        shell = get_ipython()
        pid = os.fork()
        if pid == 0:
            shell.compile.cache("in_the_child = 1", 99)
            shell.events.trigger("post_run_cell", None)
            shell.events.trigger("pre_run_cell", type("Info", (), dict(
                store_history=True, silent=False, raw_cell="in_the_child = 2", cell_id=None)))
            shell.compile.cache("in_the_child = 2", 99)
            os._exit(0)
        status = os.waitpid(pid, 0)""")
    kernel.run("pass")
    assert kernel.run("status[1]").text == "0"
    assert [line["number"] for line in lines_of(kernel)] == [1, 2, 3]


def test_a_shell_that_is_started_in_a_cell_marks_no_cells(guarded):
    kernel = guarded(budget="600M", env={"PYTHONPATH": str(BUILD / "python")})
    kernel.run(MAKE_ROOM)
    outcome = kernel.run(
        "import subprocess, sys\nchild = subprocess.run([sys.executable, '-m', 'IPython', "
        "'--simple-prompt', '--ext=plimsoll.notebook'], text=True, capture_output=True, "
        "input='in_the_child = 1\\n%plimsoll budget\\n')\nprint(child.stdout)\n"
        "more = np.ones(300 << 17)\nfill(400)")
    assert "the line is 600.0 MiB" in outcome.stdout
    assert [line["number"] for line in lines_of(kernel)] == [1, 2]
    assert "In [2] line 4 300.0 MiB" in outcome.error.traceback.splitlines()[-1]


# ---- what does not show ----


@pytest.mark.parametrize("path", [None, "", "/some/where:/else"])
def test_the_environment_is_as_without_us(guarded, path):
    kernel = guarded(env={} if path is None else {"PYTHONPATH": path})
    outcome = kernel.run(
        "import os, sys\nos.environ.get('PYTHONPATH'), [n for n in os.environ if 'PLIMSOLL' in n "
        "and n not in ('PLIMSOLL_STATE', 'PLIMSOLL_LEDGER')]")
    assert outcome.text == repr((path, []))
    child = kernel.run("import subprocess\nsubprocess.run(['sh', '-c', 'echo ${PYTHONPATH-none}'], "
                       "capture_output=True, text=True).stdout")
    assert child.text == repr(f"{'none' if path is None else path}\n")
    folder = kernel.run("import plimsoll\nos.path.dirname(os.path.dirname(plimsoll.__file__))").text
    assert kernel.run("sys.path[-1]").text == folder
    assert kernel.run(f"sys.path.count({folder})").text == "1"


def test_loading_twice_is_harmless_and_unloading_undoes_it_all(guarded):
    kernel = guarded(budget="600M")
    kernel.run(MAKE_ROOM)
    kernel.run("%load_ext plimsoll.notebook")
    kernel.run("import plimsoll.notebook as p\np.load_ipython_extension(get_ipython())")
    outcome = kernel.run("fill(1000)")
    assert outcome.error.traceback.count("plimsoll: refused") == 1
    n_lines = len(lines_of(kernel))
    assert n_lines == 4
    kernel.run("%unload_ext plimsoll.notebook")
    outcome = kernel.run("fill(1000)")
    assert outcome.error.ename == "MemoryError" and "plimsoll" not in outcome.error.traceback
    assert "not found" in kernel.run("%plimsoll").stderr
    hooks = kernel.run(
        "s = get_ipython()\n['plimsoll' in repr(hook) for hook in (s.compile.cache, "
        "s._showtraceback, s.events.callbacks, s.input_transformers_cleanup)]")
    assert hooks.text == repr([False] * 4)
    assert len(lines_of(kernel)) == n_lines + 1
    top = json.loads(kernel.home.plimsoll("top", "--json", records(kernel)[-1]).stdout)
    assert [cell["number"] for cell in top["cells"] if cell["running"]] == []
    kernel.run("%load_ext plimsoll.notebook")
    assert "plimsoll: refused" in kernel.run("fill(1000)").error.traceback


def test_in_a_kernel_without_a_guard_it_says_so_and_hooks_nothing(plain):
    kernel = plain(env={"PYTHONPATH": str(BUILD / "python")})
    assert kernel.run("%load_ext plimsoll.notebook").status == "ok"
    outcome = kernel.run("%plimsoll")
    assert outcome.stdout.count("\n") == 1
    assert "does not run under Plimsoll" in outcome.stdout
    assert "plimsoll jupyter install" in outcome.stdout
    outcome = kernel.run("%%plimsoll limit=1G\nran = 1")
    assert "does not run under Plimsoll" in outcome.stderr
    assert kernel.run("ran").error.ename == "NameError"
    hooks = kernel.run("s = get_ipython()\n['plimsoll' in repr(hook) for hook in ("
                       "s.compile.cache, s._showtraceback, s.events.callbacks)]")
    assert hooks.text == repr([False] * 3)
    assert kernel.run("import os\nos.environ['PYTHONPATH']").text == repr(str(BUILD / "python"))


def test_in_a_terminal_it_is_text(homes):
    home = homes.home()
    done = subprocess.run(
        [PLIMSOLL, "run", "--budget", "600M", "--", PYTHON, "-m", "IPython", "--simple-prompt",
         "--colors=NoColor"],
        input="%load_ext plimsoll.notebook\n%plimsoll\nimport numpy as np\nx = np.ones(1 << 29)\n"
              "print('goes', 'on')\n",
        env=home.environment({"PYTHONPATH": str(BUILD / "python")}), cwd=home.folder,
        capture_output=True, text=True, timeout=HANG_S)
    assert re.search(r"of the 600\.0 MiB budget are in use \(peak", done.stdout), done
    assert re.search(r"\nplimsoll: refused 4\.0 GiB: .* of the 600\.0 MiB ", done.stdout), done
    assert "goes on" in done.stdout and "<div" not in done.stdout


# ---- %plimsoll ----


@pytest.mark.parametrize("magic, complaint", [
    ("%plimsoll nonsense", "'%plimsoll nonsense' is not known"),
    ("%plimsoll top more", "'%plimsoll top more' is not known"),
    ("%plimsoll budget much", "'much' is not a size"),
    ("%plimsoll budget 1K", "is too small"),
    ("%plimsoll limit", "write limit=SIZE"),
    ("%plimsoll limit=80%", "'80%' is not a size"),
    ("%%plimsoll\nran = 1", "write %%plimsoll limit=SIZE"),
    ("%%plimsoll top\nran = 1", "write %%plimsoll limit=SIZE"),
    ("%%plimsoll limit=80%\nran = 1", "'80%' is not a size"),
    ("%plimsoll explain 19000101-000000-1", "19000101-000000-1"),
])
def test_a_magic_that_is_used_wrongly_says_what_to_write(guarded_once, magic, complaint):
    outcome = guarded_once.run(magic)
    assert outcome.status == "error" and outcome.error is None
    assert outcome.stderr.startswith("UsageError: plimsoll: ") and complaint in outcome.stderr
    assert guarded_once.run("ran").error.ename == "NameError"


@pytest.fixture(scope="module")
def guarded_once(server, tmp_path_factory):
    """One kernel for the tests that leave it as it was."""
    import conftest

    homes = conftest.Homes(tmp_path_factory.mktemp("shared"), server)
    yield homes.guarded(budget="600M")
    homes.close()


def test_the_budget_is_shown_and_moved(guarded):
    kernel = guarded(budget="600M")
    shown = kernel.run("%plimsoll budget").stdout
    assert re.fullmatch(r"the line is 600\.0 MiB: [\d.]+ MiB are in use; the system gives "
                        r"[\d.]+ .iB, of which [\d.]+ MiB are kept in reserve\n", shown)
    assert kernel.run("%plimsoll budget 700M").stdout.startswith("the line is 700.0 MiB: ")
    kernel.run(MAKE_ROOM)
    assert kernel.run("x = fill(550)").status == "ok"


def test_explain_prints_the_run_that_one_asks_for(guarded):
    kernel = guarded()
    own = records(kernel)[-1].name
    assert f"id         {own}" in kernel.run("%plimsoll explain").stdout
    assert f"id         {own}" in kernel.run(f"%plimsoll explain {own}").stdout


# ---- %%plimsoll limit= ----


def test_a_limit_takes_the_place_of_one_line():
    assert limit.as_line_magic(["%%plimsoll limit=5M\n", "x = 1\n", "y"]) == [
        "get_ipython().run_line_magic('plimsoll', 'limit=5M')\n", "x = 1\n", "y"]
    assert limit.as_line_magic(["%%plimsoll limit=5M\n", "%%time\n", "y\n"])[1:] == [
        "get_ipython().run_cell_magic('time', '', 'y\\n')\n"]
    for others in ([], ["x = 1\n"], ["%%plimsoll top\n", "x\n"], ["%plimsoll limit=5M\n"],
                   ["%%plimsolls limit=5M\n", "x\n"], ["x = 1\n", "%%plimsoll limit=5M\n"]):
        assert limit.as_line_magic(others) == others


@pytest.mark.parametrize("body", [
    "1 + 1", "x = 5\nx", "x = 5;\nx;", "import asyncio\nawait asyncio.sleep(0, 'awaited')",
    "print('out')\n7", "def f():\n    return 1 / 0\nf()", "x = (", "!echo shell\n3", "%who_ls\n4",
    "raise KeyboardInterrupt", "%%time\nx = [1, 2, 3]\nNone",
])
def test_a_cell_with_a_limit_is_the_cell_without_it(guarded_once, body):
    # What stands in the magic's place: a line that does nothing.
    plain = guarded_once.run(f"pass\n{body}" if not body.startswith("%%") else body)
    limited = guarded_once.run(f"%%plimsoll limit=100M\n{body}")
    assert limited.number == plain.number + 1
    assert (limited.status, limited.text, limited.order) == (plain.status, plain.text, plain.order)
    assert _timeless(limited.stdout) == _timeless(plain.stdout)
    assert (limited.error is None) == (plain.error is None)
    if plain.error:
        assert limited.error.ename == plain.error.ename
        assert _nameless(limited.error.evalue) == _nameless(plain.error.evalue)
        places = [re.findall(r"line \d+", outcome.error.traceback) for outcome in (limited, plain)]
        assert places[0] == places[1]
    assert guarded_once.run("Out.get(len(In) - 2)").text == limited.text
    assert line_bytes(guarded_once) == 600 * MIB


def _timeless(text):
    return re.sub(r"[\d.]+ \S?s", "TIME", text)


def _nameless(text):
    """A SyntaxError names the file, which is called after its text."""
    return re.sub(r"\d+\.py", "FILE", text)


def test_a_limit_refuses_says_that_it_was_the_limit_and_is_gone_afterwards(guarded):
    kernel = guarded(budget="600M")
    kernel.run(MAKE_ROOM)
    outcome = kernel.run("%%plimsoll limit=50M\nsmall = fill(20)\nlarge = fill(60)")
    assert "----> 3 large = fill(60)" in outcome.error.traceback
    refusal, reason = outcome.error.traceback.splitlines()[-2:]
    assert refusal.startswith("plimsoll: refused 60.0 MiB: ")
    assert refusal.endswith("; free or batch some of it, or allow more with %%plimsoll limit=SIZE")
    assert reason == (
        "plimsoll: it was this cell's own limit=50M that was reached, not the budget of 600.0 MiB: "
        "allow the cell more, or leave its limit out")
    assert kernel.run("large = fill(60)\nlarge.nbytes").text == str(60 * MIB)
    outcome = kernel.run("%%plimsoll limit=5G\nfill(1000)")
    assert "refused 1000.0 MiB" in outcome.error.traceback
    assert "own limit" not in outcome.error.traceback


def test_a_limit_holds_until_the_end_of_the_cell_whatever_runs_inside(guarded):
    kernel = guarded(budget="600M")
    kernel.run(MAKE_ROOM)
    outcome = kernel.run("%%plimsoll limit=50M\nget_ipython().run_cell('1')\n"
                         "get_ipython().run_cell('2', silent=True)\nfill(60)")
    assert "own limit=50M" in outcome.error.traceback
    outcome = kernel.run("%%plimsoll limit=50M\n%%capture\nfill(60)")
    assert "own limit=50M" in outcome.error.traceback
    outcome = kernel.run("%%time\n%plimsoll limit=50M\nfill(60)")
    assert "own limit=50M" in outcome.error.traceback
    kernel.run("get_ipython().run_cell_magic('plimsoll', 'limit=50M', 'seen = 1\\nfill(60)')\n"
               "kept = fill(60)")
    assert kernel.run("seen, kept.nbytes").text == repr((1, 60 * MIB))
    kernel.run("%plimsoll limit=50M", silent=True)
    assert line_bytes(kernel) == 600 * MIB


def test_the_last_of_two_limits_holds_and_both_are_gone_afterwards(guarded):
    kernel = guarded(budget="600M")
    kernel.run(MAKE_ROOM)
    assert kernel.run("%%plimsoll limit=20M\n%plimsoll limit=90M\nfill(60).nbytes").text
    assert line_bytes(kernel) == 600 * MIB
    kernel.run("%%plimsoll limit=20M\n%unload_ext plimsoll.notebook")
    kernel.run("%load_ext plimsoll.notebook")
    assert line_bytes(kernel) == 600 * MIB


def test_an_interrupt_ends_a_limit(guarded):
    kernel = guarded(budget="600M")
    cell = kernel.start(
        "%%plimsoll limit=50M\nimport time\nprint('sleeps', flush=True)\ntime.sleep(600)")
    kernel.wait_for_output(cell, "sleeps")
    kernel.interrupt()
    assert kernel.finish(cell).error.ename == "KeyboardInterrupt"
    assert line_bytes(kernel) == 600 * MIB


def test_a_budget_that_is_moved_inside_of_a_limit_stays(guarded):
    kernel = guarded(budget="600M")
    kernel.run("%%plimsoll limit=50M\n%plimsoll budget 700M")
    assert line_bytes(kernel) == 700 * MIB


# ---- leaks ----


def test_a_cell_that_keeps_growing_is_warned_of_once_per_doubling(guarded):
    kernel = guarded(budget="2000M")
    kernel.run(MAKE_ROOM + "\nkept = []")
    warnings = [kernel.run("kept.append(fill(50))").stderr for _ in range(10)]
    told = [i for i, text in enumerate(warnings, 1) if text]
    # Run 1 is the first; 2, 3 and 4 are the growth. 200 MiB then, so 400 MiB is next: run 8.
    assert told == [4, 8]
    assert re.fullmatch(
        r"plimsoll: In \[5\] holds more after each run: 150\.0 MiB in its last 3 runs, 200\.0 MiB "
        r"in all, by In \[\d\] line 3 in fill\(\) \(\+50\.0 MiB\); %plimsoll shows every cell\n",
        warnings[3])
    assert "In [9] holds more" in warnings[7]


def test_a_cell_that_grows_by_little_is_not_warned_of(guarded):
    kernel = guarded(budget="2000M")
    kernel.run(MAKE_ROOM + "\nkept = []")
    assert not any(kernel.run("kept.append(fill(8))").stderr for _ in range(8))


# ---- the kernel before ----


def die(kernel):
    assert kernel.run("x = 1\nimport ctypes\nctypes.string_at(0)").status == "died"
    kernel.wait_for_restart()


def test_a_death_is_told_once_before_the_first_output_and_again_when_asked(guarded):
    kernel = guarded()
    kernel.run("first = 1")
    die(kernel)
    kernel.run("'unseen'", silent=True)
    kernel.run("'unseen'", store_history=False)
    outcome = kernel.run("print('mine')")
    assert outcome.order == ["display_data", "stdout"]
    (banner,) = outcome.displays
    assert banner["text/plain"].startswith("The kernel before this one died\n")
    assert "In [2] line 3: ctypes.string_at(0)" in banner["text/plain"]
    words = re.sub(r"<[^>]*>", " ", banner["text/html"]).split()
    assert len(words) == len(banner["text/plain"].split())
    assert not kernel.run("1").displays
    (again,) = kernel.run("%plimsoll").displays
    assert again["text/plain"].endswith(banner["text/plain"])
    dead = records(kernel)[0].name
    assert f"id         {dead}" in kernel.run("%plimsoll explain").stdout


def test_a_death_is_told_after_a_restart_that_came_before_any_cell(guarded):
    kernel = guarded()
    die(kernel)
    kernel.restart()
    kernel.restart(now=True)
    (banner,) = kernel.run("'first'").displays
    assert "In [1] line 3: ctypes.string_at(0)" in banner["text/plain"]
    kernel.restart()
    assert not kernel.run("'told already'").displays


def test_the_user_cannot_be_handed_our_process(guarded):
    """os.wait() waits for any child: the one that explains the death is gone by then."""
    kernel = guarded()
    die(kernel)
    assert kernel.run("import os\nos.wait()").error.ename == "ChildProcessError"


@pytest.mark.parametrize("now", [False, True])
def test_a_restart_by_the_user_is_no_death(guarded, now):
    kernel = guarded()
    kernel.run("x = 1")
    kernel.restart(now=now)
    assert not kernel.run("1").displays


SLEEP = "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)"


def test_a_forced_restart_under_a_cell_that_runs_is_told(guarded):
    kernel = guarded()
    kernel.wait_for_output(kernel.start(SLEEP), "\n")
    kernel.restart(now=True)
    (banner,) = kernel.run("1").displays
    assert "\n  cell  In [1]" in banner["text/plain"]


def test_a_kernel_that_somebody_killed_under_a_cell_was_stopped(guarded):
    kernel = guarded()
    cell = kernel.start(SLEEP)
    kernel.wait_for_output(cell, "\n")
    os.kill(int(cell.outcome.stdout), signal.SIGKILL)
    assert kernel.finish(cell).status == "died"
    kernel.wait_for_restart()
    (banner,) = kernel.run("1").displays
    assert banner["text/plain"].startswith("The kernel before this one was stopped\nkilled: ")
    assert "\n  cell  In [1]" in banner["text/plain"]


def test_a_kernel_that_somebody_killed_between_cells_is_not_told_of(guarded):
    kernel = guarded()
    pid = int(kernel.run("import os\nos.getpid()").text)
    n_deaths = kernel.n_deaths
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: kernel.n_deaths > n_deaths, "the restarter to notice")
    kernel.wait_for_restart()
    assert not kernel.run("1").displays
