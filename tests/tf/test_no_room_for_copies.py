# SPDX-License-Identifier: Apache-2.0
"""Arrays that leave no room for the tensor that is made of them: it is written to the spill file as
it is converted, and the array can go. In memory cgroups, with little beside the budget."""

import os
import subprocess
import textwrap

import pytest
from support import BUILD, MIB, PLIMSOLL, PYTHON, cgroup  # noqa: F401: a fixture

LIMIT_S = 600  # a program that hangs is stopped

# 185 MiB of NumPy's beside a budget of 192, whose reserve is 24: with the interpreter's 20 it has
# passed the line, and not the reserve.
HEAD = """
import numpy as np
import plimsoll
import plimsoll.tf as tf

ROWS, COLUMNS = 4850, 5000

def ramp(n_rows=ROWS):
    array = np.arange(n_rows * COLUMNS, dtype=np.float64).reshape(n_rows, COLUMNS)
    array %= 1009
    return array

def right_rows(x, turned=False):
    for i in (0, 1, 2424, ROWS - 1):
        row = (np.arange(i * COLUMNS, (i + 1) * COLUMNS) % 1009).astype(np.float32)
        found = x[:, i] if turned else x[i]
        assert np.array_equal(np.asarray(found), row), i
"""

PROGRAMS = {
    "constant": """
        x = tf.constant(ramp(), dtype=tf.float32)
        right_rows(x)
        weights = tf.constant(np.eye(COLUMNS, 3, dtype=np.float32))
        product = tf.matmul(x, weights).numpy()
        assert np.array_equal(product[1], [5000 % 1009, 5001 % 1009, 5002 % 1009])
        """,
    "convert_to_tensor": """
        right_rows(tf.convert_to_tensor(ramp(), dtype=tf.float32))
        """,
    "in_another_shape": """
        x = tf.constant(ramp(), dtype=tf.float32, shape=[ROWS * COLUMNS])
        right_rows(tf.reshape(x, [ROWS, COLUMNS]))
        """,
    "columns_first": """
        right_rows(tf.constant(ramp().T, dtype=tf.float32), turned=True)
        """,
    "backwards": """
        x = tf.constant(ramp()[::-1], dtype=tf.float32)
        right_rows(x[::-1])
        """,
    "without_a_cast": """
        array = ramp()
        x = tf.constant(array)   # as large as the array, which may be written to
        array[:] = -1
        del array
        right_rows(tf.cast(x, tf.float32))
        """,
    "variable": """
        v = tf.Variable(ramp(), dtype=tf.float32)
        right_rows(v)
        """,
    "fed": """
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            array = ramp(3500)   # there all the while: 134 MiB, and 67 of its tensor
            x = tf.compat.v1.placeholder(tf.float32, array.shape)
            total = session.run(tf.reduce_sum(x, axis=1), feed_dict={x: array})
        assert np.allclose(total, array.sum(axis=1))
        """,
    "slices": """
        rows = tf.data.Dataset.from_tensor_slices(tf.constant(ramp(), dtype=tf.float32))
        for i, row in enumerate(rows.take(3)):
            assert np.array_equal(row, (np.arange(i * COLUMNS, (i + 1) * COLUMNS) % 1009)), i
        """,
}


def run(group, folder, program, *front, budget="192M"):
    environment = {**os.environ, "PYTHONPATH": str(BUILD / "python"), "PLIMSOLL_BUDGET": budget,
                   "PLIMSOLL_SPILL": str(folder), "PLIMSOLL_STATE": str(folder / "state")}
    done = subprocess.run([*front, PYTHON, "-c", HEAD + textwrap.dedent(program)],
                          env=environment, text=True, capture_output=True, cwd=folder,
                          preexec_fn=group.enter, timeout=LIMIT_S)
    assert group.n_oom_kills() == 0
    return done


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_the_array_leaves_no_room_for_is_made_on_disk(cgroup, tmp_path, name):
    done = run(cgroup(256 * MIB), tmp_path, PROGRAMS[name])
    assert done.returncode == 0, done.stderr


def test_the_tensor_is_where_an_evicted_one_would_be(cgroup, tmp_path):
    done = run(cgroup(256 * MIB), tmp_path, """
        x = tf.constant(ramp(), dtype=tf.float32)
        print(plimsoll.budget().peak)
        print(plimsoll.live())
        """)
    assert done.returncode == 0, done.stderr
    peak, live = done.stdout.split("\n", 1)
    assert int(peak) <= MIB
    assert "spill" in live


def test_in_a_guarded_run_the_line_decides_about_the_array(cgroup, tmp_path):
    """NumPy's own array must fit below the line, beside the interpreter; then the tensor need not."""
    program = PROGRAMS["constant"]
    fits = run(cgroup(256 * MIB), tmp_path, program, PLIMSOLL, "run", "--budget", "212M", "--",
               budget="100%")
    assert fits.returncode == 0, fits.stderr
    assert "refused" not in fits.stderr
    refused = run(cgroup(256 * MIB), tmp_path, program, PLIMSOLL, "run", "--budget", "192M", "--",
                  budget="100%")
    assert refused.returncode == 1
    assert "Unable to allocate 185. MiB for an array" in refused.stderr
    assert "asked for 185.0 MiB" in refused.stderr


def test_without_a_disk_it_is_refused_with_both_reasons(cgroup, tmp_path):
    done = run(cgroup(256 * MIB), tmp_path, """
        import resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        array = ramp()
        try:
            tf.constant(array, dtype=tf.float32)
        except tf.errors.ResourceExhaustedError as error:
            print(error)
        del array
        assert tf.constant([1.0]).numpy() == 1
        """)
    assert done.returncode == 0, done.stderr
    assert "no room for 92.5 MiB" in done.stdout
    assert "it cannot be spilled, because" in done.stdout


def test_what_a_generator_gives_waits_for_memory_instead(cgroup, tmp_path):
    """A pass bounds what runs ahead in bytes of memory: its elements are refused as before."""
    done = run(cgroup(256 * MIB), tmp_path, """
        def give():
            yield ramp()
        made = tf.data.Dataset.from_generator(give, tf.float64)
        try:
            next(iter(made))
        except tf.errors.ResourceExhaustedError as error:
            print(error)
        """)
    assert done.returncode == 0, done.stderr
    assert "no room for 185.0 MiB" in done.stdout


def test_a_product_of_800_mb_with_itself_in_1_gib(cgroup, tmp_path):
    done = run(cgroup(1024 * MIB), tmp_path, """
        SIDE = 10_000
        x = tf.constant(np.random.default_rng(5).random((SIDE, SIDE)), dtype=tf.float32)
        with tf.compat.v1.Session() as session:
            found = session.run(tf.matmul(x, x, transpose_b=True))
        first = np.random.default_rng(5).random((2, SIDE)).astype(np.float32).astype(np.float64)
        assert np.allclose(found[:2, :2], first @ first.T, rtol=1e-4)
        assert np.array_equal(found[:50, 9000:], found[9000:, :50].T)
        """, budget="768M")
    assert done.returncode == 0, done.stderr
