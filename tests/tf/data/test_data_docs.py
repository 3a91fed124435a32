# SPDX-License-Identifier: Apache-2.0
"""The examples in the docstrings of tf.data."""
import doctest
import importlib
import pkgutil

import numpy as np
import pytest

import plimsoll.tf as tf

MODULES = [module.name for module in pkgutil.walk_packages(tf.data.__path__, "plimsoll.tf.data.")]
MODULES.append("plimsoll.tf.data")
OWN = (tf.data.Dataset, tf.data.Iterator, tf.data.TFRecordDataset)


@pytest.mark.usefixtures("plain_numbers")
@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name)
    found = doctest.testmod(module, extraglobs={"tf": tf, "np": np}, verbose=False)
    assert found.failed == 0


@pytest.mark.parametrize("cls", OWN, ids=lambda cls: cls.__name__)
def test_every_method_says_what_it_does(cls):
    silent = [
        name
        for name in dir(cls)
        if not name.startswith("_") and not (getattr(cls, name).__doc__ or "").strip()
    ]
    assert silent == []
