# SPDX-License-Identifier: Apache-2.0
"""Sizes as the program reads and writes them: 512M, 1.5G, 2GiB; 30.5 MiB."""
import re

UNITS = "KMGTPE"
_SIZE = re.compile(r"(\d+(?:\.\d+)?)(?:([kmgtpe])(?:i?b)?|b)?", re.IGNORECASE)


def parse(text):
    """The bytes of a size. ValueError, with what to write instead, if `text` is not one."""
    match = _SIZE.fullmatch(text.strip())
    if not match or ("." in match[1] and not match[2]):
        raise ValueError(f"'{text[:60]}' is not a size: write bytes, or 512M, 1.5G, 2GiB")
    power = UNITS.index(match[2].upper()) + 1 if match[2] else 0
    whole, _, fraction = match[1].partition(".")
    n_bytes = (int(whole + fraction) << 10 * power) // 10 ** len(fraction)
    if not 0 < n_bytes <= 1 << 63:
        raise ValueError(f"'{text[:60]}' is not a size that a cell can be given")
    return n_bytes


def show(n_bytes):
    """`n_bytes` for people, with one decimal."""
    if abs(n_bytes) < 1 << 10:
        return f"{n_bytes} B"
    value = float(n_bytes)
    for letter in UNITS:
        value /= 1024
        if round(abs(value), 1) < 1024:
            break
    return f"{value:.1f} {letter}iB"


def show_change(n_bytes):
    """With its sign; a dash for no change."""
    return f"{'+' if n_bytes > 0 else ''}{show(n_bytes)}" if n_bytes else "-"
