# SPDX-License-Identifier: Apache-2.0
"""A program for test_memory.py: passes over pictures, and what they cost.

    memory_pass.py FOLDER BUDGET_BYTES N_EPOCHS STALLS

Says `ready BYTES` with its resident memory, waits for a line, and then says how far the peak lies
above that; how much resident memory grew after the tenth epoch, in all, and without the eight epochs
that added most; and the peak of claims. Now and then a thread needs a larger buffer than any before,
which is kept: that is a step of up to a MiB, and no leak, which adds something in every epoch."""

import gc
import pathlib
import sys
import time

import mapping
import sources

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "kernels"))


def status(name):
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) << 10
    raise AssertionError(name)


def run_epoch(dataset, stalls):
    n = 0
    iterator = sources.Pass(dataset)
    values = (sources.Value * dataset.n_components)()
    while sources.base.call("pl_iterator_next", iterator, values) == 1:
        n += 1
        if stalls and n == 2:
            time.sleep(0.3)  # what runs ahead meanwhile must stay within the budget
        for value in values:
            if value.tensor:
                sources.base.library().pl_tensor_unref(sources.ctypes.c_void_p(value.tensor))
    iterator.close()
    return n


def run(folder, budget_bytes, n_epochs, stalls):
    paths = sorted(pathlib.Path(folder).glob("*.jpg"))
    resident = []
    with sources.base.Runtime(cap_bytes=budget_bytes, spill=folder) as runtime:
        with mapping.pictures(runtime, paths, size=(256, 256)) as dataset:
            dataset = dataset.batch(8).prefetch(mapping.AUTO)
            for _ in range(n_epochs):
                assert run_epoch(dataset, stalls) == (len(paths) + 7) // 8
                resident.append(status("RssAnon"))
            del dataset
            gc.collect()
        peak_claimed = runtime.peak_bytes
    return *growth(resident[9:]), peak_claimed


def growth(resident):
    added = sorted(after - before for before, after in zip(resident, resident[1:]))
    return sum(added), sum(added[:-8])


def main(folder, budget_bytes, n_epochs, stalls):
    run(folder, 64 << 20, 1, False)  # code and libraries are there from now on
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    before = status("VmRSS")
    print("ready", before, flush=True)
    sys.stdin.readline()
    grown, steadily, peak_claimed = run(folder, int(budget_bytes), int(n_epochs), stalls == "stalls")
    print(status("VmHWM") - before, grown, steadily, peak_claimed, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
