"""weir serve: configurations that cannot be obeyed, folders that are damaged, and calls that cannot be answered in time."""
import concurrent.futures
import os
import shutil
import time

import pytest

from test_serve import put_identity, serve, x  # noqa: F401: a fixture


def reasons(server):
    """What the index says of each model that is not ready."""
    index = server.json("POST", "/v2/repository/index")
    return {entry["name"]: entry["reason"] for entry in index if entry.get("state") != "READY"}


@pytest.mark.parametrize("more,words", [
    ("instance_group { count: 5000 }", "asks for 5000 instances"), ("version_policy { latest { num_versions: 0 } }", "num_versions of 0"),
])
def test_a_configuration_that_cannot_be_obeyed_is_refused(serve, tmp_path, more, words):
    put_identity(tmp_path / "models", "bad", more=more)
    put_identity(tmp_path / "models", "good")
    server = serve("--model-repository", tmp_path / "models")
    assert words in reasons(server)["bad"]
    assert words in server.json("GET", "/v2/health/ready", status=503)["error"]
    server.infer("good", x([1.0] * 16))


@pytest.mark.parametrize("config,words", [
    ("instance_group { count: 5000 }", "asks for 5000 instances"),
    ('parameters { key: "threads" value: { string_value: "99999" } }', "threads is 99999"),
])
def test_more_threads_or_instances_than_there_are_is_refused(serve, made, tmp_path, config, words):
    shutil.copytree(made[0], tmp_path / "models/tiny")
    with open(tmp_path / "models/tiny/config.pbtxt", "a") as file:
        file.write("\n" + config + "\n")
    put_identity(tmp_path / "models", "good")
    server = serve("--model-repository", tmp_path / "models")
    assert words in reasons(server)["tiny"] and "give at most" in reasons(server)["tiny"]


def test_a_configuration_with_a_byte_order_mark_is_read(serve, tmp_path):
    config = put_identity(tmp_path / "models", "m", batch=3) / "config.pbtxt"
    config.write_bytes(b"\xef\xbb\xbf" + config.read_bytes())
    server = serve("--model-repository", tmp_path / "models")
    assert server.json("GET", "/v2/models/m/config")["max_batch_size"] == 3


def test_a_link_to_what_is_not_there_is_told(serve, tmp_path):
    put_identity(tmp_path / "models", "good")
    os.symlink(tmp_path / "gone", tmp_path / "models/lost")
    server = serve("--model-repository", tmp_path / "models")
    assert "is a link to" in reasons(server)["lost"]
    assert "lost" in server.json("GET", "/v2/health/ready", status=503)["error"]
    assert "is a link to" in server.said()
    server.infer("good", x([1.0] * 16))


def test_a_folder_with_the_name_of_anothers_pictures_is_told_and_hides_nothing(serve, made, tmp_path):
    shutil.copytree(made[0], tmp_path / "models/tiny")
    put_identity(tmp_path / "models", "tiny.image")
    server = serve("--model-repository", tmp_path / "models")
    assert "rename one of them" in server.said()
    assert server.json("GET", "/v2/models/tiny.image")["inputs"][0]["datatype"] == "BYTES"


def test_a_deleted_version_leaves_the_index(serve, tmp_path):
    folder = put_identity(tmp_path / "models", "m", more="version_policy { all { } }")
    (folder / "2").mkdir()
    server = serve("--model-repository", tmp_path / "models", "--model-control-mode", "explicit", "--load-model", "m")
    (folder / "2").rmdir()
    server.json("POST", "/v2/repository/models/m/unload")
    assert [entry["version"] for entry in server.json("POST", "/v2/repository/index")] == ["1"]
    shutil.rmtree(folder)
    server.json("POST", "/v2/repository/models/m/load", status=404)
    assert server.json("POST", "/v2/repository/index") == []


@pytest.mark.timing
def test_a_call_that_expires_in_the_queue_is_answered_at_once(serve, tmp_path):
    put_identity(tmp_path / "models", "m", engine="emulated:base=4s")
    server = serve("--model-repository", tmp_path / "models")
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        busy = [pool.submit(server.infer, "m", x([1.0] * 16)) for _ in range(2)]  # one computes, one is at hand
        time.sleep(0.5)
        begin = time.monotonic()
        told = server.infer("m", x([1.0] * 16), 503, parameters={"timeout": 100_000})
        took = time.monotonic() - begin
        assert all(call.result() for call in busy)
    assert "deadline" in told["error"] and took < 2


def test_a_model_without_a_recipe_has_a_remedy_that_the_verb_takes(weir, made, tmp_path):
    shutil.copy(made[0] / "1/model.onnx", tmp_path / "net.onnx")
    done = weir.run("prepare", made[1], "--recognise", tmp_path / "net.onnx", "-o", tmp_path / "set", status=2)
    assert "net.recipe.yaml" in done.stderr.decode() and "--recipe" not in done.stderr.decode()
    done = weir.run("run", tmp_path / "net.onnx", made[1], status=2)
    assert "--recipe FILE" in done.stderr.decode() and "net.recipe.yaml" in done.stderr.decode()
