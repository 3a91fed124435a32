# SPDX-License-Identifier: Apache-2.0
"""tf.config: devices, placement, threads.

    >>> import plimsoll.tf as tf
    >>> tf.config.list_physical_devices("CPU")
    [PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')]
"""
from __future__ import annotations

import collections
import types
from typing import Any, Dict, List, Optional

from .. import _core
from ..errors import OpError
from . import _not_implemented
from ._graph import context as _context, devices as _devices

__all__ = [
    "LogicalDevice",
    "LogicalDeviceConfiguration",
    "PhysicalDevice",
    "experimental",
    "functions_run_eagerly",
    "get_logical_device_configuration",
    "get_memory_info",
    "get_soft_device_placement",
    "get_visible_devices",
    "list_logical_devices",
    "list_physical_devices",
    "optimizer",
    "run_functions_eagerly",
    "set_logical_device_configuration",
    "set_soft_device_placement",
    "set_visible_devices",
    "threading",
]

PhysicalDevice = collections.namedtuple("PhysicalDevice", ["name", "device_type"])
LogicalDevice = collections.namedtuple("LogicalDevice", ["name", "device_type"])


class LogicalDeviceConfiguration(
    collections.namedtuple(
        "LogicalDeviceConfiguration", ["memory_limit", "experimental_priority"]
    )
):
    """A budget for a device, in MiB.

    >>> LogicalDeviceConfiguration(memory_limit=1024).memory_limit
    1024
    """

    def __new__(cls, memory_limit: Any = None, experimental_priority: Any = None, **more: Any) -> Any:
        return super().__new__(cls, memory_limit, experimental_priority)


_settings: Dict[str, Any] = {"strict": False, "limits": {}, "threads": 0, "inter_op": 0}
_configurations: Dict[Any, List[Any]] = {}


# ---- devices ----


def list_physical_devices(device_type: Optional[str] = None) -> List[PhysicalDevice]:
    """The devices to compute with: the CPU, and OpenCL devices as GPUs.

    >>> list_physical_devices("CPU")[0].device_type
    'CPU'
    """
    found = []
    for kind in ("CPU", "GPU"):
        if device_type in (None, kind):
            n = len(_devices.of_kind(kind))
            found += [PhysicalDevice(f"/physical_device:{kind}:{i}", kind) for i in range(n)]
    return found


def list_logical_devices(device_type: Optional[str] = None) -> List[LogicalDevice]:
    """Those that are visible, as tf.device() names them.

    >>> list_logical_devices("CPU")
    [LogicalDevice(name='/device:CPU:0', device_type='CPU')]
    """
    found = []
    for kind in ("CPU", "GPU"):
        if device_type in (None, kind):
            n = len(_devices.visible(kind))
            found += [LogicalDevice(f"/device:{kind}:{i}", kind) for i in range(n)]
    return found


def get_visible_devices(device_type: Optional[str] = None) -> List[PhysicalDevice]:
    """Those of list_physical_devices() that are used.

    >>> len(get_visible_devices("CPU"))
    1
    """
    every = list_physical_devices(device_type)
    return [d for d in every if _number(d) in _devices.visible(d.device_type)]


def set_visible_devices(devices: Any, device_type: Optional[str] = None) -> None:
    """Only these are used from now on; ValueError for one that there is not.

    >>> set_visible_devices(list_physical_devices("GPU"), "GPU")
    """
    wanted = _as_devices(devices)
    every = list_physical_devices()
    for device in wanted:
        if device not in every:
            raise ValueError(f"Unrecognized device: {device!r}")
        if device_type is not None and device.device_type != device_type:
            raise ValueError(f"Unrecognized device: {device!r} is no {device_type}")
    for kind in ("CPU", "GPU") if device_type is None else (device_type,):
        _devices.hide_all_but(kind, [_number(d) for d in wanted if d.device_type == kind])


def _as_devices(devices: Any) -> List[PhysicalDevice]:
    if devices is None:
        return []
    return [devices] if isinstance(devices, PhysicalDevice) else list(devices)


def _number(device: Any) -> int:
    return int(device.name.rpartition(":")[2])


def set_soft_device_placement(enabled: bool) -> None:
    """May the CPU compute ops that their device cannot? Else they are refused.

    >>> set_soft_device_placement(True)
    """
    if bool(enabled) == (not _settings["strict"]):
        return
    _core.set_strict(not enabled)
    _settings["strict"] = not enabled


def get_soft_device_placement() -> bool:
    """See set_soft_device_placement().

    >>> get_soft_device_placement()
    True
    """
    return not _settings["strict"]


def set_logical_device_configuration(device: Any, logical_devices: Any) -> None:
    """The budget of a device: that of the one configuration that is given for it.

    >>> set_logical_device_configuration(list_physical_devices("CPU")[0], None)
    """
    configurations = list(logical_devices or ())
    if len(configurations) > 1:
        raise NotImplementedError(
            "tf.config.set_logical_device_configuration: a device is not cut into several"
        )
    limits = [c.memory_limit for c in configurations if c.memory_limit is not None]
    if limits:
        if device.device_type == "CPU":
            raise ValueError("Setting memory limit on CPU is not supported: set PLIMSOLL_BUDGET")
        limits_now = dict(_settings["limits"])
        limits_now[f"/{device.device_type}:{_number(device)}"] = int(limits[0]) << 20
        _tell_core(limits=limits_now)
        _settings["limits"] = limits_now
    _configurations[device] = configurations


def get_logical_device_configuration(device: Any) -> Optional[List[Any]]:
    """The configuration that set_logical_device_configuration() set, or None.

    >>> get_logical_device_configuration(PhysicalDevice("/physical_device:GPU:7", "GPU"))
    """
    return _configurations.get(device)


def _tell_core(**settings: Any) -> None:
    given = {"strict": _settings["strict"], "limits": _settings["limits"], **settings}
    try:
        _core.set_devices(strict=given["strict"], limits=given["limits"])
    except OpError as error:
        raise RuntimeError(
            f"devices cannot be modified after being initialized: {error}"
        ) from error


def get_memory_info(device: str) -> Dict[str, int]:
    """Bytes in use on a device now, and their peak; of the CPU, what is
    claimed of the budget.

    >>> sorted(get_memory_info("CPU:0"))
    ['current', 'peak']
    """
    kind, _, number = device.upper().replace("DEVICE:", "").lstrip("/").partition(":")
    place = int(number) if number.isdigit() else 0
    shown = _devices.visible(kind) if kind in ("CPU", "GPU") else []
    if place >= len(shown):
        raise ValueError(f"No matching devices found for '{device}'")
    info = _devices.of_kind(kind)[shown[place]]
    if kind == "CPU":
        budget = _core.budget()
        return {"current": budget["claimed"], "peak": budget["peak"]}
    return {"current": info["in_use_bytes"], "peak": info["peak_bytes"]}


def _get_memory_usage(device: str) -> int:
    return get_memory_info(device)["current"]


def _reset_memory_stats(device: str) -> None:
    raise NotImplementedError("tf.config.experimental.reset_memory_stats: peaks are of the process")


def _set_memory_growth(device: Any, enable: bool) -> None:
    """Accepted: a device's memory is never taken before it is needed."""


def _get_memory_growth(device: Any) -> bool:
    return True


def _get_device_details(device: Any) -> Dict[str, Any]:
    if device.device_type == "CPU":
        return {}
    return {"device_name": _devices.of_kind("GPU")[_number(device)]["description"]}


# ---- functions and threads ----


def run_functions_eagerly(run_eagerly: bool) -> None:
    """tf.functions then run in Python, for debugging.

    >>> run_functions_eagerly(False)
    """
    _context.functions_run_eagerly = bool(run_eagerly)


def functions_run_eagerly() -> bool:
    """See run_functions_eagerly().

    >>> functions_run_eagerly()
    False
    """
    return _context.functions_run_eagerly


def _set_intra_op_parallelism_threads(num_threads: int) -> None:
    """How many threads compute; before anything is computed, else RuntimeError."""
    _core.configure(threads=int(num_threads))
    _settings["threads"] = int(num_threads)


def _get_intra_op_parallelism_threads() -> int:
    return _settings["threads"]


def _set_inter_op_parallelism_threads(num_threads: int) -> None:
    """Accepted: there is one pool of threads."""
    _settings["inter_op"] = int(num_threads)


def _get_inter_op_parallelism_threads() -> int:
    return _settings["inter_op"]


threading = types.SimpleNamespace(
    get_inter_op_parallelism_threads=_get_inter_op_parallelism_threads,
    get_intra_op_parallelism_threads=_get_intra_op_parallelism_threads,
    set_inter_op_parallelism_threads=_set_inter_op_parallelism_threads,
    set_intra_op_parallelism_threads=_set_intra_op_parallelism_threads,
)


def _set_jit(enabled: Any) -> None:
    if enabled:
        raise NotImplementedError("tf.config.optimizer.set_jit: there is no XLA")


optimizer = types.SimpleNamespace(
    get_experimental_options=lambda: {},
    get_jit=lambda: "",
    set_experimental_options=lambda options: None,
    set_jit=_set_jit,
)

experimental = types.SimpleNamespace(
    VirtualDeviceConfiguration=LogicalDeviceConfiguration,
    enable_op_determinism=lambda: None,
    get_device_details=_get_device_details,
    get_memory_growth=_get_memory_growth,
    get_memory_info=get_memory_info,
    get_memory_usage=_get_memory_usage,
    get_virtual_device_configuration=get_logical_device_configuration,
    get_visible_devices=get_visible_devices,
    list_logical_devices=list_logical_devices,
    list_physical_devices=list_physical_devices,
    reset_memory_stats=_reset_memory_stats,
    set_memory_growth=_set_memory_growth,
    set_virtual_device_configuration=set_logical_device_configuration,
    set_visible_devices=set_visible_devices,
)

__getattr__ = _not_implemented.getter("tf.config")
