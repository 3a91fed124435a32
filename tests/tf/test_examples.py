# SPDX-License-Identifier: Apache-2.0
"""The fifteen programs that kill a kernel, each in a memory cgroup of 1 GiB with a budget of
768 MiB: none dies, and each says what its first lines promise."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from support import cgroup  # noqa: E402, F401: a fixture

MIB = 1 << 20
LIMIT_S = 600  # not a judgement of speed: a program that hangs is stopped

# What each must say, as patterns, in this order.
SAYS = {
    "tensor_larger_than_memory": [r"refused after (\d+) ms: .*3\.6 TiB", r"matrices: \(500, 10000\)"],
    "variables_without_end": [r"sum over all variables: -?\d", r"300 variables are held, 1\.2 GB",
                              r"let go of: 0"],
    "sessions_never_closed": [r"are open: 20", r"forgotten: 0", r"block: 42"],
    "array_larger_than_budget": [r"mean of 1\.2 GB: 0\.5", r"refused: matmul .*inner dimensions",
                                 r"refused: .*3\.6 TiB"],
    "tensors_kept_in_a_list": [r"came back: True", r"held: 8\d\d MB, of which in memory: \d+ MB",
                               r"made at .*tensors_kept_in_a_list\.py:\d"],
    "shapes_that_do_not_fit": [r"refused: add .*shapes \[10,10\] and \[20,20\]",
                               r"what fits: \(10, 10\)"],
    "product_with_its_transpose": [r"matmul", r"result: \(10000, 10000\) symmetric: True",
                                   r"claimed at most: \d+ MB of \d+ MB"],
    "device_that_is_not_there": [r"GPUs: \d", r"instead: \[5\. 7\. 9\.\]", r"refused: .*/GPU:7"],
    "versions_that_do_not_match": [r"Plimsoll: \d", r"Python: 3", r"Result: \[5 7 9\]"],
    "prefetch_without_bound": [r"pictures: 100000", r"claimed at most: \d+ MB of \d+ MB"],
    "map_too_parallel": [r"maps: 10000", r"map", r"claimed at most: \d+ MB of \d+ MB"],
    "corrupt_files": [r"InvalidArgumentError: .*image_0050\.png", r"could be read: 197",
                      r"image_0050\.png(.|\n)*image_0100\.png(.|\n)*image_0150\.png"],
    "generator_of_whole_files": [r"whole files: \[\(50000, 1000\), \(50000, 1000\), \(50000, 1000\)\]",
                                 r"by rows: 150000"],
    "generator_in_batches": [r"rows: 150000"],
    "generator_that_meets_bad_files": [r"Error after 992 rows", r"file1\.npy is skipped: ValueError",
                                       r"nonexistent_file\.npy is skipped: FileNotFoundError",
                                       r"good files: 2000"],
}


@pytest.mark.parametrize("name", SAYS)
def test_the_program_lives_and_says_what_was_wrong(cgroup, tmp_path, name):
    group = cgroup(1024 * MIB)
    environment = {**os.environ, "PLIMSOLL_BUDGET": "768M", "PYTHONPATH": str(ROOT / "build/python"),
                   "PLIMSOLL_SPILL": str(tmp_path), "TMPDIR": str(tmp_path)}
    program = ROOT / "examples" / f"{name}.py"
    done = subprocess.run(["/usr/bin/python3", program], env=environment, text=True, cwd=tmp_path,
                          capture_output=True, preexec_fn=group.enter, timeout=LIMIT_S)
    assert group.n_oom_kills() == 0
    assert done.returncode == 0, done.stderr
    assert re.search("(.|\n)*".join(SAYS[name]), done.stdout), done.stdout


def test_there_are_fifteen_of_them():
    there = {path.stem for path in (ROOT / "examples").glob("*.py")} - {"sample_data"}
    assert there == set(SAYS) and len(SAYS) == 15
