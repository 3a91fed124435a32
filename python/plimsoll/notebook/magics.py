# SPDX-License-Identifier: Apache-2.0
"""%plimsoll and %%plimsoll."""
from IPython.core.error import UsageError

from .. import _guard
from . import program, state, tables

USAGE = "%plimsoll [budget [SIZE] | top | explain [RUN]], or %%plimsoll limit=SIZE on top of a cell"


class Magic:
    """Registers %plimsoll and %%plimsoll in a shell."""

    def __init__(self, shell):
        self._shell = shell

    def load(self):
        self._shell.register_magic_function(self.line, "line", "plimsoll")
        self._shell.register_magic_function(self.cell, "cell", "plimsoll")

    def unload(self):
        for kind in ("line", "cell"):
            self._shell.magics_manager.magics[kind].pop("plimsoll", None)


class Unguarded(Magic):
    """Without a guard: one sentence, why and what to do."""

    def __init__(self, shell, reason):
        super().__init__(shell)
        self._reason = reason

    def line(self, line=""):
        """Plimsoll does not guard this kernel; %plimsoll says what to do."""
        print(f"plimsoll: {self._reason}")

    def cell(self, line, cell):
        """Plimsoll does not guard this kernel; %plimsoll says what to do."""
        _refuse(self._reason)


class Guarded(Magic):
    def __init__(self, shell, guard, session):
        super().__init__(shell)
        self._guard, self._limit = guard, session.limit
        self._program, self._previous = session.program, session.previous

    def line(self, line=""):
        """How much memory is in use, by which cells, and what ended the kernel before this one.

        %plimsoll                  the cells: what each holds, its peak, its growth per run
        %plimsoll budget           the line, the bytes in use, the system's limit
        %plimsoll budget 2G        moves the line
        %plimsoll top              processes, cells and places that hold memory now
        %plimsoll explain [RUN]    all that is known of the kernel that died, or of this one
        %plimsoll limit=500M       the rest of this cell may take 500M more than is in use now
        %%plimsoll limit=500M      on top of a cell: the same, for the whole cell
        """
        words = line.split()
        try:
            self._do(words[0] if words else "", words[1:])
        except (program.ProgramError, _guard.Refused, ValueError) as error:
            _refuse(error)

    def cell(self, line, cell):
        """%%plimsoll limit=500M: the cell may take 500M more than is in use when it begins."""
        # Cells that the user runs do not get here: see limit.py.
        if not line.strip().startswith("limit"):
            _refuse(f"unknown argument in '%%plimsoll {line}': write %%plimsoll limit=SIZE")
        self.line(line)
        try:
            self._shell.run_cell("\n" + cell)
        finally:
            self._limit.end()

    def _do(self, what, rest):
        if what.startswith("limit"):
            self._begin_limit(what + "".join(rest))
        elif what == "" and not rest:
            self._publish_with_previous(state.overview(self._program.top()))
        elif what == "top" and not rest:
            tables.publish(self._shell, state.top(self._program.top()))
        elif what == "budget" and len(rest) <= 1:
            self._budget(*rest)
        elif what == "explain" and len(rest) <= 1:
            self._explain(*rest)
        else:
            raise ValueError(f"'%plimsoll {' '.join([what] + rest)}' is not known: {USAGE}")

    def _publish_with_previous(self, page):
        self._previous.wait()
        death = self._previous.page()
        if death is not None:
            page.add(death)
        tables.publish(self._shell, page)

    def _budget(self, request=None):
        if request is not None:
            self._guard.set_line(request)
            self._limit.forget()
        print(state.budget(self._guard.memory()))

    def _explain(self, run=None):
        self._previous.wait()
        run = run or self._previous.died_run or self._program.record
        print(self._program.text("explain", run), end="")

    def _begin_limit(self, argument):
        name, equals, size = argument.partition("=")
        if name != "limit" or not equals:
            raise ValueError(f"'{argument}' is not known: write limit=SIZE")
        self._limit.begin(size)


def _refuse(why):
    """Raises IPython's error for a wrong use of a magic: one line, no traceback, a failed cell."""
    raise UsageError(f"plimsoll: {why}")
