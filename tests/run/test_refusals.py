# SPDX-License-Identifier: Apache-2.0
"""At the line: what is refused, how it is told, and what works afterwards."""
import shutil
import signal
import subprocess
import textwrap

import pytest

from conftest import BUILD, MIB, PYTHON, line_of

# Each takes far more than its budget in one request, at the line marked `# asks`.
LIBRARIES = {
    "numpy": ("300M", """
        import numpy as np
        def work():
            return np.ones((400, 1 << 20), dtype=np.uint8)  # asks
        """, "MemoryError", "Unable to allocate 400. MiB"),
    "numpy-operator": ("300M", """
        import numpy as np
        a = np.ones(10000)
        def work():
            return a[:, None] * a  # asks
        """, "MemoryError", "Unable to allocate 763. MiB"),
    "torch": ("1G", """
        import torch
        def work():
            return torch.ones(2000, 1 << 20, dtype=torch.uint8)  # asks
        """, "RuntimeError", "can't allocate memory"),
    "pandas": ("300M", """
        import numpy as np, pandas as pd
        frame = pd.DataFrame(np.ones((1 << 20, 4)))
        def work():
            return pd.concat([frame] * 20, ignore_index=True)  # asks
        """, "MemoryError", "Unable to allocate 640. MiB"),
}
CAUGHT = """
try:
    work()
except (MemoryError, RuntimeError) as error:
    print("caught", type(error).__mro__, error)
print("went on")
"""


def script_of(library, end):
    return textwrap.dedent(LIBRARIES[library][1]).lstrip() + end


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_caught_refusal_lets_the_program_finish(run, library):
    budget, _, kind, message = LIBRARIES[library]
    result = run(script=script_of(library, CAUGHT), budget=budget)
    assert result.rc == 0
    assert kind in result.stdout and message in result.stdout
    assert "went on" in result.stdout
    assert result.verdict == "finished-after-refusals"
    assert result.report["memory"]["n_refusals"] >= 1


@pytest.mark.parametrize("library", LIBRARIES)
def test_an_uncaught_refusal_is_reported_with_its_line_and_size(run, library):
    budget, _, _, message = LIBRARIES[library]
    script = script_of(library, "work()\n")
    result = run(script=script, budget=budget)
    assert result.rc == 1
    assert message in result.stderr
    assert result.verdict == "refused"
    refusal = result.report["refusals"][-1]
    assert refusal["kind"] == "large" and refusal["bytes"] >= 400 * MIB
    users = [f for f in result.report["python"] if f["file"].endswith("script.py")]
    assert users and users[0]["line"] == line_of(script, "# asks")
    assert users[0]["function"].endswith("work")
    assert f"script.py:{line_of(script, '# asks')}" in result.stderr


@pytest.mark.parametrize("how", ["in place", "through a link", "copied"])
def test_the_package_s_own_lines_are_passed_over_however_it_is_installed(session, how):
    package = BUILD / "python" / "plimsoll"
    folder = session.folder / "lib"
    folder.mkdir()
    if how == "through a link":
        (folder / "plimsoll").symlink_to(package)
    elif how == "copied":
        shutil.copytree(package.resolve(), folder / "plimsoll")
        for core in package.glob("_core.*"):
            if not (folder / "plimsoll" / core.name).exists():
                shutil.copy(core, folder / "plimsoll")
    script = textwrap.dedent("""
        import plimsoll.tf as tf
        rows = [[1.0] * 1000 for _ in range(1000)]
        kept = bytearray(200 << 20)
        def work():
            return tf.constant(rows * 100)  # asks
        work()
        """).lstrip()
    result = session.run(script=script, budget="300M", env={
        "PYTHONPATH": str(package.parent if how == "in place" else folder)})
    assert result.verdict == "refused"
    where = f"script.py:{line_of(script, '# asks')} in work()"
    assert f" at {where}" in result.stderr and where in result.report["summary"]
    assert result.where() == ("script.py", line_of(script, "# asks"))
    assert not [site["place"] for site in result.report["sites"] if "plimsoll/" in site["place"]]


def test_what_was_freed_long_before_is_not_a_holder(run):
    result = run(budget="400M", script="""
        import numpy as np
        stale = np.ones((340, 1 << 20), dtype=np.uint8)  # held the most
        del stale
        kept = np.ones((30, 1 << 20), dtype=np.uint8)
        np.ones((380, 1 << 20), dtype=np.uint8)
        """)
    assert result.verdict == "refused"
    assert result.report["sites_at"] == "refusal"
    places = {site["place"]: site["bytes"] for site in result.report["sites"]}
    assert places["script.py:5"] >= 29 * MIB and "script.py:3" not in places
    refusal = result.report["refusals"][-1]
    assert sum(places.values()) <= result.report["sites_in_use_bytes"]
    assert result.report["sites_in_use_bytes"] <= refusal["charged_bytes"] + MIB
    assert "script.py:3" not in result.stderr and "free or batch what" not in result.stderr


def test_what_can_never_fit_is_not_answered_with_what_to_free(run):
    result = run(budget="400M", script="""
        import numpy as np
        kept = np.ones((300, 1 << 20), dtype=np.uint8)
        try:
            np.ones((500, 1 << 20), dtype=np.uint8)
        except MemoryError:
            pass
        raise MemoryError
        """)
    sentence = next(l for l in result.stderr.splitlines() if l.startswith("MemoryError: "))
    assert "; it can never fit: ask for less at once, or in slices, or allow more with --budget" \
        in sentence
    assert "500.0 MiB can never fit in 400.0 MiB: ask for less at once at script.py:5" \
        in result.stderr
    assert "free or batch" not in result.stderr


def test_arrays_kept_one_by_one_are_refused_at_the_line_and_not_before(run):
    result = run(budget="500M", script="""
        import numpy as np
        kept = []
        try:
            while len(kept) < 100:
                kept.append(np.ones(20 << 20, dtype=np.uint8))
        except MemoryError:
            print(len(kept))
        """)
    # 25 arrays are the whole budget; Python and NumPy themselves take some of it.
    assert result.rc == 0 and 20 <= int(result.stdout) <= 25


# A way to grow by small objects only, as the body of grow(kept), and how many are about 1 GiB: more
# than any line here, so that it ends when nothing stops it.
SMALL = {
    "lists": "for _ in range(8_000_000): kept.append([None] * 8)",
    "dicts": "for i in range(5_000_000): kept.append({'a': i, 'b': 2})",
    "strings": "for i in range(5_000_000): kept.append('x%d' % i * 20)",
    "bytes": "for _ in range(250_000): kept.append(bytes(4000))",
    "nested": "for _ in range(100_000): kept.append([(i, float(i)) for i in range(100)])",
}
GROW = """
import sys, threading, traceback
import ledger

def grow(kept):
    %s

def attempt(say):
    kept = []
    try:
        grow(kept)
    except MemoryError as error:
        held = len(kept)
        text = traceback.format_exc()   # while everything is still held
        kept.clear()
        assert "in grow" in text and "MemoryError" in text, text
        say(held, str(error))

def run_in(thread, task):
    if thread == "main":
        return task()
    worker = threading.Thread(target=task)
    worker.start()
    worker.join()
"""


@pytest.mark.parametrize("thread", ["main", "worker"])
@pytest.mark.parametrize("kind", SMALL)
def test_small_objects_end_in_a_memory_error_with_our_sentence(run, kind, thread):
    script = GROW % SMALL[kind] + ("""
start = ledger.charged_bytes()
said = []
def task():
    attempt(lambda held, message: said.append((held, message)))
run_in(%r, task)
held, message = said[0]
print(message)
assert held > 1000, held
after = ledger.settle_below(start + 40 * ledger.MIB)
assert after < start + 40 * ledger.MIB, (start, after)
again = [bytes(4000) for _ in range(20_000)]
print("went on with", len(again))
""" % thread)
    result = run(script=script, budget="200M")
    assert result.rc == 0 and "went on with 20000" in result.stdout
    # bytes, budget and holders; the exact wording is the guard's.
    assert "plimsoll" in result.stdout.lower()
    assert "200.0 MiB" in result.stdout
    assert "script.py" in result.stdout
    assert result.verdict == "finished-after-refusals"
    assert result.report["memory"]["n_refusals"] >= 1


# The same within one call into C, which never comes back to the interpreter: nothing can be raised there, and a
# refused arena makes pymalloc ask malloc() for each object instead.
IN_C = {
    "ints": "list(range(12_000_000))",
    "tuple": "tuple(range(12_000_000))",
    "floats": "list(map(float, range(12_000_000)))",
    "pairs": "list(zip(range(5_000_000), range(5_000_000)))",
    "texts": "('a%d ' * 8_000_000).split()",
    "json": "json.loads('[' + ','.join(['[1234]'] * 6_000_000) + ']')",
}


@pytest.mark.parametrize("thread", ["main", "worker"])
@pytest.mark.parametrize("kind", IN_C)
def test_a_loop_in_c_ends_in_one_memory_error_within_the_reserve(run, kind, thread):
    script = "import json" + GROW % f"return {IN_C[kind]}" + ("""
said = []
def task():
    attempt(lambda held, message: said.append(message))
    assert len([float(i) for i in range(10_000)]) == 10_000
run_in(%r, task)
print(len(said), "error:", said[0])
""" % thread)
    result = run(script=script, budget="150M")
    assert result.rc == 0 and "1 error: plimsoll: " in result.stdout, result.text()
    assert "Exception in thread" not in result.stderr  # a second one, in the handler of the first
    assert result.report["memory"]["peak_charged_bytes"] <= (150 + 150 / 8 + 1) * MIB


def test_small_objects_uncaught_are_reported_with_their_line(run):
    script = GROW % SMALL["nested"] + "grow([])\n"
    result = run(script=script, budget="200M")
    assert result.rc == 1 and "MemoryError" in result.stderr
    # As fast as this it is a refusal or a leak: both are true.
    assert result.verdict in ("refused", "leak")
    assert result.report["refusals"][-1]["kind"] in ("raised", "small")
    lines = [f["line"] for f in result.report["python"] if f["file"].endswith("script.py")]
    assert line_of(script, "for _ in range(100_000)") in lines


def test_twenty_exhaustions_in_one_process_leave_no_residue(run):
    script = GROW % SMALL["bytes"] + """
start = ledger.charged_bytes()
counts = []
for _ in range(20):
    attempt(lambda held, message: counts.append(held))
    after = ledger.settle_below(start + 40 * ledger.MIB)
    assert after < start + 40 * ledger.MIB, (len(counts), start, after)
print(len(counts), min(counts), max(counts))
"""
    result = run(script=script, budget="150M")
    assert result.rc == 0
    n, fewest, most = map(int, result.stdout.split())
    # Each round had the room of the others: nothing was kept back.
    assert n == 20 and fewest > 0.6 * most


def test_an_exhausted_cell_keeps_its_variables(run):
    """What a notebook needs: the next statement runs, and what was held can still be used."""
    result = run(budget="200M", script="""
        import code, io, contextlib
        console = code.InteractiveInterpreter()
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            console.runsource(
                "kept = []\\nfor _ in range(250_000): kept.append(bytes(4000))", "cell-1", "exec")
            console.runsource("n = len(kept); del kept", "cell-2", "exec")
        assert "MemoryError" in errors.getvalue() and "cell-1" in errors.getvalue()
        assert "cell-2" not in errors.getvalue()
        print(console.locals["n"])
        """)
    assert result.rc == 0 and int(result.stdout) > 20_000


def test_a_c_program_never_gets_null_for_a_small_request(run, program):
    result = run(program("small_mallocs"), 150, budget="200M")
    assert result.rc == 0 and result.verdict == "finished"


def test_a_c_program_that_passes_the_line_by_small_requests_is_told_of(run, program):
    """There is memory, so it goes on: over the line, but nobody is harmed."""
    result = run(program("small_mallocs"), 600, 2000, budget="200M")
    assert result.rc == 0 and result.stdout.startswith("holds")
    assert result.report["memory"]["peak_charged_bytes"] > 400 * MIB
    assert "200.0 MiB" in result.stderr


def test_a_c_program_that_passes_the_line_is_stopped_before_the_system_kills(run, program, cgroup):
    group = cgroup(400 * MIB)
    # A quarter of the reserve, 20 MiB, is a fifth of a second at this rate: ten looks at it.
    result = run(program("small_mallocs"), 600, 10_000, budget="200M", cgroup=group,
                 options=["--reserve", "80M"])
    assert group.n_oom_kills() == 0
    assert result.rc == 128 + signal.SIGKILL
    assert result.verdict in ("stopped-for-memory", "leak")
    assert result.report["stopped"][0]["name"] == "small_mallocs"
    assert "stopped" in result.stderr, "who sees status 137 must learn that it was us"


@pytest.mark.parametrize("touched", [0, 64])
def test_held_says_what_was_never_touched(run, program, touched):
    """A block counts from the start, and says how much of it is air; a mapping as it is touched."""
    result = run(program("untouched"), 512, touched, budget="700M")
    assert result.stdout == "refused\n" and result.verdict == "finished-after-refusals"
    block = result.report["sites"][0]
    assert block["bytes"] == 512 * MIB
    assert abs(block["untouched_bytes"] - (512 - touched) * MIB) < 4 * MIB
    assert block["place"].startswith("untouched.c:") and \
        f"{block['place']} 512.0 MiB ({512 - touched}.0 MiB reserved, untouched)" in result.stderr
    mapping = sum(site["bytes"] for site in result.report["sites"][1:])
    assert abs(mapping - touched * MIB) < 4 * MIB


def test_buffers_that_openblas_reserves_are_not_held(run):
    """128 MiB a thread, of which it touches a few."""
    result = run(budget="300M", script="""
        import numpy as np
        a = np.ones((400, 400))
        print((a @ a)[0, 0])
        keep = []
        while True:
            keep.append(np.ones(1 << 20))
        """)
    assert result.verdict == "refused"
    assert sum(site["bytes"] for site in result.report["sites"]) < 320 * MIB


def test_the_malloc_family_keeps_its_contract_at_the_line(run, program):
    result = run(program("allocator_contract"), 200, "over", budget="200M")
    assert result.rc == 0
    assert result.verdict == "finished-after-refusals"


def test_the_malloc_family_keeps_its_contract_far_below_the_line(run, program):
    result = run(program("allocator_contract"), 100, "under", budget="1G")
    assert result.rc == 0


def test_mappings_are_refused_only_when_one_alone_is_over_the_line(run, program):
    result = run(program("mmap_rules"), 200, budget="200M")
    assert result.rc == 0


def test_two_thousand_short_threads(run, program):
    result = run(program("short_threads"), 2000, budget="200M")
    assert result.rc == 0 and result.stdout == "2000 threads\n"
    assert result.verdict == "finished"


def test_two_hundred_forks_from_a_threaded_process(run, program):
    result = run(program("fork_storm"), 200, budget="200M")
    assert result.rc == 0 and result.stdout == "200 forks, 0 bad\n"
    # Every child gave back what it had: 200 x 2 MiB would be two lines.
    assert result.report["memory"]["peak_charged_bytes"] < 100 * MIB


def test_observe_refuses_nothing(run):
    script = """
        import numpy as np
        a = np.ones(300 << 20, dtype=np.uint8)
        kept = [bytes(4000) for _ in range(10_000)]
        print(a.nbytes, len(kept))
        """
    result = run(script=script, budget="200M", options=["--observe"])
    assert result.rc == 0 and result.stdout == f"{300 * MIB} 10000\n"
    assert result.verdict == "finished"
    assert result.report["memory"]["peak_charged_bytes"] > 300 * MIB
    assert run(script=script, budget="200M").rc == 1, "the same is refused without --observe"


def test_sparse_lets_arrays_pass_that_are_never_filled(run):
    script = """
        import numpy as np
        a = np.zeros(20 << 30, dtype=np.uint8)
        a[::1 << 30] = 1
        print(int(a[::1 << 30].sum()))
        """
    result = run(script=script, budget="300M", options=["--sparse"])
    assert result.rc == 0 and result.stdout == "20\n"
    refused = run(script=script, budget="300M")
    assert refused.rc == 1 and refused.verdict == "refused"


def test_sparse_still_counts_what_is_filled(run):
    result = run(budget="300M", options=["--sparse"], script="""
        import numpy as np, time
        kept = []
        try:
            for _ in range(40):
                kept.append(np.ones(20 << 20, dtype=np.uint8))
                time.sleep(0.05)
        except MemoryError:
            print("refused at", len(kept))
        """)
    # Past the line by first touch: refused at a later request, or stopped by the watcher.
    assert "refused at" in result.stdout or result.verdict == "stopped-for-memory"


@pytest.mark.parametrize("exponent", [62, 63])
def test_sizes_at_the_end_of_the_range_are_ordinary_refusals(run, exponent):
    result = run(budget="300M", script=f"""
        import ctypes, numpy as np
        for n in (2**{exponent} - 1, 2**{exponent} - 4096):
            try:
                bytearray(n)
            except (MemoryError, OverflowError) as error:
                print(type(error).__name__)
        try:
            np.empty(2**{exponent} - 1, dtype=np.uint8)
        except (MemoryError, ValueError) as error:
            print(type(error).__name__)
        print(np.ones(1 << 20).sum())
        """)
    assert result.rc == 0 and result.stdout.endswith("1048576.0\n")
    assert result.stdout.count("Error") == 3


def test_the_default_budget_follows_the_cgroup(run, cgroup):
    result = run(cgroup=cgroup(300 * MIB), script="""
        import numpy as np
        try:
            np.ones(400 << 20, dtype=np.uint8)
        except MemoryError as error:
            print("refused")
        """)
    assert result.rc == 0 and result.stdout == "refused\n"
    memory = result.report["memory"]
    # What the cgroup gives, less what it holds already.
    assert 250 * MIB < memory["true_limit_bytes"] <= 300 * MIB
    assert memory["limit_bytes"] < memory["true_limit_bytes"]
    assert "cgroup" in memory["true_limit_source"]


def test_in_a_cgroup_nothing_is_killed_however_it_grows(run, cgroup):
    """The main promise: unguarded, each of these is SIGKILLed."""
    script = """
        import sys, numpy as np, pandas as pd
        def arrays(kept):
            while True: kept.append(np.ones(10 << 20, dtype=np.uint8))
        def objects(kept):
            while True: kept.append([float(len(kept))] * 4)
        def mixed(kept):
            while True:   # the cgroup is the end of it
                kept.append(np.ones(3 << 20, dtype=np.uint8))
                kept.extend(bytes(700) for _ in range(3000))
        def frames(kept):
            frame = pd.DataFrame({'a': np.arange(1 << 16), 'b': 'text'})
            while True: kept.append(frame.assign(c=frame.a.astype(str)))
        def fragments(kept):
            while True:
                kept.extend(bytes(900) for _ in range(20_000))
                del kept[-20_000::2]   # every hole is too small for what comes
        for way in (arrays, objects, mixed, frames, fragments):
            kept = []
            try:
                way(kept)
            except MemoryError:
                kept.clear()
                print(way.__name__, flush=True)
        """
    group = cgroup(400 * MIB)
    result = run(script=script, cgroup=group)
    assert result.rc == 0
    assert result.stdout.split() == ["arrays", "objects", "mixed", "frames", "fragments"]
    assert group.n_oom_kills() == 0


def test_without_us_the_same_is_killed(session, cgroup):
    """Shows that the cgroup of the test above is one that kills."""
    group = cgroup(200 * MIB)
    script = session.script("kept = []\nwhile True: kept.append(bytes(4000))\n")
    done = subprocess.run(script, preexec_fn=group.enter, timeout=120)
    assert done.returncode == -9 and group.n_oom_kills() >= 1 and script[0] == PYTHON
