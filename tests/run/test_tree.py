# SPDX-License-Identifier: Apache-2.0
"""One line for a whole tree of processes."""
import os

import pytest

from conftest import MIB, PROGRAMS, PYTHON

# N children that each want 200 MiB at the same moment, and hold it until all have answered.
CONTEND = """
import multiprocessing as mp, os, signal, sys
import numpy as np
import ledger

def child(answers, release):
    try:
        held = np.ones(200 << 20, dtype=np.uint8)
        answers.put("got")
    except MemoryError:
        answers.put("refused")
    release.wait()

if __name__ == "__main__":
    context = mp.get_context(sys.argv[1])
    answers, release = context.Queue(), context.Event()
    start = ledger.charged_bytes()
    children = [context.Process(target=child, args=(answers, release)) for _ in range(4)]
    for process in children:
        process.start()
    said = sorted(answers.get() for _ in children)
    print(said.count("got"), said.count("refused"))
    if sys.argv[2] == "exit":
        release.set()
    else:
        for process in children:
            os.kill(process.pid, signal.SIGKILL)
    for process in children:
        process.join()
    # They are dead and waited for: their bytes are ours at once.
    mine = np.ones(300 << 20, dtype=np.uint8)
    print("parent", mine.nbytes >> 20)
"""


@pytest.mark.parametrize("end", ["exit", "kill"])
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_children_share_one_line_and_give_it_back(session, method, end):
    result = session.run(*session.script(CONTEND), method, end, budget="600M")
    assert result.rc == 0
    lines = result.stdout.splitlines()
    # 600 MiB hold two of them, beside five interpreters with NumPy.
    assert lines == ["2 2", "parent 300"]
    assert result.verdict == "finished-after-refusals"
    assert result.report["memory"]["peak_charged_bytes"] <= 600 * MIB


def test_pages_shared_by_fork_are_counted_once(run):
    result = run(budget="500M", script="""
        import os, time
        import numpy as np
        import ledger
        a = np.ones(300 << 20, dtype=np.uint8)
        children = []
        ready = os.pipe()
        for _ in range(4):
            pid = os.fork()
            if pid == 0:
                total = int(a[::4096].sum())
                os.write(ready[1], b"x" if total == a.size // 4096 else b"?")
                time.sleep(0.5)   # long enough for the watcher to count us all
                mine = np.ones(10 << 20, dtype=np.uint8)
                os._exit(0)
            children.append(pid)
        assert b"".join(os.read(ready[0], 1) for _ in children) == b"xxxx"
        assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 4
        print("fine")
        """)
    assert result.rc == 0 and result.stdout == "fine\n"
    assert result.verdict == "finished"
    assert result.report["memory"]["peak_charged_bytes"] < 500 * MIB


def test_pages_copied_after_a_fork_are_counted(run):
    """A child that writes to all it inherited needs as much again, and asks nobody: it is stopped,
    or gets an exception in its Python code. Its parent goes on."""
    result = run(budget="500M", options=["--reserve", "40M"], script="""
        import os, time
        import numpy as np
        a = np.ones(300 << 20, dtype=np.uint8)
        pid = os.fork()
        if pid == 0:
            for i in range(300):
                a[i << 20:(i + 1) << 20] += 1
                time.sleep(0.01)
            time.sleep(60)   # until it is stopped
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), int(a[-1]))
        """)
    assert result.rc == 0
    if result.stdout == "-9 1\n":
        assert result.report["stopped"][0]["bytes"] > 0
    else:
        assert result.stdout == "1 1\n" and "MemoryError" in result.stderr


def test_an_executed_program_shares_the_line(run):
    result = run(budget="500M", script="""
        import subprocess, sys
        import numpy as np
        ask = [sys.executable, "-c", "import numpy as np; np.ones(350 << 20, dtype=np.uint8)"]
        a = np.ones(250 << 20, dtype=np.uint8)
        print(subprocess.run(ask, stderr=subprocess.DEVNULL).returncode)
        del a
        print(subprocess.run(ask).returncode)
        """)
    assert result.rc == 0 and result.stdout == "1\n0\n"


def test_exec_gives_back_what_the_old_image_held(run):
    result = run(budget="500M", script="""
        import os, sys
        import numpy as np
        a = np.ones(300 << 20, dtype=np.uint8)
        os.execv(sys.executable, [sys.executable, "-c",
            "import numpy as np; print(np.ones(300 << 20, dtype=np.uint8).nbytes >> 20)"])
        """)
    assert result.rc == 0 and result.stdout == "300\n"
    assert result.verdict == "finished"


@pytest.mark.parametrize("how, n", [("living", 1100), ("orphaned", 1500), ("short", 1500)])
def test_the_line_holds_however_many_processes_there_are(run, program, how, n):
    """Beside more than a thousand others, or after them when nobody has reclaimed what they left."""
    result = run(program("crowd"), how, n, 512, budget="128M")
    assert result.stdout == "refused\n"
    assert result.rc == (-9 if how == "orphaned" else 0)


@pytest.mark.parametrize("cause, why, n", [
    ("descriptors", "no free file descriptor", 1), ("chroot", "no /proc (chroot)", 2),
    ("namespace", "another pid namespace", 2), ("slots", "too many processes", 2)])
def test_a_child_that_cannot_join_lives_on_without_the_guard(run, cause, why, n):
    """Although its parent had passed the line. Its own child is another; what only lacked
    descriptors joins later."""
    if cause in ("chroot", "namespace") and os.geteuid() != 0:
        pytest.skip(f"{cause} needs root")
    result = run(PYTHON, PROGRAMS / "outsider.py", cause, budget="64M", options=["--reserve", "64M"])
    assert result.rc == 0 and result.stdout == "0\n"
    assert result.report["outside"] == [{"why": why, "n": n}]
    assert any("without the guard" in line and why in line for line in result.report["evidence"])


def test_a_child_without_our_environment_is_still_counted(run):
    """The guard is not in it; the watcher sees it."""
    result = run(budget="300M", options=["--reserve", "40M"], script="""
        import subprocess, sys
        grow = ("import time\\nkept = []\\nfor _ in range(600):\\n"
                "    kept.append(b'x' * (1 << 20)); time.sleep(0.005)")
        print(subprocess.run([sys.executable, "-c", grow], env={}).returncode)
        """)
    assert result.rc == 0 and result.stdout == "-9\n"
    assert result.report["stopped"]


def test_the_newcomer_is_stopped_and_not_its_parent(run, program):
    """A notebook kernel outlives its worker, also when it holds more."""
    grow = program("grow", static=True)
    result = run(grow, budget="400M", options=["--reserve", "40M"], script="""
        import subprocess, sys
        import numpy as np
        a = np.ones(250 << 20, dtype=np.uint8)
        done = subprocess.run([sys.argv[1], "600", "3000"])
        print(done.returncode, int(a[-1]))
        """)
    assert result.rc == 0 and result.stdout == "-9 1\n"
    assert [p["name"] for p in result.report["stopped"]] == ["grow_static"]
    assert "grow_static" in result.stderr


LOADER = """
import sys
import torch
from torch.utils.data import DataLoader, Dataset

class Items(Dataset):
    def __len__(self):
        return 16
    def __getitem__(self, i):
        return torch.full((int(sys.argv[1]) << 18,), float(i))   # MiB of float32

def main():
    total = 0.0
    try:
        for batch in DataLoader(Items(), batch_size=2, num_workers=2):
            total += float(batch[:, 0].sum())
        print("sum", total)
    except (RuntimeError, MemoryError) as error:
        print("caught", error)
    print("went on", torch.ones(1 << 20).sum().item())

if __name__ == "__main__":  # from 3.14 on workers are not forked, but import this
    main()
"""


def test_data_loader_workers_work_below_the_line(session):
    result = session.run(*session.script(LOADER), 4, budget="2G")
    assert result.rc == 0 and result.stdout.startswith("sum 120.0\n")
    assert result.verdict == "finished"


def test_a_data_loader_worker_over_the_line_is_an_exception_in_the_loop(session):
    result = session.run(*session.script(LOADER), 3000, budget="2G")
    assert result.rc == 0
    assert "caught" in result.stdout and "DataLoader worker" in result.stdout
    assert "went on 1048576.0" in result.stdout
    assert result.verdict == "finished-after-refusals"


def test_a_tree_grows_and_shrinks_without_a_trace(run):
    """200 children that each hold 20 MiB and die in all the ways there are."""
    result = run(budget="300M", script="""
        import os, signal
        import numpy as np
        import ledger
        start = ledger.charged_bytes()
        for i in range(200):
            pid = os.fork()
            if pid == 0:
                held = np.ones(20 << 20, dtype=np.uint8)
                if i % 3 == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                if i % 3 == 1:
                    os.abort()
                os._exit(0)
            os.waitpid(pid, 0)
        print(ledger.settle_below(start + (20 << 20)) < start + (20 << 20))
        """)
    assert result.rc == 0 and result.stdout == "True\n"
    # Who reaps its own children alone knows how they ended; the aborts left a record of their own.
    assert result.report["crash"]["signal"] == "SIGABRT"
