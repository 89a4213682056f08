#!/usr/bin/env python3
"""What a request costs the load generator, beside wrk, h2load and perf_analyzer: ./dev bench load

CPU time of the whole client process for each request, closed loop over 8 connections; client on core 1, `weir serve` with an identity
on core 0, the clients taken in turn. wrk and h2load are Debian's (wrk, nghttp2-client); WEIR_PERF_ANALYZER names perf_analyzer, which
is left out without it.
"""
import json
import os
import pathlib
import re
import shlex
import statistics
import subprocess
import sys
import time

import bars
import serving
from serving import SHAPES, WORK

ROUNDS = int(os.environ.get("WEIR_BENCH_ROUNDS", "4"))
SECONDS = int(os.environ.get("WEIR_BENCH_SECONDS", "2"))  # of weir's and wrk's runs
WEIR = serving.ROOT / "build/release/weir"
HTTP, GRPC = "127.0.0.1:17500", "127.0.0.1:17501"


def cost(command, count):
    """CPU microseconds of the client for each of `count(its output)` requests."""
    process = subprocess.Popen(["taskset", "-c", "1", *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = process.stdout.read()
    _, _, usage = os.wait4(process.pid, 0)
    answers = count(said)
    if not answers:
        sys.exit(f"load: {command[0]}: {said[-1000:]}")
    return (usage.ru_utime + usage.ru_stime) / answers * 1e6


def found(pattern):
    def count(said):
        match = re.search(pattern, said)
        return int(match.group(1)) if match else 0
    return count


def weir(protocol, size):
    out = WORK / "load.json"
    command = [WEIR, "load", "-m", f"id_{size}", "-u", HTTP if protocol == "http" else GRPC, "-i", protocol, "--concurrency-range", 8, "--duration", SECONDS,
               "--warmup", 0.05, "--json", out]
    return cost(command, lambda _: json.loads(out.read_text())["levels"][0]["answered"])


def wrk(size, header_length):
    script = WORK / f"{size}.lua"
    script.write_text(f'local file = io.open("{WORK}/{size}.bin", "rb")\nwrk.body = file:read("*a")\nfile:close()\nwrk.method = "POST"\n'
                      f'wrk.headers["Content-Type"] = "application/octet-stream"\nwrk.headers["Inference-Header-Content-Length"] = "{header_length}"\n')
    return cost(["wrk", "-t1", "-c8", f"-d{SECONDS}s", "-s", script, f"http://{HTTP}/v2/models/id_{size}/infer"], found(r"(\d+) requests in"))


def h2load(protocol, size, header_length):
    requests = {"small": 40000, "big": 3000}[size]
    common = ["h2load", "-n", requests, "-c", 8, "-t", 1]
    if protocol == "http":
        more = ["--h1", "-d", WORK / f"{size}.bin", "-H", f"Inference-Header-Content-Length: {header_length}", "-H", "Content-Type: application/octet-stream",
                f"http://{HTTP}/v2/models/id_{size}/infer"]
    else:
        more = ["-m", 1, "-d", WORK / f"{size}.grpc", "-H", "content-type: application/grpc", "-H", "te: trailers",
                f"http://{GRPC}/inference.GRPCInferenceService/ModelInfer"]
    return cost(common + more, found(r"(\d+) succeeded"))


def perf_analyzer(protocol, size):
    requests = {"small": 20000, "big": 1500}[size]
    return cost([*shlex.split(os.environ["WEIR_PERF_ANALYZER"]), "-m", f"id_{size}", "-u", HTTP if protocol == "http" else GRPC, "-i", protocol, "--async",
                 "--concurrency-range", 8, "--request-count", requests], lambda said: requests if "Throughput" in said else 0)


def main():
    lengths = serving.write_bodies()
    serving.write_models()
    log = open(WORK / "load-server.log", "w")
    server = subprocess.Popen(["taskset", "-c", "0", WEIR, "serve", "--model-repository", WORK / "models", "--http-port", HTTP.split(":")[1], "--grpc-port",
                               GRPC.split(":")[1], "--metrics-port", "17502"], stdout=log, stderr=log)
    try:
        time.sleep(2)
        print("\nClient CPU a request, us, medians (range)\n\n| what | weir | wrk | h2load | perf_analyzer |\n|---|---|---|---|---|")
        for protocol in ("http", "grpc"):
            for size in SHAPES:
                clients = {"weir": lambda: weir(protocol, size), "h2load": lambda: h2load(protocol, size, lengths[size])}
                if protocol == "http":
                    clients["wrk"] = lambda: wrk(size, lengths[size])
                if "WEIR_PERF_ANALYZER" in os.environ and protocol == "grpc":
                    clients["perf_analyzer"] = lambda: perf_analyzer(protocol, size)
                costs = {name: [] for name in clients}
                for _ in range(ROUNDS):
                    for name, play in clients.items():
                        costs[name].append(play())
                ours = statistics.median(costs["weir"])
                cells = []
                for name in ("weir", "wrk", "h2load", "perf_analyzer"):
                    values = costs.get(name)
                    if not values:
                        cells.append("")
                        continue
                    middle = statistics.median(values)
                    ratio = "" if name == "weir" else f": {ours / middle:.2f}"
                    if name != "weir":
                        bars.check("load", f"{protocol} {size}, {name}", ours / middle)
                    cells.append(f"{middle:.1f} ({min(values):.1f}-{max(values):.1f}){ratio}")
                print(f"| {protocol} {size} | {' | '.join(cells)} |", flush=True)
    finally:
        server.terminate()
        server.wait(30)
        log.close()


if __name__ == "__main__":
    main()
    sys.exit(bars.exit_status())
