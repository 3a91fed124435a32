# SPDX-License-Identifier: Apache-2.0
"""Methods that TensorFlow's datasets do not have: error policy, watchdog, memory plan."""
from __future__ import annotations

import os
from collections.abc import Callable
from json import loads
from typing import TYPE_CHECKING, Any, Optional

from plimsoll import _core

from . import _memory_plan

if TYPE_CHECKING:
    from ._dataset import Dataset


class Own:
    """Methods of Dataset that are plimsoll's own, and ignore_errors()."""

    _core: Any
    _pass: Any
    _past: Any
    _stage: Callable[..., Any]

    def on_error(
        self,
        policy: str,
        max_bad: int = 0,
        max_bad_fraction: float = 0.0,
        quarantine: Any = None,
    ) -> Dataset:
        """Sets the policy for elements that cannot be made: a file that is missing, empty or corrupt, a
        function that fails.

        "fail" raises its error at its place, "skip" leaves it out, "quarantine" leaves it out and
        appends a line of JSON to the file `quarantine`. More bad elements than `max_bad`, or a larger
        share of all than `max_bad_fraction`, are an error; 0: any number.

        >>> def half(x):
        ...     if x == 1:
        ...         raise ValueError("one is bad")
        ...     return x
        >>> ds = tf.data.Dataset.range(3).map(lambda x: tf.py_function(half, [x], tf.int64))
        >>> list(ds.on_error("skip").as_numpy_iterator())
        [0, 2]
        """
        if policy not in ("fail", "skip", "quarantine"):
            raise ValueError(
                f"on_error(): the policy is 'fail', 'skip' or 'quarantine', this is {policy!r}"
            )
        if (policy == "quarantine") != (quarantine is not None):
            raise ValueError(
                "on_error(): the policy 'quarantine', and only it, needs the path of a file: "
                "quarantine='bad.jsonl'"
            )
        fields: dict[str, Any] = {"on_error": policy, "max_bad": int(max_bad)}
        fields["max_bad_fraction"] = float(max_bad_fraction)
        if quarantine is not None:
            fields["quarantine_path"] = os.fspath(quarantine)
        return self._stage(_core.ds_options(self._core, **fields), "OnError", policy=policy)

    def ignore_errors(self, log_warning: bool = False, name: Optional[str] = None) -> Dataset:
        """Leaves out elements that cannot be made: on_error("skip"). errors() tells which.

        >>> ds = tf.data.Dataset.from_tensor_slices([1., 2., 0., 4.])
        >>> ds = ds.map(lambda x: tf.debugging.check_numerics(1. / x, "error")).ignore_errors()
        >>> list(ds.as_numpy_iterator())
        [1.0, 0.5, 0.25]
        """
        dataset = self._stage(_core.ds_options(self._core, on_error="skip"), "IgnoreErrors", name=name)
        dataset._logs = bool(log_warning)
        return dataset

    def watchdog(self, seconds: float) -> Dataset:
        """Raises DeadlineExceededError, which names the stage, when nothing was made for so long.

        >>> list(tf.data.Dataset.range(2).watchdog(60).as_numpy_iterator())
        [0, 1]
        """
        if not seconds > 0:
            raise ValueError(f"watchdog(): the time is a number of seconds above 0, this is {seconds}")
        milliseconds = max(1, round(seconds * 1000))
        return self._stage(_core.ds_options(self._core, watchdog_ms=milliseconds), "Watchdog")

    def errors(self) -> list[dict]:
        """The bad elements of the last pass over this dataset, or over one that was made of it: the
        first 64, as dicts with message, stage, index, path, offset, op, code and reason.

        >>> ds = tf.data.TextLineDataset(["missing.txt"]).on_error("skip")
        >>> list(ds)
        []
        >>> ds.errors()[0]["path"]
        'missing.txt'
        """
        return list(self._last("bads") or [])

    def error_count(self) -> tuple[int, int]:
        """The number of bad elements in the last pass, and of all elements."""
        return self._last("n_bad") or 0, self._last("n_items") or 0

    def _last(self, what: str) -> Any:
        told = self._told()
        return None if told is None else told[what]

    def _told(self) -> Optional[dict]:
        """The statistics of the pass under way, or of the last one."""
        iterator = self._pass() if self._pass is not None else None
        return self._past if iterator is None else iterator._told()

    def _explain(self, json: bool = False) -> Any:
        """For plimsoll.explain(): the memory of a pass, and the times of the last one. A text, or a
        dict."""
        plan = _memory_plan.of(self)
        told = self._told()
        if json:
            return {**plan.as_dict(), "last_pass": told and loads(told["explain"][True])}
        return plan.as_text() + (f"\n{told['explain'][False]}" if told else "")
