#!/usr/bin/env python3
"""Scores what each part of the method brings, on left-out development rows.

    bench/predict_ablation.py DATA [--seeds 3] [--rows N] [--program build/release/weir] [SET ...]

Each set is fitted with `weir fit --ablation` once for each seed. That fit chooses the weights of the mixture on one half of the left-out parts
and scores them on the other half: with everything, without each candidate, without all neighbours, without a mixture (the best candidate
alone), and without draws (one choice of the weights). Printed for each set, split and part of the method is how much larger
mean |log(predicted / measured)| is without it, in %, as mean and spread over the seeds; above 0 the part helps. It wins in a set if its gain
is above the spread of the seeds in some split. The last lines count the sets in which each part wins.

--rows takes at most N rows of a set, by a hash of their ids; each seed takes others.
"""
import argparse
import collections
import csv
import hashlib
import json
import math
import pathlib
import re
import shutil
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def write_rows(source, target, most, seed):
    with open(source, newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        rows = list(reader)
    if most:
        rows.sort(key=lambda row: hashlib.sha1(f"{row['row_id']} {seed}".encode()).digest())
        rows = sorted(rows[:most], key=lambda row: row["row_id"])
    with open(target, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, reader.fieldnames)
        writer.writeheader()
        writer.writerows(rows)


def fit(asked, name, seed):
    spec = ROOT / f"studies/predict/{name}.yaml"
    rows_file = re.search(r"^rows: (\S+)", spec.read_text(encoding="utf-8"), re.M).group(1)
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        for table in ("hardware.csv", "networks.csv"):
            shutil.copyfile(asked.data / table, folder / table)
        write_rows(asked.data / rows_file, folder / rows_file, asked.rows, seed)
        done = subprocess.run([asked.program, "fit", spec, "--data-dir", folder, "--ablation", "--seed", str(seed), "-o", folder / "fit.json",
                               "--json", "-"], check=True, capture_output=True)
    return json.loads(done.stdout)["splits"]


def gains_of(split):
    """Loss without each candidate over the loss with all, in %."""
    scores = {one["without"]: math.log1p(one["log_mean_percent"] / 100) for one in split.get("ablation", [])}
    whole = scores.pop("", None)
    return {kind: 100 * (score / whole - 1) for kind, score in scores.items()} if whole else {}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=0, help="of a set, at most; 0: all")
    parser.add_argument("--program", default=ROOT / "build/release/weir")
    parser.add_argument("sets", nargs="*", metavar="SET")
    asked = parser.parse_intermixed_args()
    names = asked.sets or sorted(path.stem for path in (ROOT / "studies/predict").glob("*.yaml"))
    wins = collections.Counter()
    print("| set | split | without | larger by, % | spread |\n|---|---|---|---|---|")
    for name in names:
        gains = collections.defaultdict(list)
        for seed in range(1, asked.seeds + 1):
            for split in fit(asked, name, seed):
                for kind, gain in gains_of(split).items():
                    gains[split["split"], kind].append(gain)
        won = set()
        for (split, kind), by_seed in gains.items():
            spread = statistics.stdev(by_seed) if len(by_seed) > 1 else 0.0
            print(f"| {name} | {split} | {kind} | {statistics.mean(by_seed):+.1f} | {spread:.1f} |", flush=True)
            if statistics.mean(by_seed) > spread:
                won.add(kind)
        wins.update(won)
    for kind, count in wins.most_common():
        print(f"{kind}: wins in {count} of {len(names)} sets")


if __name__ == "__main__":
    main()
