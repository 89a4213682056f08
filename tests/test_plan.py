"""weir plan through the program."""
import json

import pytest

from conftest import ROOT
import test_schemas


def test_the_example_is_a_plan(weir):
    result = weir.json("plan", ROOT / "studies/plan/workload.yaml", "--profiles", ROOT / "studies/plan/profiles", status=None)
    test_schemas.check(result, "plan")
    resources = {one["resource"]: one for one in result["resources"]}
    assert set(resources) == {"storage", "link", "host", "accelerator"}
    assert resources["accelerator"]["count"] >= 2 and resources["storage"]["count"] >= 1
    assert resources["storage"]["needed"]["low"] <= resources["storage"]["needed"]["value"] <= resources["storage"]["needed"]["high"]
    assert result["bottleneck"] in resources and {one["resource"] for one in result["doubling"]} == {"storage", "link", "host"}
    assert "16 accelerators x 1786 samples/s" in resources["storage"]["works"][0]["arithmetic"]


@pytest.mark.timing  # the probe is INVALID where other programs take its CPU, and a plan passes such a profile over
def test_a_plan_from_a_probe_of_this_machine(weir, tmp_path):
    profiles = tmp_path / "profiles"
    profiles.mkdir()
    weir.run("probe", "storage", tmp_path, "--samples", 50, "--sample-bytes", 20000, "--batch", 4, "--step-ms", 0, "--steps", 100, "--repeats", 3,
             "--json", profiles / "storage.json", status=None)
    workload = tmp_path / "workload.yaml"
    workload.write_text("plan: own\nlink_gbit_per_s: 10\nhave: {storage: 1, links: 1, hosts: 1}\n"
                        "training:\n  - {name: t, accelerators: 1, samples_per_s: 1, sample_bytes: 20000}\n")
    result = weir.json("plan", workload, "--profiles", profiles)
    assert result["met"] and result["bottleneck"] == "accelerator"
    workload.write_text(workload.read_text().replace("samples_per_s: 1,", "samples_per_s: 1e8,"))
    result = weir.json("plan", workload, "--profiles", profiles, status=3)
    assert not result["met"] and result["bottleneck"] in ("storage", "link")
    assert max(result["doubling"], key=lambda one: one["gain"])["resource"] == result["bottleneck"]


def test_faults_of_a_workload_are_named(weir, tmp_path):
    workload = tmp_path / "workload.yaml"
    workload.write_text("training:\n  - {name: t, accelerator: 2, profile: resnet50-h100}\n")
    assert b"accelerators" in weir.run("plan", workload, "--profiles", tmp_path, status=2).stderr
    workload.write_text("training:\n  - {name: t, accelerators: 2, profile: resnet50-h100}\n")
    assert b"no *.json" in weir.run("plan", workload, "--profiles", tmp_path, status=2).stderr
    assert b"--profiles" in weir.run("plan", workload, status=2).stderr
    (tmp_path / "x.json").write_text(json.dumps({"a": 1}))
    assert b"x.json" in weir.run("plan", workload, "--profiles", tmp_path, status=2).stderr
