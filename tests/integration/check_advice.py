"""The manifests of weir advise against Kubernetes' own schemas, and their arguments against the program's flags."""
import json
import re
import subprocess

import kubernetes_validate
import pytest
import yaml

import conftest
from check_deploy import VERSION

CONFIG = """backend: "emulated"
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ 16 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 4 ] } ]
parameters { key: "engine" value: { string_value: "emulated:base=2ms" } }
"""
OWN = """
study: own
model: slow
factors: {in_flight: [1, 2]}
fixed: {architecture: distributed, load: closed, batch: 1, engine: "emulated:base=2ms"}
repeats: 4
trial: {images: 60}
"""
OTHER = """
study: other
server:
  name: other
  command: [PROGRAM, serve, --model-repository, "{model_repository}", --address, "{address}", --http-port, "{http_port}", --grpc-port, "{grpc_port}", --metrics-port, "{metrics_port}"]
  ready: "http://{address}:{http_port}/v2/health/ready"
  model: slow
  repository: .
factors: {instances: [1, 2]}
fixed: {architecture: microservice, load: closed, in_flight: 2, batch: 1}
repeats: 4
trial: {images: 60}
"""


@pytest.fixture(params=["own", "other"])
def advice(request, tmp_path):
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow/config.pbtxt").write_text(CONFIG)
    (tmp_path / "study.yaml").write_text((OWN if request.param == "own" else OTHER).replace("PROGRAM", conftest.PROGRAM))
    command = [conftest.PROGRAM, "advise", tmp_path / "study.yaml", "-o", tmp_path / "advice", "--image", "example.org/server:1", "--json", "-"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 3:
        calm(tmp_path / "advice/search.jsonl")
        done = subprocess.run([*command, "--resume"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    return request.param, tmp_path / "advice"


def calm(journal):
    """Declares the trials of a search VALID that a busy machine disturbed: the files are what is checked here, not the figures."""
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    for line in lines[1:]:
        if line["record"]["metrics"]:
            line["record"]["verdict"] = {"verdict": "VALID", "reasons": []}
    journal.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_each_manifest_of_an_advice_is_of_its_schema(advice):
    kind, folder = advice
    documents = list(yaml.safe_load_all((folder / "kubernetes.yaml").read_text()))
    assert [one["kind"] for one in documents] == ["Deployment", "Service", "HorizontalPodAutoscaler"]
    for document in documents:
        kubernetes_validate.validate(document, VERSION, strict=True)
    deployment, service, scaler = documents
    template = deployment["spec"]["template"]
    assert deployment["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    assert service["spec"]["selector"].items() <= template["metadata"]["labels"].items()
    assert scaler["spec"]["scaleTargetRef"]["name"] == deployment["metadata"]["name"]
    [container] = template["spec"]["containers"]
    assert {port["targetPort"] for port in service["spec"]["ports"]} <= {port["name"] for port in container["ports"]}
    assert container["resources"]["limits"]["memory"] and container["resources"]["requests"]["cpu"]
    # The predictor of KServe is a pod.
    kserve = yaml.safe_load((folder / "inference-service.yaml").read_text())
    assert (kserve["apiVersion"], kserve["kind"]) == ("serving.kserve.io/v1beta1", "InferenceService")
    predictor = {key: value for key, value in kserve["spec"]["predictor"].items() if key != "minReplicas"}
    kubernetes_validate.validate({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": predictor}, VERSION, strict=True)
    if kind == "own":
        known = subprocess.run([conftest.PROGRAM, "serve", "--help"], capture_output=True, text=True, check=True).stdout
        for flag in (argument for argument in container["args"] if argument.startswith("-")):
            assert re.search(rf"(^|[ ,]){re.escape(flag)}\b", known, re.M), flag
    else:
        assert container["command"][0] == conftest.PROGRAM and "/models" in container["command"]


def test_the_scripts_of_an_advice_are_scripts(advice):
    kind, folder = advice
    scripts = ["weir.slurm"] if kind == "own" else ["other.slurm", "server.sh"]
    for name in scripts:
        subprocess.run(["bash", "-n", folder / name], check=True)
    unit = (folder / ("weir.service" if kind == "own" else "other.service")).read_text()
    assert re.search(r"^ExecStart=/\S+ ", unit, re.M)
