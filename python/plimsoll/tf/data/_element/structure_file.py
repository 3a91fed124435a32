# SPDX-License-Identifier: Apache-2.0
"""The structure of saved elements, beside them: what the folders of save() and snapshot() do not
hold. `structure.json` is a tree of structure.py; a named tuple is kept by its name and fields.
"""
from __future__ import annotations

import collections
import json
import os
import pathlib
import secrets
from typing import Any

from plimsoll import _core, errors

from plimsoll.tf.data._element import structure as _structure
from plimsoll.tf.data._base import make

FILE_NAME = "structure.json"


def write_tree(folder: str, tree: _structure.Tree) -> None:
    """There as a whole or not at all, and in the place of nothing but another such file."""
    path = pathlib.Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    target = path / FILE_NAME
    if os.path.lexists(target) and not _is_structure(target):
        raise errors.AlreadyExistsError(
            None,
            None,
            f"'{target}' is there, and not the structure of saved elements: move it away, or give "
            "another folder",
        )
    # A name that can be guessed may be a link by now: "x" opens none.
    draft = path / f".{FILE_NAME}.{secrets.token_hex(8)}"
    with open(draft, "x") as file:
        try:
            file.write(json.dumps({"version": 1, "tree": _to_json(tree)}) + "\n")
            file.flush()
            draft.replace(target)
        except BaseException:
            draft.unlink()
            raise


def _is_structure(path: pathlib.Path) -> bool:
    if not path.is_file():
        return False
    try:
        kept = json.loads(path.read_text())
    except ValueError:
        return False
    return isinstance(kept, dict) and "tree" in kept


def read_tree(folder: str, n_components: int) -> _structure.Tree:
    try:
        kept = json.loads((pathlib.Path(folder) / FILE_NAME).read_text())
        tree = _from_json(kept["tree"])
    except FileNotFoundError:  # written by a C program: components, no structure
        tree = None if n_components == 1 else ("tuple", [None] * n_components)
    except (ValueError, LookupError, TypeError) as error:
        raise errors.DataLossError(
            None, None, f"'{folder}/{FILE_NAME}': no structure can be read in it: {error}"
        ) from error
    if _structure.n_leaves(tree) != n_components:
        raise errors.DataLossError(
            None,
            None,
            f"'{folder}/{FILE_NAME}' has {_structure.n_leaves(tree)} components, the elements have "
            f"{n_components}",
        )
    return tree


def load(path: Any, element_spec: Any) -> Any:
    folder = os.fspath(path)
    core = _core.ds_load(folder)
    if element_spec is None:
        return make(core, read_tree(folder, len(core.specs)), "Load", (), {})
    tree, wanted = _structure.flatten(element_spec)
    dataset = make(core, tree, "Load", (), {})
    if len(wanted) != len(core.specs):
        raise errors.InvalidArgumentError(
            None, None, f"'{folder}' has {len(core.specs)} components, element_spec has {len(wanted)}"
        )
    for have, want in zip(_structure.flatten_as(tree, dataset.element_spec), wanted):
        if not want.is_compatible_with(have):
            raise errors.InvalidArgumentError(
                None, None, f"'{folder}' has {have}, element_spec says {want}"
            )
    return dataset


def _to_json(tree: _structure.Tree) -> Any:
    if tree is None:
        return None
    parts = [_to_json(part) for part in _structure.parts_of(tree)]
    if tree[0] == "dict":
        if not all(isinstance(key, (str, int)) for key in tree[1]):
            raise NotImplementedError("Dataset.save(): keys of a dict other than str and int")
        return ["dict", tree[1], parts]
    if tree[0] == "tuple":
        return ["tuple", parts]
    if tree[0] == "named" and hasattr(tree[1], "_fields"):
        return ["named", [tree[1].__name__, list(tree[1]._fields)], parts]
    raise NotImplementedError("Dataset.save(): elements that are datasets or sparse tensors")


def _from_json(kept: Any) -> _structure.Tree:
    if kept is None:
        return None
    kind, parts = kept[0], [_from_json(part) for part in kept[-1]]
    if kind == "tuple":
        return ("tuple", parts)
    if kind == "dict":
        return ("dict", kept[1], parts)
    name, fields = kept[1]
    return ("named", collections.namedtuple(name, fields), parts)
