"""Health, metadata, model control and the words of errors, with Triton's public Python clients."""
import re

import numpy as np
import pytest
from tritonclient.utils import InferenceServerException

import models
import rig


@pytest.fixture(params=["http", "grpc"])
def controlled(request, tmp_path):
    """A client of a server of its own, whose models a test may change."""
    repository = tmp_path / "repository"
    models.make(repository)
    server = rig.Server(tmp_path, "--model-repository", repository, "--compat", "triton", "--model-control-mode", "explicit",
                        "--load-model", "simple")
    client = rig.Client(request.param, server)
    yield client
    client.triton.close()
    server.stop()


def refusal(call, *arguments, **options):
    with pytest.raises(InferenceServerException) as refused:
        call(*arguments, **options)
    return refused.value.message()


def test_health_and_metadata(client):
    triton = client.triton
    assert triton.is_server_live(headers={"test": "1", "dummy": "2"}) and triton.is_server_ready() and triton.is_model_ready("simple")
    metadata = client.plain(triton.get_server_metadata())
    assert metadata["name"] == "triton"
    assert re.fullmatch(r"2\.\d+\.\d+", metadata["version"])
    assert {"classification", "model_repository", "statistics", "system_shared_memory"} <= set(metadata["extensions"])
    assert client.plain(triton.get_model_metadata("simple"))["name"] == "simple"
    config = client.plain(triton.get_model_config("simple"))
    assert config.get("config", config)["name"] == "simple"
    assert "Request for unknown model: 'wrong_model_name' is not found" in refusal(triton.get_model_metadata, "wrong_model_name")
    assert not triton.is_model_ready("wrong_model_name")


def test_models_come_and_go(controlled):
    triton = controlled.triton
    index = controlled.plain(triton.get_model_repository_index())
    assert len(index if isinstance(index, list) else index["models"]) == 6
    triton.load_model("simple")
    assert triton.is_model_ready("simple")
    assert "failed to load" in refusal(triton.load_model, "simple", config='"parameters": {"config": {{"max_batch_size": "16"}}}')
    triton.load_model("simple", config='{"max_batch_size":"16"}')
    config = controlled.plain(triton.get_model_config("simple"))
    assert config.get("config", config)["max_batch_size"] == 16
    triton.unload_model("simple")
    assert not triton.is_model_ready("simple")
    words = refusal(triton.load_model, "simple", config="{}", files={"file:" + "A" * 256: b"a"})
    assert "failed to load 'simple', failed to poll from model repository" in words
    assert triton.is_server_live()
    assert "failed to load 'wrong_model_name'" in refusal(triton.load_model, "wrong_model_name")


def test_requests_are_refused_in_the_words_that_clients_know(client):
    row = np.zeros((1, 16), dtype=np.int32)

    def words(first, second=("INPUT1", row, "INT32"), outputs=None, model="simple"):
        inputs = [client.input(*tensor) for tensor in (first, second) if tensor]
        return refusal(client.triton.infer, model, inputs, outputs=outputs, request_id="id7")

    good = ("INPUT0", row, "INT32")
    assert words(good, model="none").startswith("Request for unknown model: 'none' is not found")
    assert "unexpected inference input 'OTHER' for model 'simple'" in words(("OTHER", row, "INT32"))
    assert "expected 2 inputs but got 1 inputs for model 'simple'" in words(good, None)
    assert "[request id: id7] inference input 'INPUT0' data-type is 'FP32', but model 'simple' expects 'INT32'" in words(
        ("INPUT0", row.astype(np.float32), "FP32"))
    assert "unexpected shape for input 'INPUT0' for model 'simple'. Expected [-1,16], got [1,8]" in words(("INPUT0", row[:, :8], "INT32"))
    large = np.zeros((9, 16), dtype=np.int32)
    assert "inference request batch-size must be <= 8 for 'simple'" in words(("INPUT0", large, "INT32"), ("INPUT1", large, "INT32"))
    assert "unexpected inference output 'NONE' for model 'simple'" in words(good, outputs=[client.output("NONE")])
