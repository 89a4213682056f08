#!/usr/bin/env python3
"""Agents against other tools, over a link of 5 Gbit/s between two network namespaces: ./dev bench cluster (root)
(bench/cluster.py NAME ... for some of it)

  network     weir probe network against iperf3, in interleaved rounds
  request     the median of a 602 KB message against the time that its bytes take on the line (tbf, burst 64 kb)
  barrier     the two messages of a training step of weir probe storage, an agent in each namespace
  generators  two generators at half the rate against one at the whole, in interleaved rounds, on one host

Without iperf3 or without the right to make namespaces the parts that need them are skipped with a word.
"""
import contextlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import bars

WEIR = os.environ.get("WEIR_PROGRAM", str(pathlib.Path(__file__).resolve().parent.parent / "build/release/weir"))
ROUNDS = int(os.environ.get("WEIR_BENCH_ROUNDS", "5"))
NEAR, FAR = f"wclusterA{os.getpid() % 10000}", f"wclusterB{os.getpid() % 10000}"
CONFIG = """backend: "emulated"
max_batch_size: 1
input { name: "x" data_type: TYPE_FP32 dims: [ 16 ] }
output { name: "y" data_type: TYPE_FP32 dims: [ 16 ] }
parameters { key: "engine" value: { string_value: "emulated:base=5ms" } }
dynamic_batching { default_queue_policy { max_queue_size: 4096 } }
"""
TOKEN = "0123456789abcdef0123456789abcdef"


def sh(*words):
    subprocess.run([str(word) for word in words], check=True, capture_output=True)


@contextlib.contextmanager
def link(rate, burst):
    """Two namespaces with a shaped link, 10.77.9.1 and 10.77.9.2."""
    for name in (NEAR, FAR):
        sh("ip", "netns", "add", name)
    try:
        sh("ip", "link", "add", "wcA", "netns", NEAR, "type", "veth", "peer", "name", "wcB", "netns", FAR)
        for name, device, address in ((NEAR, "wcA", "10.77.9.1/24"), (FAR, "wcB", "10.77.9.2/24")):
            sh("ip", "-n", name, "addr", "add", address, "dev", device)
            sh("ip", "-n", name, "link", "set", "lo", "up")
            sh("ip", "-n", name, "link", "set", device, "up")
            sh("tc", "-n", name, "qdisc", "replace", "dev", device, "root", "tbf", "rate", rate, "burst", burst, "latency", "2ms")
        yield
    finally:
        for name in (NEAR, FAR):
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def inside(name, *words):
    return ["nsenter", f"--net=/run/netns/{name}", *map(str, words)]


@contextlib.contextmanager
def agent(listen, *before, token=None):
    more = ["--token-file", token] if token else []
    with subprocess.Popen([*before, WEIR, "agent", "--listen", listen, "--allow-path", "/", *more], stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.stdout.readline().removeprefix("listening at ").strip()
        finally:
            process.terminate()


def result_of(words):
    done = subprocess.run([*map(str, words), "--json", "-"], capture_output=True, text=True, check=False)
    if not done.stdout:
        sys.exit(f"cluster: {' '.join(map(str, words))}: {done.stderr}")
    return json.loads(done.stdout)


def network(token):
    if shutil.which("iperf3") is None:
        print("network: skipped, iperf3 is not here")
        return
    pairs = []
    with link("5gbit", "256kb"), agent("10.77.9.2:0", *inside(FAR), token=token) as address:
        with subprocess.Popen(inside(FAR, "iperf3", "-s", "-B", "10.77.9.2"), stdout=subprocess.DEVNULL) as serving:
            try:
                for _ in range(ROUNDS):
                    ours = result_of(inside(NEAR, WEIR, "probe", "network", address, "--token-file", token, "--seconds", 2, "--streams", 1, "--message-bytes", 64))
                    theirs = json.loads(subprocess.run(inside(NEAR, "iperf3", "-c", "10.77.9.2", "-t", 2, "-O", 1, "-J"), capture_output=True, text=True, check=True).stdout)
                    pairs.append((ours["throughputs"][0]["gbit_per_s"], theirs["end"]["sum_received"]["bits_per_second"] / 1e9))
            finally:
                serving.terminate()
    ours, theirs = (statistics.median(each) for each in zip(*pairs))
    print(f"network     {ours:.3f} Gbit/s, iperf3 {theirs:.3f}: {ours / theirs:.3f} ({len(pairs)} rounds)")
    bars.check("network", "of iperf3", 1 - abs(ours / theirs - 1))


def request(token):
    with link("5gbit", "64kb"), agent("10.77.9.2:0", *inside(FAR), token=token) as address:
        medians = [result_of(inside(NEAR, WEIR, "probe", "network", address, "--token-file", token, "--seconds", 1, "--streams", 1, "--message-bytes", 602112))
                   ["messages"][0]["latency_us"]["p50"] for _ in range(ROUNDS)]
    line = 602112 * 8 / 5e9 * 1e6 * 1514 / 1448  # with TCP's, IP's and Ethernet's headers
    print(f"request     602,112 bytes: {statistics.median(medians):.0f} us, the line {line:.0f} us: {statistics.median(medians) / line:.3f}")
    bars.check("request", "over the line's own time", statistics.median(medians) / line)


def barrier(token):
    with link("5gbit", "256kb"), agent("10.77.9.1:0", *inside(NEAR), token=token) as near, agent("10.77.9.2:0", *inside(FAR), token=token) as far:
        times = [result_of(inside(NEAR, WEIR, "probe", "storage", tempfile.gettempdir(), "--source", "memory", "--samples", 64, "--sample-bytes", 1000, "--step-ms", 1, "--batch", 4,
                                  "--threads", 1, "--steps", 1000, "--repeats", 1, "--limit-s", 2, "--hosts", f"{near},{far}", "--token-file", token))["barrier_us"]
                 for _ in range(ROUNDS)]
    median = statistics.median(each["p50"] for each in times)
    print(f"barrier     {median:.0f} us in the median, p99 {statistics.median(each['p99'] for each in times):.0f} us ({len(times)} rounds)")
    bars.check("barrier", "of two namespaces", median)


def generators():
    folder = pathlib.Path(tempfile.mkdtemp())
    model = folder / "models/five"
    (model / "1").mkdir(parents=True)
    (model / "config.pbtxt").write_text(CONFIG)
    facts = folder / "served.json"
    with subprocess.Popen([WEIR, "serve", "--model-repository", folder / "models", "--http-port", "0", "--grpc-port", "0", "--metrics-port", "0", "--json", facts],
                          stderr=subprocess.DEVNULL) as serving:
        try:
            while not facts.exists() and serving.poll() is None:
                time.sleep(0.02)
            url = json.loads(facts.read_text())["http"]["url"] + "/five"
            common = [WEIR, "load", url, "--request-rate-range", 100, "--request-distribution", "poisson", "--duration", 25, "--percentile", 99]
            rounds = [(result_of(common)["levels"][0], result_of([*common, "--hosts", "local,local"])["levels"][0]) for _ in range(ROUNDS)]
        finally:
            serving.terminate()
    shutil.rmtree(folder)
    ratios = [both["response_ms"]["p50"] / alone["response_ms"]["p50"] for alone, both in rounds]
    intervals = [(alone["response_ms"]["intervals_95"].get("p99", (0, 0)), both["response_ms"].get("p99", -1)) for alone, both in rounds]
    within = sum(low <= p99 <= high for (low, high), p99 in intervals)
    # As a measure of the machine's own noise: each run of one generator against the one before.
    itself = sum(low <= alone["response_ms"].get("p99", -1) <= high for ((low, high), _), (alone, _) in zip(intervals, rounds[1:]))
    print(f"generators  p50 of two over one: {statistics.median(ratios):.4f}; p99 within the interval of one in {within} of {len(rounds)} rounds, of one the next time in {itself} of {len(rounds) - 1}")
    bars.check("generators", "p50 of two over one", 1 + abs(statistics.median(ratios) - 1))


def main():
    names = sys.argv[1:] or ["network", "request", "barrier", "generators"]
    with tempfile.TemporaryDirectory() as folder:
        token = pathlib.Path(folder, "token")
        token.write_text(TOKEN)
        if "network" in names:
            network(token)
        if "request" in names:
            request(token)
        if "barrier" in names:
            barrier(token)
        if "generators" in names:
            generators()
    return bars.exit_status()


if __name__ == "__main__":
    sys.exit(main())
