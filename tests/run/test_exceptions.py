# SPDX-License-Identifier: Apache-2.0
"""Python code that grows by small objects: the exception comes in the thread that grows, at a place
where the program's own handler catches it, and says why. In every Python that is installed."""
import glob
import os

import pytest

from conftest import PYTHON

PYTHONS = [PYTHON] + sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.[89].*/bin/python3"))
                            + glob.glob(os.path.expanduser("~/.pyenv/versions/3.1*/bin/python3")))

GROW = '''
import sys, threading

def small_in_while():
    keep = []
    try:
        while True:
            keep.append({})
    except MemoryError as error:
        text = str(error)
    keep = None
    return text

def text_in_while():
    keep = []
    try:
        while True: keep.append("x%d" % len(keep) * 300)
    except MemoryError as error:
        text = str(error)
    keep = None
    return text

def nested_calls():
    class Node:
        def __init__(self, parent):
            self.parent = parent
            self.value = [parent]
    def make(node):
        return Node(node)
    node = None
    try:
        for _ in iter(int, 1):
            node = make(node)
    except MemoryError as error:
        text = str(error)
    while node:
        node.value = None
        node = node.parent
    return text

def in_generator():
    def items():
        while True:
            yield [1]
    keep = []
    try:
        keep.extend(items())
    except MemoryError as error:
        text = str(error)
    keep = None
    return text

def big_buffer():
    try:
        bytearray(1 << 30)
    except MemoryError as error:
        return str(error)

def run(function, where):
    texts = []
    if where == "main":
        texts.append(function())
    else:
        thread = threading.Thread(target=lambda: texts.append(function()))
        thread.start()
        thread.join()
    for text in texts:
        print(function.__name__, where, text)

for where in "main", "thread":
    for function in small_in_while, text_in_while, nested_calls, in_generator, big_buffer:
        run(function, where)

try:
    raise MemoryError("of my own")
except MemoryError as error:
    print("own", error)
print("alive")
'''


@pytest.mark.parametrize("python", PYTHONS, ids=lambda path: path.split("/")[-3])
def test_growth_by_small_objects_is_caught_where_it_happens(session, python):
    script = session.folder / "grow.py"
    script.write_text(GROW)
    result = session.run(python, script, budget="160M", options=["--reserve", "32M"])
    assert result.rc == 0
    lines = result.stdout.splitlines()
    assert lines[-2:] == ["own of my own", "alive"]
    told = {tuple(line.split()[:2]): line for line in lines[:-2]}
    for where in "main", "thread":
        for name in ("small_in_while", "text_in_while", "nested_calls", "in_generator",
                     "big_buffer"):
            text = told[name, where]
            assert "of the 160.0 MiB budget are in use" in text
            assert "--budget" in text
            if name != "big_buffer":
                assert "largest holders: grow.py:" in text
    assert result.verdict == "finished-after-refusals"


def test_interrupts_and_other_exceptions_are_left_alone(session):
    """The text of MemoryError is ours only for those without one."""
    result = session.run(budget="160M", script='''
        try:
            bytearray(1 << 30)
        except MemoryError as error:
            ours = str(error)
        class Mine(MemoryError):
            def __str__(self):
                return "mine"
        print("budget" in ours, repr(MemoryError()), str(MemoryError(1, 2)), str(Mine()), str(KeyError()))
    ''')
    assert result.stdout == "True MemoryError() (1, 2) mine \n"
    assert result.rc == 0


def test_a_collection_that_makes_room_spares_the_exception(session):
    """Cyclic garbage is not held by anybody: it goes before an exception is raised."""
    result = session.run(budget="200M", script='''
        import gc
        gc.set_threshold(1_000_000_000)
        class Node: pass
        for i in range(400_000):
            node = Node()
            node.self = node
            node.bulk = [None] * 100
        print("done")
    ''')
    assert result.stdout == "done\n"
    assert result.rc == 0
