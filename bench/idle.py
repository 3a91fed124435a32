# SPDX-License-Identifier: Apache-2.0
"""A program that mostly waits, as a notebook kernel does: ten times a second it wakes and makes
some objects. What the supervisor costs while it runs is its own.
Usage: idle.py SECONDS"""

import sys
import time


def main():
    end = time.monotonic() + float(sys.argv[1])
    kept = []
    while time.monotonic() < end:
        kept = kept[-20:] + [[str(i) for i in range(1000)]]
        time.sleep(0.1)


main()
