# SPDX-License-Identifier: Apache-2.0
"""Warns that a cell holds more after each run: one line on stderr, rarely."""
import sys

from . import program, sizes

N_GROWING = 3
SHARE_OF_LINE = 0.05
SITES_TIMEOUT_S = 5


class Leaks:
    def __init__(self, guard, program_):
        self._guard, self._program = guard, program_
        self._held_before = {}  # by cell: the bytes it held when it began to grow
        self._held_warned = {}  # by cell: the bytes it held at the last warning

    def look(self, cell_id, run):
        """Called after each run of a cell. Warns once, and again when it holds twice as much."""
        if run.n_growing == 0:
            self._held_before[cell_id] = run.held_bytes
        elif run.n_growing >= N_GROWING and run.held_bytes >= 2 * self._held_warned.get(cell_id, 0):
            growth = run.held_bytes - self._held_before.get(cell_id, 0)
            if growth >= SHARE_OF_LINE * self._guard.memory().line_bytes:
                self._held_warned[cell_id] = run.held_bytes
                self._warn(run, growth)

    def _warn(self, run, growth):
        print(
            f"plimsoll: In [{run.number}] holds more after each run: {sizes.show(growth)} in its "
            f"last {run.n_growing} runs, {sizes.show(run.held_bytes)} in all{self._sites(run)}; "
            "%plimsoll shows every cell",
            file=sys.stderr,
        )

    def _sites(self, run):
        """The places where it grew. This starts a program, so it is only done for a warning."""
        try:
            cells = self._program.top(SITES_TIMEOUT_S)["cells"]
            cell = next(cell for cell in cells if cell["number"] == run.number)
            places = growing_places(cell)
        except (program.ProgramError, LookupError, TypeError, StopIteration):
            places = ""
        return f", by {places}" if places else ""


def growing_places(cell):
    """The sites of a cell of `plimsoll top` that grew, in a few words."""
    sites = [site for site in cell.get("sites", []) if site.get("growth_bytes", 0) > 0]
    return ", ".join(f"{site['place']} (+{sizes.show(site['growth_bytes'])})" for site in sites)
