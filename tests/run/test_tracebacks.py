# SPDX-License-Identifier: Apache-2.0
"""What follows a refusal: the traceback is printed, the program's handler does its work, and the
report names the program's own line. Handling takes memory while all of it is still held: CPython
3.13 imports a dozen modules before it prints one. In every Python that is installed."""
import re

import pytest

from conftest import MIB, PYTHON, line_of
from test_exceptions import PYTHONS

# How memory runs out. A refusal is at the line that asked; an exception for small objects comes
# between two rounds of the loop.
WAYS = {
    "buffers": "bytearray(1_100_000)",
    "dicts": "{len(keep): keep}",
    "strings": "'%d ' % len(keep) * 40",
    "lists": "[None] * 1000",
    "objects": "[object() for _ in range(5)]",
}
GROW = """
def grow(keep):  # begins
    while True:
        keep.append(%s)  # asks

"""
# Each calls grow(), and lets the exception pass.
UNCAUGHT = {
    "main": "grow([])\n",
    "deep": """
def descend(n):
    return descend(n - 1) if n else grow([])
descend(60)
""",
    "thread": """
import threading
thread = threading.Thread(target=grow, args=([],))
thread.start()
thread.join()
""",
    "pool": """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(1) as pool:
    pool.submit(grow, []).result()
""",
    "hook": """
import sys
def hook(kind, error, trace):
    import traceback, json, decimal, logging.handlers, email.mime.text
    traceback.print_exception(kind, error, trace)
sys.excepthook = hook
grow([])
""",
    "finally": """
try:
    grow([])
finally:
    import json, decimal, logging.handlers, email.mime.text
""",
}
# What a handler does while everything is still held.
HANDLERS = {
    "print_exc": "import traceback; traceback.print_exc()",
    "logging": "import logging; logging.exception('caught')",
    "program": "import subprocess, sys, traceback; traceback.print_exc(); "
               "subprocess.run([sys.executable, '-c', 'print(\"child\")'], check=True)",
    "imports": "import traceback, json, decimal, email.mime.text, logging.handlers, unittest; "
               "traceback.print_exc()",
}
HANDLED = """
def grow_small(keep):
    while True:
        keep.append({len(keep): None})
def attempt(grow, number):
    keep = []
    try:
        grow(keep)
    except MemoryError:
        %s
    print("handled", number, flush=True)
for number in range(5):
    attempt(grow, number)
    attempt(grow_small, number)
"""
SPOILT = ("Exception ignored", "lost sys.stderr", "Error in sys.excepthook", "Fatal Python error",
          "During handling of the above", "exception in excepthook")


def check(result):
    """Nothing was said twice or lost, and what the report says is about the script."""
    for text in SPOILT:
        assert text not in result.stderr
    assert result.report["refusals"]
    for refusal in result.report["refusals"]:
        assert refusal["python"]["file"].endswith("script.py"), refusal
    assert result.report["sites"][0]["place"].startswith("script.py:")


def check_traceback(result, script):
    lines = range(line_of(script, "# begins"), line_of(script, "# asks") + 1)
    assert sum(result.stderr.count(f'script.py", line {line}, in grow') for line in lines) == 1
    assert result.stderr.count("\nMemoryError") == 1
    check(result)
    assert result.report["refusals"][-1]["python"]["line"] in lines


def run_script(session, python, script):
    path = session.folder / "script.py"
    path.write_text(script)
    return session.run(python, path, budget="160M", options=["--reserve", "32M"])


def each_python(test):
    return pytest.mark.parametrize("python", PYTHONS, ids=lambda path: path.split("/")[-3])(test)


@each_python
@pytest.mark.parametrize("way", WAYS)
def test_an_uncaught_exception_prints_its_traceback(session, python, way):
    script = GROW % WAYS[way] + UNCAUGHT["main"]
    result = run_script(session, python, script)
    assert result.rc == 1
    check_traceback(result, script)
    assert result.verdict in ("refused", "leak")


@each_python
@pytest.mark.parametrize("where", [where for where in UNCAUGHT if where != "main"])
def test_wherever_it_happens(session, python, where):
    for way in "buffers", "dicts":
        script = GROW % WAYS[way] + UNCAUGHT[where]
        result = run_script(session, python, script)
        assert result.rc == (0 if where == "thread" else 1)
        check_traceback(result, script)


@each_python
@pytest.mark.parametrize("handler", HANDLERS)
def test_a_handler_has_room_for_its_work_again_and_again(session, python, handler):
    script = GROW % WAYS["buffers"] + HANDLED % HANDLERS[handler]
    result = run_script(session, python, script)
    assert result.rc == 0
    assert result.stdout.split().count("handled") == 10
    assert len(re.findall(r'script.py", line \d+, in grow', result.stderr)) == 10
    assert result.stderr.count("\nMemoryError") == 10
    check(result)
    assert result.verdict == "finished-after-refusals"


def test_what_an_import_takes_is_the_importing_lines(run):
    """Packages import each other, six frames of the import system at a time: the user's is deep."""
    result = run(budget="600M", options=["--observe"], script="""
        import pandas
        print("done")
        """)
    assert result.stdout == "done\n"
    by_file = {}
    for site in result.report["sites"]:
        file = site.get("python", {}).get("file", "native").split("/")[-1]
        by_file[file] = by_file.get(file, 0) + site["bytes"]
    assert by_file["script.py"] > 10 * MIB
    assert sum(n for file, n in by_file.items() if file.startswith("<frozen")) < 4 * MIB


def test_without_the_users_code_the_package_is_named(session):
    """A program that is installed: nothing of its stack is the user's."""
    folder = session.folder / "lib/python3/dist-packages/trainer"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "__main__.py").write_text("import json\njson.loads('[' + '0.5, ' * 3_000_000 + '1]')\n")
    result = session.run(PYTHON, "-m", "trainer", budget="100M",
                         env={"PYTHONPATH": str(folder.parent)})
    assert result.rc == 1 and '__main__.py", line 2' in result.stderr
    assert result.report["refusals"][-1]["python"]["file"].endswith("trainer/__main__.py")
    assert "trainer/__main__.py:2" in result.stderr
