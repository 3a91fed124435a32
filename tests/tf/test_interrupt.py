# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C while something is computed, the end of the process, and forks: by real signals, in
processes of their own."""
import os
import signal
import subprocess
import textwrap
import time

import pytest

from conftest import PACKAGE
from support import HANG_S, PYTHON

PRELUDE = """
import gc, os, signal, sys, threading, time
from plimsoll import _core

def large(n=1 << 36):
    x = _core.op("random_normal", [], {"shape": [n], "seed": 1, "stream": 0})
    return _core.op("sum", [_core.op("sin", [x])])

def product(n=20_000):
    x = _core.op("random_normal", [], {"shape": [n, n], "seed": 1, "stream": 0})
    return _core.op("sum", [_core.op("matmul", [x, x])])

def endless():
    i = _core.placeholder("float32", [])
    return _core.while_loop(_core.Function([i], [i < 1e9]), _core.Function([i], [i * 1.0]), [0.0])[0]

def claimed():
    gc.collect()
    return _core.budget()["claimed"]

(_core.constant([1.0]) + 1.0).numpy()
before = claimed()

def within(work):
    print("begun", flush=True)
    try:
        work()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


def start(text, **environment):
    return subprocess.Popen(
        [PYTHON, "-c", PRELUDE + textwrap.dedent(text)],
        env=os.environ | {"PYTHONPATH": PACKAGE, "PLIMSOLL_BUDGET": "256M"} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def interrupt(child, after=0.3):
    assert child.stdout.readline() == "begun\n", child.stderr.read()
    try:
        child.wait(after)
    except subprocess.TimeoutExpired:
        pass
    child.send_signal(signal.SIGINT)


def finish(child):
    out, err = child.communicate(timeout=HANG_S)
    assert child.returncode == 0, err
    return out.splitlines(), err


@pytest.mark.parametrize(
    "work",
    [
        "large().numpy()",
        "product().numpy()",
        "_core.run([large()])",
        "_core.evaluate([large()])",
        "endless().numpy()",
    ],
)
def test_ctrl_c_ends_a_run_and_nothing_stays_claimed(work):
    child = start(f"within(lambda: {work})\nprint(claimed() - before)")
    interrupt(child)
    out, err = finish(child)
    assert out[0] == "interrupted"
    assert int(out[1]) <= 0, err


def test_a_run_after_that_goes_well():
    child = start("within(lambda: large().numpy())\nprint((_core.constant([1.0]) + 1.0).numpy())")
    interrupt(child)
    assert finish(child)[0] == ["interrupted", "[2.]"]


def test_ctrl_c_ends_what_a_python_function_computes():
    child = start(
        """
        class Trace:
            def _unique_name(self, name, is_op=False): return name
            def _add(self, node): pass
        def work():
            outer = _core.context(Trace(), "", None)
            (y,) = _core.python_call(lambda: [large().numpy()], [], [("float32", [])])
            _core.context(*outer)
            _core.run([y])
        within(work)
        print(claimed() - before)
        """
    )
    interrupt(child)
    out, err = finish(child)
    assert out[0] == "interrupted", err
    assert int(out[1]) <= 0


def test_ctrl_c_comes_through_a_python_function_that_takes_long():
    child = start(
        """
        def work():
            _core.python_call(lambda: time.sleep(1000), [], [("float32", [])])
        within(work)
        """
    )
    interrupt(child)
    assert finish(child)[0] == ["interrupted"]


def test_a_handler_of_the_users_that_raises_nothing_does_not_end_a_run():
    child = start(
        """
        n = []
        signal.signal(signal.SIGINT, lambda *_: n.append(1))
        print("begun", flush=True)
        while not n:  # one run may end before the signal comes: then it comes in a later one
            value = float(large(1 << 26))
        print(abs(value) < 1e6)
        """
    )
    interrupt(child, after=0.1)
    assert finish(child)[0] == ["True"]


CALLED = """
import plimsoll.tf as tf
calls = []
signal.signal(signal.SIGINT, lambda *_: None)
def call():
    calls.append(1)
    for _ in range({n}):
        signal.raise_signal(signal.SIGINT)
    return 1.0
with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    called = tf.py_function(call, [], tf.float32)
    long = called + tf.reduce_sum(tf.sin(tf.random.normal([1 << 26])))  # is computed behind it
    try:
        print(abs(session.run(long)) < 1e6, len(calls))
    except tf.errors.CancelledError:
        print("cancelled", len(calls))
"""


def test_a_run_that_has_called_a_function_is_not_begun_again():
    assert finish(start(CALLED.format(n=1)))[0] == ["True 1"]


def test_a_second_signal_ends_such_a_run_whatever_the_handler():
    assert finish(start(CALLED.format(n=2)))[0] == ["cancelled 1"]


def test_a_handler_of_the_users_that_raises_is_heard():
    child = start(
        """
        class Stop(Exception):
            pass
        def stop(*_):
            raise Stop
        signal.signal(signal.SIGINT, stop)
        print("begun", flush=True)
        try:
            large().numpy()
        except Stop:
            print("stopped")
        """
    )
    interrupt(child)
    assert finish(child)[0] == ["stopped"]


def test_a_process_that_ignores_the_signal_goes_on_to():
    child = start(
        """
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        x = large(1 << 26)
        print("begun", flush=True)
        print(abs(float(x)) < 1e6)
        """
    )
    interrupt(child, after=0.1)
    assert finish(child)[0] == ["True"]


def test_runs_of_other_threads_are_not_interrupted():
    child = start(
        """
        done = []
        thread = threading.Thread(target=lambda: done.append(float(large(1 << 26))))
        thread.start()
        within(lambda: time.sleep(1000))
        thread.join()
        print(len(done))
        """
    )
    interrupt(child)
    assert finish(child)[0] == ["interrupted", "1"]


def test_a_process_ends_while_other_threads_compute():
    child = start(
        """
        for _ in range(3):
            threading.Thread(target=lambda: large().numpy(), daemon=True).start()
        time.sleep(0.2)
        print("end", flush=True)
        """
    )
    assert finish(child) == (["end"], "")


def test_a_process_ends_while_a_python_function_is_called():
    child = start(
        """
        i = _core.placeholder("float32", [])
        (j,) = _core.python_call(lambda v: [v.numpy()], [i], [("float32", [])])
        loop = _core.while_loop(_core.Function([i], [i < 1.0]), _core.Function([i], [j]), [0.0])[0]
        threading.Thread(target=lambda: loop.numpy(), daemon=True).start()
        time.sleep(0.2)
        print("end", flush=True)
        """
    )
    assert finish(child) == (["end"], "")


def test_the_child_of_a_fork_is_told_that_the_runtime_is_not_its_own():
    child = start(
        """
        threading.Thread(target=lambda: large(1 << 26).numpy()).start()
        x = _core.constant([1.0]) + 1.0
        pid = os.fork()
        if pid == 0:
            try:
                x.numpy()
            except Exception as error:
                print(type(error).__name__, flush=True)
            os._exit(0)
        os.waitpid(pid, 0)
        print(x.numpy(), flush=True)
        """
    )
    out, _ = finish(child)
    assert len(out) == 2 and out[0].endswith("Error") and out[1] == "[2.]"


STORM = """
import os, signal, threading, time
import plimsoll.tf as tf

numbers = tf.data.Dataset.range(2000).map(lambda x: x * 2).batch(7)
x = tf.random.normal([200, 200])
n_raised, over = 0, threading.Event()

def storm():
    for i in range(400):
        time.sleep(0.002 + i % 7 * 0.001)
        os.kill(os.getpid(), signal.SIGINT)
    over.set()

def work():
    while not over.is_set():
        for _ in numbers:
            pass
        float(tf.reduce_sum(x @ x))

thread = threading.Thread(target=storm)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
thread.start()
while not over.is_set():
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        try:
            work()
        finally:
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    except KeyboardInterrupt:
        n_raised += 1
thread.join()
print(n_raised, len(list(numbers)))
"""


def test_what_is_begun_after_an_interrupt_is_not_cancelled_by_it(run_python):
    """CancelledError, which nobody expects, would end the program here."""
    n_raised, n_batches = map(int, run_python(STORM).split())
    assert n_raised > 100 and n_batches == 286


def test_a_handler_of_the_users_that_raises_nothing_does_not_end_a_pass():
    child = start(
        """
        import plimsoll.tf as tf
        n = []
        signal.signal(signal.SIGINT, lambda *_: n.append(1))
        def slow(x):
            time.sleep(0.5)
            return x
        numbers = tf.data.Dataset.range(3).map(lambda x: tf.py_function(slow, [x], tf.int64))
        print("begun", flush=True)
        print([int(x) for x in numbers], len(n))
        """
    )
    interrupt(child, after=0.2)
    assert finish(child)[0] == ["[0, 1, 2] 1"]


def test_a_second_signal_ends_a_pass_whatever_the_handler():
    child = start(
        """
        import plimsoll.tf as tf
        signal.signal(signal.SIGINT, lambda *_: None)
        numbers = tf.data.Dataset.range(1 << 60).filter(lambda x: x < 0)
        print("begun", flush=True)
        try:
            list(numbers)
        except tf.errors.CancelledError:
            print("cancelled")
        """
    )
    interrupt(child, after=0.2)
    time.sleep(0.2)
    child.send_signal(signal.SIGINT)
    assert finish(child)[0] == ["cancelled"]
