"""Real models over real photos: the published answers."""
import csv
import os

import pytest


def truth(shared):
    with open(shared / "data/images/manifest.csv", newline="") as file:
        return {row["file"]: row for row in csv.DictReader(file)}


def hits(answers, manifest, first_by="class_index"):
    top1 = top5 = 0
    for file, rows in answers.items():
        wanted = manifest[os.path.basename(file)][first_by].split(":")[0]
        classes = [row["class"] for row in rows]
        top1 += classes[0] == wanted
        top5 += wanted in classes[:5]
    return top1, top5


def answer(weir, answers_of, shared, tmp_path, model, *options):
    path = tmp_path / "answers.csv"
    models = shared / "data/models"
    result = weir.json("run", models / f"{model}.onnx", shared / "data/images", "--recipe", models / f"recipes/{model}.yaml",
                       "--answers", path, *options)
    assert (result["images"], result["rejected"]) == (150, 0)
    return answers_of(path), result


@pytest.mark.parametrize("options", [(), ("--engine", "openvino", "--batch", "32")], ids=" ".join)
def test_resnet50_gives_the_published_answers_for_every_fifth_photo(weir, answers_of, shared, tmp_path, options):
    manifest = truth(shared)
    photos, models = tmp_path / "photos", shared / "data/models"
    photos.mkdir()
    for file in sorted(manifest)[::5]:
        (photos / file).symlink_to(shared / "data/images" / file)
    result = weir.json("run", models / "resnet50_pq.onnx", photos, "--recipe", models / "recipes/resnet50_pq.yaml", "--answers", tmp_path / "answers.csv", *options)
    assert (result["images"], result["rejected"], result["precision"]) == (30, 0, "f32")
    top1, _ = hits(answers_of(tmp_path / "answers.csv"), manifest, "resnet50_pq_top5")
    assert top1 >= 29


@pytest.mark.long
@pytest.mark.parametrize("options", [
    (), ("--engine", "openvino", "--batch", "32"),
], ids=" ".join)
def test_resnet50_gives_the_known_hits(weir, answers_of, shared, tmp_path, options):
    answers, result = answer(weir, answers_of, shared, tmp_path, "resnet50_pq", *options)
    top1, top5 = hits(answers, truth(shared))
    assert abs(top1 - 116) <= 1 and abs(top5 - 144) <= 1
    assert result["precision"] == "f32"


@pytest.mark.parametrize("options", [(), ("--engine", "openvino"), ("--mode", "sync", "--batch", "5"), ("--no-files",)], ids=" ".join)
def test_mobilenet_v2_gives_the_known_hits(weir, answers_of, shared, tmp_path, options):
    answers, _ = answer(weir, answers_of, shared, tmp_path, "mobilenet_v2_qdq", *options)
    top1, top5 = hits(answers, truth(shared))
    assert abs(top1 - 136) <= 1 and abs(top5 - 149) <= 1


@pytest.mark.parametrize("model", ["mobilenet_v1_025_128_u8", "mobilenet_v1_025_224_fp32"])
@pytest.mark.parametrize("engine", ["onnxruntime", "openvino"])
def test_small_mobilenets_agree_with_the_manifest(weir, answers_of, shared, tmp_path, model, engine):
    answers, _ = answer(weir, answers_of, shared, tmp_path, model, "--engine", engine)
    top1, _ = hits(answers, truth(shared), f"{model}_top5")
    assert top1 >= 147


def test_answers_keep_the_order_of_the_input(weir, shared, tmp_path):
    models = shared / "data/models"
    orders = []
    for threads in (1, 4):
        path = tmp_path / "answers.csv"
        weir.run("run", models / "mobilenet_v1_025_128_u8.onnx", shared / "data/images", "--recipe",
                 models / "recipes/mobilenet_v1_025_128_u8.yaml", "--answers", path, "--decode-threads", threads, "--batch", 3)
        with open(path, newline="") as file:
            orders.append([row["file"] for row in csv.DictReader(file) if row["rank"] == "1"])
    assert orders[0] == orders[1]
    names = [os.path.basename(name) for name in orders[0]]
    assert names == sorted(names, key=os.fsencode)
