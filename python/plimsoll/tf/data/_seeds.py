# SPDX-License-Identifier: Apache-2.0
"""Seeds of shuffles and draws, with tf.random.set_seed()'s.

As TensorFlow has it: with neither seed each dataset draws anew, with one or both it draws the same
in each run of the program.
"""
from __future__ import annotations

import os
from typing import Any

from plimsoll.tf import random


AUTO = -1  # the library draws one, and checkpoints and files know the dataset without it


def stage_seed_of(seed: Any) -> int:
    """Like seed_of(), for the library's own stages: AUTO with neither seed.

    >>> stage_seed_of(4) == seed_of(4)
    True
    """
    return AUTO if seed is None and random._state.seed is None else seed_of(seed)


def seed_of(seed: Any) -> int:
    """A number from 0 on: the seed that a method was given and the program's, mixed.

    >>> seed_of(4) == seed_of(4)
    True
    """
    programs = random._state.seed
    if seed is None and programs is None:
        return int.from_bytes(os.urandom(8), "little") >> 1
    base = 0 if programs is None else programs
    if seed is None:  # datasets of one program differ, and are the same in its next run
        return random.mixed(random.mixed(base, 1), random._state.next("dataset"))
    return random.mixed(base, int(seed))
