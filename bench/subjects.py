# SPDX-License-Identifier: Apache-2.0
"""What is measured: the workloads, and the contenders each is run under."""

import dataclasses
import os
import shutil

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = "/usr/bin/python3"  # Debian's: the one that has Debian's NumPy and torch
TCMALLOC = "/usr/lib/x86_64-linux-gnu/libtcmalloc.so.4"

# The same for every contender. benchmarks.head.md tells why.
ENVIRONMENT = {
    "GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=33554432:glibc.malloc.trim_threshold=67108864",
    "GOMP_SPINCOUNT": "0",
    "OMP_NUM_THREADS": "2",
    "OPENBLAS_NUM_THREADS": "2",
    "OPENBLAS_THREAD_TIMEOUT": "4",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
}

# Under callgrind, which runs one thread at a time, a second one of a thread pool only adds waiting.
CALLGRIND_ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@dataclasses.dataclass(frozen=True)
class Workload:
    name: str
    title: str
    program: tuple  # argv; the scale is appended
    callgrind_scale: float  # of the full work: callgrind takes 50 times the time; 0: not counted
    target_instructions: float
    target_cpu: float


def workloads(build_dir):
    def python(script):
        return (PYTHON, os.path.join(HERE, script))

    return [
        Workload("malloc", "malloc/free loop, 16-512 B, two threads",
                 (os.path.join(build_dir, "malloc_loop"),), 0.05, 1.12, 1.15),
        Workload("objects", "CPython objects", python("objects.py"), 0.1, 1.01, 1.03),
        Workload("arrays", "NumPy arrays, 10 KB to 8 MB", python("arrays.py"), 0.1, 1.005, 1.01),
        Workload("train", "torch training loop", python("train.py"), 0.05, 1.005, 1.01),
        Workload("stdlib", "CPython's own tests", python("stdlib.py"), 0.3, 1.01, 1.03),
        Workload("frames", "pandas group-by, merge, pivot", python("frames.py"), 0.1, 1.01, 1.03),
        # Its work is done by four processes: callgrind would count the one that waits for them.
        Workload("loader", "torch DataLoader, four workers", python("loader.py"), 0, 1.01, 1.03),
    ]


@dataclasses.dataclass(frozen=True)
class Contender:
    name: str
    prefix: tuple = ()  # argv put before the workload's
    environment: tuple = ()  # pairs, added to ENVIRONMENT
    needs: str = ""  # a program or file; without it the contender is left out
    # Part of the full work, by workload. Peers are slow, so they do less, and are compared with a
    # plain run that does as little.
    scales: tuple = ()

    def scale(self, workload):
        return dict(self.scales).get(workload.name, 1.0)

    def available(self):
        return not self.needs or os.path.exists(self.needs) or bool(shutil.which(self.needs))


PLAIN = Contender("plain")

# Run like any other: its distance from 1 is what the machine's noise alone does to a ratio.
PLAIN_AGAIN = Contender("plain again")


GUARDED = "plimsoll run"


def guarded(plimsoll):
    return Contender(GUARDED, (plimsoll, "run", "--quiet", "--"), needs=plimsoll)


def limited():
    """A limit that nothing here reaches: what is measured is having one."""
    return Contender("RLIMIT_DATA", ("prlimit", f"--data={8 << 30}"), needs="prlimit")


def peers(scratch_dir):
    def scratch(name):
        return os.path.join(scratch_dir, name)

    return [
        Contender("heaptrack", ("heaptrack", "-o", scratch("heaptrack.%p")), needs="heaptrack",
                  scales=(("malloc", 0.2),)),
        Contender("tcmalloc heap profiler",
                  environment=(("LD_PRELOAD", TCMALLOC), ("HEAPPROFILE", scratch("tcmalloc"))),
                  needs=TCMALLOC, scales=(("malloc", 0.02),)),
        Contender("massif",
                  ("valgrind", "--quiet", "--tool=massif",
                   "--massif-out-file=" + scratch("massif.%p")),
                  needs="valgrind",
                  scales=(("malloc", 0.1), ("objects", 0.5), ("arrays", 0.25), ("train", 0.5))),
    ]
