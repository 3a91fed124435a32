# SPDX-License-Identifier: Apache-2.0
"""What a notebook kernel pays: for a cell, and for its start. Kernels are real, through jupyter_client;
plain and guarded ones take turns."""

import json
import os
import queue
import statistics
import time

import measure
from subjects import PYTHON

CELL_TIMEOUT_S = 60

# Put into both kernels: the time that run_cell takes, as seen around it.
STOPWATCH = """
import time as _time
_shell, _taken = get_ipython(), []
_run_cell = _shell.run_cell
def _timed(*arguments, **options):
    begin = _time.perf_counter_ns()
    try:
        return _run_cell(*arguments, **options)
    finally:
        _taken.append(_time.perf_counter_ns() - begin)
_shell.run_cell = _timed
"""

# A cell as people write them: some 300 characters. The number makes each one new to the kernel.
NEW_CELL = """# step {number}: the mean of the squares
total = 0
for value in range(20):
    total += value * value
mean = total / 20
names = ["alpha", "beta", "gamma"]
report = {{name: mean for name in names}}
label = "step {number}: " + ", ".join(f"{{name}} {{value:.2f}}" for name, value in report.items())
"""


class Kernel:
    """A kernel of its own folder of kernelspecs; `prefix` stands before ipykernel's command."""

    def __init__(self, directory, name, prefix, environment):
        from jupyter_client import KernelManager
        from jupyter_client.kernelspec import KernelSpecManager

        folder = os.path.join(directory, "kernels", name)
        os.makedirs(folder, exist_ok=True)
        argv = [*prefix, PYTHON, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        with open(os.path.join(folder, "kernel.json"), "w", encoding="utf-8") as spec:
            json.dump({"argv": argv, "display_name": name, "language": "python"}, spec)
        specs = KernelSpecManager(kernel_dirs=[os.path.dirname(folder)], ensure_native_kernel=False)
        self.manager = KernelManager(kernel_name=name, kernel_spec_manager=specs)
        begin = time.perf_counter()
        self.manager.start_kernel(env={**os.environ, **environment})
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=CELL_TIMEOUT_S)
        self.start_s = time.perf_counter() - begin

    def run(self, code):
        reply = self.client.execute_interactive(code, timeout=CELL_TIMEOUT_S,
                                                output_hook=lambda message: None)
        if reply["content"]["status"] != "ok":
            raise measure.RunFailed(f"a cell failed: {reply['content'].get('evalue')}")

    def taken_us(self):
        """What the stopwatch saw since this was last asked for."""
        expression = self.client.execute("", user_expressions={"taken": "_taken"}, silent=True)
        while True:
            try:
                reply = self.client.get_shell_msg(timeout=CELL_TIMEOUT_S)
            except queue.Empty:
                raise measure.RunFailed("the kernel does not answer") from None
            if reply["parent_header"].get("msg_id") == expression:
                text = reply["content"]["user_expressions"]["taken"]["data"]["text/plain"]
                return [taken / 1e3 for taken in json.loads(text)]

    def close(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=False)


def guarded_prefix(plimsoll):
    return [plimsoll, "run", "--quiet", "--kernel", "{connection_file}", "--"]


def open_both(directory, plimsoll, environment):
    plain = Kernel(directory, "plain", [], environment)
    try:
        return plain, Kernel(directory, "guarded", guarded_prefix(plimsoll), environment)
    except BaseException:
        plain.close()
        raise


def cell_costs(directory, plimsoll, n_cells, environment, say):
    """Microseconds of run_cell, plain and guarded: ([new], [run again]) of each."""
    kernels = open_both(directory, plimsoll, environment)
    try:
        for kernel in kernels:
            kernel.run(STOPWATCH)
            kernel.run("pass")  # the stopwatch sees from here on
        say(f"notebook: {n_cells} new cells and {n_cells} run again, in turn")
        for source in [NEW_CELL.format(number=i) for i in range(n_cells)]:
            for kernel in kernels:
                kernel.run(source)
        for _ in range(n_cells):
            for kernel in kernels:
                kernel.run(NEW_CELL.format(number=0))
        taken = [kernel.taken_us() for kernel in kernels]
        return [(times[-2 * n_cells:-n_cells], times[-n_cells:]) for times in taken]
    finally:
        for kernel in kernels:
            kernel.close()


def start_costs(directory, plimsoll, n_starts, environment, say):
    """Seconds from the command to the first answer, plain and guarded."""
    taken = {"plain": [], "guarded": []}
    prefixes = {"plain": [], "guarded": guarded_prefix(plimsoll)}
    for i in range(n_starts):
        for name in list(taken) if i % 2 else list(taken)[::-1]:
            kernel = Kernel(directory, name, prefixes[name], environment)
            taken[name].append(kernel.start_s)
            kernel.close()
        say(f"notebook: start {i + 1} of {n_starts}: "
            + ", ".join(f"{name} {values[-1]:.2f} s" for name, values in taken.items()))
    return taken["plain"], taken["guarded"]


def cell_row(what, plain_us, guarded_us):
    more = [guarded - plain for guarded, plain in zip(guarded_us, plain_us)]
    low, median, high = statistics.quantiles(more, n=4)
    return {"what": f"{what}, median of {len(more)} (plain: {statistics.median(plain_us):.0f} us)",
            "measured": f"+{median:.0f} us ({low:.0f}-{high:.0f})", "target": "< 200 us"}


def costs(plimsoll, directory, n_cells, n_starts, environment, say):
    """The rows of the notebook's table."""
    (plain_new, plain_again), (new, again) = cell_costs(directory, plimsoll, n_cells, environment,
                                                        say)
    plain_s, guarded_s = start_costs(directory, plimsoll, n_starts, environment, say)
    ratio = measure.ratio_of(guarded_s, plain_s)
    return [
        cell_row("a cell that is new", plain_new, new),
        cell_row("a cell that is run again", plain_again, again),
        {"what": f"start of a kernel, to its first answer, median of {n_starts} "
                 f"(plain: {statistics.median(plain_s):.2f} s)",
         "measured": f"{ratio.median:.3f} x ({ratio.low:.3f}-{ratio.high:.3f})",
         "target": "1.15 x"},
    ]
