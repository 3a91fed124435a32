# SPDX-License-Identifier: Apache-2.0
"""Passes and threads: who waits for whom, what ends when, and what is collected."""

import gc
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import threading
import time
import weakref

import numpy as np
import pytest
from plimsoll import _core, errors
from plimsoll.tf._values import types as _types

INT64 = (_types.int64, (), None)
NESTED = (None, None, [INT64])


def numbers(n):
    return _core.ds_range(0, n, 1)


def python(function, *specs):
    return _core.Callback(function, list(specs) or [INT64])


def values(dataset):
    return [int(x) for x in _core.Iterator(dataset)]


class Witness:
    """Something that a closure has, to see when it is gone."""


# ---- what refers to itself is collected ----


def of_a_callback(witness):
    cell = []
    cell.append(_core.ds_map(numbers(3), python(lambda x: (x, cell, witness)[:1]), 2))
    return cell[0]


def of_a_generator(witness):
    cell = []
    cell.append(_core.ds_generator(lambda: iter([(len(cell), witness)[:1]]), [INT64], -2))
    return cell[0]


def of_an_inner_stage(witness):
    cell = []
    inner = _core.ds_filter(numbers(3), python(lambda x: (True, cell, witness)[:1],
                                               (_types.bool, (), None)))  # fmt: skip
    cell.append(_core.ds_batch(_core.ds_prefetch(inner, 2), 2))
    return cell[0]


def of_a_zip(witness):
    cell = []
    cell.append(_core.ds_zip([numbers(3), of_a_callback(witness)]))
    return cell[0]


class Graph:
    """As little of tf.Graph as nodes need."""

    def _unique_name(self, name, is_op=False):
        return name

    def _add(self, node):
        pass


def of_a_traced_function(witness):
    graph = Graph()
    graph.witness = witness
    before = _core.context(graph, "", None)
    x = _core.placeholder(_types.int64, ())
    function = _core.Function([x], [_core.binary("add", x, 1)])
    _core.context(*before)
    graph.dataset = _core.ds_map(numbers(3), function, 2)
    return graph.dataset


def of_a_pass(witness):
    cell = []
    dataset = _core.ds_map(numbers(3), python(lambda x: (x, cell, witness)[:1]), 2)
    cell.append(_core.Iterator(dataset, _core.Structure(None)))
    next(cell[0])
    return cell[0]


@pytest.mark.parametrize("make", [of_a_callback, of_a_generator, of_an_inner_stage, of_a_zip,
                                  of_a_traced_function, of_a_pass])  # fmt: skip
@pytest.mark.parametrize("passes", [0, 1])
def test_what_refers_to_itself_through_a_function_is_collected(make, passes):
    witness = Witness()
    gone = weakref.ref(witness)
    made = make(witness)
    for _ in range(passes if isinstance(made, _core.Dataset) else 0):
        list(_core.Iterator(made))
    del witness
    gc.collect()
    assert gone() is not None, "it is still in use"
    del made
    gc.collect()
    assert gone() is None


def test_a_function_stays_as_long_as_a_pass_needs_it():
    one = _core.Iterator(of_a_callback(Witness()))
    gc.collect()
    assert [int(x) for x in one] == [0, 1, 2]


def test_a_function_stays_as_long_as_a_dataset_that_was_given_away():
    def inner(x):
        cell = []
        cell.append(_core.ds_map(numbers(3), python(lambda y: (y, cell)[:1]), 1))
        return [_core.ds_skip(cell[0], 1)]

    one = _core.Iterator(_core.ds_flat_map(numbers(2), python(inner, NESTED)))
    found = []
    for element in one:
        gc.collect()
        found.append(int(element))
    assert found == [1, 2, 1, 2]


def test_a_dataset_of_thousands_of_stages_goes_as_it_came():
    dataset = numbers(3)
    for _ in range(5000):
        dataset = _core.ds_take(dataset, -1)
    gone = weakref.ref(dataset)
    del dataset
    assert gone() is None


# ---- passes that are dropped in the middle ----


def slow(x):
    time.sleep(0.002)
    return [x]


@pytest.mark.parametrize("end", ["a reference", "the collector"])
def test_a_pass_that_is_dropped_ends_its_workers(end):
    before = threading.active_count()
    for _ in range(5):
        dataset = _core.ds_prefetch(_core.ds_map(numbers(1000), python(slow), 4), 8)
        one = _core.Iterator(dataset)
        next(one)
        if end == "the collector":
            cycle = [one]
            cycle.append(cycle)
            del cycle
        del one, dataset
        gc.collect()
    assert threading.active_count() == before


def test_a_generator_that_is_not_used_up_is_closed():
    closed = []

    def begin():
        try:
            for i in range(100):
                yield [i]
        finally:
            closed.append(True)

    one = _core.Iterator(_core.ds_generator(begin, [INT64], -2))
    next(one)
    assert not closed
    del one
    assert closed


def test_an_exception_on_its_way_survives_the_end_of_a_pass():
    def begin():
        try:
            yield [1]
        finally:
            try:
                raise LookupError
            except LookupError:
                pass

    def fail():
        one = _core.Iterator(_core.ds_generator(begin, [INT64], -2))
        next(one)
        raise OSError("mine")

    with pytest.raises(OSError, match="mine"):
        fail()


def test_the_last_reference_may_go_in_a_worker_of_the_pass():
    held, alone, gone = {}, threading.Event(), threading.Event()

    def drop(x):
        if int(x) == 1:
            assert alone.wait(20)
            held.clear()
            gc.collect()
            gone.set()
        return [x]

    held["pass"] = _core.Iterator(_core.ds_map(numbers(1000), python(drop), 3))
    next(held["pass"])
    alone.set()
    assert gone.wait(20)
    assert not held


def test_passes_inside_of_functions_end_with_them():
    def total(x):
        one = _core.Iterator(_core.ds_map(numbers(int(x)), python(lambda y: [y]), 2))
        return [sum(int(y) for y in one)]

    assert values(_core.ds_map(numbers(30), python(total), 3)) == [
        n * (n - 1) // 2 for n in range(30)]  # fmt: skip


# ---- threads ----


def test_several_threads_share_a_pass():
    one = _core.Iterator(_core.ds_map(numbers(2000), python(lambda x: [x]), 2))
    found = [[] for _ in range(4)]

    def pull(mine):
        mine.extend(int(x) for x in one)

    threads = [threading.Thread(target=pull, args=[mine]) for mine in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(sum(found, [])) == list(range(2000))


def test_a_function_that_asks_its_own_pass_is_refused():
    held = []

    def ask(_):
        return [next(held[0])]

    held.append(_core.Iterator(_core.ds_map(numbers(3), python(ask), 1)))
    with pytest.raises(errors.InvalidArgumentError, match="asked for an element by a function"):
        next(held[0])
    held.clear()


def test_a_pass_is_cancelled_from_another_thread():
    entered = threading.Event()

    def wait(x):
        entered.set()
        time.sleep(0.05)
        return [x]

    one = _core.Iterator(_core.ds_map(numbers(10**6), python(wait), 1))
    canceller = threading.Thread(target=lambda: (entered.wait(), one.cancel()))
    canceller.start()
    with pytest.raises(errors.CancelledError):
        for _ in one:
            pass
    canceller.join()
    with pytest.raises(errors.CancelledError):
        next(one)


def test_workers_keep_what_is_local_to_their_thread():
    local, seen = threading.local(), set()

    def mark(x):
        if not hasattr(local, "number"):
            local.number = int(x)
        seen.add(local.number)
        return [x]

    n = 500
    assert len(values(_core.ds_map(numbers(n), python(mark), 2))) == n
    assert len(seen) < n / 10


# ---- the end of the process, and Ctrl-C ----

PRELUDE = """
import collections, gc, os, signal, sys, threading, time, warnings
import numpy as np
from plimsoll import _core, errors
from plimsoll.tf._values import types as _types
INT64 = (_types.int64, (), None)
def numbers(n): return _core.ds_range(0, n, 1)
def python(function): return _core.Callback(function, [INT64])
"""


PACKAGE = str(pathlib.Path(_core.__file__).parents[1])


def start(program, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(program), *arguments],
        env={**os.environ, "PYTHONPATH": PACKAGE},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(program):
    """Status, what it printed, and what it complained about."""
    child = start(program)
    out, err = child.communicate(timeout=60)
    return child.returncode, out, err


def test_a_process_ends_in_the_middle_of_passes():
    done = run("""
        def begin():
            try:
                while True:
                    yield [1]
            finally:
                print("closed")
        passes = [_core.Iterator(_core.ds_prefetch(_core.ds_map(
            _core.ds_generator(begin, [INT64], -2), python(lambda x: [x]), 4), 4)) for _ in range(3)]
        for one in passes:
            next(one)
        reference = passes
        def other():
            for _ in passes[0]:
                time.sleep(0.001)
        threading.Thread(target=other, daemon=True).start()
        time.sleep(0.05)
        print("end")
    """)
    assert done == (0, "end\nclosed\nclosed\nclosed\n", "")


def test_a_process_that_hangs_in_a_function_ends_all_the_same():
    done = run("""
        entered = threading.Event()
        def hang(x):
            entered.set()
            time.sleep(1000)
        one = _core.Iterator(_core.ds_options(_core.ds_map(numbers(9), python(hang), 2),
                                              watchdog_ms=100))
        try:
            next(one)
        except errors.DeadlineExceededError:
            print("timed out")
    """)
    assert done == (0, "timed out\n", "")


@pytest.mark.parametrize("end", ["del one; os._exit(0)", "sys.exit(0)"])
def test_the_child_of_a_fork_is_told_that_its_pass_is_not_there(end):
    done = run("""
        one = _core.Iterator(_core.ds_prefetch(_core.ds_map(numbers(99), python(lambda x: [x]), 2),
                                               4))
        next(one)
        warnings.simplefilter("ignore", DeprecationWarning)  # of fork() beside threads, since 3.12
        child = os.fork()
        if child == 0:
            try:
                next(one)
            except errors.UnimplementedError:
                print("not there", flush=True)
            END
        print(os.waitpid(child, 0)[1])
        print(len(list(one)))
    """.replace("END", end))
    assert done == (0, "not there\n0\n98\n", "")


@pytest.mark.parametrize("wait", [
    "collections.deque(_core.Iterator(endless), 0)",
    "_core.ds_reduce(endless, [np.int64(0)], _core.Callback(lambda s, x: [s], [INT64]))",
    "_core.ds_save(_core.ds_take(endless, 10**15), sys.argv[1] + '/saved', 1)",
])  # fmt: skip
@pytest.mark.parametrize("where", ["in C", "in Python"])
def test_ctrl_c_ends_what_waits_for_a_pass(tmp_path, wait, where):
    endless = {"in C": "_core.ds_filter(_core.ds_repeat(_core.ds_shuffle(numbers(9), 9, 1, True),"
                       " -1), never)",
               "in Python": "_core.ds_map(numbers(10**15), python(lambda x: [int(x)]), 2)"}  # fmt: skip
    program = """
        list(_core.Iterator(numbers(3)))
        before = _core.budget()["claimed"]
        never = _core.Callback(lambda x: [False], [(_types.bool, (), None)])
        endless = ENDLESS
        print("begun", flush=True)
        try:
            WAIT
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        gc.collect()
        while _core.budget()["claimed"] > before:  # a call that was under way ends by itself
            time.sleep(0.01)
        print(_core.budget()["claimed"] - before)
    """.replace("ENDLESS", endless[where]).replace("WAIT", wait)
    child = start(program, str(tmp_path))
    assert child.stdout.readline() == "begun\n"
    time.sleep(0.3)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=30)
    assert (out.splitlines()[0], err) == ("interrupted", "")
    assert out.splitlines()[1] == "0"


def test_ctrl_c_ends_the_wait_for_another_thread():
    child = start("""
        entered = threading.Event()
        def slow(x):
            entered.set()
            time.sleep(50)
        one = _core.Iterator(_core.ds_map(numbers(3), python(slow), 1))
        threading.Thread(target=lambda: next(one), daemon=True).start()
        entered.wait()
        print("begun", flush=True)
        try:
            next(one)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """)
    assert child.stdout.readline() == "begun\n"
    time.sleep(0.2)
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=30) == ("interrupted\n", "")


@pytest.mark.parametrize("make", [
    "_core.ds_map(numbers(10**15), python(slow), 2)",
    "_core.ds_prefetch(_core.ds_map(numbers(10**15), python(slow), 1), 2)",
    "_core.ds_interleave(numbers(10**15), _core.Callback(lambda x: [_core.ds_map(numbers(10**15), python(slow), 1)],"
    " [(None, None, [INT64])]), 3, 1, 3)",
])  # fmt: skip
def test_ctrl_c_does_not_wait_for_a_function_that_hangs(make):
    """In a worker, where Python cannot interrupt it. It ends later, and the pass with it."""
    child = start("""
        list(_core.Iterator(numbers(3)))
        before = _core.budget()["claimed"]
        hangs, comes_back = threading.Event(), threading.Event()
        def slow(x):
            if threading.current_thread() is not threading.main_thread():
                hangs.set()
                comes_back.wait()
            else:
                hangs.wait(0.01)  # so that a worker has its turn
            return [int(x)]
        def interrupt():
            hangs.wait()
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=interrupt, daemon=True).start()
        try:
            collections.deque(_core.Iterator(MAKE), 0)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        comes_back.set()
        while _core.budget()["claimed"] > before:
            time.sleep(0.01)
        print("ended")
    """.replace("MAKE", make))
    assert child.communicate(timeout=30) == ("interrupted\nended\n", "")
