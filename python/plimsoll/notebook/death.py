# SPDX-License-Identifier: Apache-2.0
"""Shows how the kernel before this one ended, with the first output of this one.

Jupyter restarts a dead kernel at once and does not pass on the reason. That is in the record of its
run. `plimsoll explain` reads it, started when this kernel starts, so that nothing waits for it.
"""
import subprocess
import tempfile

from . import before, program, tables

WAIT_S = 10
# Kernels in a row that ran no cell: the death before them has not been shown yet.
MOST_SKIPPED = 8


class Previous:
    def __init__(self, program_, run):
        self._program, self._run = program_, run
        self._process = self._answer = None
        self._report = None
        self._n_skipped = 0
        self.died_run = None  # its run, once it is known to be news

    def ask(self):
        """Starts the program. Its output goes to a file, so nothing waits until that is read."""
        if not self._run:
            return
        try:
            self._answer = tempfile.TemporaryFile()
            self._process = self._program.start(
                "explain", "--json", self._run, stdout=self._answer.fileno()
            )
        except (OSError, program.ProgramError):
            self.forget()

    def forget(self):
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        if self._answer is not None:
            self._answer.close()
        self._process = self._answer = None

    def show_once(self, shell, cell_id):
        """Call it before the first cell. False: no answer yet, try again before the next cell."""
        if self._run is None:
            self._run = before.run_before(self._program.record, cell_id)
            self.ask()
        if not self.wait():
            return False
        page = self.page()
        if page is not None:
            tables.publish(shell, page)
        return True

    def wait(self):
        """For the answer; True once there is nothing more to wait for."""
        while self._process is not None:
            try:
                self._process.wait(WAIT_S)
            except subprocess.TimeoutExpired:
                return False
            self._answer.seek(0)
            text = self._answer.read().decode("utf-8", "replace")
            self.forget()
            try:
                self._take(program.parse(text))
            except program.ProgramError:
                return True
        return True

    def _take(self, report):
        """Keeps a report that is news. For a kernel that ran no cell, asks for the one before it."""
        if is_news(report):
            self._report, self.died_run = report, self._run
        elif not report.get("cells") and self._n_skipped < MOST_SKIPPED:
            self._n_skipped += 1
            self._run = report.get("notebook", {}).get("previous")
            self.ask()

    def page(self):
        """The explanation, or None when the kernel before did not die."""
        if self._report is None:
            return None
        stopped = self._report.get("verdict") == "killed"
        page = tables.Page(f"The kernel before this one {'was stopped' if stopped else 'died'}")
        page.pairs([(line.get("label", ""), line.get("text", "")) for line in self._report["brief"]])
        return page


def is_news(report):
    """Should the user see it? That was decided when the report was made."""
    return report.get("news_for") == "user"
