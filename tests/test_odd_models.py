"""Models that are right and odd: each gives the right answer or a clear refusal, by every way to it and on both engines."""
import concurrent.futures
import json
import mmap
import os
import struct
import urllib.parse

import numpy as np
import pytest

import conftest
import onnx_files as onnx
from onnx_files import constant, field, node, value
from test_serve import DTYPES, Server
from test_serve_grpc_limits import Http2

ENGINES = ["onnxruntime", "openvino"]
X = np.arange(8, dtype=np.float32).reshape(2, 4) - 3
ROWS = [None, 4]


def pack(array, dtype):
    if dtype != "BYTES":
        return array.tobytes()
    return b"".join(struct.pack("<I", len(text)) + text for text in array.ravel())


def unpack(data, dtype, shape):
    if dtype not in ("BYTES", "BF16"):
        return np.frombuffer(data, DTYPES[dtype]).reshape(shape)
    if dtype == "BF16":
        return np.frombuffer(data, np.uint16).reshape(shape)
    texts, at = [], 0
    while at < len(data):
        length, = struct.unpack_from("<I", data, at)
        texts.append(data[at + 4:at + 4 + length])
        at += 4 + length
    return np.array(texts, dtype=object).reshape(shape)


def sample(dtype, shape=(2, 4)):
    count = int(np.prod(shape))
    if dtype == "BYTES":
        return np.array([b"" if i % 3 == 0 else b"a\0\xff" * i for i in range(count)], dtype=object).reshape(shape)
    if dtype == "BF16":
        return (np.arange(count, dtype=np.uint16) + 0x3F80).reshape(shape)
    if dtype == "BOOL":
        return (np.arange(count) % 3 == 0).reshape(shape)
    return np.arange(count).astype(DTYPES[dtype]).reshape(shape)


def dtype_of(array):
    if array.dtype == object:
        return "BYTES"
    return next(name for name, kind in DTYPES.items() if array.dtype == kind)


class Binary:
    """Inputs and outputs as raw bytes over HTTP."""

    def __init__(self, server):
        self.server = server

    def infer(self, name, inputs, dtypes):
        header = {"inputs": [], "parameters": {"binary_data_output": True}}
        tail = b""
        for key, array in inputs.items():
            data = pack(array, dtypes[key])
            header["inputs"].append({"name": key, "datatype": dtypes[key], "shape": list(array.shape), "parameters": {"binary_data_size": len(data)}})
            tail += data
        head = json.dumps(header).encode()
        status, headers, body = raw(self.server, name, head + tail, {"Inference-Header-Content-Length": str(len(head))})
        if status != 200:
            return body.decode()
        length = int(headers.get("Inference-Header-Content-Length", len(body)))
        said, at, outputs = json.loads(body[:length]), length, {}
        for output in said["outputs"]:
            size = output["parameters"]["binary_data_size"]
            outputs[output["name"]] = unpack(body[at:at + size], output["datatype"], output["shape"])
            at += size
        return outputs


class Plain:
    """Inputs and outputs as JSON."""

    def __init__(self, server):
        self.server = server

    def infer(self, name, inputs, dtypes):
        made = []
        for key, array in inputs.items():
            data = [item.decode("latin-1") for item in array.ravel()] if dtypes[key] == "BYTES" else array.ravel().tolist()
            made.append({"name": key, "datatype": dtypes[key], "shape": list(array.shape), "data": data})
        status, _, body = raw(self.server, name, json.dumps({"inputs": made}).encode(), {})
        if status != 200:
            return body.decode()
        outputs = {}
        for output in json.loads(body)["outputs"]:
            data = output["data"]
            if output["datatype"] == "BYTES":
                outputs[output["name"]] = np.array([text.encode("latin-1") for text in data], dtype=object).reshape(output["shape"])
            else:
                outputs[output["name"]] = np.array(data, DTYPES[output["datatype"]]).reshape(output["shape"])
        return outputs


class Grpc:
    def __init__(self, server):
        place = urllib.parse.urlparse(server.facts["grpc"]["url"])
        self.connection = Http2((place.hostname, place.port))

    def infer(self, name, inputs, dtypes):
        body = field(1, name)
        for key, array in inputs.items():
            body += field(5, field(1, key) + field(2, dtypes[key]) + b"".join(field(3, dim) for dim in array.shape))
        for key, array in inputs.items():
            body += field(7, pack(array, dtypes[key]))
        answer = self.connection.call("/inference.GRPCInferenceService/ModelInfer", body)
        if answer is None:
            return "refused"
        infos, raws = [], []
        for number, content in messages(answer):
            if number == 5:
                infos.append(content)
            elif number == 6:
                raws.append(content)
        outputs = {}
        for info, data in zip(infos, raws):
            parts = list(messages(info))
            shape = [dim for number, content in parts if number == 3 for dim in ([content] if isinstance(content, int) else varints(content))]
            name, kind = (next(content.decode() for number, content in parts if number == wanted) for wanted in (1, 2))
            outputs[name] = unpack(data, kind, shape)
        return outputs


def varints(data):
    at = 0
    while at < len(data):
        number = shift = 0
        while True:
            byte = data[at]
            at += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        yield number


def messages(data):
    """(field, content) of a protobuf message; content is bytes or a number."""
    at = 0

    def one():
        nonlocal at
        number = shift = 0
        while True:
            byte = data[at]
            at += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number
    while at < len(data):
        key = one()
        if key & 7 == 0:
            yield key >> 3, one()
        else:
            length = one()
            yield key >> 3, data[at:at + length]
            at += length


def raw(server, name, body, headers):
    return server.call("POST", f"/v2/models/{urllib.parse.quote(name)}/infer", body, headers)


WAYS = {"json": Plain, "binary": Binary, "grpc": Grpc}


def put(repository, name, file, config=None):
    folder = repository / name / "1"
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(file)
    if config is not None:
        (repository / name / "config.pbtxt").write_text(config)


def same(got, wanted):
    assert isinstance(got, dict), got
    assert sorted(got) == sorted(wanted)
    for name, array in wanted.items():
        array = np.asarray(array)
        assert got[name].shape == array.shape, name
        np.testing.assert_array_equal(got[name], array, err_msg=name)


BOXES = np.array([[[0, 0, 1, 1], [0, 0, 1, 1.1], [0, 2, 1, 3], [5, 5, 6, 6], [5, 5, 6, 6.01]]], np.float32)
SCORES = np.array([[[.9, .8, .7, .6, .05]]], np.float32)
NMS = onnx.model([node("NonMaxSuppression", ["boxes", "scores", "most", "overlap", "least"], ["sel"])],
                 [value("boxes", "FP32", [None, 5, 4]), value("scores", "FP32", [None, 1, 5])], [value("sel", "INT64")],
                 [constant("most", np.array([10])), constant("overlap", np.array([0.5], np.float32)), constant("least", np.array([0.1], np.float32))])
NMS_CONFIG = """max_batch_size: 0
input [ { name: "boxes" data_type: TYPE_FP32 dims: [ -1, 5, 4 ] }, { name: "scores" data_type: TYPE_FP32 dims: [ -1, 1, 5 ] } ]
output { name: "sel" data_type: TYPE_INT64 dims: [ -1, 3 ] }"""
SELECTED = np.array([[0, 0, 0], [0, 0, 2], [0, 0, 3]], np.int64)

BRANCHES = [onnx.subgraph("then_branch", onnx.graph([node("Identity", ["x"], ["t"])], [], [value("t")])),
            onnx.subgraph("else_branch", onnx.graph([node("Neg", ["x"], ["e"])], [], [value("e")]))]
LOOP = onnx.subgraph("body", onnx.graph([node("Identity", ["go"], ["still"]), node("Identity", ["v"], ["w"])],
                                        [value("i", "INT64", []), value("go", "BOOL", []), value("v")], [value("still", "BOOL", []), value("w")]))
SCALARS = onnx.model([node("Add", ["x", "k"], ["y"]), node("ReduceSum", ["x"], ["s"], onnx.integer("keepdims", 0))],
                     [value("x", "FP32", [None]), value("k", "FP32", [])], [value("y", "FP32", [None]), value("s", "FP32", [])])
SCALE = onnx.model([node("Mul", ["x", "scale"], ["y"])], [value("x", "FP32", [None, 3]), value("scale", "FP32", [3])], [value("y", "FP32", [None, 3])],
                   [constant("scale", np.array([1, 2, 3], np.float32))])
SCALE_CONFIG = """max_batch_size: 0
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1, 3 ] }, { name: "scale" data_type: TYPE_FP32 dims: [ 3 ] optional: true } ]
output { name: "y" data_type: TYPE_FP32 dims: [ -1, 3 ] }"""
ONES = np.ones((2, 3), np.float32)
NEG = [node("Neg", ["x"], ["y"])]


def floats(*names):
    return [value(name, "FP32", ROWS) for name in names]


# Name: file, config.pbtxt, inputs, right outputs, and engines that may refuse.
CASES = {
    "pass_and_more": (onnx.model(NEG, floats("x"), floats("x", "y")), None, {"x": X}, {"x": X, "y": -X}, ()),
    "two_passed": (onnx.model([], [value("a", "FP32", ROWS), value("b", "INT32", [None, 2])], [value("b", "INT32", [None, 2]), value("a", "FP32", ROWS)]), None,
                   {"a": X, "b": np.array([[1, 2], [3, 4]], np.int32)}, {"a": X, "b": np.array([[1, 2], [3, 4]], np.int32)}, ()),
    "identities": (onnx.model([node("Identity", ["x"], ["y"]), node("Identity", ["x"], ["z"])], floats("x"), floats("x", "y", "z")), None,
                   {"x": X}, {"x": X, "y": X, "z": X}, ()),
    "reshaped_inside": (onnx.model([node("Reshape", ["x", "s"], ["y"])], floats("x"), [value("y", "FP32", [None, 2, 2])], [constant("s", np.array([-1, 2, 2]))]),
                        None, {"x": X}, {"y": X.reshape(2, 2, 2)}, ()),
    "flattened": (onnx.model([node("Flatten", ["x"], ["y"])], [value("x", "FP32", [None, 2, 2])], floats("y")), None, {"x": X.reshape(2, 2, 2)}, {"y": X}, ()),
    "constant_out": (onnx.model(NEG, floats("x"), floats("y") + [value("c", "FP32", [2])], [constant("c", np.array([7, 8], np.float32))]), None,
                     {"x": X}, {"y": -X, "c": np.array([7, 8], np.float32)}, ()),
    "same_twice": (onnx.model(NEG + [node("Identity", ["y"], ["z"])], floats("x"), floats("y", "z")), None, {"x": X}, {"y": -X, "z": -X}, ()),
    "no_inputs": (onnx.model([node("Identity", ["c"], ["y"])], [], [value("y", "FP32", [2])], [constant("c", np.array([7, 8], np.float32))]), None,
                  {}, {"y": np.array([7, 8], np.float32)}, ()),
    "branch": (onnx.model([node("If", ["c"], ["y"], *BRANCHES)], floats("x") + [value("c", "BOOL", [])], [value("y")]), None,
               {"x": X, "c": np.array(True)}, {"y": X}, ()),
    "branch_inlined": (onnx.model([node("If", ["c"], ["y"], *BRANCHES)], floats("x"), [value("y")], [constant("c", np.array(True))]), None, {"x": X}, {"y": X}, ()),
    "loop_of_none": (onnx.model([node("Loop", ["n", "c", "x"], ["y"], LOOP)], floats("x") + [value("n", "INT64", [])], [value("y")],
                                [constant("c", np.array(True))]), None, {"x": X, "n": np.array(0)}, {"y": X}, ()),
    "loop": (onnx.model([node("Loop", ["n", "c", "x"], ["y"], LOOP)], floats("x") + [value("n", "INT64", [])], [value("y")],
                        [constant("c", np.array(True))]), None, {"x": X, "n": np.array(3)}, {"y": X}, ()),
    "nms": (NMS, None, {"boxes": BOXES, "scores": SCORES}, {"sel": SELECTED}, ()),
    "nms_configured": (NMS, NMS_CONFIG, {"boxes": BOXES, "scores": SCORES}, {"sel": SELECTED}, ()),
    "nms_none": (NMS, NMS_CONFIG, {"boxes": BOXES, "scores": SCORES * 0}, {"sel": np.zeros((0, 3), np.int64)}, ()),
    "unique": (onnx.model([node("Unique", ["x"], ["y", "i", "r", "c"])], [value("x", "FP32", [None])],
                          [value("y"), value("i", "INT64"), value("r", "INT64"), value("c", "INT64")], opset=11), None,
               {"x": np.array([3, 1, 3, 2, 1], np.float32)},
               {"y": np.array([1, 2, 3], np.float32), "i": np.array([1, 3, 0]), "r": np.array([2, 0, 2, 1, 0]), "c": np.array([2, 1, 2])}, ()),
    "non_zero": (onnx.model([node("NonZero", ["x"], ["y"])], floats("x"), [value("y", "INT64")]), None, {"x": X}, {"y": np.array(np.nonzero(X))}, ()),
    "top_k": (onnx.model([node("TopK", ["x", "k"], ["v", "i"])], floats("x") + [value("k", "INT64", [1])], [value("v"), value("i", "INT64")]), None,
              {"x": X, "k": np.array([2])}, {"v": X[:, :1:-1], "i": np.array([[3, 2], [3, 2]])}, ()),
    "open_input": (onnx.model(NEG, [value("x")], [value("y")]), None, {"x": X.reshape(2, 2, 2)}, {"y": -X.reshape(2, 2, 2)}, ("openvino",)),
    "open_passed": (onnx.model([], [value("x")], [value("x")]), None, {"x": X}, {"x": X}, ("openvino",)),
    "open_configured": (onnx.model(NEG, [value("x")], [value("y")]),
                        'input { name: "x" data_type: TYPE_FP32 dims: [ -1, 4 ] } output { name: "y" data_type: TYPE_FP32 dims: [ -1, 4 ] }',
                        {"x": X}, {"y": -X}, ("openvino",)),
    "scalars": (SCALARS, None, {"x": X[0], "k": np.array(10, np.float32)}, {"y": X[0] + 10, "s": X[0].sum()}, ()),
    "scalars_sent_as_one": (SCALARS, None, {"x": X[0], "k": np.array([10], np.float32)}, {"y": X[0] + 10, "s": X[0].sum()}, ()),
    "scalars_of_dims_1": (SCALARS, """max_batch_size: 0
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] }, { name: "k" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] }, { name: "s" data_type: TYPE_FP32 dims: [ 1 ] } ]""",
                          {"x": X[0], "k": np.array([10], np.float32)}, {"y": X[0] + 10, "s": X[0].sum().reshape(1)}, ()),
    "filled_input": (SCALE, None, {"x": ONES}, {"y": ONES * np.array([1, 2, 3], np.float32)}, ()),
    "filled_input_configured": (SCALE, SCALE_CONFIG, {"x": ONES}, {"y": ONES * np.array([1, 2, 3], np.float32)}, ("openvino",)),
    "filled_input_replaced": (SCALE, SCALE_CONFIG, {"x": ONES, "scale": np.array([4, 5, 6], np.float32)}, {"y": ONES * np.array([4, 5, 6], np.float32)}, ("openvino",)),
    "empty_rows": (onnx.model(NEG, [value("x", "FP32", [None, None])], [value("y", "FP32", [None, None])]),
                   'input { name: "x" data_type: TYPE_FP32 dims: [ -1, -1 ] } output { name: "y" data_type: TYPE_FP32 dims: [ -1, -1 ] }',
                   {"x": np.zeros((2, 0), np.float32)}, {"y": np.zeros((2, 0), np.float32)}, ()),
    "reshaped_output": (onnx.model(NEG, [value("x", "FP32", [1, 3, 4])], [value("y", "FP32", [1, 3, 4])]), """max_batch_size: 0
input { name: "x" data_type: TYPE_FP32 dims: [ 1, 3, 4 ] }
output { name: "y" data_type: TYPE_FP32 dims: [ -1, 4 ] reshape { shape: [ 1, -1, 4 ] } }""",
                        {"x": np.arange(12, dtype=np.float32).reshape(1, 3, 4)}, {"y": -np.arange(12, dtype=np.float32).reshape(3, 4)}, ()),
    "reshaped_input": (onnx.model(NEG, [value("x", "FP32", [1, 3, 4])], [value("y", "FP32", [1, 3, 4])]), """max_batch_size: 0
input { name: "x" data_type: TYPE_FP32 dims: [ -1, 4 ] reshape { shape: [ 1, -1, 4 ] } }
output { name: "y" data_type: TYPE_FP32 dims: [ 1, 3, 4 ] }""",
                       {"x": np.arange(12, dtype=np.float32).reshape(3, 4)}, {"y": -np.arange(12, dtype=np.float32).reshape(1, 3, 4)}, ()),
    "sequence_beside": (onnx.model(NEG + [node("SequenceConstruct", ["x", "x"], ["q"])], floats("x"), floats("y") + [onnx.sequence("q")]), None,
                        {"x": X}, {"y": -X}, ("openvino",)),
    "names": (onnx.model([node("Neg", ["a/b:0"], ["ü \"q\""])], [value("a/b:0", "FP32", ROWS)], [value("ü \"q\"", "FP32", ROWS)]), None,
              {"a/b:0": X}, {"ü \"q\"": -X}, ()),
}
TYPED = {f"pass_{dtype.lower()}": dtype for dtype in (*DTYPES, "BF16", "BYTES")}
BATCHED = """max_batch_size: 8
input {{ name: "x" data_type: TYPE_{0} dims: [ 4 ] }}
output [ {{ name: "x" data_type: TYPE_{0} dims: [ 4 ] }}, {{ name: "y" data_type: TYPE_{0} dims: [ 4 ] }} ]
dynamic_batching {{ max_queue_delay_microseconds: 500 }}"""


@pytest.fixture(scope="module", params=ENGINES)
def odd(request, tmp_path_factory):
    """(server, engine): every case above, and the typed models with and without batches."""
    folder = tmp_path_factory.mktemp(request.param)
    repository = folder / "models"
    for name, (file, config, *_) in CASES.items():
        put(repository, name, file, config)
    for name, dtype in TYPED.items():
        x, y = value("x", dtype, ROWS), value("y", dtype, ROWS)
        file = onnx.model([node("Identity", ["x"], ["y"])], [x], [y, x])
        put(repository, name, file)
        put(repository, name + "_batched", file, BATCHED.format("STRING" if dtype == "BYTES" else dtype))
    server = Server(folder, "--model-repository", repository, "--engine", request.param, "--allow-client-shm", "--strict-readiness", "false").wait()
    yield server, request.param
    assert server.process.poll() is None, server.said()
    server.stop()


def not_served(server, name):
    entries = json.loads(server.call("POST", "/v2/repository/index", b"{}")[2])
    entry = next(entry for entry in entries if entry["name"] == name)
    return "" if entry["state"] == "READY" else entry["reason"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CASES)
def test_an_odd_model_gives_the_right_answer_or_a_refusal(odd, name, way):
    server, engine = odd
    _, _, inputs, wanted, refusers = CASES[name]
    if why := not_served(server, name):
        assert engine in refusers, why
        return
    connection = WAYS[way](server)
    for _ in range(3):  # an engine may begin to place its outputs
        same(connection.infer(name, inputs, {key: dtype_of(array) for key, array in inputs.items()}), wanted)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", [name + batched for name in TYPED for batched in ("", "_batched")])
def test_an_output_that_is_an_input_comes_back_in_every_type(odd, name, way):
    server, engine = odd
    dtype = TYPED[name.removesuffix("_batched")]
    if why := not_served(server, name):
        assert dtype == "BYTES" and engine == "openvino" and "strings" in why
        return
    if way == "json" and dtype in ("BF16", "BYTES"):
        pytest.skip("JSON has no such numbers, and no such text")
    connection = WAYS[way](server)
    for rows in (2, 1, 2, 2):
        x = sample(dtype, (rows, 4))
        same(connection.infer(name, {"x": x}, {"x": dtype}), {"x": x, "y": x})


@pytest.mark.parametrize("name", ["pass_fp32", "pass_fp32_batched"])
def test_two_clients_of_a_model_that_gives_its_input_back_never_see_each_other(odd, name):
    server, _ = odd
    rounds = int(os.environ.get("WEIR_ODD_ROUNDS", "300"))

    def client(number):
        connection = Binary(server)
        for turn in range(rounds):
            x = np.full((1 + turn % 3, 4), number * 1e6 + turn, np.float32)
            same(connection.infer(name, {"x": x}, {"x": "FP32"}), {"x": x, "y": x})
        return rounds
    with concurrent.futures.ThreadPoolExecutor(2) as clients:
        assert sum(clients.map(client, (1, 2))) == 2 * rounds


def test_shared_memory_gets_the_input_that_is_an_output(odd):
    server, _ = odd
    key = f"/weir_odd_{os.getpid()}"
    path = "/dev/shm" + key
    with open(path, "wb") as made:
        made.truncate(4096)
    try:
        with open(path, "r+b") as opened, mmap.mmap(opened.fileno(), 4096) as memory:
            server.json("POST", "/v2/systemsharedmemory/region/odd/register", {"key": key, "offset": 0, "byte_size": 4096})
            for turn in range(20):
                memory[:32] = (X + turn).tobytes()
                region = {"shared_memory_region": "odd", "shared_memory_byte_size": 32}
                outputs = [{"name": "x", "parameters": region | {"shared_memory_offset": 128}}, {"name": "y"}]
                answer = server.infer("pass_fp32", [{"name": "x", "datatype": "FP32", "shape": [2, 4], "parameters": region}], outputs=outputs)
                assert memory[128:160] == (X + turn).tobytes()
                assert answer["outputs"][1]["data"] == (X + turn).ravel().tolist()
            server.json("POST", "/v2/systemsharedmemory/region/odd/unregister")
    finally:
        os.unlink(path)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", CASES)
def test_a_model_in_this_process_gives_the_right_answer_or_a_refusal(weir, tmp_path, engine, name):
    file, config, inputs, wanted, refusers = CASES[name]
    if not inputs:
        pytest.skip("weir load has nothing to send to a model without inputs")
    put(tmp_path, name, file, config)
    own = {key: array for key, array in inputs.items()}
    if name in ("scalars_of_dims_1", "scalars_sent_as_one"):
        own["k"] = own["k"].reshape(())  # below the server's rules: as the file has it
    if name == "reshaped_input":
        own["x"] = own["x"].reshape(1, 3, 4)
    right = dict(wanted)
    if name == "scalars_of_dims_1":
        right["s"] = right["s"].reshape(())
    if name == "reshaped_output":
        right["y"] = right["y"].reshape(1, 3, 4)

    def listed(arrays):
        return {key: {"content": np.asarray(array).ravel().tolist(), "shape": list(np.asarray(array).shape)} for key, array in arrays.items()}
    data = tmp_path / "data.json"
    data.write_text(json.dumps({"data": [[listed(own)]], "validation_data": [[listed(right)]]}))
    done = weir.run("load", tmp_path / name, "--engine", engine, "--input-data", data, "--check", "--request-count", 3, "--warmup", 0,
                    "--json", tmp_path / "load.json", status=None)
    if done.returncode not in conftest.MEASURED:
        assert engine in refusers, done.stderr
        return
    level, = json.loads((tmp_path / "load.json").read_text())["levels"]
    assert level["answered"] == 3 and not level.get("errors"), level


def test_what_a_file_does_not_tell_is_shown_as_unknown(weir, tmp_path):
    put(tmp_path, "open", onnx.model(NEG, [value("x")], [value("y")]))
    put(tmp_path, "nms", NMS)
    put(tmp_path, "beside", CASES["sequence_beside"][0])
    facts = weir.json("model", "show", tmp_path / "open")
    assert "shape" not in facts["inputs"][0] and "shape" not in facts["outputs"][0]
    assert not facts["batchable"] and "does not tell the shape" in facts["not_batchable"]
    facts = weir.json("model", "show", tmp_path / "nms")
    assert facts["outputs"][0]["shape"] == [-1, 3] and not facts["batchable"]
    facts = weir.json("model", "show", tmp_path / "beside")
    assert facts["left_out"] == [{"name": "q", "datatype": "SEQUENCE"}]
    assert b"left out q" in weir.run("model", "show", tmp_path / "beside").stdout


def test_the_configuration_that_a_server_tells_is_one_that_it_takes(odd, weir, tmp_path):
    """What a client reads and puts back into config.pbtxt, or loads again, serves the same."""
    server, engine = odd
    for name, (_, _, inputs, wanted, _) in CASES.items():
        if not_served(server, name):
            continue
        config = json.loads(server.call("GET", f"/v2/models/{name}/config")[2])
        repository = tmp_path / name
        put(repository, name, CASES[name][0])
        again = Server(tmp_path, "--model-repository", repository, "--engine", engine, "--model-control-mode", "explicit", "--load-model", name).wait()
        try:
            again.json("POST", f"/v2/repository/models/{name}/load", {"parameters": {"config": json.dumps(config)}})
            same(Binary(again).infer(name, inputs, {key: dtype_of(array) for key, array in inputs.items()}), wanted)
        finally:
            again.stop()


def test_links_lead_into_the_repository_and_where_they_are_allowed(weir, tmp_path):
    weights = np.arange(16, dtype=np.float32).reshape(4, 4)
    file = onnx.model([node("MatMul", ["x", "w"], ["y"])], floats("x"), floats("y"), [constant("w", weights, external="model.onnx_data")])
    cache = tmp_path / "hub/models--org--net"
    snapshot = cache / "snapshots/abc/onnx"
    snapshot.mkdir(parents=True)
    (cache / "blobs").mkdir()
    for name, content in (("model.onnx", file), ("model.onnx_data", weights.tobytes())):
        (cache / "blobs" / name[-4:]).write_bytes(content)
        (snapshot / name).symlink_to(f"../../../blobs/{name[-4:]}")
    repository = tmp_path / "models"
    (repository / "net").mkdir(parents=True)
    (repository / "net/1").symlink_to(snapshot)
    done = weir.run("model", "show", repository / "net", status=2)
    assert b"--allow-link" in done.stderr
    assert weir.json("model", "show", repository / "net", "--allow-link", cache)["external_bytes"] == 64
    assert weir.json("model", "show", snapshot / "model.onnx", "--allow-link", cache)["external_bytes"] == 64
    put(repository, "plain", onnx.model(NEG, floats("x"), floats("y")))
    (repository / "linked/1").mkdir(parents=True)
    (repository / "linked/1/model.onnx").symlink_to("../../plain/1/model.onnx")
    server = Server(tmp_path, "--model-repository", repository, "--allow-link", cache).wait()
    try:
        same(Binary(server).infer("net", {"x": X}, {"x": "FP32"}), {"y": X @ weights})
        same(Binary(server).infer("linked", {"x": X}, {"x": "FP32"}), {"y": -X})
    finally:
        server.stop()
    server = Server(tmp_path, "--model-repository", repository, "--strict-readiness", "false").wait()
    try:
        assert "--allow-link" in not_served(server, "net")
    finally:
        server.stop()


def test_a_timeout_of_zero_is_no_limit(odd):
    server, _ = odd
    request = [{"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}]
    assert server.infer("pass_fp32", request, parameters={"timeout": 0})["outputs"][1]["data"] == [1, 2, 3, 4]


def test_openvino_refuses_numbers_that_it_would_wrap(odd):
    server, engine = odd
    large = np.array([[2 ** 40, -1, 0, 1]])
    got = Binary(server).infer("pass_int64", {"x": large}, {"x": "INT64"})
    if engine == "onnxruntime":
        return same(got, {"x": large, "y": large})
    assert "INT32 does not hold" in got
