# SPDX-License-Identifier: Apache-2.0
"""A torch DataLoader with four worker processes, which send batches through shared memory.
Usage: loader.py [SCALE]"""

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

import region

FULL_EPOCHS = 4
N_SAMPLES = 6_000
N_WORKERS = 4


class Pictures(Dataset):
    """Made from noise, scaled and cropped as a decoded picture would be."""

    def __len__(self):
        return N_SAMPLES

    def __getitem__(self, i):
        rng = np.random.default_rng(i)
        pixels = rng.integers(256, size=(96, 96, 3), dtype=np.uint8)
        crop = pixels[16:80, 16:80].astype(np.float32) / 255.0
        return torch.from_numpy(np.ascontiguousarray(crop.transpose(2, 0, 1))), i % 10


def main():
    loader = DataLoader(Pictures(), batch_size=64, num_workers=N_WORKERS)
    total = 0.0
    for _ in range(max(1, round(region.scale() * FULL_EPOCHS))):
        for batch, labels in loader:
            total += float(batch.mean()) + float(labels.sum())
    print(f"{total:.6g}")


if __name__ == "__main__":
    main()
