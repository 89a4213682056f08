"""weir predict against tests/predict_reference.py, which does the same from the page alone: the numbers agree to 1 %."""
import csv
import itertools

import numpy as np
import pytest

import predict_reference as reference
from test_predict_answers import GPUS, NETWORKS, rows_of, write_set

SIDES = {"network": 1, "run": 2}


def arrays(lines, codes):
    """The rows of the made set as the reference takes them: the SPEC of test_predict_answers.py by hand."""
    rows = list(csv.DictReader(lines))
    facts = [(*GPUS[row["gpu"]][:2], *NETWORKS[row["network"]], float(row["batch"]), float(row["gpu_count"])) for row in rows]
    terms = [(2 * gflops / tflops, moved / bandwidth, 1 / batch, params / 50 / batch if count > 1 else 0)
             for tflops, bandwidth, gflops, moved, params, batch, count in facts]
    made = {
        "numbers": np.array([fact[2:] for fact in facts], dtype=float), "number_sides": [1, 1, 1, 2, 2],
        "codes": np.array([[codes.index(row["network"]), 0 if row["precision"] == "fp32" else -1] for row in rows]), "category_sides": [1, 2],
        "terms": np.array(terms), "group": [row["network"] for row in rows], "hardware": [row["gpu"] for row in rows]}
    if "items_per_s" in rows[0]:
        made["log_time"] = np.log([1000 * float(row["gpu_count"]) / float(row["items_per_s"]) for row in rows])
    return made


@pytest.mark.parametrize("split", ["inside", "hardware"])
def test_an_outsider_gets_the_same_numbers(weir, tmp_path, split):
    weir.run("fit", write_set(tmp_path), "--data-dir", tmp_path, "-o", tmp_path / "p.json")
    gpus = ["alpha", "delta"] if split == "inside" else ["novum", "strange"]
    lines = ["row_id,gpu,network,batch,gpu_count,precision"]
    for gpu, network, batch, count in itertools.product(gpus, NETWORKS, (8, 24, 64), (1, 2)):
        lines.append(f"q{len(lines)},{gpu},{network},{batch},{count},fp32")
    (tmp_path / "asked.csv").write_text("\n".join(lines) + "\n")
    weir.run("predict", tmp_path / "p.json", "--in", tmp_path / "asked.csv", "--out", tmp_path / "answered.csv")
    with open(tmp_path / "answered.csv", encoding="utf-8") as file:
        answered = np.array([float(row["prediction"]) for row in csv.DictReader(file)])
    codes = sorted(NETWORKS)
    asked = arrays(lines, codes)
    time = np.exp(reference.predict(arrays(rows_of(), codes), asked, split))
    rate = 1000 * np.array([float(row.split(",")[4]) for row in lines[1:]]) / time
    np.testing.assert_allclose(answered, rate, rtol=0.01)
