"""What a stranger or a hostile peer can do to agents and to rank 0: nothing that ends them, or keeps an honest peer waiting."""
import contextlib
import hashlib
import json
import os
import random
import re
import select
import signal
import socket
import struct
import subprocess
import time

import pytest

import conftest
from test_cluster import TOKEN, Agent, free_port, pictures, server, token  # noqa: F401  (fixtures)

KEY = hashlib.sha256(f"weir agent, version 1: {TOKEN}".encode()).hexdigest()
HELLO = {"kind": "hello", "name": "h", "build": "b", "world": 0}
WELCOME = {"kind": "welcome", "rank": 0, "world": 1}


class Peer:
    """The other end of an agents' connection, by openssl's client: it has the token, and says what it likes."""

    def __init__(self, address):
        self.process = subprocess.Popen(
            ["openssl", "s_client", "-quiet", "-connect", address, "-tls1_3", "-ciphersuites", "TLS_AES_128_GCM_SHA256", "-psk", KEY, "-psk_identity", "weir-agent"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.bytes = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def send(self, data):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(data)
            self.process.stdin.flush()

    def say(self, body, block=b""):
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send(b"WA\x01\x00" + struct.pack("<II", len(text), len(block)) + text + block)

    def hear(self, kind=None, seconds=5):
        """The next message, or the next one of that kind; None if the other side has ended the connection."""
        deadline = time.monotonic() + seconds
        while True:
            if len(self.bytes) >= 12:
                text, block = struct.unpack("<II", self.bytes[4:12])
                if len(self.bytes) >= 12 + text + block:
                    body = json.loads(self.bytes[12:12 + text])
                    self.bytes = self.bytes[12 + text + block:]
                    if kind is None or body["kind"] == kind:
                        return body
                    continue
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"no {kind or 'message'} in {seconds} s"
            piece = os.read(self.process.stdout.fileno(), 65536)
            if not piece:
                return None
            self.bytes += piece

    def call(self, number, verb, body=None):
        self.say({"kind": "call", "id": number, "verb": verb, "body": body or {}})
        while (answer := self.hear()) is not None:
            if answer["kind"] in ("answer", "fault"):
                return answer
        return None

    def has_ended(self):
        while self.hear() is not None:
            pass
        return True


@pytest.fixture
def agent(token):
    with Agent("--token-file", token) as running:
        yield running
        assert running.process.poll() is None, running.process.communicate()[1]


def serves(weir, server, token, agent):
    """An honest caller is served within seconds, most of which its own load takes."""
    begin = time.monotonic()
    weir.run("load", server, "--hosts", agent.address, "--token-file", token, "--request-count", 3, "--warmup", 0, status=None)
    assert time.monotonic() - begin < 5


WORDS = [HELLO, WELCOME, {"kind": "refuse", "why": "x"}, {"kind": "ping", "n": 0}, {"kind": "pong", "n": 0, "at": 0}, {"kind": "call", "id": 0, "verb": "load.play", "body": {}},
         {"kind": "answer", "id": 0, "body": {}}, {"kind": "fault", "id": 0, "code": 0, "message": "m"}, {"kind": "stop"}, {"kind": "arrive", "step": 0, "last": False},
         {"kind": "release", "step": 0, "last": False, "waited_ns": 0}, {"kind": "beat"}, {"kind": "bye"}]
VALUES = ["x", -1, 2**32, 2**63, 2**64, 1e300, None, True, [], {}, {"a": [1]}, "\u0000"]


def twisted(word, chance):
    """The word with a member of another type, or without it."""
    word = dict(word)
    key = chance.choice(list(word))
    if chance.random() < 0.3:
        del word[key]
    else:
        word[key] = chance.choice(VALUES)
    return word


def test_an_agent_takes_no_word_out_of_order_or_of_another_type(weir, server, token, agent):
    ending = [[word] for word in WORDS if word["kind"] not in ("welcome", "refuse")]  # before the welcome
    ending += [[{"kind": "welcome", "rank": rank, "world": world}] for rank, world in ((0, 0), (2**32, 2**32 + 1), (-1, 1), (1, 1), (0, 10**9), ("0", 1))]
    ending += [[WELCOME, word] for word in WORDS if word["kind"] in ("hello", "welcome", "refuse", "pong", "answer", "fault", "arrive", "release")]
    ending += [[WELCOME, {"kind": "release", "step": "0", "last": False, "waited_ns": 0}], [WELCOME, {"kind": "stop", "kind2": 1}, {"kind": 7}], [WELCOME, b"[1]"], [WELCOME, b"{"],
               [WELCOME, b"[" * 100_000], [WELCOME, {"kind": "call", "id": 0, "verb": ["x"], "body": {}}]]
    for words in ending:
        with Peer(agent.address) as peer:
            assert peer.hear("hello")
            for word in words:
                peer.say(word)
            assert peer.has_ended(), words
    with Peer(agent.address) as peer:
        peer.hear("hello")
        peer.send(b"WA\x01\x00" + struct.pack("<II", 2**31, 2**31))
        assert peer.has_ended()
    serves(weir, server, token, agent)


def test_calls_out_of_order_are_faults(weir, server, token, agent):
    with Peer(agent.address) as peer:
        peer.hear("hello")
        peer.say(WELCOME)
        task = {"value": 1, "length_ns": 10**9, "requests": 0, "begin_ns": 0, "seed": 1}
        calls = [("load.play", task), ("feed.play", {"begin_ns": 0}), ("storage.play", {"accelerators": 1, "repeat": 0, "hosts": 1, "as_fast": False, "begin_ns": 0}),
                 ("storage.drop", {}), ("network.take", {}), ("exec", {}), ("load.open", {}), ("load.open", {"arguments": "x"}), ("load.open", {"arguments": [1], "state": "", "step_ns": 0, "batch": 1}),
                 ("load.open", {"arguments": ["--help"], "state": "", "step_ns": 0, "batch": 1}), ("feed.open", {}), ("storage.open", {"set_folder": "/etc"}), ("storage.make", {})]
        for number, (verb, body) in enumerate(calls):
            answer = peer.call(number, verb, body)
            assert answer is not None, verb
            assert answer["kind"] == ("answer" if verb in ("storage.drop", "network.take") else "fault"), (verb, answer)
        opened = {"arguments": [server, "--concurrency-range", "1"], "state": "", "step_ns": 0, "batch": 1}
        assert peer.call(100, "load.open", opened)["kind"] == "answer"
        for number, wrong in enumerate(({"value": -1}, {"value": 1e300}, {"value": "x"}, {"length_ns": -1}, {"length_ns": 2**63 - 1}, {"requests": -1}, {"requests": 2**62}, {"begin_ns": 2**63 - 1})):
            assert peer.call(200 + number, "load.play", task | wrong)["kind"] == "fault", wrong
        peer.say({"kind": "call", "id": 5, "verb": "exec", "body": {}})  # a number that was used
        assert peer.has_ended()
    serves(weir, server, token, agent)


@pytest.mark.parametrize("seed", range(2))
def test_an_agent_outlives_any_words(weir, server, token, agent, seed):
    chance = random.Random(seed)
    for _ in range(40):
        with Peer(agent.address) as peer:
            if chance.random() < 0.8:
                peer.say(WELCOME)
            for _ in range(chance.randrange(1, 8)):
                word = chance.choice(WORDS)
                peer.say(twisted(word, chance) if chance.random() < 0.6 else word, chance.randbytes(chance.choice([0, 0, 9])))
            peer.send(chance.randbytes(20))
            assert peer.has_ended() or True
    serves(weir, server, token, agent)


@contextlib.contextmanager
def rendezvous(server, token, agents, tmp_path, *more):
    port = free_port()
    out = tmp_path / "load.json"
    with subprocess.Popen([conftest.PROGRAM, "load", server, "--rendezvous", f"127.0.0.1:{port}", "--agents", str(agents), "--token-file", token, "--concurrency-range", str(agents),
                           "--request-count", "10", "--warmup", "0", "--json", out, *map(str, more)], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as load:
        try:
            deadline = time.monotonic() + 20
            while True:
                with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
                    break
                assert time.monotonic() < deadline and load.poll() is None
                time.sleep(0.02)
            yield load, f"127.0.0.1:{port}", out
        finally:
            load.kill()


def honest(address, token, rank):
    return subprocess.Popen([conftest.PROGRAM, "agent", "--rendezvous", address, "--token-file", token, "--rank", str(rank)], stderr=subprocess.PIPE)


def test_a_rendezvous_goes_on_past_agents_that_say_anything(server, token, tmp_path):
    chance = random.Random(3)
    with rendezvous(server, token, 2, tmp_path) as (load, address, out):
        firsts = [word for word in WORDS if word["kind"] != "hello"]
        firsts += [HELLO | more for more in ({"rank": 2**32}, {"rank": -1}, {"rank": 2}, {"rank": "0"}, {"world": 0.5}, {"world": 7}, {"world": 2**40}, {"name": 7}, {"build": None})]
        firsts += [twisted(HELLO, chance) for _ in range(5)] + [b"[]", b"\xff", b"{" * 1000]
        for first in firsts:
            with Peer(address) as peer:
                peer.say(first)
                if first != {"kind": "hello", "name": "h", "build": "b", "world": 0}:
                    answer = peer.hear()
                    assert answer is None or answer["kind"] in ("refuse", "welcome", "beat"), (first, answer)
                assert load.poll() is None, load.communicate()
        with contextlib.closing(socket.create_connection(address.split(":"))) as plain:
            plain.sendall(b"WA\x01\x00" + struct.pack("<II", 3, 0) + b"{}\n")
        agents = [honest(address, token, rank) for rank in (1, 0)]
        said = load.communicate(timeout=60)
        for each in agents:
            each.communicate(timeout=20)
        assert load.returncode in (0, 3), said
    assert len(json.loads(out.read_text())["levels"][0]["hosts"]) == 2


@pytest.mark.parametrize("wrong", [{"kind": "arrive", "step": "0", "last": False}, {"kind": "arrive", "step": 0, "last": 1}, {"kind": "arrive", "step": 0, "last": False},
                                   {"kind": "pong", "n": 10**9, "at": 0}, {"kind": "answer", "id": 77, "body": {}}, {"kind": "answer", "id": 0, "body": {"ended": [-1]}},
                                   {"kind": "fault", "id": 0, "code": 0, "message": "\u001b[2J" * 100_000}, {"kind": "bye"}, b"{", {"kind": "hello"}], ids=lambda word: str(word)[:40])
def test_rank_0_names_an_agent_that_says_what_it_may_not(server, token, tmp_path, wrong):
    with rendezvous(server, token, 1, tmp_path) as (load, address, _):
        with Peer(address) as peer:
            peer.say(HELLO)
            assert peer.hear("welcome")
            peer.say(wrong)
            with contextlib.suppress(AssertionError):
                while (word := peer.hear(seconds=3)) is not None:
                    if word["kind"] == "ping":
                        peer.say({"kind": "pong", "n": word["n"], "at": 1})
                    elif word["kind"] == "call":
                        peer.say(wrong if isinstance(wrong, bytes) else wrong | ({"id": word["id"]} if wrong["kind"] != "answer" or "ended" in wrong["body"] else {}))
            said = load.communicate(timeout=60)[1]
    assert load.returncode in (1, 2, 3), said
    assert b"\x1b" not in said and len(said) < 10_000


def test_silent_connections_keep_no_agent_out(server, token, tmp_path):
    with rendezvous(server, token, 2, tmp_path) as (load, address, _), contextlib.ExitStack() as open_ones:
        host, port = address.split(":")
        for i in range(400):
            one = open_ones.enter_context(socket.create_connection((host, int(port))))
            if i % 2:
                one.sendall(b"\x16\x03\x01")  # the first bytes of TLS, and no more
        begin = time.monotonic()
        agents = [honest(address, token, rank) for rank in (0, 1)]
        said = load.communicate(timeout=30)
        took = time.monotonic() - begin
        for each in agents:
            each.communicate(timeout=20)
        assert load.returncode in (0, 3), said
        assert took < 5  # the program's start and the load itself are in it


def test_silent_callers_keep_no_caller_out(weir, server, token, agent):
    with contextlib.ExitStack() as open_ones:
        host, port = agent.address.split(":")
        for _ in range(300):
            open_ones.enter_context(socket.create_connection((host, int(port))))
        serves(weir, server, token, agent)


def status_of(pid, key):
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return int(re.search(rf"{key}:\s+(\d+)", file.read()).group(1))


def test_connections_without_the_cookie_cost_nothing(weir, token, agent):
    pid = agent.process.pid
    with Peer(agent.address) as peer:
        peer.hear("hello")
        peer.say(WELCOME)
        port = peer.call(0, "network.open")["body"]["port"]
        before = status_of(pid, "VmRSS")
        most_threads = 0
        for i in range(33_000):
            with socket.socket() as one:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # no TIME_WAIT
                one.connect(("127.0.0.1", port))
                if i % 3 == 0:
                    one.sendall(b"x" * 24)
            if i % 500 == 0:
                peer.say({"kind": "beat"})
                most_threads = max(most_threads, status_of(pid, "Threads"))
        assert most_threads < 20
        assert status_of(pid, "VmRSS") - before < 50 * 1024
        assert peer.call(1, "network.take")["body"] == {"streams": []}
        peer.say({"kind": "bye"})
    begin = time.monotonic()
    weir.run("probe", "network", agent.address, "--token-file", token, "--seconds", 0.05, "--streams", 2, "--message-bytes", 64, status=None)
    assert time.monotonic() - begin < 5


def test_a_caller_opens_no_file_of_the_agents_host(weir, server, pictures, token, tmp_path):
    """Every text option of the verbs, with a path: where it is one, the agent names --allow-path; nothing is opened."""
    canary = tmp_path / "in" / "canary"
    canary.parent.mkdir()
    canary.write_text("secret")
    common = ("--token-file", token)
    with Agent(*common) as closed, Agent(*common, "--allow-path", canary.parent, "--allow-path", pictures) as open_one:
        for arguments in ((server, "--body", canary), ("--endpoint", server, "--body", canary), (server, "--data", canary), (server, "--recipe", canary, "--data", canary), (canary,),
                          (server, "--input-data", canary), (server, "--check", canary), (server, "--request-intervals", canary), (server, "--input-data", "../../../etc/passwd")):
            refused = weir.run("load", *arguments, "--hosts", closed.address, *common, status=None).stderr
            assert b"--allow-path DIR" in refused or b"one host" in refused or b"--body" in refused and b"--endpoint" in refused, (arguments, refused)
            elsewhere = weir.run("load", *(str(x).replace(str(canary), "/etc/passwd") for x in arguments), "--hosts", open_one.address, *common, status=None)
            assert elsewhere.returncode != 0 and b"root:" not in elsewhere.stderr
        assert b"--allow-path" in weir.run("feed", pictures, "--bench", "--hosts", closed.address, *common, status=2).stderr
        assert b"--allow-path" in weir.run("feed", pictures, "--bench", "--cache-folder", tmp_path / "cache", "--cache-bytes", 1000, "--hosts", open_one.address, *common, status=2).stderr
        assert b"--allow-path" in weir.run("feed", "s3://bucket/set", "--bench", "--hosts", open_one.address, *common, status=2).stderr
        assert b"--allow-path" in weir.run("probe", "storage", tmp_path, "--hosts", closed.address, *common, status=2).stderr
        weir.run("feed", pictures, "--bench", "--batch", 8, "--epochs", 1, "--hosts", open_one.address, *common, status=None)
        assert not (tmp_path / "cache").exists()
        with Peer(open_one.address) as peer:  # a set that rank 0 names
            peer.hear("hello")
            peer.say(WELCOME)
            plan = {"arguments": [str(canary.parent), "--batch", "1"], "state": "", "step_ns": 0, "batch": 1}
            for folder in ("/etc", str(tmp_path), str(canary.parent) + "/.."):
                assert "--allow-path" in peer.call(hash(folder) % 1000 + 1000 * len(folder), "storage.open", plan | {"set_folder": folder})["message"]


TEXT_OPTION = re.compile(r"^\s+(?:-\w,)?(--[a-z][a-z0-9-]+) (?:TEXT|\[TEXT\])", re.M)


@pytest.mark.parametrize("verb", ["load", "feed", "probe storage"])
def test_no_text_option_opens_a_file_for_a_caller(weir, server, token, agent, verb, tmp_path):
    """A pipe stands where each option might look: an agent that opened it would wait, or say that it is none."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    options = TEXT_OPTION.findall(weir.run(*verb.split(), "--help").stdout.decode())
    assert len(options) > 5
    call = {"load": "load.open", "feed": "feed.open", "probe storage": "storage.open"}[verb]
    first = {"load": [server], "feed": ["/nowhere", "--bench"], "probe storage": ["/nowhere"]}[verb]
    with Peer(agent.address) as peer:
        peer.hear("hello")
        peer.say(WELCOME)
        for number, option in enumerate(options):
            if option in ("--hosts", "--rendezvous", "--token-file", "--remote-weir"):
                continue  # of the caller alone
            more = {"load": {"--body": ["--endpoint", server], "--recipe": ["--data", str(pipe)]}}.get(verb, {}).get(option, [])
            base = [] if option == "--body" else first
            answer = peer.call(number, call, {"arguments": [*base, option, str(pipe), *more], "state": "", "step_ns": 0, "batch": 1})
            text = answer.get("message", "")
            assert "--allow-path" in text or "pipe" not in text or "regular" not in text, (option, answer)
            assert os.listdir(tmp_path) == ["pipe"]


def test_without_a_token_file_agents_have_their_users(weir, server, tmp_path):
    mine, other = tmp_path / "mine", tmp_path / "other"
    for folder in (mine, other):
        folder.mkdir(mode=0o700)
    of_mine, of_other = (os.environ | {"XDG_RUNTIME_DIR": str(folder)} for folder in (mine, other))
    with Agent(env=of_mine) as agent:
        secret = mine / "weir" / "agent-token"
        assert secret.stat().st_mode & 0o777 == 0o600 and (mine / "weir").stat().st_mode & 0o777 == 0o700 and len(secret.read_text().strip()) == 64
        weir.run("load", server, "--hosts", agent.address, "--request-count", 3, "--warmup", 0, status=None, env=of_mine)
        refused = weir.run("load", server, "--hosts", agent.address, "--request-count", 3, status=2, env=of_other).stderr
        assert b"--token-file" in refused
        with socket.create_connection(agent.address.split(":")) as plain:  # not even a hello without the token
            plain.sendall(b"WA\x01\x00" + struct.pack("<II", 2, 0) + b"{}")
            plain.settimeout(5)
            with contextlib.suppress(ConnectionResetError):
                assert b"hello" not in plain.recv(1000)
        secret.chmod(0o644)
        assert b"remove it" in weir.run("load", server, "--hosts", agent.address, status=2, env=of_mine).stderr


def test_a_stranger_does_not_end_an_agent_of_one_run(weir, server, token):
    with Agent("--token-file", token, "--once") as agent:
        for _ in range(3):
            with socket.create_connection(agent.address.split(":")) as plain:
                plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
        weir.run("load", server, "--hosts", agent.address, "--token-file", token, "--request-count", 3, "--warmup", 0, status=None)
        assert agent.process.wait(timeout=20) == 0


def test_a_stopped_agent_ends_at_once_whoever_calls(token):
    with Agent("--token-file", token) as agent, socket.create_connection(agent.address.split(":")):
        agent.process.send_signal(signal.SIGTERM)
        assert agent.process.wait(timeout=5) is not None
