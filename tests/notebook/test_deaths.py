# SPDX-License-Identifier: Apache-2.0
"""The deaths of a kernel, and what its user reads in the first cell of the next one, word by word.

Each happens in a real kernel in a memory cgroup, under the restarter of a notebook server. The
native code that dies is that of tests/programs, as a library. In what is expected, <size>, <pid>
and the like stand for what differs from one run to the next; all else is literal.
"""
import ctypes
import os
import re
import signal
import subprocess
import sys
import textwrap

import pytest

from support import MIB, ROOT, alive, wait_until

LIMIT_BYTES = 600 * MIB
PATTERNS = {
    "moment": r"(?:at the peak: )?",  # unless the record still has what was held at the end
    "size": r"\d+(\.\d)? (B|KiB|MiB|GiB)",
    "pid": r"\d+",
    "address": r"0x[0-9a-f]+",
    "run": r"\d{8}-\d{6}-\d+(-\d+)?",
    "seconds": r"\d+ s",
    "running": r"(, running for \d+ s)?",  # on a machine that has much else to do
    "path": r"/[^ ']+",
    "hex": r"[0-9a-f]+",
    "abi": r"[\w-]+",
    "limit": r"cgroup v[12] \S+",
    # Since Python 3.12 a comprehension is no function of its own.
    "listcomp": " in <listcomp>" if sys.version_info < (3, 12) else "",
    "strlen": r"(__)?strlen\w*( \(\S+\))?",
    "memcpy": r"(__)?mem\w+( \(\S+\))?",
    # What the imports hold is near the share below which a holder is not worth its words.
    "others": r"(, imported modules \d+(\.\d)? MiB)?",
}
# Every death is that of the third cell, so that no number is right by accident.
BEFORE = ["import ctypes, mmap, os, threading, time", "rows = list(range(1000))"]


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """Compiles tests/programs/NAME.c or .cc as a library on demand: its functions, but no main."""
    folder = tmp_path_factory.mktemp("libraries")

    def compile(name):
        source, = (ROOT / "tests" / "programs").glob(f"{name}.c*")
        target = folder / f"lib{name}.so"
        compiler = "g++" if source.suffix == ".cc" else "gcc"
        flags = ["-g", "-O1", "-D_GNU_SOURCE", "-fno-builtin", "-fPIC", "-shared", "-pthread"]
        subprocess.run([compiler, *flags, str(source), "-o", str(target)], check=True)
        return target

    return compile


@pytest.fixture
def kernel(guarded, cgroup):
    """A guarded kernel in a memory cgroup, with two cells behind it."""
    group = cgroup(LIMIT_BYTES)
    kernel = guarded(cgroup=group)
    kernel.group = group
    for code in BEFORE:
        assert kernel.run(code).status == "ok"
    return kernel


def pid_of(kernel):
    """Of the kernel itself: Jupyter has launched its supervisor."""
    return int(kernel.run("os.getpid()", store_history=False).text)


def die(kernel, code):
    """Runs the cell that dies, and waits for the kernel that comes after."""
    outcome = kernel.run(textwrap.dedent(code).strip())
    assert outcome.status == "died", outcome
    kernel.wait_for_restart()


def first_words(kernel):
    """What stands before the output of the next kernel's first cell, as plain text, and as HTML."""
    outcome = kernel.run("'a result of my own'")
    assert outcome.text == "'a result of my own'" and outcome.number == 1
    assert outcome.order == ["display_data", "execute_result"], outcome
    [shown] = outcome.displays
    assert kernel.run("2").order == ["execute_result"], "it is told once"
    return shown["text/plain"], shown["text/html"]


def pattern_of(line):
    """A line with <size> and the like in it, as a regular expression."""
    parts = re.split(f"<({'|'.join(PATTERNS)})>", line)
    return "".join(PATTERNS[part] if i % 2 else re.escape(part) for i, part in enumerate(parts))


def reads(text, expected):
    """Does `text` read as expected? Lines that do are shown as expected, so the others stand out.
    What is indented by four blanks or more goes on from the line before."""
    lines = re.sub(r"\n {4,}", " ", textwrap.dedent(expected).strip()).splitlines()
    seen = [want if re.fullmatch(pattern_of(want), line) else line
            for line, want in zip(text.splitlines(), lines)]
    assert seen + text.splitlines()[len(seen):] == lines
    return True


def is_told(kernel, expected):
    """Asserts what the first cell shows; its HTML has the same words."""
    text, html = first_words(kernel)
    print(text)
    assert reads(text, expected)
    assert not re.search(r"ipykernel_\d", text + html), "a file that the user has never seen"
    for word in re.findall(r"In \[\d+\] line \d+|SIG[A-Z]+", text):
        assert word in html, html


# ---- crashes ----


def test_a_segmentation_fault_in_native_code(kernel):
    die(kernel, """
        def read_header():
            return ctypes.string_at(0)
        def load(n):
            return [read_header() for _ in range(n)]
        load(3)
        """)
    is_told(kernel, """
        The kernel before this one died
        crashed: segmentation fault in the kernel (pid <pid>) at In [3] line 2 in read_header():
            access to address 0x0, where nothing is mapped
          cell  In [3] line 2: return ctypes.string_at(0)<running>
          peak  <size> claimed of <size>, <size> resident of <size> (<limit>)
          in    libc.so.6 <strlen>
          next  begin at In [3] line 2 in read_header()
          more  %plimsoll explain <run>
        """)


def test_a_heap_that_was_corrupted(kernel, library):
    """1000 bytes: glibc keeps seven freed blocks of a size in its tcache, where it finds a block that is
    freed twice. Of small sizes there may be seven already, and then it has another sentence."""
    die(kernel, f"""
        native = ctypes.CDLL({str(library("heap_corruption"))!r})
        native.malloc.restype = ctypes.c_void_p
        block = ctypes.c_void_p(native.malloc(1000))
        native.free_twice(block)
        """)
    is_told(kernel, """
        The kernel before this one died
        crashed: abort in the kernel (pid <pid>) at In [3] line 4: free(): double free detected in
            tcache 2
          cell  In [3] line 4: native.free_twice(block)<running>
          peak  <size> claimed of <size>, <size> resident of <size> (<limit>)
          in    libheap_corruption.so free_twice (<path>)
          next  a block was freed twice: run it under 'valgrind' or with
                -fsanitize=address to find where; it happened in libheap_corruption.so: try another
                version of it, or report the native stack to its authors
          more  %plimsoll explain <run>
        """)


def test_a_c_plus_plus_exception_that_nobody_catches(kernel, library):
    die(kernel, f"""
        native = ctypes.CDLL({str(library("uncaught_exception"))!r})
        native._Z10load_shapev()
        """)
    is_told(kernel, """
        The kernel before this one died
        crashed: abort in the kernel (pid <pid>) at In [3] line 2: uncaught C++ exception
            std::runtime_error
          cell  In [3] line 2: native._Z10load_shapev()<running>
          peak  <size> claimed of <size>, <size> resident of <size> (<limit>)
          in    libuncaught_exception.so load_shape (<path>)
          next  it happened in libuncaught_exception.so: try another version of it, or report the
                native stack to its authors
          more  %plimsoll explain <run>
        """)


def missing_set():
    """(flag, name) of an instruction set that this machine has not."""
    with open("/proc/cpuinfo") as info:
        flags = next(line for line in info if line.startswith("flags")).split()
    for flag, name in (("avx512f", "AVX-512F"), ("fma4", "FMA4")):
        if flag not in flags:
            return flag, name
    pytest.fail("a CPU with both AVX-512 and FMA4: teach the program another set")


def test_an_instruction_that_the_machine_lacks(kernel, library):
    flag, name = missing_set()
    die(kernel, f"""
        native = ctypes.CDLL({str(library("illegal_instruction"))!r})
        native.add_vectors(b"{flag}")
        """)
    is_told(kernel, f"""
        The kernel before this one died
        illegal instruction: the kernel (pid <pid>) at In [3] line 2: libillegal_instruction.so
            needs {name}, which this CPU lacks
          cell  In [3] line 2: native.add_vectors(b"{flag}")<running>
          peak  <size> claimed of <size>, <size> resident of <size> (<limit>)
          in    libillegal_instruction.so add_vectors (<path>)
          next  install a build of libillegal_instruction.so for this CPU, without {name}; or run
                it on a machine that has {name}
          more  %plimsoll explain <run>
        """)


def test_a_stack_overflow_in_native_code(kernel, library):
    die(kernel, f"""
        native = ctypes.CDLL({str(library("stack_overflow"))!r})
        print(native.descend(1))
        """)
    is_told(kernel, """
        The kernel before this one died
        crashed: segmentation fault in the kernel (pid <pid>) at In [3] line 2: stack overflow: all
            <size> are used, most likely by endless recursion
          cell  In [3] line 2: print(native.descend(1))<running>
          peak  <size> claimed of <size>, <size> resident of <size> (<limit>)
          in    libstack_overflow.so descend (<path>)
          next  end the recursion, or allow more stack with 'ulimit -s' or threading.stack_size();
                it happened in libstack_overflow.so: try another version of it, or report the
                native stack to its authors
          more  %plimsoll explain <run>
        """)


def test_a_mapped_file_that_was_cut_short(kernel):
    die(kernel, """
        with open("weights.bin", "wb+") as file:
            file.truncate(4 * 4096)
            weights = mmap.mmap(file.fileno(), 0)
            file.truncate(4096)
        weights[3 * 4096]
        """)
    is_told(kernel, """
        The kernel before this one died
        crashed: bus error in the kernel (pid <pid>) at In [3] line 5: the mapped file
            '<path>/weights.bin' is shorter than its mapping, or its disk failed
          cell  In [3] line 5: weights[3 * 4096]<running>
          peak  <size> claimed of <size>, <size> resident of <size> (<limit>)
          in    mmap.cpython-<abi>.so+<address>
          next  do not truncate '<path>/weights.bin' while a program has it mapped; check that it
                is complete
          more  %plimsoll explain <run>
        """)


class SmallShm:
    """A cgroup, and in it a /dev/shm of one mebibyte, as Docker gives one of 64."""

    def __init__(self, group):
        self.group, self.libc = group, ctypes.CDLL(None, use_errno=True)

    def enter(self):
        self.group.enter()
        CLONE_NEWNS, MS_PRIVATE = 0x20000, 1 << 18
        assert self.libc.unshare(CLONE_NEWNS) == 0
        for line in open("/proc/self/mountinfo", "rb"):  # in a chroot, "/" is no mount of its own
            self.libc.mount(b"none", line.split()[4], None, MS_PRIVATE, None)
        assert self.libc.mount(b"tmpfs", b"/dev/shm", b"tmpfs", 0, b"size=1m") == 0


def test_a_shared_memory_that_is_full(guarded, cgroup):
    kernel = guarded(cgroup=SmallShm(cgroup(LIMIT_BYTES)))
    for code in (BEFORE[0], "from multiprocessing import shared_memory"):
        assert kernel.run(code).status == "ok"
    die(kernel, """
        block = shared_memory.SharedMemory(create=True, size=8 << 20)
        block.buf[:] = bytes(8 << 20)
        """)
    is_told(kernel, """
        The kernel before this one died
        crashed: bus error in the kernel (pid <pid>) at In [3] line 2: /dev/shm is full, or
            '/dev/shm/psm_<hex>' was truncated
          cell  In [3] line 2: block.buf[:] = bytes(8 << 20)<running>
          peak  <size> claimed of <size>, <size> resident of <size> (<limit>)
          in    libc.so.6 <memcpy>
          next  'df -h /dev/shm' shows whether it is full: run the container with a larger
                --shm-size (Docker gives 64 MiB), or use DataLoader(num_workers=0); or remove what
                dead programs left there
          more  %plimsoll explain <run>
        """)


# ---- whose cell it was ----


def test_a_function_of_an_earlier_cell(kernel):
    """The cell that ran and the cell where it happened are both named."""
    assert kernel.run("def read_header():\n    return ctypes.string_at(0)").number == 3
    die(kernel, "\nheaders = [read_header() for row in rows]")
    is_told(kernel, """
        The kernel before this one died
        crashed: segmentation fault in the kernel (pid <pid>) at In [3] line 2 in read_header():
            access to address 0x0, where nothing is mapped
          cell  In [4] line 1: headers = [read_header() for row in rows]<running>
          peak  <size> claimed of <size>, <size> resident of <size> (<limit>)
          in    libc.so.6 <strlen>
          next  begin at In [3] line 2 in read_header()
          more  %plimsoll explain <run>
        """)


def test_a_thread_that_outlives_its_cell(kernel):
    """The cell that ran when it happened had no part in it."""
    assert kernel.run("""
def work():
    go.wait()
    ctypes.string_at(0)
go = threading.Event()
thread = threading.Thread(target=work)
thread.start()
""").number == 3
    die(kernel, "go.set()\ntime.sleep(600)")
    is_told(kernel, """
        The kernel before this one died
        crashed: segmentation fault in the kernel (pid <pid>) at In [3] line 3 in work(): access to
            address 0x0, where nothing is mapped
          cell  In [4], which begins: go.set()<running>
          peak  <size> claimed of <size>, <size> resident of <size> (<limit>)
          in    libc.so.6 <strlen>
          next  begin at In [3] line 3 in work()
          more  %plimsoll explain <run>
        """)


def test_a_thread_that_dies_while_no_cell_runs(kernel):
    assert kernel.run("""
def work():
    time.sleep(0.5)
    ctypes.string_at(0)
thread = threading.Thread(target=work)
thread.start()
""").number == 3
    wait_until(lambda: kernel.n_deaths > 0, "the kernel to die")
    kernel.wait_for_restart()
    is_told(kernel, """
        The kernel before this one died
        crashed: segmentation fault in the kernel (pid <pid>) at In [3] line 3 in work(): access to
            address 0x0, where nothing is mapped
          peak  <size> claimed of <size>, <size> resident of <size> (<limit>)
          in    libc.so.6 <strlen>
          next  begin at In [3] line 3 in work()
          more  %plimsoll explain <run>
        """)


# ---- memory ----

GROWS = """
    print("ready")
    while not os.path.exists("go"):
        time.sleep(0.01)
    kept = [bytes(4000) for _ in range(250_000)]
    """


def wait_for_ready(kernel, code):
    cell = kernel.start(textwrap.dedent(code).strip())
    kernel.wait_for_output(cell, "ready")
    return cell


def test_killed_by_the_system_for_memory(kernel):
    """Nothing that asks can come so far: the limit is lowered under the kernel."""
    cell = wait_for_ready(kernel, GROWS)
    kernel.group.overtake(kernel.folder / "go")
    assert kernel.finish(cell).status == "died"
    kernel.wait_for_restart()
    is_told(kernel, """
        The kernel before this one died
        killed for memory: the system's OOM killer ended the kernel (pid <pid>)
          cell  In [3] line 4, which took most of it: kept = [bytes(4000) for _ in range(250_000)]
          peak  <size> claimed of <size>, <size> resident of <size> (<limit>)
          held  <moment>In [3] line 4<listcomp> <size><others>
          next  draw the line with %plimsoll budget SIZE below <size>, so that requests are refused
                before the system kills; free or batch what In [3] line 4<listcomp> keeps
          more  %plimsoll explain <run>
        """)


def test_stopped_for_memory_that_nobody_asked_for(kernel, library):
    """The memory is taken by system calls of native code."""
    kernel.run(f"name = {str(library('grow'))!r}", store_history=False)
    die(kernel, """
        load = ctypes.CDLL(name).main
        load(3, (ctypes.c_char_p * 4)(b"grow", b"900", b"4000"))
        """)
    assert kernel.group.n_oom_kills() == 0
    is_told(kernel, """
        The kernel before this one died
        stopped for memory: plimsoll stopped the kernel (pid <pid>), which held <size> of a line of
            <size>
          cell  In [3], which begins: load = ctypes.CDLL(name).main, running for <seconds>
          peak  <size> claimed of <size> (<size> over, within the reserve: small requests, and
                memory touched without a request, are not refused at once), <size> resident of
                <size> (<limit>)
          next  most of it was taken where the guard does not see it: look for static programs,
                native code that maps memory itself, and pages written after a fork; load less at a
                time: smaller batches, slices, narrower types
          more  %plimsoll explain <run>
        """)


# ---- from outside, and by the user's own code ----


def test_killed_by_somebody_else(kernel):
    pid = pid_of(kernel)
    cell = wait_for_ready(kernel, "print('ready')\ntime.sleep(600)")
    os.kill(pid, signal.SIGKILL)
    assert kernel.finish(cell).status == "died"
    kernel.wait_for_restart()
    is_told(kernel, """
        The kernel before this one was stopped
        killed: SIGKILL from outside ended the kernel (pid <pid>); memory had no part in it
          cell  In [3], which begins: print('ready')<running>
          peak  <size> claimed of <size>, <size> resident of <size> (<limit>)
          next  ask who sent it: a restart from the notebook, a user, a batch system's time limit,
                a container being stopped
          more  %plimsoll explain <run>
        """)


@pytest.mark.parametrize("status", [0, 3])
def test_ended_by_its_own_code(kernel, status):
    die(kernel, f"""
        def finish():
            os._exit({status})
        finish()
        """)
    is_told(kernel, f"""
        The kernel before this one died
        ended: the kernel (pid <pid>) ended with status {status} while In [3] ran; memory had no
            part in it
          cell  In [3], which begins: def finish():<running>
          peak  <size> claimed of <size>, <size> resident of <size> (<limit>)
          next  something that In [3] called ended the process: os._exit(), or exit() in native
                code
          more  %plimsoll explain <run>
        """)


# ---- with the supervisor ----


def test_killed_together_with_its_supervisor(kernel):
    """As Jupyter's forced restart does, or a container that is stopped."""
    pid = pid_of(kernel)
    cell = wait_for_ready(kernel, "print('ready')\ntime.sleep(600)")
    supervisor = kernel.launched_pid
    for victim in (supervisor, pid):
        os.kill(victim, signal.SIGKILL)
    assert kernel.finish(cell).status == "died"
    kernel.wait_for_restart()
    is_told(kernel, """
        The kernel before this one died
        lost: the supervisor of the kernel (pid <pid>) was killed too, and the record does not say
            how it ended
          cell  In [3], which begins: print('ready')<running>
          peak  <size> claimed of <size>, <size> resident of <size> (<limit>)
          next  if nobody restarted the kernel, look at the system's log (journalctl -k, kubectl
                describe pod) for that time
          more  %plimsoll explain <run>
        """)


def test_killed_for_memory_together_with_its_supervisor(kernel):
    """As a container whose processes are killed as one (memory.oom.group): nobody saw the end, but
    the cgroup has counted it."""
    pid = pid_of(kernel)
    cell = wait_for_ready(kernel, GROWS)
    os.kill(kernel.launched_pid, signal.SIGSTOP)
    kernel.group.limit(200 * MIB)
    (kernel.folder / "go").touch()
    wait_until(lambda: not alive(pid), "the system to kill the kernel")
    assert kernel.group.n_oom_kills() >= 1
    os.kill(kernel.launched_pid, signal.SIGKILL)
    assert kernel.finish(cell).status == "died"
    kernel.wait_for_restart()
    is_told(kernel, """
        The kernel before this one died
        killed for memory: the system's OOM killer ended the kernel (pid <pid>)
          cell  In [3] line 4, which took most of it: kept = [bytes(4000) for _ in range(250_000)]
          peak  <size> claimed of <size>, <size> resident of <size> (<limit>)
          held  <moment>In [3] line 4<listcomp> <size><others>
          next  draw the line with %plimsoll budget SIZE below <size>, so that requests are refused
                before the system kills; free or batch what In [3] line 4<listcomp> keeps
          more  %plimsoll explain <run>
        """)


# ---- no deaths ----


@pytest.mark.parametrize("now", [False, True], ids=["asked", "killed"])
def test_a_restart_by_the_user_is_not_told(kernel, now):
    kernel.restart(now=now)
    assert kernel.run("1").order == ["execute_result"]


def test_the_first_kernel_has_nothing_to_tell(kernel):
    outcome = kernel.run("1")
    assert outcome.number == 3 and outcome.order == ["execute_result"]
