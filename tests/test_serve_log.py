"""weir serve whose log nobody can read: a full disk, a closed pipe, a pipe that nobody reads; and what clients can make it say."""
import contextlib
import fcntl
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import time
import urllib.parse

import pytest

import conftest
from test_serve import put_identity

ZEROS = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 16], "data": [0.0] * 16}]}


class Server:
    """A running `weir serve` whose standard output and standard error are the test's; `preexec` runs in the child before it begins."""

    def __init__(self, folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec=None, arguments=(), ports=(0, 0, 0)):
        self.facts_path = pathlib.Path(folder) / "served.json"
        put_identity(pathlib.Path(folder) / "models", "m")
        self.process = subprocess.Popen(
            [conftest.PROGRAM, "serve", "--model-repository", str(pathlib.Path(folder) / "models"), "--http-port", str(ports[0]), "--grpc-port",
             str(ports[1]), "--metrics-port", str(ports[2]), *(arguments or ("--json", str(self.facts_path)))], stdout=stdout, stderr=stderr, preexec_fn=preexec)

    def wait(self, seconds=60):
        until = time.monotonic() + seconds
        while not self.facts_path.exists():
            assert self.process.poll() is None and time.monotonic() < until, self.process.returncode
            time.sleep(0.02)
        facts = json.loads(self.facts_path.read_text())
        self.http, self.metrics = (urllib.parse.urlparse(facts[name]["url"]).netloc for name in ("http", "metrics"))
        return self

    def call(self, method, path, body=None, where=None):
        connection = http.client.HTTPConnection(where or self.http, timeout=30)
        with contextlib.closing(connection):
            connection.request(method, path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read()

    def infer(self, request=None):
        return self.call("POST", "/v2/models/m/infer", json.dumps(request or ZEROS))

    def fail(self, number, name_bytes=0):
        """A request that fails in a way that no other does, so that each is told."""
        wrong = {"inputs": [ZEROS["inputs"][0] | {"name": f"{number}" + "x" * name_bytes}], "id": f"id{number}"}
        return self.infer(wrong)

    def unknown(self, number):
        return self.call("POST", f"/v2/models/unknown{number}/infer", json.dumps(ZEROS))

    def dropped(self):
        text = self.call("GET", "/metrics", where=self.metrics)[1].decode()
        return int(float(re.search(r"^weir_log_lines_dropped_total (\S+)$", text, re.M)[1]))

    def is_well(self):
        """It answers, whatever became of its log."""
        assert self.call("GET", "/v2/health/ready")[0] == 200
        assert self.infer()[0] == 200

    def stop(self, seconds=20):
        """Its exit status, once told to stop."""
        begin = time.monotonic()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(timeout=60)
        assert time.monotonic() - begin < seconds
        return status


@pytest.fixture
def serve(tmp_path):
    servers = []

    def start(**options):
        folder = tmp_path / f"server{len(servers)}"
        folder.mkdir()
        servers.append(Server(folder, **options))
        return servers[-1]

    yield start
    for server in servers:
        if server.process.poll() is None:
            server.process.kill()
            server.process.wait()


@pytest.fixture
def disk(tmp_path):
    """(a file on a disk of 64 KB, what fills that disk); /dev/full, which is full, where none may be mounted."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", place], capture_output=True, check=False).returncode == 0

    def fill():
        with contextlib.suppress(OSError), open(place / "other", "wb", buffering=0) as other:
            while mounted:
                other.write(b"x" * 512)
        with contextlib.suppress(OSError):
            while mounted:
                file.write(b"\n")  # what its last page has room for

    with open(place / "log.txt" if mounted else "/dev/full", "wb", buffering=0) as file:
        yield file, fill
    if mounted:
        subprocess.run(["umount", place], check=True)


def stuck_pipe():
    """(reader, writer) of a pipe that takes no more byte, and whose writers wait for one who reads."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETFL, os.O_NONBLOCK)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"x" * 4096)
    fcntl.fcntl(writer, fcntl.F_SETFL, 0)
    return reader, writer


def closed_pipe():
    reader, writer = os.pipe()
    os.close(reader)
    return writer


def wait_until_ready(server, port):
    """For a server that cannot tell its port."""
    server.http = f"127.0.0.1:{port}"
    until = time.monotonic() + 60
    while True:
        with contextlib.suppress(OSError):
            if server.call("GET", "/v2/health/ready")[0] == 200:
                return
        assert time.monotonic() < until and server.process.poll() is None
        time.sleep(0.05)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


def restored_signals():
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # python ignores it, and a child would, too


def test_a_full_disk_does_not_end_it(disk, serve):
    file, fill = disk
    server = serve(stderr=file).wait()
    fill()
    for number in range(5):
        assert server.fail(number, name_bytes=3 << 20)[0] == 400
    for number in range(20):
        assert server.unknown(number)[0] == 404
    server.is_well()
    assert server.dropped() > 0
    assert server.stop() == 0


def test_a_disk_that_is_full_from_the_start_does_not_end_it(serve):
    with open("/dev/full", "wb", buffering=0) as full:
        server = serve(stdout=full, stderr=full).wait()
        for number in range(20):
            assert server.fail(number)[0] == 400
        server.is_well()
        assert server.dropped() > 0
        assert server.stop() == 0


def test_a_closed_pipe_does_not_end_it(serve):
    writer = closed_pipe()
    server = serve(stdout=writer, stderr=writer, preexec=restored_signals).wait()
    for number in range(20):
        assert server.fail(number)[0] == 400
    server.is_well()
    assert server.dropped() > 0
    assert server.stop() == 0
    os.close(writer)


def test_a_reader_that_ends_does_not_end_it(serve):
    reader, writer = os.pipe()
    server = serve(stderr=writer, preexec=restored_signals).wait()
    os.close(writer)
    assert server.fail(0)[0] == 400
    os.read(reader, 4096)
    os.close(reader)
    for number in range(1, 20):
        assert server.unknown(number)[0] == 404
    server.is_well()
    assert server.stop() == 0


def test_a_pipe_that_nobody_reads_holds_up_nothing(serve):
    reader, writer = stuck_pipe()
    server = serve(stderr=writer).wait()
    for number in range(20):
        assert server.fail(number)[0] == 400
        assert server.unknown(number)[0] == 404
    server.is_well()
    assert server.stop() == 0
    os.close(reader)
    os.close(writer)


def test_a_standard_output_that_nobody_reads_holds_up_nothing(serve):
    reader, writer = stuck_pipe()
    port = free_port()
    server = serve(stdout=writer, stderr=writer, ports=(port, 0, 0), arguments=("--json", "-"))
    wait_until_ready(server, port)
    server.is_well()
    assert server.stop() == 0
    os.close(reader)
    os.close(writer)


def test_a_json_file_that_nobody_reads_holds_up_nothing(serve, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    port = free_port()
    server = serve(ports=(port, 0, 0), arguments=("--json", str(tmp_path / "fifo")))
    wait_until_ready(server, port)
    server.is_well()
    assert server.stop() == 0


def test_closed_standard_streams_do_not_become_a_connection(serve):
    server = serve(preexec=lambda: (os.close(1), os.close(2))).wait()
    for number in range(10):
        status, body = server.fail(number)
        assert status == 400 and json.loads(body)["error"]
    server.is_well()
    assert server.stop() == 0


def test_a_client_can_forge_no_line_and_no_colour(serve, tmp_path):
    with open(tmp_path / "log", "wb") as log:
        server = serve(stderr=log).wait()
        forged = "\n2026-01-01T00:00:00Z all is well\r\x1b[31mred\u2028next\u202eback"
        request = {"inputs": [ZEROS["inputs"][0] | {"name": f"a{forged}"}], "id": f"b{forged}"}
        assert server.infer(request)[0] == 400
        assert server.stop() == 0
    lines = (tmp_path / "log").read_bytes().decode().split("\n")
    told = [line for line in lines if "all is well" in line]
    assert len(told) == 1 and re.match(r"20\S+Z warning: request b\\x0A2026", told[0])
    assert not re.search("[\x00-\x1f\x7f\u2028\u202e]", "".join(lines[:-2]))


def test_long_names_make_neither_a_long_line_nor_a_long_answer(serve, tmp_path):
    with open(tmp_path / "log", "wb") as log:
        server = serve(stderr=log).wait()
        status, body = server.fail("n", name_bytes=3 << 20)
        assert status == 400 and len(body) < 4096 and b"it has: x" in body
        status, body = server.call("POST", "/v2/models/" + "m" * 4000 + "/infer", json.dumps(ZEROS))
        assert status == 404 and len(body) < 4096
        request = ZEROS | {"id": "i" * (3 << 20), "outputs": [{"name": "o" * (3 << 20)}]}
        status, body = server.infer(request)
        assert status == 400 and len(body) < 4096
        assert server.stop() == 0
    lines = (tmp_path / "log").read_text().splitlines()
    assert any("bytes left out" in line for line in lines)
    assert max(map(len, lines)) < 8192


def test_repeated_failures_are_counted_and_not_repeated(serve, tmp_path):
    with open(tmp_path / "log", "wb") as log:
        server = serve(stderr=log).wait()
        for _ in range(50):
            assert server.unknown("")[0] == 404
        until = time.monotonic() + 30
        while "49 more requests failed" not in (tmp_path / "log").read_text():
            assert time.monotonic() < until, (tmp_path / "log").read_text()
            time.sleep(0.2)
        assert server.stop() == 0
    assert (tmp_path / "log").read_text().count("\"unknown\" is not in the model repository") == 1
