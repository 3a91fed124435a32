#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Times pictures through a session, one run for each: decoded, resized, cast, scaled.

usage: bench/pictures.py [--rounds N] [--beside BUILD]

With --beside, what another build of Plimsoll (its build/) takes for the same, over what this one takes: processor
time of interleaved rounds, and instructions by callgrind, which also counts the plans made for 1000 pictures. Nothing
passes or fails here: a machine may be busy."""

import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

import numpy as np
from PIL import Image

import document

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("PLIMSOLL_BUILD", ROOT / "build"))
TITLE = "pictures of 96 x 128, one run each"
N_PICTURES = 1000
N_PICTURES_COUNTED = 1000  # by callgrind

CASES = {
    "resized": "decode, resize to 64 x 64, scale",
    "cast": "decode, cast, scale",
    "between": "decode, cast, resize, scale",
    "small": "decode, mean, 20 small ops",
}


def make_pictures(folder):
    """The same picture twice, and one for each of eight sizes."""
    rng = np.random.default_rng(7)
    noise = Image.fromarray(rng.integers(0, 256, (12, 16, 3), dtype=np.uint8))
    for extension in ("jpg", "png"):
        noise.resize((128, 96), Image.BILINEAR).save(folder / f"one.{extension}")
        for i in range(8):
            noise.resize((124 + i, 96), Image.BILINEAR).save(folder / f"size{i}.{extension}")


def build_program(folder, build):
    library = build / "meson" / "src"
    program = folder / f"pictures-{len(list(folder.glob('pictures-*')))}"
    subprocess.run([os.environ.get("CC", "cc"), "-std=gnu17", "-O2", "-g", "-D_GNU_SOURCE", f"-I{ROOT}/include",
                    ROOT / "bench/pictures.c", f"-L{library}", "-lplimsoll",
                    f"-Wl,-rpath,{library}", "-o", program], check=True)
    return program


def files_of(folder, kind, sizes):
    return [str(folder / f"size{i}.{kind}") for i in range(8)] if sizes else [str(folder / f"one.{kind}")]


def cpu_us(program, case, files):
    done = subprocess.run([program, case, str(N_PICTURES), *files], check=True, text=True, capture_output=True)
    n, _, cpu_s, _, answer = done.stdout.split()
    return float(cpu_s) / int(n) * 1e6, answer


def counted(program, case, files, folder):
    """Instructions for each picture, and calls of pl_plan_new() in all."""
    out = folder / "callgrind.out"
    subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--compress-strings=no",
                    "--compress-pos=no", "-q", program, case, str(N_PICTURES_COUNTED), *files],
                   check=True, capture_output=True)
    text = out.read_text()
    total = int(re.search(r"^(?:totals|summary): (\d+)", text, re.MULTILINE).group(1))
    plans = sum(int(n) for n in re.findall(r"^cfn=pl_plan_new\ncalls=(\d+)", text, re.MULTILINE))
    return total / N_PICTURES_COUNTED, plans


def spread(values, unit, digits):
    low, median, high = statistics.quantiles(values, n=4)
    return f"{median:.{digits}f}{unit} ({low:.{digits}f}-{high:.{digits}f})"


def kinds():
    for case, words in CASES.items():
        for kind in ("jpg", "png"):
            yield case, kind, False, f"{kind.replace('jpg', 'jpeg').upper()}: {words}"
    yield "resized", "jpg", True, f"JPEG, eight sizes: {CASES['resized']}"
    yield "cast", "jpg", True, f"JPEG, eight sizes: {CASES['cast']}"


def costs(directory, n_rounds, say):
    """The rows of the table."""
    folder = pathlib.Path(directory)
    make_pictures(folder)
    program = build_program(folder, BUILD)
    rows = []
    for case, kind, sizes, words in kinds():
        say(f"pictures: {words}")
        files = files_of(folder, kind, sizes)
        taken = [cpu_us(program, case, files)[0] for _ in range(n_rounds)]
        rows.append({"what": f"{words}: processor time of each", "measured": spread(taken, " us", 0),
                     "target": "?"})
    return rows


def compare(folder, other, n_rounds, say):
    make_pictures(folder)
    programs = build_program(folder, other), build_program(folder, BUILD)
    lines = ["| pipeline | plans of 1000: before, now | instructions, before / now | CPU time, before / now |",
             "|---|---|---|---|"]
    for case, kind, sizes, words in kinds():
        say(f"pictures: {words}")
        files = files_of(folder, kind, sizes)
        before, now = (counted(program, case, files, folder) for program in programs)
        ratios, answers = [], set()
        for i in range(n_rounds):
            both = {program: cpu_us(program, case, files) for program in (programs if i % 2 else programs[::-1])}
            ratios.append(both[programs[0]][0] / both[programs[1]][0])
            answers |= {answer for _, answer in both.values()}
        if len(answers) > 1:
            words += " (ANSWERS DIFFER)"
        lines.append(f"| {words} | {before[1]}, {now[1]} | {before[0] / now[0]:.3f} "
                     f"({before[0]:,.0f} / {now[0]:,.0f}) | {spread(ratios, '', 3)} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--beside", type=pathlib.Path, help="another build/")
    arguments = parser.parse_args()

    def say(text):
        print(text, file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory(prefix="plimsoll-bench-") as directory:
        if arguments.beside:
            print(compare(pathlib.Path(directory), arguments.beside, arguments.rounds, say))
        else:
            print(document.cost_table(TITLE, costs(directory, arguments.rounds, say)))


if __name__ == "__main__":
    main()
