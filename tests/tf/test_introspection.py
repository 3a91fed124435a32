# SPDX-License-Identifier: Apache-2.0
"""plimsoll's own names, `python -m plimsoll`, what importing costs, and every docstring's example."""
import ast
import doctest
import fcntl
import importlib
import inspect
import os
import pathlib
import pty
import struct
import subprocess
import termios

import numpy as np
import pytest
from support import BUILD, HANG_S, PYTHON

import plimsoll
import plimsoll.tf as tf
from plimsoll import _core, _progress

PACKAGE = BUILD / "python"


def test_the_budget_is_what_was_asked_for():
    held = tf.zeros([1 << 20]) + 1
    held.numpy()
    budget = plimsoll.budget()
    assert budget.line == budget["line"] == 512 << 20
    assert budget.peak >= budget.claimed >= 4 << 20 and budget.left == budget.line - budget.claimed
    assert "512.0 MiB" in str(budget) and "<table" in budget._repr_html_()
    assert "PLIMSOLL_BUDGET=512M" in str(budget) and "--budget" not in str(budget)


@pytest.mark.parametrize("ask", ["plimsoll.budget()", "tf.constant(1)"])
def test_a_budget_that_is_none_is_told_with_the_variable_that_says_it(run_python, ask):
    said = run_python(
        "import plimsoll, plimsoll.tf as tf\n"
        f"try: {ask}\n"
        "except ValueError as error: print(error)\n",
        PLIMSOLL_BUDGET="lots",
    )
    assert said.startswith("with PLIMSOLL_BUDGET=lots: 'lots' is not a size")


def test_explaining_computes_nothing_and_says_what_it_takes():
    x = tf.random.normal([1000, 1000])
    y = tf.matmul(x, x)
    told = plimsoll.explain(y)
    assert y.is_pending
    assert told.peak_bytes >= 4_000_000 and told.flops >= 2e9 and told.n_unknown == 0
    assert "matmul" in str(told) and str(told) == repr(told)
    assert "matmul" in told._repr_html_() and "<table" in told._repr_html_()
    assert plimsoll.explain([y, x]).peak_bytes >= told.peak_bytes // 2
    with pytest.raises(TypeError, match="takes a tensor"):
        plimsoll.explain("y")


def test_explaining_what_cannot_be_done_says_why():
    big = tf.random.normal([10000, 10000, 10000])
    with pytest.raises(tf.errors.ResourceExhaustedError):
        plimsoll.explain(big)


def test_explaining_a_dataset_tells_what_its_elements_take():
    dataset = tf.data.Dataset.range(100).map(lambda i: tf.zeros([100, 100])).batch(10)
    told = plimsoll.explain(dataset)
    assert str(told) and told._repr_html_().startswith("<div")


def test_what_is_live_is_told_by_scope_and_call_site():
    with tf.name_scope("network"):
        weights = tf.Variable(tf.zeros([1000]), name="weights")
    live = plimsoll.live("network")
    assert [entry["bytes"] for entry in live] and live.bytes == 4000
    assert live.by_scope[0][0] == "network"
    assert any("test_introspection.py" in site for site, _, _ in live.by_site)
    assert "call site" in str(live) and "scope" in str(live)
    assert "network/weights" in str(live) and "test_introspection.py" in live._repr_html_()
    del weights
    assert len(plimsoll.live("network")) == 0


def test_a_file_is_a_tensor_and_a_tensor_a_file(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.arange(12, dtype=np.float32).reshape(3, 4))
    x = plimsoll.open(path)
    assert x.shape == [3, 4] and x.dtype == tf.float32
    plimsoll.save(x * 2, tmp_path / "y.npy")
    assert np.load(tmp_path / "y.npy").tolist() == (np.load(path) * 2).tolist()
    plimsoll.save([1, 2], str(tmp_path / "z.npy"))
    assert np.load(tmp_path / "z.npy").tolist() == [1, 2]
    plimsoll.save(tf.Variable([3.0]), tmp_path / "v.npy")
    assert np.load(tmp_path / "v.npy").tolist() == [3.0]
    with pytest.raises(FileNotFoundError):
        plimsoll.open(tmp_path / "missing.npy")
    with pytest.raises(ValueError, match="it is not a regular file"):
        plimsoll.open(tmp_path)


def test_a_tensor_larger_than_the_budget_is_saved_and_not_had(run_python, tmp_path):
    path = str(tmp_path / "big.npy")
    program = (
        "import plimsoll, plimsoll.tf as tf\n"
        "x = tf.ones([6500, 1]) * tf.ones([1, 6500])\n"  # 169 MB
        "try:\n"
        "    x.numpy()\n"
        "except tf.errors.ResourceExhaustedError as error:\n"
        "    print('plimsoll.save' in str(error))\n"
        f"plimsoll.save(x, {path!r})\n"
        f"print(float(tf.reduce_sum(plimsoll.open({path!r})[:, :10])))\n"
    )
    assert run_python(program, PLIMSOLL_BUDGET="128M") == "True\n65000.0\n"


def test_bad_elements_are_a_table(tmp_path):
    good = tmp_path / "good.txt"
    good.write_text("line\n")
    dataset = tf.data.TextLineDataset([str(good), str(tmp_path / "missing.txt")]).on_error("skip")
    assert [line.numpy() for line in dataset] == [b"line"]
    errors = plimsoll.errors(dataset)
    assert len(errors) == errors.n_bad == 1 and "missing.txt" in errors[0]["path"]
    assert "missing.txt" in str(errors) and "missing.txt" in errors._repr_html_()


def test_the_package_is_light_until_something_is_used(run_python):
    assert run_python(
        "import sys, plimsoll\n"
        "print(any(name.startswith('plimsoll.') for name in sys.modules))\n"
        "print(plimsoll.__version__, sorted(set(plimsoll.__all__) - set(dir(plimsoll))))\n"
        "print(hasattr(plimsoll, 'no_such_name'))"
    ).splitlines() == ["False", plimsoll.__version__ + " []", "False"]


def test_importing_tf_imports_no_numpy(run_python):
    loaded = run_python(
        "import sys, plimsoll.tf as tf\n"
        "x = tf.constant([1.0, 2.0]) + 1\n"
        "assert float(tf.reduce_sum(x)) == 5.0\n"
        "print(sorted(m for m in ('numpy', 'inspect', 'ctypes', 'asyncio') if m in sys.modules))"
    )
    assert loaded == "[]\n"


def test_the_command_is_run_by_the_module():
    done = subprocess.run(
        [PYTHON, "-m", "plimsoll", "--version"],
        env=os.environ | {"PYTHONPATH": str(PACKAGE)},
        capture_output=True,
        text=True,
        timeout=HANG_S,
    )
    assert done.returncode == 0 and done.stdout.startswith("plimsoll ")


# ---- progress ----

SLOW = (
    "import sys, plimsoll\n"
    "from plimsoll import _progress\n"
    "{before}\n"
    "for fraction in (0.25, 0.5):\n"
    "    _progress.show(fraction, 'matmul')\n"
    "_progress.show(1.0, 'matmul')\n"
    "_progress.show(1.0, '')\n"
)


def test_no_bars_where_nobody_looks(capfd):
    _progress.show(0.5, "matmul")
    _progress.show(1.0, "matmul")
    assert capfd.readouterr().err == ""


def test_a_bar_in_a_terminal_comes_and_goes():
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("4H", 24, 80, 0, 0))
    done = subprocess.run(
        [PYTHON, "-c", SLOW.format(before="")],
        env=os.environ | {"PYTHONPATH": str(PACKAGE)},
        stderr=follower,
        timeout=HANG_S,
    )
    os.close(follower)
    told = os.read(leader, 4096).decode()
    os.close(leader)
    assert done.returncode == 0
    assert "25%" in told and "50%" in told and "matmul" in told
    assert told.endswith("\r\x1b[K")


def test_bars_can_be_had_and_done_without(run_python):
    before = "sys.stderr = sys.stdout; plimsoll.progress({})"
    assert run_python(SLOW.format(before=before.format(True))).count("\x1b[K") == 3
    assert run_python(SLOW.format(before=before.format(None))) == ""


def test_a_bar_in_a_notebook_is_one_output(monkeypatch):
    shown = []

    class Handle:
        def update(self, html):
            shown.append(html.data)

    from IPython import display

    def first(html, display_id):
        shown.append(html.data)
        return Handle()

    monkeypatch.setattr(display, "display", first)
    monkeypatch.setattr(_progress, "_notebook", lambda: True)
    for fraction, name in ((0.25, "a<b"), (0.5, "a<b"), (1.0, "a<b")):
        _progress.show(fraction, name)
    assert len(shown) == 3 and "a&lt;b" in shown[0] and "<progress" in shown[1] and shown[2] == ""


# ---- examples in docstrings ----

MODULES = ["plimsoll.errors", "plimsoll._introspection", "plimsoll._progress", "plimsoll.tf"] + [
    f"plimsoll.tf.{name}"
    for name in (
        "_graph.context _graph.control_flow _graph.function _graph.graph _graph.map_scan "
        "_graph.py_function _graph.session _graph.trace _graph.variable_scope _not_implemented "
        "_ops.printing _values.initializers _values.module _values.shape _values.sparse_tensor "
        "_values.types _values.variable autograph compat compat.v1 config debugging dtypes nest "
        "sparse test train version"
    ).split()
]


@pytest.mark.usefixtures("plain_numbers")
@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_are_true(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name)
    globs = dict(vars(module), tf=tf, np=np, plimsoll=plimsoll)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    result = doctest.testmod(module, globs=globs, optionflags=flags)
    assert result.failed == 0


@pytest.mark.parametrize("name", [name for name in MODULES if name != "plimsoll.tf.compat.v1"])
def test_whatever_a_module_offers_has_an_example(name):
    module = importlib.import_module(name)
    for public in vars(module).get("__all__", ()):
        thing = getattr(module, public)
        is_plain = isinstance(thing, type) and issubclass(thing, (tuple, Exception))
        is_own = getattr(thing, "__module__", "") == module.__name__
        if callable(thing) and is_own and not is_plain:
            assert ">>>" in (thing.__doc__ or ""), public


def test_all_of_version_one_is_imported_by_a_star(run_python):
    assert run_python(
        "import sys\n"
        "from plimsoll.tf.compat.v1 import *\n"
        "sys.stdout.write(f'{Session.__name__} {placeholder.__name__} {float32!r} {constant(1).dtype!r}')\n"
    ) == "Session placeholder tf.float32 tf.int32"


# ---- stubs ----


def test_the_stub_has_what_the_extension_has():
    """All but ds_...(), which are one table and typed as one."""
    tree = ast.parse((pathlib.Path(_core.__file__).parent / "_core.pyi").read_text())
    stubs = {node.name: node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    names = {name for name in dir(_core) if not name.startswith(("__", "ds_"))}
    assert names - set(stubs) == set() and set(stubs) - names == {"__getattr__"}
    for name, node in stubs.items():
        if not isinstance(node, ast.ClassDef):
            continue
        members = {m.name for m in node.body if isinstance(m, ast.FunctionDef)}
        members |= {m.target.id for m in node.body if isinstance(m, ast.AnnAssign)}
        own = {member for member in vars(getattr(_core, name)) if not member.startswith("_")}
        assert own - members == set(), name
        assert {member for member in members if not hasattr(getattr(_core, name), member)} == set()


def test_whatever_version_one_offers_has_an_example():
    from plimsoll.tf.compat import v1

    for name, thing in vars(v1).items():
        if inspect.isfunction(thing) and thing.__module__ == v1.__name__ and name[0] != "_":
            assert ">>>" in (thing.__doc__ or ""), name


def test_only_the_main_interpreter_may_import_it(run_python):
    printed = run_python("""
import sys
try:
    import _interpreters as interpreters
except ImportError:  # before CPython 3.13
    import _xxsubinterpreters as interpreters
import plimsoll._core as core
other = interpreters.create()
try:
    failed = interpreters.run_string(other, f"import sys; sys.path[:] = {sys.path!r}; import plimsoll.tf")
    print(failed.formatted)  # since 3.13 it is returned, not raised
except getattr(interpreters, "RunFailedError", ()) as error:
    print(error)
interpreters.destroy(other)
del sys.modules["plimsoll._core"]
import plimsoll._core as again
print(again is core)
""")
    assert "ImportError" in printed
    # ours, or since 3.12 CPython's own
    assert "main interpreter only" in printed or "support loading in subinterpreters" in printed
    assert printed.endswith("True\n")
