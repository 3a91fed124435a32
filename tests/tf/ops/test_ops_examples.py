# SPDX-License-Identifier: Apache-2.0
"""Every public op has a docstring, and the examples in it are true."""
import doctest
import importlib
import inspect
import pathlib
import re

import numpy as np
import pytest

import plimsoll.tf as tf

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "tf-ops.md"
MODULES = [
    "_ops.reshape", "_ops.creation", "_ops.concat_split", "_ops.gather_scatter", "_ops.elementwise",
    "_ops.reduce", "_ops.image_resize", "_ops.special", "_ops.string_fingerprint", "_ops.string_unicode",
    "_io.gfile", "_io.parse_example", "_values.tensor_methods", "bitwise", "image", "io", "linalg", "lookup",
    "math", "nn", "random", "strings",
]  # fmt: skip
# Whose names are tf's own and listed in the documentation.
OF_TF = ["concat_split", "creation", "elementwise", "gather_scatter", "reduce", "reshape"]


def public(module):
    """(name, object) of the functions and classes that the module itself defines."""
    for name, value in vars(module).items():
        if name.startswith("_") or not (inspect.isfunction(value) or inspect.isclass(value)):
            continue
        if value.__module__ == module.__name__:
            yield name, value


@pytest.mark.usefixtures("plain_numbers")
@pytest.mark.parametrize("name", MODULES)
def test_examples_are_true(name):
    module = importlib.import_module(f"plimsoll.tf.{name}")
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner()
    n_examples = 0
    for label, value in public(module):
        for test in finder.find(value, f"{name}.{label}", module=False,
                                globs={"tf": tf, "np": np}):
            said = []
            outcome = runner.run(test, out=said.append)
            n_examples += outcome.attempted
            assert outcome.failed == 0, "".join(said)
    assert n_examples > 0


@pytest.mark.parametrize("name", MODULES)
def test_everything_public_says_what_it_is(name):
    module = importlib.import_module(f"plimsoll.tf.{name}")
    silent = [label for label, value in public(module) if not (value.__doc__ or "").strip()]
    assert silent == []


def listed():
    """{module: names} of the table in the documentation."""
    rows = re.findall(r"^\| `(tf[.\w]*)` \| `([\w ]+)` \|$", PAGE.read_text(), re.MULTILINE)
    return {module: names.split() for module, names in rows}


@pytest.mark.parametrize("module", ["tf.math", "tf.nn", "tf.linalg", "tf.random", "tf.io", "tf.io.gfile",
                                    "tf.image", "tf.strings", "tf.bitwise", "tf.lookup"])
def test_the_documentation_lists_what_there_is(module):
    found = tf
    for part in module.split(".")[1:]:
        found = getattr(found, part)
    assert listed()[module] == sorted(found.__all__)
    for name in found.__all__:
        getattr(found, name)


def test_the_documentation_lists_the_ops_of_tf():
    modules = [importlib.import_module(f"plimsoll.tf._ops.{name}") for name in OF_TF]
    assert listed()["tf"] == sorted(name for module in modules for name in module.__all__)
    for name in listed()["tf"]:
        getattr(tf, name)
