"""weir advise: from a study and by its own search, over an emulated accelerator whose best configuration is known."""
import json
import subprocess
import time

import pytest

from conftest import PROGRAM
from test_schemas import check

# A batch takes 2 ms however large it is: batches of 8 are the fastest by construction, and all others are far behind.
STUDY = """
study: known
model: {model}
data: {data}
factors: {{batch: [1, 2, 8]}}
fixed: {{architecture: {architecture}, engine: "emulated:base=2ms,per_item=0ms", mode: sync, data_path: memory}}
repeats: 4
trial: {{images: 240}}
seed: 3
targets: {{price_per_hour: {{in-process: 1.0, distributed: 2.0}}}}
"""


def write(folder, made, architecture="in-process"):
    path = folder / "known.yaml"
    path.write_text(STUDY.format(model=made[0], data=made[1], architecture=architecture))
    return path


def disturbed(advice):
    """Why a machine that others use allows no answer."""
    return advice.get("no_answer", "") if "VALID" in advice.get("no_answer", "") else None


@pytest.fixture(scope="module")
def study(weir, made, tmp_path_factory):
    folder = tmp_path_factory.mktemp("known")
    weir.run("study", write(folder, made), "-o", folder / "out", "--no-replay", status=None)
    return folder / "out"


@pytest.mark.timing
def test_from_a_study_it_names_the_best_with_its_evidence(weir, study, tmp_path):
    advice = weir.json("advise", study, "--objective", "cost", "--rate", 3000, "-o", tmp_path / "advice", status=None)
    check(advice, "advise")
    assert json.loads((tmp_path / "advice/advice.json").read_text()) == advice
    assert len(advice["candidates"]) == 3
    if why := disturbed(advice):
        pytest.skip(why)
    assert advice["configuration"]["batch"] == 8
    low, high = advice["expected"]["low"], advice["expected"]["high"]
    assert low <= advice["expected"]["value"] <= high
    assert advice["instances"] == 1 and advice["cost_per_hour"] == 1.0
    assert (tmp_path / "advice/run.flags").read_text().startswith("--mode sync --batch 8")


@pytest.mark.timing
def test_a_target_that_nothing_meets_has_no_answer(weir, study):
    advice = weir.json("advise", study, "--target", "throughput>1000000", status=3)
    check(advice, "advise")
    assert advice["no_answer"] and "configuration" not in advice


@pytest.mark.timing
def test_a_percentile_that_was_not_measured_is_said_so(weir, study):
    advice = weir.json("advise", study, "--target", "p99<15ms", status=3)
    if why := disturbed(advice):
        pytest.skip(why)
    assert {one["standing"] for one in advice["candidates"]} <= {"not measured", "disturbed"}
    assert any("measure p99<15ms" in line for line in advice["measure_next"])


@pytest.mark.timing
def test_a_search_of_few_configurations_is_no_longer_than_the_study(weir, made, tmp_path):
    advice = weir.json("advise", write(tmp_path, made), "-o", tmp_path / "advice", status=None)
    check(advice, "advise")
    assert advice["search"]["exploration_trials"] == 0
    assert advice["search"]["trials"] <= 12
    if why := disturbed(advice):
        pytest.skip(why)
    assert advice["configuration"]["batch"] == 8


def journal(folder):
    path = folder / "search.jsonl"
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def test_a_killed_search_goes_on_where_it_was(weir, made, tmp_path):
    asked = ["advise", write(tmp_path, made), "-o", tmp_path / "advice"]
    with subprocess.Popen([PROGRAM, *map(str, asked)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        try:
            end = time.monotonic() + 60
            while len(journal(tmp_path / "advice")) < 3:
                assert running.poll() is None and time.monotonic() < end, "no trial reached the journal"
                time.sleep(0.02)
        finally:
            running.kill()
    before = journal(tmp_path / "advice")
    assert not (tmp_path / "advice/advice.json").exists()
    assert b"--resume" in weir.run(*asked, status=2).stderr
    other = weir.run("advise", write(tmp_path, made, "microservice"), "-o", tmp_path / "advice", "--resume", status=2).stderr
    assert b"fixed.architecture" in other
    advice = weir.json("advise", write(tmp_path, made), "-o", tmp_path / "advice", "--resume", status=None)
    check(advice, "advise")
    after = journal(tmp_path / "advice")
    assert after[:len(before)] == before
    played = {(one["id"], one["attempt"]) for one in after[1:]}
    assert len(played) == len(after) - 1
    assert advice["search"]["trials"] == len({one["id"] for one in after[1:]})
    # Another goal needs no new trial.
    weir.json("advise", write(tmp_path, made), "--objective", "cost", "-o", tmp_path / "advice", "--resume", status=None)
    assert {one["id"] for one in journal(tmp_path / "advice")[1:]} == {one["id"] for one in after[1:]}


def test_a_study_has_no_search_to_resume(weir, tmp_path):
    assert b"weir study --resume" in weir.run("advise", tmp_path, "--resume", status=2).stderr


@pytest.mark.timing
def test_wrong_flags_are_named(study):
    for arguments, said in ((["--target", "p98<5"], "p98"), (["--price", "x"], "NAME=VALUE"), (["--objective", "luck"], "luck")):
        done = subprocess.run([PROGRAM, "advise", str(study), *arguments], capture_output=True, text=True)
        assert done.returncode == 2 and said in done.stderr, done.stderr
