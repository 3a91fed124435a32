# SPDX-License-Identifier: Apache-2.0
"""Runs workloads and measures them. Nothing here judges a figure."""

import dataclasses
import glob
import os
import re
import signal
import statistics
import subprocess
import tempfile
import time

from subjects import CALLGRIND_ENVIRONMENT, ENVIRONMENT, HERE, PLAIN, PYTHON


class RunFailed(Exception):
    """A measured program did not end with status 0, or gave another answer than the plain run."""


@dataclasses.dataclass(frozen=True)
class Ratio:
    """To the plain run of the same round: the median of the rounds and the quartiles around it."""

    median: float
    low: float
    high: float
    n_rounds: int


def ratio_of(values, plain_values):
    ratios = [value / plain for value, plain in zip(values, plain_values)]
    if len(ratios) < 2:
        return Ratio(ratios[0], ratios[0], ratios[0], len(ratios))
    low, median, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return Ratio(median, low, high, len(ratios))


@dataclasses.dataclass(frozen=True)
class Run:
    cpu_s: float
    wall_s: float
    stdout: str


def spawn(argv, environment, stdout, stderr):
    return subprocess.Popen(argv, env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
                            stdout=stdout, stderr=stderr)


def run(argv, environment):
    """Runs to the end. CPU time is the kernel's account of the process and of every descendant that
    was waited for: a supervisor or an interpreter of records beside the program is in it."""
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        begin = time.perf_counter()
        try:
            process = spawn(argv, environment, stdout, stderr)
        except OSError as error:
            raise RunFailed(f"cannot run '{argv[0]}': {error.strerror}") from error
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        for stream in (stdout, stderr):
            stream.seek(0)
        if process.returncode != 0:
            last_words = stderr.read().decode(errors="replace").strip().splitlines()[-1:]
            raise RunFailed(f"status {process.returncode}: {' '.join(last_words)}")
        return Run(usage.ru_utime + usage.ru_stime, wall_s, stdout.read().decode(errors="replace"))


def run_workload(workload, contender, scale, environment):
    argv = [*contender.prefix, *workload.program, str(scale)]
    return run(argv, {**ENVIRONMENT, **environment, **dict(contender.environment)})


def run_round(workload, contenders, scale, environment, failures):
    """One run of each contender, by name. Whoever fails, or answers otherwise than plain, goes into
    `failures` with the reason; plain itself may not fail."""
    runs = {}
    for contender in contenders:
        try:
            runs[contender.name] = run_workload(workload, contender, scale, environment)
        except RunFailed as failure:
            if contender is PLAIN:
                raise
            failures[contender.name] = str(failure)
    expected = answer_of(runs[PLAIN.name].stdout)
    for name, done in runs.items():
        if answer_of(done.stdout) != expected:
            failures[name] = f"its answer was '{answer_of(done.stdout)}', not '{expected}'"
    return runs


def cpu_rounds(workload, contenders, n_rounds, scale, environment, say):
    """CPU times of plain and every contender, by name, and why any was left out. Rounds are
    interleaved, and each starts with another one, so that none profits from its place."""
    field = [PLAIN, *contenders]
    times = {contender.name: [] for contender in field}
    failures = {}
    for i in range(n_rounds):
        first = i % len(field)
        order = [c for c in field[first:] + field[:first] if c.name not in failures]
        for name, done in run_round(workload, order, scale, environment, failures).items():
            times[name].append(done.cpu_s)
        seconds = ", ".join(f"{name} {values[-1]:.2f}" for name, values in times.items() if values)
        say(f"{workload.name}, round {i + 1} of {n_rounds}: {seconds}")
    return {name: values for name, values in times.items() if name not in failures}, failures


def answer_of(stdout):
    """The workload's line, among whatever a contender prints around it."""
    lines = [line for line in stdout.splitlines() if re.fullmatch(r"[-+.e\d ]+", line)]
    return lines[0] if lines else ""


def count_instructions(workload, contender, scale, environment, out_file):
    """Instructions that the program's measured region takes. The contender starts valgrind, not the
    other way round: its preloaded library then runs in the counted program, and the supervisor,
    whose work goes by the clock and not by the program's, outside."""
    valgrind = ["valgrind", "--quiet", "--tool=callgrind", "--instr-atstart=no",
                f"--callgrind-out-file={out_file}"]
    argv = [*contender.prefix, *valgrind, *workload.program, str(scale)]
    run(argv, {**ENVIRONMENT, **CALLGRIND_ENVIRONMENT, **environment})
    with open(out_file, encoding="utf-8") as lines:
        totals = [int(line.split()[1]) for line in lines if line.startswith("totals:")]
    if len(totals) != 1:
        raise RunFailed(f"callgrind wrote {len(totals)} totals")
    return totals[0]


def instruction_rounds(workload, contender, n_rounds, scale, environment, scratch_dir, say):
    """The ratio of instructions, and callgrind's file of the contender's last round."""
    out_file = os.path.join(scratch_dir, f"callgrind.{workload.name}")
    counts, plain_counts = [], []
    for i in range(n_rounds):
        for who, kept in ((PLAIN, plain_counts), (contender, counts)):
            count = count_instructions(workload, who, scale, environment, out_file)
            kept.append(count)
            say(f"{workload.name}, callgrind {i + 1} of {n_rounds}: {who.name} {count:,}")
    return ratio_of(counts, plain_counts), out_file


def shares_of_library(callgrind_file, library):
    """(share of all instructions, function) for the functions of one library, largest first."""
    annotated = subprocess.run(["callgrind_annotate", "--threshold=100", callgrind_file],
                               capture_output=True, text=True, check=True).stdout
    row = re.compile(r"\s*[\d,]+ \(\s*([\d.]+)%\)\s+(\S+) \[(.+)\]")
    found = [match.groups() for match in map(row.match, annotated.splitlines()) if match]
    shares = [(float(percent) / 100, function.rpartition(":")[2])
              for percent, function, module in found if os.path.basename(module) == library]
    return sorted(shares, reverse=True)


def start_up(contender, n_runs, environment):
    """Wall milliseconds of running `true`: plain and with the contender, in turn."""
    plain_ms, contender_ms = [], []
    for _ in range(n_runs):
        plain_ms.append(run(["true"], environment).wall_s * 1e3)
        contender_ms.append(run([*contender.prefix, "true"], environment).wall_s * 1e3)
    return plain_ms, contender_ms


def status_field_kib(pid, field):
    """A field of /proc/PID/status in KiB; 0 when the process has ended."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as lines:
            return next((int(line.split()[1]) for line in lines if line.startswith(field)), 0)
    except (FileNotFoundError, ProcessLookupError):
        return 0


def run_time_ns(pid):
    """CPU time that the process's live threads have used, by the scheduler's own clock."""
    total = 0
    for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
        try:
            with open(path, encoding="ascii") as line:
                total += int(line.read().split()[0])
        except (FileNotFoundError, ProcessLookupError):
            continue
    return total


def supervisor_cost(contender, argv, environment):
    """(peak resident KiB, share of a core) of the contender's own process while argv runs. It is
    watched to its end, so that writing the report counts too."""
    peak_kib, cpu_ns = 0, 0
    begin = time.monotonic()
    process = spawn([*contender.prefix, *argv], {**ENVIRONMENT, **environment},
                    subprocess.DEVNULL, subprocess.DEVNULL)
    try:
        while process.poll() is None:
            peak_kib = max(peak_kib, status_field_kib(process.pid, "VmHWM:"))
            cpu_ns = max(cpu_ns, run_time_ns(process.pid))
            time.sleep(0.01)
    except BaseException:
        process.send_signal(signal.SIGTERM)
        raise
    elapsed_s = time.monotonic() - begin
    if process.returncode != 0:
        raise RunFailed(f"status {process.returncode}")
    return peak_kib, cpu_ns / 1e9 / elapsed_s


def idle_program(seconds):
    return [PYTHON, os.path.join(HERE, "idle.py"), str(seconds)]
