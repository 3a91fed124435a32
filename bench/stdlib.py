# SPDX-License-Identifier: Apache-2.0
"""Parts of CPython's own test suite (Debian: libpython3.X-testsuite): many small objects, made and
dropped by code that nobody wrote for a benchmark. Usage: stdlib.py [SCALE]"""

import contextlib
import io
import random
import unittest
import warnings

import region

# In the order in which a smaller scale takes them: the first three are a ninth of the time.
MODULES = ("test_json", "test_dict", "test_collections", "test_set", "test_ast", "test_unicode",
           "test_bytes", "test_deque", "test_array")  # fmt: skip


def load(name):
    return unittest.defaultTestLoader.loadTestsFromName(f"test.{name}")


def main():
    warnings.simplefilter("ignore")
    n_modules = max(3, round(region.scale() * len(MODULES)))
    suites = [load(name) for name in MODULES[:n_modules]]
    n_run = n_failed = 0
    with region.measured(), contextlib.redirect_stdout(io.StringIO()):
        for suite in suites:
            random.seed(1)
            result = unittest.TextTestRunner(stream=io.StringIO(), verbosity=0).run(suite)
            n_run += result.testsRun
            n_failed += len(result.failures) + len(result.errors)
    print(n_run, n_failed)


main()
