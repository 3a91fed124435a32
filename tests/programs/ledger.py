# SPDX-License-Identifier: Apache-2.0
"""For test scripts: what the ledger of the run says, read from its file as src/ledger/layout.h has
it: two pages of header, then the line, and behind what seldom changes, charged."""
import os
import struct
import time

MIB = 1 << 20
HEADER_BYTES = 8192


def _word(offset):
    with open(os.environ["PLIMSOLL_LEDGER"], "rb") as file:
        head = file.read(HEADER_BYTES + 192)
    assert head[:8] == b"plimsoll" and struct.unpack_from("<I", head, 8)[0] & 0xFFFF == 6
    return struct.unpack_from("<Q", head, HEADER_BYTES + offset)[0]


def limit_bytes():
    return _word(0)


def charged_bytes():
    return _word(128)


def settle_below(n_bytes):
    """Waits until no more than `n_bytes` are charged: what is measured, not claimed, is seen only
    at the watcher's next look. Returns what is charged; the minute is a guard against a hang."""
    end = time.monotonic() + 60
    while charged_bytes() > n_bytes and time.monotonic() < end:
        time.sleep(0.01)
    return charged_bytes()
