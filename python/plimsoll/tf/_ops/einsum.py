# SPDX-License-Identifier: Apache-2.0
"""einsum as transposes, sums and one matmul for each pair of inputs."""
from __future__ import annotations

from builtins import range as span
from typing import Any

from plimsoll.tf._ops.reshape import transpose
from plimsoll.tf._values.convert import Tensor, dims, invalid, numpy_call, rank_of
from plimsoll.tf._ops.reduce import _contracted, reduce_sum

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _parse(equation: str, inputs: list[Tensor]) -> tuple[list[str], str]:
    """The labels of each input and of the result, "..." written out."""
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(inputs):
        raise ValueError(f"einsum: '{equation}' has {len(terms)} inputs, and {len(inputs)} are "
                         "given")
    free = [letter for letter in _LETTERS if letter not in text]
    widest = 0
    for i, (term, x) in enumerate(zip(terms, inputs)):
        n_axes, named = rank_of(x, "einsum"), len(term.replace("...", ""))
        if "..." not in term and named != n_axes:
            raise ValueError(f"einsum: '{term}' names {named} axes, and the input has {n_axes}")
        if named > n_axes:
            raise ValueError(f"einsum: '{term}' names {named} axes, and the input has {n_axes}")
        n_more = n_axes - named
        widest = max(widest, n_more) if "..." in term else widest
        terms[i] = term.replace("...", "".join(reversed(free[:n_more])))
    more = "".join(reversed(free[:widest]))
    if arrow:
        return terms, right.replace("...", more)
    every = "".join(terms)
    alone = [c for c in sorted(set(every)) if every.count(c) == 1 and c not in more]
    return terms, more + "".join(alone)


def contract(equation: str, inputs: list[Tensor], name: str | None) -> Tensor:
    """The sums of products that `equation` describes."""
    terms, result = _parse(equation, inputs)
    unknown = set(result) - set("".join(terms))
    if unknown or len(set(result)) != len(result):
        raise ValueError(f"einsum: '{equation}': each label of the result is one of an input's, "
                         "once")
    if any(len(set(term)) != len(term) for term in terms) or _broadcasts(terms, inputs):
        return _by_numpy(",".join(terms) + "->" + result, inputs, name)
    x, labels = inputs[0], terms[0]
    for i in span(1, len(inputs)):
        needed = set(result).union(*terms[i + 1:])
        x, labels = _pair(x, labels, inputs[i], terms[i], needed)
    x, labels = _summed(x, labels, set(result))
    order = [labels.index(label) for label in result]
    return x if order == list(span(len(order))) else transpose(x, order, name=name)


def _broadcasts(terms: list[str], inputs: list[Tensor]) -> bool:
    """Has a label different dimensions, one of them 1? Others are an error."""
    sizes: dict[str, Any] = {}
    mixed = False
    for term, x in zip(terms, inputs):
        for label, n in zip(term, dims(x)):
            other = sizes.setdefault(label, n)
            if n is not None and other is not None and n != other:
                if 1 not in (n, other):
                    invalid(f"einsum: label '{label}' is {other} and {n}")
                mixed = True
    return mixed


def _summed(x: Tensor, labels: str, needed: set[str]) -> tuple[Tensor, str]:
    gone = [i for i, label in enumerate(labels) if label not in needed]
    if not gone:
        return x, labels
    return reduce_sum(x, gone), "".join(label for label in labels if label in needed)


def _pair(x: Tensor, of_x: str, y: Tensor, of_y: str, needed: set[str]) -> tuple[Tensor, str]:
    x, of_x = _summed(x, of_x, needed | set(of_y))
    y, of_y = _summed(y, of_y, needed | set(of_x))
    both = [label for label in of_x if label in of_y]
    batch = [label for label in both if label in needed]
    gone = [label for label in both if label not in needed]
    own_x = [label for label in of_x if label not in both]
    own_y = [label for label in of_y if label not in both]

    def places(labels: list[str], term: str) -> list[int]:
        return [term.index(label) for label in labels]

    out = _contracted(x, y, (places(batch, of_x), places(own_x, of_x), places(gone, of_x)),
                      (places(batch, of_y), places(own_y, of_y), places(gone, of_y)), None)
    return out, "".join(batch + own_x + own_y)


def _by_numpy(equation: str, inputs: list[Tensor], name: str | None) -> Tensor:
    def products(*arrays: Any) -> Any:
        import numpy as np

        return np.einsum(equation, *arrays)

    n_axes = len(equation.partition("->")[2])
    return numpy_call(products, inputs, inputs[0].dtype, [None] * n_axes, name)
