"""weir run over a served model: the same answers as in one process, over both protocols and in every form a picture can be sent."""
import shutil

import pytest

from test_serve import Server


@pytest.fixture(scope="module")
def shop(made, tmp_path_factory):
    """A server of the made network, also without its recipe."""
    folder = tmp_path_factory.mktemp("remote")
    model, _ = made
    shutil.copytree(model, folder / "models/tiny")
    shutil.copytree(model, folder / "models/plain")
    (folder / "models/plain/recipe.yaml").unlink()
    config = folder / "models/plain/config.pbtxt"
    config.write_text(config.read_text().replace('name: "tiny"', 'name: "plain"', 1))
    server = Server(folder, "--model-repository", folder / "models").wait()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def mixed(made, tmp_path_factory):
    """Pictures and what is none, so that some batches are refused."""
    folder = tmp_path_factory.mktemp("mixed") / "pictures"
    folder.mkdir()
    _, pictures = made
    for number, path in enumerate(sorted(pictures.rglob("*.jpg"))[:43]):
        shutil.copy(path, folder / f"{number:03}.jpg")
    whole = (folder / "001.jpg").read_bytes()
    (folder / "002a-cut.jpg").write_bytes(whole[: len(whole) // 2])
    (folder / "003a-empty.jpg").write_bytes(b"")
    (folder / "030a-words.jpg").write_text("no picture at all")
    return folder


@pytest.fixture(scope="module")
def expected(weir, made, mixed, tmp_path_factory):
    answers = tmp_path_factory.mktemp("expected") / "answers.csv"
    weir.run("run", made[0], mixed, "--batch", 8, "--answers", answers)
    return answers.read_bytes()


def url(server, protocol, model="tiny"):
    return f"{server.facts[protocol]['url']}/{model}"


@pytest.mark.parametrize("payload", ["tensor", "pixels", "image"])
@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_answers_equal_those_of_one_process(weir, shop, mixed, expected, tmp_path, protocol, mode, payload):
    answers = tmp_path / "answers.csv"
    result = weir.json("run", url(shop, protocol), mixed, "--mode", mode, "--payload", payload, "--answers", answers)
    assert answers.read_bytes() == expected
    assert result["images"] == 43
    assert result["rejected_by_reason"] == {"damaged": 1, "empty": 1, "not-a-picture": 1}


def test_the_result_has_both_sides(weir, shop, mixed):
    result = weir.json("run", url(shop, "http"), mixed, "--repeat-data", 3, "--batch", 4)
    assert result["server"] == shop.facts["http"]["url"] and result["payload"] == "tensor"
    assert set(result["server_ms"]) == {"queue", "compute_input", "compute_infer", "compute_output"}
    assert result["server_ms"]["compute_infer"] > 0
    assert result["server_requests"] == 33 and result["server_mean_batch"] <= 8
    stages = result["stages_ms"]
    parts = ["load_prepare", "wait", "send", "infer", "result_load", "print"]
    assert sum(stages[part] for part in parts) == pytest.approx(stages["total"], rel=1e-9)
    assert stages["infer"] > 0
    assert "recogniser_cpu" not in result["resources"] and "app_cpu" in result["resources"]
    assert "server" in result["bound_images_per_s"] and "infer" not in result["bound_images_per_s"]
    assert result["bottleneck"]["stage"] in {"read", "decode", "print", "client", "server"}


def test_a_recipe_can_come_from_here(weir, made, shop, mixed, expected, tmp_path):
    answers = tmp_path / "answers.csv"
    said = weir.run("run", url(shop, "grpc", "plain"), mixed, status=2).stderr.decode()
    assert "the server tells no recipe" in said and "--recipe" in said
    weir.run("run", url(shop, "grpc", "plain"), mixed, "--recipe", made[0] / "recipe.yaml", "--answers", answers)
    assert answers.read_bytes() == expected


@pytest.mark.parametrize("flags, words", [
    (["--engine", "onnxruntime"], "--engine is the server's to say"),
    (["--threads", "1"], "--threads is the server's to say"),
    (["--precision", "bf16"], "--precision is the server's to say"),
    (["--streams", "1"], "--streams is the server's to say"),
    (["--cache-dir", "x"], "--cache-dir is the server's to say"),
    (["--payload", "image", "--recipe", "x"], "--recipe says nothing with --payload image"),
    (["--payload", "image", "--tolerate-damage"], "--tolerate-damage says nothing with --payload image"),
])
def test_what_a_server_decides_is_refused_by_name(weir, shop, mixed, flags, words):
    assert words in weir.run("run", url(shop, "http"), mixed, *flags, status=2).stderr.decode()


def test_prepared_sets_go_as_pixels_but_not_to_be_prepared_again(weir, made, shop, mixed, tmp_path):
    weir.run("prepare", mixed, "--recipe", made[0] / "recipe.yaml", "-o", tmp_path / "set")
    here = weir.json("run", made[0], tmp_path / "set", "--batch", 8)
    there = weir.json("run", url(shop, "http"), tmp_path / "set", "--payload", "pixels")
    assert there["images"] == here["images"] == 43
    said = weir.run("run", url(shop, "http"), tmp_path / "set", "--payload", "image", status=2).stderr.decode()
    assert "is prepared already" in said


def test_what_is_not_there_is_named(weir, shop, mixed):
    assert "nobody" in weir.run("run", url(shop, "http", "nobody"), mixed, status=2).stderr.decode()
    assert "--payload tensor does without" in weir.run("run", url(shop, "grpc", "plain"), mixed, "--payload", "image", status=2).stderr.decode()
    assert "version 9" in weir.run("run", url(shop, "http", "tiny/versions/9"), mixed, status=2).stderr.decode()
    for protocol in ("http", "grpc"):
        assert "connect to 127.0.0.1:1" in weir.run("run", f"{protocol}://127.0.0.1:1/tiny", mixed, status=1).stderr.decode()
    assert "--payload pixels is for served models" in weir.run("run", "tiny", mixed, "--payload", "pixels", status=2).stderr.decode()
