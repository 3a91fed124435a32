# SPDX-License-Identifier: Apache-2.0
"""Turns results into tables, and the tables and the machine into docs/benchmarks.md."""

import datetime
import os
import platform
import re
import subprocess

from subjects import GUARDED, HERE, PLAIN_AGAIN, PYTHON, TCMALLOC

KIB_IN_GIB = 1 << 20


def show_ratio(ratio, digits=3):
    """The median and, where the rounds differ, the quartiles. No more digits than are meant."""
    if ratio.median >= 2:
        digits = 1 if ratio.median < 10 else 0
    median, low, high = (f"{value:.{digits}f}" for value in (ratio.median, ratio.low, ratio.high))
    return median if low == high else f"{median} ({low}-{high})"


def cell(result, name):
    """What the table says of one contender on one workload."""
    if name in result["failures"]:
        return "failed"
    ratio = result["cpu"].get(name)
    return show_ratio(ratio) if ratio else "not run"


def table(header, rows):
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]

    def line(row):
        return "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths)) + " |"

    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([line(header), rule, *map(line, rows)])


def guard_table(results):
    """Measured beside wanted, for the guard alone."""
    rows = []
    for result in results:
        workload = result["workload"]
        instructions = result["instructions"]
        rows.append([
            workload.title,
            show_ratio(instructions, 4) if instructions else "not run",
            f"{workload.target_instructions:g}",
            cell(result, GUARDED),
            f"{workload.target_cpu:g}",
            cell(result, PLAIN_AGAIN.name),
            f"{result['plain_cpu_s']:.2f} s" if result["plain_cpu_s"] else "not run",
        ])
    return table(["workload", "instructions", "target", "CPU time", "target", "plain again",
                  "plain CPU"], rows)


def peer_table(results, names):
    rows = [[name, *(cell(result, name) for result in results)] for name in names]
    return table(["CPU time, to plain", *(result["workload"].name for result in results)], rows)


def failure_lines(results):
    return [f"- {name}, {result['workload'].name}: {reason}"
            for result in results for name, reason in result["failures"].items()]


def cost_table(title, costs):
    rows = [[cost["what"], cost["measured"], cost["target"]] for cost in costs]
    return table([title, "measured", "target"], rows)


def where_table(result):
    """Where the guard's share of the instructions goes: its largest functions."""
    total = sum(share for share, _ in result["guard_shares"])
    rows = [[f"`{function}`", f"{share:.2%}"] for share, function in result["guard_shares"][:8]]
    return table([f"in the guard, `{result['workload'].name}`", f"of all: {total:.2%}"], rows)


def first_line(argv):
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "absent"
    lines = (done.stdout or done.stderr).strip().splitlines()
    return lines[0] if lines else "unknown"


def python_says(code):
    return first_line([PYTHON, "-c", code])


def package_version(path):
    """Of the Debian package that owns the file."""
    owner = first_line(["dpkg-query", "-S", path]).partition(":")[0]
    return first_line(["dpkg-query", "-W", "-f=${Version}", owner])


def blas_version():
    """The BLAS that NumPy really loads, with its folder: Debian lets the machine choose."""
    return python_says(
        "import numpy.linalg, re;"
        "maps = open('/proc/self/maps').read();"
        "print(re.findall(r'([^/\\n]*/lib[^/\\n]*blas[^/\\n]*)\\n', maps)[0])")


def versions():
    return [
        "glibc " + platform.libc_ver()[1],
        first_line([PYTHON, "--version"]),
        "NumPy " + python_says("import numpy; print(numpy.__version__)") + f" on {blas_version()}",
        "ipykernel " + python_says("import ipykernel; print(ipykernel.__version__)"),
        "torch " + python_says("import torch; print(torch.__version__)"),
        first_line(["valgrind", "--version"]),
        first_line(["heaptrack", "--version"]),
        "gperftools " + package_version(TCMALLOC),
        first_line(["cc", "--version"]),
    ]


def machine():
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as cpuinfo:
        model = re.search(r"model name\s*:\s*(.*)", cpuinfo.read())
    with open("/proc/meminfo", encoding="ascii") as meminfo:
        memory_kib = int(re.search(r"MemTotal:\s*(\d+)", meminfo.read())[1])
    return [
        model[1] if model else platform.machine(),
        f"{len(os.sched_getaffinity(0))} cores",
        f"{memory_kib / KIB_IN_GIB:.0f} GiB",
        f"Linux {platform.release()}",
    ]


def release():
    """The system by the name that people use: "Debian 13"."""
    facts = platform.freedesktop_os_release()
    return f"{facts.get('NAME', 'Linux').split()[0]} {facts.get('VERSION_ID', 'sid')}"


def tables(results, costs, notebook_costs, names):
    """Everything that was measured, as text that reads well in a terminal and as Markdown."""
    parts = []
    if results:
        parts += [f"## The guard on {release()}", guard_table(results)]
        if names and any(result["cpu"] for result in results):
            parts += ["## Beside others", peer_table(results, names)]
        failures = failure_lines(results)
        if failures:
            parts.append("Left out:\n" + "\n".join(failures))
    if costs:
        parts += [f"## The supervisor on {release()}", cost_table("the supervisor's own cost", costs)]
    if notebook_costs:
        parts += ["## In the notebook", cost_table("over a plain ipykernel", notebook_costs)]
    annotated = [result for result in results if result["guard_shares"]]
    if annotated:
        parts += ["## Where the guard's instructions go", *map(where_table, annotated)]
    return "\n\n".join(parts)


def write(path, text, load_average):
    with open(os.path.join(HERE, "benchmarks.head.md"), encoding="utf-8") as head:
        hand_written = head.read().rstrip()
    today = datetime.date.today().isoformat()
    facts = [
        "## The machine",
        f"Measured on {today}: {', '.join(machine())}; load average {load_average:.2f} before.",
        f"With {'; '.join(versions())}.",
    ]
    with open(path, "w", encoding="utf-8") as page:
        page.write("\n\n".join([hand_written, text, *facts]) + "\n")


def sections_of(text):
    """Title of each "## " section, and all of it."""
    parts = ("\n" + text).split("\n## ")[1:]
    return {part.split("\n", 1)[0]: "## " + part.strip() for part in parts}


def update(path, text, load_average):
    """Puts the sections that were measured into the page, each with its day and the processor, for
    parts are measured on different ones; the others stay."""
    today = datetime.date.today().isoformat()
    with open(path, encoding="utf-8") as page:
        before, machine_mark, after = page.read().partition("\n## The machine")
    for title, section in sections_of(text).items():
        dated = (f"{section}\n\nMeasured on {today}: {machine()[0]}; {release()}, "
                 f"{first_line([PYTHON, '--version'])}; load average {load_average:.2f} before.")
        found = sections_of(before).get(title)
        before = before.replace(found, dated) if found else f"{before.rstrip()}\n\n{dated}\n"
    with open(path, "w", encoding="utf-8") as page:
        page.write(before + machine_mark + after)
