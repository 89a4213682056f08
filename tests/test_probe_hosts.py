"""weir probe storage on several hosts: one order, one barrier, and the loss of a host."""
import contextlib
import json
import os
import shutil
import subprocess
import time

import pytest

import conftest
from test_cluster import TOKEN, Agent
from test_schemas import check


HOSTS = ("probe", "storage", "--step-ms", 1, "--batch", 4, "--threads", 2)


def probe_on(weir, agents, folder, *arguments, status=None):
    hosts = ",".join(agent.address for agent in agents)
    result = weir.json(*HOSTS, folder, "--hosts", hosts, "--steps", 40, *arguments, status=status)
    check(result, "probe-storage")
    return result


def test_two_hosts_read_one_order(weir, tmp_path):
    """Each epoch of both hosts together has every sample once; the set is written by one and removed."""
    with Agent("--allow-path", tmp_path) as first, Agent("--allow-path", tmp_path) as second:
        result = probe_on(weir, (first, second), tmp_path, "--samples", 40, "--sample-bytes", 5000, "--repeats", 2, "--limit-s", 3)
        assert result["epochs"]["whole"] >= 2 * (40 * 8 // 40 - 1)  # 40 steps of 8 samples of both, twice
        assert result["epochs"]["each_once"] == result["epochs"]["whole"]
        assert [host["rank"] for host in result["hosts"]] == [0, 1]
        assert [host["name"] for host in result["hosts"]] == [first.address, second.address]
        for host in result["hosts"]:
            assert host["ended_s"] > 0 and host["samples_per_s"] > 0 and host["barrier_us"]["count"] == 80
        share = result["hosts"][1]["share"]  # of what the first host reads: near 0, or below, where other programs take the CPU
        assert share["low"] <= share["value"] <= share["high"] and share["value"] < 3
        assert sum(run["bytes_asked"] for run in result["runs"]) >= 2 * 40 * 8 * 5000
        assert not list(tmp_path.iterdir())
        own = tmp_path / "own"
        own.mkdir()
        for i in range(10):
            (own / f"{i}").write_bytes(b"x" * 3000)
        assert probe_on(weir, (first, second), tmp_path, "--set", own, "--repeats", 1, "--limit-s", 1)["set"]["samples"] == 10


def test_a_lost_host_is_named_and_the_run_is_invalid(weir, tmp_path):
    with Agent("--allow-path", tmp_path) as first, Agent("--allow-path", tmp_path) as second:
        command = [conftest.PROGRAM, *map(str, HOSTS), str(tmp_path), "--source", "memory", "--samples", "50", "--repeats", "1", "--limit-s", "40",
                   "--steps", "1000000", "--hosts", f"{first.address},{second.address}", "--json", str(tmp_path / "result.json")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            time.sleep(9)  # the rates by number of hosts take 6.4 s; then the accelerators train
            assert process.poll() is None, process.communicate()[1]
            second.process.kill()
            killed = time.monotonic()
            output, _ = process.communicate(timeout=30)
            took = time.monotonic() - killed
        assert took < 5
        assert process.returncode == 3
        result = json.loads((tmp_path / "result.json").read_text())
        check(result, "probe-storage")
        assert result["verdict"] == "INVALID" and "host-lost" in [reason["reason"] for reason in result["reasons"]]
        assert second.address in output and "lost" in result["hosts"][1] and "lost" not in result["hosts"][0]
        assert result["runs"] and result["hosts"][0]["samples_per_s"] > 0


def until(condition, seconds=30):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("killed", ["agent", "probe"])
def test_after_a_kill_the_set_is_removed_and_nothing_else(weir, tmp_path, killed):
    """An agent removes the set as soon as the probe is gone; what a killed agent left is removed by the next probe."""
    (tmp_path / "own.bin").write_bytes(b"x")
    foreign = tmp_path / "weir-probe.0123456789abcdef.set"
    (foreign / "d0000").mkdir(parents=True)
    (foreign / "d0000/s00000000.bin").write_bytes(b"y")
    foreign.with_suffix(".owner").write_text("weir probe storage\nhost elsewhere\nboot 1\npid 1\n")

    def written():
        return [folder for folder in tmp_path.glob("*.set") if folder != foreign and list(folder.glob("d0000/*"))]

    with Agent("--allow-path", tmp_path) as first, Agent("--allow-path", tmp_path) as second:
        with subprocess.Popen([conftest.PROGRAM, *map(str, HOSTS), tmp_path, "--samples", "2000", "--sample-bytes", "50000", "--max-rate", "5",
                               "--hosts", f"{first.address},{second.address}"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            until(written)
            left, = written()
            (left / "d0000/notes.txt").write_text("of the user")
            (first.process if killed == "agent" else process).kill()
            said = process.communicate(timeout=30)[1]
        if killed == "agent":
            assert process.returncode == 1 and first.address.encode() in said, said
            assert len(list(left.glob("d0000/s*"))) > 0
            with Agent("--allow-path", tmp_path) as again:
                done = weir.run(*HOSTS, tmp_path, "--samples", 20, "--sample-bytes", 1000, "--repeats", 1, "--steps", 20, "--limit-s", 1,
                                "--hosts", f"{again.address},{second.address}", status=None)
            assert done.returncode in (0, 3) and done.stderr.count(b" belongs to a probe on another host") == 1 and bytes(foreign) in done.stderr
        until(lambda: not list(left.glob("d0000/s*")))
    assert {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file()} == {
        "own.bin", f"{foreign.name}/d0000/s00000000.bin", f"{foreign.stem}.owner", f"{left.name}/d0000/notes.txt", f"{left.stem}.owner"}


def test_hosts_refuse_what_one_host_has(weir, tmp_path):
    for arguments, word in ((("--phase", "infer"), b"--phase"), (("--verify",), b"--verify"), (("--format", "tar"), b"--format"), ((tmp_path,), b"PATH")):
        said = weir.run("probe", "storage", tmp_path, "--hosts", "127.0.0.1:9", *arguments, status=2).stderr
        assert word in said and b"one host" in said
    with Agent("--allow-path", tmp_path) as agent:
        missing = weir.run("probe", "storage", tmp_path / "missing", "--hosts", agent.address, status=None)
        assert missing.returncode != 0 and b"missing" in missing.stderr and agent.address.encode() in missing.stderr


@contextlib.contextmanager
def two_namespaces():
    """Yields two namespaces with a link between them, and the address of each."""
    names, links = [f"weir{side}{os.getpid()}" for side in "ab"], [f"wp{side}{os.getpid() % 100000}" for side in "ab"]
    addresses = ["10.79.5.1", "10.79.5.2"]

    def ip(*words, check=True):
        return subprocess.run(["ip", *words], capture_output=True, check=check)

    if shutil.which("ip") is None or ip("netns", "add", names[0], check=False).returncode != 0:
        pytest.skip("network namespaces cannot be made here")
    try:
        ip("netns", "add", names[1])
        ip("link", "add", links[0], "netns", names[0], "type", "veth", "peer", "name", links[1], "netns", names[1])
        for name, link, address in zip(names, links, addresses):
            for words in (("addr", "add", f"{address}/24", "dev", link), ("link", "set", link, "up"), ("link", "set", "lo", "up")):
                ip("-n", name, *words)
        yield list(zip(names, addresses))
    finally:
        for name in names:
            ip("netns", "del", name, check=False)


def test_hosts_in_two_namespaces_read_one_order(tmp_path):
    token = tmp_path / "token"
    token.write_text(TOKEN)
    with two_namespaces() as hosts:
        inside = [["ip", "netns", "exec", name] for name, _ in hosts]
        with contextlib.ExitStack() as stack:
            agents = [stack.enter_context(Agent("--token-file", token, "--allow-path", tmp_path, listen=f"{address}:0", prefix=inside[i])) for i, (_, address) in enumerate(hosts)]
            done = subprocess.run([*inside[0], conftest.PROGRAM, *map(str, HOSTS), tmp_path, "--source", "memory", "--samples", "64", "--sample-bytes", "1000", "--repeats", "1",
                                   "--steps", "300", "--limit-s", "10", "--hosts", ",".join(agent.address for agent in agents), "--token-file", token, "--json", "-"],
                                  capture_output=True, timeout=120, check=False)
        assert done.returncode in (0, 3), done.stderr
        result = json.loads(done.stdout)
    check(result, "probe-storage")
    assert result["epochs"]["each_once"] == result["epochs"]["whole"] > 0
    assert result["barrier_us"]["count"] == 600 and 0 < result["barrier_us"]["p50"] < 50_000
