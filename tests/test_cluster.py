"""Agents on several hosts: load, feed, network, and the loss of a host."""
import json
import os
import pathlib
import signal
import subprocess
import time

import pytest

import conftest
from test_schemas import check
from test_serve import Server, put_identity

TOKEN = "0123456789abcdef0123456789abcdef"


class Agent:
    """weir agent, listening on loopback at a port of its own."""

    def __init__(self, *arguments, listen="127.0.0.1:0", prefix=(), **kwargs):
        self.process = subprocess.Popen([*prefix, conftest.PROGRAM, "agent", "--listen", listen, *map(str, arguments)],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kwargs)
        self.address = self.process.stdout.readline().removeprefix("listening at ").strip()
        assert self.address, self.process.communicate()[1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        self.process.communicate(timeout=30)


class ServerUrl(str):
    """The URL of a model, and the process that serves it."""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cluster")
    put_identity(folder / "models", "five", batch=1, engine="emulated:base=5ms", more="dynamic_batching { default_queue_policy { max_queue_size: 4096 } }")
    running = Server(folder, "--model-repository", folder / "models").wait()
    url = ServerUrl(f"http://{running.http}/five")
    url.pid = running.process.pid
    yield url
    running.stop()


@pytest.fixture
def token(tmp_path):
    file = tmp_path / "token"
    file.write_text(TOKEN + "\n")
    return file


def reasons(level):
    return {each["reason"]: each["evidence"] for each in level["reasons"]}


def test_two_generators_are_one_result(weir, server):
    with Agent() as one, Agent() as two:
        hosts = f"{one.address},{two.address}"
        result = weir.json("load", server, "--hosts", hosts, "--request-rate-range", 60, "--duration", 1.5, "--warmup", 0.2, status=None)
        check(result, "load")
        level, = result["levels"]
        assert [host["name"] for host in level["hosts"]] == hosts.split(",")
        assert level["planned"] == sum(host["planned"] for host in level["hosts"]) == 90
        assert abs(level["throughput_per_s"] - sum(host["throughput_per_s"] for host in level["hosts"])) < 1
        assert level["response_ms"]["n"] == sum(host["response_ms"]["n"] for host in level["hosts"])
        assert level["response_ms"]["max"] == max(host["response_ms"]["max"] for host in level["hosts"])
        assert all(0 <= host["clock_error_us"] and abs(host["clock_offset_us"]) <= host["clock_error_us"] for host in level["hosts"])  # one clock
        assert "server-shared" not in reasons(level), reasons(level)
        # The agents wait for the next run.
        closed, = weir.json("load", server, "--hosts", hosts, "--concurrency-range", 3, "--request-count", 31, "--warmup", 0, status=None)["levels"]
        assert closed["planned"] == 31 and sorted(host["planned"] for host in closed["hosts"]) == [15, 16]
        assert b"each needs one at least" in weir.run("load", server, "--hosts", hosts, "--concurrency-range", 1, status=2).stderr


@pytest.mark.timing
def test_two_generators_at_half_the_rate_measure_what_one_does(weir, server):
    common = ("load", server, "--request-rate-range", 60, "--request-distribution", "poisson", "--duration", 4, "--warmup", 0.3)
    with Agent() as one, Agent() as two:
        alone, = weir.json(*common, status=None)["levels"]
        both, = weir.json(*common, "--hosts", f"{one.address},{two.address}", status=None)["levels"]
    assert abs(both["response_ms"]["p50"] / alone["response_ms"]["p50"] - 1) < 0.03


def test_agents_of_this_machine_and_a_watched_server(weir, server):
    level, = weir.json("load", server, "--hosts", "local,local", "--request-rate-range", 40, "--duration", 1, "--warmup", 0.2, "--server-pid", server.pid, status=None)["levels"]
    assert [host["name"].startswith("127.0.0.1:") for host in level["hosts"]] == [True, True]
    assert level["server_resources"]["app_cpu"]["mean"] > 0 and level["server_resources"]["wall_s"] == pytest.approx(1, abs=0.3)
    assert b"--hosts" in weir.run("load", server, "--hosts", "local,127.0.0.1:1", status=2).stderr


def test_a_study_plays_one_load_by_several_clients(weir, server, tmp_path):
    file = tmp_path / "clients.yaml"
    file.write_text(f"""study: clients
server: {{name: five, url: "{server.rsplit('/', 1)[0]}", model: five}}
factors: {{clients: [1, 2]}}
fixed: {{load: {{rate_per_s: 40, distribution: constant}}, batch: 1}}
repeats: 2
trial: {{seconds: 1}}
""")
    weir.run("study", file, "-o", tmp_path / "out", status=None)
    played = [json.loads(line)["record"] for line in (tmp_path / "out/journal.jsonl").read_text().splitlines()[1:]]
    assert {record["factors"]["clients"] for record in played} == {1, 2}
    for record in played:
        assert record["verdict"]["verdict"] in ("VALID", "SUSPECT", "INVALID"), record  # a busy machine spoils the claim, not the trial
        assert ("--hosts local,local" in record["command"]) == (record["factors"]["clients"] == 2)
        assert record["metrics"]["throughput_per_s"] == pytest.approx(40, rel=0.2)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "hung"])
def test_a_lost_host_is_named_and_the_claim_is_invalid(server, tmp_path, how):
    with Agent() as one, Agent() as two:
        out = tmp_path / "load.json"
        with subprocess.Popen([conftest.PROGRAM, "load", server, "--hosts", f"{one.address},{two.address}", "--request-rate-range", "40", "--duration", "60", "--warmup", "0",
                               "--json", out], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as load:
            load.stdout.readline()  # the hosts are there
            time.sleep(1.0)
            two.process.send_signal(how)
            lost_at = time.monotonic()
            named = load.stderr.readline()
            assert time.monotonic() - lost_at < 5
            assert b"lost " + two.address.encode() in named and one.address.encode() not in named
            said = load.communicate(timeout=60)[1]
            assert load.returncode == 3, said
        level, = json.loads(out.read_text())["levels"]
        assert level["verdict"] == {"throughput": "INVALID", "latency": "INVALID"}
        assert two.address in reasons(level)["host-lost"] and one.address not in reasons(level)["host-lost"]
        assert "lost" in level["hosts"][1] and "lost" not in level["hosts"][0]
        assert level["hosts"][0]["answered"] > 0


def test_agents_come_to_a_rendezvous_with_their_launchers_ranks(weir, server, token, tmp_path):
    port = free_port()
    agents = []
    for rank, variables in ((1, {"SLURM_PROCID": "1", "SLURM_NTASKS": "2"}), (0, {"RANK": "0", "WORLD_SIZE": "2"})):
        agents.append(subprocess.Popen([conftest.PROGRAM, "agent", "--rendezvous", f"127.0.0.1:{port}", "--token-file", token, "--name", f"host-{rank}"],
                                       env=os.environ | variables, stderr=subprocess.PIPE))
    level, = weir.json("load", server, "--rendezvous", f"127.0.0.1:{port}", "--agents", 2, "--token-file", token, "--concurrency-range", 2, "--request-count", 20, "--warmup", 0,
                       status=None)["levels"]
    assert [host["name"] for host in level["hosts"]] == ["host-0", "host-1"]
    for agent in agents:
        assert agent.communicate(timeout=30)[1] == b"" and agent.returncode == 0


def test_a_rendezvous_names_the_ranks_that_are_missing(weir, server):
    port = free_port()
    with subprocess.Popen([conftest.PROGRAM, "agent", "--rendezvous", f"127.0.0.1:{port}", "--rank", "1"], stderr=subprocess.PIPE) as agent:
        said = weir.run("load", server, "--rendezvous", f"127.0.0.1:{port}", "--agents", 3, "--join-timeout-s", 1.5, status=1).stderr
        assert b"ranks 0, 2 did not come" in said, said
        agent.communicate(timeout=30)
        assert agent.returncode == 0  # rank 0 said goodbye


def test_another_token_is_refused(weir, server, token, tmp_path):
    other = tmp_path / "other"
    other.write_text("f" * 32)
    with Agent("--token-file", token) as agent:
        assert b"--token-file" in weir.run("load", server, "--hosts", agent.address, "--token-file", other, status=2).stderr
        assert b"--token-file" in weir.run("load", server, "--hosts", agent.address, status=2).stderr  # the user's own is another
        weir.run("load", server, "--hosts", agent.address, "--token-file", token, "--request-count", 5, "--warmup", 0, status=None)


def test_beyond_this_machine_an_agent_wants_a_token(weir, server, tmp_path):
    assert b"--token-file" in weir.run("agent", "--listen", "0.0.0.0:0", status=2).stderr
    assert b"--token-file" in weir.run("probe", "network", "192.0.2.1:7", status=2).stderr
    assert b"--token-file" in weir.run("agent", "--rendezvous", "192.0.2.1:7", status=2).stderr
    assert b"--token-file" in weir.run("load", server, "--hosts", "192.0.2.1:7", status=2).stderr
    short = tmp_path / "short"
    short.write_text("secret")
    assert b"at least 16 characters" in weir.run("agent", "--listen", "0.0.0.0:0", "--token-file", short, status=2).stderr
    assert b"--listen" in weir.run("agent", status=2).stderr


def test_flags_of_one_host_are_refused_with_several(weir, server):
    for more in (("--samples", "x"), ("--split", "response"), ("--scenario", "single-stream")):
        assert b"one host" in weir.run("load", server, "--hosts", "127.0.0.1:1", *more, status=2).stderr
    assert b"--agents" in weir.run("load", server, "--rendezvous", "127.0.0.1:1", status=2).stderr


def agents_of(program):
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = process.read_bytes().split(b"\0")
        except OSError:
            continue
        if str(program).encode() in words and b"--listen" in words:
            found.append(words)
    return found


SSH = """#!/bin/sh
while [ $# -gt 0 ]; do case $1 in -o|-p|-i) shift 2 ;; --) shift; break ;; -*) shift ;; *) break ;; esac; done
case $1 in *unreachable*) echo "ssh: connect to host $1: Connection refused" >&2; exit 255 ;; esac
shift
SSH_CONNECTION="127.0.0.1 1 127.0.0.1 22" exec sh -c "$*"
"""


def test_ssh_starts_the_agents_and_they_end_with_the_run(weir, server, tmp_path):
    ssh = tmp_path / "ssh"
    ssh.write_text(SSH)
    ssh.chmod(0o755)
    program = tmp_path / "weir"
    program.symlink_to(conftest.PROGRAM)  # the agents' command lines tell the folder of this test
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    level, = weir.json("load", server, "--hosts", "user@a,user@b", "--remote-weir", program, "--concurrency-range", 2, "--request-count", 20, "--warmup", 0,
                       status=None, env=environment)["levels"]
    assert len(level["hosts"]) == 2
    deadline = time.monotonic() + 10
    while left := agents_of(program):
        assert time.monotonic() < deadline, left
        time.sleep(0.05)
    said = weir.run("load", server, "--hosts", "unreachable", status=1, env=environment).stderr
    assert b"Connection refused" in said


@pytest.fixture(scope="module")
def pictures(weir, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures") / "set"
    weir.run("prepare", "--make", 64, "--seed", 3, "-o", folder)
    return folder


SMALL = ("--bench", "--width", 32, "--height", 24, "--seed", 5, "--hash")


def test_ranks_of_a_feed_on_several_hosts_are_together_one_rank(weir, pictures, tmp_path):
    one = weir.json("feed", pictures, *SMALL, "--batch", 16, "--epochs", 2)
    with Agent("--allow-path", pictures) as first, Agent("--allow-path", pictures) as second:
        hosts = ("--hosts", f"{first.address},{second.address}")
        both = weir.json("feed", pictures, *SMALL, "--batch", 8, "--epochs", 2, *hosts)
        check(both, "feed")
        assert both["epoch_hashes"] == one["epoch_hashes"] and len(set(one["epoch_hashes"])) == 2
        assert both["world"] == 2 and both["samples"] == one["samples"] == 128 and both["state"] == one["state"]
        assert [host["samples"] for host in both["hosts"]] == [64, 64] and both["meet_ms"] > 0
        # By time all ranks end with the same step, and another run goes on from there with one rank.
        state = tmp_path / "state"
        timed = weir.json("feed", pictures, *SMALL[:-1], "--batch", 8, "--duration", 0.3, "--step", "5ms", "--state", state, *hosts)
        check(timed, "feed")
        assert len({host["samples"] for host in timed["hosts"]}) == 1 and 0 < timed["trainer"]["utilisation_percent"] <= 100
        rest = weir.json("feed", pictures, *SMALL[:-1], "--batch", 16, "--epochs", 1, "--state", state)
        assert rest["samples"] == (64 - timed["state"]["position"] if timed["state"]["position"] < 64 else 64)
        assert b"--bad skip" in weir.run("feed", pictures, *SMALL[:-1], "--bad", "skip", *hosts, status=2).stderr
        missing = weir.run("feed", tmp_path / "none", *SMALL[:-1], *hosts, status=None)
        assert missing.returncode != 0 and first.address.encode() in missing.stderr, missing.stderr


def test_a_feed_takes_its_rank_from_the_launcher(weir, pictures):
    command = ("feed", pictures, *SMALL[:-1], "--batch", 8, "--epochs", 1)
    for variables, rank, world in (({"SLURM_PROCID": "1", "SLURM_NTASKS": "2"}, 1, 2), ({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "4"}, 0, 4),
                                   ({"JOB_COMPLETION_INDEX": "1", "WORLD_SIZE": "2"}, 1, 2)):
        result = weir.json(*command, env=os.environ | variables)
        assert (result["rank"], result["world"], result["samples"]) == (rank, world, 64 // world)
    assert weir.json(*command, "--rank", 0, "--world", 1, env=os.environ | {"RANK": "1", "WORLD_SIZE": "2"})["samples"] == 64
    assert b"WORLD_SIZE" in weir.run(*command, env=os.environ | {"JOB_COMPLETION_INDEX": "1"}, status=2).stderr


def test_a_feed_that_loses_a_host_is_invalid(pictures, tmp_path):
    with Agent("--allow-path", pictures) as one, Agent("--allow-path", pictures) as two:
        out = tmp_path / "feed.json"
        with subprocess.Popen([conftest.PROGRAM, "feed", pictures, *map(str, SMALL[:-1]), "--batch", "8", "--step", "10ms", "--duration", "60", "--hosts", f"{one.address},{two.address}",
                               "--json", out], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as feeding:
            feeding.stdout.readline()  # the hosts are there
            time.sleep(1.0)
            two.process.kill()
            lost_at = time.monotonic()
            assert b"lost " + two.address.encode() in feeding.stderr.readline()
            assert time.monotonic() - lost_at < 5
            said = feeding.communicate(timeout=30)[1]
            assert feeding.returncode == 3, said
    result = json.loads(out.read_text())
    check(result, "feed")
    assert result["verdict"] == "INVALID" and "host-lost" in [each["reason"] for each in result["reasons"]]
    assert "lost" in result["hosts"][1] and result["hosts"][0]["samples"] > 0


def test_probe_network(weir, token):
    with Agent("--token-file", token) as agent:
        result = weir.json("probe", "network", agent.address, "--token-file", token, "--seconds", 0.05, "--streams", "1,2", "--message-bytes", "64,602112", status=None)
    check(result, "probe-network")
    assert [each["bytes"] for each in result["messages"]] == [64, 602112]
    assert result["link"]["interface"] == "lo" and result["link"]["mtu"] > 0
    assert [(each["streams"], each["message_bytes"]) for each in result["throughputs"]][:2] == [(1, 1 << 20), (2, 1 << 20)]
    assert result["throughput_gbit_per_s"] == max(each["gbit_per_s"] for each in result["throughputs"]) > 0
    for message in result["messages"]:
        assert message["latency_us"]["count"] >= 20 and message["images_per_s"] > 0 and message["cpu_ns_per_byte"] > 0
    assert b"64,4096" in weir.run("probe", "network", agent.address, "--message-bytes", "x", status=2).stderr


def free_port():
    import socket
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]
