"""Fixtures of the integration tests: models, a server that speaks as Triton does, and the public clients."""
import json
import pathlib
import shutil
import subprocess
import time
import urllib.parse

import pytest
import tritonclient.grpc as grpcclient
import tritonclient.http as httpclient

import conftest
import models


class Server:
    """A running `weir serve` on free ports of loopback."""

    def __init__(self, folder, *arguments):
        facts = pathlib.Path(folder) / "served.json"
        self.log = pathlib.Path(folder) / "log.txt"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [conftest.PROGRAM, "serve", "--http-port", "0", "--grpc-port", "0", "--metrics-port", "0", "--json", facts, *map(str, arguments)],
                stdout=subprocess.DEVNULL, stderr=log)
        until = time.monotonic() + 120
        while not facts.exists() or not facts.read_text().endswith("\n"):
            assert self.process.poll() is None and time.monotonic() < until, self.said()
            time.sleep(0.05)
        told = json.loads(facts.read_text())
        self.http = urllib.parse.urlparse(told["http"]["url"]).netloc
        self.grpc = urllib.parse.urlparse(told["grpc"]["url"]).netloc

    def said(self):
        return self.log.read_text(errors="replace")

    def stop(self):
        self.process.terminate()
        self.process.wait(60)
        assert "Sanitizer" not in self.said(), self.said()


@pytest.fixture(scope="session")
def repository(tmp_path_factory):
    """The models of Triton's examples, an identity of every datatype, and a real classifier of pictures."""
    folder = tmp_path_factory.mktemp("repository")
    models.make(folder)
    models.make_identities(folder)
    real = conftest.SHARED / "data/models"
    if real.is_dir():
        put_classifier(folder / "mobilenet", real)
    return folder


def put_classifier(folder, real):
    """A model of real pictures: its layout comes from the recipe alone, its labels from config.pbtxt."""
    (folder / "1").mkdir(parents=True)
    shutil.copy(real / "mobilenet_v2_qdq.onnx", folder / "1/model.onnx")
    shutil.copy(real / "recipes/mobilenet_v2_qdq.yaml", folder / "recipe.yaml")
    shutil.copy(real / "imagenet_labels_1001.txt", folder)
    lines = [line for line in (folder / "recipe.yaml").read_text().splitlines() if not line.startswith("labels:")]
    (folder / "recipe.yaml").write_text("\n".join(lines) + "\n")
    (folder / "config.pbtxt").write_text("""max_batch_size: 8
input { name: "input" data_type: TYPE_FP32 dims: [ 3, 224, 224 ] }
output { name: "probabilities" data_type: TYPE_FP32 dims: [ 1001 ] label_filename: "imagenet_labels_1001.txt" }
""")


@pytest.fixture(scope="session")
def server(repository, tmp_path_factory):
    running = Server(tmp_path_factory.mktemp("server"), "--model-repository", repository, "--compat", "triton", "--allow-client-shm",
                     "--model-control-mode", "explicit", "--load-model", "*")
    yield running
    running.stop()


class Client:
    """One of the two public clients, under the names that both have."""

    def __init__(self, protocol, server):
        self.protocol = protocol
        self.module = httpclient if protocol == "http" else grpcclient
        self.address = server.http if protocol == "http" else server.grpc
        self.triton = self.open()

    def open(self, **options):
        return self.module.InferenceServerClient(url=self.address, **options)

    def input(self, name, array, datatype, binary=True):
        tensor = self.module.InferInput(name, list(array.shape), datatype)
        if self.protocol == "http":
            return tensor.set_data_from_numpy(array, binary_data=binary)
        return tensor.set_data_from_numpy(array)

    def output(self, name, binary=True, **options):
        if self.protocol == "http":
            options["binary_data"] = binary
        return self.module.InferRequestedOutput(name, **options)

    def plain(self, message):
        """A response of either client as a dictionary."""
        if isinstance(message, (dict, list)):
            return message
        from google.protobuf import json_format
        return json_format.MessageToDict(message, preserving_proto_field_name=True)


@pytest.fixture(params=["http", "grpc"])
def client(request, server):
    made = Client(request.param, server)
    yield made
    made.triton.close()
