# SPDX-License-Identifier: Apache-2.0
"""Random ops in a mapped graph draw anew for each element of each round and pass, and the same
whatever the threads."""

import contextlib
import ctypes

import mapping
import numpy as np
from datasets import Stage, from_range
from sources import base


@contextlib.contextmanager
def drawn(runtime, n, n_parallel, rounds=1):
    """Elements (number, three normal numbers)."""
    with base.Graph() as graph:
        number = graph.placeholder("int64", ())
        noise = graph.add("random_normal", shape=(3,), seed=7)
        with base.Session(graph, runtime) as session:
            numbers = from_range(runtime, n)
            noisy = mapping.mapped(numbers, session, [number], [number, noise], n_parallel)
            yield Stage("repeat", noisy, ctypes.c_int64(rounds))


def gone_through(dataset):
    return [(int(number), tuple(noise)) for number, noise in dataset]


def test_every_element_of_every_round_draws_its_own(runtime):
    with drawn(runtime, 20, 1, rounds=2) as dataset:
        found = gone_through(dataset)
    assert [number for number, _ in found] == 2 * list(range(20))
    assert len({noise for _, noise in found}) == 40


def test_the_number_of_threads_does_not_change_what_is_drawn(runtime):
    found = []
    for n_parallel in (1, 2, 7, mapping.AUTO):
        with drawn(runtime, 50, n_parallel, rounds=2) as dataset:
            found.append(gone_through(dataset))
    assert all(some == found[0] for some in found)


def test_the_next_pass_over_a_dataset_draws_others(runtime):
    with drawn(runtime, 10, 2) as dataset:
        first, second = gone_through(dataset), gone_through(dataset)
    assert not {noise for _, noise in first} & {noise for _, noise in second}
    assert np.isfinite([noise for _, noise in first + second]).all()
