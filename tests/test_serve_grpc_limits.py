"""weir serve against gRPC clients that hold connections, messages and streams: limits, time-outs, what is listened on.

The clients speak HTTP/2 by hand, because no gRPC client holds back what these must. WEIR_FULL_SIZE=1 runs the attacks at full size."""
import contextlib
import os
import pathlib
import re
import socket
import stat
import struct
import threading
import time

import pytest

import conftest
import test_serve

FULL_SIZE = os.environ.get("WEIR_FULL_SIZE") == "1"
MIB = 1 << 20
DATA, HEADERS, RESET, SETTINGS, PING, WINDOW_UPDATE = 0, 1, 3, 4, 6, 8
INFER = "/inference.GRPCInferenceService/ModelInfer"
STREAM = "/inference.GRPCInferenceService/ModelStreamInfer"
LIVE = "/inference.GRPCInferenceService/ServerLive"
WATCH = "/grpc.health.v1.Health/Watch"


def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def literal(name, value):
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value


def message(payload):
    return struct.pack(">BI", 0, len(payload)) + payload


class Http2:
    """A connection. A thread reads it and keeps the flow control's windows; `closed` is set when the server has ended it."""

    def __init__(self, address):
        self.socket = socket.create_connection(address, timeout=20)
        self.changed = threading.Condition()
        self.initial = self.window = 65535
        self.windows, self.messages, self.ended = {}, {}, {}
        self.next_stream, self.closed = 1, False
        settings = frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 1 << 24)) + frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1 << 24))
        self.socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings)
        self.socket.settimeout(None)
        threading.Thread(target=self._read, daemon=True).start()

    def _take(self, size):
        data = b""
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            if not more:
                raise OSError("closed")
            data += more
        return data

    def _read(self):
        with contextlib.suppress(OSError):
            while True:
                head = self._take(9)
                kind, flags, stream = head[3], head[4], int.from_bytes(head[5:], "big")
                payload = self._take(int.from_bytes(head[:3], "big"))
                with self.changed:
                    self._on_frame(kind, flags, stream, payload)
                    self.changed.notify_all()
        with self.changed:
            self.closed = True
            self.changed.notify_all()

    def _on_frame(self, kind, flags, stream, payload):
        if kind == WINDOW_UPDATE:
            more = int.from_bytes(payload, "big")
            if stream == 0:
                self.window += more
            elif stream in self.windows:
                self.windows[stream] += more
        elif kind == SETTINGS and not flags & 1:
            for at in range(0, len(payload), 6):
                key, value = struct.unpack(">HI", payload[at:at + 6])
                if key == 4:
                    for each in self.windows:
                        self.windows[each] += value - self.initial
                    self.initial = value
            self.socket.sendall(frame(SETTINGS, 1, 0))
        elif kind == PING and not flags & 1:
            self.socket.sendall(frame(PING, 1, 0, payload))
        elif kind == DATA and payload:
            self.messages.setdefault(stream, []).append(payload[5:])
        if kind == RESET or (kind in (DATA, HEADERS) and flags & 1):
            self.ended[stream] = kind

    def start(self, path):
        fields = literal(b":path", path.encode()) + literal(b":authority", b"x")
        fields += literal(b"content-type", b"application/grpc") + literal(b"te", b"trailers")
        with self.changed:
            stream, self.next_stream = self.next_stream, self.next_stream + 2
            self.windows[stream] = self.initial
            self.socket.sendall(frame(HEADERS, 4, stream, b"\x83\x86" + fields))
        return stream

    def send(self, stream, data, end=False):
        """Sends as the windows allow; False when the server closed the connection or ended the stream meanwhile."""
        view, at = memoryview(data), 0
        with self.changed:
            while at < len(view):
                room = min(self.window, self.windows[stream])
                if self.closed or stream in self.ended:
                    return False
                if room <= 0:
                    assert self.changed.wait(60), "the server gives no window"
                    continue
                size = min(room, len(view) - at, 1 << 18)
                pieces = [view[at + i:at + min(i + 16384, size)] for i in range(0, size, 16384)]
                self.window -= size
                self.windows[stream] -= size
                at += size
                try:
                    self.socket.sendall(b"".join(frame(DATA, 0, stream, bytes(piece)) for piece in pieces))
                except OSError:
                    return False
            if end:
                self.socket.sendall(frame(DATA, 1, stream))
        return True

    def call(self, path, payload=b"", timeout=20):
        """The first message of the answer; None when there is none."""
        stream = self.start(path)
        self.send(stream, message(payload), end=True)
        with self.changed:
            self.changed.wait_for(lambda: self.closed or stream in self.messages or stream in self.ended, timeout)
            return self.messages.get(stream, [None])[0]

    def wait_dropped(self, timeout):
        """Until the connection or each of its streams has been ended."""
        with self.changed:
            return self.changed.wait_for(lambda: self.closed or all(stream in self.ended for stream in self.windows), timeout)

    def wait_closed(self, timeout):
        with self.changed:
            return self.changed.wait_for(lambda: self.closed, timeout)

    def close(self):
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


@pytest.fixture
def model(tmp_path):
    test_serve.put_identity(tmp_path / "models", "identity")
    return tmp_path / "models"


@pytest.fixture
def serve(tmp_path):
    servers = []

    def start(*arguments):
        folder = tmp_path / f"server{len(servers)}"
        folder.mkdir()
        servers.append(test_serve.Server(folder, *arguments))
        return servers[-1].wait()

    yield start
    for server in servers:
        if server.process.poll() is None:
            server.process.kill()
        server.process.wait()


def grpc_address(server, host="127.0.0.1"):
    return host, server.facts["grpc"]["port"]


def is_live(server, host="127.0.0.1", timeout=5):
    connection = Http2(grpc_address(server, host))
    try:
        return connection.call(LIVE, timeout=timeout) == b"\x08\x01"
    except OSError:
        return False
    finally:
        connection.close()


def live_within(server, seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with contextlib.suppress(OSError):
            if is_live(server, timeout=1):
                return True
        time.sleep(0.1)
    return False


def resident_mib(server):
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024


def cpu_seconds(server):
    fields = pathlib.Path(f"/proc/{server.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_silent_connections_under_few_descriptors(model, serve, tmp_path, monkeypatch):
    limited = tmp_path / "limited"
    limited.write_text(f"#!/bin/sh\nulimit -n 256\nexec {conftest.PROGRAM} \"$@\"\n")
    limited.chmod(limited.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(conftest, "PROGRAM", str(limited))
    server = serve("--model-repository", model)
    assert is_live(server)
    silent = [socket.create_connection(grpc_address(server), timeout=20) for _ in range(400)]
    assert live_within(server, 5), "others are served while the silent ones are there"
    for each in silent:
        each.close()
    assert live_within(server, 5), "and after they have gone"
    server.json("GET", "/v2/health/ready")
    metrics = server.metrics()
    refused = sum(value for name, value in metrics.items() if name.startswith("weir_grpc_connections_refused_total"))
    closed = metrics['weir_grpc_connections_closed_total{reason="silent"}']
    assert refused + closed >= 300, metrics
    said = server.said()
    assert "gRPC, 127.0.0.1: a connection" in said
    assert said.count("gRPC, 127.0.0.1") < 20, "one line in ten seconds for each reason"


def test_connections_of_one_address_are_limited(model, serve):
    server = serve("--model-repository", model, "--max-connections-per-address", 3)
    used = [Http2(grpc_address(server)) for _ in range(3)]
    assert all(each.call(LIVE) for each in used)
    with contextlib.suppress(OSError):
        assert Http2(grpc_address(server)).wait_closed(20)
    assert server.metrics()['weir_grpc_connections_refused_total{reason="address"}'] >= 1
    assert all(each.call(LIVE) for each in used), "those that are admitted are served"
    used[0].close()
    assert live_within(server, 5)


@pytest.mark.parametrize("connections, streams", [(60, 1), (1, 40)])
def test_half_sent_messages_take_bounded_memory_for_a_bounded_time(model, serve, connections, streams):
    limit, size, timeout = (1024, 60, 15) if FULL_SIZE else (48, 6, 3)
    allowed = limit + (200 if FULL_SIZE else 100)
    server = serve("--model-repository", model, "--max-in-flight-mb", limit, "--message-timeout-secs", timeout)
    assert is_live(server)
    before = peak = resident_mib(server)
    data = message(bytes(size * MIB))[:-1024]
    attackers = [Http2(grpc_address(server)) for _ in range(connections)]

    def attack(connection):
        with contextlib.suppress(OSError):
            for _ in range(streams):
                connection.send(connection.start(INFER), data)

    threads = [threading.Thread(target=attack, args=(each,), daemon=True) for each in attackers]
    for thread in threads:
        thread.start()
    until = time.monotonic() + (600 if FULL_SIZE else 120)
    while any(thread.is_alive() for thread in threads):
        assert time.monotonic() < until
        peak = max(peak, resident_mib(server))
        time.sleep(0.02)
    for each in attackers:
        assert each.wait_dropped(timeout * 2 + 10), "a message under way has a time limit"
        peak = max(peak, resident_mib(server))
    assert peak < (allowed if FULL_SIZE else before + allowed), (before, peak)
    assert live_within(server, 5)
    until = time.monotonic() + 20
    while resident_mib(server) > before + 64 and time.monotonic() < until:
        time.sleep(0.2)
    after = resident_mib(server)
    print(f"MiB resident: {before:.0f} before, {peak:.0f} at the most, {after:.0f} after")
    assert after <= before + 64, "memory goes back to the system"
    metrics = server.metrics()
    assert metrics['weir_grpc_connections_closed_total{reason="bytes"}'] + metrics['weir_grpc_connections_closed_total{reason="stalled"}'] > 0
    assert server.says("gRPC, 127.0.0.1: a connection was closed")


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0)


class Flood(threading.Thread):
    """Sends what `of(stream)` gives for one stream after the other, on connection after connection, until it is stopped."""

    def __init__(self, address, of, at_once=64, connections=1):
        super().__init__(daemon=True)
        self.address, self.of, self.at_once = address, of, at_once
        self.connections, self.ended = connections, threading.Event()
        self.sent = self.closed = 0

    def run(self):
        while not self.ended.is_set():
            with contextlib.suppress(OSError), socket.create_connection(self.address, timeout=5) as client:
                client.sendall(PREFACE)
                self.pump(client)

    def pump(self, client):
        stream = 1
        try:
            while not self.ended.is_set():
                client.sendall(b"".join(self.of(s) for s in range(stream, stream + 2 * self.at_once, 2)))
                stream += 2 * self.at_once
                self.sent += self.at_once
                with contextlib.suppress(BlockingIOError):
                    if not client.recv(1 << 16, socket.MSG_DONTWAIT):
                        raise ConnectionResetError
        except OSError:
            self.closed += 1


def fields(path, incremental=False):
    """A request's headers; `incremental`: they enter the table, so that the next ones are a byte each."""
    pairs = [(b":path", path.encode()), (b":authority", b"x"), (b"content-type", b"application/grpc"), (b"te", b"trailers")]
    return b"\x83\x86" + b"".join((b"\x40" if incremental else b"\x00") + literal(*pair)[1:] for pair in pairs)


def rapid_reset(path):
    block = fields(path)
    return lambda stream: frame(HEADERS, 4, stream, block) + frame(RESET, 0, stream, struct.pack(">I", 8))


def rapid_reset_in_few_bytes(stream):
    block = fields(LIVE, incremental=True) if stream == 1 else b"\x83\x86\xc1\xc0\xbf\xbe"
    return frame(HEADERS, 4, stream, block) + frame(RESET, 0, stream, struct.pack(">I", 8))


def ended_and_reset(stream):
    return frame(HEADERS, 4, stream, fields(LIVE)) + frame(DATA, 1, stream, message(b"")) + frame(RESET, 0, stream, struct.pack(">I", 8))


def unknown_method(stream):
    return frame(HEADERS, 5, stream, fields("/inference.GRPCInferenceService/None"))


def no_bytes_in_stream(stream):
    return frame(HEADERS, 4, stream, fields(INFER)) + frame(DATA, 1, stream) + frame(RESET, 0, stream, struct.pack(">I", 8))


def probe_seconds(server, count=100):
    """Seconds of HTTP health probes, each on a connection of its own."""
    host, port = server.facts["http"]["url"].removeprefix("http://").strip("/").split(":")
    times = []
    for _ in range(count):
        begin = time.monotonic()
        with socket.create_connection((host, int(port)), timeout=10) as client:
            client.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            assert b" 200 " in client.recv(4096)
        times.append(time.monotonic() - begin)
        time.sleep(0.02)
    return sorted(times)


@pytest.mark.parametrize("of", [rapid_reset(INFER), rapid_reset(WATCH), rapid_reset_in_few_bytes, ended_and_reset, unknown_method, no_bytes_in_stream],
                         ids=["infer", "watch", "few_bytes", "ended", "unknown", "empty"])
def test_rapid_reset_takes_neither_memory_nor_the_server(model, serve, of):
    seconds, limit = (10 if FULL_SIZE else 3), 256
    server = serve("--model-repository", model, "--max-in-flight-mb", limit)
    assert is_live(server)
    before = peak = resident_mib(server)
    floods = [Flood(grpc_address(server), of) for _ in range(2)]
    for flood in floods:
        flood.start()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        peak = max(peak, resident_mib(server))
        time.sleep(0.02)
    times = probe_seconds(server)
    assert live_within(server, 5), "an honest client is served meanwhile"
    for flood in floods:
        flood.ended.set()
    for flood in floods:
        flood.join(20)
    assert live_within(server, 1), "and at once afterwards"
    sent, closed = sum(f.sent for f in floods), sum(f.closed for f in floods)
    until = time.monotonic() + 10
    while resident_mib(server) > before + 64 and time.monotonic() < until:
        time.sleep(0.2)
    print(f"{sent} streams on {closed} connections; MiB {before:.0f}, {peak:.0f} at the most, {resident_mib(server):.0f} after; "
          f"probes {1000 * times[50]:.1f} ms, p99 {1000 * times[98]:.1f} ms")
    assert peak < before + limit + 200
    assert resident_mib(server) <= before + 64
    assert times[98] < (0.05 if FULL_SIZE else 0.5)
    if of is rapid_reset_in_few_bytes:
        assert server.metrics()['weir_grpc_connections_closed_total{reason="resets"}'] >= 1
        assert server.says("rapid reset")


def test_calls_that_are_begun_and_never_go_on_share_the_memory(model, serve):
    limit = 256  # 8,192 calls
    server = serve("--model-repository", model, "--max-in-flight-mb", limit)
    assert is_live(server)
    before = resident_mib(server)
    block = fields(INFER)
    clients = [socket.create_connection(grpc_address(server), timeout=5) for _ in range(100)]
    for client in clients:
        with contextlib.suppress(OSError):
            client.sendall(PREFACE + b"".join(frame(HEADERS, 4, stream, block) for stream in range(1, 2001, 2)))
    time.sleep(1)
    peak = resident_mib(server)
    print(f"MiB {before:.0f} before, {peak:.0f} with 100,000 calls begun")
    assert peak < before + limit + 200
    assert server.metrics()['weir_grpc_connections_closed_total{reason="calls"}'] >= 1
    assert live_within(server, 1)
    for client in clients:
        client.close()


def test_a_client_that_cancels_what_has_begun_is_left_alone(model, serve):
    server = serve("--model-repository", model)
    connection = Http2(grpc_address(server))
    for _ in range(5000):
        stream = connection.start(WATCH)
        connection.socket.sendall(frame(DATA, 1, stream, message(b"")))
        with connection.changed:
            assert connection.changed.wait_for(lambda: connection.closed or stream in connection.messages, 20)  # noqa: B023
        assert not connection.closed
        connection.socket.sendall(frame(RESET, 0, stream, struct.pack(">I", 8)))
    assert connection.call(LIVE) == b"\x08\x01"


def test_malformed_messages_are_counted(model, serve):
    server = serve("--model-repository", model)
    connection = Http2(grpc_address(server))
    assert connection.call(INFER, b"\xff\xff\xff") is None
    assert server.metrics()['weir_requests_refused_total{reason="malformed"}'] == 1


@pytest.mark.timing
def test_a_trickle_is_no_progress(model, serve):
    server = serve("--model-repository", model, "--message-timeout-secs", 1.5)
    connection = Http2(grpc_address(server))
    stream = connection.start(INFER)
    assert connection.send(stream, message(bytes(MIB))[:MIB // 2])
    begin = time.monotonic()
    with contextlib.suppress(OSError):
        while connection.send(stream, b"x") and time.monotonic() < begin + 30:
            time.sleep(0.1)
    assert connection.closed
    assert 1 < time.monotonic() - begin < 15
    assert server.metrics()['weir_grpc_connections_closed_total{reason="stalled"}'] == 1


def test_clients_that_do_nothing_wrong_are_left_alone(model, serve):
    server = serve("--model-repository", model, "--message-timeout-secs", 1.5)
    cancels, idle, watches = (Http2(grpc_address(server)) for _ in range(3))
    stream = cancels.start(INFER)
    assert cancels.send(stream, message(bytes(4 * MIB))[:MIB])
    cancels.socket.sendall(frame(RESET, 0, stream, struct.pack(">I", 8)))
    idle.start(STREAM)
    watch = watches.start(WATCH)
    watches.send(watch, message(b""), end=True)
    time.sleep(6)
    for each in (cancels, idle, watches):
        assert not each.closed
        assert each.call(LIVE) == b"\x08\x01"
    metrics = server.metrics()
    assert not any(value for name, value in metrics.items() if name.startswith("weir_grpc_connections_closed_total")), metrics


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_messages_are_counted_for_their_connection(model, serve, host):
    """A server that did not know whose messages these are would take them for unfinished ones."""
    server = serve("--model-repository", model, "--message-timeout-secs", 1.5, "--grpc-address", host)
    connection = Http2(grpc_address(server, host))
    unknown_field = b"\x7a" + b"\x80\x80\x06" + bytes(98304)
    until = time.monotonic() + 6
    while time.monotonic() < until:
        assert connection.call(LIVE, unknown_field) == b"\x08\x01"
        time.sleep(0.02)
    assert not connection.closed


@pytest.mark.timing
def test_watching_costs_nothing_while_the_health_stays(model, serve):
    connections, streams = (20, 1000) if FULL_SIZE else (4, 500)
    server = serve("--model-repository", model, "--drain-delay-secs", 3)
    watchers = [Http2(grpc_address(server)) for _ in range(connections)]
    for each in watchers:
        for _ in range(streams):
            each.send(each.start(WATCH), message(b""), end=True)
    for each in watchers:
        with each.changed:
            assert each.changed.wait_for(lambda: len(each.messages) == streams, 120)  # noqa: B023
            assert all(told == [b"\x08\x01"] for told in each.messages.values())
    before = cpu_seconds(server)
    time.sleep(5)
    assert cpu_seconds(server) - before < 0.1, "of 5 s"
    server.tell()
    for each in watchers:
        with each.changed:
            assert each.changed.wait_for(lambda: all(told[-1] == b"\x08\x02" for told in each.messages.values()), 20)  # noqa: B023
    server.stop()


def listening(port):
    """The addresses with a listening socket on this port, from the kernel."""
    found = []
    for name in ("tcp", "tcp6"):
        for line in pathlib.Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            local, state = line.split()[1], line.split()[3]
            if state == "0A" and int(local.rsplit(":", 1)[1], 16) == port:
                found.append((name, local.rsplit(":", 1)[0]))
    return found


def test_listens_on_what_is_asked_and_says_so(model, serve):
    every = serve("--model-repository", model, "--address", "0.0.0.0")
    port = every.facts["grpc"]["port"]
    assert listening(port) == [("tcp", "00000000")], "all IPv4 addresses, and no IPv6"
    assert every.facts["grpc"]["address"] == "0.0.0.0"
    assert "has neither TLS nor a token" in every.said()
    assert f"0.0.0.0:{port}" in every.said()
    every.tell()
    assert f"listens on 0.0.0.0:{port}" in every.process.stdout.read().decode()

    loopback = serve("--model-repository", model)
    port = loopback.facts["grpc"]["port"]
    assert listening(port) == [("tcp", "0100007F")]
    assert "TLS" not in loopback.said()
    loopback.tell()
    assert f"listens on 127.0.0.1:{port}" in loopback.process.stdout.read().decode()


def test_an_address_that_is_none_is_an_error(model, weir):
    said = weir.run("serve", "--model-repository", model, "--http-port", 0, "--grpc-port", 0, "--metrics-port", 0,
                    "--grpc-address", "localhost", status=2).stderr.decode()
    assert "listen on localhost: not an IP address; give one such as 127.0.0.1" in said
