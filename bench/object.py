#!/usr/bin/env python3
"""Reading object storage beside h2load: ./dev bench object

Objects of 110 KB from nginx, 64 requests in flight, over a link of 5 Gbit/s between two network namespaces; then over a server that answers 150 ms late. Client and
server take the CPUs as they come; the two clients run in turn, WEIR_BENCH_ROUNDS (5) times. Needs root, nginx and h2load (nghttp2-client).
"""
import asyncio
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time

import bars

ROOT = pathlib.Path(__file__).resolve().parent.parent
OBJECT_GET = pathlib.Path(os.environ.get("WEIR_OBJECT_GET", ROOT / "build/release/bench/object_get"))
WORK = ROOT / "build/bench/object"
ROUNDS, KEYS, COUNT, DEPTH, SIZE = int(os.environ.get("WEIR_BENCH_ROUNDS", "5")), 64, 30_000, 64, 110_000  # the last ones, with the link half empty, count for little
NEAR, FAR, PORT, DELAY_S = "wob-near", "wob-far", 8080, 0.150


def run(*command):
    subprocess.run([str(word) for word in command], check=True, capture_output=True)


class Link:
    """Two namespaces with a link of 5 Gbit/s, and nginx on the far side."""

    def __enter__(self):
        self.__exit__()
        run("ip", "netns", "add", NEAR)
        run("ip", "netns", "add", FAR)
        run("ip", "link", "add", "wob0", "type", "veth", "peer", "name", "wob1")
        for name, device, address in ((NEAR, "wob0", "10.79.0.1"), (FAR, "wob1", "10.79.0.2")):
            run("ip", "link", "set", device, "netns", name)
            run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", device)
            run("ip", "-n", name, "link", "set", "lo", "up")
            run("ip", "-n", name, "link", "set", device, "mtu", 9000, "up")
            run("tc", "-n", name, "qdisc", "replace", "dev", device, "root", "tbf", "rate", "5gbit", "burst", "256kb", "latency", "2ms")
        (WORK / "nginx.conf").write_text(f"""daemon off; worker_processes 1; pid {WORK}/nginx.pid; error_log stderr error;
events {{ worker_connections 1024; }}
http {{ access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000000; root {WORK}/files; client_body_temp_path {WORK}/t1; proxy_temp_path {WORK}/t2;
  fastcgi_temp_path {WORK}/t3; uwsgi_temp_path {WORK}/t4; scgi_temp_path {WORK}/t5; server {{ listen 10.79.0.2:{PORT}; }} }}
""")
        self.server = subprocess.Popen(["nsenter", f"--net=/run/netns/{FAR}", shutil.which("nginx") or "/usr/sbin/nginx", "-p", WORK, "-e", "stderr", "-c", WORK / "nginx.conf"])
        time.sleep(0.5)
        return self

    def __exit__(self, *_):
        if getattr(self, "server", None):
            self.server.send_signal(signal.SIGTERM)
            self.server.wait(10)
        for name in (NEAR, FAR):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def measured(command):
    """(standard output, CPU seconds) of a client on the near side."""
    process = subprocess.Popen(["nsenter", f"--net=/run/netns/{NEAR}", *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               env={**os.environ, "AWS_ALLOW_HTTP": "true"})
    said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"object: {command[0]}: {said[-1000:]}")
    return said, usage.ru_utime + usage.ru_stime


def object_get(url, count, depth):
    said, _ = measured([OBJECT_GET, url, KEYS, count, depth])
    return json.loads(said.splitlines()[-1])


def h2load():
    said, cpu_s = measured(["h2load", "--h1", "-n", COUNT, "-c", DEPTH, "-t", 1, "-i", WORK / "urls.txt"])
    assert f"{COUNT} succeeded" in said, said
    return float(re.search(r"finished in [^,]+, ([0-9.]+) req/s", said).group(1)), 1e6 * cpu_s / COUNT


class LateServer:
    """Answers every GET after 150 ms, on any number of connections."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.ready = threading.Event()
        threading.Thread(target=self.work, daemon=True).start()
        self.ready.wait()

    def work(self):
        asyncio.set_event_loop(self.loop)
        body = b"x" * SIZE
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {SIZE}\r\nETag: \"one\"\r\n\r\n".encode()

        async def serve(reader, writer):
            try:
                while True:
                    await reader.readuntil(b"\r\n\r\n")
                    await asyncio.sleep(DELAY_S)
                    writer.write(head + body)
                    await writer.drain()
            except (asyncio.IncompleteReadError, ConnectionError):
                writer.close()

        async def start():
            server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=512)
            self.port = server.sockets[0].getsockname()[1]
            self.ready.set()
        self.loop.run_until_complete(start())
        self.loop.run_forever()


def main():
    shutil.rmtree(WORK, ignore_errors=True)
    (WORK / "files").mkdir(parents=True)
    for key in range(KEYS):
        (WORK / f"files/{key}").write_bytes(os.urandom(SIZE))
    WORK.chmod(0o755)
    url = f"http://10.79.0.2:{PORT}/"
    (WORK / "urls.txt").write_text("".join(f"{url}{key}\n" for key in range(KEYS)))
    signing = [json.loads(subprocess.run([OBJECT_GET, "--sign", "20000"], check=True, capture_output=True, text=True).stdout)["us_per_signature"] for _ in range(3)]
    print(f"signing: {min(signing):.2f} us of CPU a request", flush=True)
    bars.check("object: signing", "one request", min(signing))
    rates, costs = [], []
    with Link():
        print("| round | weir /s | h2load /s | weir CPU us | h2load CPU us |\n|---|---|---|---|---|")
        for number in range(ROUNDS):
            ours = object_get(url, COUNT, DEPTH)
            rate, cpu_us = h2load()
            rates.append(ours["per_s"] / rate)
            costs.append(ours["cpu_us"] / cpu_us)
            print(f"| {number + 1} | {ours['per_s']:.0f} | {rate:.0f} | {ours['cpu_us']:.1f} | {cpu_us:.1f} |", flush=True)
    bars.check("object: rate", "110 KB, 64 in flight", statistics.median(rates))
    bars.check("object: CPU", "110 KB, 64 in flight", statistics.median(costs))
    late = LateServer()
    for depth in (64, 256):
        # Long enough that the rise of the limit in flight counts for little.
        said = subprocess.run([OBJECT_GET, f"http://127.0.0.1:{late.port}/", str(KEYS), str(depth * 40), str(depth)], check=True, capture_output=True, text=True).stdout
        share = json.loads(said.splitlines()[-1])["per_s"] / (depth / DELAY_S)
        print(f"150 ms of delay, {depth} in flight: {share:.3f} of depth over latency", flush=True)
        if depth == 64:
            bars.check("object: delay", f"{depth} in flight", share)
    return bars.exit_status()


if __name__ == "__main__":
    sys.exit(main())
