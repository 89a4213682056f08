"""weir load --check: floats of every width by number, infinities and NaN as what they are, all else exactly, over every way to a model."""
import base64
import json
import shutil
import struct

import pytest

from test_load import at
from test_serve import Server, put_identity

INFINITY, NAN = float("inf"), float("nan")


def bf16(value):
    return struct.pack("<f", value)[2:]


PACK = {"FP16": lambda v: struct.pack("<e", v), "BF16": bf16, "FP32": lambda v: struct.pack("<f", v), "FP64": lambda v: struct.pack("<d", v),
        "INT64": lambda v: struct.pack("<q", v), "UINT8": lambda v: struct.pack("<B", v), "BOOL": lambda v: struct.pack("<?", v)}
# What an identity is sent, and answers that differ from it in one element.
FLOATS = [1.0, INFINITY, -INFINITY, NAN]
WRONG_FLOATS = [[2.0, INFINITY, -INFINITY, NAN], [1.0, -INFINITY, -INFINITY, NAN], [1.0, 7.0, -INFINITY, NAN], [1.0, INFINITY, -INFINITY, 3.0], [NAN, INFINITY, -INFINITY, NAN]]
CASES = {dtype: (FLOATS, WRONG_FLOATS) for dtype in ("FP16", "BF16", "FP32", "FP64")} | {
    "INT64": ([2**62 + 1, 0, -1, 5], [[2**62, 0, -1, 5]]),
    "UINT8": ([255, 0, 1, 5], [[254, 0, 1, 5]]),
    "BOOL": ([True, False, True, True], [[True, True, True, True]])}


@pytest.fixture(scope="module")
def identities(tmp_path_factory):
    folder = tmp_path_factory.mktemp("check")
    for dtype in (*CASES, "STRING"):
        put_identity(folder / "models", dtype.lower(), dtype, dims="4")
    running = Server(folder, "--model-repository", folder / "models", "--allow-client-shm").wait()
    running.grpc = running.facts["grpc"]["url"].removeprefix("grpc://")
    running.models = folder / "models"
    yield running
    running.stop()


WAYS = {"http": lambda server, model: at(server, model), "grpc": lambda server, model: at(server, model, "grpc"),
        "shared memory": lambda server, model: [*at(server, model), "--shared-memory", "system"], "in process": lambda server, model: [server.models / model]}


def wrong_answers(weir, *arguments):
    level, = weir.json("load", *arguments, "--request-count", 20, "--warmup", 0, status=None)["levels"]
    assert level["answered"] + level["failed"] == 20, level
    assert set(level["errors"]) <= {"wrong_answer"}, level
    return level["failed"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", CASES)
def test_an_answer_is_right_to_the_value_and_nothing_else_is(weir, identities, tmp_path, dtype, way):
    sent, wrong = CASES[dtype]
    data = tmp_path / "data.json"

    def failed(expected):
        content = {name: {"b64": base64.b64encode(b"".join(map(PACK[dtype], values))).decode(), "shape": [4]} for name, values in (("x", sent), ("y", expected))}
        data.write_text(json.dumps({"data": [{"x": content["x"]}], "validation_data": [{"y": content["y"]}]}))
        return wrong_answers(weir, *WAYS[way](identities, dtype.lower()), "--input-data", data, "--check")

    assert failed(sent) == 0
    for values in wrong:
        assert failed(values) == 20, (dtype, values)


@pytest.mark.parametrize("way", ["http", "grpc", "in process"])
def test_texts_are_right_to_the_byte(weir, identities, tmp_path, way):
    data = tmp_path / "data.json"
    for expected, failed in ((["a", "", "bc", "d"], 0), (["a", "", "bd", "d"], 20)):
        data.write_text(json.dumps({"data": [{"x": ["a", "", "bc", "d"]}], "validation_data": [{"y": expected}]}))
        assert wrong_answers(weir, *WAYS[way](identities, "string"), "--input-data", data, "--check") == failed


@pytest.mark.parametrize("way", WAYS)
def test_found_models_are_held_against_each_other(weir, shared, tmp_path, way):
    """inf_b differs from inf_a beside an infinity; h_b from h_a (FP16) by a ten thousandth."""
    found = shared / "data/found/models"
    if not found.is_dir():
        pytest.skip(f"{found} is not there")
    for name in ("inf_a", "inf_b", "h_a", "h_b"):
        shutil.copytree(found / name, tmp_path / "models" / name)
    running = Server(tmp_path, "--model-repository", tmp_path / "models", "--allow-client-shm").wait()
    running.grpc = running.facts["grpc"]["url"].removeprefix("grpc://")
    running.models = tmp_path / "models"
    try:
        for model, other, right in (("inf_a", "inf_a", True), ("inf_a", "inf_b", False), ("inf_b", "inf_a", False), ("h_a", "h_b", True), ("h_b", "h_a", True)):
            failed = wrong_answers(weir, *WAYS[way](running, model), "--check", running.models / other)
            assert failed == (0 if right else 20), (model, other)
    finally:
        running.stop()
