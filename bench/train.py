# SPDX-License-Identifier: Apache-2.0
"""A small torch training loop: a convolution, a perceptron, SGD with momentum, batches made on the
way as a loader would. Usage: train.py [SCALE]"""

import os

import torch
from torch import nn

import region

FULL_STEPS = 300
BATCH = 64


def make_model():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(8 * 14 * 14, 256),
        nn.ReLU(),
        nn.Linear(256, 10),
    )


def main():
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
    torch.manual_seed(1)
    images, labels = torch.rand(1024, 1, 28, 28), torch.randint(10, (1024,))
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loss = None
    with region.measured():
        for _ in range(max(1, round(region.scale() * FULL_STEPS))):
            picked = torch.randint(len(images), (BATCH,))
            batch = (images[picked] - 0.5) / 0.25
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(batch), labels[picked])
            loss.backward()
            optimizer.step()
    # Four digits: the order of a threaded product's sums may differ between two runs.
    print(f"{loss.item():.4g}")


main()
