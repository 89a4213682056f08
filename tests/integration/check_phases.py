"""studies/phases.yaml in short: preparation and the training feed run beside the server's client, with and without CPU limits."""
import json
import os
import pathlib
import re

import pytest

STUDY = pathlib.Path(__file__).resolve().parents[2] / "studies/phases.yaml"


@pytest.mark.skipif(os.geteuid() != 0, reason="namespaces and control groups want root")
def test_each_phase_is_held_against_itself_alone(weir, made, tmp_path):
    text = STUDY.read_text()
    text = re.sub(r"repeats: \d+", "repeats: 1", text).replace("{seconds: 8}", "{seconds: 2}")
    text = text.replace("network: {rate", 'engine: "emulated:base=1ms,per_item=0ms"\n  network: {rate')
    path = tmp_path / "phases.yaml"
    path.write_text(text)
    weir.run("study", "--no-replay", "--model", made[0], "--data", made[1], path, "-o", tmp_path / "out", status=None)
    entries = [json.loads(line) for line in (tmp_path / "out/journal.jsonl").read_text().splitlines()[1:]]
    records = [entry["record"] for entry in entries if entry["role"] == "trial"]
    assert all("throughput_images_per_s" in record["metrics"] for record in records), records
    for record in records:
        wanted = record["factors"].get("beside", "none")
        beside = record["metrics"].get("beside", {})
        assert set(beside) == (set() if wanted == "none" else set(wanted.split("+"))), record
        for phase, did in beside.items():
            assert did["items"] > 0 and did["per_s"] > 0
            limits = record["factors"].get("limits", "none")
            assert did.get("limit_cores") == (None if limits == "none" else limits[phase])
    assert not list(pathlib.Path("/sys/fs/cgroup").glob("**/weir-serve-*")), "a control group is left"
    report = json.loads((tmp_path / "out/report.json").read_text()) if (tmp_path / "out/report.json").exists() else None
    if report is not None and "phases" in report:
        assert {one["phase"] for one in report["phases"]["kept"]} <= {"serve", "feed", "prepare"}
