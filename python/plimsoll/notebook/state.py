# SPDX-License-Identifier: Apache-2.0
"""The document of `plimsoll top --json` as pages."""
from . import leaks, sizes, tables

CELLS_SHOWN = 40


def overview(top):
    """%plimsoll: the line, the cells, and which of them grow."""
    page = tables.Page()
    page.line(_in_use(top["memory"]))
    _add_cells(page, top["cells"])
    for cell in top["cells"]:
        if cell["n_growing"] >= leaks.N_GROWING:
            page.line(_warning(cell))
    return page


def top(document):
    """%plimsoll top: the same, and the processes and places that hold memory now."""
    page = tables.Page()
    page.line(_in_use(document["memory"]))
    _add_processes(page, document["processes"])
    _add_cells(page, document["cells"])
    _add_sites(page, document["sites"])
    return page


def budget(memory):
    """%plimsoll budget, from the guard's own numbers."""
    in_use = sizes.show(memory.charged_bytes)
    line = f"the line is {sizes.show(memory.line_bytes)}: {in_use} are in use"
    if memory.charged_bytes > memory.line_bytes:
        line += ", which is more: cells fail until some of it is freed"
    if not memory.true_limit_bytes:
        return line
    return (
        f"{line}; the system gives {sizes.show(memory.true_limit_bytes)}, of which "
        f"{sizes.show(memory.reserve_bytes)} are kept in reserve"
    )


def _in_use(memory):
    n_refusals = memory.get("n_refusals", 0)
    refused = f"; {n_refusals} request{'s' * (n_refusals != 1)} refused" if n_refusals else ""
    true_limit = memory.get("true_limit_bytes")
    given = f"; the system gives {sizes.show(true_limit)}" if true_limit else ""
    return (
        f"{sizes.show(memory['charged_bytes'])} of the {sizes.show(memory['line_bytes'])} budget "
        f"are in use (peak {sizes.show(memory['peak_bytes'])}{given}){refused}"
    )


def _add_cells(page, cells):
    shown = sorted(cells, key=lambda cell: -max(cell["held_bytes"], cell["peak_bytes"]))
    shown = sorted(shown[:CELLS_SHOWN], key=lambda cell: cell["number"])
    page.table(
        ("cell", "runs", "held", "peak", "growth per run", "source"),
        "lrrrrc",
        [
            (
                f"In [{cell['number']}]",
                cell["n_runs"],
                sizes.show(cell["held_bytes"]),
                sizes.show(cell["peak_bytes"]),
                sizes.show_change(_growth_per_run(cell)),
                cell.get("source", ""),
            )
            for cell in shown
        ],
    )
    if len(cells) > len(shown):
        page.line(f"and {len(cells) - len(shown)} more cells, which hold less")


def _growth_per_run(cell):
    """Between its runs; nothing can be said of one that ran once."""
    return cell["growth_bytes"] if cell["n_runs"] > 1 else 0


def _warning(cell):
    places = leaks.growing_places(cell)
    by = f", by {places}" if places else ""
    return (
        f"In [{cell['number']}] holds more after each run, {cell['n_growing']} times in a row now: "
        f"{sizes.show(cell['held_bytes'])}{by}"
    )


def _add_processes(page, processes):
    page.table(
        ("process", "pid", "in use", "resident", "peak", "refused"),
        "lrrrrr",
        [
            (
                process["name"],
                process["pid"],
                sizes.show(process["charged_bytes"]),
                sizes.show(process["resident_bytes"]),
                sizes.show(process["peak_bytes"]),
                process["n_refusals"],
            )
            for process in processes
        ],
    )


def _add_sites(page, sites):
    page.table(
        ("held by", "bytes", "blocks", "cell"),
        "crrl",
        [
            (
                site["place"],
                sizes.show(site["bytes"]),
                site["count"],
                f"In [{site['cell']}]" if site.get("cell") else "",
            )
            for site in sites
        ],
    )
