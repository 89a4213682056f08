"""GPUs: each refusal on a machine without one, and the whole path with a fake driver and a fake CUDA provider."""
import base64
import json
import math
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest
from conftest import PROGRAM, ROOT, SANITIZED
from onnx_files import field
from test_serve_grpc_limits import Http2

FAKES = pathlib.Path(PROGRAM).parent / "fakes"
ENGINES = pathlib.Path(os.environ.get("WEIR_ENGINES", ROOT / ".deps/onnxruntime/onnxruntime/capi"))
has_gpu = shutil.which("nvidia-smi") is not None and subprocess.run(["nvidia-smi"], capture_output=True, check=False).returncode == 0


def without_gpu(**more):
    """The environment of a machine without NVIDIA's driver: whatever this one has is not found."""
    return {**os.environ, "WEIR_CUDA": "/nowhere", **more}


def fake(cuda="", provider=""):
    """The environment in which the loader finds the fake driver, and the engine the fake provider."""
    return {**os.environ, "LD_LIBRARY_PATH": str(FAKES), "WEIR_CUDA": str(FAKES / "cuda"), "WEIR_FAKE_CUDA": cuda, "WEIR_FAKE_ORT_CUDA": provider,
            "WEIR_FAKE_ORT_BASE": str(ENGINES / "libonnxruntime.so.1")}


needs_fakes = pytest.mark.skipif(not (FAKES / "libcuda.so.1").exists() or SANITIZED, reason="the fakes are built beside the program's tests")


@pytest.mark.skipif(has_gpu, reason="this machine has a GPU")
@pytest.mark.parametrize("verb", ["run", "load"])
def test_without_a_driver_every_failure_is_quick_and_says_its_remedy(weir, made, verb):
    model, pictures = made
    data = [pictures] if verb == "run" else []
    begin = time.monotonic()
    done = weir.run(verb, model, *data, "--device", "cuda:0", status=2, env=without_gpu())
    assert b"no NVIDIA driver" in done.stderr and b"--device nvidia.com/gpu=all" in done.stderr
    assert time.monotonic() - begin < (20 if SANITIZED else 5)  # one second on a quiet machine


@pytest.mark.parametrize("flags, words", [
    (["--device", "gpu:0"], "use --engine openvino"),
    (["--device", "npu"], "use --engine openvino"),
    (["--device", "tpu"], "is no device"),
    (["--device", "cuda:0", "--engine", "openvino"], "has no CUDA"),
    (["--device", "cuda:0", "--engine", "emulated:base=0ms"], "leave the device out"),
    (["--device", "gpu:7", "--engine", "openvino"], "openvino finds CPU"),
    (["--preprocess", "gpu"], "--device cuda:0")])
def test_a_device_that_the_engine_does_not_have_is_refused(weir, made, flags, words):
    done = weir.run("run", *made, *flags, status=2)
    assert words in done.stderr.decode()


def test_the_device_is_a_servers_to_say(weir, made):
    done = weir.run("run", "http://127.0.0.1:1/m", made[1], "--device", "cuda:0", status=2)
    assert "--device is the server's to say" in done.stderr.decode()


@needs_fakes
@pytest.mark.parametrize("cuda, provider, words", [
    ("version=12040", "", "./dev setup --cuda 12"),
    ("major=7,minor=0", "", "has compute capability 7.0"),
    ("count=0", "", "CUDA_VISIBLE_DEVICES"),
    ("init=35", "", "restart the machine"),
    ("init=100", "", "nvidia-smi"),
    ("memory_mb=1,others_mb=1", "", "MiB of memory left"),
    ("", "left_over=Conv", "has no kernels for")])
def test_each_fault_of_a_gpu_names_its_remedy_and_computes_nothing(weir, made, tmp_path, cuda, provider, words):
    answers = tmp_path / "answers.csv"
    done = weir.run("run", *made, "--device", "cuda:0", "--answers", answers, status=2, env=fake(cuda, provider))
    assert words in done.stderr.decode()
    assert not answers.exists()


@needs_fakes
def test_answers_on_the_device_are_those_of_the_cpu(weir, made, tmp_path, answers_of):
    found = {}
    for name, flags in {"cpu": [], "cuda": ["--device", "cuda:0"], "pixels": ["--device", "cuda:0", "--preprocess", "gpu"],
                        "two": ["--device", "cuda:0,1", "--streams", 2]}.items():
        result = weir.json("run", *made, *flags, "--batch", 8, "--answers", tmp_path / name, env=fake("count=2"))
        found[name] = answers_of(tmp_path / name)
        if name != "cpu":
            assert result["threads"] == 0
            assert result["resources"]["gpu_event_busy_percent"]["mean"] > 0
            stages = result["stages_ms"]
            assert stages["device"]["host_to_device"] > 0 and stages["device"]["computation"] >= 0 and stages["device"]["device_to_host"] > 0
        else:
            assert "device" not in result["stages_ms"]
    assert result["streams"] == 4
    top = {name: {file: rows[0]["class"] for file, rows in answers.items()} for name, answers in found.items()}
    assert top["cuda"] == top["cpu"] == top["pixels"] == top["two"]


@needs_fakes
def test_reduced_precision_says_how_far_it_is_from_f32(weir, made):
    result = weir.json("run", *made, "--device", "cuda:0", "--precision", "f16", env=fake())
    assert re.fullmatch(r"f16 \(within \S+ of f32 on random input\)", result["precision"])
    done = weir.run("run", *made, "--device", "cuda:0", "--precision", "int8", status=2, env=fake())
    assert "as float" in done.stderr.decode()


@needs_fakes
def test_a_run_ends_when_the_device_is_lost(weir, made):
    done = weir.run("run", *made, "--device", "cuda:0", "--batch", 4, "--repeat-data", 1000, status=1, env=fake("stuck_after=40"), timeout=60)
    assert "cuda:0 is lost" in done.stderr.decode() and "the run ended after" in done.stderr.decode()


class Server:
    def __init__(self, repository, env, *flags):
        self.process = subprocess.Popen([PROGRAM, "serve", "--model-repository", repository, "--json", "-", *map(str, flags)], env=env, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        text, depth = "", 0
        for line in self.process.stdout:
            text += line
            try:
                self.said = json.loads(text)
                break
            except json.JSONDecodeError:
                continue

    def get(self, path, body=None):
        server = "metrics" if path == "/metrics" else "http"
        url = f"http://{urllib.parse.urlparse(self.said[server]['url']).netloc}{path}"
        request = urllib.request.Request(url, data=None if body is None else json.dumps(body).encode(), headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()


def copy_model(made, folder, extra):
    model = folder / "tiny"
    shutil.copytree(made[0], model)
    config = model / "config.pbtxt"
    config.write_text((config.read_text() if config.exists() else "") + extra)
    return model


@needs_fakes
def test_a_server_computes_on_two_gpus_and_ends_when_one_is_lost(weir, made, tmp_path):
    model = copy_model(made, tmp_path, "\ninstance_group { kind: KIND_GPU gpus: [0, 1] count: 2 }\n")
    server = Server(model, fake("count=2,stuck_after=400"), "--http-port", 0, "--grpc-port", 0, "--metrics-port", 0)
    try:
        status, text = server.get("/v2/models/tiny/config")
        group = json.loads(text)["instance_group"][0]
        assert status == 200 and (group["kind"], group["gpus"], group["count"]) == ("KIND_GPU", [0, 1], 2)
        shape = json.loads(server.get("/v2/models/tiny")[1])["inputs"][0]
        dims = [1 if d < 0 else d for d in shape["shape"]]
        count = 1
        for dim in dims:
            count *= dim
        body = {"inputs": [{"name": shape["name"], "datatype": "FP32", "shape": dims, "data": [0.5] * count}]}
        assert server.get("/v2/models/tiny/infer", body)[0] == 200
        assert 'weir_accelerator_busy_seconds{model="tiny"' in server.get("/metrics")[1]
        codes = [server.get("/v2/models/tiny/infer", body)[0] for _ in range(1)]
        for _ in range(2000):
            try:
                codes.append(server.get("/v2/models/tiny/infer", body)[0])
            except (urllib.error.URLError, ConnectionError):
                break
            if codes[-1] != 200:
                break
        assert codes[-1] != 200
        assert server.process.wait(timeout=60) == 1
        assert "is lost" in server.process.stderr.read()
    finally:
        if server.process.poll() is None:
            server.process.send_signal(signal.SIGTERM)
            server.process.wait(timeout=60)


@needs_fakes
def test_a_batch_without_memory_fails_and_the_model_stays(weir, made, tmp_path):
    model = copy_model(made, tmp_path, '\nparameters { key: "device" value { string_value: "cuda:0" } }\n')
    full = tmp_path / "full"
    server = Server(model, fake("", f"oom_at=4,oom_when={full}"), "--http-port", 0, "--grpc-port", 0, "--metrics-port", 0)
    try:
        shape = json.loads(server.get("/v2/models/tiny")[1])["inputs"][0]

        def infer(rows):
            dims = [rows, *shape["shape"][1:]]
            count = 1
            for dim in dims:
                count *= dim
            return server.get("/v2/models/tiny/infer", {"inputs": [{"name": shape["name"], "datatype": "FP32", "shape": dims, "data": [0.5] * count}]})
        assert infer(4)[0] == 200
        full.touch()
        code, text = infer(4)
        assert code >= 500 and "allocate memory" in text
        assert infer(3)[0] == 200
        assert server.get("/v2/models/tiny/ready")[0] == 200
    finally:
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(timeout=60) == 0


def test_cuda_shared_memory_answers_without_a_gpu(weir, made, tmp_path):
    server = Server(copy_model(made, tmp_path, ""), dict(os.environ), "--http-port", 0, "--grpc-port", 0, "--metrics-port", 0)
    try:
        assert server.get("/v2/cudasharedmemory/status")[0] == 200
        assert server.get("/v2/cudasharedmemory/unregister", {})[0] == 200
    finally:
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(timeout=60)


STUDY = """
study: gpus
model: {model}
data: {data}
design: star
base: {{architecture: in-process, mode: async, batch: 4, in_flight: 2, load: application, data_path: memory, device: "cuda:0", instances: 1, preprocess: cpu, cuda_graph: "off"}}
factors: {{device: ["cuda:0", "cuda:1"], instances: [1, 2], preprocess: [cpu, gpu], cuda_graph: ["off", "on"]}}
also: [{{load: closed, preprocess: gpu}}]
waterfall: {{batch: 4}}
repeats: 1
trial: {{images: 40}}
"""


@needs_fakes
def test_a_study_varies_what_is_of_gpus(weir, made, tmp_path):
    (tmp_path / "study.yaml").write_text(STUDY.format(model=made[0], data=made[1]))
    weir.run("study", "--no-replay", tmp_path / "study.yaml", "-o", tmp_path / "out", env=fake("count=2"), status=None)
    tries = [json.loads(line)["record"] for line in (tmp_path / "out/journal.jsonl").read_text().splitlines()[1:]]
    assert all(one["verdict"]["verdict"] in ("VALID", "SUSPECT", "INVALID") for one in tries), [one["verdict"] for one in tries]
    commands = {one["command"] for one in tries}
    for flags in ("--device cuda:0", "--device cuda:1", "--streams 2", "--preprocess gpu", "--cuda-graph"):
        assert any(flags in command for command in commands), flags
    assert any(" load " in command and "--preprocess gpu" in command for command in commands)
    steps = json.loads((tmp_path / "out/report.json").read_text())["waterfall"]["steps"]
    assert [index for index, step in enumerate(steps) if step.get("by_events")] == [0, 1, 2]
    assert steps[0]["name"] == "computation on the device" and steps[3]["name"].endswith("the host's side")
    assert "the host's side" in (tmp_path / "out/report.md").read_text()


class SharedOverHttp:
    def __init__(self, server):
        self.server = server

    def register(self, name, handle, device, size):
        body = {"raw_handle": {"b64": base64.b64encode(handle).decode()}, "device_id": device, "byte_size": size}
        code, text = self.server.get(f"/v2/cudasharedmemory/region/{name}/register", body)
        return code == 200, text

    def status(self):
        return {region["name"]: region["byte_size"] for region in json.loads(self.server.get("/v2/cudasharedmemory/status")[1])}

    def unregister(self):
        return self.server.get("/v2/cudasharedmemory/unregister", {})[0] == 200

    def infer(self, tensor, dims, output, sizes):
        body = {"inputs": [{"name": tensor, "datatype": "FP32", "shape": dims, "parameters": {"shared_memory_region": "in", "shared_memory_byte_size": sizes[0]}}],
                "outputs": [{"name": output, "parameters": {"shared_memory_region": "out", "shared_memory_byte_size": sizes[1], "shared_memory_offset": 4}}]}
        code, text = self.server.get("/v2/models/tiny/infer", body)
        assert code == 200, text
        assert "data" not in json.loads(text)["outputs"][0]


class SharedOverGrpc:
    def __init__(self, server):
        place = urllib.parse.urlparse(server.said["grpc"]["url"])
        self.connection = Http2((place.hostname, place.port))

    def call(self, method, payload=b""):
        return self.connection.call(f"/inference.GRPCInferenceService/{method}", payload)

    def register(self, name, handle, device, size):
        answer = self.call("CudaSharedMemoryRegister", field(1, name) + field(2, handle) + field(3, device) + field(4, size))
        return answer is not None, ""

    def status(self):
        answer = self.call("CudaSharedMemoryStatus") or b""
        return {name: size for name, size in (("in", 0), ("out", 0)) if name.encode() in answer}

    def unregister(self):
        return self.call("CudaSharedMemoryUnregister") is not None

    def infer(self, tensor, dims, output, sizes):
        def region(key, name, size, offset):
            text = field(1, "shared_memory_region") + field(2, field(3, name))
            length = field(1, "shared_memory_byte_size") + field(2, field(2, size))
            at = field(1, "shared_memory_offset") + field(2, field(2, offset))
            return field(key, text) + field(key, length) + field(key, at)
        given = field(1, tensor) + field(2, "FP32") + b"".join(field(3, dim) for dim in dims) + region(4, "in", sizes[0], 0)
        wanted = field(1, output) + region(2, "out", sizes[1], 4)
        assert self.call("ModelInfer", field(1, "tiny") + field(5, given) + field(6, wanted)) is not None


@needs_fakes
@pytest.mark.parametrize("protocol", [SharedOverHttp, SharedOverGrpc])
def test_memory_of_a_gpu_carries_inputs_and_outputs(weir, made, tmp_path, protocol):
    model = copy_model(made, tmp_path, '\nparameters { key: "device" value { string_value: "cuda:0" } }\n')
    server = Server(model, fake(), "--http-port", 0, "--grpc-port", 0, "--metrics-port", 0, "--allow-client-shm")
    try:
        about = json.loads(server.get("/v2/models/tiny")[1])
        assert "cuda_shared_memory" in json.loads(server.get("/v2")[1])["extensions"]
        tensor, dims = about["inputs"][0]["name"], [1, *about["inputs"][0]["shape"][1:]]
        values = [(i * 7 % 13) / 13 for i in range(math.prod(dims))]
        plain = json.loads(server.get("/v2/models/tiny/infer", {"inputs": [{"name": tensor, "datatype": "FP32", "shape": dims, "data": values}]})[1])["outputs"][0]
        sizes = 4 * len(values), 4 * len(plain["data"])
        # The fake driver's handles name files, which stand for the memory that the client's CUDA exported.
        folder = tempfile.TemporaryDirectory(prefix="weir-")  # a short path
        files = {name: pathlib.Path(folder.name, name) for name in ("in", "out")}
        files["in"].write_bytes(struct.pack(f"{len(values)}f", *values))
        files["out"].write_bytes(b"\xee" * (4 + sizes[1] + 4))
        handles = {name: f"file:{path}".encode().ljust(64, b"\0") for name, path in files.items()}
        assert all(len(handle) == 64 for handle in handles.values())
        client = protocol(server)
        assert client.register("in", handles["in"], 0, sizes[0])[0]
        assert client.register("out", handles["out"], 0, 4 + sizes[1] + 4)[0]
        assert sorted(client.status()) == ["in", "out"]
        assert not client.register("in", handles["in"], 0, sizes[0])[0], "a name is taken once"
        assert not client.register("far", handles["in"], 7, sizes[0])[0]
        assert not client.register("long", handles["in"], 0, sizes[0] + 1)[0]
        client.infer(tensor, dims, plain["name"], sizes)
        got = files["out"].read_bytes()
        assert got[:4] == got[-4:] == b"\xee" * 4
        assert list(struct.unpack(f"{len(plain['data'])}f", got[4:-4])) == pytest.approx(plain["data"], abs=1e-6)
        assert client.unregister() and client.status() == {}
    finally:
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(timeout=60)


def test_the_lists_of_packages_are_whole():
    for major in (12, 13):
        lines = [line for line in (ROOT / f"tools/cuda{major}.txt").read_text().splitlines() if not line.startswith("#")]
        assert len(lines) == 7
        for line in lines:
            assert re.fullmatch(r"[a-z0-9-]+==[0-9.]+ --hash=sha256:[0-9a-f]{64}", line), line
