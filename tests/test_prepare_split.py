"""`weir prepare --split`: shares that are sets of their own, through the built program."""
import collections
import json
import math
import os
import pathlib
import random
import shutil
import subprocess

import pytest

from conftest import PROGRAM

FORMATS = ["files", "tar", "tfrecord", "raw"]
SPLIT = ["train", "val", "test"]
SHARES = {"train": 0.8, "val": 0.1, "test": 0.1}


def read_tree(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(pathlib.Path(folder).rglob("*")) if path.is_file()}


def lines(path):
    return [json.loads(line) for line in path.read_text().split("\n") if line]


@pytest.fixture(scope="module")
def pictures(made, tmp_path_factory):
    """200 pictures in three folders of 30, 70 and 100; two cannot be read, and twenty are copies of others in other folders."""
    folder = tmp_path_factory.mktemp("pictures")
    for i, path in enumerate(sorted((made[1] / "pictures").rglob("*.jpg"))):
        target = folder / ("a" if i < 30 else "b" if i < 100 else "c") / path.name
        target.parent.mkdir(exist_ok=True)
        shutil.copy(path, target)
    everything = sorted(folder.rglob("*.jpg"))
    everything[50].write_bytes(b"")
    everything[150].write_bytes(everything[150].read_bytes()[:-300])
    for i in range(20):
        shutil.copy(everything[100 + i], everything[5 + i])
    return folder


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    path = tmp_path_factory.mktemp("recipe") / "small.yaml"
    path.write_text("resize: {short_side: 32}\ncrop: {width: 24, height: 24}\n")
    return path


def arguments(pictures, recipe, name, split="0.8,0.1,0.1", seed=5):
    return ["prepare", pictures, "--recipe", recipe, "--labels", "folders", "--format", name, "--shard-bytes", 50_000, "--seed", seed] + (["--split", split] if split else [])


@pytest.fixture(scope="module")
def whole(weir, pictures, recipe, tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    for name in FORMATS:
        weir.run(*arguments(pictures, recipe, name), "--workers", 1, "-o", folder / name)
    return folder


def test_the_shares_hold_every_picture_once_in_near_exact_proportions(weir, pictures, tmp_path):
    # Without the copies, which follow the first of them.
    source = tmp_path / "in"
    shutil.copytree(pictures, source)
    for path in sorted(source.rglob("*.jpg"))[5:25]:
        path.unlink()
    result = weir.json("prepare", source, "--labels", "folders", "--split", "0.8,0.1,0.1", "-o", tmp_path / "set")
    assert result["images"] == 178 and sum(result["splits"].values()) == 178 and list(result["splits"]) == SPLIT
    seen, by_label = [], collections.defaultdict(collections.Counter)
    for name in SPLIT:
        facts = json.loads((tmp_path / "set" / name / "set.json").read_text())
        assert facts["split"] == name and facts["images"] == result["splits"][name] and facts["classes"] == ["a", "b", "c"]
        assert abs(facts["images"] - 178 * SHARES[name]) <= 4
        for line in lines(tmp_path / "set" / name / "manifest.jsonl") + lines(tmp_path / "set" / name / "rejects.jsonl"):
            seen.append(line["input"])
            by_label[line["source"].split("/")[0]][name] += 1
    assert sorted(seen) == list(range(180))
    for counts in by_label.values():
        for name in SPLIT:
            quota = sum(counts.values()) * SHARES[name]
            assert math.floor(quota + 1e-9) <= counts[name] <= math.ceil(quota - 1e-9)


def test_every_verb_opens_a_share(weir, made, pictures, tmp_path):
    weir.run("prepare", pictures, "--recipe", made[0] / "recipe.yaml", "--format", "raw", "--split", "train=0.7,held-out=0.3", "-o", tmp_path / "set")
    assert sorted(os.listdir(tmp_path / "set")) == ["held-out", "train"]
    counts = {name: json.loads((tmp_path / "set" / name / "set.json").read_text())["images"] for name in ("held-out", "train")}
    assert weir.json("run", made[0], tmp_path / "set/held-out")["images"] == counts["held-out"]
    assert weir.json("run", made[0], tmp_path / "set")["images"] == 198
    for folder in (tmp_path / "set", tmp_path / "set/train"):
        assert b"as the manifest says" in weir.run("prepare", "--verify", folder).stdout
    weir.run("prepare", pictures, "--format", "tar", "--split", "0.5,0.5", "--preview", tmp_path / "sheet.jpg", "-o", tmp_path / "tar")
    assert (tmp_path / "sheet.jpg").read_bytes()[:3] == b"\xff\xd8\xff"
    again = weir.json("prepare", tmp_path / "tar/val", "-o", tmp_path / "again")
    assert again["images"] == json.loads((tmp_path / "tar/val/set.json").read_text())["images"]


def test_the_same_picture_never_lands_in_two_shares(whole):
    share_of, twins = {}, 0
    for name in SPLIT:
        for line in lines(whole / "files" / name / "manifest.jsonl"):
            twins += line["source_hash"] in share_of
            assert share_of.setdefault(line["source_hash"], name) == name, line
    assert twins == 20


def test_names_and_seed_decide_and_not_order_place_or_other_arguments(weir, pictures, whole, tmp_path):
    def shares(folder):
        return {line["source"].rpartition("pictures/")[2]: name for name in SPLIT for line in lines(folder / name / "manifest.jsonl")}

    shutil.copytree(pictures, tmp_path / "moved")
    weir.run("prepare", tmp_path / "moved", "--labels", "folders", "--split", "0.8,0.1,0.1", "--seed", 5, "-o", tmp_path / "another name")
    assert shares(tmp_path / "another name") == shares(whole / "files")
    weir.run("prepare", tmp_path / "moved", "--labels", "folders", "--split", "0.8,0.1,0.1", "--seed", 6, "-o", tmp_path / "other")
    assert shares(tmp_path / "other") != shares(whole / "files")
    # A set that is made of a set is split alike: the names are those of the first originals.
    weir.run("prepare", tmp_path / "moved", "--labels", "folders", "--format", "tar", "-o", tmp_path / "set")
    weir.run("prepare", tmp_path / "set", "--split", "0.8,0.1,0.1", "--seed", 5, "-o", tmp_path / "second")
    once, twice = shares(whole / "files"), shares(tmp_path / "second")
    assert sum(once[name] != twice[name] for name in once) <= 8  # the two rejects are not there any more


@pytest.mark.parametrize("name", FORMATS)
def test_workers_and_parts_give_the_same_bytes(weir, whole, pictures, recipe, tmp_path, name):
    wanted = read_tree(whole / name)
    weir.run(*arguments(pictures, recipe, name), "--workers", 3, "-o", tmp_path / "three")
    assert read_tree(tmp_path / "three") == wanted
    for part in (3, 1, 2):
        weir.run(*arguments(pictures, recipe, name), "--part", f"{part}/3", "-o", tmp_path / "parts")
    assert sorted(os.listdir(tmp_path / "parts/part-2-of-3")) == sorted(SPLIT)
    result = weir.json("prepare", "--join", tmp_path / "parts", "-o", tmp_path / "joined")
    assert read_tree(tmp_path / "joined") == wanted and result["images"] == 198
    assert weir.json("prepare", "--join", tmp_path / "parts", "-o", tmp_path / "joined")["was_finished"]


def test_duplicates_that_are_rejected_have_the_same_twin_in_parts(weir, pictures, recipe, tmp_path):
    command = [*arguments(pictures, recipe, "tar"), "--no-duplicates"]
    weir.run(*command, "-o", tmp_path / "whole")
    for part in (1, 2):
        weir.run(*command, "--part", f"{part}/2", "-o", tmp_path / "parts")
    weir.run("prepare", "--join", tmp_path / "parts", "-o", tmp_path / "joined")
    assert read_tree(tmp_path / "joined") == read_tree(tmp_path / "whole")
    rejects = [line for name in SPLIT for line in lines(tmp_path / "whole" / name / "rejects.jsonl") if line["reason"] == "duplicate"]
    assert len(rejects) == 20 and all(line["twin_input"] < line["input"] for line in rejects)


@pytest.mark.parametrize("name", ["files", "tar"])
def test_kill_9_and_the_same_command_again(weir, whole, pictures, recipe, tmp_path, name):
    wanted, chance = read_tree(whole / name), random.Random(11)
    command = [PROGRAM, *map(str, arguments(pictures, recipe, name)), "--workers", "2", "-o", str(tmp_path / "set")]
    takes, broken = 60.0, 0
    for _ in range(100):
        if broken == 3:
            break
        began = os.times().elapsed
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            _, said = process.communicate(timeout=chance.uniform(0, takes))
            assert process.returncode == 0, said
            takes = os.times().elapsed - began
            assert read_tree(tmp_path / "set") == wanted
            shutil.rmtree(tmp_path / "set")
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            broken += 1
    assert broken == 3
    weir.run(*command[1:])
    assert read_tree(tmp_path / "set") == wanted


def test_other_splits_and_seeds_are_refused(weir, whole, pictures, recipe):
    before = read_tree(whole / "tar")
    for other, word in (({"seed": 6}, b"seed: 5 then, 6 now"), ({"split": "0.7,0.2,0.1"}, b"split: ")):
        said = weir.run(*arguments(pictures, recipe, "tar", **other), "-o", whole / "tar", status=2).stderr
        assert b"other arguments" in said and word in said, said
    for split in ("a=0.5,b=0.5", None):
        said = weir.run(*arguments(pictures, recipe, "tar", split=split), "-o", whole / "tar", status=2).stderr
        assert b"is not an empty folder" in said, said
    assert read_tree(whole / "tar") == before


def test_copies_stay_in_their_share(weir, pictures, tmp_path):
    result = weir.json("prepare", pictures, "--split", "0.8,0.1,0.1", "--replicate", 500, "-o", tmp_path / "set")
    assert result["splits"] == {"train": 400, "val": 50, "test": 50}
    hashes = [{line["source_hash"] for line in lines(tmp_path / "set" / name / "manifest.jsonl")} for name in SPLIT]
    assert not hashes[0] & hashes[1] and not hashes[0] & hashes[2] and not hashes[1] & hashes[2]


def test_what_is_no_split_is_refused_before_anything_is_made(weir, pictures, tmp_path):
    for split in ("1", "0.8,0.1", "0.5,0.6", "0.5,-0.5", "a=0.5,a=0.5", "../x=0.5,b=0.5", "part-1=0.5,b=0.5", "0.25,0.25,0.25,0.25", "x"):
        said = weir.run("prepare", pictures, "--split", split, "-o", tmp_path / "set", status=2).stderr
        assert f"--split {split}: ".encode() in said and b"0.8,0.1,0.1" in said, said
    assert not (tmp_path / "set").exists()


def test_made_pictures_are_split_by_their_classes(weir, tmp_path):
    weir.run("prepare", "--make", 90, "--split", "0.5,0.5", "-o", tmp_path / "set")
    counts = [collections.Counter(line["label"] for line in lines(tmp_path / "set" / name / "manifest.jsonl")) for name in ("train", "val")]
    assert sum(counts[0].values()) == 45
    for label in set(counts[0]) | set(counts[1]):
        assert abs(counts[0][label] - counts[1][label]) <= 1
