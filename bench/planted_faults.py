#!/usr/bin/env python3
"""Plants faults in copies of the data sets and counts what `weir fit --check` finds of them, and what else it flags.

    bench/planted_faults.py DATA [--program build/release/weir] [--specs studies/predict] [--seeds 3] [--set NAME ...]

Four kinds in each copy: the unit of the target swapped on 1 % of the rows, one GPU's peak ten times too high in the table of hardware, copies
of 1 % of the rows, and a NaN or infinity in a number of 1 % of the rows. A row counts as found where any finding names it; of copies, where a
duplicate is found for it. Wanted: 95 % of the planted rows found, and under 2 % of the others flagged.
"""
import argparse
import collections
import csv
import json
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PEAKS = ["fp32_tflops", "tf32_tensor_tflops", "fp16_tensor_tflops", "fp16_tensor_fp32acc_tflops", "int8_tops", "fp8_tensor_tflops"]


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write(path, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def word(spec, key):
    """A plain value of a SPEC: no parser of YAML is asked for."""
    for line in spec.splitlines():
        if line.startswith(key + ":"):
            return line.split(":", 1)[1].split("#")[0].strip()
    return None


def inside(text, key):
    part = text.split(key + ":", 1)[1]
    return part.split(",")[0].split("}")[0].strip()


def number(text):
    try:
        return float(text)
    except ValueError:
        return None


def swap_unit(rows, planted, target, chance):
    factor = 60 if target.endswith("_min") else 1000
    usable = [i for i, row in enumerate(rows) if number(row[target]) and not row.get("flag")]
    for i in chance.sample(usable, max(1, len(usable) // 100)):
        rows[i][target] = repr(float(rows[i][target]) * chance.choice([factor, 1 / factor]))
        planted[rows[i]["row_id"]] = "unit"


def plant_nan(rows, planted, chance):
    """In columns of numbers; a text "nan" in a column of texts is a text."""
    columns = [c for c in rows[0] if c != "row_id"]
    numeric = [c for c in columns if all(number(row[c]) is not None for row in rows if row[c] != "")]
    free = [i for i, row in enumerate(rows) if row["row_id"] not in planted]
    for i in chance.sample(free, max(1, len(rows) // 100)):
        column = chance.choice([c for c in numeric if rows[i][c] != ""])
        rows[i][column] = chance.choice(["nan", "inf", "-inf", "NaN"])
        planted[rows[i]["row_id"]] = "nan"


def plant_copies(rows, planted, chance):
    free = [row for row in rows if row["row_id"] not in planted]
    for k, row in enumerate(chance.sample(free, max(1, len(rows) // 100))):
        copy = dict(row, row_id=f"copy-{k}")
        rows.insert(chance.randrange(rows.index(row) + 1, len(rows) + 1), copy)
        planted[copy["row_id"]] = "copy"


def raise_peak(hardware, rows, key, planted, chance):
    """The peaks of one GPU that the rows use, by turns. Its rows are all planted; those that are already keep their kind."""
    used = {row[key] for row in rows}
    choices = [(gpu, peak) for gpu in hardware if gpu["gpu"] in used for peak in PEAKS if number(gpu[peak])]
    gpu, peak = chance.choice(choices)
    gpu[peak] = repr(float(gpu[peak]) * 10)
    for row in rows:
        if row[key] == gpu["gpu"]:
            planted.setdefault(row["row_id"], "peak")
    return f"{gpu['gpu']} {peak}"


def check(program, spec, folder):
    done = subprocess.run([program, "fit", spec, "--check", "--data-dir", folder, "--json", "-"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{spec}: exit {done.returncode}: {done.stderr}")
    flagged = collections.defaultdict(set)
    for finding in json.loads(done.stdout)["findings"]:
        for row in finding["rows"]:
            flagged[row].add(finding["fault"])
    return flagged


def play(program, spec, data, seed):
    text = spec.read_text()
    target = inside(text, "target: {column")
    key = inside(text, "key")
    rows, hardware = read(data / word(text, "rows")), read(data / "hardware.csv")
    chance, planted = random.Random(f"{seed} {spec.stem}"), {}
    swap_unit(rows, planted, target, chance)
    plant_nan(rows, planted, chance)
    plant_copies(rows, planted, chance)
    raised = raise_peak(hardware, rows, key, planted, chance)
    own = check(program, spec, data).keys()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        write(folder / word(text, "rows"), rows)
        write(folder / "hardware.csv", hardware)
        (folder / "networks.csv").write_bytes((data / "networks.csv").read_bytes())
        flagged = check(program, spec, folder)
    found = collections.Counter(kind for row, kind in planted.items() if row in flagged and (kind != "copy" or "duplicate" in flagged[row]))
    there = collections.Counter(planted.values())
    others = {row["row_id"] for row in rows} - planted.keys() - own
    wrong = collections.Counter(fault for row in others & flagged.keys() for fault in sorted(flagged[row]))
    return raised, there, found, len(others), len(others & flagged.keys()), wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--program", default=ROOT / "build/release/weir")
    parser.add_argument("--specs", type=pathlib.Path, default=ROOT / "studies/predict")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--set", action="append")
    asked = parser.parse_args()
    failed = False
    for spec in sorted(asked.specs.glob("*.yaml")):
        if asked.set and spec.stem not in asked.set:
            continue
        for seed in range(1, asked.seeds + 1):
            raised, there, found, others, flagged, wrong = play(asked.program, spec, asked.data, seed)
            share, false = sum(found.values()) / sum(there.values()), flagged / max(1, others)
            good = share >= 0.95 and false < 0.02
            failed |= not good
            kinds = ", ".join(f"{kind} {found[kind]}/{there[kind]}" for kind in ("unit", "nan", "copy", "peak"))
            print(f"{'ok  ' if good else 'MISS'} {spec.stem:18} seed {seed}: found {100 * share:5.1f} % ({kinds}), others flagged {100 * false:.2f} % of {others} "
                  f"{dict(wrong)}; peak of {raised}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
