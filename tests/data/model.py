# SPDX-License-Identifier: Apache-2.0
"""What each stage does, in plain Python, after the documentation of tf.data: slow, in order, on
numbers, tuples and lists. A stage is a function of a round, which gives its elements; a bad one is
a Bad in its place, at the moment at which it is met.

    batch(numbers(10), 4)

With `skips` a bad element is dropped where it is made, unless a zip is above it, which drops it with
what lies beside it."""

import dataclasses

MASK = (1 << 64) - 1


@dataclasses.dataclass(frozen=True)
class Bad:
    reason: str


@dataclasses.dataclass(frozen=True)
class Round:
    skips: bool = False  # bad elements
    number: int = 0  # of the round of repeats and lanes
    n_before: int = 0  # passes before this one

    def inner(self, number):
        return dataclasses.replace(self, number=draw(self.number, number))


def draw(key, number):
    """SplitMix64 by number."""
    z = (key + (number + 1) * 0x9E3779B97F4A7C15) & MASK
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def elements(stage, skips=False, n_before=0):
    return list(stage(Round(skips, 0, n_before)))


def numbers(*bounds):
    return lambda _: iter(range(*bounds))


def given(items):
    return lambda _: iter(items)


def map(stage, python):
    def run(at):
        for x in stage(at):
            try:
                yield x if isinstance(x, Bad) else python(x)
            except Exception as exception:
                if not at.skips:
                    yield Bad(str(exception))
    return run


def filter(stage, python):
    return lambda at: (x for x in stage(at) if isinstance(x, Bad) or python(x))


def interleave(stage, python, cycle=1, block=1):
    """As the loop of tf.data's iterator."""
    def run(at):
        source, lanes, ended = stage(at), [None] * cycle, False
        place = n_taken = n_lanes = 0
        while not ended or any(lane is not None for lane in lanes):
            lane = lanes[place]
            if lane is None and not ended:
                x = next(source, None)
                if isinstance(x, Bad):
                    n_lanes += 1
                    yield x
                elif x is None:
                    ended = True
                else:
                    n_lanes += 1
                    lanes[place] = python(x)(at.inner(n_lanes))
                continue
            x = None if lane is None else next(lane, None)
            if x is None:
                lanes[place], place, n_taken = None, (place + 1) % cycle, 0
                continue
            yield x
            n_taken += 1
            if n_taken == block:
                place, n_taken = (place + 1) % cycle, 0
    return run


def zip(*stages):
    def run(at):
        sources = [stage(dataclasses.replace(at, skips=False)) for stage in stages]
        while True:
            row = []
            for source in sources:
                row.append(next(source, None))
                if row[-1] is None:
                    break
            bad = [x for x in row if isinstance(x, Bad)]
            if bad and not at.skips:
                yield bad[0]
            if row[-1] is None:
                return
            if not bad:
                yield tuple(row)
    return run


def concatenate(one, other):
    def run(at):
        yield from one(at)
        yield from other(at)
    return run


def batch(stage, n, drop_remainder=False):
    def run(at):
        held = []
        for x in stage(at):
            if isinstance(x, Bad):
                yield x
                continue
            held.append(x)
            if len(held) == n:
                yield held
                held = []
        if held and not drop_remainder:
            yield held
    return run


def unbatch(stage):
    def run(at):
        for x in stage(at):
            if isinstance(x, Bad):
                yield x
            else:
                yield from x
    return run


def window(stage, size, shift, stride=1, drop_remainder=False):
    def run(at):
        held, span, n_skip = [], (size - 1) * stride + 1, 0
        source, ended = stage(at), False
        while True:
            while not ended and (n_skip > 0 or len(held) < span):
                x = next(source, None)
                if isinstance(x, Bad):
                    yield x
                elif x is None:
                    ended = True
                elif n_skip > 0:
                    n_skip -= 1
                else:
                    held.append(x)
            if not held or drop_remainder and len(held) < span:
                return
            yield held[::stride]
            n_skip, held = max(0, shift - len(held)), held[shift:]
    return run


def shuffle(stage, buffer_size, seed, reshuffles=True):
    def run(at):
        key = draw(seed, 0)
        if reshuffles:
            key = draw(draw(key, at.n_before), at.number)
        held, source, ended, n = [], stage(at), False, 0
        while True:
            while not ended and len(held) < buffer_size:
                x = next(source, None)
                if isinstance(x, Bad):
                    yield x
                elif x is None:
                    ended = True
                else:
                    held.append(x)
            if not held:
                return
            place = draw(key, n) * len(held) >> 64
            n += 1
            drawn, last = held[place], held.pop()
            if place < len(held):
                held[place] = last
            yield drawn
    return run


def repeat(stage, n):
    def run(at):
        for i in range(n):
            yield from stage(at.inner(i) if i else at)
    return run


def take(stage, n):
    def run(at):
        source, n_taken = stage(at), 0
        while n_taken != n:
            x = next(source, None)
            if x is None:
                return
            n_taken += not isinstance(x, Bad)
            yield x
    return run


def skip(stage, n):
    def run(at):
        n_skipped = 0
        for x in stage(at):
            if isinstance(x, Bad) or n_skipped == n:
                yield x
            else:
                n_skipped += 1
    return run


def shard(stage, n, index):
    def run(at):
        for i, x in enumerate_python(stage(at)):
            if isinstance(x, Bad) or i % n == index:
                yield x
    return run


enumerate_python = enumerate


def enumerate(stage, start=0):
    def run(at):
        for i, x in enumerate_python(stage(dataclasses.replace(at, skips=False)), start):
            if not isinstance(x, Bad):
                yield i, x
            elif not at.skips:
                yield x
    return run


def scan(stage, first, python):
    def run(at):
        state = first
        for x in stage(at):
            if isinstance(x, Bad):
                yield x
                continue
            state, made = python(state, x)
            yield made
    return run
