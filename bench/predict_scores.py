#!/usr/bin/env python3
"""predict_scores.py DATA [--alone | --folds] [SET ...]: the scores of docs/prediction.md, by `weir fit` and `weir predict --in` on rows that the fit did not see.

DATA holds the rows of the SPECs of studies/predict and the tables of facts. Of each set one fit for each question: without 15 % of the rows by hash, without the
larger counts (asked of GPUs that the fit has rows of), without some whole GPUs, without some whole networks. Rows of a benchmark, accuracy target, scenario and
unit that the fit has no row of are not asked. Columns with the target in another form are not given to predict. --alone: each GPU that has a hundredth of the
rows left out alone, as one that is held out has its kin in the data. --folds: each row left out once, by chance, with a twelfth of the rows: what random rows are asked
of a fit to nearly all.
"""
import collections
import csv
import hashlib
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
WEIR, SPECS, WORK = ROOT / "build/release/weir", ROOT / "studies/predict", ROOT / "build/bench/predict"
LAYERS = {"target": "time_median_ms", "gpus": ["GTX 1080 Ti"]}
SERVED = {"gpus": ["B200-SXM-180GB"], "networks": ("model", ["Qwen/Qwen3-32B", "deepseek-ai/DeepSeek-V3"])}
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
FOLDS = 12
TELLING = re.compile(r"throughput_(?!unit)|time_|latency|ttft|tpot|gpu_minutes|rel_range|n_runs|n_steps")


def part_of(row, parts):
    return int(hashlib.sha1((row["row_id"] + "x").encode()).hexdigest(), 16) % parts


def questions_of(rows, about, how):
    """Name and what is left out of each question."""
    if how == "--folds":
        return [("folds", lambda row, fold=fold: part_of(row, FOLDS) == fold) for fold in range(FOLDS)]
    if how == "--alone":
        gpus = collections.Counter(row["gpu"] for row in rows)
        return [(gpu, lambda row, gpu=gpu: row["gpu"] == gpu) for gpu in sorted(gpus) if gpus[gpu] >= len(rows) / 100]
    questions = [("random", lambda row: part_of(row, 100) < 15)]
    if "count" in about:
        questions.append(("count", lambda row: float(row["gpu_count"]) >= about["count"]))
    questions.append(("gpu", lambda row: row["gpu"] in about["gpus"]))
    if "networks" in about:
        questions.append(("network", lambda row: row[about["networks"][0]] in about["networks"][1]))
    return questions


def write(path, rows, columns):
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


def score(rows, answers, target):
    """Mean and median error of time in %, the share that its interval holds, how many median errors the median half of an interval is, and the share that is
    answered; what is not answered counts as 100 %."""
    errors, held, halves = [], [], []
    for row, answer in zip(rows, answers, strict=True):
        if not answer["prediction"]:
            errors.append(1.0)
            continue
        measured, predicted = float(row[target]), float(answer["prediction"])
        errors.append(abs((measured / predicted if "throughput" in target else predicted / measured) - 1))
        held.append(float(answer["low"]) <= measured <= float(answer["high"]))
        halves.append((float(answer["high"]) - float(answer["low"])) / 2 / float(answer["prediction"]))
    median = statistics.median(errors)
    return (100 * statistics.mean(errors), 100 * median, 100 * sum(held) / max(1, len(held)), statistics.median(halves or [0]) / median,
            100 * len(held) / len(rows))


def kind_of(row):
    return tuple(row.get(column, "") for column in ("network", "accuracy_target_pct", "scenario", "throughput_unit"))


def ask(data, name, question, rows_file, rows, left_out):
    about, work = SETS[name], WORK / name
    fit = [row for row in rows if not left_out(row)]
    gpus, kinds = {row["gpu"] for row in fit}, {kind_of(row) for row in fit}
    asked = [row for row in rows if left_out(row) and not row.get("flag") and row[about["target"]] and (question != "count" or row["gpu"] in gpus)
             and (not name.startswith("mlperf") or kind_of(row) in kinds)]
    write(work / rows_file, fit, list(rows[0]))
    for table in ("hardware.csv", "networks.csv"):
        shutil.copyfile(data / table, work / table)
    begin = time.monotonic()
    subprocess.run([WEIR, "fit", SPECS / f"{name}.yaml", "--data-dir", work, "-o", work / "fit.json"], check=True, capture_output=True)
    seconds = time.monotonic() - begin
    write(work / "asked.csv", asked, [column for column in rows[0] if not TELLING.search(column)])
    subprocess.run([WEIR, "predict", work / "fit.json", "--in", work / "asked.csv", "--out", work / "answered.csv"], check=True, capture_output=True)
    with open(work / "answered.csv", newline="") as file:
        return list(zip(asked, csv.DictReader(file), strict=True)), seconds


def say(name, question, both, seconds):
    for words, chosen in ((question, both), (f"{question}, of it rnnt", [pair for pair in both if pair[0].get("network") == "rnnt"])):
        if not chosen:
            continue
        mean, median, held, half, answered = score(*zip(*chosen), SETS[name]["target"])
        print(f"| {name} | {words} | {len(chosen)} | {mean:.1f} / {median:.1f} | {held:.1f} | {half:.1f} | {answered:.1f} | {seconds:.0f} |", flush=True)


def measure(data, name, how):
    (WORK / name).mkdir(parents=True, exist_ok=True)
    rows_file = re.search(r"^rows: (\S+)", (SPECS / f"{name}.yaml").read_text(), re.M).group(1)
    with open(data / rows_file, newline="") as file:
        rows = list(csv.DictReader(file))
    pooled, longest = [], 0
    for question, left_out in questions_of(rows, SETS[name], how):
        both, seconds = ask(data, name, question, rows_file, rows, left_out)
        pooled, longest = pooled + both, max(longest, seconds)
        if how != "--folds":
            say(name, question, both, seconds)
    if how == "--folds":
        say(name, f"{FOLDS} folds", pooled, longest)


words = [word for word in sys.argv[1:] if word not in ("--alone", "--folds")]
how = next((word for word in sys.argv[1:] if word in ("--alone", "--folds")), "")
if not words or not set(words[1:]) <= set(SETS):
    sys.exit(f"usage: predict_scores.py DATA [--alone | --folds] [SET ...]; sets: {', '.join(SETS)}")
print("| set | part | rows | error, mean / median % | in the interval, % | half of it, median errors | answered, % | fit, s |\n|---|---|---|---|---|---|---|---|")
for one in words[1:] or SETS:
    measure(pathlib.Path(words[0]), one, how)
