"""GPUs: each refusal on a machine without one, and the whole path with a fake driver and a fake CUDA provider."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest
from conftest import PROGRAM, ROOT, SANITIZED

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
    assert result["streams"] == 4
    top = {name: {file: rows[0]["class"] for file, rows in answers.items()} for name, answers in found.items()}
    assert top["cuda"] == top["cpu"] == top["pixels"] == top["two"]


@needs_fakes
def test_reduced_precision_says_how_far_it_is_from_f32(weir, made):
    result = weir.json("run", *made, "--device", "cuda:0", "--precision", "f16", env=fake())
    assert re.fullmatch(r"f16 \(within \S+ of f32 on random input\)", result["precision"])
    done = weir.run("run", *made, "--device", "cuda:0", "--precision", "int8", status=2, env=fake())
    assert "as float" in done.stderr.decode()


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


def test_the_lists_of_packages_are_whole():
    for major in (12, 13):
        lines = [line for line in (ROOT / f"tools/cuda{major}.txt").read_text().splitlines() if not line.startswith("#")]
        assert len(lines) == 7
        for line in lines:
            assert re.fullmatch(r"[a-z0-9-]+==[0-9.]+ --hash=sha256:[0-9a-f]{64}", line), line
