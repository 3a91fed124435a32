# SPDX-License-Identifier: Apache-2.0
"""Blocks of random programs: what a branch, a loop's body or a function does.
    block    actions (kind, target, expression) in order, and the expression that is given
    machine  what carries them out: in a trace, or in the model
Actions put a value among the locals, assign it to a variable or add it, give it to a Python
function, add what an iterator gives to it, or hand it to blocks within."""
import numpy as np

import plimsoll.tf as tf

OPS = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "maximum": np.maximum}


class Traced:
    """What a block does as a branch, body or function is traced."""

    def __init__(self, program):
        self.program, self.variables = program, program.variables
        self.count, self.take = program._counted, program._taken

    def read(self, name):
        return self.variables[name] + 0

    def assign(self, name, value):
        self.variables[name].assign(value)

    def add(self, name, value):
        self.variables[name].assign_add(value)

    def op(self, name, *values):
        return getattr(tf, name)(*values)

    def fill(self, value):
        return tf.fill([self.program.n], np.int64(value))

    def branch(self, value, yes, no):
        return tf.cond(tf.reduce_sum(value) % 2 == 0, yes, no)

    def loop(self, value, body):
        bound = tf.reduce_sum(value) % 3
        return tf.while_loop(lambda i, x: i < bound, lambda i, x: (i + 1, body(x)),
                             [tf.constant(0, tf.int64), value])[1]


class Played:
    """What it does in the model."""

    def __init__(self, program, variables):
        self.program, self.variables = program, variables
        self.count, self.take = program._count, program._take

    def read(self, name):
        return self.variables[name]

    def assign(self, name, value):
        self.variables[name] = value

    def add(self, name, value):
        self.variables[name] = self.variables[name] + value

    def op(self, name, *values):
        return OPS[name](*values)

    def fill(self, value):
        return np.full(self.program.n, value)

    def branch(self, value, yes, no):
        return yes() if value.sum() % 2 == 0 else no()

    def loop(self, value, body):
        for _ in range(value.sum() % 3):
            value = body(value)
        return value


def value_of(machine, e, outer, values):
    if e[0] == "op":
        return machine.op(e[1], *[value_of(machine, part, outer, values) for part in e[2:]])
    if e[0] == "variable":
        return machine.read(e[1])
    if e[0] == "local" and e[1] is not None:
        return values[e[1]]
    return outer[e[1]] if e[0] == "outer" else machine.fill(e[1] or 0)


def act(machine, block, outer, values=()):
    """What is given hangs on every value there is: what nobody uses would not be run."""
    actions, result = block
    values = list(values)
    for kind, target, e in actions:
        value = value_of(machine, e, outer, values)
        if kind == "py":
            value = machine.count(target, value)
        elif kind == "next":
            value = machine.op("add", value, machine.take(target))
        elif kind == "branch":
            value = machine.branch(value, *[
                lambda one=one: act(machine, one, outer, values) for one in target])
        elif kind == "loop":
            value = machine.loop(value, lambda x: act(machine, target, outer, [*values, x]))
        elif kind != "local":
            getattr(machine, kind)(target, value)
        values.append(value)
    named = [name for name in sorted(machine.variables) if repr(name) in repr(block)]
    total = value_of(machine, result, outer, values)
    for value in [*outer, *values, *map(machine.read, named)]:
        total = machine.op("add", total, value)
    return total
