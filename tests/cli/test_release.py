# SPDX-License-Identifier: Apache-2.0
"""tools/release, in a repository of its own: the versions that it sets agree, what it refuses is
refused before anything is written, and a dry run writes nothing."""

import os
import re
import shutil

import pytest

# What it reads and writes, and the tool.
FILES = (
    "meson.build", "python/plimsoll/__init__.py", "include/plimsoll/version.h", "debian/changelog",
    "CHANGELOG.md", "tools/release",
)  # fmt: skip
NEXT = "999.2.0"
SECTION = f"# Changelog\n\n## {NEXT} (2030-01-01)\n\n- It floats.\n\n## 0.1.0\n\n- It began.\n"


class Tree:
    def __init__(self, root, folder, call):
        self.folder, self._call = folder, call
        for name in FILES:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, folder / name)
        (folder / "CHANGELOG.md").write_text(SECTION)
        self.git("init", "--quiet", "-b", "main")
        self.git("add", "--all")
        self.git("commit", "--quiet", "-m", "begin")

    def _run(self, *words):
        names = ("AUTHOR", "COMMITTER")
        who = {f"GIT_{name}_{key}": "x@x" for name in names for key in ("NAME", "EMAIL")}
        return self._call(*words, cwd=self.folder, env={**os.environ, **who})

    def git(self, *words):
        done = self._run("git", *words)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def release(self, *words):
        return self._run(self.folder / "tools/release", *words)

    def text(self, name):
        return (self.folder / name).read_text()

    def state(self):
        return self.git("rev-parse", "HEAD"), self.git("status", "--porcelain"), self.git("tag")


@pytest.fixture
def tree(root, tmp_path, call):
    return Tree(root, tmp_path, call)


def test_a_dry_run_shows_every_change_and_makes_none(tree):
    before = tree.state()
    done = tree.release("--dry-run", NEXT)
    assert done.returncode == 0, done.stderr
    changed = set(re.findall(r"^\+\+\+ b/(.*)$", done.stdout, re.M))
    assert changed == set(FILES) - {"CHANGELOG.md", "tools/release"}
    assert f"+plimsoll ({NEXT}) unstable; urgency=medium" in done.stdout
    assert tree.state() == before


def test_a_release_sets_one_version_everywhere_and_tags_it(tree, version):
    done = tree.release("--no-build", NEXT)
    assert done.returncode == 0, done.stderr
    assert f"version: '{NEXT}'" in tree.text("meson.build").splitlines()[0]
    assert f'__version__ = "{NEXT}"\n' in tree.text("python/plimsoll/__init__.py")
    header = tree.text("include/plimsoll/version.h")
    assert re.findall(r"^#define PLIMSOLL_VERSION_\w+ (\d+)$", header, re.M) == ["999", "2", "0"]
    entries = re.findall(r"^plimsoll \((.*)\) unstable;", tree.text("debian/changelog"), re.M)
    assert entries[:2] == [NEXT, version]
    # and nothing else is said to be of the version before
    assert version not in "".join(tree.text(name) for name in FILES[:3])
    assert tree.git("status", "--porcelain") == ""
    assert tree.git("log", "-1", "--format=%s") == f"release: {NEXT}"
    assert tree.git("rev-parse", f"v{NEXT}^{{commit}}") == tree.git("rev-parse", "HEAD")
    assert "It floats." in tree.git("tag", "-n9", f"v{NEXT}")


def add_a_file(tree):
    (tree.folder / "stray").write_text("")


def empty_the_section(tree):
    text = tree.text("CHANGELOG.md").replace("- It floats.\n", "")
    (tree.folder / "CHANGELOG.md").write_text(text)
    tree.git("commit", "--quiet", "-a", "-m", "say nothing")


@pytest.mark.parametrize(
    "prepare, asked, complaint",
    [
        (None, "999.2", "'999.2' is not a version"),
        (None, "999.02.0", "'999.02.0' is not a version"),
        (None, "0.1.0", "0.1.0 does not come after"),
        (None, "999.3.0", "says nothing below '## 999.3.0'"),
        (None, "999.2.00", "is not a version"),
        (empty_the_section, NEXT, f"says nothing below '## {NEXT}'"),
        (add_a_file, NEXT, "the tree is not clean"),
        (lambda tree: tree.git("checkout", "-q", "-b", "aside"), NEXT, "the branch is 'aside'"),
        (lambda tree: tree.git("tag", f"v{NEXT}"), NEXT, f"there is a tag v{NEXT} already"),
    ],
)  # fmt: skip
def test_a_release_is_refused(tree, prepare, asked, complaint):
    if prepare:
        prepare(tree)
    before = tree.state()
    for how in ("--dry-run", "--no-build"):
        done = tree.release(how, asked)
        assert done.returncode == 1 and complaint in done.stderr, done.stderr
        assert len(re.findall("^release:", done.stderr, re.M)) == 1
    assert tree.state() == before


def test_a_release_that_cannot_be_built_is_taken_back(tree):
    before = tree.state()
    done = tree.release(NEXT)  # there is no tools/build-deb, and nothing to build, in this tree
    assert done.returncode != 0 and "the commit was taken back" in done.stderr
    assert tree.state() == before


def test_the_changelog_has_this_version(root, version):
    text = (root / "CHANGELOG.md").read_text()
    assert re.search(rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$", text, re.M)
