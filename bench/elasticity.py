#!/usr/bin/env python3
"""A simulated day under the autoscaler's policy: ./dev bench elasticity

Real `weir serve` processes with an emulated accelerator stand behind HAProxy. The rule of deploy/kubernetes/base/hpa.yaml starts and stops them by the time that
requests wait in the queue. `weir load --trace` plays bench/traces/diurnal.csv and bursty.csv at compressed time. For comparison the same rule acts on CPU, and the
number of replicas is fixed at the least and at the most.

Cost is replicas times time, in replica-hours of the trace. An accelerator answers 100 requests/s; the target is a p99 of 50 ms (10 ms of computing).
WEIR_BENCH_DAY_S (120) is the length of a trace in seconds; the policy's own times are compressed by WEIR_BENCH_POLICY_SPEED (20), less than the day is: so the load
changes faster, for the policy, than on a real day.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request

import bars
from autoscaler import Autoscaler

ROOT = pathlib.Path(__file__).resolve().parent.parent
WEIR = pathlib.Path(os.environ.get("WEIR_PROGRAM", ROOT / "build/release/weir"))
WORK = ROOT / "build/bench/elasticity"
DAY_S = float(os.environ.get("WEIR_BENCH_DAY_S", "120"))
POLICY_SPEED = float(os.environ.get("WEIR_BENCH_POLICY_SPEED", "20"))
TRACES = os.environ.get("WEIR_BENCH_TRACES", "diurnal bursty").split()
POLICIES = os.environ.get("WEIR_BENCH_POLICIES", "queue cpu least most").split()
MOST, TARGET_MS = 8, 50
MODEL = """backend: "emulated"
max_batch_size: 1
input { name: "x" data_type: TYPE_FP32 dims: [ 16 ] }
output { name: "y" data_type: TYPE_FP32 dims: [ 16 ] }
parameters { key: "engine" value: { string_value: "emulated:base=10ms" } }
dynamic_batching { default_queue_policy { max_queue_size: 4096 } }
"""


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def stop(process):
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Replica:
    def __init__(self, number, ports):
        self.number, (self.http, self.grpc, self.metrics) = number, ports
        self.began = time.monotonic()
        self.process = subprocess.Popen([WEIR, "serve", "--model-repository", WORK / "models", "--http-port", str(self.http), "--grpc-port", str(self.grpc), "--metrics-port",
                                         str(self.metrics)], stdout=subprocess.DEVNULL, stderr=open(WORK / f"replica-{number}.log", "ab"))
        self.totals = self.cpu = None

    def ready(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.http}/v2/models/m/ready", timeout=1):
                return True
        except OSError:
            return False

    def counters(self):
        """(seconds in the queue, answers, CPU seconds) so far."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics}/metrics", timeout=2) as page:
            text = page.read().decode()

        def total(name):
            return sum(float(value) for value in re.findall(rf"^{name}(?:{{[^}}]*}})? ([0-9.e+]+)$", text, re.M))
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return total("nv_inference_queue_duration_us") / 1e6, total("nv_inference_request_success"), (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Fleet:
    """Replicas behind HAProxy. A replica that goes is drained first."""

    def __init__(self):
        self.ports = [free_ports(3) for _ in range(MOST)]
        self.address, self.socket = free_ports(1)[0], WORK / "haproxy.sock"
        servers = "\n".join(f"  server s{i} 127.0.0.1:{ports[0]} disabled" for i, ports in enumerate(self.ports))
        (WORK / "haproxy.cfg").write_text(f"""global
  nbthread 1
  stats socket {self.socket} level admin
defaults
  mode http
  timeout connect 5s
  timeout client 10m
  timeout server 10m
  retries 1
  option redispatch 1
  retry-on conn-failure empty-response 503
frontend in
  bind 127.0.0.1:{self.address}
  default_backend servers
backend servers
  balance roundrobin
  http-reuse always
{servers}
""")
        self.socket.unlink(missing_ok=True)
        self.proxy = subprocess.Popen([shutil.which("haproxy") or "/usr/sbin/haproxy", "-db", "-f", WORK / "haproxy.cfg"], stdout=subprocess.DEVNULL, stderr=open(WORK / "haproxy.log", "ab"))
        until = time.monotonic() + 20
        while not self.socket.exists():
            if self.proxy.poll() is not None or time.monotonic() > until:
                sys.exit(f"elasticity: haproxy did not start: {(WORK / 'haproxy.log').read_text()[-1000:]}")
            time.sleep(0.02)
        self.replicas, self.paid_s, self.most = {}, 0.0, 0

    def tell(self, command):
        with socket.socket(socket.AF_UNIX) as wire:
            wire.connect(str(self.socket))
            wire.sendall(command.encode() + b"\n")
            return wire.recv(4096)

    def scale(self, wanted):
        while len(self.replicas) < wanted:
            number = min(set(range(MOST)) - set(self.replicas))
            replica = Replica(number, self.ports[number])
            self.replicas[number] = replica
            threading.Thread(target=self.join, args=(replica,), daemon=True).start()
        while len(self.replicas) > wanted:
            number = max(self.replicas)
            replica = self.replicas.pop(number)
            self.tell(f"set server servers/s{number} state drain")
            threading.Thread(target=self.leave, args=(replica,), daemon=True).start()
        self.most = max(self.most, len(self.replicas))

    def join(self, replica):
        while replica.process.poll() is None and not replica.ready():
            time.sleep(0.01)
        if self.replicas.get(replica.number) is replica:
            self.tell(f"set server servers/s{replica.number} state ready")

    def leave(self, replica):
        time.sleep(0.3)  # what is at it is answered
        stop(replica.process)
        self.paid_s += time.monotonic() - replica.began
        # A new replica may have this place already; it makes itself ready again.
        if replica.number not in self.replicas:
            self.tell(f"set server servers/s{replica.number} state maint")

    def metrics(self, window_s):
        """The means over the replicas: seconds a request waited, and CPUs used, since the last call about `window_s` ago."""
        queue, cpu = [], []
        for replica in list(self.replicas.values()):
            try:
                now, totals = time.monotonic(), replica.counters()
            except OSError:
                continue  # it starts
            if replica.totals:
                at, before = replica.totals[0]
                answers = totals[1] - before[1]
                queue.append((totals[0] - before[0]) / answers if answers > 0 else 0.0)
                cpu.append((totals[2] - before[2]) / max(now - at, 1e-3))
            replica.totals = [one for one in [*(replica.totals or []), (now, totals)] if one[0] >= now - window_s] or [(now, totals)]
        return (sum(queue) / len(queue) if queue else 0.0), (sum(cpu) / len(cpu) if cpu else 0.0)

    def close(self):
        for replica in self.replicas.values():
            stop(replica.process)
            self.paid_s += time.monotonic() - replica.began
        stop(self.proxy)


def play(trace, policy):
    """One trace under one policy."""
    path = ROOT / f"bench/traces/{trace}.csv"
    lines = path.read_text().split()[1:]
    real_s = float(lines[-1].split(",")[0])
    # By CPU: the usual 70 % of the one core that a replica asks for.
    scaler = Autoscaler(speed=POLICY_SPEED, largest=MOST, target=0.7 if policy == "cpu" else None)
    fleet = Fleet()
    series = []
    try:
        fixed = {"least": scaler.least, "most": MOST}.get(policy)
        fleet.scale(fixed or scaler.least)
        while not all(replica.ready() for replica in fleet.replicas.values()):
            time.sleep(0.05)
        time.sleep(1)  # the proxy has heard of them
        out = WORK / f"{trace}-{policy}.json"
        load = subprocess.Popen([WEIR, "load", f"http://127.0.0.1:{fleet.address}/m", "--trace", path, "--trace-speed", str(real_s / DAY_S), "--warmup", "1", "--percentile", "99",
                                 "--latency-threshold", str(TARGET_MS), "--json", out], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        time.sleep(1)
        begin, fleet.paid_s = time.monotonic(), 0.0
        for replica in fleet.replicas.values():
            replica.began = begin
        while load.poll() is None:
            time.sleep(scaler.sync_s)
            queue_s, cpus = fleet.metrics(30 / POLICY_SPEED)
            if not fixed:
                fleet.scale(scaler.decide(time.monotonic(), len(fleet.replicas), cpus if policy == "cpu" else queue_s))
            series.append((time.monotonic() - begin, len(fleet.replicas), queue_s))
        if load.returncode not in (0, 3):
            sys.exit(f"elasticity: weir load: {load.stderr.read()[-2000:]}")
    finally:
        fleet.close()
    time.sleep(0.5)
    level = json.loads(out.read_text())["levels"][0]
    scale = real_s / DAY_S / 3600  # from played seconds to hours of the trace
    parts = level["trace"]
    slow = sum(1 for part in parts if part["response_ms"].get("p99", part["response_ms"].get("max", 0)) > TARGET_MS)
    return {"cost_h": fleet.paid_s * scale, "most": fleet.most, "p50": level["response_ms"]["p50"], "p99": level["response_ms"]["p99"], "slow": slow, "parts": len(parts),
            "planned": level["planned"], "lost": level["planned"] - level["answered"], "series": series, "level": level}


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    (WORK / "models/m/1").mkdir(parents=True)
    (WORK / "models/m/config.pbtxt").write_text(MODEL)
    for trace in TRACES:
        print(f"\n{trace}: {DAY_S:g} s; 1-minute load of the machine {os.getloadavg()[0]:.1f}\n\n| policy | replica-hours | most | p50 ms | p99 ms | parts of 24 over {TARGET_MS} ms | lost |\n|---|---|---|---|---|---|---|",
              flush=True)
        results = {}
        for policy in POLICIES:
            result = results[policy] = play(trace, policy)
            print(f"| {policy} | {result['cost_h']:.1f} | {result['most']} | {result['p50']:.1f} | {result['p99']:.1f} | {result['slow']} | {result['lost']} of {result['planned']} |", flush=True)
        if "queue" in results:
            print("\nreplicas under the policy, by part of the trace:")
            series, width = results["queue"]["series"], DAY_S / 24
            for number, part in enumerate(results["queue"]["level"]["trace"]):
                here = [replicas for at, replicas, _ in series if number * width <= at < (number + 1) * width]
                print(f"  {part['from_s']:6.1f} s  {part['planned_per_s']:6.0f} /s  {sum(here) / max(1, len(here)):4.1f} replicas  p99 {part['response_ms'].get('p99', float('nan')):7.1f} ms")
        if {"queue", "most"} <= set(results):
            bars.check("elasticity: cost", trace, results["queue"]["cost_h"] / results["most"]["cost_h"])
            bars.check("elasticity: lost", trace, results["queue"]["lost"] / results["queue"]["planned"])
    return bars.exit_status()


if __name__ == "__main__":
    sys.exit(main())
