# SPDX-License-Identifier: Apache-2.0
"""Devices by name, where some were hidden after they were listed.

TensorFlow programs list their devices, then say which are to be visible. The library numbers
devices when it first lists them, so what is hidden later is hidden here: the others are numbered
anew, and "/GPU:0" in the program is the first of them.
"""
from __future__ import annotations

from typing import Any, Dict, List, Optional

from plimsoll import _core

_hidden: Dict[str, List[int]] = {"CPU": [], "GPU": []}


def every() -> List[Dict[str, Any]]:
    """In the library's order: the CPU first."""
    return _core.devices()


def kind_of(device: Dict[str, Any]) -> str:
    return "GPU" if "GPU" in device["name"].upper() else "CPU"


def of_kind(kind: Optional[str]) -> List[Dict[str, Any]]:
    return [device for device in every() if kind is None or kind_of(device) == kind]


def visible(kind: str) -> List[int]:
    """Their numbers in the library."""
    return [i for i in range(len(of_kind(kind))) if i not in _hidden[kind]]


def hide_all_but(kind: str, numbers: List[int]) -> None:
    _hidden[kind] = [i for i in range(len(of_kind(kind))) if i not in numbers]


def physical_name(name: str) -> str:
    """A program's name for a device as the library's; one that is not visible is one that is not
    there, for the library to speak of."""
    kind, _, number = name.upper().rpartition(":")
    if not _hidden["GPU"] or "GPU" not in kind or not number.isdigit():
        return name
    shown = visible("GPU")
    place = int(number)
    return f"/GPU:{shown[place] if place < len(shown) else len(of_kind('GPU')) + place}"
