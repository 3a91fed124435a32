#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Times datasets beside what people use: pictures to batches, rows of .npy files, elements.

usage: bench/datasets.py [--scale PART] [--rounds N] [--folder PATH]

The data is made here, with fixed seeds. Interleaved rounds, two threads each; ratios of wall time,
unless a row says processor time. Nothing passes or fails here: a machine may be busy."""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

import numpy as np
from PIL import Image

import document
import measure
import subjects

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("PLIMSOLL_BUILD", ROOT / "build")) / "meson"
PYTHON = "/usr/bin/python3"
TITLE = "datasets, 2 threads"
N_PICTURES = 1600
ROW_BYTES = 4096, 65536
N_ROW_BYTES = 1 << 30
# In order, values may take 8 MiB, and a batch a part of it, so that it stays in the processor's
# cache. Shuffled, a file that is mapped needs a budget that its page tables are little of.
# The bare loop reads in order in pieces of several sizes, each to the same memory, and the best of
# them is the peer: it is what a core of this machine gets from the page cache, whatever the target.
ORDERED = {"shuffle": 0, "batch": 1 << 20, "cap": 8 << 20, "within": "1 MiB, in 8 MiB"}
PIECES = 256 << 10, 512 << 10, 1 << 20
SHUFFLED = {"shuffle": 1, "batch": 8 << 20, "cap": 0, "within": "8 MiB"}
N_ELEMENTS = 2_000_000

# Idle threads of libraries would spin for the first tenth of a second, and be counted as work.
AT_REST = {name: subjects.ENVIRONMENT[name] for name in ("GOMP_SPINCOUNT", "OPENBLAS_THREAD_TIMEOUT")}

# torch's DataLoader with Pillow, as its documentation has it.
TORCH = """
import glob, sys, time
import numpy as np, torch
from PIL import Image
torch.set_num_threads(1)
class Pictures(torch.utils.data.Dataset):
    def __init__(self, paths): self.paths = paths
    def __len__(self): return len(self.paths)
    def __getitem__(self, i):
        image = Image.open(self.paths[i]).convert("RGB").resize((256, 256), Image.BILINEAR)
        return torch.from_numpy(np.asarray(image, dtype=np.float32))
paths = sorted(glob.glob(sys.argv[1]))
loader = torch.utils.data.DataLoader(Pictures(paths), batch_size=32, num_workers=2)
begin, n = time.monotonic(), 0
for batch in loader: n += len(batch)
print(n, time.monotonic() - begin, 0)
"""

PILLOW = """
import glob, sys, time
from multiprocessing import Pool
import numpy as np
from PIL import Image
def load(path):
    image = Image.open(path).convert("RGB").resize((256, 256), Image.BILINEAR)
    return np.asarray(image, dtype=np.float32).sum()
if __name__ == "__main__":
    paths = sorted(glob.glob(sys.argv[1]))
    with Pool(2) as pool:
        begin = time.monotonic()
        n = len(pool.map(load, paths, chunksize=8))
        print(n, time.monotonic() - begin, 0)
"""

# One core, in pieces of the same size; what NumPy's users do for rows in any order. As ours, it is
# timed when it goes through the file the second time.
NUMPY_ROWS = """
import sys, time
import numpy as np
path, batch, shuffle = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rows = np.load(path, mmap_mode="r")
n = max(1, batch // rows.shape[1])
order = np.random.default_rng(1).permutation(len(rows)) if shuffle else np.arange(len(rows))
for _ in range(2):
    begin, total = time.process_time(), 0
    for i in range(0, len(rows), n):
        total += (rows[order[i:i + n]] if shuffle else np.array(rows[i:i + n])).nbytes
print(total, 0, time.process_time() - begin)
"""


def make_pictures(folder, n):
    """500 x 375, smooth with some noise: about 70 KB as JPEG."""
    chance = np.random.default_rng(5)
    for kind in ("jpg", "png"):
        (folder / kind).mkdir()
    for i in range(n):
        small = Image.fromarray(chance.integers(0, 256, (24, 32, 3), dtype=np.uint8))
        smooth = np.asarray(small.resize((500, 375), Image.BICUBIC)).astype(int)
        image = Image.fromarray((smooth + chance.integers(-12, 13, smooth.shape))
                                .clip(0, 255).astype(np.uint8))
        image.save(folder / f"jpg/{i:05}.jpg", quality=90)
        if i < n // 4:
            image.save(folder / f"png/{i:05}.png")


def make_rows(folder, row_bytes, n_bytes):
    """Written in large pieces, as np.save() does it: what is written page by page, through a memory
    map, lies in small pages in the cache, and is read at half the speed until it was on the disk."""
    path = folder / f"rows-{row_bytes}.npy"
    piece = np.tile(np.arange(row_bytes, dtype=np.uint8), (1 << 20) // row_bytes).tobytes()
    header = {"descr": "|u1", "fortran_order": False, "shape": (n_bytes // row_bytes, row_bytes)}
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for _ in range(n_bytes >> 20):
            file.write(piece)
    return path


def build(folder, name, *libraries):
    program = folder / name
    library = BUILD / "src"
    outside = [f"-L{library}", "-lplimsoll", f"-Wl,-rpath,{library}"]
    subprocess.run([os.environ.get("CC", "cc"), "-std=gnu17", "-D_GNU_SOURCE", "-O3",
                    "-march=native", f"-I{ROOT}/include", ROOT / f"bench/{name}.c",
                    *(libraries or outside), "-lm", "-pthread", "-o", program], check=True)
    return program


def run(command):
    """How many of them in a second of wall time, and of processor time; None: not told."""
    words = subprocess.run([str(word) for word in command], check=True, text=True,
                           capture_output=True, env={**os.environ, **AT_REST}).stdout.split()
    n, seconds, cpu = (float(word) for word in words[:3])
    return n / seconds if seconds else None, n / cpu if cpu else None


def take_turns(commands, n_rounds, say):
    """Speeds by name: wall and processor time of each round. The first round warms caches."""
    speeds = {name: [] for name in commands}
    for i in range(n_rounds + 1):
        names = list(commands)
        for name in names[i % len(names):] + names[:i % len(names)]:
            speed = run(commands[name])
            if i > 0:
                speeds[name].append(speed)
        say(f"round {i} of {n_rounds}: {', '.join(commands)}")
    return speeds


def ratio(speeds, ours, other, at):
    mine, others = ([speed[at] for speed in speeds[name]] for name in (ours, other))
    return document.show_ratio(measure.ratio_of(mine, others))


def median(speeds, name, at):
    return statistics.median(speed[at] for speed in speeds[name])


def picture_rows(folder, n_rounds, say):
    ours, bare = build(folder, "images"), build(folder, "images_bare", "-ljpeg")
    jpegs, pngs = folder / "jpg/*.jpg", folder / "png/*.png"
    files = sorted((folder / "jpg").iterdir())
    rows = []
    for antialias, what in ((0, "two taps"), (1, "antialiased")):
        speeds = take_turns({
            "ours": [ours, "decode_jpeg", antialias, 2, jpegs],
            "bare": [bare, antialias, 2, *files],
            **({"torch": [PYTHON, "-c", TORCH, jpegs]} if not antialias else {}),
        }, n_rounds, say)
        cpu_ms = 1000 / median(speeds, "ours", 1)
        rows.append({"what": f"JPEG to batches, {what} ({median(speeds, 'ours', 0):.0f} pictures/s, "
                             f"{cpu_ms:.2f} ms of processor each): to a bare C program",
                     "measured": ratio(speeds, "ours", "bare", 0), "target": ">= 0.95 x"})
        rows.append({"what": "the same by processor time",
                     "measured": ratio(speeds, "ours", "bare", 1), "target": "-"})
        if not antialias:
            rows.append({"what": "to torch's DataLoader with Pillow, 2 workers",
                         "measured": ratio(speeds, "ours", "torch", 0), "target": ">= 3.3 x"})
    speeds = take_turns({"ours": [ours, "decode_png", 0, 2, pngs],
                         "pillow": [PYTHON, "-c", PILLOW, pngs]}, n_rounds, say)
    rows.append({"what": f"PNG to batches ({median(speeds, 'ours', 0):.0f} pictures/s): to Pillow in "
                         "2 processes", "measured": ratio(speeds, "ours", "pillow", 0),
                 "target": ">= 1.8 x"})
    return rows


def row_rows(folder, n_bytes, n_rounds, say):
    rows, ours, bare = [], build(folder, "rows"), build(folder, "rows_bare", "-pthread")
    for row_bytes in ROW_BYTES:
        path = make_rows(folder, row_bytes, n_bytes)
        for how, what, wanted in ((ORDERED, "in order", 12), (SHUFFLED, "shuffled", 4)):
            which = [path, how["batch"], how["shuffle"]]
            pieces = [how["batch"]] if how["shuffle"] else PIECES
            bares = {f"bare {piece >> 10} KiB": [bare, path, piece, how["shuffle"]]
                     for piece in pieces}
            speeds = take_turns({"ours": [ours, *which, how["cap"]], **bares,
                                 "numpy": [PYTHON, "-c", NUMPY_ROWS, *which]},
                                n_rounds, say)
            best = max(bares, key=lambda name: median(speeds, name, 1))
            how_bare = "" if how["shuffle"] else f", the best of pieces of {best[5:]}"
            rows.append({"what": f"rows of {row_bytes} bytes of an .npy file, {what}, to batches of "
                                 f"{how['within']}, by processor time",
                         "measured": f"{median(speeds, 'ours', 1) / 1e9:.1f} GB/s",
                         "target": f">= {wanted} GB/s"})
            rows.append({"what": f"to a bare loop of pread{how_bare} "
                                 f"({median(speeds, best, 1) / 1e9:.1f} GB/s)",
                         "measured": ratio(speeds, "ours", best, 1), "target": "-"})
            rows.append({"what": "to NumPy's memory map "
                                 f"({median(speeds, 'numpy', 1) / 1e9:.1f} GB/s)",
                         "measured": ratio(speeds, "ours", "numpy", 1), "target": "-"})
        path.unlink()
    return rows


def element_rows(folder, n, n_rounds, say):
    program = build(folder, "elements")
    speeds = take_turns({"batched": [program, n, 1000], "one by one": [program, n, 0]},
                        n_rounds, say)
    return [{"what": f"a range through an empty map, {how}: for each element",
             "measured": f"{1e6 / median(speeds, how, 0):.2f} us", "target": f"< {target} us"}
            for how, target in (("batched", 0.3), ("one by one", 1.5))]


def costs(directory, scale, n_rounds, say):
    """Rows for document.cost_table()."""
    with tempfile.TemporaryDirectory(dir=directory) as name:
        folder = pathlib.Path(name)
        say("making pictures")
        make_pictures(folder, int(N_PICTURES * scale))
        return (picture_rows(folder, n_rounds, say)
                + row_rows(folder, int(N_ROW_BYTES * scale) & ~0xFFFFF, n_rounds, say)
                + element_rows(folder, int(N_ELEMENTS * scale), n_rounds, say))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=1, help="of the data, to try this")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", help="for the files (default: a temporary one)")
    options = parser.parse_args()
    rows = costs(options.folder, options.scale, options.rounds,
                 lambda text: print(text, file=sys.stderr, flush=True))
    print(document.cost_table(TITLE, rows))


if __name__ == "__main__":
    sys.exit(main())
