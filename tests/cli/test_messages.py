# SPDX-License-Identifier: Apache-2.0
"""What a text of the program refers to is there wherever it is installed: neither wheels nor `make
install` bring docs/, so no text, header or manual page sends anybody to a file of it; commands that texts name exist."""

import ast
import re

import pytest

DOCUMENT = re.compile(r"docs/[\w-]+\.(?:md|png)")
STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')


def strings_of_c(path):
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
    for line in text.splitlines():
        if "static_assert" not in line:
            yield from STRING.findall(line)


def strings_of_python(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@pytest.mark.parametrize("folder, pattern, strings_of", [
    ("src", "*.[ch]", strings_of_c), ("python/plimsoll", "*.py", strings_of_python),
    ("python/plimsoll", "*.pyi", strings_of_python)])
def test_no_text_names_a_document_that_is_not_installed(root, folder, pattern, strings_of):
    paths = sorted((root / folder).rglob(pattern))
    assert paths
    named = {f"{path}: {text}" for path in paths for text in strings_of(path)
             if DOCUMENT.search(text)}
    assert not named


def test_no_header_or_manual_page_names_a_document_that_is_not_installed(root, call):
    headers = sorted((root / "include/plimsoll").glob("*.h"))
    pages = [page.read_text() for page in sorted((root / "man").glob("*.1"))]
    pages += [call(root / "tools/make-man3", "--page", "0", path).stdout for path in headers]
    assert len(pages) > len(headers) > 0 and all(pages)
    for text in [path.read_text() for path in headers] + pages:
        named = [line for line in text.splitlines()
                 if DOCUMENT.search(line) and "in the sources, " not in line]
        assert not named


def test_commands_that_texts_name_exist(root, meson_build, call):
    texts = [text for path in sorted((root / "src").rglob("*.[ch]")) for text in strings_of_c(path)]
    texts += [text for path in sorted((root / "python/plimsoll").rglob("*.py"))
              for text in strings_of_python(path)]
    named = {word for text in texts for word in re.findall(r"'plimsoll ([a-z]+)", text)}
    assert {"explain", "runs", "run"} <= named
    for command in sorted(named):
        assert call(meson_build / "src/cli/plimsoll", "help", command).returncode == 0, command
