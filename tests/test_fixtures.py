"""The pictures of tests/data: each good one decodes, each broken one is refused by name, and none stops a run."""
import csv
import os
import pathlib

import pytest

PICTURES = pathlib.Path(__file__).parent / "data/pictures"


@pytest.fixture(scope="module")
def manifest():
    with open(PICTURES / "manifest.csv", newline="", encoding="utf-8") as file:
        return {row["file"]: row["kind"] for row in csv.DictReader(file)}


@pytest.fixture(scope="module")
def answers(weir, answers_of, made, tmp_path_factory):
    path = tmp_path_factory.mktemp("fixtures") / "answers.csv"
    result = weir.json("run", made[0], PICTURES, "--engine", "onnxruntime", "--answers", path)
    return result, {os.path.basename(name): rows for name, rows in answers_of(path).items()}


def test_the_manifest_names_each_file(manifest):
    assert set(manifest) == {path.name for path in PICTURES.iterdir()} - {"manifest.csv"}


def test_each_picture_gets_its_verdict(manifest, answers):
    result, rows = answers
    assert {name: rows[name][0]["status"] for name in manifest} == {name: "rejected" if kind == "bad" else "ok" for name, kind in manifest.items()}
    assert result["images"] + result["rejected"] == len(manifest)


def test_a_refused_picture_has_a_reason(manifest, answers):
    for name, kind in manifest.items():
        if kind == "bad":
            assert answers[1][name][0]["reason"], name


def test_the_same_pixels_give_the_same_scores_whatever_their_format(manifest, answers):
    first = answers[1]["png.png"]
    for name, kind in manifest.items():
        if kind == "same":
            assert [(row["class"], row["score"]) for row in answers[1][name]] == [(row["class"], row["score"]) for row in first], name


def test_a_lossy_or_turned_copy_is_close_to_the_picture(manifest, answers):
    def scores(name):
        return {row["class"]: float(row["score"]) for row in answers[1][name]}

    truth = scores("png.png")
    best = max(truth, key=truth.get)
    for name, kind in manifest.items():
        if kind == "close":
            assert abs(scores(name).get(best, 0) - truth[best]) < 0.1 * max(1, abs(truth[best])), name


def test_a_set_of_them_is_prepared_without_the_broken_ones(weir, made, manifest, tmp_path):
    result = weir.json("prepare", PICTURES, "--recipe", made[0] / "recipe.yaml", "--format", "raw", "-o", tmp_path / "set")
    bad = sum(kind == "bad" for kind in manifest.values())
    assert result["images"] == len(manifest) - bad and sum(result["rejected"].values()) == bad
    weir.run("prepare", "--verify", tmp_path / "set")
