"""weir serve with an index of identities behind a model: NAME.identify and NAME.lookup."""
import json
import shutil
import struct
import subprocess
import time

import numpy as np
import pytest

from conftest import PROGRAM
from test_serve import Server, put_identity

PARAMETERS = """parameters { key: "identities" value: { string_value: "%s" } }
parameters { key: "identities_threshold" value: { string_value: "0.9" } }
parameters { key: "identities_best" value: { string_value: "2" } }
"""


def write_rows(path, vectors, names):
    path.write_text("".join(json.dumps({"name": name, "embedding": list(map(float, vector))}) + "\n" for name, vector in zip(names, vectors)))
    return path


def infer(server, model, tensor, vectors):
    body = {"inputs": [{"name": tensor, "shape": list(vectors.shape), "datatype": "FP32", "data": vectors.ravel().tolist()}]}
    status, _, answer = server.call("POST", f"/v2/models/{model}/infer", json.dumps(body))
    answer = json.loads(answer)
    return status, {output["name"]: np.array(output["data"]).reshape(output["shape"]) for output in answer.get("outputs", [])} or answer


@pytest.fixture
def served(weir, tmp_path):
    repository = tmp_path / "models"
    put_identity(repository, "faces", more=PARAMETERS % (tmp_path / "people"))
    put_identity(repository, "plain")
    vectors = np.random.default_rng(2).standard_normal((50, 16)).astype("f4")
    weir.run("identities", "build", tmp_path / "people", "--vectors", write_rows(tmp_path / "rows.jsonl", vectors, [f"n{i}" for i in range(50)]),
             "--model", repository / "faces")
    server = Server(tmp_path, "--model-repository", repository).wait()
    yield server, vectors, tmp_path
    assert server.stop() == 0, server.said()


def test_names_come_from_the_models_input_and_from_embeddings(served):
    server, vectors, _ = served
    for model, tensor in (("faces.identify", "x"), ("faces.lookup", "embedding")):
        status, found = infer(server, model, tensor, vectors[:5] * 3)
        assert status == 200, found
        assert found["name"].shape == (5, 2)
        assert found["name"][:, 0].tolist() == [f"n{i}" for i in range(5)]
        assert found["score"][:, 0] == pytest.approx(1, abs=0.01)
        assert found["name"][0, 1] == "" and found["score"][0, 1] == -1
        status, found = infer(server, model, tensor, -vectors[:1])
        assert status == 200 and found["name"].tolist() == [["", ""]]
    described = json.loads(server.call("GET", "/v2/models/faces.lookup")[2])
    assert described["inputs"] == [{"name": "embedding", "datatype": "FP32", "shape": [-1, 16]}]
    statistics = json.loads(server.call("GET", "/v2/models/faces.lookup/stats")[2])["model_stats"][0]["inference_stats"]
    assert statistics["success"]["count"] == 2
    status, answer = infer(server, "plain.lookup", "embedding", vectors[:1])
    assert status == 404 and "identities" in answer["error"]
    status, answer = infer(server, "faces.lookup", "embedding", np.zeros((1, 16)))
    assert status == 400 and "no direction" in answer["error"]


@pytest.mark.timing
def test_an_enrolment_by_another_process_is_found_within_100_ms_and_a_deletion_too(weir, served):
    server, _, folder = served
    new = np.random.default_rng(9).standard_normal((1, 16)).astype("f4")
    writer = subprocess.Popen([PROGRAM, "identities", "enrol", folder / "people", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    writer.stdin.write((json.dumps({"name": "new", "embedding": new[0].tolist()}) + "\n").encode())
    writer.stdin.flush()
    assert writer.stdout.readline() == b"enrolled 1\n"
    acknowledged = time.monotonic()
    while infer(server, "faces.lookup", "embedding", new)[1]["name"][0, 0] != "new":
        assert time.monotonic() < acknowledged + 10
    took = time.monotonic() - acknowledged
    writer.stdin.close()
    assert writer.wait() == 0
    weir.run("identities", "delete", folder / "people", "new")
    time.sleep(0.1)
    assert infer(server, "faces.lookup", "embedding", new)[1]["name"][0, 0] == ""
    assert took < 0.1


def test_an_index_of_another_model_is_refused(weir, tmp_path):
    put_identity(tmp_path / "models", "faces", more=PARAMETERS % (tmp_path / "people"))
    weir.run("identities", "build", tmp_path / "people", "--dimension", 16)
    server = Server(tmp_path, "--model-repository", tmp_path / "models")
    assert server.says("made with the model of hash (none named)")
    server.stop()


def test_pictures_are_identified(weir, made, tmp_path):
    """The scores of a small classifier stand for embeddings: each picture is nearest to itself."""
    model = tmp_path / "models" / "tiny"
    shutil.copytree(made[0], model)
    pictures = sorted(path for path in made[1].rglob("*") if path.suffix in (".jpg", ".png", ".jpeg"))[:4]
    assert len(pictures) == 4
    body = {"inputs": [{"name": "input", "shape": [4], "datatype": "BYTES", "parameters": {"binary_data_size": sum(4 + path.stat().st_size for path in pictures)}}]}
    encoded = b"".join(struct.pack("<I", path.stat().st_size) + path.read_bytes() for path in pictures)

    def ask(server, name):
        head = json.dumps(body | {"outputs": [{"name": "name"}] if name.endswith("identify") else []}).encode()
        status, _, answer = server.call("POST", f"/v2/models/{name}/infer", head + encoded, {"Inference-Header-Content-Length": str(len(head))})
        assert status == 200, answer
        return json.loads(answer)["outputs"]

    server = Server(tmp_path, "--model-repository", tmp_path / "models").wait()
    body["inputs"][0]["name"] = json.loads(server.call("GET", "/v2/models/tiny.image")[2])["inputs"][0]["name"]
    [output] = ask(server, "tiny.image")
    assert server.stop() == 0
    vectors = np.array(output["data"]).reshape(4, -1)
    weir.run("identities", "build", tmp_path / "people", "--vectors", write_rows(tmp_path / "r.jsonl", vectors, [f"picture {i}" for i in range(4)]), "--model", model)
    with open(model / "config.pbtxt", "a", encoding="utf-8") as config:
        config.write(PARAMETERS % (tmp_path / "people"))
    server = Server(tmp_path, "--model-repository", tmp_path / "models").wait()
    [names] = ask(server, "tiny.identify")
    assert [names["data"][i] for i in range(0, 8, 2)] == [f"picture {i}" for i in range(4)]
    for scheme in ("http", "grpc"):
        result = weir.json("load", server.facts[scheme]["url"] + "/tiny.identify", "--data", made[1], "--payload", "image", "--duration", 0.3)
        assert result["levels"][0]["answered"] > 0 and result["levels"][0]["failed"] == 0
    assert server.stop() == 0
