# SPDX-License-Identifier: Apache-2.0
"""%plimsoll: what each cell holds, its peak and its growth, and the line that can be moved for all
cells or drawn tighter for one."""
import html
import json
import re

import pytest

from support import MIB, wait_until

UNITS = {"B": 1, "KiB": 1 << 10, "MiB": MIB, "GiB": 1 << 30}
SIZE = r"[+-]?[\d.]+ (?:B|KiB|MiB|GiB)"
ROW = re.compile(rf"^  In \[(\d+)\]\*? +(\d+) +({SIZE}) +({SIZE}) +(-|{SIZE}) +(.*)$", re.M)


def n_bytes(text):
    if text == "-":
        return 0
    number, unit = text.split()
    return float(number) * UNITS[unit]


class Row:
    """A row of the table of cells."""

    def __init__(self, runs, held, peak, growth, source):
        self.runs, self.source = int(runs), source
        self.held, self.peak, self.growth = map(n_bytes, (held, peak, growth))


def shown_by(kernel, magic="%plimsoll"):
    """The text/plain of what a magic shows."""
    outcome = kernel.run(magic)
    assert outcome.status == "ok" and len(outcome.displays) == 1, outcome
    return outcome.displays[0]["text/plain"]


def cells(kernel, magic="%plimsoll"):
    """By number, the rows of the table."""
    return {int(row[0]): Row(*row[1:]) for row in ROW.findall(shown_by(kernel, magic))}


def line_bytes(kernel):
    said = kernel.run("%plimsoll budget").stdout
    return n_bytes(re.match(rf"the line is ({SIZE}): ", said)[1])


def about(mib):
    """Within a tenth; little is sampled every half a MiB, so nothing is not exactly nothing."""
    return pytest.approx(mib * MIB, rel=0.1, abs=2 * MIB)


@pytest.fixture
def kernel(guarded):
    kernel = guarded(budget="1G")
    assert kernel.run("import numpy as np\ndef make(mib):\n"
                      "    return np.ones(mib << 20, dtype=np.uint8)").status == "ok"  # In [1]
    return kernel


# The table


def test_a_cell_holds_what_it_keeps_and_its_peak_is_what_it_took(kernel):
    kernel.run("kept = make(64)")  # In [2]
    kernel.run("gone = make(96)\ngone = make(32)\ngone = None")  # In [3]
    kernel.run("x = 1")  # In [4]
    rows = cells(kernel)
    before = rows[4].peak - rows[2].held  # all that is not the arrays
    assert (rows[2].held, rows[3].held, rows[4].held) == (about(64), about(0), about(0))
    assert rows[2].peak == pytest.approx(before + 64 * MIB, rel=0.1)
    # The second array is made before the first is let go.
    assert rows[3].peak == pytest.approx(before + (64 + 96 + 32) * MIB, rel=0.1)
    assert [rows[n].source for n in (2, 3, 4)] == ["kept = make(64)", "gone = make(96)", "x = 1"]
    assert {rows[n].runs for n in (2, 3, 4)} == {1}


def test_what_is_freed_is_held_no_more(kernel):
    kernel.run("kept = make(64)")
    kernel.run("other = make(40)")
    kernel.run("del kept")
    rows = cells(kernel)
    assert (rows[2].held, rows[3].held) == (about(0), about(40))


def test_a_cell_that_is_run_again_and_replaces_what_it_made_does_not_grow(kernel):
    for _ in range(6):
        assert kernel.run("kept = make(64)").stderr == ""
    rows = cells(kernel)
    assert (rows[7].runs, rows[7].held, rows[7].growth) == (6, about(64), about(0))
    assert set(rows) & {2, 3, 4, 5, 6} == set(), "a cell has the number of its last run"
    assert "holds more after each run" not in shown_by(kernel)


GROWING = "# a leak\n\ncache.append(make(32))"


def test_a_cell_that_grows_is_warned_of_after_the_third_growth(kernel):
    kernel.run("cache = []")  # In [2]
    said = [kernel.run(GROWING).stderr for _ in range(8)]  # In [3] to In [10]
    # 128 MiB are held after the third growth, and twice as much after the seventh.
    assert [n for n, text in enumerate(said) if text] == [3, 7]
    assert re.fullmatch(
        r"plimsoll: In \[6\] holds more after each run: 96\.\d MiB in its last 3 runs, 128\.\d MiB "
        r"in all, by In \[1\] line 3 in make\(\) \(\+\d+\.\d MiB\); %plimsoll shows every cell\n",
        said[3]), said[3]
    text = shown_by(kernel)
    row = Row(*next(row[1:] for row in ROW.findall(text) if row[0] == "10"))
    assert (row.runs, row.held, row.growth) == (8, about(256), about(32))
    assert row.source == "cache.append(make(32))"
    warning = next(line for line in text.splitlines() if "after each run" in line)
    assert warning.startswith("In [10] holds more after each run, 7 times in a row now: 256.")
    assert "In [1] line 3 in make()" in warning


def test_growth_in_the_cells_own_line_names_the_line(kernel):
    kernel.run("cache = []")
    code = "for _ in range(2):\n    cache.append(np.ones(16 << 20, dtype=np.uint8))"
    said = [kernel.run(code).stderr for _ in range(4)][-1]
    assert "by In [6] line 2 (+" in said


def test_small_growth_is_not_warned_of(kernel):
    """Three growths, but less than a twentieth of the line."""
    kernel.run("cache = []")
    assert {kernel.run("cache.append(make(8))").stderr for _ in range(4)} == {""}
    rows = cells(kernel)
    assert (rows[6].held, rows[6].growth) == (about(32), about(8))


def test_a_cell_keeps_its_name_when_it_is_edited(kernel):
    """With the ids that JupyterLab sends."""
    kernel.run("kept = make(32)", cell_id="one")
    kernel.run("kept = make(64)", cell_id="one")
    kernel.run("kept2 = make(16)", cell_id="two")
    rows = cells(kernel)
    assert 2 not in rows and (rows[3].runs, rows[4].runs) == (2, 1)
    assert (rows[3].held, rows[3].growth, rows[4].held) == (about(64), about(32), about(16))
    assert rows[3].source == "kept = make(64)"


def test_a_cell_that_failed_or_was_interrupted_is_in_the_table(kernel):
    kernel.run("kept = make(48)\n1 / 0")
    cell = kernel.start("more = make(24)\nimport time\nprint('ready', flush=True)\ntime.sleep(600)")
    kernel.wait_for_output(cell, "ready")
    kernel.interrupt()
    assert kernel.finish(cell).error.ename == "KeyboardInterrupt"
    rows = cells(kernel)
    # Showing the error belongs to the cell, and what IPython caches for it: some 6 MiB.
    assert 48 <= rows[2].held / MIB <= 60 and 24 <= rows[3].held / MIB <= 36


WORKER = """
import multiprocessing, time
context = multiprocessing.get_context("{method}")
here, there = context.Pipe()
def work(pipe):
    import numpy
    kept = numpy.ones(80 << 20, dtype=numpy.uint8)
    pipe.send("made")
    time.sleep(600)
worker = context.Process(target=work, args=(there,), daemon=True)
worker.start()
print(here.recv())
"""


def test_what_a_worker_holds_is_counted_to_the_cell_that_started_it(kernel):
    assert kernel.run(WORKER.format(method="fork")).stdout == "made\n"
    kernel.run("own = make(40)")
    rows = cells(kernel)
    assert (rows[2].held, rows[3].held) == (about(80), about(40))
    assert kernel.run("worker.kill(); worker.join()").status == "ok"
    # What a killed process held is given back by the supervisor, within a second.
    wait_until(lambda: cells(kernel)[2].held == about(0), "what the worker held to be given back")


def test_what_the_workers_of_a_loader_hold_is_counted_to_its_cell(kernel):
    outcome = kernel.run(
        "import torch\n"
        "class Cached(torch.utils.data.Dataset):\n"
        "    kept = []\n"
        "    def __len__(self):\n"
        "        return 8\n"
        "    def __getitem__(self, i):\n"
        "        self.kept.append(np.ones(10 << 20, dtype=np.uint8))\n"
        "        return i\n"
        # A class of a cell reaches workers by fork alone, which is no default from Python 3.14 on.
        "loader = torch.utils.data.DataLoader(Cached(), num_workers=2, persistent_workers=True,\n"
        "                                     multiprocessing_context='fork')")
    assert outcome.status == "ok"
    assert kernel.run("[int(n) for n in loader]").text == str(list(range(8)))  # In [3]
    assert cells(kernel)[3].held == about(80)
    processes = json.loads(kernel.home.plimsoll("top", "--json").stdout)["processes"]
    assert sorted(p["claimed_bytes"] for p in processes if p["name"] == "python3") == [
        about(40), about(40)], processes


def test_top_and_the_table_say_what_plimsoll_top_says_outside(kernel):
    kernel.run("kept = make(64)")
    inside, also = cells(kernel), cells(kernel, "%plimsoll top")
    done = kernel.home.plimsoll("top", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["running"] and document["memory"]["line_bytes"] == 1 << 30
    held = {cell["number"]: cell["held_bytes"] for cell in document["cells"]}
    assert (inside[2].held, also[2].held) == (about(64), about(64)) and held[2] == about(64)
    places = {site["place"]: site["bytes"] for site in document["sites"]}
    assert places["In [1] line 3 in make()"] == about(64)
    assert "In [1] line 3 in make()" in shown_by(kernel, "%plimsoll top")


def words_of(bundle):
    text = html.unescape(re.sub("<[^>]*>", " ", bundle["text/html"]))
    return text.split(), bundle["text/plain"].split()


@pytest.mark.parametrize("magic", ["%plimsoll", "%plimsoll top"])
def test_the_page_and_the_text_say_the_same(kernel, magic):
    kernel.run("cache = []\n")
    for _ in range(4):
        kernel.run(GROWING)
    bundle = kernel.run(magic).displays[0]
    in_html, in_text = words_of(bundle)
    assert in_html == in_text and "In" in in_text


def test_a_source_cannot_become_part_of_the_page(kernel):
    kernel.run("x = '<script>alert(1)</script><b>&amp;'")
    bundle = kernel.run("%plimsoll").displays[0]
    assert "<script>" not in bundle["text/html"] and "<b>&" not in bundle["text/html"]
    assert "x = '<script>alert(1)</script><b>&amp;'" in bundle["text/plain"]


# The line


def test_the_budget_is_told_and_moved(kernel):
    assert line_bytes(kernel) == 1 << 30
    assert "the line is 1.5 GiB" in kernel.run("%plimsoll budget 1536M").stdout
    assert line_bytes(kernel) == 1.5 * (1 << 30)
    assert kernel.run("big = make(1200)").status == "ok"
    assert kernel.run("big = None").status == "ok"
    assert kernel.run("%plimsoll budget 300M").status == "ok"
    assert kernel.run("big = make(400)").error.ename == "MemoryError"


@pytest.mark.parametrize("request_, why", [
    ("lots", "lots"), ("-5M", "-5M"), ("100T", "100"), ("1K", "1"), ("2G 3G", "2G 3G"),
])
def test_a_budget_that_cannot_be_is_refused_with_a_reason(kernel, request_, why):
    outcome = kernel.run(f"%plimsoll budget {request_}")
    assert outcome.status == "error"
    said = outcome.stderr + (outcome.error.traceback if outcome.error else "")
    assert "plimsoll" in said and why in said and "Traceback (most" not in outcome.stderr
    assert line_bytes(kernel) == 1 << 30


def test_an_unknown_word_is_answered_with_what_is_known(kernel):
    outcome = kernel.run("%plimsoll colour")
    said = outcome.stderr + (outcome.error.traceback if outcome.error else "")
    assert outcome.status == "error" and "colour" in said and "%plimsoll [budget" in said


def test_explain_tells_of_this_run(kernel):
    kernel.run("make(3000)")
    said = kernel.run("%plimsoll explain").stdout
    assert "1 request was refused" in said and "In [1] line 3 in make()" in said
    assert not re.search(r"ipykernel_\d", said)
    outcome = kernel.run("%plimsoll explain no-such-run")
    assert outcome.status == "error" and "no-such-run" in str(outcome)


# A limit for one cell


def test_a_cell_with_a_limit_is_refused_beyond_it_and_the_line_is_as_before(kernel):
    kernel.run("held = make(100)")
    outcome = kernel.run("%%plimsoll limit=100M\na = make(60)\nb = make(60)\n'not reached'")
    assert outcome.error.ename == "MemoryError"
    assert "----> 3 b = make(60)" in outcome.error.traceback
    assert "refused 60.0 MiB" in outcome.error.traceback
    assert "limit=100M" in outcome.error.traceback.splitlines()[-1]
    assert line_bytes(kernel) == 1 << 30
    assert kernel.run("b = make(300)\nint(a[0])").text == "1"


@pytest.mark.parametrize("body, text", [
    ("a = make(60)\nlen(a)", str(60 * MIB)), ("await asyncio.sleep(0, 'slept')", "'slept'"),
    ("def f():\n    return 5\nf()", "5"), ("%%time\n4 + 4", "8"), ("x = !echo hi\nx", "['hi']"),
])
def test_a_cell_with_a_limit_is_a_cell_like_any_other(kernel, body, text):
    kernel.run("import asyncio")
    outcome = kernel.run(f"%%plimsoll limit=100M\n{body}")
    assert (outcome.status, outcome.text, outcome.number) == ("ok", text, 3)
    assert kernel.run("_").text == text and line_bytes(kernel) == 1 << 30


@pytest.mark.parametrize("body, ename", [
    ("1 / 0", "ZeroDivisionError"), ("= 5", "SyntaxError"), ("raise KeyboardInterrupt",
                                                             "KeyboardInterrupt"),
    ("import sys\nsys.exit(1)", "SystemExit"),
])
def test_the_line_is_as_before_after_an_error(kernel, body, ename):
    outcome = kernel.run(f"%%plimsoll limit=100M\n{body}")
    assert outcome.error.ename == ename and "budget are in use" not in outcome.error.traceback
    assert line_bytes(kernel) == 1 << 30


def test_the_line_is_as_before_after_an_interrupt(kernel):
    cell = kernel.start("%%plimsoll limit=100M\nimport time\nprint('ready', flush=True)\n"
                        "time.sleep(600)")
    kernel.wait_for_output(cell, "ready")
    document = json.loads(kernel.home.plimsoll("top", "--json").stdout)
    assert document["memory"]["line_bytes"] < 500 * MIB, "the cell's limit is the line meanwhile"
    kernel.interrupt()
    assert kernel.finish(cell).error.ename == "KeyboardInterrupt"
    assert line_bytes(kernel) == 1 << 30


def test_a_limit_above_the_line_leaves_the_line(kernel):
    outcome = kernel.run("%%plimsoll limit=5G\nb = make(2000)")
    assert "of the 1.0 GiB budget are in use" in outcome.error.traceback
    assert "limit=5G" not in outcome.error.traceback.splitlines()[-1]


@pytest.mark.parametrize("argument", ["limit=lots", "limit=", "limit", "limits=5M", "limit=80%"])
def test_a_limit_that_is_no_size_runs_nothing(kernel, argument):
    outcome = kernel.run(f"%%plimsoll {argument}\nran = True")
    assert outcome.status == "error" and "plimsoll" in str(outcome)
    assert kernel.run("'ran' in globals()").text == "False"
    assert line_bytes(kernel) == 1 << 30
