#!/usr/bin/env python3
"""Scores what each candidate brings to the mixture, on left-out development rows.

    bench/predict_ablation.py DATA [--seeds 3] [--program build/release/weir] [SET ...]

Each set is fitted with `weir fit --ablation` once for each seed. That fit chooses the weights of the mixture on one half of the left-out parts
and scores them on the other half: with all candidates, and without each. Printed for each set, split and candidate is how much larger
exp(mean |log(predicted / measured)|) is without it, in %, as mean and spread over the seeds; above 0 the candidate helps. It wins in a set if
its gain is above the spread of the seeds. The last lines count the sets in which each candidate wins.
"""
import argparse
import collections
import json
import math
import pathlib
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def fit(asked, name, seed):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([asked.program, "fit", ROOT / f"studies/predict/{name}.yaml", "--data-dir", asked.data, "--ablation", "--seed", str(seed),
                               "-o", pathlib.Path(folder) / "fit.json", "--json", "-"], check=True, capture_output=True)
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
