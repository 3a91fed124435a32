# SPDX-License-Identifier: Apache-2.0
"""Idle tensors go to disk before anybody is refused: for our runtime, for NumPy, torch and Python's
own objects, in the same process and in others of the tree."""
import subprocess

import pytest

from conftest import BUILD, HANG_S, PYTHON

HEAD = """
import os, random, signal, subprocess, sys, threading, time
sys.path.insert(0, %r)
import numpy as np
import plimsoll.tf as tf

MIB = 1 << 20

def idle_tensors(n, rows=100):
    return [tf.constant(np.full((rows, 100), float(i))) for i in range(n)]

def check(tensors):
    for i in range(0, len(tensors), 97):
        value = tensors[i].numpy()
        assert value[0, 0] == i and value[-1, -1] == i, (i, value)
""" % str(BUILD / "python")

# Each takes 200 MiB or more, which the line has only if idle tensors leave.
WANTS = {
    "numpy": "wanted = np.ones(200 * MIB // 8)",
    "many small arrays": "wanted = [np.ones(8 * 1024) for _ in range(3200)]",
    "objects": "wanted = [float(i) for i in range(6_500_000)]",
    "strings": "wanted = [str(i) * 20 for i in range(1_000_000)]",
    "torch": "import torch; wanted = torch.ones(200 * MIB // 4)",
}


def finished_unrefused(result):
    memory = result.report["memory"]
    assert result.rc == 0 and "all is right" in result.stdout, result.text()
    assert memory["n_refusals"] == 0 and result.verdict == "finished", result.text()


@pytest.mark.parametrize("budget", ["768M", "256M"])
def test_constants_that_are_kept_and_run_one_by_one_need_no_more_than_the_line(run, budget):
    script = HEAD + """
kept, session = [], tf.compat.v1.Session()
for i in range(10_000):
    kept.append(tf.constant(np.full((100, 100), float(i))))
    assert session.run(kept[-1])[0, 0] == i
check(kept)
print("all is right")
"""
    finished_unrefused(run(script=script, budget=budget))


@pytest.mark.parametrize("wants", WANTS)
def test_idle_tensors_leave_for_what_the_same_process_asks_for(run, wants):
    script = HEAD + f"""
kept = idle_tensors(4000)
{WANTS[wants]}
check(kept)
print("all is right")
"""
    finished_unrefused(run(script=script, budget="600M" if wants == "torch" else "400M"))


@pytest.mark.parametrize("wants", ["numpy", "objects"])
def test_idle_tensors_leave_for_another_process_of_the_tree(run, wants):
    child = "import numpy as np; MIB = 1 << 20; " + WANTS[wants]
    script = HEAD + f"""
kept = idle_tensors(4000)
subprocess.run([{PYTHON!r}, "-c", {child!r}], check=True)
check(kept)
print("all is right")
"""
    finished_unrefused(run(script=script, budget="400M"))


def test_idle_tensors_leave_for_the_tensors_of_another_process(run):
    script = HEAD + """
kept = idle_tensors(4000)
if len(sys.argv) == 1:
    subprocess.run([sys.executable, __file__, "child"], check=True)
    check(kept)
    print("all is right")
else:
    with tf.Graph().as_default() as graph, tf.compat.v1.Session() as session:
        a = tf.fill([5000, 1000], 2.0)
        assert session.run(tf.reduce_sum(tf.sort(a + a))) == 2e7
    check(kept)
"""
    finished_unrefused(run(script=script, budget="350M"))


def test_a_plan_counts_on_what_is_idle_in_another_process(run):
    script = HEAD + """
if len(sys.argv) == 1:
    kept = idle_tensors(4000)
    subprocess.run([sys.executable, __file__, "child"], check=True)
    check(kept)
    print("all is right")
else:  # 61 MiB at least, and nothing of its own to move out
    assert tf.sort(tf.fill([8000, 1000], 1.0), axis=0).numpy().sum() == 8e6
"""
    finished_unrefused(run(script=script, budget="300M"))


def test_idle_tensors_leave_for_a_program_that_cannot_be_refused(run, program):
    script = HEAD + f"""
kept = idle_tensors(4000)
subprocess.run([{str(program("grow", static=True))!r}, "200", "2000"], check=True)
check(kept)
print("all is right")
"""
    result = run(script=script, budget="400M")
    assert result.rc == 0 and "all is right" in result.stdout, result.text()


def test_nobody_waits_for_a_process_that_is_stopped(run):
    script = HEAD + """
if len(sys.argv) == 1:
    child = subprocess.Popen([sys.executable, __file__, "child"], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\\n"
    os.kill(child.pid, signal.SIGSTOP)
    os.waitpid(child.pid, os.WUNTRACED)
    for i in range(3):
        try:
            np.ones(250 * MIB // 8)
        except MemoryError as error:
            print("refused", error)
    os.kill(child.pid, signal.SIGCONT)
    while True:  # as soon as it goes on, it makes up for what it missed
        try:
            wanted = np.ones(250 * MIB // 8)
            break
        except MemoryError:
            time.sleep(0.05)
    child.kill()
    print("all is right")
else:
    kept = idle_tensors(4000)
    print("ready", flush=True)
    signal.pause()
"""
    result = run(script=script, budget="450M")
    assert result.rc == 0 and "all is right" in result.stdout, result.text()
    assert result.stdout.count("refused") >= 3, result.text()


def test_a_spill_file_that_cannot_be_written_is_a_refusal_and_not_a_wait(run):
    script = HEAD + """
kept = idle_tensors(2000)
for i in range(3):
    try:
        np.ones(250 * MIB // 8)
        print("had it")
    except MemoryError as error:
        print("refused", error)
check(kept)
print("all is right")
"""
    result = run(script=script, budget="350M", env={"PLIMSOLL_SPILL": "/nowhere"})
    assert result.rc == 0 and "all is right" in result.stdout, result.text()
    assert result.stdout.count("refused") == 3, result.text()


# What is not idle never takes more than the line less what Python and its threads need: whatever is
# refused is refused beside idle tensors.
STORM = HEAD + """
chance = random.Random(int(sys.argv[1]))
line, n_threads = int(sys.argv[2]) * MIB, chance.randint(1, 4)
share = (line - 130 * MIB) // n_threads

def live(seed):
    chance, kept, arrays = random.Random(seed), [], []
    for step in range(chance.randint(40, 90)):
        kind = chance.choice(["tensors", "tensors", "tensors", "array", "objects", "read", "run", "let go"])
        if kind == "tensors":
            rows = chance.choice([1, 10, 100, 1000, 5000])
            for _ in range(chance.randint(1, min(400, 40_000 // rows))):
                kept.append((len(kept) + seed, tf.constant(np.full((rows, 100), len(kept) + seed, float))))
        elif kind == "array":
            arrays.clear()
            arrays.append(np.ones(chance.randrange(share // 2) // 8))
        elif kind == "objects":
            arrays.clear()
            arrays.append([float(i) for i in range(chance.randrange(share // 2) // 40)])
        elif kind == "read" and kept:
            i, tensor = chance.choice(kept)
            assert tensor.numpy()[-1, -1] == i
        elif kind == "run" and kept:
            i, tensor = chance.choice(kept)
            assert tf.reduce_max(tensor + 1.0).numpy() == i + 1
        elif kind == "let go":
            del kept[::chance.randint(4, 20)]

errors = []
def live_or_tell(seed):
    try:
        live(seed)
    except BaseException as error:
        errors.append(repr(error))

threads = [threading.Thread(target=live_or_tell, args=(1000 * (i + 1),)) for i in range(n_threads)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not errors, errors
print("all is right")
"""


@pytest.mark.parametrize("seed", range(6))
def test_nobody_is_refused_while_tensors_are_idle(run, seed):
    line = 280 + 60 * (seed % 3)
    finished_unrefused(run(seed, line, script=STORM, budget=f"{line}M"))


@pytest.mark.parametrize("seed", range(2))
def test_no_tensor_is_refused_while_others_are_idle_without_a_guard(session, seed):
    done = subprocess.run([*session.script(STORM), str(seed), "300"], capture_output=True, text=True,
                          env=session.environment({"PLIMSOLL_BUDGET": "300M"}), timeout=HANG_S)
    assert done.returncode == 0 and "all is right" in done.stdout, done.stderr
