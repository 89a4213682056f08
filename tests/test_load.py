"""weir load through the built program: what it counts, what it tells of time, and when it refuses to believe itself."""
import http.server
import json
import pathlib
import signal
import struct
import subprocess
import threading
import time

import pytest

import conftest
from test_serve import Server, put_identity

SLOW = 4 if conftest.SANITIZED else 1
ONE_ROW = {"data": [{"x": [1] * 16}, {"x": [2] * 16}]}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("load")
    put_identity(folder / "models", "quick")
    put_identity(folder / "models", "five", batch=1, engine="emulated:base=5ms", more="dynamic_batching { default_queue_policy { max_queue_size: 4096 } }")
    put_identity(folder / "models", "texts", dtype="STRING", dims="2")
    put_identity(folder / "models", "free", dims="-1, 3")
    running = Server(folder, "--model-repository", folder / "models").wait()
    running.grpc = running.facts["grpc"]["url"].removeprefix("grpc://")
    yield running
    running.stop()


def at(server, model, protocol="http"):
    return ["-m", model, "-i", protocol, "-u", server.http if protocol == "http" else server.grpc]


def whole(level):
    return level["planned"] == level["answered"] + level["failed"] + level["unsent"]


def reasons(level):
    return {each["reason"] for each in level["reasons"]}


def after_requests(server, count, act):
    """Acts once the server has answered so many more than now, in a thread of its own."""
    def answered():
        return sum(value for name, value in server.metrics().items() if name.startswith("nv_inference_request_success"))

    def watch(before):
        until = time.monotonic() + 60
        while time.monotonic() < until and answered() < before + count:
            time.sleep(0.02)
        act()

    thread = threading.Thread(target=watch, args=(answered(),))
    thread.start()
    return thread


@pytest.mark.parametrize("protocol", ["http", "grpc"])
@pytest.mark.parametrize("mode", [[], ["--sync"], ["--io-threads", 2]])
def test_a_closed_loop_counts_every_request(weir, server, protocol, mode):
    result = weir.json("load", *at(server, "quick", protocol), "--concurrency-range", "1:4:3", "--request-count", 300, "--warmup", 0, *mode, status=None)
    assert [level["concurrency"] for level in result["levels"]] == [1, 4]
    for level in result["levels"]:
        assert level["planned"] == level["answered"] == 300 and whole(level)
        assert level["errors"] == {}
        assert set(level["verdict"]) == {"throughput", "latency"}
        assert level["response_ms"]["min"] <= level["response_ms"]["p50"] <= level["response_ms"]["max"]
        assert "p99_9" not in level["response_ms"]  # 300 requests do not tell
        assert level["throughput_per_s"] > 0 and level["client_cpu_us_per_request"] > 0
        assert set(level["server_ms"]) >= {"queue", "compute_input", "compute_infer", "compute_output"}


@pytest.mark.timing
@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_known_delay_is_what_it_measures(weir, server, protocol):
    level, = weir.json("load", *at(server, "five", protocol), "--concurrency-range", 1, "--duration", 1, "--warmup", 0.2, status=None)["levels"]
    assert 5 <= level["response_ms"]["min"] < 5 + 2 * SLOW  # one of some hundred that nobody disturbed
    assert level["response_ms"]["p50"] < 5 + 5 * SLOW
    assert 5 <= level["server_ms"]["compute_infer"] <= level["response_ms"]["mean"]


@pytest.mark.parametrize("connections, said", [(2, True), (4, False)])
def test_fewer_connections_than_requests_in_flight_are_said(weir, server, connections, said):
    done = weir.run("load", *at(server, "five"), "--concurrency-range", 4, "--connections", connections, "--request-count", 40, status=None)
    assert ("at most 2 requests are sent at a time" in done.stderr.decode()) == said


@pytest.mark.parametrize("distribution", ["constant", "poisson", "gamma"])
def test_a_rate_is_planned_to_the_request(weir, server, distribution):
    level, = weir.json("load", *at(server, "quick"), "--request-rate-range", 200, "--request-distribution", distribution, "--duration", 1, "--warmup", 0.2,
                       status=None)["levels"]
    assert whole(level) and level["load_model"] == "open"
    if distribution == "constant":
        assert level["planned"] == 200
    else:
        assert 100 < level["planned"] < 320
    assert level["slip_ms"]["n"] == level["planned"] - level["unsent"]


@pytest.mark.timing
def test_at_twice_the_capacity_response_times_grow_as_theory_says_and_are_invalid(weir, server):
    # No machine makes the model faster than 200 a second: a disturbed one, slower. What theory says to the thousandth is held in imagined time.
    level, = weir.json("load", *at(server, "five"), "--request-rate-range", 400, "--duration", 2, "--warmup", 0, status=3)["levels"]
    assert level["verdict"]["latency"] == "INVALID"
    assert reasons(level) >= {"rate-missed", "no-steady-state"}
    assert level["planned"] == 800 and whole(level)
    assert level["response_ms"]["max"] > 1900  # the last of 800 at 200 a second, planned after 2 s
    assert level["response_ms"]["p50"] > 900
    assert 0 < level["throughput_per_s"] < 210


@pytest.mark.timing
def test_a_stall_of_the_server_shows_in_the_response_time(server, weir):
    stood = []

    def stall():
        server.process.send_signal(signal.SIGSTOP)
        begin = time.monotonic()
        time.sleep(1)
        server.process.send_signal(signal.SIGCONT)
        stood.append(time.monotonic() - begin)

    thread = after_requests(server, 200, stall)  # some 0.5 s after its begin
    level, = weir.json("load", *at(server, "quick"), "--request-rate-range", 400, "--duration", 4, "--warmup", 0.2, status=None)["levels"]
    thread.join()
    assert level["planned"] == 1600 and level["failed"] == 0 and whole(level)
    # A quarter of the requests was due while it stood still; the worst hundredth of all waited for all of it but 16 gaps, or longer.
    assert level["response_ms"]["p99"] == pytest.approx(1000 * (stood[-1] - 16 / 400), rel=0.1)


def test_a_closed_loop_whose_generator_stood_still_says_so(server):
    with subprocess.Popen([conftest.PROGRAM, "load", *map(str, at(server, "five")), "--concurrency-range", "1", "--duration", "2", "--warmup", "0", "--json", "-"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None:
            for act in (signal.SIGSTOP, signal.SIGCONT):
                process.send_signal(act)
                time.sleep(0.06)
        level, = json.load(process.stdout)["levels"]
    assert level["runs"][0]["generator"]["empty_share"] > 0.2
    assert level["verdict"]["throughput"] == "INVALID" and "generator-late" in reasons(level) and whole(level)


def test_what_takes_too_long_has_failed(server, weir):
    level, = weir.json("load", *at(server, "five"), "--concurrency-range", 4, "--duration", 1, "--warmup", 0, "--request-timeout-ms", 12, status=3)["levels"]
    assert level["errors"]["timeout"] > 0 and whole(level)
    assert "errors" in reasons(level)


def test_a_server_that_dies_leaves_failures_and_not_a_hang(tmp_path, weir):
    put_identity(tmp_path / "models", "quick")
    running = Server(tmp_path, "--model-repository", tmp_path / "models").wait()
    thread = after_requests(running, 20, running.process.kill)
    level, = weir.json("load", *at(running, "quick"), "--request-rate-range", 100, "--duration", 4, "--warmup", 0, status=3)["levels"]
    thread.join()
    running.process.wait(10)
    assert level["planned"] == 400 and whole(level)
    assert 20 <= level["answered"] and level["errors"]["connection"] > 50
    assert level["verdict"] == {"throughput": "INVALID", "latency": "INVALID"}


def test_a_closed_loop_does_not_hammer_a_server_that_is_gone(tmp_path, weir):
    put_identity(tmp_path / "models", "quick")
    for mode in ([], ["--sync"], ["--io-threads", 2]):
        running = Server(tmp_path, "--model-repository", tmp_path / "models").wait()
        thread = after_requests(running, 20, running.process.kill)
        level, = weir.json("load", *at(running, "quick"), "--concurrency-range", 4, "--duration", 2, "--warmup", 0, *mode, status=3)["levels"]
        thread.join()
        running.process.wait(10)
        assert 4 <= level["errors"]["connection"] <= 4 * 30 and whole(level), (mode, level["errors"])  # 26 each in 2 s, and what was out


def test_perf_analyzers_command_line_runs(weir, server, tmp_path):
    done = weir.run("load", *at(server, "quick", "grpc"), "-b", 2, "--concurrency-range", "1:2:1", "--async", "--measurement-mode", "count_windows",
                    "--measurement-request-count", 60, "-s", 50, "-r", 5, "--percentile=95", "-v", "-f", tmp_path / "out.csv", status=None)
    assert done.returncode in (0, 3)
    assert "fixed before the run" in done.stderr.decode()
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines[0].startswith("Concurrency,Inferences/Second,Client Send,Network+Server Send/Recv,Server Queue,Server Compute Input")
    assert len(lines) == 3 and lines[1].startswith("1,")


def test_answers_are_held_against_what_is_expected(weir, server, tmp_path):
    data = tmp_path / "data.json"
    common = [*at(server, "quick"), "--input-data", data, "--check", "--request-count", 100, "--warmup", 0]
    data.write_text(json.dumps(ONE_ROW | {"validation_data": [{"y": [1] * 16}, {"y": [2] * 16}]}))
    level, = weir.json("load", *common, status=None)["levels"]
    assert level["answered"] == 100
    data.write_text(json.dumps(ONE_ROW | {"validation_data": [{"y": [1] * 16}, {"y": [3] * 16}]}))
    level, = weir.json("load", *common, status=3)["levels"]
    assert level["errors"] == {"wrong_answer": 50}


def test_every_kind_of_input_is_made(weir, server):
    for model, more in (("texts", ["--string-length", 10]), ("texts", ["--string-data", "a"]), ("free", ["--shape", "x:2,3"]), ("quick", ["-z", "-b", 4])):
        level, = weir.json("load", *at(server, model, "grpc"), *more, "--request-count", 40, "--warmup", 0, status=None)["levels"]
        assert level["answered"] == 40, (model, level)
    assert b"--shape" in weir.run("load", *at(server, "free"), status=2).stderr


def test_a_latency_threshold_gets_an_answer(weir, server):
    common = [*at(server, "five"), "--concurrency-range", 1, "--request-count", 200, "--warmup", 0, "--percentile", 90]
    level, = weir.json("load", *common, "-l", 500, status=None)["levels"]
    assert level["below_threshold"] == "yes"
    level, = weir.json("load", *common, "-l", 1, status=3)["levels"]
    assert level["below_threshold"] == "no"


def test_pictures_are_sent_in_every_payload(weir, made, tmp_path):
    model, pictures = made
    running = Server(tmp_path, "--model-repository", model).wait()
    for payload in ("tensor", "pixels", "image"):
        level, = weir.json("load", *at(running, "tiny"), "--data", pictures, "--payload", payload, "-b", 4, "--request-count", 20, "--warmup", 0,
                           status=None)["levels"]
        assert level["answered"] == 20, (payload, level)
    running.stop()


def test_pictures_are_held_against_the_answers_of_a_run(weir, made, tmp_path):
    model, pictures = made
    answers = tmp_path / "answers.csv"
    weir.run("run", model, pictures, "--answers", answers)
    running = Server(tmp_path, "--model-repository", model.parent).wait()
    common = [*at(running, "tiny"), "--data", pictures, "-b", 4, "--request-count", 20, "--warmup", 0]
    for payload in ("tensor", "pixels", "image"):
        level, = weir.json("load", *common, "--payload", payload, "--check", answers, status=None)["levels"]
        assert level["answered"] == 20, (payload, level)
    level, = weir.json("load", *common, "--check", model, status=None)["levels"]
    assert level["answered"] == 20
    lines = answers.read_text().splitlines()
    wrong = [lines[0]] + [",".join([*line.split(",")[:3], "999", *line.split(",")[4:]]) for line in lines[1:]]
    answers.write_text("\n".join(wrong) + "\n")
    result = weir.json("load", *common, "--check", answers, status=3)["levels"][0]
    assert result["errors"] == {"wrong_answer": 20} and "999 was expected" in result["error_messages"][0]
    answers.write_text(lines[0] + "\n")
    assert b"has no answer for" in weir.run("load", *common, "--check", answers, status=2).stderr
    renamed = [line.split(",") for line in lines[1:]]
    twice = [",".join([f"{where}/{pathlib.PurePath(row[0]).name}", *row[1:3], cls, *row[4:]]) for row in renamed for where, cls in (("a", "1"), ("b", "2"))]
    answers.write_text("\n".join([lines[0], *twice]) + "\n")
    assert b"several classes" in weir.run("load", *common, "--check", answers, status=2).stderr
    running.stop()


@pytest.mark.timing
@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_the_generator_is_compared_with_its_ceiling(weir, server, protocol):
    result = weir.json("load", *at(server, "quick", protocol), "--request-count", 50, "--warmup", 0, "--calibrate", status=None)
    assert result["generator"]["ceiling_per_s"] > result["levels"][0]["throughput_per_s"] and result["generator"]["floor_ms"] > 0


@pytest.mark.timing
def test_an_idle_generator_is_not_compared(weir, server):
    result = weir.json("load", *at(server, "five"), "--request-count", 50, "--warmup", 0, status=None)
    assert "generator" not in result


def keeps_the_rules(weir, result, tmp_path):
    file = tmp_path / "result.json"
    file.write_text(json.dumps(result))
    return b"it keeps the rules" in weir.run("load", "--validate", file, status=None).stdout


@pytest.mark.parametrize("protocol", ["http", "grpc"])
@pytest.mark.parametrize("split", ["statistics", "response"])
def test_the_parts_of_a_response_time_add_up(weir, server, tmp_path, protocol, split):
    result = weir.json("load", *at(server, "five", protocol), "--split", split, "--request-count", 120, "--percentile", 90, "--warmup", 0, status=None)
    level, = result["levels"]
    assert level["answered"] == 120
    assert sum(level["split_ms"].values()) == pytest.approx(level["response_ms"]["mean"], rel=1e-6)
    assert level["split_ms"]["compute_infer"] >= 5
    assert level["split_ms"].get("client_send", 0) == level.get("client_send_ms", {"mean": 0})["mean"]
    assert ("client_send" in level["split_ms"]) == (protocol == "http")
    assert keeps_the_rules(weir, result, tmp_path)
    assert ("receive" in level["split_ms"]) == ("slowest" in level) == (split == "response")
    if split == "response":
        slowest = level["slowest"]
        assert slowest["above_percentile"] == 90 and slowest["n"] == 12
        assert sum(slowest["split_ms"].values()) == pytest.approx(slowest["mean_ms"], rel=1e-6)
        assert level["response_ms"]["mean"] <= slowest["mean_ms"] <= level["response_ms"]["max"]
        slowest["split_ms"]["queue"] += 1
        assert not keeps_the_rules(weir, result, tmp_path)


@pytest.mark.timing
@pytest.mark.parametrize("protocol, more", [("http", []), ("grpc", []), ("http", ["--sync"]), ("grpc", ["--check"])])
def test_the_slow_ones_say_where_they_spent_their_time(weir, server, tmp_path, protocol, more):
    # Ten at once to a model that takes 5 ms for each: the last waits for nine others.
    (tmp_path / "gaps").write_text("\n".join(["200000"] + ["0"] * 9))
    (tmp_path / "data.json").write_text(json.dumps(ONE_ROW | {"validation_data": [{"y": [1] * 16}, {"y": [2] * 16}]}))
    load = ["--concurrency-range", 10] if more == ["--sync"] else ["--request-intervals", tmp_path / "gaps"]
    data = ["--input-data", tmp_path / "data.json"] if more == ["--check"] else []

    result = weir.json("load", *at(server, "five", protocol), *load, "--split", "response", "--request-count", 100, "--percentile", 90, "--warmup", 0,
                       *data, *more, status=None)
    level, = result["levels"]
    assert level["answered"] == 100 and keeps_the_rules(weir, result, tmp_path)
    parts = level["slowest"]["split_ms"]
    assert parts["queue"] >= 30 and parts["queue"] >= level["split_ms"]["queue"] and parts["queue"] == max(parts.values())


def test_durations_are_asked_of_who_tells_them(weir, server, made):
    assert b"--split" in weir.run("load", made[0], "--split", "response", status=2).stderr
    assert b"--split" in weir.run("load", "--endpoint", "http://127.0.0.1:1/", "--split", "response", status=2).stderr
    text, = weir.run("load", *at(server, "five"), "--split", "response", "--request-count", 120, "--percentile", 90, "--warmup", 0,
                     status=None).stdout.decode().split("slowest ")[1:]
    assert text.lstrip().startswith("the 12 above p90 took")


def test_a_model_of_this_process_is_put_under_load(weir, made):
    result = weir.json("load", made[0], "--concurrency-range", "1,2", "-b", 2, "--request-count", 50, "--warmup", 0, status=None)
    assert result["protocol"] == "in-process"
    assert [level["answered"] for level in result["levels"]] == [50, 50]


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_tensors_can_stay_in_shared_memory(weir, tmp_path, protocol):
    put_identity(tmp_path / "models", "quick")
    running = Server(tmp_path, "--model-repository", tmp_path / "models", "--allow-client-shm").wait()
    running.grpc = running.facts["grpc"]["url"].removeprefix("grpc://")
    level, = weir.json("load", *at(running, "quick", protocol), "-b", 4, "--shared-memory", "system", "--request-count", 200, "--warmup", 0, status=None)["levels"]
    assert level["answered"] == 200, level
    assert running.json("GET", "/v2/systemsharedmemory/status") == []
    assert not list(pathlib.Path("/dev/shm").glob("weir-load-*"))
    running.stop()


def test_shared_memory_that_the_server_refuses_is_said(weir, server):
    assert b"--shared-memory" in weir.run("load", *at(server, "quick"), "--shared-memory", "system", status=2).stderr


@pytest.mark.timing
def test_a_rate_by_count_leaves_nothing_unsent(weir, server):
    level, = weir.json("load", *at(server, "five"), "--request-rate-range", 150, "--request-count", 150, "--warmup", 0, status=None)["levels"]
    assert level["planned"] == level["answered"] == 150 and level["unsent"] == 0
    assert level["measured_s"] > 149 / 150 - 0.001  # from the first of them to the last, which may be late and never early
    assert 0 < level["throughput_per_s"] < 152


def test_every_request_can_be_kept(weir, server, tmp_path):
    out = tmp_path / "samples.bin"
    result = weir.json("load", *at(server, "quick"), "--concurrency-range", "1,2", "--request-count", 100, "--warmup", 0, "--samples", out, status=None)
    data = out.read_bytes()
    magic, version, size, records, header = struct.unpack("<8sIIQQ", data[:32])
    assert (magic, version, size, records) == (b"weirsmpl", 1, 48, 200)
    assert json.loads(data[32:header])["levels"] == ["concurrency 1", "concurrency 2"]
    rows = [struct.unpack("<qqqqIIII", data[header + 48 * i:header + 48 * (i + 1)]) for i in range(records)]
    assert all(planned <= sent <= done and outcome == 0 for planned, sent, _, done, _, _, _, outcome in rows)
    assert [row[5] for row in rows] == [0] * 100 + [1] * 100
    mean = sum(row[3] - row[0] for row in rows[:100]) / 100 / 1e6
    assert mean == pytest.approx(result["levels"][0]["response_ms"]["mean"], rel=1e-6)


def test_a_stored_result_is_held_against_the_rules(weir, server, tmp_path):
    out = tmp_path / "result.json"
    weir.run("load", *at(server, "quick"), "--request-count", 200, "--warmup", 0, "--json", out, status=None)
    weir.run("load", "--validate", out)
    result = json.loads(out.read_text())
    result["levels"][0]["answered"] += 1
    out.write_text(json.dumps(result))
    assert b"counts" in weir.run("load", "--validate", out, status=3).stdout
    out.write_text("{}")
    assert b"schema_version" in weir.run("load", "--validate", out, status=2).stderr


@pytest.mark.timing
def test_the_peak_is_searched_with_runs_that_are_told(server, tmp_path):
    out, said = tmp_path / "peak.json", tmp_path / "said.txt"
    with open(said, "wb") as log:
        search = subprocess.Popen([conftest.PROGRAM, "load", *at(server, "five"), "--find-peak", "--request-rate-range", "120", "-l", "40", "--percentile", "50",
                                   "--duration", "0.2", "--warmup", "0", "--json", out], stdout=subprocess.DEVNULL, stderr=log)
        try:
            status = search.wait(60)
        finally:
            search.kill()
            search.wait()
    result = json.loads(out.read_text())
    assert b"trying 120/s" in said.read_bytes()
    peak = result["peak"]
    assert status == (0 if peak["confirmed"] else 3)
    assert len(result["levels"]) == peak["runs"] > 0
    if peak.get("spoiled"):  # the run at fault says why
        assert any(level["verdict"]["latency"] != "VALID" and level["reasons"] for level in result["levels"])
    else:
        assert 60 < peak["request_rate"] < 300  # the model takes 5 ms; a short run may end before its queue is long


def test_an_error_that_calls_itself_fine_is_none(weir, tmp_path):
    class Liar(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        METADATA = {"name": "m", "versions": ["1"], "platform": "x", "inputs": [{"name": "x", "datatype": "FP32", "shape": [4]}],
                    "outputs": [{"name": "y", "datatype": "FP32", "shape": [4]}]}

        def answer(self, body, status=200):
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            known = self.path.rstrip("/").endswith("/m")
            self.answer(json.dumps(self.METADATA if known else {"error": "no"}).encode(), 200 if known else 404)

        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.answer(b'{"error": "boom"}')

        def log_message(self, *_):
            pass

    liar = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Liar)
    threading.Thread(target=liar.serve_forever, daemon=True).start()
    there = ["-m", "m", "-u", f"127.0.0.1:{liar.server_port}"]
    level, = weir.json("load", *there, "--request-count", 20, "--warmup", 0, status=3)["levels"]
    assert b"weir_durations" in weir.run("load", *there, "--split", "response", status=2).stderr  # nor does it tell those
    liar.shutdown()
    assert level["errors"] == {"server": 20}
    assert any("boom" in words for words in level["error_messages"])


@pytest.mark.parametrize("scenario, more, metric", [("single-stream", [], "p90"), ("multi-stream", [], "p99"), ("offline", ["--depth", 8], "samples"),
                                                    ("server", ["--target-rate", 100], "scheduled")])
def test_mlperfs_scenarios_say_what_is_missing(weir, server, scenario, more, metric):
    level, = weir.json("load", *at(server, "quick"), "--scenario", scenario, *more, "--duration", 0.5, "--warmup", 0.1, status=None)["levels"]
    assert not level["mlperf"]["valid"]
    assert any("600" in words for words in level["mlperf"]["shortfalls"])
    assert metric in level["mlperf"]["metric"].lower()


def test_ctrl_c_keeps_what_there_is(server, tmp_path):
    out = tmp_path / "out.json"
    process = subprocess.Popen([conftest.PROGRAM, "load", *at(server, "quick"), "--concurrency-range", "2", "--duration", "60", "--warmup", "0", "--json", out],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after_requests(server, 100, lambda: process.send_signal(signal.SIGINT)).join()
    assert process.wait(60) == 130
    result = json.loads(out.read_text())
    assert result["interrupted"] and result["levels"][0]["answered"] > 0 and whole(result["levels"][0])


@pytest.mark.parametrize("arguments, words", [
    (["-m", "quick", "-u", "127.0.0.1:1"], b"127.0.0.1:1"),
    (["--concurrency-range", "0", "-m", "quick"], b"above 0"),
    (["--concurrency-range", "4:1", "-m", "quick"], b"goes up"),
    (["--concurrency-range", "2", "--request-rate-range", "5", "-m", "quick"], b"leave one of them out"),
    (["--async", "--sync", "-m", "quick"], b"contradict"),
    ([], b"-m NAME"),
    (["-m", "quick", "--request-rate-range", "1:1e300:2x"], b"at most"),
    (["-m", "quick", "-l", "nan"], b"not a number"),
    (["-m", "quick", "--max-threads", "4"], b"--io-threads"),
    (["-m", "quick", "--depth", "4"], b"--scenario offline"),
    (["-m", "quick", "--scenario", "server", "--target-rate", "9", "--depth", "4"], b"--scenario offline"),
    (["-m", "quick", "--scenario", "offline", "--depth", "4", "--target-rate", "9"], b"--scenario server"),
    (["-m", "quick", "--scenario", "single-stream", "--sync"], b"--sync"),
    (["-m", "quick", "--scenario", "single-stream", "--max-in-flight", "4"], b"--max-in-flight"),
    (["-m", "quick", "--scenario", "single-stream", "--async", "--sync"], b"contradict"),
    (["-m", "quick", "--scenario", "single-stream", "--body", "x"], b"--endpoint"),
    (["-m", "quick", "--scenario", "single-stream", "--recipe", "x"], b"--data"),
    (["-m", "quick", "--scenario", "single-stream", "--repeats", "3"], b"one run"),
    (["-m", "quick", "--scenario", "single-stream", "--concurrency-range", "3"], b"says what is played"),
    (["-m", "quick", "--find-peak", "-l", "5", "--request-intervals", "x"], b"--request-intervals"),
    (["-m", "quick", "--find-peak", "-l", "5", "--request-rate-range", "1,2"], b"several"),
    (["-m", "quick", "--find-peak", "-l", "5", "--request-rate-range", "1", "--request-count", "9"], b"--request-count"),
    (["-m", "quick", "--find-peak", "--request-rate-range", "1"], b"--latency-threshold"),
    (["-m", "quick", "--find-peak", "-l", "5"], b"--request-rate-range"),
    (["-m", "quick", "--data", "x", "--input-data", "zero"], b"--input-data"),
    (["-m", "quick", "--data", "x", "--shape", "x:1"], b"--shape"),
    (["-m", "quick", "--data", "x", "-z"], b"--zero-input"),
    (["-m", "quick", "--data", "x", "--string-data", "a"], b"--string-data"),
    (["-m", "quick", "--data", "x", "--string-length", "5"], b"--string-length"),
    (["-m", "quick", "--request-distribution", "poisson"], b"--request-rate-range"),
    (["http://127.0.0.1:1/m", "-i", "grpc"], b"-i"),
    (["--endpoint", "http://127.0.0.1:1/", "-i", "grpc"], b"-i is of models"),
    (["--endpoint", "http://127.0.0.1:1/", "--pool", "4"], b"--pool is of models"),
    (["--endpoint", "http://127.0.0.1:1/", "--string-length", "4"], b"--string-length is of models"),
    (["--endpoint", "http://127.0.0.1:1/", "--calibrate"], b"--calibrate is of models"),
    (["--validate", "x", "-m", "quick"], b"--validate runs nothing"),
    (["--validate", "x", "-f", "y"], b"--csv says nothing here: --validate runs nothing"),
    (["-m", "quick", "-r", "3", "--repeats", "2"], b"--repeats says how many"),
    (["-m", "quick", "--duration", "2", "--measurement-mode", "count_windows"], b"the length is said already"),
    (["-m", "quick", "--scenario", "single-stream", "-s", "3"], b"one run"),
    (["-m", "quick", "-z", "--string-length", "3"], b"--string-length says nothing"),
    (["-m", "quick", "-z", "--pool", "3"], b"--pool says nothing"),
    (["-m", "quick", "-f", "/nowhere/x.csv"], b"-f /nowhere/x.csv: there is no folder /nowhere"),
    (["-m", "quick", "-f", "x", "--samples", "x"], b"both name x"),
    (["http://127.0.0.1:1/m", "-x", "3"], b"/versions/3"),
])
def test_what_makes_no_run_is_said(weir, arguments, words):
    done = weir.run("load", *arguments, status=None)
    assert done.returncode in (1, 2)
    assert words in done.stderr


def test_an_unknown_model_is_named(weir, server):
    assert b"nobody" in weir.run("load", *at(server, "nobody"), status=2).stderr


def test_pictures_of_a_model_in_the_process_need_no_recipe_flag(weir, made):
    model, pictures = made
    result = weir.json("load", model, "--data", pictures, "--request-count", 20, status=None)  # a busy machine spoils the claim
    assert result["levels"][0]["answered"] >= 20 and result["levels"][0]["failed"] == 0
    bare = weir.json("load", model, "--data", pictures, "--recipe", model / "recipe.yaml", "--request-count", 20, status=None)
    assert bare["levels"][0]["failed"] == 0
