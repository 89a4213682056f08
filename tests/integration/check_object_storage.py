"""Object storage on servers of others: moto's and rclone's. What tests/test_object_storage.py proves against a server of its own works with them too."""
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

import conftest

ACCESS, SECRET = "TESTACCESSKEY", "test-secret-key"


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


class Store:
    """A server on loopback with one bucket."""

    def __init__(self, command, folder, port):
        self.url, self.log = f"http://127.0.0.1:{port}", folder / "server.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([str(word) for word in command], stdout=log, stderr=log)
        until = time.monotonic() + 60
        while True:
            try:
                with socket.create_connection(("127.0.0.1", port), timeout=1):
                    break
            except OSError:
                assert self.process.poll() is None and time.monotonic() < until, self.log.read_text()
                time.sleep(0.05)

    def environment(self, cache):
        return {**{k: v for k, v in os.environ.items() if not k.startswith("AWS_")}, "AWS_ENDPOINT_URL": self.url, "AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": SECRET,
                "AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true", "WEIR_CACHE_DIR": str(cache)}

    def stop(self):
        self.process.terminate()
        self.process.wait(20)


def start_moto(folder):
    port = free_port()
    store = Store([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", port], folder, port)
    urllib.request.urlopen(urllib.request.Request(f"{store.url}/bucket", method="PUT", headers={"Authorization": f"AWS4-HMAC-SHA256 Credential={ACCESS}/20260101/us-east-1/s3/aws4_request"}), timeout=20).close()
    return store


def start_rclone(folder):
    program = shutil.which("rclone", path=f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}")
    if program is None:
        pytest.skip("rclone is not here")
    (folder / "files/bucket").mkdir(parents=True)
    port = free_port()
    return Store([program, "serve", "s3", folder / "files", "--addr", f"127.0.0.1:{port}", "--auth-key", f"{ACCESS},{SECRET}", "--config", folder / "none.conf", "--vfs-cache-mode", "off"],
                 folder, port)


@pytest.fixture(scope="module", params=["moto", "rclone"])
def store(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    running = {"moto": start_moto, "rclone": start_rclone}[request.param](folder)
    yield running
    running.stop()


@pytest.fixture
def s3(weir, store, tmp_path):
    class Bound:
        environment = store.environment(tmp_path / "cache")

        def run(self, *arguments, **kwargs):
            return weir.run(*arguments, env=self.environment, **kwargs)

        def json(self, *arguments, **kwargs):
            return weir.json(*arguments, env=self.environment, **kwargs)
    return Bound()


@pytest.fixture
def recipe(tmp_path):
    path = tmp_path / "recipe.yaml"
    path.write_text("layout: NCHW\nresize: {width: 32, height: 32}\n")
    return path


def contents(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_set_goes_out_and_comes_back(weir, s3, made, tmp_path, request):
    url = f"s3://bucket/{request.node.callspec.id}/set"
    common = ["prepare", made[1] / "pictures", "--recipe", made[0] / "recipe.yaml", "--format", "tar"]
    weir.run(*common, "-o", tmp_path / "local")
    s3.run(*common, "-o", url)
    verified = s3.json("prepare", "--verify", url)
    assert verified["faults"] == 0 and verified["sets"][0]["images"] == 200
    # What is there already is not sent again, and the set is whole without the cache.
    s3.run(*common, "-o", url)
    s3.environment["WEIR_CACHE_DIR"] = str(tmp_path / "other-cache")
    s3.run("run", made[0], url, "--answers", tmp_path / "remote.csv")
    weir.run("run", made[0], tmp_path / "local", "--answers", tmp_path / "local.csv")
    assert len((tmp_path / "remote.csv").read_text().splitlines()) == len((tmp_path / "local.csv").read_text().splitlines())


def test_a_large_shard_goes_in_parts(s3, made, tmp_path, request):
    url = f"s3://bucket/{request.node.callspec.id}/large"
    (tmp_path / "in").mkdir()
    picture = next((made[1] / "pictures").rglob("*.jpg")).read_bytes()
    for i in range(3):
        (tmp_path / "in" / f"{i}.jpg").write_bytes(picture + os.urandom(7 << 20))
    s3.run("prepare", tmp_path / "in", "--format", "tar", "-o", url)
    s3.environment["WEIR_CACHE_DIR"] = str(tmp_path / "other-cache")
    assert s3.json("prepare", "--verify", url)["faults"] == 0


def test_pictures_are_prepared_from_the_store_as_from_a_folder(weir, s3, made, recipe, tmp_path, request):
    """The pictures go out as the raw files of a set, which are objects of their own."""
    url = f"s3://bucket/{request.node.callspec.id}/photos"
    s3.run("prepare", made[1] / "pictures", "-o", url)
    result = s3.json("prepare", f"{url}/", "--recipe", recipe, "-o", tmp_path / "remote")
    assert result["images"] == 200


def test_what_is_not_there_and_wrong_credentials_are_named(s3, made, store, tmp_path, request):
    said = s3.run("prepare", "s3://bucket/not-there", "-o", tmp_path / "set", status=None)
    assert said.returncode in (1, 2) and "not-there" in said.stderr.decode()
    if request.node.callspec.id == "moto":
        return  # it checks no signature
    s3.environment["AWS_SECRET_ACCESS_KEY"] = "another-secret"
    said = s3.run("prepare", "--verify", "s3://bucket/any", status=None).stderr.decode()
    assert "403" in said and "another-secret" not in said and SECRET not in said


def test_models_are_served_from_the_store(s3, made, tmp_path, request):
    url = f"s3://bucket/{request.node.callspec.id}/models"
    put_folder(s3, made[0], f"{url}/tiny")
    place = tmp_path / "place.json"
    server = subprocess.Popen([conftest.PROGRAM, "serve", "--model-repository", url, "--http-port", "0", "--grpc-port", "0", "--metrics-port", "0", "--json", place],
                              env=s3.environment, stderr=subprocess.PIPE)
    try:
        until = time.monotonic() + 60
        while not place.exists() and server.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        assert place.exists(), server.stderr.read()
        assert "tiny" in [model["name"] for model in json.loads(place.read_text())["models"]]
    finally:
        server.terminate()
        assert server.wait(60) == 0


def put_folder(s3, folder, url):
    """By botocore, which moto brings along: a client of others, with signatures of its own."""
    import boto3
    client = boto3.client("s3", endpoint_url=s3.environment["AWS_ENDPOINT_URL"], aws_access_key_id=ACCESS, aws_secret_access_key=SECRET, region_name="us-east-1",
                          config=boto3.session.Config(s3={"addressing_style": "path"}))
    bucket, prefix = url.removeprefix("s3://").split("/", 1)
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            client.put_object(Bucket=bucket, Key=f"{prefix}/{path.relative_to(folder)}", Body=path.read_bytes())
