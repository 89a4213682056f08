#!/usr/bin/env python3
"""What `weir load` says of a server whose delay is known: ./dev bench delay

The server answers each request a fixed time after it came, never sleeps, and keeps what each one really took: that is the truth. It has a core to itself, as
the client has. WEIR_BENCH_ROUNDS (20) runs of 1,000 requests for each way to ask: one in flight, and a fixed rate.
WEIR_BENCH_DELAYS ("5 20 50") are in ms.
"""
import json
import multiprocessing
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
WEIR, WORK = ROOT / "build/release/weir", ROOT / "build/bench/delay"
ROUNDS = int(os.environ.get("WEIR_BENCH_ROUNDS", "20"))
DELAYS_MS = [int(word) for word in os.environ.get("WEIR_BENCH_DELAYS", "5 20 50").split()]
REQUESTS, WARMUP, PORT = 1000, 50, 17600
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def serve(ready, told, delay_ns):
    """Answers the requests of a connection, one at a time, until it ends; then tells what each took, ns."""
    os.sched_setaffinity(0, {0})
    listener = socket.create_server(("127.0.0.1", PORT))
    ready.set()
    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setblocking(False)
        took = []
        while True:
            try:
                if not connection.recv(65536):
                    break
            except BlockingIOError:
                continue
            except ConnectionError:
                break
            came = time.monotonic_ns()
            while time.monotonic_ns() < came + delay_ns:
                pass
            left = time.monotonic_ns()
            connection.send(ANSWER)
            took.append(left - came)
        connection.close()
        told.send(took)


def load(how):
    out = WORK / "load.json"
    command = ["taskset", "-c", "1", WEIR, "load", "--endpoint", f"http://127.0.0.1:{PORT}/", "--method", "GET", *how, "--warmup", 0, "--warmup-request-count", WARMUP,
               "--request-count", REQUESTS, "--connections", 1, "--json", out]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=600)
    if done.returncode not in (0, 3):
        sys.exit(f"delay: weir load: {done.stderr[-2000:]}")
    return json.loads(out.read_text())["levels"][0]


def percentile(values, p):
    return sorted(values)[min(len(values) - 1, int(p * len(values)))]


def main():
    WORK.mkdir(parents=True, exist_ok=True)
    print(f"| delay, ms | asked | mean, off by us: median (worst) of {ROUNDS} runs | p99, off by us | runs within 1 % or 20 us: mean, p99 | whose interval holds it: mean, p99 |\n|---|---|---|---|---|---|")
    for delay_ms in DELAYS_MS:
        ready, (ours, its) = multiprocessing.Event(), multiprocessing.Pipe()
        server = multiprocessing.Process(target=serve, args=(ready, its, delay_ms * 1_000_000), daemon=True)
        server.start()
        ready.wait()
        for words, how in (("one in flight", ["--concurrency-range", 1]), (f"{800 / delay_ms:g} a second", ["--request-rate-range", f"{800 / delay_ms:g}"])):
            off = {"mean": [], "p99": []}
            within, held = {"mean": 0, "p99": 0}, {"mean": 0, "p99": 0}
            for _ in range(ROUNDS):
                level = load(how)
                took = []
                while len(took) < REQUESTS:  # a connection of an attempt without requests says nothing
                    took = ours.recv()
                took = [one / 1e6 for one in took[-REQUESTS:]]
                for key, truth in (("mean", statistics.mean(took)), ("p99", percentile(took, 0.99))):
                    miss = level["response_ms"][key] - truth
                    off[key].append(miss * 1000)
                    within[key] += abs(miss) <= max(0.01 * truth, 0.02)
                    low, high = level["response_ms"]["intervals_95"][key]
                    held[key] += low <= truth <= high
            row = [f"{statistics.median(off[key]):.0f} ({max(off[key], key=abs):.0f})" for key in ("mean", "p99")]
            print(f"| {delay_ms} | {words} | {row[0]} | {row[1]} | {within['mean']}, {within['p99']} | {held['mean']}, {held['p99']} |", flush=True)
        server.terminate()
        server.join()


if __name__ == "__main__":
    main()
