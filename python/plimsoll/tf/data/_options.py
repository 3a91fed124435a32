# SPDX-License-Identifier: Apache-2.0
"""tf.data.Options: settings for a whole pipeline.

All of TensorFlow's properties can be set, with its types. Most are hints to an optimizer that this
runtime does not have, and change nothing.
"""
from __future__ import annotations

import enum
from typing import Any, Optional


class AutoShardPolicy(enum.IntEnum):
    """An option of distributed training, which is not implemented: kept as it was set."""

    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2
    HINT = 3


class ExternalStatePolicy(enum.IntEnum):
    WARN = 0
    IGNORE = 1
    FAIL = 2


class AutotuneAlgorithm(enum.IntEnum):
    DEFAULT = 0
    HILL_CLIMB = 1
    GRADIENT_DESCENT = 2
    MAX_PARALLELISM = 3
    STAGE_BASED = 4


class _Properties:
    """Properties of known names and types, None until they are set."""

    _types: dict[str, Any] = {}
    _aliases: dict[str, str] = {}

    def __init__(self) -> None:
        object.__setattr__(self, "_values", {})

    def __getattr__(self, name: str) -> Any:
        name = type(self)._aliases.get(name, name)
        if name.startswith("__") or name not in type(self)._types:
            raise AttributeError(f"'{type(self).__name__}' has no property '{name}'")
        kind = type(self)._types[name]
        if isinstance(kind, type) and issubclass(kind, _Properties):
            return self._values.setdefault(name, kind())
        return self._values.get(name)

    def __setattr__(self, name: str, value: Any) -> None:
        name = type(self)._aliases.get(name, name)
        if name not in type(self)._types:
            raise AttributeError(f"Cannot set the property {name} on {type(self).__name__}.")
        kind = type(self)._types[name]
        if value is not None and not isinstance(value, kind):
            raise TypeError(
                f'Property "{name}" must be of type {kind}, got: {value!r} (type: {type(value)}).'
            )
        self._values[name] = value

    def _set(self) -> dict[str, Any]:
        """The options that have been set, groups as dicts."""
        values = {
            name: value._set() if isinstance(value, _Properties) else value
            for name, value in self._values.items()
        }
        return {name: value for name, value in values.items() if value not in (None, {})}

    def _take(self, other: Any) -> None:
        for name, value in other._values.items():
            if isinstance(value, _Properties):
                getattr(self, name)._take(value)
            elif value is not None:
                self._values[name] = value

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._set() == other._set()  # type: ignore

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self._set().items())
        return f"<{type(self).__name__} {values}>" if values else f"<{type(self).__name__}>"


class AutotuneOptions(_Properties):
    """options.autotune. `ram_budget` limits prefetching.

    >>> options = tf.data.Options()
    >>> options.autotune.ram_budget = 64 << 20
    """

    _types = {
        "enabled": bool,
        "cpu_budget": int,
        "ram_budget": int,
        "autotune_algorithm": AutotuneAlgorithm,
        "initial_parallelism": int,
        "min_parallelism": int,
    }


class DistributeOptions(_Properties):
    _types = {"auto_shard_policy": AutoShardPolicy, "num_devices": int}


class OptimizationOptions(_Properties):
    _types = dict.fromkeys(
        (
            "apply_default_optimizations",
            "filter_fusion",
            "filter_parallelization",
            "inject_prefetch",
            "map_and_batch_fusion",
            "map_and_filter_fusion",
            "map_fusion",
            "map_parallelization",
            "noop_elimination",
            "parallel_batch",
            "seq_interleave_prefetch",
            "shuffle_and_repeat_fusion",
        ),
        bool,
    )


class ThreadingOptions(_Properties):
    """options.threading. `private_threadpool_size` is the number of a pass's threads.

    >>> options = tf.data.Options()
    >>> options.threading.private_threadpool_size = 2
    """

    _types = {"max_intra_op_parallelism": int, "private_threadpool_size": int}


class Options(_Properties):
    """Options of a dataset, which with_options() applies to it and all below it.

    >>> options = tf.data.Options()
    >>> options.deterministic = False
    >>> tf.data.Dataset.range(3).with_options(options).options().deterministic
    False
    """

    _types = {
        "autotune": AutotuneOptions,
        "dataset_name": str,
        "deterministic": bool,
        "experimental_distribute": DistributeOptions,
        "experimental_external_state_policy": ExternalStatePolicy,
        "experimental_optimization": OptimizationOptions,
        "experimental_slack": bool,
        "experimental_symbolic_checkpoint": bool,
        "experimental_warm_start": bool,
        "framework_type": str,
        "threading": ThreadingOptions,
    }
    _aliases = {
        "experimental_deterministic": "deterministic",
        "experimental_threading": "threading",
        "distribute": "experimental_distribute",
    }

    def merge(self, options: Options) -> Options:
        """These options, and those of the other where it says something."""
        merged = Options()
        merged._take(self)
        merged._take(options)
        return merged

    def _fields(self) -> dict[str, Any]:
        """The options that _core.ds_options() honours."""
        fields: dict[str, Any] = {}
        if self.deterministic is False:
            fields["nondeterministic"] = True
        n_threads: Optional[int] = self.threading.private_threadpool_size
        if n_threads is not None and n_threads > 0:
            fields["n_threads"] = n_threads
        budget_bytes: Optional[int] = self.autotune.ram_budget
        if budget_bytes is not None and budget_bytes > 0:
            fields["budget_bytes"] = budget_bytes
        return fields
