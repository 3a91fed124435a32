# SPDX-License-Identifier: Apache-2.0
"""The memory that a pass will hold, before it begins: `plimsoll check --plan` for a pipeline.

    row     a stage: the bytes of one of its elements, and what it holds beside the one it hands on
    batch   the outermost batch; the program gets its elements
    window  what prefetch() has ready ahead: of AUTOTUNE two, which is what it begins with

Sizes come from specs; where these leave something open, from the stage before, if it hands on what
it gets, or makes batches of it; else from the first element of that stage, which makes one. Strings
count with the length they have there.
"""
from __future__ import annotations

from typing import Any, NamedTuple, Optional

from plimsoll import _core, errors

from ._element import specs as _specs
from ._iterator import raw

_AUTO_WINDOW = 2
_HANDS_ON = {
    *("Prefetch", "Shuffle", "Repeat", "Take", "Skip", "Shard", "Cache", "Snapshot", "Filter"),
    *("Options", "OnError", "IgnoreErrors", "Watchdog", "TakeWhile", "AssertCardinality"),
}
_KNOWS_PLACES = {"Range", "TensorSlice", "Take", "Skip", "Shard", "Enumerate"}
_PLACE_BYTES = 4


class Row(NamedTuple):
    stage: str
    element_bytes: Optional[int]
    held_bytes: Optional[int]
    is_measured: bool  # by an element, not from the spec
    n: Optional[int]  # batch size, buffer size ...


class Plan(NamedTuple):
    rows: list[Row]  # sources first
    element_bytes: Optional[int]
    batch_size: Optional[int]
    needed_bytes: Optional[int]
    budget_bytes: int
    largest_batch: Optional[int]

    @property
    def fits(self) -> Optional[bool]:
        return None if self.needed_bytes is None else self.needed_bytes <= self.budget_bytes

    def as_dict(self) -> dict:
        return {
            "stages": [row._asdict() for row in self.rows],
            "element_bytes": self.element_bytes,
            "batch_size": self.batch_size,
            "needed_bytes": self.needed_bytes,
            "budget_bytes": self.budget_bytes,
            "fits": self.fits,
            "largest_batch": self.largest_batch,
        }

    def as_text(self) -> str:
        lines = [f"{'stage':<18} {'element':>12} {'holds':>12}"]
        for row in self.rows:
            mark = " (measured)" if row.is_measured else ""
            lines.append(
                f"{row.stage:<18} {_size(row.element_bytes):>12} {_size(row.held_bytes):>12}{mark}"
            )
        lines.append(f"{'budget':<18} {_size(self.budget_bytes):>12} left now")
        return "\n".join([*lines, "", self._verdict()]) + "\n"

    def _verdict(self) -> str:
        if self.needed_bytes is None:
            return "not known: no element could be made to measure"
        words = "fits" if self.fits else "does not fit"
        text = f"{words}: {_size(self.needed_bytes)} for what stages hold and an element in use"
        if self.largest_batch is None:
            return text
        if self.largest_batch < 1:
            return text + "; not even batches of one would"
        more = "as well" if self.fits else ""
        return f"{text}; batches of {self.largest_batch} would {more}".rstrip()


def of(dataset: Any) -> Plan:
    chain = _chain(dataset)
    known: dict[int, Row] = {}
    for this in chain:
        known[id(this)] = _row(this, known)
    rows = list(known.values())
    held = [row.held_bytes for row in rows]
    element = rows[-1].element_bytes
    needed = None if element is None or None in held else element + sum(held)  # type: ignore
    budget = _left()
    batch = next((this for this in reversed(chain) if this._kind in _BATCHES), None)
    size = batch._parameters["n"] if batch is not None else None
    return Plan(rows, element, size, needed, budget, _largest(rows, chain, size, needed, budget))


_BATCHES = ("Batch", "PaddedBatch")


def _chain(dataset: Any) -> list:
    """The dataset and all below it, sources first, each once."""
    found: dict[int, Any] = {}

    def visit(this: Any) -> None:
        for source in this._sources:
            visit(source)
        found.setdefault(id(this), this)

    visit(dataset)
    return list(found.values())


def _row(dataset: Any, known: dict[int, Row]) -> Row:
    n_bytes, is_measured = _element_bytes(dataset, known)
    held = _held_bytes(dataset, n_bytes)
    return Row(dataset._kind, n_bytes, held, is_measured, dataset._parameters.get("n"))


def _element_bytes(dataset: Any, known: dict[int, Row]) -> tuple[Optional[int], bool]:
    specs = dataset._core.specs
    if all(_specs.is_known(spec) and spec[0] is not None for spec in specs) and not any(
        spec[0].name == "string" for spec in specs
    ):
        return sum(_spec_bytes(spec) for spec in specs), False
    before = known[id(dataset._sources[0])] if dataset._sources else None
    if before is not None and before.element_bytes is not None:
        if dataset._kind in _HANDS_ON:
            return before.element_bytes, before.is_measured
        if dataset._kind == "Batch":
            return before.element_bytes * _batch_length(dataset), before.is_measured
    try:
        element = next(raw(dataset._core))
    except (StopIteration, errors.OpError):
        return None, True
    return sum(_tensor_bytes(component) for component in element), True


def _batch_length(dataset: Any) -> int:
    """The first one's: a dataset may have fewer elements than a batch."""
    n_elements = dataset._sources[0]._core.cardinality
    size = dataset._parameters["n"]
    return size if n_elements < 0 else min(size, n_elements)


def _spec_bytes(spec: tuple) -> int:
    n_bytes = spec[0].size
    for dim in spec[1]:
        n_bytes *= dim
    return n_bytes


def _tensor_bytes(component: Any) -> int:
    if not isinstance(component, _core.Tensor):
        return 0  # a window: its elements are counted where they were made
    value = component.numpy()
    if isinstance(value, bytes):
        return len(value)
    if value.dtype == object:
        return sum(len(text) for text in value.ravel())
    return value.nbytes


def _held_bytes(dataset: Any, element_bytes: Optional[int]) -> Optional[int]:
    """Beside the element that it hands on."""
    kind, n = dataset._kind, dataset._parameters.get("n")
    if kind == "Shuffle" and n is not None:
        return _shuffle_bytes(dataset, element_bytes, n)
    if kind == "Prefetch" and element_bytes is not None:
        return element_bytes * (_AUTO_WINDOW if n == -1 else n)
    if kind == "PaddedBatch":
        return element_bytes
    return 0 if element_bytes is not None else None


def _shuffle_bytes(dataset: Any, element_bytes: Optional[int], n: int) -> Optional[int]:
    n_elements = dataset._core.cardinality
    n_held = min(n, n_elements) if n_elements >= 0 else n
    if all(this._kind in _KNOWS_PLACES for this in _chain(dataset._sources[0])):
        return n_held * _PLACE_BYTES
    return None if element_bytes is None else n_held * element_bytes


def _left() -> int:
    budget = _core.budget()
    return max(0, budget["line"] - budget["claimed"])


def _largest(
    rows: list, chain: list, size: Optional[int], needed: Optional[int], budget: int
) -> Optional[int]:
    """The largest batch that would fit: memory grows with it from the batch stage on."""
    if size is None or needed is None:
        return None
    first = max(place for place, this in enumerate(chain) if this._kind in _BATCHES)
    fixed = sum(row.held_bytes for row in rows[:first])
    return max(0, int((budget - fixed) / ((needed - fixed) / size)))


def _size(n_bytes: Optional[int]) -> str:
    if n_bytes is None:
        return "?"
    amount, unit = float(n_bytes), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if amount < 1024:
            break
        amount, unit = amount / 1024, larger
    return f"{n_bytes} B" if unit == "B" else f"{amount:.1f} {unit}"
