#!/usr/bin/env python3
"""Compares weir's feed with the loaders that people use.

    PYTHONPATH=build/release/python python3 bench/feed.py SET_FOLDER [--pairs 9] [--seconds 4] [--only NAME,...]

SET_FOLDER is a folder with a folder of JPEGs for each class. Each loader makes random resized crops of 224 x 224 with
flips, uint8, batch 64, from warm files, in a process of its own that may use two cores. The pairs are interleaved:
weir, then one peer, again and again. The figure is images per CPU-second (of the process and its workers). A loader
that is not installed is left out, and named.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time

BATCH = 64


def cpu_seconds():
    own, workers = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(use.ru_utime + use.ru_stime for use in (own, workers))


def weir_batches(folder):
    import weir
    feed = weir.Feed(folder, batch=BATCH, seed=1, threads=2, orientation="ignore")
    while True:
        for batch in feed:
            yield len(batch["image"])


def torch_batches(folder, workers=2):
    import numpy as np
    import torch
    from torchvision import transforms
    from torchvision.datasets import ImageFolder
    torch.set_num_threads(1)
    steps = transforms.Compose([transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), np.asarray])
    loader = torch.utils.data.DataLoader(ImageFolder(folder, steps), BATCH, shuffle=True, num_workers=workers, drop_last=True, persistent_workers=True)
    while True:
        for images, _ in loader:
            yield len(images)


def webdataset_batches(folder):
    import numpy as np
    import torch
    import webdataset
    from torchvision import transforms
    torch.set_num_threads(1)
    steps = transforms.Compose([transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), np.asarray])
    shards = sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".tar"))
    data = webdataset.WebDataset(shards * 1000, shardshuffle=100).shuffle(1000).decode("pil").to_tuple("jpg", "cls").map_tuple(steps, int)
    loader = torch.utils.data.DataLoader(data, BATCH, num_workers=2)
    for images, _ in loader:
        yield len(images)


LOADERS = {"weir": weir_batches, "torch": torch_batches, "webdataset": webdataset_batches}


def measure(name, folder, seconds):
    """Prints images per CPU-second, and images per second, of one loader."""
    batches = LOADERS[name](folder)
    for _ in range(6):  # start-up and warm files
        next(batches)
    # Workers' CPU time is counted when they end, so it is read from /proc while they run.
    def all_cpu():
        total = cpu_seconds()
        for pid in os.listdir("/proc"):
            if not pid.isdigit():
                continue
            try:
                with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                    fields = file.read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[1]) == os.getpid():
                total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return total
    begin, cpu, images = time.monotonic(), all_cpu(), 0
    while time.monotonic() - begin < seconds:
        images += next(batches)
    print(json.dumps({"per_cpu_s": images / (all_cpu() - cpu), "per_s": images / (time.monotonic() - begin)}), flush=True)
    os._exit(0)


def installed(name):
    module = {"weir": "weir", "torch": "torchvision", "webdataset": "webdataset"}[name]
    return subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--shards", help="a folder of WebDataset shards of the same pictures")
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--only", default="torch,webdataset")
    parser.add_argument("--measure", choices=LOADERS, help=argparse.SUPPRESS)
    parser.add_argument("--json", default="-")
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.measure, arguments.folder, arguments.seconds)

    def one(name):
        folder = arguments.shards if name == "webdataset" else arguments.folder
        command = [sys.executable, __file__, folder, "--measure", name, "--seconds", str(arguments.seconds)]
        return json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout)

    result = {}
    for peer in arguments.only.split(","):
        if not installed(peer) or (peer == "webdataset" and not arguments.shards):
            print(f"{peer}: left out, not installed or without --shards", file=sys.stderr)
            continue
        pairs = [(one("weir"), one(peer)) for _ in range(arguments.pairs)]
        ratios = sorted(ours["per_cpu_s"] / theirs["per_cpu_s"] for ours, theirs in pairs)
        result[peer] = {"ratio_median": statistics.median(ratios), "ratio_low": ratios[0], "ratio_high": ratios[-1], "pairs": len(pairs),
                        "weir_per_cpu_s": statistics.median(ours["per_cpu_s"] for ours, _ in pairs), "peer_per_cpu_s": statistics.median(theirs["per_cpu_s"] for _, theirs in pairs),
                        "weir_per_s": statistics.median(ours["per_s"] for ours, _ in pairs), "peer_per_s": statistics.median(theirs["per_s"] for _, theirs in pairs)}
        print(f"{peer}: weir has {result[peer]['ratio_median']:.2f} times its images per CPU-second ({ratios[0]:.2f} to {ratios[-1]:.2f})", file=sys.stderr)
    text = json.dumps(result, indent=2) + "\n"
    if arguments.json == "-":
        print(text, end="")
    else:
        with open(arguments.json, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
