# SPDX-License-Identifier: Apache-2.0
"""Random programs of sessions with state do what a model in plain Python and NumPy does: each run's
values, the variables after it, and what Python functions were called in which order.

Longer, by hand:  PLIMSOLL_TEST_ROUNDS=50 PLIMSOLL_TEST_SEED=1000 pytest tests/tf/graph/test_random_sessions.py"""
import pytest

from plimsoll import _core
from plimsoll.tf._graph import session as _session
from plimsoll.tf._values import variable as _variable
from random_programs import ROUNDS, SEED
from session_programs import check


def seeds(n):
    return range(SEED, SEED + n * ROUNDS)


def test_random_programs_of_sessions_do_what_the_model_does():
    for seed in seeds(150):
        check(seed)


# Values of 256 KiB: of those that a run is about, few are in memory at a time.
@pytest.mark.parametrize("budget", [2 << 20, 3 << 20, 8 << 20])
def test_so_they_do_within_a_small_budget(monkeypatch, budget):
    run = _core.run
    monkeypatch.setattr(_core, "run", lambda *args, **kw: run(*args, budget=budget, **kw))
    for seed in seeds(12):
        check(seed, n=1 << 15, n_runs=3)


def read_as_before_the_run(plan, variable, before):
    plan.handles[id(variable._handle)] = variable._handle, variable
    return variable._handle


@pytest.mark.parametrize("of, name, wrong", [
    (_session._Plan, "_read", read_as_before_the_run),
    (_variable, "_last_assigned", lambda graph, variable, elements: None),
])
def test_the_model_sees_what_is_wrong(monkeypatch, of, name, wrong):
    monkeypatch.setattr(of, name, wrong)
    with pytest.raises(AssertionError, match="fetched:"):
        for seed in range(60):
            check(seed)
