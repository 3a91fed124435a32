# SPDX-License-Identifier: Apache-2.0
"""Pipelines made at random give what a model in plain Python gives: whatever the threads, whatever
the budget, with bad elements at their places or skipped."""

import itertools
import random

import model
import numpy as np
import pytest
import sources
from datasets import AUTO, I64, Pass, everything, from_range
from sources import base

N_SEEDS = 40
N_CUT = 40


def pair_sum(a, b):
    return (np.int64(a + 1000 * b),)


def unlucky(x):
    if x % 11 == 5:
        raise ValueError(f"{x} is unlucky")
    return x * 3 + 1


class Both:
    """A pipeline of the library's, and the same of the model."""

    def __init__(self, runtime, rng, n_parallel, size):
        self.runtime, self.rng, self.n_parallel = runtime, rng, n_parallel
        self.real, self.model = from_range(runtime, size), model.numbers(size)

    def parallel(self):
        return self.n_parallel

    def add_map(self):
        self.real = self.real.map(lambda x: (np.int64(unlucky(x)),), n_parallel=self.parallel())
        self.model = model.map(self.model, unlucky)

    def add_filter(self):
        n = self.rng.randint(2, 4)
        self.real = self.real.filter(lambda x: x % n != 0)
        self.model = model.filter(self.model, lambda x: x % n != 0)

    def add_take(self):
        n = self.rng.choice([0, 5, 20, 50])
        self.real, self.model = self.real.take(n), model.take(self.model, n)

    def add_skip(self):
        n = self.rng.choice([0, 1, 7])
        self.real, self.model = self.real.skip(n), model.skip(self.model, n)

    def add_shard(self):
        n = self.rng.randint(1, 3)
        index = self.rng.randrange(n)
        self.real, self.model = self.real.shard(n, index), model.shard(self.model, n, index)

    def add_repeat(self):
        n = self.rng.randint(0, 3)
        self.real, self.model = self.real.repeat(n), model.repeat(self.model, n)

    def add_shuffle(self):
        n, seed, again = self.rng.choice([1, 4, 1000]), self.rng.randrange(99), self.rng.random() < .7
        self.real = self.real.shuffle(n, seed, again)
        self.model = model.shuffle(self.model, n, seed, again)

    def add_batch(self):
        n, drop = self.rng.randint(1, 6), self.rng.random() < .5
        self.real = self.real.batch(n, drop).unbatch()
        self.model = model.unbatch(model.batch(self.model, n, drop))

    def add_window(self):
        size, shift, stride = (self.rng.randint(1, 4) for _ in range(3))
        drop = self.rng.random() < .5
        self.real = self.real.window(size, shift, stride, drop).flat_map(lambda x: x)
        self.model = model.interleave(
            model.window(self.model, size, shift, stride, drop), lambda x: model.given(x))

    def add_interleave(self):
        cycle, block, top = self.rng.randint(1, 4), self.rng.randint(1, 3), self.rng.randint(1, 5)
        seed = self.rng.randrange(9)

        def real(x):
            return from_range(self.runtime, int(x), int(x + x % top)).shuffle(3, seed)

        def modelled(x):
            return model.shuffle(model.numbers(int(x), int(x + x % top)), 3, seed)

        self.real = self.real.interleave(real, [I64], cycle, block, self.parallel())
        self.model = model.interleave(self.model, modelled, cycle, block)

    def add_concatenate(self):
        self.real = self.real.concatenate(from_range(self.runtime, 5))
        self.model = model.concatenate(self.model, model.numbers(5))

    def add_zip(self):
        beside = from_range(self.runtime, 30).shuffle(30, 1)
        self.real = self.real.zip(beside).map(pair_sum)
        self.model = model.map(
            model.zip(self.model, model.shuffle(model.numbers(30), 30, 1)),
            lambda x: x[0] + 1000 * x[1])

    def add_enumerate(self):
        self.real = self.real.enumerate(7).map(pair_sum, n_parallel=self.parallel())
        self.model = model.map(model.enumerate(self.model, 7), lambda x: x[0] + 1000 * x[1])

    def add_scan(self):
        self.real = self.real.scan([np.int64(1)], lambda s, x: (s + x, s * 2 + x), [I64, I64])
        self.model = model.scan(self.model, 1, lambda s, x: (s + x, s * 2 + x))

    def add_prefetch(self):
        self.real = self.real.prefetch(self.rng.choice([0, 1, 3, AUTO]))

    def build(self):
        stages = [name for name in dir(self) if name.startswith("add_")]
        for _ in range(self.rng.randint(1, 7)):
            getattr(self, self.rng.choice(stages))()
        return self


def plain(found):
    return [None if isinstance(x, (sources.base.Refused, model.Bad)) else int(x) for x in found]


def check(runtime, seed, n_parallel, skips, options):
    both = Both(runtime, random.Random(seed), n_parallel, 40).build()
    real = both.real.options(on_error=sources.SKIP if skips else sources.FAIL, **options)
    for n_before in range(2):
        wanted = plain(itertools.islice(both.model(model.Round(skips, 0, n_before)), 5000))
        assert plain(everything(real)) == wanted
    if real.cardinality >= 0 and not skips and None not in wanted:
        assert real.cardinality == len(wanted)


@pytest.mark.parametrize("n_parallel", [1, 2, AUTO])
@pytest.mark.parametrize("skips", [False, True])
@pytest.mark.parametrize("part", range(4))
def test_a_pipeline_at_random_gives_what_the_model_gives(runtime, part, skips, n_parallel):
    for seed in range(part, N_SEEDS, 4):
        check(runtime, seed, n_parallel, skips, {})


@pytest.mark.parametrize("n_parallel", [1, 3])
@pytest.mark.parametrize("part", range(2))
def test_a_pass_that_is_cut_anywhere_goes_on_elsewhere(runtime, tmp_path, part, n_parallel):
    """In another pass, over a dataset that was made anew and never gone through."""
    path = tmp_path / "state"
    for seed in range(200 + part, 200 + N_CUT, 2):
        wanted = elements_of(runtime, seed, n_parallel)
        cut = random.Random(seed).randint(0, len(wanted))
        first = Both(runtime, random.Random(seed), n_parallel, 40).build().real
        everything(first)  # it is the second pass that is cut
        with Pass(first) as one:
            found = [element(one) for _ in range(cut)]
            base.call("pl_iterator_save", one, base.path_text(path))
        other = Both(runtime, random.Random(seed), n_parallel, 40).build().real
        with Pass(other) as one:
            base.call("pl_iterator_restore", one, base.path_text(path))
            found += one.everything()
        assert plain(found) == wanted, f"seed {seed}, cut at {cut}"


def elements_of(runtime, seed, n_parallel):
    both = Both(runtime, random.Random(seed), n_parallel, 40).build()
    return plain(model.elements(both.model, n_before=1))


def element(one):
    try:
        return next(one)
    except base.Refused as refused:
        return refused


@pytest.mark.parametrize("budget_bytes", [1, 4096, 1 << 20])
def test_the_order_does_not_depend_on_the_budget(runtime, budget_bytes):
    for seed in range(100, 110):
        check(runtime, seed, 3, False, {"budget_bytes": budget_bytes, "n_threads": 3})


def test_in_any_order_all_elements_are_there(runtime):
    def lane(x):
        return from_range(runtime, int(x) * 10, int(x) * 10 + 7)

    some = from_range(runtime, 30).interleave(lane, [I64], 4, 2, 3)
    mixed = some.map(lambda x: (x + 1,), n_parallel=3).prefetch(4)
    found = everything(mixed.options(nondeterministic=True, n_threads=3))
    assert sorted(found) == [x * 10 + i + 1 for x in range(30) for i in range(7)]
