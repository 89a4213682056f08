"""weir load beside other clients: what it says of a server that is not its own, and what priorities do there."""
import json
import re
import subprocess

import pytest

import conftest
from test_serve import Server, put_identity

PRIORITIES = "dynamic_batching { priority_levels: 2 default_priority_level: 2 default_queue_policy { max_queue_size: 4096 } }"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shared")
    put_identity(folder / "models", "two", batch=1, engine="emulated:base=2ms", more="dynamic_batching { default_queue_policy { max_queue_size: 4096 } }")
    put_identity(folder / "models", "ranked", batch=1, engine="emulated:base=5ms", more=PRIORITIES)
    running = Server(folder, "--model-repository", folder / "models").wait()
    running.grpc = running.facts["grpc"]["url"].removeprefix("grpc://")
    yield running
    running.stop()


def at(server, model, protocol="http"):
    return ["-m", model, "-i", protocol, "-u", server.http if protocol == "http" else server.grpc]


def begin(*arguments):
    return subprocess.Popen([conftest.PROGRAM, "load", *map(str, arguments), "--json", "-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def end(process):
    out, said = process.communicate(timeout=120)
    assert process.returncode in (0, 3), said
    assert b"Sanitizer" not in said, said
    level, = json.loads(out)["levels"]
    return level


def reasons(level):
    return {each["reason"]: each for each in level["reasons"]}


def times(value):
    """Every figure of time in a level, however deep."""
    if isinstance(value, dict):
        return [each for inner in value.values() for each in times(inner)]
    return [value] if isinstance(value, (int, float)) else []


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_server_of_ones_own_counts_what_was_sent(weir, server, tmp_path, protocol):
    for more in (["--warmup", 0], ["--warmup", 0.2], ["--warmup", 0, "--repeats", 2]):
        result = weir.json("load", *at(server, "two", protocol), "--concurrency-range", 4, "--request-count", 200, *more, status=None)
        level, = result["levels"]
        assert level["server_requests"]["counted"] >= level["answered"] - 4
        assert level["server_requests"]["others_at_least"] == 0
        assert "server-shared" not in reasons(level) and "split_left_out" not in level
        assert min(level["split_ms"].values()) >= 0 and level["server_ms"]["outside"] >= 0
        (tmp_path / "result.json").write_text(json.dumps(result))
        assert b"it keeps the rules" in weir.run("load", "--validate", tmp_path / "result.json", status=None).stdout


def test_two_at_once_each_say_that_the_server_was_shared(weir, server, tmp_path):
    common = ["--duration", 3, "--warmup", 0.5]
    other = begin(*at(server, "two", "grpc"), "--concurrency-range", 8, "--duration", 8, "--warmup", 0)
    done = weir.run("load", *at(server, "two"), "--concurrency-range", 2, *common, "--json", tmp_path / "result.json", "-f", tmp_path / "table.csv", status=3)
    result = json.loads((tmp_path / "result.json").read_text())
    end(other)
    level, = result["levels"]
    requests = level["server_requests"]
    # Its eight places to our two: four of five requests. Whatever the machine does, more than the half.
    assert requests["others_at_least"] == requests["counted"] - requests["ours_at_most"] > requests["counted"] / 2
    assert level["verdict"] == {"throughput": "INVALID", "latency": "INVALID"}
    assert str(requests["others_at_least"]) in reasons(level)["server-shared"]["evidence"]
    assert "split_ms" not in level and "server_ms" not in level
    assert "--split response" in level["split_left_out"]
    assert min(times({name: level[name] for name in level if name.endswith("_ms")})) >= 0
    said = done.stdout.decode()
    assert "server-shared" in said and "left out" in said and not re.search(r" -[0-9.]+ (ms|us|µs|s)\b", said)
    columns = (tmp_path / "table.csv").read_text().splitlines()[1].split(",")
    assert columns[3:8] == [""] * 5, "what others' requests took is no column of ours"
    assert b"it keeps the rules" in weir.run("load", "--validate", tmp_path / "result.json", status=None).stdout


def test_what_each_response_tells_is_of_our_requests_alone(weir, server):
    other = begin(*at(server, "two"), "--concurrency-range", 8, "--duration", 6, "--warmup", 0)
    level, = weir.json("load", *at(server, "two"), "--concurrency-range", 2, "--split", "response", "--request-count", 200, "--warmup", 0.3, status=3)["levels"]
    other.terminate()
    other.communicate(timeout=60)
    assert "server-shared" in reasons(level)
    assert sum(level["split_ms"].values()) == pytest.approx(level["response_ms"]["mean"], rel=1e-6)
    assert min(level["split_ms"].values()) >= 0 and min(level["slowest"]["split_ms"].values() if "slowest" in level else [0]) >= 0
    assert level["split_ms"]["queue"] > 2, "it waited for the others"


@pytest.mark.timing
@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_the_higher_priority_goes_first(server, protocol):
    """One engine, always busy: while the higher priority wants it, the lower one waits."""
    low = begin(*at(server, "ranked", protocol), "--concurrency-range", 4, "--priority", 2, "--duration", 9, "--warmup", 0)
    high = begin(*at(server, "ranked", protocol), "--concurrency-range", 4, "--priority", 1, "--duration", 2, "--warmup", 0)
    high, low = end(high), end(low)
    assert low["response_ms"]["max"] > 1000 > 5 * high["response_ms"]["p90"], (high["response_ms"], low["response_ms"])


def test_a_priority_that_says_nothing_is_refused(weir, server, made):
    for protocol in ("http", "grpc"):
        said = weir.run("load", *at(server, "two", protocol), "--priority", 1, status=2).stderr.decode()
        assert "--priority 1: two at" in said and "priority_levels" in said
        assert "are 1, the highest, to 2" in weir.run("load", *at(server, "ranked", protocol), "--priority", 3, status=2).stderr.decode()
    assert b"--priority" in weir.run("load", made[0], "--priority", 1, status=2).stderr
    assert b"--priority is of models" in weir.run("load", "--endpoint", "http://127.0.0.1:1/", "--priority", 1, status=2).stderr


@pytest.mark.parametrize("flags, named", [
    (["-r", 5], "-r has no effect"),
    (["-s", 50], "-s has no effect"),
    (["-p", 500], "-p has no effect"),
    (["-r", 5, "-s", 50, "-p", 500], "-r, -s, -p have no effect"),
])
@pytest.mark.parametrize("length", [["--duration", 0.3], ["--request-count", 50]])
def test_perf_analyzers_trials_are_noted_beside_a_length(weir, server, flags, named, length):
    done = weir.run("load", *at(server, "two"), *length, *flags, "--warmup", 0, status=None)
    assert done.returncode in (0, 3)
    said = done.stderr.decode()
    assert named in said and "played once" in said, said
    if "-p" in flags:
        assert length[0] in said
