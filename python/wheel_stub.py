# SPDX-License-Identifier: Apache-2.0
"""The package of this wheel, for a kernel of any Python.

A kernel under `plimsoll run --kernel` may run in another Python than the wheel was installed for, and
finds the package by a folder on its path. That cannot be site-packages, which has the other packages
too: it is the folder that has only this module, which gives its place to the package.
"""
import importlib.util
import os
import sys


def _load():
    package = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
    spec = importlib.util.spec_from_file_location(
        __name__, os.path.join(package, "__init__.py"), submodule_search_locations=[package]
    )
    module = sys.modules[__name__] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)


_load()
