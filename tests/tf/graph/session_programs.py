# SPDX-License-Identifier: Apache-2.0
"""Random programs of sessions with state, and a model of them in plain Python and NumPy.
    step     one op of the program: how it is computed in the model, and its tensor or operation.
             Steps are numbered as they were made; `inputs` and `waits` are earlier ones
    place    where a step is: `last` finds the assignment to a variable that is read there
    block    what a branch, a loop's body or a function does: see session_blocks.py
    world    what outlives a run beside the session's variables: counters, iterators, a log
A run of the model computes the steps that are reached from the fetches, in the order in which they
were made: see _session.py for the rules. What is random is told by the run that is looked at.
"""
import itertools

import numpy as np

import plimsoll.tf as tf
from session_blocks import OPS, Played, Traced, act

v1 = tf.compat.v1


class Fails(Exception):
    """A step that was to fail did."""


class Step:
    def __init__(self, number, kind, compute, inputs, waits, what, variable=None):
        self.number, self.kind, self.compute = number, kind, compute
        self.inputs, self.waits, self.what, self.variable = inputs, waits, what, variable

    def __repr__(self):
        of = [one.number for one in self.inputs], [one.number for one in self.waits]
        return f"{self.number}: {self.kind} of {of[0]} behind {of[1]} {self.variable or ''}"


def reached(steps, cut=()):
    """These, and all that they hang on or wait for; nothing beyond what is fed."""
    found, stack = {}, list(steps)
    while stack:
        step = stack.pop()
        if step.number not in found and step not in cut:
            found[step.number] = step
            stack += [*step.inputs, *step.waits]
    return [found[number] for number in sorted(found)]


class Run:
    """One run of the model."""

    def __init__(self, program, variables, fed, known):
        self.program, self.before, self.fed, self.known = program, variables, fed, known
        self.values = dict(fed)  # step -> value
        self.stores = {}  # variable -> value

    def __call__(self, fetches):
        for step in reached(fetches, self.fed):
            self.values[step] = step.compute(self, *[self.values[one] for one in step.inputs])
            if step.kind == "assign":
                self.stores[step.variable] = self.values[step]
        self.before.update(self.stores)
        return [self.values[step] for step in fetches]

    def read(self, variable, last):
        return self.before[variable] if last is None else self.values[last]

    def now(self, variable, last):
        """What an update is made from."""
        if last in self.fed:
            return self.fed[last]
        return self.stores.get(variable, self.before[variable])


class Program:
    def __init__(self, seed, n):
        self.rng, self.n, self.steps, self.names = np.random.default_rng(seed), n, [], itertools.count()
        self.waiting, self.failing = (), False
        self.counters, self.log, self.iterators = {}, [], []
        self.model_counters, self.model_log = {}, []
        self.variables, self.placeholders = {}, []
        self.graph = tf.Graph()
        with self.graph.as_default():
            self._make()

    # ---- making it ----

    def _make(self):
        rng = self.rng
        for i in range(rng.integers(1, 4)):
            self.variables[f"v{i}"] = tf.Variable(np.full(self.n, i + 1), name=f"v{i}")
        for i in range(2):
            node = v1.placeholder(tf.int64, [self.n])
            self.placeholders.append(self._step("placeholder", None, (), node))
        self.flag = v1.placeholder(tf.int64, [])
        kinds = ("op read assign update call function py next default random constant group fails part"
                 ).split()
        weights = np.array([5, 6, 5, 6, 3, 1.5, 2.5, 2, 1, 1, 1, 1, 0.4, 1.5])
        for kind in rng.choice(kinds, rng.integers(6, 30), p=weights / weights.sum()):
            behind = self._some(rng.integers(0, 3)) if rng.random() < 0.5 else []
            self.waiting = tuple(behind)
            with tf.control_dependencies([one.what for one in behind]):
                getattr(self, f"_{kind}")()
        self.waiting = ()

    def _step(self, kind, compute, inputs, what, variable=None, waits=()):
        step = Step(len(self.steps), kind, compute, list(inputs), [*self.waiting, *waits], what, variable)
        self.steps.append(step)
        return step

    def _pick(self):
        """A step with a value."""
        values = [s for s in self.steps if isinstance(s.what, tf.Tensor)]
        late = values[-6:] if self.rng.random() < 0.6 else values
        return late[self.rng.integers(len(late))]

    def _some(self, n):
        shown = [step for step in self.steps if step.what is not None]
        return [shown[i] for i in self.rng.integers(0, len(shown), n)]

    def _variable(self):
        return str(self.rng.choice(list(self.variables)))

    def _last(self, variable):
        """The assignment that a read here sees."""
        made = [s for s in reached(self.waiting) if s.kind == "assign" and s.variable == variable]
        return made[-1] if made else None

    def _op(self):
        name, a, b = self.rng.choice(list(OPS)), self._pick(), self._pick()
        self._step("op", lambda run, x, y: OPS[name](x, y), [a, b], getattr(tf, name)(a.what, b.what))

    def _constant(self):
        value = self.rng.integers(-9, 9, self.n)
        self._step("constant", lambda run: value, [], tf.constant(value))

    def _read(self):
        name = self._variable()
        variable, last = self.variables[name], self._last(name)
        node = [variable.read_value, lambda: variable + 0, lambda: tf.identity(variable)][
            self.rng.integers(3)]()
        self._step("read", lambda run, *_: run.read(name, last), [last] if last else [], node)

    def _assign(self):
        name, value = self._variable(), self._pick()
        node = self.variables[name].assign(value.what)
        self._step("assign", lambda run, x: x, [value], node, name)

    def _update(self):
        name, by, less = self._variable(), self._pick(), self.rng.random() < 0.5
        last = self._last(name)

        def compute(run, x, *_):
            return run.now(name, last) - x if less else run.now(name, last) + x

        variable = self.variables[name]
        node = variable.assign_sub(by.what) if less else variable.assign_add(by.what)
        self._step("assign", compute, [by, *([last] if last else [])], node, name)

    def _part(self):
        name, by = self._variable(), self._pick()
        last, half = self._last(name), self.n // 2

        def compute(run, x, *_):
            return np.concatenate([run.now(name, last)[:half], x[half:]])

        node = self.variables[name][half:].assign(by.what[half:])
        self._step("assign", compute, [by, *([last] if last else [])], node, name)

    def _random(self):
        node = tf.random.uniform([self.n], 0, 1000, tf.int64)
        step = self._step("random", lambda run: run.known[step], [], node)

    def _default(self):
        value = self._pick()
        node = v1.placeholder_with_default(value.what, [self.n])
        self._step("default", lambda run, x: x, [value], node)

    def _group(self):
        behind = self._some(self.rng.integers(0, 4))
        self._step("group", lambda run, *_: None, [], tf.group(*[s.what for s in behind]), waits=behind)

    # ---- what is stateful beside variables ----

    def _counted(self, name, tensor):
        """A node that counts its runs."""
        self.counters[name] = self.model_counters[name] = 0
        counters, log = self.counters, self.log  # not the program: graphs that calls lead to stay

        def call(x):
            counters[name] += 1
            log.append(name)
            return x + counters[name]

        return tf.reshape(tf.numpy_function(call, [tensor], tf.int64), [self.n])

    def _count(self, name, x):
        self.model_counters[name] += 1
        self.model_log.append(name)
        return x + self.model_counters[name]

    def _py(self):
        name, a = f"f{next(self.names)}", self._pick()
        self._step("py", lambda run, x: self._count(name, x), [a], self._counted(name, a.what))

    def _fails(self):
        log = self.log

        def call(flag):
            log.append("fails")
            if flag:
                raise ValueError("as it was told")
            return flag

        def compute(run):
            self.model_log.append("fails")
            if self.failing:
                raise Fails
            return np.zeros(self.n, np.int64)

        node = tf.numpy_function(call, [self.flag], tf.int64)
        self._step("fails", compute, [], tf.broadcast_to(tf.reshape(node, []), [self.n]))

    def _iterator(self):
        """The place of one among them."""
        if not self.iterators or self.rng.random() < 0.4:
            start = int(self.rng.integers(100))
            dataset = tf.data.Dataset.range(start, start + 5).repeat()
            with tf.control_dependencies(None):
                iterator = v1.data.make_initializable_iterator(dataset)
            self.iterators.append([iterator, start, 0])
        return int(self.rng.integers(len(self.iterators)))

    def _taken(self, which):
        return tf.broadcast_to(self.iterators[which][0].get_next(), [self.n])

    def _take(self, which):
        place = self.iterators[which]
        place[2] += 1
        return np.full(self.n, place[1] + (place[2] - 1) % 5)

    def _next(self):
        which = self._iterator()
        place = self.iterators[which]

        def begin(run):
            place[2] = 0

        if self.rng.random() < 0.2:
            begins = place[0].make_initializer(
                tf.data.Dataset.range(place[1], place[1] + 5).repeat())
            self._step("begin", begin, [], begins)
        else:
            self._step("next", lambda run: self._take(which), [], self._taken(which))

    # ---- branches, loops, functions ----

    def _expression(self, outer, n_locals, depth=0):
        which = self.rng.integers(5 if depth < 2 else 4)
        if which == 0:
            return "outer", int(self.rng.integers(len(outer)))
        if which == 1:
            return "variable", self._variable()
        if which == 2:
            return "local", int(self.rng.integers(n_locals)) if n_locals else None
        if which == 3:
            return "constant", int(self.rng.integers(-5, 5))
        parts = [self._expression(outer, n_locals, depth + 1) for _ in range(2)]
        return ("op", str(self.rng.choice(list(OPS))), *parts)

    def _block(self, outer, n_locals, depth=0):
        actions = []
        kinds = ["local", "assign", "add", "py", "branch", "loop", "next"]
        odds = [0.13, 0.22, 0.25, 0.1, 0.1, 0.1, 0.1]
        for _ in range(self.rng.integers(0, 4)):
            kind = str(self.rng.choice(kinds, p=odds)) if depth < 2 else "add"
            if kind == "branch":
                target = [self._block(outer, n_locals, depth + 1) for _ in range(2)]
            elif kind == "next":
                target = self._iterator()
            elif kind == "loop":
                target = self._block(outer, n_locals + 1, depth + 1)
            else:
                target = f"f{next(self.names)}" if kind == "py" else self._variable()
            actions.append((kind, target, self._expression(outer, n_locals)))
            n_locals += 1
        return actions, self._expression(outer, n_locals)

    def _call(self):
        if self.rng.random() < 0.4:
            self._loop()
            return
        outer = [self._pick() for _ in range(3)]
        blocks = [self._block(outer[1:], 0) for _ in range(2)]
        nodes = [one.what for one in outer]
        made = tf.cond(tf.equal(tf.reduce_sum(nodes[0]) % 2, 0),
                       lambda: act(Traced(self), blocks[0], nodes[1:]),
                       lambda: act(Traced(self), blocks[1], nodes[1:]))

        def play(variables, x, *others):
            return act(Played(self, variables), blocks[int(x.sum() % 2)], others)

        self._called("cond", blocks, outer, made, play)

    def _loop(self):
        outer, start = [self._pick() for _ in range(3)], self._pick()
        block = self._block(outer[1:], 1)
        nodes = [one.what for one in outer]

        def body(i, x):
            return i + 1, act(Traced(self), block, nodes[1:], [x])

        made = tf.while_loop(lambda i, x: i < tf.reduce_sum(nodes[0]) % 4, body,
                             [tf.constant(0, tf.int64), start.what])[1]

        def play(variables, bound, *others):
            x = others[-1]
            for _ in range(int(bound.sum() % 4)):
                x = act(Played(self, variables), block, others[:-1], [x])
            return x

        self._called("loop", [block], [*outer, start], made, play)

    def _function(self):
        outer = [self._pick() for _ in range(2)]
        block = self._block(outer, 0)
        made = tf.function(lambda *nodes: act(Traced(self), block, nodes))(*[s.what for s in outer])
        self._called("function", [block], outer, made,
                     lambda variables, *values: act(Played(self, variables), block, values))

    def _called(self, kind, blocks, outer, made, play):
        """The call, an assignment for each variable that it writes, and what it gives."""
        text = repr(blocks)
        writes = {name for name in self.variables
                  if f"('assign', {name!r}" in text or f"('add', {name!r}" in text}
        used = {name: self._last(name) for name in self.variables if repr(name) in text}
        result = {}

        def compute(run, *values):
            variables = {name: run.now(name, last) if name in writes else run.read(name, last)
                         for name, last in used.items()}
            result["given"] = play(variables, *values[: len(outer)])
            result["variables"] = variables

        last = [step for step in used.values() if step]
        call = self._step(kind, compute, [*outer, *last], None)
        stores = [self._step("assign", lambda run, _, name=name: result["variables"][name], [call],
                             None, name) for name in sorted(writes)]
        self._step("given", lambda run, _: result["given"], [call], made, waits=stores)


# ---- running it ----


def check(seed, n=8, n_runs=8):
    """Makes a program, and runs it in two sessions as the model does; AssertionError where they
    differ."""
    program = Program(seed, n)
    rng = program.rng
    with program.graph.as_default(), v1.Session() as one, v1.Session() as other:
        states = []
        for session in (one, other):
            session.run([v1.global_variables_initializer()]
                        + [iterator.initializer for iterator, _, _ in program.iterators])
            initial = {name: np.full(n, i + 1) for i, name in enumerate(program.variables)}
            states.append((session, initial))
        for number in range(n_runs):
            label = f"seed {seed}, n {n}, run {number}"
            _check_run(program, *states[0 if rng.random() < 0.7 else 1], label)


def _check_run(program, session, values, label):
    rng = program.rng
    shown = [s for s in program.steps if s.what is not None]
    fetches = [shown[i] for i in rng.integers(0, len(shown), rng.integers(1, 6))]
    fed = {step: rng.integers(-50, 50, program.n) for step in program.placeholders}
    may_be_fed = [s for s in shown if isinstance(s.what, tf.Tensor)]
    if rng.random() < 0.25 and not any(s.kind == "function" for s in program.steps):
        # Of a function's call that is cut in two only what is used would be run.
        fed[may_be_fed[rng.integers(len(may_be_fed))]] = rng.integers(-50, 50, program.n)
    drawn = [step for step in reached(fetches, fed) if step.kind == "random"]
    program.failing = not drawn and rng.random() < 0.3
    feeds = {step.what: value for step, value in fed.items()} | {program.flag: int(program.failing)}
    as_op = [isinstance(s.what, tf.Tensor) and s not in fed and rng.random() < 0.2 for s in fetches]
    ops = [s.what.op if is_op else s.what for s, is_op in zip(fetches, as_op)]
    before = dict(values)
    try:
        got = session.run(ops + [s.what for s in drawn], feeds)
    except ValueError as error:
        assert "as it was told" in str(error), label
        got = None
    run = Run(program, values, fed, dict(zip(drawn, (got or [])[len(fetches):])))
    try:
        expected = run(fetches)
    except Fails:
        expected = None
        values.update(before)

    def story():
        return "\n".join([label, f"fetched: {fetches}", f"fed: {list(fed)}", *map(repr, program.steps)])

    assert (got is None) == (expected is None), story()
    assert program.log == program.model_log and program.counters == program.model_counters, story()
    for step, one, other, op in zip(fetches, got or [], expected or [], ops):
        if isinstance(op, tf.Tensor):
            np.testing.assert_array_equal(one, other, err_msg=f"{step}\n{story()}")
    names = list(program.variables)
    for name, value in zip(names, session.run([program.variables[name] for name in names])):
        np.testing.assert_array_equal(value, values[name], err_msg=f"{name} afterwards\n{story()}")
