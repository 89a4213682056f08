"""weir advise over another server whose configuration the study sets, and with predicted accelerators."""
import json
import socket
import subprocess
import time
import urllib.request

import pytest

import test_predict
from conftest import PROGRAM
from test_advise import disturbed
from test_schemas import check

# A batch takes 10 ms whatever its size: four requests in one batch are four times as fast by construction.
CONFIG = """backend: "emulated"
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ 16 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 4 ] } ]
parameters { key: "engine" value: { string_value: "emulated:base=10ms" } }
# The study sets the next one.
dynamic_batching { max_queue_delay_microseconds: 7 }
"""
SERVER = """
study: other
server:
  name: other
  command: [{program}, serve, --model-repository, "{{model_repository}}", --address, "{{address}}", --http-port, "{{http_port}}", --grpc-port, "{{grpc_port}}", --metrics-port, "{{metrics_port}}"]
  ready: "http://{{address}}:{{http_port}}/v2/health/ready"
  model: slow
  repository: models
factors: {{server_batching: ["off", {{max_batch: 4, delay_us: 5000}}]}}
fixed: {{architecture: microservice, load: closed, in_flight: 4, batch: 1, mode: async}}
repeats: 4
trial: {{images: 120}}
targets: {{price_per_hour: {{microservice: 1.0}}}}
"""


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.fixture(scope="module")
def served(weir, tmp_path_factory):
    folder = tmp_path_factory.mktemp("other")
    (folder / "models/slow").mkdir(parents=True)
    (folder / "models/slow/config.pbtxt").write_text(CONFIG)
    (folder / "other.yaml").write_text(SERVER.format(program=PROGRAM))
    weir.run("study", folder / "other.yaml", "-o", folder / "out", "--no-replay", status=None)
    return folder


@pytest.mark.long
def test_the_study_sets_another_servers_configuration_and_the_advice_has_it(weir, served, tmp_path):
    advice = weir.json("advise", served / "out", "-o", tmp_path / "advice", status=None)
    check(advice, "advise")
    rates = {one["factors"]["server_batching"] == "off": one["expected"]["throughput_images_per_s"]["value"] for one in advice["candidates"]}
    assert rates[False] > 2 * rates[True], rates
    assert (served / "models/slow/config.pbtxt").read_text() == CONFIG
    if why := disturbed(advice):
        pytest.skip(why)
    config = (tmp_path / "advice/config.pbtxt").read_text()
    assert "max_batch_size: 4\n" in config and "delay_microseconds: 5000" in config and ": 7" not in config and "# The study sets the next one." in config
    readme = (tmp_path / "advice/README.md").read_text()
    assert "| images/s | " in readme and "weir load http://127.0.0.1:8000/slow" in readme
    assert {"config.pbtxt", "server.sh", "other.service", "other.slurm", "README.md"} == set(advice["files"])
    # Served with the file, a fresh load meets the expected rate.
    (tmp_path / "repository/slow").mkdir(parents=True)
    (tmp_path / "repository/slow/config.pbtxt").write_text(config)
    port = free_port()
    with subprocess.Popen([PROGRAM, "serve", "--model-repository", tmp_path / "repository", "--http-port", str(port), "--grpc-port", "0", "--metrics-port", "0"],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            end = time.monotonic() + 30
            while time.monotonic() < end:
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/health/ready", timeout=1)
                    break
                except OSError:
                    time.sleep(0.05)
            load = weir.json("load", f"http://127.0.0.1:{port}/slow", "--concurrency-range", 4, "--request-count", 120, status=None)
        finally:
            server.terminate()
    assert load["levels"][0]["throughput_per_s"] > 2 * rates[True]


STUDY = """
study: feeding
model: {model}
data: {data}
factors: {{batch: [8]}}
fixed: {{architecture: in-process, engine: onnxruntime, mode: async, in_flight: 4, data_path: memory}}
repeats: 4
trial: {{images: 300}}
seed: 2
"""


# A trial lasts as long as the predicted accelerator takes for its pictures: of the network "large" that would be 20 s.
def test_a_predicted_accelerator_stands_before_the_real_data_path(weir, made, tmp_path):
    test_predict.write_set(tmp_path)
    weir.run("fit", tmp_path / "made.yaml", "--data-dir", tmp_path, "-o", tmp_path / "p.json", "--estimator", "physical")
    (tmp_path / "feeding.yaml").write_text(STUDY.format(model=made[0], data=made[1]))
    asked = ["advise", tmp_path / "feeding.yaml", "--hardware", "alpha-10,novum", "--network", "small", "--set", "precision=fp32"]
    advice = weir.json(*asked, "--predictor", tmp_path / "p.json", "--price", "alpha-10=1", "--price", "novum=20",
                       "--objective", "cost", "-o", tmp_path / "advice", status=None)
    check(advice, "advise")
    slow, fast = advice["hardware"]
    assert (slow["name"], fast["name"]) == ("alpha-10", "novum-80GB")
    assert fast["outside"], "it was never measured"
    for one in advice["hardware"]:
        rate, alone = one["throughput_images_per_s"], one["accelerator_images_per_s"]
        assert rate["low"] < rate["value"] < rate["high"] and alone["low"] < alone["value"] < alone["high"]
        assert one["fed_share"]["value"] == pytest.approx(rate["value"] / alone["value"])
        # The interval is at least as wide as the prediction's where the accelerator holds back.
        if one["fed_share"]["value"] > 0.97:
            assert rate["high"] / rate["low"] > 0.9 * alone["high"] / alone["low"]
    assert slow["price_per_hour"] == 1 and fast["price_per_hour"] == 20
    if why := disturbed(advice):
        pytest.skip(why)
    # tensors that lie in memory feed a slow accelerator, and the slow one is cheap
    assert slow["feeding"] in ("fed", "undecided")
    flags = (tmp_path / "advice/run.flags").read_text()
    assert "--engine" not in flags and "--batch" in flags


@pytest.mark.parametrize("flags, words", [
    (["--hardware", "a"], "--hardware wants --predictor"),
    (["--predictor", "p.json"], "say nothing without --hardware"),
    (["--hardware", ",", "--predictor", "p.json"], "names no accelerator"),
])
def test_flags_of_hardware_that_say_nothing_alone_are_refused(tmp_path, flags, words):
    done = subprocess.run([PROGRAM, "advise", str(tmp_path / "x.yaml"), *flags], capture_output=True, text=True)
    assert done.returncode == 2 and words in done.stderr, done.stderr
