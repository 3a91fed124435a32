# SPDX-License-Identifier: Apache-2.0
"""Runs of a graph, each in a runtime of its own, at budgets down to a sixteenth of what its values
take together. Every plan is held to what it states:

    claimed beyond what was there before <= stated <= budget
    stated <= 1.25 x the most that was claimed

and a refusal to the budget that it names: with just that, the run goes well."""

import itertools
import re

import numpy as np
import runtime

MIB = 1 << 20
CAP = 4 * MIB  # slabs for small results are a 64th of it, and at least 64 KiB
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
HOWS = ("memory", "window", "transposed", "transposed window", "strided", "strided window",
        "constant", "variable", "file")  # fmt: skip
_names = itertools.count()


class Given:
    """A node whose value comes from outside, and how it does."""

    def __init__(self, graph, folder, array, dtype=None, how="window"):
        self.array, self.how = np.asarray(array), how
        self.dtype = dtype or self.array.dtype.name
        self.kind = how if how in ("constant", "variable", "file") else "placeholder"
        self.path = None
        if "window" in how or how == "file":
            self.path = folder / f"given{next(_names)}.npy"
            self._save()
        more = {"path": self.path} if how == "file" else {}
        self.node = graph.source(self.kind, self.dtype, self.array.shape, **more)

    def _save(self):
        stored = self._stored()
        halves = np.array(runtime.to_bfloat16(stored)) if self.dtype == "bfloat16" else None
        np.save(self.path, stored if halves is None else halves.view("V2"))

    def _stored(self):
        """What the tensor is a view of."""
        if "transposed" in self.how:
            return np.array(self.array.T, order="C")
        if "strided" in self.how:
            shape = self.array.shape
            base = np.zeros([self._step(i) * dim + 1 for i, dim in enumerate(shape)],
                            self.array.dtype)
            base[tuple(slice(self._step(i) * dim, 0, -self._step(i))
                       for i, dim in enumerate(shape))] = self.array
            return base
        return self.array

    def tensor(self, own):
        tensor = own.open(self.path) if self.path else own.tensor(self._stored(), self.dtype)
        if "transposed" in self.how:
            return tensor.transpose(range(self.array.ndim)[::-1])
        if "strided" in self.how:
            shape = self.array.shape
            steps = [self._step(i) for i in range(len(shape))]
            return tensor.slice([step * dim for step, dim in zip(steps, shape)],
                                [-step for step in steps], shape)
        return tensor

    def _step(self, axis):
        """Along the last axis every second element, backwards; all of the others."""
        return 2 if axis == self.array.ndim - 1 else 1

    def feed(self, own, session, feeds):
        """Gives it to the session, or puts it among the feeds."""
        if self.kind == "file":
            return
        tensor = self.tensor(own)
        if self.kind == "constant":
            runtime.call("pl_constant_set", self.node, tensor)
        elif self.kind == "variable":
            session.set(self.node, tensor)
        else:
            feeds[self.node] = tensor

    def forget(self, graph_runtime=None):
        if self.path:
            self.path.unlink(missing_ok=True)


def smallest_budget(refusal):
    """The bytes that a refusal names."""
    found = re.search(r"give at least ([0-9.]+) ([KMG]?i?B)$", refusal.message)
    assert found, refusal.message
    return int(float(found[1]) * UNITS[found[2]])


def check_bounds(own, before, stated, budget_bytes, cap_bytes, what):
    peak = own.peak_bytes
    assert stated <= budget_bytes, f"{what}: states {stated}"
    assert peak - before <= stated, f"{what}: claimed {peak} ({before} before), stated {stated}"
    slack = max(cap_bytes // 64, 64 << 10) if before else 0  # a slab that was there already
    assert stated <= 1.25 * peak + slack, f"{what}: claimed {peak}, stated {stated}"


def run_once(graph, fetches, given, budget_bytes, threads=2, cap_bytes=CAP):
    with runtime.Runtime(cap_bytes, threads) as own:
        feeds = {}
        with runtime.Session(graph, own) as session:
            for one in given:
                one.feed(own, session, feeds)
            before = own.claimed_bytes
            stated = session.cost(fetches, feeds, budget_bytes).peak_bytes
            given_peak = own.peak_bytes
            tensors = session.run_tensors(fetches, feeds, budget_bytes)
            if own.peak_bytes > given_peak or not before:
                check_bounds(own, before, stated, budget_bytes, cap_bytes,
                             f"with {budget_bytes}")
            arrays = session.read(fetches, tensors)
        for tensor in feeds.values():
            tensor.close()
        if not any(one.kind == "constant" for one in given):
            assert own.claimed_bytes == 0
    return arrays


def run_within(graph, fetches, given, budget_bytes, **how):
    """The same, or with the budget that is said to be the smallest. What it was as well."""
    try:
        return run_once(graph, fetches, given, budget_bytes, **how), budget_bytes
    except runtime.Refused as refusal:
        assert refusal.code == "PL_EBUDGET", refusal
        enough = smallest_budget(refusal)
        assert enough > budget_bytes, refusal
        return run_once(graph, fetches, given, enough, **how), enough


def budgets(working_bytes, cap_bytes=CAP):
    return cap_bytes, max(working_bytes // 4, 1), max(working_bytes // 16, 1)


def same_bits(one, other):
    both_nan = (one != one) & (other != other)
    return one.dtype == other.dtype and (both_nan | (one == other)).all()
