"""weir run over pictures with labels: the accuracy says of how many it is, and is left out where the labels are of another model."""
import json
import shutil

import pytest


@pytest.fixture(scope="module")
def pictures(made, tmp_path_factory):
    """A plain folder of 24 of the made pictures, and the label of each by its name."""
    folder = tmp_path_factory.mktemp("labels") / "plain"
    folder.mkdir()
    labels = {}
    for line in (made[1] / "manifest.jsonl").read_text().splitlines()[:24]:
        entry = json.loads(line)
        name = entry["path"].split("/")[-1]
        shutil.copy(made[1] / entry["path"], folder / name)
        labels[name] = entry["label"]
    return folder, labels


def prepare(weir, folder, output, labels):
    file = output.parent / f"{output.name}.csv"
    file.write_text("name,label\n" + "".join(f"{name},{label}\n" for name, label in labels.items()))
    weir.run("prepare", folder, "-o", output, "--labels", file)
    return output


def test_the_accuracy_says_of_how_many_pictures_it_is(weir, made, pictures, tmp_path):
    folder, labels = pictures
    half = prepare(weir, folder, tmp_path / "half", dict(sorted(labels.items())[:12]))
    result = weir.json("run", made[0], half)
    assert result["images"] == 24 and result["accuracy"]["labelled"] == 12
    assert result["accuracy"]["top1"] >= 0.75
    assert "of the 12 of 24 pictures that have labels" in weir.run("run", made[0], half).stdout.decode()
    whole = prepare(weir, folder, tmp_path / "whole", labels)
    assert "of 24 pictures" in weir.run("run", made[0], whole).stdout.decode()
    result = weir.json("run", made[0], folder)
    assert "accuracy" not in result and "accuracy_left_out" not in result


@pytest.mark.parametrize("label, why", [("5000", "has the label 5000, and the model has 1000 classes"), ("tench", 'is "tench" in the set')])
def test_labels_of_another_model_are_no_accuracy(weir, made, pictures, tmp_path, label, why):
    folder, labels = pictures
    other = prepare(weir, folder, tmp_path / "other", {name: label for name in labels})
    result = weir.json("run", made[0], other)
    assert result["images"] == 24 and "accuracy" not in result
    assert why in result["accuracy_left_out"]
    said = weir.run("run", made[0], other).stdout.decode()
    assert "left out" in said and "top-1" not in said
