# SPDX-License-Identifier: Apache-2.0
"""Stages that the library does not have, as Python iterators over passes of it.

    step     one element, as a tuple of components; or Failed
    Failed   an element that is bad, in the place where it would have been

A Python generator ends with its first exception, a pass goes on behind a bad element. So failures
travel through generators as steps, and are raised where the library asks for the next element.
"""
from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, Optional, Union

from plimsoll import _core, errors

from plimsoll.tf.data._stage.user_function import dataset_of
from plimsoll.tf.data._iterator import Skipped, raw, skipped_in


class Failed:
    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        self.error = error


Step = Union[tuple, Failed]


class _Here(threading.local):
    """Where passes that begin now report skipped elements: the stage that steps."""

    skipped: Optional[Skipped] = None


_here = _Here()


def steps(core: _core.Dataset) -> Iterator[Step]:
    """A pass over the dataset, bad elements included."""
    iterator, skipped, n_told = raw(core), _here.skipped, 0
    while True:
        step: Optional[Step] = None
        try:
            step = next(iterator)
        except StopIteration:
            pass
        except (errors.CancelledError, errors.DeadlineExceededError):
            raise
        except errors.OpError as error:
            step = Failed(error.with_traceback(None))  # the message is in its cause
        n_bad, _ = iterator.bad_count()
        if n_bad > n_told and skipped is not None:
            skipped.add(n_bad - n_told, iterator.bads()[n_told:])
            n_told = n_bad
        if step is None:
            return
        yield step


class _Raised:
    """The steps of a generator, for the library: failures are raised."""

    __slots__ = ("_steps", "_skipped")

    def __init__(self, made: Iterator[Step], skipped: Skipped) -> None:
        self._steps, self._skipped = made, skipped

    def __iter__(self) -> _Raised:
        return self

    def __next__(self) -> tuple:
        before, _here.skipped = _here.skipped, self._skipped
        try:
            step = next(self._steps)
        finally:
            _here.skipped = before
        if isinstance(step, Failed):
            raise step.error
        return step  # type: ignore[return-value]


def stage(
    begin: Callable[[], Iterator[Step]],
    specs: list,
    cardinality: int,
    over: Optional[_core.Dataset] = None,
) -> _core.Dataset:
    """A dataset of the steps that begin() makes, anew in each pass. `over`: another such stage, which
    only this one knows."""
    skipped = skipped_in.get(over) if over is not None else None
    skipped = Skipped() if skipped is None else skipped
    core = _core.ds_generator(lambda: _Raised(begin(), skipped), specs, cardinality)
    skipped_in[core] = skipped
    return core


def scalar(component: Any) -> Any:
    """The value of a scalar tensor, as Python has it."""
    value = component.numpy()
    return value if isinstance(value, bytes) else value.item()


def take_while(core: _core.Dataset, marked: _core.Dataset) -> _core.Dataset:
    """The elements up to the first for which the predicate, the last component of `marked`, is
    false."""

    def begin() -> Iterator[Step]:
        for step in steps(marked):
            if isinstance(step, Failed):
                yield step
            elif not scalar(step[-1]):
                return
            else:
                yield step[:-1]

    return stage(begin, core.specs, _at_most(core.cardinality))


def _at_most(cardinality: int) -> int:
    return 0 if cardinality == 0 else -2


def unique(core: _core.Dataset) -> _core.Dataset:
    """Each element once, where it is first met; one component."""

    def begin() -> Iterator[Step]:
        seen: set = set()
        for step in steps(core):
            if isinstance(step, Failed):
                yield step
                continue
            value = step[0].numpy()
            key = value if isinstance(value, bytes) else (value.shape, _bytes_of(value))
            if key not in seen:
                seen.add(key)
                yield step

    return stage(begin, core.specs, _at_most(core.cardinality))


def _bytes_of(value: Any) -> Any:
    return tuple(value.ravel()) if value.dtype == object else value.tobytes()


def assert_cardinality(core: _core.Dataset, n_expected: int) -> _core.Dataset:
    """The same elements, of which there must be so many; -1: no end."""

    def begin() -> Iterator[Step]:
        n_elements = 0
        for step in steps(core):
            n_elements += 1
            if 0 <= n_expected < n_elements:
                yield Failed(_wrong(n_expected, f"at least {n_elements}"))
                return
            yield step
        if n_expected == -1 or n_elements < n_expected:
            yield Failed(_wrong(n_expected, f"only {n_elements}"))

    return stage(begin, core.specs, n_expected)


def _wrong(n_expected: int, n_elements: str) -> errors.FailedPreconditionError:
    expected = "an infinite number of" if n_expected == -1 else str(n_expected)
    return errors.FailedPreconditionError(
        None,
        None,
        f"Input dataset was expected to contain {expected} elements but contained {n_elements} "
        "elements.",
    )


def group_by_window(
    keyed: _core.Dataset,
    specs: list,
    size_of: Callable[[int], int],
    reduce: Callable[[Any, _core.Dataset], _core.Dataset],
    given: list,
) -> _core.Dataset:
    """Elements are gathered by their key, the first component; when a key has as many as size_of()
    says, or at the end (then in the order of keys), what reduce() makes of them is handed on."""

    def begin() -> Iterator[Step]:
        windows: dict[int, list] = {}
        keys: dict[int, Any] = {}
        for step in steps(keyed):
            if isinstance(step, Failed):
                yield step
                continue
            key = scalar(step[0])
            keys.setdefault(key, step[0])
            window = windows.setdefault(key, [])
            window.append(step[1:])
            if len(window) >= size_of(key):
                yield from steps(reduce(keys[key], dataset_of(windows.pop(key), specs)))
        for key in sorted(windows):
            yield from steps(reduce(keys[key], dataset_of(windows[key], specs)))

    return stage(begin, given, _at_most(keyed.cardinality), over=keyed)


def chosen(
    cores: list,
    specs: list,
    choices: Callable[[list], Iterator[Union[int, Failed]]],
    stop_on_empty: bool,
    cardinality: int,
) -> _core.Dataset:
    """The next element of one of several datasets: of which, choices() says, given a list that tells
    which of them still have some."""

    def begin() -> Iterator[Step]:
        passes: list[Optional[Iterator[Step]]] = [steps(core) for core in cores]
        alive = [True] * len(cores)
        for choice in choices(alive):
            if isinstance(choice, Failed):
                yield choice
                continue
            step = next(passes[choice], None) if alive[choice] else None  # type: ignore[arg-type]
            if step is not None:
                yield step
                continue
            alive[choice], passes[choice] = False, None
            if stop_on_empty or not any(alive):
                return

    return stage(begin, specs, cardinality)
