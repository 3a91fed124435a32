# SPDX-License-Identifier: Apache-2.0
"""budget(), explain(), live() and errors(): see plimsoll/__init__.py.

Answers are objects: a table where they are printed, HTML where a notebook shows them, and numbers
for programs in their attributes.
"""
from __future__ import annotations

import os
import sys
from typing import Any, Dict, List, Optional, Tuple

from . import _core
from ._progress import progress
from .notebook import sizes
from .notebook.tables import Page

__all__ = ["budget", "errors_of", "explain", "live", "open", "progress", "save"]


class _Answer:
    """Something that is shown as a page."""

    def _page(self) -> Page:
        raise NotImplementedError

    def __str__(self) -> str:
        return self._page().text()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self._page().html()


# ---- the budget ----


class Budget(_Answer):
    """Bytes: `line` is the limit of claims, `claimed` their sum now, `peak` the most so far."""

    def __init__(self, found: Dict[str, Any]) -> None:
        self._found = found
        self.line: int = found["line"]
        self.claimed: int = found["claimed"]
        self.peak: int = found["peak"]
        self.sources: List[Dict[str, Any]] = list(found.get("sources", ()))

    @property
    def left(self) -> int:
        return max(0, self.line - self.claimed)

    def __getitem__(self, key: str) -> Any:
        return self._found[key]

    def _page(self) -> Page:
        page = Page()
        decided = self._found.get("decided_by")
        page.pairs(
            [
                ("line", sizes.show(self.line) + (f", by {decided}" if decided else "")),
                ("claimed", f"{sizes.show(self.claimed)}, {sizes.show(self.left)} left"),
                ("peak", sizes.show(self.peak)),
            ]
        )
        there = [source for source in self.sources if source.get("present")]
        rows = [(s["name"], sizes.show(s["bytes"]), s["detail"]) for s in there]
        page.table(("what limits it", "bytes", ""), "lrt", rows)
        return page


def budget() -> Budget:
    """The line, the bytes claimed of it, and their peak.

    >>> import plimsoll
    >>> now = plimsoll.budget()
    >>> 0 <= now.claimed <= now.line
    True
    """
    return Budget(_core.budget())


# ---- cost ----


class Explanation(_Answer):
    """A plan before it runs: `text`, `json`, and `peak_bytes`, `disk_bytes`, `flops`, `n_unknown`.

    With n_unknown above 0 the numbers are lower bounds: files have to be read first.
    """

    def __init__(self, text: str, json: Any, cost: Dict[str, Any]) -> None:
        self.text, self.json, self.cost = text, json, cost

    def __getattr__(self, name: str) -> Any:
        if name != "cost" and name in self.cost:
            return self.cost[name]
        raise AttributeError(f"'Explanation' object has no attribute '{name}'")

    def __str__(self) -> str:
        return self.text.rstrip("\n")

    __repr__ = __str__

    def _page(self) -> Page:
        page = Page()
        _add_json(page, self.json)
        return page


def _add_json(page: Page, data: Any) -> None:
    """Any JSON as tables: its plain values as pairs, its lists of objects as tables."""
    if not isinstance(data, dict):
        page.line(str(data))
        return
    page.pairs([(key, _cell(key, value)) for key, value in data.items() if _is_plain(value)])
    for key, value in data.items():
        if isinstance(value, dict):
            page.line(key)
            _add_json(page, value)
        elif isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
            page.line(key)
            _add_rows(page, value)


def _add_rows(page: Page, rows: List[Dict[str, Any]]) -> None:
    columns = [key for key in dict.fromkeys(key for row in rows for key in row)]
    columns = [key for key in columns if any(_is_plain(row.get(key)) for row in rows)]
    kinds = "".join("r" if _is_number(rows, key) else "l" for key in columns)
    page.table(columns, kinds, [[_cell(key, row.get(key, "")) for key in columns] for row in rows])


def _is_number(rows: List[Dict[str, Any]], key: str) -> bool:
    return all(isinstance(row.get(key, 0), (int, float)) for row in rows)


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return all(isinstance(one, (int, str, type(None))) for one in value)
    return not isinstance(value, dict)


def _cell(key: str, value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and key.endswith("bytes"):
        return sizes.show(value)
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)


def explain(tensor_or_dataset: Any, feed_dict: Optional[Dict[Any, Any]] = None) -> Explanation:
    """The memory that computing tensors, or iterating a dataset, will take; nothing is computed.

    >>> import plimsoll, plimsoll.tf as tf
    >>> x = tf.ones([1000, 1000])
    >>> plimsoll.explain(tf.matmul(x, x)).peak_bytes >= 4000000
    True
    """
    if hasattr(tensor_or_dataset, "_explain"):
        told = tensor_or_dataset._explain(json=True)
        cost = {key: value for key, value in told.items() if isinstance(value, (int, float))}
        return Explanation(tensor_or_dataset._explain(json=False), told, cost)
    import json

    nodes = _nodes(tensor_or_dataset)
    feeds = [(_node(key), value) for key, value in (feed_dict or {}).items()]
    text, cost = _core.explain(nodes, feeds)
    told, _ = _core.explain(nodes, feeds, json=True)
    return Explanation(text, json.loads(told), dict(cost))


def _nodes(given: Any) -> List[Any]:
    if isinstance(given, (list, tuple)):
        return [_node(one) for one in given]
    if isinstance(given, dict):
        return [_node(one) for one in given.values()]
    return [_node(given)]


def _node(given: Any) -> Any:
    if hasattr(given, "__plimsoll_tensor__"):
        given = given.__plimsoll_tensor__()
    if not isinstance(given, _core.Tensor):
        raise TypeError(
            f"explain() takes a tensor, several in a list, or a dataset, not {type(given).__name__}"
        )
    return given


# ---- live values ----


class Live(_Answer):
    """`entries`, dicts as the library has them; `by_scope` and `by_site`: (name, n, bytes)."""

    _N_SHOWN = 20

    def __init__(self, entries: List[Dict[str, Any]]) -> None:
        self.entries = entries
        held = [e for e in entries if not e["shared"] and e["kind"] not in ("session", "run")]
        self.bytes: int = sum(entry["bytes"] for entry in held)
        self.by_scope = _totals(held, lambda entry: entry["scope"])
        self.by_site = _totals(held, _site_of)

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Any:
        return iter(self.entries)

    def _page(self) -> Page:
        page = Page()
        page.line(f"{sum(n for _, n, _ in self.by_scope)} live, {sizes.show(self.bytes)}")
        for title, totals in (("scope", self.by_scope), ("call site", self.by_site)):
            rows = [(name or "-", n, sizes.show(size)) for name, n, size in totals]
            page.table((title, "n", "bytes"), "lrr", rows[: self._N_SHOWN])
        held = [entry for entry in self.entries if entry["bytes"] > 0]
        largest = sorted(held, key=lambda entry: -entry["bytes"])[: self._N_SHOWN]
        titles = ("what", "name", "dtype", "shape", "bytes", "where", "made at")
        page.table(titles, "llllrll", [_live_row(e) for e in largest])
        return page


def _live_row(entry: Dict[str, Any]) -> Tuple[Any, ...]:
    dtype = getattr(entry["dtype"], "name", entry["dtype"] or "")
    shape = "" if entry["dtype"] is None else str(entry["shape"])
    size = sizes.show(entry["bytes"]) + (", shared" if entry["shared"] else "")
    return entry["kind"], entry["name"], dtype, shape, size, entry["where"], _site_of(entry)


def _site_of(entry: Dict[str, Any]) -> str:
    site = entry.get("site")
    if site is None:
        return ""
    shorter = os.path.relpath(site[0])
    return f"{site[0] if shorter.startswith(os.pardir) else shorter}:{site[1]}"


def _totals(entries: List[Dict[str, Any]], key: Any) -> List[Tuple[str, int, int]]:
    sums: Dict[str, Tuple[int, int]] = {}
    for entry in entries:
        n, size = sums.get(key(entry), (0, 0))
        sums[key(entry)] = n + 1, size + entry["bytes"]
    return sorted(((name, n, size) for name, (n, size) in sums.items()), key=lambda row: -row[2])


def live(scope: str = "") -> Live:
    """The tensors held in memory, in the spill file and over files, by scope and call site.

    >>> import plimsoll, plimsoll.tf as tf
    >>> weights = tf.Variable(tf.zeros([1000]), name="layer/weights")
    >>> [entry["bytes"] for entry in plimsoll.live("layer")][:1]
    [4000]
    """
    entries, _ = _core.live(scope)
    of_sessions = sys.modules.get("plimsoll.tf._graph.session")
    mine = of_sessions.live() if of_sessions and not scope else []
    # The library's own sessions are the programs that are kept: they hold nothing.
    return Live([entry for entry in entries if entry["kind"] != "session"] + mine)


# ---- errors ----


class Errors(_Answer):
    """The bad elements of a dataset's last pass: the first of them as dicts, and how many in all."""

    def __init__(self, bads: List[Dict[str, Any]], n_bad: int, n_items: int) -> None:
        self._bads, self.n_bad, self.n_items = bads, n_bad, n_items

    def __len__(self) -> int:
        return len(self._bads)

    def __iter__(self) -> Any:
        return iter(self._bads)

    def __getitem__(self, number: int) -> Dict[str, Any]:
        return self._bads[number]

    def _page(self) -> Page:
        page = Page()
        page.line(f"{self.n_bad} of {self.n_items} elements were bad" if self.n_bad else "none")
        columns = ("index", "stage", "path", "offset", "message")
        rows = [[_cell(key, bad.get(key, "")) for key in columns] for bad in self._bads]
        page.table(columns, "rllrt", rows)
        if self.n_bad > len(self._bads) > 0:
            page.line(f"and {self.n_bad - len(self._bads)} more")
        return page


def errors_of(dataset: Any) -> Errors:
    """plimsoll.errors(dataset): a table of the elements that its last pass skipped.

    >>> import plimsoll, plimsoll.tf as tf
    >>> dataset = tf.data.TextLineDataset(["missing.txt"]).on_error("skip")
    >>> list(dataset)
    []
    >>> plimsoll.errors(dataset)[0]["path"]
    'missing.txt'
    """
    if not hasattr(dataset, "error_count"):
        raise TypeError(f"errors() takes a dataset, not {type(dataset).__name__}")
    bads = dataset.errors()
    n_bad, n_items = dataset.error_count()
    return Errors(bads, max(n_bad, len(bads)), n_items)


# ---- files ----


def save(tensor: Any, path: Any) -> None:
    """Computes a tensor into an .npy file, piece by piece: it may be larger than the budget.

    >>> import os, tempfile
    >>> import plimsoll, plimsoll.tf as tf
    >>> path = os.path.join(tempfile.mkdtemp(), "x.npy")
    >>> plimsoll.save(tf.range(3), path)
    >>> plimsoll.open(path).numpy().tolist()
    [0, 1, 2]
    """
    if hasattr(tensor, "__plimsoll_tensor__"):
        tensor = tensor.__plimsoll_tensor__()
    _core.save_npy(tensor if isinstance(tensor, _core.Tensor) else _core.convert(tensor),
                   os.fspath(path))


def open(path: Any) -> Any:
    """An .npy file as a tensor, which is read as it is needed and may be larger than the budget.

    >>> import os, tempfile
    >>> import numpy as np
    >>> import plimsoll, plimsoll.tf as tf
    >>> path = os.path.join(tempfile.mkdtemp(), "x.npy")
    >>> np.save(path, np.ones(3))
    >>> float(tf.reduce_sum(plimsoll.open(path)))
    3.0
    """
    from . import tf  # dtypes and shapes are registered there

    assert tf is not None
    return _core.open_npy(os.fspath(path))
