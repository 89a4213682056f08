#!/usr/bin/env python3
"""Holds the draws of the feed against torchvision's by two-sample Kolmogorov-Smirnov tests.

    PYTHONPATH=build/release/python python3 bench/feed_laws.py [--draws 100000]

Prints the distance and the p-value of each quantity, and exits with 1 if a p-value is below 0.001.
"""
import argparse
import math
import sys

import numpy as np
import torch
import weir
from torchvision import transforms


def ks(ours, theirs):
    """Returns the distance of two samples and its asymptotic p-value."""
    ours, theirs = np.sort(ours), np.sort(theirs)
    both = np.concatenate([ours, theirs])
    distance = np.abs(np.searchsorted(ours, both, "right") / len(ours) - np.searchsorted(theirs, both, "right") / len(theirs)).max()
    scaled = math.sqrt(len(ours) * len(theirs) / (len(ours) + len(theirs))) * distance
    return distance, min(1.0, 2 * sum((-1) ** (k - 1) * math.exp(-2 * (k * scaled) ** 2) for k in range(1, 101))) if scaled > 0.2 else 1.0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=100_000)
    count = parser.parse_args().draws
    torch.manual_seed(1)
    worst = 1.0

    def compare(name, ours, theirs):
        nonlocal worst
        distance, p = ks(np.asarray(ours, float), np.asarray(theirs, float))
        worst = min(worst, p)
        print(f"{name:32} distance {distance:.5f}  p {p:.3f}", flush=True)

    for width, height in ((500, 375), (120, 900)):
        picture = torch.empty(3, height, width, dtype=torch.uint8)
        theirs = np.array([transforms.RandomResizedCrop.get_params(picture, (0.08, 1.0), (3 / 4, 4 / 3)) for _ in range(count)])[:, [1, 0, 3, 2]]
        ours = weir.draws(width, height, 0, count, seed=3)["box"]
        for column, name in enumerate(("x", "y", "width", "height")):
            compare(f"crop {name} of {width}x{height}", ours[:, column], theirs[:, column])
    ours = weir.draws(10, 10, 0, count, seed=3, crop="none", flip=0.3, rotation=25, brightness=0.4, contrast=0.3, saturation=1.5, hue=0.1)
    compare("flip", ours["flips"][:, 0], (torch.rand(count) < 0.3).numpy())
    compare("rotation", ours["angle"], [transforms.RandomRotation.get_params([-25.0, 25.0]) for _ in range(count)])
    jitter = [transforms.ColorJitter.get_params([0.6, 1.4], [0.7, 1.3], [0.0, 2.5], [-0.1, 0.1]) for _ in range(count)]
    for column, name in enumerate(("brightness", "contrast", "saturation", "hue")):
        compare(f"jitter {name}", ours["factors"][:, column], [draw[column + 1] for draw in jitter])
    orders = np.array([draw[0].numpy() for draw in jitter])
    weights = np.array([64, 16, 4, 1])
    compare("jitter order", ours["order"] @ weights, orders @ weights)
    return 1 if worst < 0.001 else 0


if __name__ == "__main__":
    sys.exit(main())
