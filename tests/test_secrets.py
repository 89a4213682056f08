"""Planted secrets are in no file and no output of any verb; files with personal data are their owner's alone; copies go with their source."""
import base64
import contextlib
import http.server
import json
import os
import stat
import subprocess
import threading
import urllib.parse
import urllib.request

import pytest

from conftest import PROGRAM
from s3_server import S3Server
from test_serve import Server
from test_serve_identities import write_rows
from test_watch import ENGINE, HEAD, camera, frames, live_page

# What a password may hold that ends a host, a name or a value, where nobody encoded it.
SHAPES = ["{}", "{}/{}", "{}@{}", "{}#{}", "{}/{}@{}#{}?{}", "{}:{}", "{}%2F{}"]


class Plants:
    """Secrets, each once, made of parts that are nowhere else."""

    def __init__(self):
        self.parts = {}  # part -> where it was planted

    def __call__(self, where, shape="{}"):
        pieces = []
        for _ in range(shape.count("{}")):
            part = f"q{len(self.parts):02d}z" + os.urandom(5).hex()
            self.parts[part] = where
            pieces.append(part)
        return shape.format(*pieces)

    def found_in(self, data, where):
        return [f"{self.parts[part]} in {where}" for part in self.parts if part.encode() in data]

    def check(self, folder, *outputs, but=()):
        """Looks through all files below `folder` (their names too) and the outputs of processes."""
        found = []
        for path in folder.rglob("*"):
            found += self.found_in(os.fsencode(path.name), f"the name {path.name}")
            if path.is_file() and path not in but:
                found += self.found_in(path.read_bytes(), path)
        for done in outputs:
            found += self.found_in(done.stdout, "stdout of " + str(done.args[1])) + self.found_in(done.stderr, "stderr of " + str(done.args[1]))
        assert not found, "\n".join(found)


@pytest.fixture
def plant():
    return Plants()


@pytest.fixture
def call(plant, tmp_path):
    """Runs a verb in an environment and a home that hold secrets too."""
    home = tmp_path / "home"
    (home / ".aws").mkdir(parents=True)
    credentials = home / ".aws/credentials"
    credentials.write_text(f"[default]\naws_access_key_id = {plant('credentials file')}\naws_secret_access_key = {plant('credentials file')}\n"
                           f"aws_session_token = {plant('credentials file')}\n")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
    environment |= {"HOME": str(home), "AWS_SESSION_TOKEN": plant("environment"), "MY_TOKEN": plant("environment")}
    done = []

    def run(*arguments, env=None, timeout=120, **kwargs):
        ended = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, timeout=timeout, env=environment | (env or {}), cwd=tmp_path, check=False, **kwargs)
        done.append(ended)
        assert ended.returncode in (0, 1, 2, 3), ended.stderr.decode()
        return ended

    yield run
    assert done
    plant.check(tmp_path, *done, but=(credentials,))


def text(done):
    return done.stderr.decode() + done.stdout.decode()


class Web(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        self.server.seen.append((self.path, dict(self.headers)))
        body = self.server.body if "/missing" not in self.path else b""
        self.send_response(200 if body else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_HEAD = do_GET

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.seen.append((self.path, dict(self.headers)))
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()


@contextlib.contextmanager
def web(body=b"", status=200):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Web)
    server.body, server.status, server.seen = body, status, []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server, f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def presigned(plant, host, path):
    """A URL as S3, Google's and Azure's storage sign it."""
    return (f"http://{host}/{path}?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={plant('credential')}%2F20260101&X-Amz-Date=20260101T000000Z&X-Amz-Expires=60"
            f"&X-Amz-Security-Token={plant('security token')}&X-Amz-Signature={plant('signature')}&X-Goog-Signature={plant('signature')}&sig={plant('SAS')}%3D")


def test_monitor(plant, call, tmp_path):
    call("monitor", "--json", tmp_path / "m.json", "--", "true", f"--password={plant('password')}", "--token", plant("token"), "-p", f"--db-password={plant('p', '{} {}')}",
         "-H", f"Authorization: Bearer {plant('bearer')}", "-u", f"me:{plant('user')}", f"API_KEY={plant('api key')}", f"postgres://me:{plant('url', '{}/{}')}@db:1/x")
    call("monitor", "--json", "-", "--", "sh", "-c", f"true --secret {plant('sh')} --passwd='{plant('sh', '{} {}')}'; PGPASSWORD={plant('sh')} true; true -H 'X-Api-Key: {plant('sh')}'")
    call("monitor", "--", f"/no/such/program?token={plant('program')}")
    shown = json.loads((tmp_path / "m.json").read_text())["command"]
    assert shown.startswith("true '--password=***' --token '***' -p")


@pytest.mark.parametrize("shape", SHAPES)
def test_watch_hides_the_passwords_of_streams_and_webhooks(plant, call, made, tmp_path, shape):
    def serve(connection, number, request):
        connection.sendall(HEAD)
        frames(connection, 0, 20)

    with camera(serve) as host, web() as (hook, hooked):
        secret, hidden = plant("stream", shape), plant("webhook", shape)
        result = call("watch", f"http://me:{secret}@{host}/live?token={plant('query')}", f"rtsp://me:{plant('rtsp', shape)}@127.0.0.1:9/a", "--webhook",
                      f"http://me:{hidden}@{hooked}/hook?sig={plant('hook')}", "--classify", made[0], *ENGINE, "--deadline", "500ms", "--duration", "2", "--events",
                      tmp_path / "events.jsonl", "--frames", tmp_path / "frames.jsonl", "--json", tmp_path / "watch.json")
        plain = base64.b64encode(b"me:" + urllib.parse.unquote(hidden).encode())
        if "@" not in shape or "/" not in shape:  # a host may stand before the slash
            assert hook.seen and plain.decode() in str(hook.seen[0]), text(result)
    if result.returncode == 2:  # a password that is not encoded may be refused
        return
    for name in ("events.jsonl", "frames.jsonl", "watch.json"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600, name


def test_watch_says_what_is_wrong_without_the_password(plant, call, made):
    for stream in (f"ftp://me:{plant('s')}@x/y", f"http://me:{plant('s', '{}%zz')}@x/y", f"rtsp://me:{plant('s')}@127.0.0.1:1/y", f"http://me:{plant('s')}@127.0.0.1:1/y?password={plant('s')}",
                   f"made:fps=1,token={plant('s')}"):
        call("watch", stream, "--classify", made[0], *ENGINE, "--duration", "1", "--deadline", "100ms")
    call("watch", "made:frames=3", "--classify", made[0], *ENGINE, "--deadline", "1s", "--webhook", f"smb://me:{plant('w')}@x/y")
    call("watch", "made:frames=3", "--classify", made[0], *ENGINE, "--deadline", "1s", "--webhook", f"http://me:{plant('w', '{}@{}/{}')}@127.0.0.1:1/y?token={plant('w')}")


def test_the_live_page_and_its_metrics(plant, made, tmp_path):
    def serve(connection, number, request):
        connection.sendall(HEAD)
        frames(connection, 0, 400)

    with camera(serve) as host:
        stream = f"http://me:{plant('stream', '{}/{}#{}')}@{host}/live?access_token={plant('query')}"
        with live_page(stream, "--classify", made[0], *ENGINE, "--deadline", "1s") as url:
            for page in ("", "state.json", "metrics"):
                body = urllib.request.urlopen(url + page).read()
                assert not plant.found_in(body, page)


def test_load_hides_headers_and_urls(plant, call, made, tmp_path, weir):
    repository = tmp_path / "models"
    weir.run("model", "make", "tiny", "-o", repository)
    server = Server(tmp_path, "--model-repository", repository).wait()
    try:
        common = ["--json", tmp_path / "load.json", "--csv", tmp_path / "load.csv", "--samples", tmp_path / "samples", "--request-count", "20"]
        call("load", f"http://{server.http}/tiny", "-H", f"Authorization: Bearer {plant('header', '{} {}')}", "-H", f"X-Mine: {plant('header')}", "-H", f"Cookie: id={plant('header')}", *common)
        assert "authorization" in (tmp_path / "load.json").read_text().lower()
        call("load", "--endpoint", f"http://{server.http}/v2/health/ready?token={plant('endpoint')}&key={plant('endpoint')}", *common)
        for shape in SHAPES:
            call("load", f"http://me:{plant('model', shape)}@{server.http}/tiny", *common)
            call("load", "-m", "tiny", "-u", f"me:{plant('-u', shape)}@{server.http}", *common)
            call("load", "--endpoint", f"http://me:{plant('endpoint', shape)}@{server.http}/v2", *common)
            call("load", f"http://{server.http}/tiny", "--metrics-url", f"http://me:{plant('metrics', shape)}@{server.facts['metrics']['url'].split('//')[1]}", *common)
            call("run", f"http://me:{plant('run', shape)}@{server.http}/tiny", made[1], "--json", tmp_path / "run.json")
            call("health", f"http://me:{plant('health', shape)}@{server.http}?token={plant('health')}")
        call("load", f"http://{server.http}/no-such?sig={plant('query')}", *common)
        call("load", f"http://{server.http}/tiny", "--password", plant("unknown flag"))
        call("load", f"http://{server.http}/tiny", f"--batch-size={plant('value')}&token={plant('value')}")
        server.call("GET", f"/v2/none?token={plant('request')}", headers={"Authorization": f"Bearer {plant('request')}"})
        server.call("POST", f"/v2/models/tiny/infer?password={plant('request')}", b"{", headers={"Cookie": plant("request")})
    finally:
        assert server.stop() == 0


def test_prepare_keeps_no_signature(plant, call, made, tmp_path):
    picture = next((made[1] / "pictures").rglob("*.jpg")).read_bytes()
    with web(picture) as (server, host):
        listed = tmp_path / "list.txt"
        urls = [presigned(plant, host, f"{name}.jpg") for name in ("a", "missing/b", "c")]
        listed.write_text("\n".join(urls))
        for kind in ("files", "tar", "tfrecord"):
            made_set = call("prepare", "--list", listed, "-o", tmp_path / kind, "--format", kind, "--json", tmp_path / f"{kind}.json", "--preview", tmp_path / f"{kind}.jpg")
            assert json.loads((tmp_path / f"{kind}.json").read_text())["images"] == 2, text(made_set)
        listed.unlink()
        # A picture keeps its name, so the same command with a new signature goes on with the same set.
        sources = [json.loads(line)["source"] for line in (tmp_path / "tar/manifest.jsonl").read_text().splitlines()]
        assert sources[0].startswith(f"http://{host}/a.jpg?X-Amz-Algorithm") and "X-Amz-Signature=***" in sources[0]
        call("prepare", presigned(plant, host, "d.jpg"), "-o", tmp_path / "named", "--json", tmp_path / "named.json")
        call("prepare", f"http://me:{plant('user')}@{host}/d.jpg", "-o", tmp_path / "refused")
        call("prepare", f"http://me:{plant('user', '{}/{}')}@{host}/d.jpg", "-o", tmp_path / "refused")
        call("run", made[0], presigned(plant, host, "e.jpg"), "--answers", tmp_path / "answers.csv", "--json", tmp_path / "run.json")
        call("run", made[0], presigned(plant, host, "missing/e.jpg"), "--json", "-")
        call("feed", presigned(plant, host, "set"), "--json", tmp_path / "feed.json")
        call("probe", "storage", presigned(plant, host, "set"), "--json", tmp_path / "probe.json", "--html", tmp_path / "probe.html")


def test_other_verbs(plant, call, tmp_path):
    odd = f"s3://bucket/x?token={plant('path')}"
    for arguments in (["feed", odd], ["serve", "--model-repository", odd], ["identities", "list", odd], ["model", "show", odd], ["plan", odd], ["advise", odd], ["report", odd],
                      ["fit", odd], ["predict", odd], ["probe", "network", f"me:{plant('host')}@127.0.0.1:1"], ["agent", "--listen", f"me:{plant('host')}@x:1"],
                      ["doctor", f"--token={plant('flag')}"], [f"http://me:{plant('verb')}@x"]):
        call(*arguments, env={"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": plant("environment"), "AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_EC2_METADATA_DISABLED": "true"})


@pytest.mark.parametrize("server", ["command: [srv, --password, {}]", "command: [srv, '--token={}']", "command:\n      - srv\n      - --password\n      - {}", "url: 'http://me:{}@127.0.0.1:1'"])
def test_a_study_with_a_secret_is_refused(plant, call, made, tmp_path, server):
    study = tmp_path.parent / f"{tmp_path.name}.yaml"
    study.write_text(f"study: s\nmodel: {made[0]}\nserver:\n  - name: other\n    {server.format(plant('server'))}\n    http: 'http://127.0.0.1:1'\n"
                     "    ready: 'http://127.0.0.1:1'\nfixed: {architecture: microservice, load: closed}\nrepeats: 1\ntrial: {images: 8}\n")
    done = call("study", study, "-o", tmp_path / "out")
    assert done.returncode == 2 and b"environment" in done.stderr, text(done)
    study.unlink()


def test_a_study_may_name_a_variable(plant, call, made, tmp_path):
    study = tmp_path / "study.yaml"
    study.write_text(f"study: s\nmodel: {made[0]}\nserver:\n  - name: other\n    command: [sh, -c, 'exec no-such-server --token=$MY_TOKEN']\n    http: 'http://127.0.0.1:1'\n"
                     "    ready: 'http://127.0.0.1:1/'\nfixed: {architecture: microservice, load: closed}\nrepeats: 1\ntrial: {images: 8}\n")
    done = call("study", "--no-replay", study, "-o", tmp_path / "out")
    assert (tmp_path / "out/journal.jsonl").exists(), text(done)
    assert "$MY_TOKEN" in (tmp_path / "out/study.yaml").read_text()


def modes(folder):
    return {stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*") if path.is_file()}


def test_an_index_its_matches_and_its_copy_are_the_owners_alone(weir, tmp_path):
    rows = write_rows(tmp_path / "rows.jsonl", [[1, 0, 0, 0], [0, 1, 0, 0]], ["ada", "alan"])
    index, result = tmp_path / "people", tmp_path / "matches.json"
    result.write_text("{}")  # was there before, open to all
    weir.run("identities", "build", index, "--vectors", rows)
    weir.run("identities", "search", index, rows, "--threshold", "0.5", "--json", result)
    weir.run("identities", "export", index, "-o", tmp_path / "export.jsonl")
    assert "ada" in result.read_text()
    assert stat.S_IMODE(result.stat().st_mode) == 0o600 and stat.S_IMODE((tmp_path / "export.jsonl").stat().st_mode) == 0o600
    assert modes(index) == {0o600}
    with S3Server() as store:
        store.put_folder("bucket", "people/", index)
        store.put("bucket", "people/of-nobody.txt", b"ada")
        cache = tmp_path / "cache"
        environment = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")} | store.environment(cache)
        weir.run("identities", "list", "s3://bucket/people", env=environment)
        assert modes(cache) == {0o600}
        assert any(path.name == "of-nobody.txt" for path in cache.rglob("*"))
        copies = next(path for path in (cache / "objects").iterdir())
        assert stat.S_IMODE(copies.stat().st_mode) == 0o700
        (copies / "left-by-a-kill").write_text("ada")
        del store.objects[("bucket", b"people/of-nobody.txt")]
        weir.run("identities", "list", "s3://bucket/people", env=environment)
        assert not any(path.name in ("of-nobody.txt", "left-by-a-kill") for path in cache.rglob("*"))
        # All is deleted at the source: nothing of it is left here.
        store.objects.clear()
        weir.run("identities", "list", "s3://bucket/people", env=environment, status=2)
        assert not any(b"ada" in path.read_bytes() or path.stat().st_size > 0 for path in cache.rglob("*") if path.is_file())
