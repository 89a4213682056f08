"""weir load against what is no model: any HTTP endpoint, with bodies from files."""
import http.server
import threading

import pytest


class Endpoint(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        self.seen = []
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.seen.append((self.command, self.path, self.headers.get("Content-Type"), self.headers.get("X-Key"), body))
        status = 503 if self.path == "/busy" else 204 if self.path == "/none" else 200
        said = b"not now" if status == 503 else b"" if status == 204 else b"fine"
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    do_GET = do_POST = do_PUT = answer

    def log_message(self, *_):
        pass


@pytest.fixture
def endpoint():
    server = Endpoint()
    yield server
    server.shutdown()


def test_bodies_are_sent_in_turn_with_their_headers(weir, endpoint, tmp_path):
    (tmp_path / "a").write_bytes(b"first")
    (tmp_path / "b").write_bytes(b"second")
    level, = weir.json("load", "--endpoint", endpoint.url + "/score?x=1", "--body", tmp_path / "a", tmp_path / "b", "-H", "X-Key: secret", "--content-type",
                       "text/plain", "--request-count", 40, "--warmup", 0, status=None)["levels"]
    assert level["answered"] == 40 and level["errors"] == {}
    assert {each[:4] for each in endpoint.seen} == {("POST", "/score?x=1", "text/plain", "secret")}
    assert [each[4] for each in endpoint.seen][:4] == [b"first", b"second", b"first", b"second"]


def test_an_answer_without_a_body_is_one(weir, endpoint):
    for mode in ([], ["--sync"]):
        level, = weir.json("load", "--endpoint", endpoint.url + "/none", "--method", "GET", "--request-count", 20, "--warmup", 0, *mode, status=None)["levels"]
        assert level["answered"] == 20, level


def test_another_status_is_a_failure_with_its_words(weir, endpoint):
    level, = weir.json("load", "--endpoint", endpoint.url + "/busy", "--request-count", 20, "--warmup", 0, status=3)["levels"]
    assert level["answered"] == 0 and level["failed"] == 20
    assert "503: not now" in level["error_messages"][0]


def test_what_makes_no_request_is_refused(weir, endpoint, tmp_path):
    for more, word in ((["--data", tmp_path], b"--data"), (["-m", "x"], b"-m"), (["-H", "no colon"], b"Name: value"), (["-H", "Host: x"], b"host"),
                       (["--method", "HEAD"], b"HEAD"), (["--body", tmp_path / "missing"], b"missing")):
        assert word in weir.run("load", "--endpoint", endpoint.url, *more, status=2).stderr, more
    assert b"--endpoint" in weir.run("load", "--endpoint", "grpc://127.0.0.1:1/x", status=2).stderr
    assert b"--body says nothing" in weir.run("load", "-m", "x", "--body", "y", status=2).stderr
