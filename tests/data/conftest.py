# SPDX-License-Identifier: Apache-2.0
"""Each test has a runtime of its own, of which nothing is left claimed."""

import gc

import pytest

import sources


@pytest.fixture
def runtime(tmp_path):
    with sources.base.Runtime(cap_bytes=64 << 20, spill=tmp_path) as made:
        made.kept = []  # datasets whose callbacks passes may still call
        yield made
        made.kept.clear()
        gc.collect()  # datasets and passes that a test has forgotten
        assert made.claimed_bytes == 0
