#!/usr/bin/env python3
"""Scores what each candidate of the mixture brings, on rows that the fit did not see.

    bench/predict_ablation.py DATA [--cell CELL ...] [--seeds 3] [--rows N] [--program build/release/weir] [SET ...]

Each set is fitted with all candidates, without each one, without all neighbours, and with each one alone, for each cell and seed of
bench/predict_scores.py. Printed for each set, cell and mixture is how much larger mean |log(predicted / measured)| is than with all
candidates, in %, as mean and spread over the seeds; above 0 the others are worse. A candidate wins in a set if the mixture without it is worse
by more than the spread of the seeds in some cell. The last lines count the sets in which each candidate wins.

--rows takes at most N rows of a set, by a hash of their ids; each seed takes others.
"""
import argparse
import collections
import math
import pathlib
import statistics

import predict_scores

CANDIDATES = ("physical", "trees", "neighbours", "neighbours-common")
MIXTURES = {"no " + name: [other for other in CANDIDATES if other != name] for name in CANDIDATES}
MIXTURES["no neighbours at all"] = ["physical", "trees"]
MIXTURES |= {name + " alone": [name] for name in CANDIDATES}


def loss(asked, name, cell, left_out, rows, seed, candidates):
    pairs, _ = predict_scores.predict(asked.program, asked.data, name, cell, rows, left_out, seed, ",".join(candidates))
    scored = predict_scores.score(pairs, predict_scores.SETS[name]["target"])
    return math.log1p(scored["log mean"] / 100) if scored else math.nan


def gains(asked, name):
    """By cell and mixture, for each seed, the loss over that of all candidates, in %."""
    found = collections.defaultdict(list)
    for seed in range(1, asked.seeds + 1):
        rows = predict_scores.read_rows(asked.data, name)
        if asked.rows:
            rows = sorted(rows, key=lambda row: predict_scores.part_of(row, 2 ** 60, seed))[:asked.rows]
        for cell, left_out in predict_scores.cells_of(rows, predict_scores.SETS[name], "cells", seed):
            if (asked.cells and cell not in asked.cells) or not any(map(left_out, rows)):
                continue
            whole = loss(asked, name, cell, left_out, rows, seed, CANDIDATES)
            for mixture, candidates in MIXTURES.items():
                found[cell, mixture].append(100 * (loss(asked, name, cell, left_out, rows, seed, candidates) / whole - 1))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--cell", dest="cells", action="append", help="fit these cells alone")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=0, help="of a set, at most; 0: all")
    parser.add_argument("--program", default=predict_scores.ROOT / "build/release/weir")
    parser.add_argument("sets", nargs="*", metavar="SET", choices=[*predict_scores.SETS, []])
    asked = parser.parse_intermixed_args()
    names = asked.sets or list(predict_scores.SETS)
    wins = collections.Counter()
    print("| set | cell | mixture | larger by, % | spread |\n|---|---|---|---|---|")
    for name in names:
        won = set()
        for (cell, mixture), by_seed in gains(asked, name).items():
            mean, spread = statistics.mean(by_seed), statistics.stdev(by_seed) if len(by_seed) > 1 else 0.0
            print(f"| {name} | {cell} | {mixture} | {mean:+.1f} | {spread:.1f} |", flush=True)
            if mixture.startswith("no ") and mean > spread:
                won.add(mixture.removeprefix("no "))
        wins.update(won)
    for candidate, count in wins.most_common():
        print(f"{candidate}: wins in {count} of {len(names)} sets")


if __name__ == "__main__":
    main()
