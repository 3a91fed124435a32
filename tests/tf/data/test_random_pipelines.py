# SPDX-License-Identifier: Apache-2.0
"""Random pipelines of tf.data give what a model in plain Python lists gives: each element, how many
there are, what is said of them before, sums by reduce, and the rest of a pass that was saved.

Longer, by hand:  PLIMSOLL_TEST_ROUNDS=50 PLIMSOLL_TEST_SEED=1000 pytest tests/tf/data/test_random_pipelines.py"""
import pytest

import plimsoll.tf as tf
from pipeline_programs import check
from random_programs import ROUNDS, SEED


def seeds(n):
    return range(SEED, SEED + n * ROUNDS)


def test_random_pipelines_give_what_the_model_gives(tmp_path):
    for seed in seeds(200):
        check(seed, tmp_path / "pass")


@pytest.mark.parametrize("name", ["skip", "concatenate", "enumerate"])
def test_the_model_sees_what_is_wrong(monkeypatch, tmp_path, name):
    right = getattr(tf.data.Dataset, name)
    monkeypatch.setattr(tf.data.Dataset, name,
                        lambda self, *args: right(self, *args).take(3).repeat(2))
    with pytest.raises(AssertionError):
        for seed in range(100):
            check(seed, tmp_path / "pass")
