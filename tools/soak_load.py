#!/usr/bin/env python3
"""soak_load.py SECONDS [RATE]: weir load at a constant rate (10,000 a second) over HTTP and then over gRPC against a server that is stopped for a
moment, killed and started anew again and again. Nothing may be lost of the account, and the generator's memory must not grow."""
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import threading
import time
import urllib.request

SECONDS, RATE = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
WEIR = "build/release/weir"
WORK = pathlib.Path("build/soak")
HTTP, GRPC = 17300, 17301


class Server:
    def __init__(self):
        folder = WORK / "served/quick"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.pbtxt").write_text(
            'backend: "emulated"\nmax_batch_size: 8\ninput { name: "x" data_type: TYPE_FP32 dims: [ 16 ] }\n'
            'output { name: "y" data_type: TYPE_FP32 dims: [ 16 ] }\n'
            'parameters { key: "engine" value: { string_value: "emulated:base=0ms" } }\n')
        self.lock = threading.Lock()
        self.start()

    def start(self):
        self.process = subprocess.Popen([WEIR, "serve", "--model-repository", WORK / "served", "--http-port", str(HTTP), "--grpc-port", str(GRPC),
                                         "--metrics-port", str(HTTP + 2)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 20
        while time.monotonic() < until:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{HTTP}/v2/models/quick/ready", timeout=1)
                return
            except OSError:
                time.sleep(0.02)
        sys.exit("soak_load: the server does not become ready")

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)
        time.sleep(0.15)
        self.process.send_signal(signal.SIGCONT)

    def restart(self):
        self.process.kill()
        self.process.wait()
        time.sleep(0.1)
        self.start()

    def stop(self):
        self.process.kill()
        self.process.wait()


def resident(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


def soak(protocol, port, server):
    result = WORK / f"load-{protocol}.json"
    load = subprocess.Popen([WEIR, "load", "-m", "quick", "-i", protocol, "-u", f"127.0.0.1:{port}", "--request-rate-range", str(RATE), "--duration",
                             str(SECONDS), "--request-timeout-ms", "50", "--max-in-flight", "2048", "--json", result],
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    sizes, next_pause, next_kill, begin = [], 3.0, 7.0, time.monotonic()
    while load.poll() is None:
        now = time.monotonic() - begin
        if now > next_kill:
            server.restart()
            next_kill += 10
        elif now > next_pause:
            server.pause()
            next_pause += 4
        if now > 5:
            sizes.append(resident(load.pid))
        time.sleep(0.2)
    if load.returncode not in (0, 3):
        sys.exit(f"soak_load: weir load ended with {load.returncode}")
    level, = json.loads(result.read_text())["levels"]
    quarter = max(1, len(sizes) // 4)  # the allocator's own room has grown by the second
    early, late = statistics.median(sizes[quarter:2 * quarter]), statistics.median(sizes[-quarter:])
    print(f"soak: {protocol}: {level['planned']} planned = {level['answered']} answered + {level['failed']} failed + {level['unsent']} unsent; "
          f"{level['errors']}; {early:.0f} kB early, {late:.0f} kB late", flush=True)
    assert level["planned"] == level["answered"] + level["failed"] + level["unsent"], "the account does not add up"
    assert level["planned"] == RATE * SECONDS, "not all of the schedule was planned"
    assert level["answered"] > 0.5 * level["planned"], "most of it failed"
    assert {"timeout", "connection"} <= set(level["errors"]), "the faults were not met"
    assert late <= early * 1.05 + 1024, "memory grows"


server = Server()
try:
    soak("http", HTTP, server)
    soak("grpc", GRPC, server)
finally:
    server.stop()
