#!/usr/bin/env python3
"""predict_scores.py DATA [--without GPU] [SET ...]: the scores of docs/prediction.md, by `weir fit` and `weir predict --in` on rows that the fit did not see.

DATA holds the rows of the SPECs of studies/predict and the tables of facts. Of each set one fit, without 15 % of the rows by hash, without whole GPUs, without
the larger counts and without whole networks; rows that would be left out twice are dropped, and larger counts are asked of GPUs that the fit has rows of. Columns
with the target in another form are not given to predict. --without: that GPU alone, all counts and networks are learned from.
"""
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
TELLING = re.compile(r"throughput_(?!unit)|time_|latency|ttft|tpot|gpu_minutes|rel_range|n_runs|n_steps")


def part_of(row, about):
    out = [name for name, left_out in {
        "gpu": row["gpu"] in about["gpus"],
        "count": "count" in about and float(row["gpu_count"]) >= about["count"],
        "network": "networks" in about and row[about["networks"][0]] in about["networks"][1]}.items() if left_out]
    if len(out) > 1:
        return "dropped"
    by_hash = int(hashlib.sha1((row["row_id"] + "x").encode()).hexdigest(), 16) % 100 < 15
    return out[0] if out else "random" if by_hash else "fit"


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


def measure(data, name):
    about, work = SETS[name], WORK / name
    work.mkdir(parents=True, exist_ok=True)
    rows_file = re.search(r"^rows: (\S+)", (SPECS / f"{name}.yaml").read_text(), re.M).group(1)
    with open(data / rows_file, newline="") as file:
        rows = list(csv.DictReader(file))
    parts = {}
    for row in rows:
        parts.setdefault(part_of(row, about), []).append(row)
    write(work / rows_file, parts["fit"], list(rows[0]))
    known = {row["gpu"] for row in parts["fit"]}
    for table in ("hardware.csv", "networks.csv"):
        shutil.copyfile(data / table, work / table)
    begin = time.monotonic()
    subprocess.run([WEIR, "fit", SPECS / f"{name}.yaml", "--data-dir", work, "-o", work / "fit.json"], check=True, capture_output=True)
    seconds = time.monotonic() - begin
    for part in ("random", "count", "gpu", "network"):
        asked = [row for row in parts.get(part, []) if not row.get("flag") and row[about["target"]] and (part != "count" or row["gpu"] in known)]
        if not asked:
            continue
        write(work / "asked.csv", asked, [column for column in rows[0] if not TELLING.search(column)])
        subprocess.run([WEIR, "predict", work / "fit.json", "--in", work / "asked.csv", "--out", work / "answered.csv"], check=True, capture_output=True)
        with open(work / "answered.csv", newline="") as file:
            both = list(zip(asked, csv.DictReader(file), strict=True))
        for words, chosen in ((part, both), (f"{part}, of it rnnt", [pair for pair in both if pair[0].get("network") == "rnnt"])):
            if not chosen:
                continue
            mean, median, held, half, answered = score(*zip(*chosen), about["target"])
            print(f"| {name} | {words} | {len(chosen)} | {mean:.1f} / {median:.1f} | {held:.1f} | {half:.1f} | {answered:.1f} | {seconds:.0f} |", flush=True)


words = sys.argv[1:]
if "--without" in words[:-1]:
    place = words.index("--without")
    SETS = {name: {"target": about["target"], "gpus": [words[place + 1]]} for name, about in SETS.items()}
    del words[place:place + 2]
if not words or not set(words[1:]) <= set(SETS):
    sys.exit(f"usage: predict_scores.py DATA [--without GPU] [SET ...]; sets: {', '.join(SETS)}")
print("| set | part | rows | error, mean / median % | in the interval, % | half of it, median errors | answered, % | fit, s |\n|---|---|---|---|---|---|---|---|")
for one in words[1:] or SETS:
    measure(pathlib.Path(words[0]), one)
