# SPDX-License-Identifier: Apache-2.0
"""A guarded kernel's parts, put together."""
from . import cells, death, leaks, limit, magics, program, refusals, sources


class Session:
    def __init__(self, shell, guard, start):
        self.program = program.Program(start)
        self.previous = death.Previous(self.program, start.previous)
        self.limit = limit.Limit(shell, guard)
        self.refusals = refusals.Refusals(shell, guard, self.limit)
        self.cells = cells.Cells(
            shell,
            guard,
            sources.Sources(start.record),
            leaks.Leaks(guard, self.program),
            self.refusals,
            self.limit,
            before_first=lambda cell_id: self.previous.show_once(shell, cell_id),
        )
        self.magics = magics.Guarded(shell, guard, self)

    def load(self):
        self.previous.ask()
        for part in (self.limit, self.refusals, self.cells, self.magics):
            part.load()

    def unload(self):
        for part in (self.magics, self.cells, self.refusals, self.limit):
            part.unload()
        self.previous.forget()
