#!/usr/bin/env python3
"""What the server costs a request, beside Triton and beside the bare gRPC library: ./dev bench serving

CPU time of the server (all its threads, from the kernel's scheduler) for each request, closed loop over 8 connections by h2load;
server on core 0, client on core 1, the servers taken in turn. WEIR_TRITON is the command that starts a Triton with the identity
models id_small (FP32 [16]) and id_big (FP32 [1,3,224,224]) on the ports 18000 (HTTP) and 18001 (gRPC); without it only weir is measured.
"""
import json
import os
import pathlib
import random
import re
import shlex
import signal
import socket
import statistics
import struct
import subprocess
import sys
import time
import urllib.request
from multiprocessing import shared_memory

import bars

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORK = ROOT / "build/bench/serving"
ROUNDS = int(os.environ.get("WEIR_BENCH_ROUNDS", "5"))
SHAPES = {"small": [16], "big": [1, 3, 224, 224]}
REQUESTS = {"http small": 20000, "http big": 1000, "grpc small": 20000, "grpc big": 1000, "http json": 60, "shared memory": 10000}


def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def field(tag, data):
    return varint(tag << 3 | 2) + varint(len(data)) + data


def write_bodies():
    WORK.mkdir(parents=True, exist_ok=True)
    random.seed(1)
    lengths = {}
    for size, shape in SHAPES.items():
        count = 1
        for dim in shape:
            count *= dim
        values = [random.uniform(-2, 2) for _ in range(count)]
        raw = struct.pack(f"<{count}f", *values)
        tensor = {"name": "INPUT0", "shape": shape, "datatype": "FP32"}
        head = json.dumps({"inputs": [dict(tensor, parameters={"binary_data_size": len(raw)})],
                           "outputs": [{"name": "OUTPUT0", "parameters": {"binary_data": True}}]}).encode()
        (WORK / f"{size}.bin").write_bytes(head + raw)
        lengths[size] = len(head)
        (WORK / f"{size}.json").write_text(json.dumps({"inputs": [dict(tensor, data=[float(f"{v:.7g}") for v in values])]}))
        message = field(1, f"id_{size}".encode()) + field(5, field(1, b"INPUT0") + field(2, b"FP32") + field(3, b"".join(map(varint, shape)))) + field(7, raw)
        (WORK / f"{size}.grpc").write_bytes(b"\0" + struct.pack(">I", len(message)) + message)
    region = {"shared_memory_byte_size": 602112}
    (WORK / "region.json").write_text(json.dumps({
        "inputs": [{"name": "INPUT0", "shape": SHAPES["big"], "datatype": "FP32", "parameters": dict(region, shared_memory_region="in")}],
        "outputs": [{"name": "OUTPUT0", "parameters": dict(region, shared_memory_region="out")}]}))
    return lengths


def write_models():
    for size, shape in SHAPES.items():
        folder = WORK / "models" / f"id_{size}"
        folder.mkdir(parents=True, exist_ok=True)
        tensor = f"data_type: TYPE_FP32 dims: {shape}"
        (folder / "config.pbtxt").write_text(
            f'name: "id_{size}"\nbackend: "emulated"\nmax_batch_size: 0\ninput {{ name: "INPUT0" {tensor} }}\noutput {{ name: "OUTPUT0" {tensor} }}\n'
            'parameters { key: "engine" value: { string_value: "emulated:base=0ms" } }\n')


def cpu_ns(pid):
    return sum(int(pathlib.Path(f"/proc/{pid}/task/{task}/schedstat").read_text().split()[0]) for task in os.listdir(f"/proc/{pid}/task"))


class Server:
    def __init__(self, name, command, http, grpc, cores="0"):
        self.name, self.http, self.grpc = name, http, grpc
        self.log = open(WORK / f"{name}.log", "w")
        self.process = subprocess.Popen(["taskset", "-c", cores, *command], stdout=self.log, stderr=self.log)
        until = time.monotonic() + 60
        while time.monotonic() < until and self.process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", grpc), 1).close()
                if not http or urllib.request.urlopen(f"http://127.0.0.1:{http}/v2/health/ready", timeout=1).status == 200:
                    return
            except OSError:
                time.sleep(0.1)
        sys.exit(f"serving: {name} did not start: see {WORK}/{name}.log")

    def post(self, path, document):
        request = urllib.request.Request(f"http://127.0.0.1:{self.http}{path}", json.dumps(document).encode(), {"Content-Type": "application/json"})
        urllib.request.urlopen(request, timeout=5).read()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)
        self.log.close()


def load(server, what, lengths, requests):
    """us of server CPU a request."""
    size = "small" if "small" in what else "big"
    if what.startswith("grpc"):
        arguments = ["-d", WORK / f"{size}.grpc", "-H", "content-type: application/grpc", "-H", "te: trailers",
                     f"http://127.0.0.1:{server.grpc}/inference.GRPCInferenceService/ModelInfer"]
    else:
        body = "region.json" if what == "shared memory" else f"{size}.json" if what == "http json" else f"{size}.bin"
        kind = ["-H", "content-type: application/json"] if body.endswith("json") else [
            "-H", "content-type: application/octet-stream", "-H", f"inference-header-content-length: {lengths[size]}"]
        arguments = ["--h1", "-d", WORK / body, *kind, f"http://127.0.0.1:{server.http}/v2/models/id_{size}/infer"]
    before = cpu_ns(server.process.pid)
    out = subprocess.run(["taskset", "-c", "1", "h2load", "-n", str(requests), "-c", "8", "-t", "1", *map(str, arguments)], capture_output=True, text=True, check=True).stdout
    good = int(re.search(r"(\d+) succeeded", out)[1])
    if good != requests or (f" {requests} 2xx" not in out):
        sys.exit(f"serving: {server.name}, {what}: {out}")
    return (cpu_ns(server.process.pid) - before) / 1000 / requests


def regions(server):
    made = []
    for name in ("in", "out"):
        block = shared_memory.SharedMemory(create=True, size=602112, name=f"weir_bench_{server.name}_{name}")
        made.append(block)
        server.post(f"/v2/systemsharedmemory/region/{name}/register", {"key": f"/weir_bench_{server.name}_{name}", "offset": 0, "byte_size": 602112})
    return made


def serving():
    lengths = write_bodies()
    write_models()
    weir = Server("weir", [ROOT / "build/release/weir", "serve", "--model-repository", WORK / "models", "--http-port", "17000", "--grpc-port", "17001",
                           "--metrics-port", "17002", "--allow-client-shm"], 17000, 17001)
    servers = [weir]
    hello = ROOT / "build/release/bench/grpc_hello"
    if hello.exists():
        servers.append(Server("hello", [hello, "17011"], 0, 17011))
    if "WEIR_TRITON" in os.environ:
        servers.append(Server("triton", shlex.split(os.environ["WEIR_TRITON"]), 18000, 18001))
    blocks, results = [], {}
    try:
        blocks = regions(weir)
        for what, requests in REQUESTS.items():
            for _ in range(ROUNDS + 1):  # the first warms up
                for server in servers:
                    if server.name == "weir" or (what.startswith("grpc") if server.name == "hello" else what != "shared memory"):
                        results.setdefault((what, server.name), []).append(load(server, what, lengths, requests))
    finally:
        for block in blocks:
            block.close()
            block.unlink()
        for server in servers:
            server.stop()
    print(f"\nServer CPU a request, us, medians of {ROUNDS} rounds (range)\n\n| what | weir | Triton | weir / Triton | hello-world | weir / hello |\n|---|---|---|---|---|---|")
    for what in REQUESTS:
        def told(name):
            values = sorted(results.get((what, name), [0])[1:])
            return statistics.median(values) if values and values[-1] > 0 else None, values
        cells, (ours, _) = [what], told("weir")
        for name in ("weir", "triton", "hello"):
            middle, values = told(name)
            cells.append(f"{middle:.1f} ({values[0]:.1f}-{values[-1]:.1f})" if middle else "")
            if name != "weir":
                cells.append(f"{ours / middle:.2f}" if middle else "")
                if ours and middle:
                    bars.check({"triton": "serving: Triton", "hello": "serving: hello-world"}[name], what, ours / middle)
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    serving()
    sys.exit(bars.exit_status())
