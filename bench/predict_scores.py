#!/usr/bin/env python3
"""Scores `weir fit` and `weir predict --in` on rows that the fit did not see: the tables of docs/prediction.md.

    bench/predict_scores.py DATA [--alone | --folds] [--cell CELL ...] [--seeds 3] [--program build/release/weir] [SET ...]

DATA holds the rows of the SPECs of studies/predict and the tables of facts. Each set is fitted once for each cell and seed: without 15 % of
the rows by hash (another hash for each seed), without the larger counts, without some whole GPUs, without some whole families of networks.
Rows of a benchmark, accuracy target, scenario and unit without a row in the fit are not predicted. Columns that hold the target in another
form are removed. --alone leaves out each GPU that has a hundredth of the rows. --folds leaves out each row once, a twelfth at a time. --cell
random, count, gpu or network fits that one alone.

Printed, as mean and spread over the seeds: the median and the 90 % quantile of |log(predicted / measured)| and exp of its mean, each less 1,
in %; the mean absolute percentage error; the share of intervals that hold, inside and outside; the interval score over that of an interval of
constant width, which is the best one for these rows; the share that is off threefold outside its interval; the refused rows.
"""
import argparse
import collections
import csv
import hashlib
import math
import os
import pathlib
import re
import shutil
import statistics
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
SPECS, WORK = ROOT / "studies/predict", ROOT / "build/bench/predict"
LAYERS = {"target": "time_median_ms", "gpus": ["GTX 1080 Ti"]}
# DeepSeek-V3 and R1 are one network under two names, and so are the quantised copies: a family is left out whole.
SERVED = {"gpus": ["B200-SXM-180GB"],
          "networks": ("model", ["Qwen/Qwen3-32B", "nvidia/Qwen3-32B-NVFP4", "deepseek-ai/DeepSeek-V3", "deepseek-ai/DeepSeek-R1",
                                 "nvidia/DeepSeek-R1-NVFP4", "nvidia/DeepSeek-V3.1-NVFP4"])}
SETS = {
    "train_pytorch": {"target": "throughput_per_s", "gpus": ["H100-PCIe-80GB", "RTX 6000 Ada", "RTX A5000", "A100-PCIe-80GB"], "count": 3},
    "cnn_tensorflow": {"target": "throughput_images_per_s", "gpus": ["RTX 3080", "RTX 2080 Max-Q", "A100-PCIe-40GB"], "count": 4},
    "cnn_torchvision": {"target": "step_time_ms", "gpus": ["TITAN V"], "count": 3,
                        "networks": ("network", ["resnet101", "densenet201", "vgg19", "mnasnet1_3"])},
    "cnn_timm": {"target": "throughput_images_per_s", "gpus": ["RTX 4090"],
                 "networks": ("family", ["regnetx", "seresnext", "xcit", "nfnet", "maxvit", "dla", "levit"])},
    "mlperf_inference": {"target": "throughput_per_gpu_per_s", "gpus": ["H100-SXM5-80GB", "A40", "L4", "GH200-144GB"], "count": 8},
    "mlperf_training": {"target": "time_to_train_min", "gpus": ["H100-PCIe-80GB", "L40", "A100-PCIe-40GB"], "count": 64},
    "layer_conv": LAYERS,
    "layer_dense": LAYERS,
    "kernel_fp32": {"target": "latency_ms", "gpus": ["T4", "A100-PCIe-40GB"]},
    "llm_serving_ttft": {"target": "ttft_ms"} | SERVED,
    "llm_serving_tpot": {"target": "tpot_ms"} | SERVED,
    "collectives": {"target": "time_median_ms", "gpus": ["A40"]},
}
FOLDS, COVERAGE = 12, 0.9
TARGET_IN_OTHER_FORM = re.compile(r"throughput_(?!unit)|time_|latency|ttft|tpot|gpu_minutes|rel_range|n_runs|n_steps")


def part_of(row, parts, seed):
    return int(hashlib.sha1(f"{row['row_id']}x{seed if seed > 1 else ''}".encode()).hexdigest(), 16) % parts


def cells_of(rows, about, how, seed):
    """The name of each cell, and which rows it leaves out."""
    if how == "folds":
        return [("folds", lambda row, fold=fold: part_of(row, FOLDS, seed) == fold) for fold in range(FOLDS)]
    if how == "alone":
        gpus = collections.Counter(row["gpu"] for row in rows)
        return [(gpu, lambda row, gpu=gpu: row["gpu"] == gpu) for gpu in sorted(gpus) if gpus[gpu] >= len(rows) / 100]
    cells = [("random", lambda row: part_of(row, 100, seed) < 15)]
    if "count" in about:
        cells.append(("count", lambda row: float(row["gpu_count"]) >= about["count"]))
    cells.append(("gpu", lambda row: row["gpu"] in about["gpus"]))
    if "networks" in about:
        cells.append(("network", lambda row: row[about["networks"][0]] in about["networks"][1]))
    return cells


def write(path, rows, columns):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


def kind_of(row):
    return tuple(row.get(column, "") for column in ("network", "accuracy_target_pct", "scenario", "throughput_unit"))


def rows_file_of(name):
    return re.search(r"^rows: (\S+)", (SPECS / f"{name}.yaml").read_text(encoding="utf-8"), re.M).group(1)


def read_rows(data, name):
    with open(data / rows_file_of(name), newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def predict(program, data, name, cell, rows, left_out, seed, estimator="neighbours"):
    """Pairs of a left-out row and its answer, and the CPU seconds of the fit."""
    about, work = SETS[name], WORK / name
    work.mkdir(parents=True, exist_ok=True)
    fit = [row for row in rows if not left_out(row)]
    gpus, kinds = {row["gpu"] for row in fit}, {kind_of(row) for row in fit}
    asked = [row for row in rows if left_out(row) and not row.get("flag") and row[about["target"]] and (cell != "count" or row["gpu"] in gpus)
             and (not name.startswith("mlperf") or kind_of(row) in kinds)]
    write(work / rows_file_of(name), fit, list(rows[0]))
    for table in ("hardware.csv", "networks.csv"):
        shutil.copyfile(data / table, work / table)
    before = os.times()
    subprocess.run([program, "fit", SPECS / f"{name}.yaml", "--data-dir", work, "-o", work / "fit.json", "--seed", str(seed),
                    "--estimator", estimator], check=True, capture_output=True)
    seconds = os.times().children_user - before.children_user
    write(work / "asked.csv", asked, [column for column in rows[0] if not TARGET_IN_OTHER_FORM.search(column)])
    subprocess.run([program, "predict", work / "fit.json", "--in", work / "asked.csv", "--out", work / "answered.csv"], check=True, capture_output=True)
    with open(work / "answered.csv", newline="", encoding="utf-8") as file:
        return list(zip(asked, csv.DictReader(file), strict=True)), seconds


def percent(part, whole):
    return 100 * part / whole if whole else math.nan


def score(pairs, target):
    errors, percentages, widths, held = [], [], [], collections.defaultdict(list)
    far = 0
    for row, answer in pairs:
        if not answer["prediction"]:
            continue
        measured, predicted = float(row[target]), float(answer["prediction"])
        low, high = float(answer["low"]), float(answer["high"])
        errors.append(abs(math.log(predicted / measured)))
        percentages.append(abs((measured / predicted if "throughput" in target else predicted / measured) - 1))
        widths.append(math.log(high / low) / 2)
        held[answer["regime"]].append(low <= measured <= high)
        far += errors[-1] > math.log(3) and not low <= measured <= high
    if not errors:
        return {}
    ordered = sorted(errors)

    def interval_score(halves):
        return statistics.mean(half + max(0.0, error - half) / (1 - COVERAGE) for half, error in zip(halves, errors))

    constant = interval_score([ordered[min(len(ordered) - 1, int(COVERAGE * len(ordered)))]] * len(errors))
    return {"median": 100 * math.expm1(statistics.median(errors)), "p90": 100 * math.expm1(ordered[int(0.9 * (len(ordered) - 1))]),
            "log mean": 100 * math.expm1(statistics.mean(errors)), "mape": 100 * statistics.mean(percentages),
            "inside": percent(sum(held["inside"]), len(held["inside"])), "outside": percent(sum(held["outside"]), len(held["outside"])),
            "score": interval_score(widths) / constant if constant else math.nan, "far": percent(far, len(errors)),
            "refused": percent(len(pairs) - len(errors), len(pairs))}


COLUMNS = ("median", "p90", "log mean", "mape", "inside", "outside", "score", "far", "refused")


def text(values):
    known = [value for value in values if not math.isnan(value)]
    if not known:
        return "-"
    mean = statistics.mean(known)
    spread = f" ± {statistics.stdev(known):.1f}" if len(known) > 1 else ""
    return f"{mean:.2f}{spread}" if abs(mean) < 3 else f"{mean:.1f}{spread}"


def measure(asked, name):
    rows = read_rows(asked.data, name)
    scores, seconds = collections.defaultdict(list), collections.defaultdict(list)
    counts = {}
    for seed in range(1, asked.seeds + 1):
        pooled = collections.defaultdict(list)
        for cell, left_out in cells_of(rows, SETS[name], asked.how, seed):
            if asked.cells and cell not in asked.cells:
                continue
            pairs, spent = predict(asked.program, asked.data, name, cell, rows, left_out, seed)
            pooled[cell] += pairs
            seconds[cell].append(spent)
        for cell, pairs in pooled.items():
            counts[cell] = len(pairs)
            scores[cell].append(score(pairs, SETS[name]["target"]))
    for cell, by_seed in scores.items():
        figures = " | ".join(text([one.get(column, math.nan) for one in by_seed]) for column in COLUMNS)
        print(f"| {name} | {cell} | {counts[cell]} | {figures} | {statistics.mean(seconds[cell]):.0f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--alone", dest="how", action="store_const", const="alone", default="cells")
    parser.add_argument("--folds", dest="how", action="store_const", const="folds")
    parser.add_argument("--cell", dest="cells", action="append", help="fit these cells alone")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--program", default=ROOT / "build/release/weir")
    parser.add_argument("sets", nargs="*", metavar="SET", choices=[*SETS, []])
    asked = parser.parse_intermixed_args()
    print(f"| set | left out | rows | {' | '.join(COLUMNS)} | fit, CPU s |\n|{'---|' * (len(COLUMNS) + 4)}")
    for name in asked.sets or SETS:
        measure(asked, name)


if __name__ == "__main__":
    main()
