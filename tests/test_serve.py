"""weir serve through the built program: the protocol, the repository, metrics, and the server's life."""
import concurrent.futures
import http.client
import json
import mmap
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import time
import urllib.parse

import numpy as np
import pytest

import conftest

IDENTITY = """backend: "emulated"
max_batch_size: {batch}
input {{ name: "x" data_type: TYPE_{dtype} dims: [ {dims} ] }}
output {{ name: "y" data_type: TYPE_{dtype} dims: [ {dims} ] }}
parameters {{ key: "engine" value: {{ string_value: "{engine}" }} }}
{more}
"""
DTYPES = {"BOOL": np.bool_, "UINT8": np.uint8, "UINT16": np.uint16, "UINT32": np.uint32, "UINT64": np.uint64, "INT8": np.int8,
          "INT16": np.int16, "INT32": np.int32, "INT64": np.int64, "FP16": np.float16, "FP32": np.float32, "FP64": np.float64}


def put_identity(repository, name, dtype="FP32", dims="16", batch=8, engine="emulated:base=0ms", more=""):
    folder = pathlib.Path(repository) / name
    (folder / "1").mkdir(parents=True, exist_ok=True)
    (folder / "config.pbtxt").write_text(IDENTITY.format(dtype=dtype, dims=dims, batch=batch, engine=engine, more=more))
    return folder


class Server:
    """A running `weir serve` on free ports of loopback."""

    def __init__(self, folder, *arguments):
        self.facts_path = pathlib.Path(folder) / "served.json"
        self.facts_path.unlink(missing_ok=True)
        self.log_path = pathlib.Path(folder) / "log.txt"
        self.log = open(self.log_path, "wb")
        self.told = False
        self.process = subprocess.Popen(
            [conftest.PROGRAM, "serve", *map(str, arguments), "--http-port", "0", "--grpc-port", "0", "--metrics-port", "0", "--json",
             str(self.facts_path)], stdout=subprocess.PIPE, stderr=self.log)

    def wait(self, seconds=60):
        until = time.monotonic() + seconds
        while not self.facts_path.exists():
            assert self.process.poll() is None, self.said()
            assert time.monotonic() < until, self.said()
            time.sleep(0.02)
        self.facts = json.loads(self.facts_path.read_text())
        self.http = urllib.parse.urlparse(self.facts["http"]["url"]).netloc
        return self

    def said(self):
        return self.log_path.read_text(errors="replace")

    def says(self, *texts, within=60):
        """Returns whether one of the texts comes to stand in the log, which has a thread of its own."""
        until = time.monotonic() + within
        while time.monotonic() < until:
            if any(text in self.said() for text in texts):
                return True
            time.sleep(0.01)
        return False

    def call(self, method, path, body=None, headers=None, timeout=60):
        """(status, headers, bytes)"""
        connection = http.client.HTTPConnection(self.http, timeout=timeout)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"} | (headers or {}))
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def json(self, method, path, body=None, status=200):
        got, _, data = self.call(method, path, None if body is None else json.dumps(body))
        assert got == status, (got, data)
        return json.loads(data) if data else None

    def infer(self, model, inputs, status=200, **more):
        return self.json("POST", f"/v2/models/{model}/infer", {"inputs": inputs} | more, status)

    def metrics(self):
        netloc = urllib.parse.urlparse(self.facts["metrics"]["url"]).netloc
        connection = http.client.HTTPConnection(netloc, timeout=30)
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
        connection.close()
        values = {}
        for line in lines:
            if not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                values[name] = float(value)
        return values

    def tell(self, sent=signal.SIGTERM):
        self.told = True  # a second one would end it at once
        self.process.send_signal(sent)

    def stop(self, sent=signal.SIGTERM, timeout=60):
        if self.process.poll() is None and not self.told:
            self.tell(sent)
        status = self.process.wait(timeout=timeout)
        self.log.close()
        assert "Sanitizer" not in self.said(), self.said()
        return status


@pytest.fixture
def serve(tmp_path):
    """serve(*arguments): starts a server, which is ended with the test."""
    servers = []

    def start(*arguments, wait=True):
        folder = tmp_path / f"server{len(servers)}"
        folder.mkdir()
        servers.append(Server(folder, *arguments))
        return servers[-1].wait() if wait else servers[-1]

    yield start
    for server in servers:
        server.stop()


@pytest.fixture(scope="module")
def shop(made, tmp_path_factory):
    """One server for the tests that change nothing in it: a made network and identities of every type."""
    folder = tmp_path_factory.mktemp("shop")
    repository = folder / "models"
    shutil.copytree(made[0], repository / "tiny")
    for dtype in (*DTYPES, "BF16", "STRING"):
        put_identity(repository, f"identity_{dtype.lower()}", dtype, dims="-1")
    put_identity(repository, "whole", dims="-1", batch=0)
    put_identity(repository, "slow", engine="emulated:base=300ms")
    put_identity(repository, "timed", engine="emulated:base=50ms")
    put_identity(repository, "waiting", engine="emulated:base=20ms", more="""dynamic_batching {
      max_queue_delay_microseconds: 1000 priority_levels: 2 default_priority_level: 2
      default_queue_policy { max_queue_size: 4 default_timeout_microseconds: 5000000 } }""")
    server = Server(folder, "--model-repository", repository, "--allow-client-shm")
    yield server.wait()
    assert server.stop() == 0


def x(values, shape=None, datatype="FP32", **parameters):
    tensor = {"name": "x", "datatype": datatype, "shape": shape or [1, len(values)], "data": values}
    return [tensor | ({"parameters": parameters} if parameters else {})]


def binary(model, server, inputs, outputs=(), request=None):
    """inputs: [(name, datatype, array or bytes, shape)]; gives (head, {name: bytes})."""
    tail, described = b"", []
    for name, datatype, data, shape in inputs:
        data = data if isinstance(data, bytes) else np.ascontiguousarray(data).tobytes()
        described.append({"name": name, "datatype": datatype, "shape": list(shape), "parameters": {"binary_data_size": len(data)}})
        tail += data
    head = {"inputs": described, "parameters": {"binary_data_output": True}} | (request or {})
    if outputs:
        head["outputs"] = list(outputs)
    text = json.dumps(head).encode()
    status, headers, body = server.call("POST", f"/v2/models/{model}/infer", text + tail, {
        "Inference-Header-Content-Length": str(len(text)), "Content-Type": "application/octet-stream"})
    assert status == 200, body
    length = int(headers["Inference-Header-Content-Length"])
    answer, rest = json.loads(body[:length]), body[length:]
    data = {}
    for output in answer["outputs"]:
        size = output["parameters"]["binary_data_size"]
        data[output["name"]], rest = rest[:size], rest[size:]
    assert rest == b""
    return answer, data


def bytes_tensor(*elements):
    return b"".join(struct.pack("<I", len(element)) + element for element in elements)


# What it tells of itself

def test_it_is_live_ready_and_says_what_it_serves(shop):
    assert shop.json("GET", "/v2/health/live") == {"live": True}
    assert shop.json("GET", "/v2/health/ready") == {"ready": True}
    assert shop.json("GET", "/v2/models/tiny/versions/1/ready") == {"name": "tiny", "ready": True}
    server = shop.json("GET", "/v2")
    assert server["name"] == "weir" and "system_shared_memory" in server["extensions"]
    assert "weir_durations" in server["extensions"]
    assert "model_repository" not in server["extensions"]  # not by request here
    tiny = shop.json("GET", "/v2/models/tiny")
    assert tiny["versions"] == ["1"] and tiny["platform"] == "onnxruntime_onnx"
    assert tiny["inputs"] == [{"name": "input", "datatype": "FP32", "shape": [-1, 3, 64, 64]}]


def test_the_configuration_tells_what_a_client_needs(shop):
    config = shop.json("GET", "/v2/models/tiny/config")
    assert config["max_batch_size"] == 128
    assert config["input"][0]["dims"] == [3, 64, 64] and config["input"][0]["data_type"] == "TYPE_FP32"
    assert "short_side" in config["parameters"]["recipe"]["string_value"]
    assert config["output"][0]["label_filename"] == "labels.txt"
    waiting = shop.json("GET", "/v2/models/waiting/config")["dynamic_batching"]
    assert waiting["max_queue_delay_microseconds"] == 1000
    assert shop.json("GET", "/v2/models/tiny.pixels/config")["input"][0]["dims"] == [64, 64, 3]


def test_the_index_has_every_name_that_can_be_called(shop):
    index = shop.json("POST", "/v2/repository/index", {"ready": True})
    names = {entry["name"] for entry in index}
    assert {"tiny", "tiny.pixels", "tiny.image", "whole"} <= names
    assert all(entry["state"] == "READY" for entry in index)


# Inference

@pytest.mark.parametrize("datatype", DTYPES)
def test_every_datatype_comes_back_as_it_went(shop, datatype):
    for shape in ((2, 3), (1, 0)):
        array = (np.random.default_rng(1).integers(0, 100, shape) % 2 if datatype == "BOOL" else
                 np.random.default_rng(1).integers(0, 100, shape)).astype(DTYPES[datatype])
        answer, data = binary(f"identity_{datatype.lower()}", shop, [("x", datatype, array, shape)], request={"id": "seven"})
        assert data["y"] == array.tobytes()
        assert answer["id"] == "seven" and answer["outputs"][0]["shape"] == list(shape)
    if datatype not in ("FP16",):
        values = array.reshape(1, 0).tolist() if array.size == 0 else array.tolist()
        assert shop.infer(f"identity_{datatype.lower()}", x(values, [1, 0], datatype))["outputs"][0]["data"] == []


@pytest.mark.parametrize("engine", ["emulated", "onnxruntime", "openvino"])
def test_a_first_dimension_may_be_empty(serve, made, tmp_path, engine):
    folder = tmp_path / "models/m"
    if engine == "emulated":
        put_identity(tmp_path / "models", "m", dims="-1, 4", batch=0)
        name, shape = "x", [0, 4]
    else:
        (folder / "1").mkdir(parents=True)
        shutil.copy(next(pathlib.Path(made[0]).rglob("model.onnx")), folder / "1")
        (folder / "config.pbtxt").write_text(f'backend: "{engine}"\nmax_batch_size: 0\n')
        name, shape = "input", [0, 3, 64, 64]
    server = serve("--model-repository", tmp_path / "models")
    output = server.infer("m", [{"name": name, "datatype": "FP32", "shape": shape, "data": []}])["outputs"][0]
    assert output["shape"][0] == 0 and output["data"] == []


def test_bytes_and_bf16_come_back_as_they_went(shop):
    data = bytes_tensor(b"", b"abc", "größer".encode(), bytes(range(256)))
    assert binary("identity_string", shop, [("x", "BYTES", data, (1, 4))])[1]["y"] == data
    assert shop.infer("identity_string", x(["a", "bc"], [1, 2], "BYTES"))["outputs"][0]["data"] == ["a", "bc"]
    half = np.array([0x3F80, 0x4000], np.uint16)
    assert binary("identity_bf16", shop, [("x", "BF16", half, (1, 2))])[1]["y"] == half.tobytes()


def test_versions_of_a_path_and_a_raw_request(shop):
    array = np.arange(16, dtype=np.float32)
    status, headers, body = shop.call("POST", "/v2/models/identity_fp32/versions/1/infer", array.tobytes(), {
        "Inference-Header-Content-Length": "0", "Content-Type": "application/octet-stream"})
    assert status == 200 and body[int(headers["Inference-Header-Content-Length"]):] == array.tobytes()


@pytest.mark.parametrize("inputs,words", [
    (x([1.0] * 3, [1, 3]), "shape [1,3]"),
    (x([1] * 16, datatype="INT32"), "INT32"),
    (x([1.0] * 16) + x([1.0] * 16), "x"),
    ([{"name": "z", "datatype": "FP32", "shape": [1, 16], "data": [0] * 16}], "z"),
    ([], "input"),
    (x([1.0] * 160, [10, 16]), "max_batch_size"),
    (x([], [0, 16]), "batch"),
    (x([1.0] * 15, [1, 16]), "16"),
    (x([1.0] * 16, [2**63 - 1, 2**62]), ""),
    (x([1.0] * 16, [-1, 16]), "negative"),
], ids=lambda value: None if isinstance(value, list) else value or "overflow")
def test_a_request_that_does_not_fit_is_refused_in_words(shop, inputs, words):
    error = shop.infer("slow", inputs, status=400)["error"]
    assert words in error


@pytest.mark.parametrize("path,status", [
    ("nope", 404), ("identity_fp32/versions/2", 404), ("identity_fp32/versions/x", 404), ("..%2f..%2fetc", 404), ("whole.image", 404),
])
def test_what_is_not_there_is_404_and_named(shop, path, status):
    answer = shop.json("POST", f"/v2/models/{path}/infer", {"inputs": x([1.0])}, status)
    assert answer["error"]


def test_an_output_that_is_not_there_or_asked_for_twice_is_refused(shop):
    for outputs in ([{"name": "nope"}], [{"name": "y"}, {"name": "y"}]):
        shop.infer("identity_fp32", x([1.0]), 400, outputs=outputs)


def test_the_server_survives_what_is_no_request(shop):
    for body in (b"", b"{", b"[" * 100_000, b'{"inputs": 7}', b'{"inputs": [{"name": "x", "datatype": "FP32", "shape": [1e400], "data": []}]}'):
        status, _, _ = shop.call("POST", "/v2/models/identity_fp32/infer", body)
        assert status == 400
    assert shop.json("GET", "/v2/health/live") == {"live": True}


def test_classification_names_the_best_classes(shop, made):
    values = [3.0, 5.0, 5.0, float("-1")]
    answer = shop.infer("identity_fp32", x(values + values, [2, 4]), outputs=[{"name": "y", "parameters": {"classification": 3}}])
    output = answer["outputs"][0]
    assert output["datatype"] == "BYTES" and output["shape"] == [2, 3]
    assert output["data"] == ["5.000000:1", "5.000000:2", "3.000000:0"] * 2
    answer = shop.infer("whole", x(values, [4]), outputs=[{"name": "y", "parameters": {"classification": 9}}])
    assert answer["outputs"][0]["shape"] == [4]
    labels = (made[0] / "labels.txt").read_text().splitlines()
    picture = next(pathlib.Path(made[1]).rglob("*.jpg")).read_bytes()
    answer, data = binary("tiny.image", shop, [("input", "BYTES", bytes_tensor(picture), (1,))],
                          [{"name": "logits", "parameters": {"classification": 1, "binary_data": True}}])
    index, label = data["logits"][4:].decode().split(":")[1:]
    assert labels[int(index)] == label


# Pictures

def pictures_of(made, count):
    return [path.read_bytes() for path in sorted(pathlib.Path(made[1]).rglob("*.jpg"))[:count]]


def prepared(picture):
    """As the made network's recipe has it: the short side to 73 of 64 * 8 / 7, the centre 64 x 64."""
    from io import BytesIO
    from PIL import Image
    image = Image.open(BytesIO(picture)).convert("RGB")
    short = 64 * 8 // 7
    width, height = image.size
    size = (short, height * short // width) if width <= height else (width * short // height, short)
    image = image.resize(size, Image.BILINEAR)
    left, top = round((size[0] - 64) / 2), round((size[1] - 64) / 2)
    return np.asarray(image.crop((left, top, left + 64, top + 64)))


def test_pixels_pictures_and_tensors_have_the_same_answers(shop, made):
    pictures = pictures_of(made, 3)
    pixels = np.stack([prepared(picture) for picture in pictures])
    mean, std = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])
    from_image = binary("tiny.image", shop, [("input", "BYTES", bytes_tensor(*pictures), (3,))])[1]["logits"]
    from_pixels = binary("tiny.pixels", shop, [("input", "UINT8", pixels, pixels.shape)])[1]["logits"]
    assert from_image == from_pixels
    tensor = ((pixels / np.float32(255) - mean) / std).transpose(0, 3, 1, 2).astype(np.float32)
    from_tensor = binary("tiny", shop, [("input", "FP32", tensor, tensor.shape)])[1]["logits"]
    assert np.allclose(np.frombuffer(from_tensor, np.float32), np.frombuffer(from_image, np.float32), atol=1e-3)


def test_a_broken_picture_is_named_with_its_reason(shop, made):
    good = pictures_of(made, 1)[0]
    data = bytes_tensor(good, good[:500], b"no picture")
    head = {"inputs": [{"name": "input", "datatype": "BYTES", "shape": [3], "parameters": {"binary_data_size": len(data)}}]}
    text = json.dumps(head).encode()
    status, _, body = shop.call("POST", "/v2/models/tiny.image/infer", text + data, {"Inference-Header-Content-Length": str(len(text))})
    error = json.loads(body)["error"]
    assert status == 400 and "picture 1" in error and "damaged" in error


# Shared memory

class Shared:
    """A POSIX shared-memory object of this test."""

    def __init__(self, size):
        self.key = f"/weir-test-{os.getpid()}-{time.monotonic_ns()}"
        self.path = "/dev/shm" + self.key
        self.file = open(self.path, "w+b")
        self.file.truncate(size)
        self.memory = mmap.mmap(self.file.fileno(), size)

    def close(self):
        self.memory.close()
        self.file.close()
        os.unlink(self.path)


@pytest.fixture
def shared_memory(shop):
    made = []

    def make(size):
        made.append(Shared(size))
        return made[-1]

    yield make
    shop.json("POST", "/v2/systemsharedmemory/unregister")
    for memory in made:
        memory.close()


def region(name, size, offset=0):
    return {"shared_memory_region": name, "shared_memory_byte_size": size, "shared_memory_offset": offset}


def test_tensors_go_through_shared_memory(shop, shared_memory):
    memory = shared_memory(8192)
    array = np.arange(16, dtype=np.float32)
    memory.memory[64:128] = array.tobytes()
    shop.json("POST", "/v2/systemsharedmemory/region/both/register", {"key": memory.key, "offset": 0, "byte_size": 8192})
    inputs = [{"name": "x", "datatype": "FP32", "shape": [1, 16], "parameters": region("both", 64, 64)}]
    answer = shop.infer("identity_fp32", inputs, outputs=[{"name": "y", "parameters": region("both", 64, 4096)}])
    assert "data" not in answer["outputs"][0]
    assert memory.memory[4096:4160] == array.tobytes()
    status = shop.json("GET", "/v2/systemsharedmemory/status")
    assert status[0]["name"] == "both" and status[0]["byte_size"] == 8192
    shop.infer("identity_fp32", inputs, 400, outputs=[{"name": "y", "parameters": region("both", 32)}])
    shop.json("POST", "/v2/systemsharedmemory/region/both/unregister")
    assert "both" in shop.infer("identity_fp32", inputs, 404)["error"]


@pytest.mark.parametrize("key,offset,size", [
    ("/../etc/passwd", 0, 16), ("/a/b", 0, 16), ("", 0, 16), ("/", 0, 16), (None, 0, 1 << 40), (None, 1 << 63, 16),
    (None, 2**64 - 8, 16), (None, 4096, 1), (None, 0, 0),
])
def test_regions_that_are_none_are_refused(shop, shared_memory, key, offset, size):
    memory = shared_memory(4096)
    body = {"key": memory.key if key is None else key, "offset": offset, "byte_size": size}
    status, _, said = shop.call("POST", "/v2/systemsharedmemory/region/bad/register", json.dumps(body))
    assert status == 400 and memory.key.encode() not in said
    assert shop.json("GET", "/v2/systemsharedmemory/status") == []


def test_a_client_that_cuts_its_memory_off_hurts_only_itself(shop, shared_memory):
    memory = shared_memory(1 << 20)
    shop.json("POST", "/v2/systemsharedmemory/region/cut/register", {"key": memory.key, "offset": 0, "byte_size": 1 << 20})
    memory.file.truncate(0)
    count = (1 << 20) // 4
    inputs = [{"name": "x", "datatype": "FP32", "shape": [1, count], "parameters": region("cut", 1 << 20)}]
    assert "cut off" in shop.infer("identity_fp32", inputs, 400)["error"]
    shop.infer("identity_fp32", x([1.0]), 400, outputs=[{"name": "y", "parameters": region("cut", 1 << 20)}])
    assert shop.json("GET", "/v2/health/live") == {"live": True}


def test_shared_memory_is_off_unless_allowed(serve, tmp_path):
    put_identity(tmp_path / "models", "m")
    server = serve("--model-repository", tmp_path / "models")
    assert "system_shared_memory" not in server.json("GET", "/v2")["extensions"]
    assert "--allow-client-shm" in server.json("GET", "/v2/systemsharedmemory/status", status=501)["error"]
    inputs = [{"name": "x", "datatype": "FP32", "shape": [1, 16], "parameters": region("r", 64)}]
    assert "--allow-client-shm" in server.infer("m", inputs, 501)["error"]


# Waiting

def test_a_full_queue_refuses_at_once_and_says_so(shop):
    with concurrent.futures.ThreadPoolExecutor(40) as pool:
        answers = list(pool.map(lambda _: shop.call("POST", "/v2/models/waiting/infer", json.dumps({"inputs": x([1.0] * 128, [8, 16])})), range(40)))
    refused = [answer for answer in answers if answer[0] != 200]
    assert refused and len(refused) < 40
    for status, headers, body in refused:
        assert status == 503 and headers["Retry-After"] and b"waiting" in body
    assert shop.metrics()['weir_requests_refused_total{model="waiting",reason="queue_full",version="1"}'] == len(refused)


@pytest.mark.timing
def test_a_deadline_that_cannot_be_met_is_refused_before_it_costs_anything(shop):
    for _ in range(10):  # it learns how long a call takes
        shop.infer("timed", x([1.0] * 16))
    took = []
    for _ in range(5):  # of which a busy machine leaves one alone
        begin = time.monotonic()
        assert "timed" in shop.infer("timed", x([1.0] * 16), 503, parameters={"timeout": 5000})["error"]
        took.append(time.monotonic() - begin)
    assert min(took) < 0.03
    shop.infer("timed", x([1.0] * 16), parameters={"timeout": 5_000_000})


def test_priorities_beyond_the_models_are_refused(shop):
    shop.infer("waiting", x([1.0] * 16), parameters={"priority": 1})
    assert "priorities are 1 to 2" in shop.infer("waiting", x([1.0] * 16), 400, parameters={"priority": 3})["error"]


def test_calls_are_put_together_into_batches(shop):
    before = shop.json("GET", "/v2/models/waiting/stats")["model_stats"][0]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: shop.infer("waiting", x([1.0] * 16)), range(40)))
    after = shop.json("GET", "/v2/models/waiting/stats")["model_stats"][0]
    rows = after["inference_count"] - before["inference_count"]
    batches = after["execution_count"] - before["execution_count"]
    assert rows == 40 and batches < 35


def test_statistics_and_metrics_agree(shop):
    for _ in range(3):
        shop.infer("whole", x([1.0, 2.0], [2]))
    statistics = shop.json("GET", "/v2/models/whole/stats")["model_stats"][0]
    metrics = shop.metrics()
    label = '{model="whole",version="1"}'
    assert statistics["inference_stats"]["success"]["count"] == metrics[f"nv_inference_request_success{label}"]
    assert statistics["execution_count"] == metrics[f"nv_inference_exec_count{label}"] == statistics["inference_count"]
    assert abs(statistics["last_inference"] / 1e3 - time.time()) < 60
    assert metrics['weir_phase_seconds_count{batch="1",model="whole",phase="infer",protocol="http",version="1"}'] >= 3
    assert metrics[f"weir_model_ready{label}"] == 1


# The repository

def test_versions_are_served_side_by_side_and_replaced_whole(serve, tmp_path):
    folder = put_identity(tmp_path / "models", "m", more="version_policy { all { } }")
    (folder / "3").mkdir()
    server = serve("--model-repository", tmp_path / "models", "--model-control-mode", "explicit", "--load-model", "*")
    assert server.json("GET", "/v2/models/m")["versions"] == ["1", "3"]
    assert server.infer("m", x([1.0] * 16))["model_version"] == "3"
    assert server.infer("m/versions/1", x([1.0] * 16))["model_version"] == "1"
    put_identity(tmp_path / "models", "m", more="version_policy { latest { num_versions: 1 } }")
    server.json("POST", "/v2/repository/models/m/load")
    assert server.json("GET", "/v2/models/m")["versions"] == ["3"]
    server.infer("m/versions/1", x([1.0] * 16), 404)


def test_a_failed_load_keeps_the_old_and_the_index_says_why(serve, tmp_path):
    folder = put_identity(tmp_path / "models", "m")
    server = serve("--model-repository", tmp_path / "models", "--model-control-mode", "explicit", "--load-model", "m")
    (folder / "config.pbtxt").write_text("backend: \"emulated\"\nsequence_batching { }\n")
    assert "line 2: sequence_batching is not supported" in server.json("POST", "/v2/repository/models/m/load", status=501)["error"]
    server.infer("m", x([1.0] * 16))
    put_identity(tmp_path / "models", "m", engine="emulated:nonsense")
    server.json("POST", "/v2/repository/models/m/load", status=400)
    server.infer("m", x([1.0] * 16))
    entry = server.json("POST", "/v2/repository/index")[0]
    assert entry["state"] == "READY" and "nonsense" in entry["reason"]
    server.json("GET", "/v2/health/ready")
    put_identity(tmp_path / "models", "m")
    server.json("POST", "/v2/repository/models/m/load")
    assert not server.json("POST", "/v2/repository/index")[0].get("reason")


def test_models_come_and_go_by_request(serve, tmp_path):
    put_identity(tmp_path / "models", "a")
    put_identity(tmp_path / "models", "b", engine="emulated:base=1s")
    server = serve("--model-repository", tmp_path / "models", "--model-control-mode", "explicit")
    server.json("GET", "/v2/health/ready")
    assert {entry["name"] for entry in server.json("POST", "/v2/repository/index")} == {"a", "b"}
    server.infer("b", x([1.0] * 16), 404)
    server.json("POST", "/v2/repository/models/b/load")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        under_way = pool.submit(server.infer, "b", x([1.0] * 16))
        time.sleep(0.3)
        begin = time.monotonic()
        server.json("POST", "/v2/repository/models/b/unload")  # answers when the call has been answered
        assert time.monotonic() - begin > 0.3 and under_way.result()["outputs"]
    assert "unloaded" in server.infer("b", x([1.0] * 16), 404)["error"]
    for name in ("nope", "..", "%2e%2e", "a%2f..%2fb", ""):
        status, _, _ = server.call("POST", f"/v2/repository/models/{name}/load")
        assert status in (400, 404, 405), name
    config = {"name": "a", "backend": "emulated", "max_batch_size": 2, "input": [{"name": "x", "data_type": "TYPE_FP32", "dims": [16]}],
              "output": [{"name": "y", "data_type": "TYPE_FP32", "dims": [16]}],
              "parameters": {"engine": {"string_value": "emulated:base=0ms"}}}
    server.json("POST", "/v2/repository/models/a/load", {"parameters": {"config": json.dumps(config)}})
    told = server.json("GET", "/v2/models/a/config")
    assert told["max_batch_size"] == 2
    server.json("POST", "/v2/repository/models/a/load", {"parameters": {"config": json.dumps(told)}})  # what it told, it takes


def test_polling_follows_the_files(serve, tmp_path):
    put_identity(tmp_path / "models", "first")
    server = serve("--model-repository", tmp_path / "models", "--model-control-mode", "poll", "--repository-poll-secs", "0.1")

    def wait_until(names):
        until = time.monotonic() + 20
        while (ready := {entry["name"] for entry in server.json("POST", "/v2/repository/index") if entry["state"] == "READY"}) != names:
            assert time.monotonic() < until, f"{ready} instead of {names}"
            time.sleep(0.05)

    wait_until({"first"})
    put_identity(tmp_path / "models", "late")
    wait_until({"first", "late"})
    shutil.rmtree(tmp_path / "models/first")
    wait_until({"late"})
    (put_identity(tmp_path / "models", "late", more="version_policy { all { } }") / "2").mkdir()
    until = time.monotonic() + 20
    while server.json("GET", "/v2/models/late")["versions"] != ["1", "2"]:
        assert time.monotonic() < until
        time.sleep(0.05)
    assert "explicit" in server.json("POST", "/v2/repository/models/late/unload", status=501)["error"]


def test_without_explicit_control_nothing_is_loaded_by_request(shop):
    assert "explicit" in shop.json("POST", "/v2/repository/models/tiny/load", status=501)["error"]


def test_a_model_that_cannot_be_loaded_keeps_the_server_unready(serve, tmp_path):
    put_identity(tmp_path / "models", "good")
    (tmp_path / "models/bad/1").mkdir(parents=True)
    (tmp_path / "models/bad/1/model.onnx").write_bytes(b"no model")
    server = serve("--model-repository", tmp_path / "models")
    assert not server.facts["ready"]
    assert "bad" in server.json("GET", "/v2/health/ready", status=503)["error"]
    server.json("GET", "/v2/health/live")
    server.infer("good", x([1.0] * 16))
    lenient = serve("--model-repository", tmp_path / "models", "--strict-readiness", "false")
    lenient.json("GET", "/v2/health/ready")


def test_requests_are_served_while_a_model_loads_and_reloads_lose_none(serve, tmp_path):
    put_identity(tmp_path / "models", "m", engine="emulated:base=2ms")
    server = serve("--model-repository", tmp_path / "models", "--model-control-mode", "explicit", "--load-model", "m")
    stop = time.monotonic() + 3

    def call(_):
        count = 0
        while time.monotonic() < stop:
            server.infer("m", x([1.0] * 16))
            count += 1
        return count

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        counts = pool.map(call, range(5))
        while time.monotonic() < stop:
            server.json("POST", "/v2/repository/models/m/load")
        assert all(count > 0 for count in counts)


# Start and end

def test_the_line_it_prints_works(serve, tmp_path):
    put_identity(tmp_path / "models", "m")
    server = serve("--model-repository", tmp_path / "models")
    lines = []
    while not lines or lines[-1] != "ready":
        lines.append(server.process.stdout.readline().decode().strip())
    curl = next(line for line in lines if line.startswith("curl"))
    if shutil.which("curl") is None:
        pytest.skip("curl is not here")
    answer = subprocess.run(["sh", "-c", curl], capture_output=True, timeout=30)
    assert json.loads(answer.stdout)["outputs"][0]["data"] == [0] * 16


def test_told_to_stop_it_finishes_what_is_under_way(serve, tmp_path):
    put_identity(tmp_path / "models", "m", engine="emulated:base=50ms")
    server = serve("--model-repository", tmp_path / "models", "--drain-delay-secs", "0.5")
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        calls = [pool.submit(server.infer, "m", x([1.0] * 16)) for _ in range(8)]
        time.sleep(0.1)
        server.tell()
        time.sleep(0.15)
        assert "stopping" in server.json("GET", "/v2/health/ready", status=503)["error"]
        server.json("GET", "/v2/health/live")
        server.infer("m", x([1.0] * 16))  # until the delay is over
        for call in calls:
            assert call.result()["outputs"]
    assert server.stop() == 0


@pytest.mark.timing
def test_idle_connections_do_not_hold_it_up(serve, tmp_path):
    put_identity(tmp_path / "models", "m")
    server = serve("--model-repository", tmp_path / "models")
    host, port = server.http.split(":")
    with socket.create_connection((host, int(port))):
        begin = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - begin < 10


@pytest.mark.parametrize("arguments,words", [
    ((), "--model-repository"), (("--model-repository", "/nowhere-at-all"), "nowhere-at-all"),
    (("--model-repository", "s3://bucket/models", "--model-control-mode", "poll"), "polled"), (("--model-repository", ".", "--load-model", "a"), "explicit"),
])
def test_wrong_usage_of_serve_exits_2_and_says_why(weir, arguments, words):
    assert words in weir.run("serve", *arguments, status=2).stderr.decode()


def test_a_port_in_use_is_an_error_that_names_it(weir, serve, tmp_path):
    put_identity(tmp_path / "models", "m")
    server = serve("--model-repository", tmp_path / "models")
    port = server.facts["http"]["port"]
    done = weir.run("serve", "--model-repository", tmp_path / "models", "--http-port", port, "--grpc-port", 0, "--metrics-port", 0, status=1)
    assert str(port) in done.stderr.decode()


def test_a_folder_or_file_of_one_model_is_served_too(serve, made):
    server = serve("--model-repository", made[0])
    assert server.json("GET", "/v2/models/tiny")["versions"] == ["1"]
    file = serve("--model-repository", made[0] / "1/model.onnx")
    assert file.json("GET", "/v2/models/model/config")["max_batch_size"] == 64


DURATIONS = [f"weir_{part}_ns" for part in ("receive", "queue", "compute_input", "compute_infer", "compute_output", "rest")]


def test_where_the_time_of_a_request_went_is_told_to_who_asks(shop):
    begin = time.monotonic_ns()
    told = shop.infer("identity_fp32", x([1.0, 2.0]), parameters={"weir_durations": True})["parameters"]
    assert sorted(told) == sorted(DURATIONS)
    assert 0 < sum(told.values()) < time.monotonic_ns() - begin
    answer, data = binary("identity_fp32", shop, [("x", "FP32", np.ones(2, np.float32), [1, 2])],
                          request={"parameters": {"weir_durations": True, "binary_data_output": True}})
    assert sorted(answer["parameters"]) == sorted(DURATIONS) and data["y"] == np.ones(2, np.float32).tobytes()
    for wish in ({}, {"parameters": {"weir_durations": False}}):
        assert "parameters" not in shop.infer("identity_fp32", x([1.0, 2.0]), **wish)
    assert "weir_durations" in shop.infer("identity_fp32", x([1.0, 2.0]), 400, parameters={"weir_durations": 1})["error"]


# The public client

def tritonclient(kind):
    return pytest.importorskip(f"tritonclient.{kind}", reason="tritonclient is not installed")


@pytest.mark.parametrize("kind", ["http", "grpc"])
def test_the_public_python_client_works(shop, made, kind):
    client_of = tritonclient(kind)
    url = urllib.parse.urlparse(shop.facts[kind]["url"]).netloc
    client = client_of.InferenceServerClient(url)
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("tiny")
    client.get_server_metadata(), client.get_model_metadata("tiny"), client.get_inference_statistics("tiny")
    config = client.get_model_config("tiny")
    assert (config if kind == "http" else config.config).get("max_batch_size") == 128 if kind == "http" else config.config.max_batch_size == 128
    client.get_model_repository_index()
    for datatype, dtype in DTYPES.items():
        array = np.arange(6).reshape(2, 3).astype(dtype)
        tensor = client_of.InferInput("x", array.shape, datatype)
        tensor.set_data_from_numpy(array)
        result = client.infer(f"identity_{datatype.lower()}", [tensor], request_id="me")
        assert np.array_equal(result.as_numpy("y"), array)
    words = np.array([[b"one", "zwölf".encode()]], dtype=object)
    tensor = client_of.InferInput("x", words.shape, "BYTES")
    tensor.set_data_from_numpy(words)
    assert (client.infer("identity_string", [tensor]).as_numpy("y") == words).all()
    wish = client_of.InferRequestedOutput("y", class_count=2)
    array = np.array([[1, 3, 2]], np.float32)
    tensor = client_of.InferInput("x", array.shape, "FP32")
    tensor.set_data_from_numpy(array)
    result = client.infer("identity_fp32", [tensor], outputs=[wish])
    assert result.as_numpy("y").tolist() == [[b"3.000000:1", b"2.000000:2"]]
    with pytest.raises(Exception, match="nope"):
        client.infer("nope", [tensor])


@pytest.mark.parametrize("kind", ["http", "grpc"])
def test_the_public_client_shares_memory(shop, shared_memory, kind):
    client_of = tritonclient(kind)
    client = client_of.InferenceServerClient(urllib.parse.urlparse(shop.facts[kind]["url"]).netloc)
    memory, array = shared_memory(4096), np.arange(16, dtype=np.float32)
    memory.memory[:64] = array.tobytes()
    client.register_system_shared_memory("r", memory.key, 4096)
    tensor, wish = client_of.InferInput("x", [1, 16], "FP32"), client_of.InferRequestedOutput("y")
    tensor.set_shared_memory("r", 64)
    wish.set_shared_memory("r", 64, offset=1024)
    client.infer("identity_fp32", [tensor], outputs=[wish])
    assert memory.memory[1024:1088] == array.tobytes()
    client.unregister_system_shared_memory("r")


def test_both_protocols_give_the_same_bytes(shop, made):
    answers = []
    pixels = np.stack([prepared(picture) for picture in pictures_of(made, 2)])
    for kind in ("http", "grpc"):
        client_of = tritonclient(kind)
        client = client_of.InferenceServerClient(urllib.parse.urlparse(shop.facts[kind]["url"]).netloc)
        tensor = client_of.InferInput("input", pixels.shape, "UINT8")
        tensor.set_data_from_numpy(pixels)
        answers.append(client.infer("tiny.pixels", [tensor]).as_numpy("logits").tobytes())
    assert answers[0] == answers[1]
