"""Agents on several hosts, and the network between them."""
import signal
import subprocess

import pytest

import conftest
from test_schemas import check

TOKEN = "0123456789abcdef0123456789abcdef"


class Agent:
    """weir agent, listening on loopback at a port of its own."""

    def __init__(self, *arguments, listen="127.0.0.1:0", **kwargs):
        self.process = subprocess.Popen([conftest.PROGRAM, "agent", "--listen", listen, *map(str, arguments)],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kwargs)
        self.address = self.process.stdout.readline().removeprefix("listening at ").strip()
        assert self.address, self.process.communicate()[1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        self.process.communicate(timeout=30)


@pytest.fixture
def token(tmp_path):
    file = tmp_path / "token"
    file.write_text(TOKEN + "\n")
    return file


def test_another_token_is_refused(weir, token, tmp_path):
    other = tmp_path / "other"
    other.write_text("f" * 32)
    with Agent("--token-file", token) as agent:
        common = ("probe", "network", agent.address, "--seconds", 0.05, "--streams", 1, "--message-bytes", 64)
        assert b"--token-file" in weir.run(*common, "--token-file", other, status=2).stderr
        weir.run(*common, "--token-file", token, status=None)


def test_beyond_this_machine_an_agent_wants_a_token(weir, tmp_path):
    assert b"--token-file" in weir.run("agent", "--listen", "0.0.0.0:0", status=2).stderr
    assert b"--token-file" in weir.run("probe", "network", "192.0.2.1:7", status=2).stderr
    short = tmp_path / "short"
    short.write_text("secret")
    assert b"at least 16 characters" in weir.run("agent", "--listen", "0.0.0.0:0", "--token-file", short, status=2).stderr
    assert b"--listen" in weir.run("agent", status=2).stderr


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
