# SPDX-License-Identifier: Apache-2.0
"""FarmHash's Fingerprint64, by which TensorFlow puts texts into buckets.

The same number on every machine and in every version: a model that was trained with it stays valid.
"""
from __future__ import annotations

from typing import Tuple

_MASK = (1 << 64) - 1
_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F


def _word(text: bytes, at: int, n: int = 8) -> int:
    return int.from_bytes(text[at:at + n], "little")


def _turned(value: int, by: int) -> int:
    return (value >> by | value << (64 - by)) & _MASK


def _mixed(value: int) -> int:
    return value ^ value >> 47


def _of_two(u: int, v: int, by: int) -> int:
    a = _mixed((u ^ v) * by & _MASK)
    return _mixed((v ^ a) * by & _MASK) * by & _MASK


def _short(text: bytes) -> int:
    n = len(text)
    by = _K2 + n * 2
    if n >= 8:
        a, b = (_word(text, 0) + _K2) & _MASK, _word(text, n - 8)
        c, d = (_turned(b, 37) * by + a) & _MASK, (_turned(a, 25) + b) * by & _MASK
        return _of_two(c, d, by)
    if n >= 4:
        return _of_two((n + (_word(text, 0, 4) << 3)) & _MASK, _word(text, n - 4, 4), by)
    if n > 0:
        y, z = text[0] + (text[n >> 1] << 8), n + (text[n - 1] << 2)
        return _mixed((y * _K2 ^ z * _K0) & _MASK) * _K2 & _MASK
    return _K2


def _medium(text: bytes) -> int:
    n = len(text)
    by = _K2 + n * 2
    a, b = _word(text, 0) * (_K1 if n <= 32 else _K2) & _MASK, _word(text, 8)
    c, d = _word(text, n - 8) * by & _MASK, _word(text, n - 16) * _K2 & _MASK
    y = (_turned((a + b) & _MASK, 43) + _turned(c, 30) + d) & _MASK
    z = _of_two(y, (a + _turned((b + _K2) & _MASK, 18) + c) & _MASK, by)
    if n <= 32:
        return z
    e, f = _word(text, 16) * by & _MASK, _word(text, 24)
    g, h = (y + _word(text, n - 32)) * by & _MASK, (z + _word(text, n - 24)) * by & _MASK
    return _of_two((_turned((e + f) & _MASK, 43) + _turned(g, 30) + h) & _MASK,
                   (e + _turned((f + a) & _MASK, 18) + g) & _MASK, by)


def _of_32(text: bytes, at: int, a: int, b: int) -> Tuple[int, int]:
    w, x, y, z = (_word(text, at + i) for i in (0, 8, 16, 24))
    a += w
    b = _turned((b + a + z) & _MASK, 21)
    c = a
    a += x + y
    b += _turned(a & _MASK, 44)
    return (a + z) & _MASK, (b + c) & _MASK


def _long(text: bytes) -> int:
    seed = 81
    x, y = seed, (seed * _K1 + 113) & _MASK
    z = _mixed((y * _K2 + 113) & _MASK) * _K2 & _MASK
    v, w = (0, 0), (0, 0)
    x = (x * _K2 + _word(text, 0)) & _MASK
    end = (len(text) - 1) // 64 * 64
    last = len(text) - 64
    for at in range(0, end, 64):
        x = _turned((x + y + v[0] + _word(text, at + 8)) & _MASK, 37) * _K1 & _MASK
        y = _turned((y + v[1] + _word(text, at + 48)) & _MASK, 42) * _K1 & _MASK
        x ^= w[1]
        y = (y + v[0] + _word(text, at + 40)) & _MASK
        z = _turned((z + w[0]) & _MASK, 33) * _K1 & _MASK
        v = _of_32(text, at, v[1] * _K1 & _MASK, (x + w[0]) & _MASK)
        w = _of_32(text, at + 32, (z + w[1]) & _MASK, (y + _word(text, at + 16)) & _MASK)
        z, x = x, z
    by = (_K1 + ((z & 0xFF) << 1)) & _MASK
    w = ((w[0] + (len(text) - 1 & 63)) & _MASK, w[1])
    v = ((v[0] + w[0]) & _MASK, v[1])
    w = ((w[0] + v[0]) & _MASK, w[1])
    x = _turned((x + y + v[0] + _word(text, last + 8)) & _MASK, 37) * by & _MASK
    y = _turned((y + v[1] + _word(text, last + 48)) & _MASK, 42) * by & _MASK
    x ^= w[1] * 9 & _MASK
    y = (y + v[0] * 9 + _word(text, last + 40)) & _MASK
    z = _turned((z + w[0]) & _MASK, 33) * by & _MASK
    v = _of_32(text, last, v[1] * by & _MASK, (x + w[0]) & _MASK)
    w = _of_32(text, last + 32, (z + w[1]) & _MASK, (y + _word(text, last + 16)) & _MASK)
    z, x = x, z
    return _of_two((_of_two(v[0], w[0], by) + _mixed(y) * _K0 + z) & _MASK,
                   (_of_two(v[1], w[1], by) + x) & _MASK, by)


def fingerprint64(text: bytes) -> int:
    """A number below 2**64.

    >>> from plimsoll.tf._ops.string_fingerprint import fingerprint64
    >>> [fingerprint64(text) % 3 for text in (b"Hello", b"TensorFlow", b"2.x")]
    [0, 2, 2]
    """
    if len(text) <= 16:
        return _short(text)
    return _medium(text) if len(text) <= 64 else _long(text)
