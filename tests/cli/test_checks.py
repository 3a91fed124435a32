# SPDX-License-Identifier: Apache-2.0
"""The checks find what they are for: each is shown a tree with one mistake."""

import shutil

import pytest

LICENCE = "/* SPDX-License-Identifier: Apache-2.0 */\n"
TABLE = """
| folder | may include | holds |
|---|---|---|
| `include/plimsoll/` | | public |
| `src/base/` | public | ground |
| `src/ledger/` | public base | middle |
| `src/guard/` | public base ledger | top |
"""


@pytest.fixture
def tree(tmp_path):
    """A small source tree without mistakes."""
    files = {
        "docs/architecture.md": TABLE,
        "include/plimsoll/error.h": LICENCE,
        "src/base/base.h": LICENCE + '#include "plimsoll/error.h"\n#include <stdint.h>\n',
        "src/ledger/ledger.h": LICENCE + '#include "base/base.h"\n',
        "src/ledger/ledger.c": LICENCE + '#include "ledger/ledger.h"\n',
        "src/guard/guard.c": LICENCE + '#include "ledger/ledger.h"\n#include "base/base.h"\n',
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def append(path, text):
    path.write_text(path.read_text() + text)


def test_layers_accept_a_tree_without_mistakes(root, tree, call):
    done = call(root / "tools/check-layers", tree)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(
    "name, line, complaint",
    [
        ("src/base/base.h", '#include "ledger/ledger.h"', "base may not include"),
        ("src/base/base.h", ' #  include "ledger/ledger.h"', "base may not include"),
        ("include/plimsoll/error.h", '#include "base/base.h"', "public may not include"),
        ("src/ledger/ledger.c", '#include "ledger.h"', "must name its folder"),
        ("src/ledger/ledger.c", '#include "base/gone.h"', "there is no"),
        ("docs/architecture.md", "| `src/ledger/` | public base nowhere | x |", "which has no row"),
    ],
)
def test_layers_refuse(root, tree, call, name, line, complaint):
    append(tree / name, line + "\n")
    done = call(root / "tools/check-layers", tree)
    assert done.returncode == 1
    assert len(done.stdout.splitlines()) == 1 and complaint in done.stdout


def test_layers_refuse_a_folder_without_a_row(root, tree, call):
    (tree / "src/stray").mkdir()
    (tree / "src/stray/stray.h").write_text("")
    done = call(root / "tools/check-layers", tree)
    assert done.returncode == 1 and "src/stray/ has no row" in done.stdout


def test_layers_refuse_a_row_without_a_folder(root, tree, call):
    append(tree / "docs/architecture.md", "| `src/gone/` | | x |\n")
    done = call(root / "tools/check-layers", tree)
    assert done.returncode == 1 and "gone has a row, but no sources" in done.stdout


def test_layers_allow_a_folder_with_all_below_it_by_its_name(root, tree, call):
    (tree / "src/base/size").mkdir()
    (tree / "src/base/size/size.h").write_text("")
    append(tree / "docs/architecture.md", "| `src/base/size/` | | x |\n")
    append(tree / "src/ledger/ledger.c", '#include "base/size/size.h"\n')
    assert call(root / "tools/check-layers", tree).stdout == ""
    append(tree / "src/base/base.h", '#include "base/size/size.h"\n')
    assert "base may not include" in call(root / "tools/check-layers", tree).stdout


def test_layers_refuse_a_folder_that_nobody_can_take_in(root, tree, call):
    for number in range(50):
        (tree / f"src/base/part_{number}.h").write_text("")
    done = call(root / "tools/check-layers", tree)
    assert done.returncode == 1 and "more than 45: split it by purpose" in done.stdout


def test_layers_let_nobody_include_the_guard(root):
    rows = [
        line.split("|")
        for line in (root / "docs/architecture.md").read_text().splitlines()
        if line.startswith("| `src/")
    ]
    assert len(rows) == len({path.parent for path in (root / "src").rglob("*.[ch]")})
    assert not [row[1] for row in rows if "guard" in row[2]]


@pytest.mark.parametrize(
    "line, complaint",
    [
        ("/* TO" + "DO: later */", "finish it"),
        ("\tint tab;", "a tab"),
        ("int blank; ", "blanks at the end"),
    ],
)
def test_text_refuses(root, tree, call, line, complaint):
    assert call(root / "tools/check-text", tree).returncode == 0
    append(tree / "src/base/base.h", line + "\n")
    done = call(root / "tools/check-text", tree)
    assert done.returncode == 1 and "src/base/base.h:4" in done.stdout and complaint in done.stdout


@pytest.mark.parametrize("line, complaint", [
    ("/* What is kept. */", "begin with a verb"), ("/* NULL for " + "want of memory. */", "out of"),
    ("/* A name that is no file. */", "is not a ..."), ("/* It is no longer there; there is none. */", ""),
])
def test_prose_refuses_words_that_were_given_up(root, tree, call, line, complaint):
    assert call(root / "tools/check-prose", tree).stdout == ""
    (tree / "src/sample.h").write_text(line + "\n")
    done = call(root / "tools/check-prose", tree)
    assert done.returncode == (1 if complaint else 0) and complaint in done.stdout
    assert done.stdout.startswith("src/sample.h:1: ") == bool(complaint)


def test_prose_looks_for_the_paths_of_the_glossary(root, tree, call):
    (tree / "docs/glossary.md").write_text("| here | `src/base/base.h` |\n| gone | `src/gone/` |\n")
    done = call(root / "tools/check-prose", tree)
    assert (done.returncode, done.stdout) == (1, "docs/glossary.md:2: 'src/gone/' does not exist\n")


def test_text_wants_the_licence_on_top(root, tree, call):
    (tree / "src/ledger/ledger.c").write_text("int x;\n")
    done = call(root / "tools/check-text", tree)
    assert done.returncode == 1 and "src/ledger/ledger.c:1" in done.stdout


def test_symbols_see_a_list_that_differs(root, meson_build, tmp_path, call):
    for name in ("tools", "tests/symbols"):
        shutil.copytree(root / name, tmp_path / name)
    check = tmp_path / "tools/check-symbols"
    assert call(check, meson_build).returncode == 0
    append(tmp_path / "tests/symbols/guard.exports", "stray_symbol\n")
    done = call(check, meson_build)
    assert done.returncode == 1 and "-stray_symbol" in done.stdout


COLUMNS = "kind,package,versions,where,needs,says,source"


def test_facts_of_ours_hold_together(root, call):
    done = call(root / "tools/check-facts")
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(
    "row, complaint",
    [
        ("python,torch,==2.1.*,,>=3.8,x", "6 columns"),
        ("cpus,torch,,x86_64,avx,SIGILL,here", "kind 'cpus'"),
        ("cpu,Torch,,x86_64,avx,SIGILL,here", "not a normalised name"),
        ("cpu,torch,2.1,x86_64,avx,SIGILL,here", "not a range"),
        ("cpu,torch,,x86,avx,SIGILL,here", "where is 'x86'"),
        ("cpu,torch,,x86_64,avx3,SIGILL,here", "needs is 'avx3'"),
        ("cpu,torch,,x86_64,avx,,here", "does not say"),
        ("cpu,torch,,x86_64,avx,SIGILL,", "no source"),
        ("cuda,torch,==2.1.*,cu118,11.8,,here\ncuda,torch,==2.1.*,cu118,11.8,,there", "line 2"),
        ("", "no rows"),
    ],
)
def test_facts_refuse(root, tmp_path, call, row, complaint):
    (tmp_path / "facts.csv").write_text(f"{COLUMNS}\n{row}\n")
    done = call(root / "tools/check-facts", tmp_path / "facts.csv")
    assert done.returncode == 1
    assert len(done.stdout.splitlines()) == 1 and complaint in done.stdout


def test_install_deps_rejects_an_unknown_set(root, call):
    done = call(root / "tools/install-deps", "nonsense")
    assert done.returncode == 1 and "'nonsense'" in done.stderr


def test_install_deps_is_silent_when_nothing_is_missing(root, call):
    done = call(root / "tools/install-deps", "build")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_install_deps_says_what_to_install_without_rights(root, tmp_path, call):
    """With a dpkg that knows no package, a user who is not root, and no sudo in PATH."""
    for name, text in {"dpkg-query": "exit 1", "id": "echo 1000"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    for name in ("sh", "awk", "sort"):
        (tmp_path / name).symlink_to(shutil.which(name))
    done = call(root / "tools/install-deps", "build", env={"PATH": str(tmp_path)})
    assert done.returncode == 1
    assert "apt-get install" in done.stderr and "libdw-dev" in done.stderr


@pytest.mark.parametrize("has_it", [True, False])
def test_install_deps_asks_for_what_is_optional_only_where_the_archive_has_it(
    root, tmp_path, call, has_it
):
    """With a dpkg that has all but JupyterLab, and an archive that has it or not."""
    for name, text in {
        "dpkg-query": "shift 2; for p; do [ $p = jupyterlab ] || echo $p installed; done",
        "apt-cache": f"exit {0 if has_it else 100}",
        "id": "echo 1000",
    }.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    for name in ("sh", "awk", "sort"):
        (tmp_path / name).symlink_to(shutil.which(name))
    done = call(root / "tools/install-deps", "test", env={"PATH": str(tmp_path)})
    if has_it:
        assert done.returncode == 1 and done.stderr.endswith("--no-install-recommends jupyterlab\n")
    else:
        assert (done.returncode, done.stderr) == (0, "")


def test_the_drawing_is_the_one_of_its_text_and_has_every_folder(root, call):
    done = call(root / "tools/draw-architecture", "--check")
    assert (done.returncode, done.stdout) == (0, "")
