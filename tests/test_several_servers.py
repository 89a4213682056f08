"""weir run and weir load over several servers: equal shares, and one server that is killed loses nothing but what another repeats."""
import http.server
import json
import shutil
import signal
import subprocess
import threading
import time

import pytest

import conftest
from test_serve import Server, put_identity


class Fleet:
    """Servers of one repository, with a folder each."""

    def __init__(self, folder, repository, count):
        self.servers = []
        for number in range(count):
            place = folder / f"server-{number}"
            place.mkdir()
            self.servers.append(Server(place, "--model-repository", repository).wait())

    def url(self, protocol, model):
        return f"{protocol}://{','.join(one.facts[protocol]['url'].split('//')[1] for one in self.servers)}/{model}"

    def kill(self, number):
        self.servers[number].process.send_signal(signal.SIGKILL)

    def stop(self):
        for one in self.servers:
            if one.process.poll() is None:
                one.stop()


@pytest.fixture(scope="module")
def repository(made, tmp_path_factory):
    folder = tmp_path_factory.mktemp("several") / "models"
    shutil.copytree(made[0], folder / "tiny")
    put_identity(folder, "five", batch=1, engine="emulated:base=5ms", more="dynamic_batching { default_queue_policy { max_queue_size: 4096 } }")
    return folder


@pytest.fixture(scope="module")
def pair(repository, tmp_path_factory):
    fleet = Fleet(tmp_path_factory.mktemp("pair"), repository, 2)
    yield fleet
    fleet.stop()


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_run_over_two_servers_answers_as_one_process_does(weir, pair, made, tmp_path, protocol):
    weir.run("run", *made, "--answers", tmp_path / "expected.csv")
    result = weir.json("run", pair.url(protocol, "tiny"), made[1], "--batch", 5, "--answers", tmp_path / "answers.csv")
    assert (tmp_path / "answers.csv").read_bytes() == (tmp_path / "expected.csv").read_bytes()
    servers = result["servers"]
    assert servers["balance"] == "round-robin" and servers["retried"] == 0
    assert sum(one["answered"] for one in servers["each"]) >= 40  # the batches, and those of the warm-up
    assert servers["imbalance"] <= 0.05  # the warm-up is one call


@pytest.mark.parametrize("protocol,balance,limit", [("http", "round-robin", 0.01), ("grpc", "round-robin", 0.01), ("grpc", "grpc-round-robin", 0.01),
                                                    ("http", "least-in-flight", 0.1)])
def test_shares_are_equal_and_shown(weir, pair, protocol, balance, limit):
    done = weir.run("load", pair.url(protocol, "five"), "--balance", balance, "--request-rate-range", 150, "--request-count", 400, "--warmup", 0.2, "--json", "-", status=None)
    level = json.loads(done.stdout)["levels"][0]
    assert level["failed"] == 0 and level["answered"] == 400
    servers = level["servers"]
    assert servers["balance"] == balance and servers["retried"] == 0
    assert sum(one["answered"] for one in servers["each"]) == pytest.approx(400, abs=20)  # some of the warm-up's end within it
    assert servers["imbalance"] <= limit + 2 / 200
    assert "imbalance" in done.stderr.decode()


@pytest.mark.parametrize("protocol,balance", [("http", "round-robin"), ("grpc", "round-robin"), ("grpc", "grpc-round-robin"), ("http", "least-in-flight")])
def test_a_killed_server_loses_only_what_was_in_flight_and_that_is_sent_again(repository, tmp_path, protocol, balance):
    fleet = Fleet(tmp_path, repository, 2)
    try:
        load = subprocess.Popen([conftest.PROGRAM, "load", fleet.url(protocol, "five"), "--balance", balance, "--concurrency-range", "4", "--duration", "2", "--warmup", "0",
                                 "--json", "-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(1)
        fleet.kill(0)
        out, said = load.communicate(timeout=60)
    finally:
        fleet.stop()
    level = json.loads(out)["levels"][0]
    servers = level["servers"]
    assert level["failed"] == 0, (level["error_messages"], said)
    assert sum(one["failed"] for one in servers["each"]) == 0
    # What was in flight at the dead server, and later one call on trial from time to time.
    assert 1 <= servers["retried"] <= 4 + 8
    assert max(one["share"] for one in servers["each"]) > 0.6


def test_a_run_goes_on_when_a_server_is_killed(weir, made, repository, tmp_path):
    weir.run("run", *made, "--answers", tmp_path / "expected.csv", "--repeat-data", 20)
    fleet = Fleet(tmp_path, repository, 2)
    try:
        run = subprocess.Popen([conftest.PROGRAM, "run", fleet.url("http", "tiny"), str(made[1]), "--batch", "2", "--repeat-data", "20", "--answers", str(tmp_path / "answers.csv"),
                                "--json", "-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(0.7)
        fleet.kill(1)
        out, said = run.communicate(timeout=120)
    finally:
        fleet.stop()
    assert run.returncode == 0, said
    assert (tmp_path / "answers.csv").read_bytes() == (tmp_path / "expected.csv").read_bytes()
    assert json.loads(out)["servers"]["retried"] >= 1


class Refusing(http.server.BaseHTTPRequestHandler):
    """The metadata of the model `five`, and no inference: it answers each with the status of its server."""
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *arguments):
        pass

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        _, _, body = self.server.real.call("GET", self.path)
        self.answer(200, body)

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.refused += 1
        self.answer(self.server.status, b'{"error": "no"}')


@pytest.fixture
def refusing(pair):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    server.daemon_threads, server.real, server.refused, server.status = True, pair.servers[0], 0, 503
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("status,retried", [(503, True), (500, False), (400, False)])
def test_only_a_refusal_for_now_is_sent_again(weir, pair, refusing, status, retried):
    refusing.status = status
    url = f"http://127.0.0.1:{refusing.server_address[1]},{pair.servers[0].http}/five"
    level = weir.json("load", url, "--concurrency-range", 1, "--request-count", 20, "--warmup", 0, status=None)["levels"][0]
    servers = level["servers"]
    assert refusing.refused >= 5
    if retried:
        assert level["failed"] == 0 and servers["retried"] == refusing.refused
    else:
        assert level["failed"] == refusing.refused and servers["retried"] == 0


def test_what_makes_no_sense_is_named(weir, pair, repository, tmp_path):
    one = pair.servers[0].http
    said = weir.run("load", f"http://{one},{one}/five", status=2).stderr.decode()
    assert "twice" in said
    said = weir.run("load", f"http://{one}/five", "--balance", "least-in-flight", status=2).stderr.decode()
    assert "says nothing of one server" in said
    said = weir.run("load", pair.url("http", "five"), "--balance", "grpc-round-robin", status=2).stderr.decode()
    assert "grpc://" in said
    said = weir.run("run", pair.url("http", "absent"), tmp_path, status=2).stderr.decode()
    assert one in said and "absent" in said
