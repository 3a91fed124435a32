# SPDX-License-Identifier: Apache-2.0
"""The extension where Python has no memory: each allocation of a call fails once.

What comes of it is the result or an exception, never a crash or a NULL without one. CPython and
NumPy have such of their own: what is called here is all of ours.
"""
import sys

import pytest

pytest.importorskip("_testcapi")

PROGRAM = """
import gc
import sys
import plimsoll.tf as tf
from plimsoll import _core
from _testcapi import remove_mem_hooks, set_nomemory

x = tf.constant([1.0, 2.0])
double = tf.function(lambda x: x * 2.0)
v = tf.Variable([1.0, 2.0])
numbers = tf.data.Dataset.range(4).map(lambda x: x + 1).batch(2)
pairs = tf.data.Dataset.from_tensor_slices({"a": [1, 2], "b": ([1.0, 2.0], ["x", "y"])})
def broken(y):
    raise ValueError("no")
called = tf.data.Dataset.range(2).map(lambda x: tf.py_function(lambda y: y, [x], tf.int64))
failing = tf.data.Dataset.range(2).map(lambda x: tf.py_function(broken, [x], tf.int64))
made = tf.data.Dataset.from_generator(lambda: [1, 2], output_types=tf.int32)
with tf.Graph().as_default():
    node = tf.compat.v1.placeholder(tf.float32, [2])
    over = node + 1.0

def fails(call, *args):
    try:
        call(*args)
    except (ValueError, MemoryError, tf.errors.OpError):
        return
    raise AssertionError("nothing was refused")

def drain(dataset):
    for _ in dataset:
        pass

CASES = {
    "constant": lambda: _core.constant([[1, 2], [3, 4]]),
    "texts": lambda: _core.constant(["a", "b"]),
    "mixed": lambda: fails(_core.constant, [1, "a"]),
    "packed": lambda: _core.convert([x, [1.0, 2.0]]),
    "buffer": lambda: memoryview(x + 1.0),
    "add": lambda: float((x + 1.0)[0]),
    "shapes": lambda: fails(_core.binary, "add", x, _core.constant([1.0, 2.0, 3.0])),
    "function": lambda: double(x),
    "assign": lambda: v.assign_add(x),
    "substitute": lambda: _core.substitute([over], [(node, x)]),
    "numbers": lambda: drain(numbers),
    "pairs": lambda: drain(pairs),
    "called": lambda: drain(called),
    "failing": lambda: fails(drain, failing),
    "generator": lambda: drain(made),
}
if sys.version_info[:2] == (3, 13):
    # CPython 3.13 itself crashes where it has no memory for the cell of a closure, in plain Python too:
    # here is what calls no Python code with closures. 3.11 and 3.14 do not.
    for name in ("assign", "numbers", "pairs", "called", "failing", "generator"):
        del CASES[name]
for name, call in CASES.items():
    call(), call()
    gc.collect()
    for first in range(1, 200):
        try:
            set_nomemory(first, first + 1)
            try:
                call()
            finally:
                remove_mem_hooks()
        except MemoryError:
            pass
        except (SystemError, tf.errors.OpError) as error:
            # CPython 3.11 forgets to set MemoryError for functions in Python
            assert "built-in" not in str(error) and "plimsoll" not in str(error), error
    call()
    print(name)
"""


def test_an_allocation_that_fails_is_an_exception(run_python):
    assert len(run_python(PROGRAM).split()) == (9 if sys.version_info[:2] == (3, 13) else 15)


@pytest.mark.parametrize("op", ("sort", "argsort", "cumsum"))
def test_long_rows_of_a_value_that_is_kept_too(run_python, op):
    """Rows that do not fit go by parts, and read a value that has a name of its own: what it was made
    of is no longer in memory then, and is not read again."""
    text = f"""
from plimsoll import _core
_core.configure(cap_bytes=300_000)
import numpy as np
import plimsoll.tf as tf
x = tf.constant(np.arange(30_000, dtype="i4") % 7)
kept = -tf.reshape(x, [-1])
rows = tf.{op}(kept)
assert "in parts" in _core.explain([rows])[0]
print(np.array_equal(rows.numpy(), np.{op}(kept.numpy(), **{{"kind": "stable"}} if "{op}" != "cumsum" else {{}})))
"""
    assert run_python(text) == "True\n"
