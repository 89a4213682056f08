#!/usr/bin/env python3
"""What a server in between costs a whole run, and how it behaves when much is asked of it: ./dev bench remote
(bench/remote.py NAME ... for some of it)

  throughput  a model on loopback over HTTP and gRPC against the same model in one process, async, batches of 8, all cores
  batching    32 callers with one row each against explicit batches
  breakaway   the fastest emulated accelerator of which a client on one core and a server on the other keep 0.97
  memory      bytes of server and client for each call in flight
  overload    3 times what the model can do, for WEIR_BENCH_SECONDS (60)

WEIR_TRITON_WAITING is a command that starts a Triton with gRPC on port 18001 and a model `accelerated` (FP32 [3,224,224] to
FP32 [1000], up to 128 rows) whose backend takes WEIR_PER_ITEM_US for each row; without it the break-away is weir's alone.

WEIR_SHARED names the folder of models and photos (beside the checkout otherwise); what needs it is skipped without it.
"""
import asyncio
import json
import os
import pathlib
import shlex
import signal
import socket
import statistics
import subprocess
import sys
import time

import bars
import compare
from compare import RECIPE, ROUNDS, SHARED, WEIR

WORK = compare.WORK / "remote"
SECONDS = int(os.environ.get("WEIR_BENCH_SECONDS", "60"))
HTTP, GRPC = "http://127.0.0.1:17200", "grpc://127.0.0.1:17201"


def run(model, *arguments, core=None):
    pin = [] if core is None else ["taskset", "-c", str(core)]
    result, log = WORK / "run.json", WORK / "run.log"
    with open(log, "w") as out:
        process = subprocess.Popen([*pin, WEIR, "run", model, *map(str, arguments), "--json", result], stdout=out, stderr=out)
        _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"remote: weir run {model}: {log.read_text()[-2000:]}")
    return json.loads(result.read_text()) | {"peak_bytes": usage.ru_maxrss * 1024}


class Server:
    def __init__(self, *arguments, core=None):
        WORK.mkdir(parents=True, exist_ok=True)
        facts = WORK / "served.json"
        facts.unlink(missing_ok=True)
        pin = [] if core is None else ["taskset", "-c", str(core)]
        self.log = open(WORK / "server.log", "w")
        self.process = subprocess.Popen([*pin, WEIR, "serve", *map(str, arguments), "--http-port", "17200", "--grpc-port", "17201",
                                         "--metrics-port", "17202", "--json", facts], stdout=self.log, stderr=self.log)
        until = time.monotonic() + 60
        while not facts.exists():
            if self.process.poll() is not None or time.monotonic() > until:
                sys.exit(f"remote: the server did not start: see {WORK}/server.log")
            time.sleep(0.05)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)
        self.log.close()

    def memory(self, field):
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(field):
                return int(line.split()[1]) * 1024


def emulated(name, engine, dims_in, dims_out, batch=128, more=""):
    folder = WORK / "models" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.pbtxt").write_text(
        f'name: "{name}"\nbackend: "emulated"\nmax_batch_size: {batch}\ninput {{ name: "input" data_type: TYPE_FP32 dims: {dims_in} }}\n'
        f'output {{ name: "logits" data_type: TYPE_FP32 dims: {dims_out} }}\nparameters {{ key: "engine" value: {{ string_value: "{engine}" }} }}\n{more}')
    if "224" in dims_in:
        (folder / "recipe.yaml").write_text(RECIPE)
    return folder


def told(values):
    return f"{statistics.median(values):.3f} ({min(values):.3f}-{max(values):.3f})"


def throughput():
    if not SHARED.is_dir():
        return print(f"throughput: skipped, no models at {SHARED}")
    print(f"\nOn loopback against one process, images/s, async, batches of 8, medians of {ROUNDS} interleaved rounds\n\n"
          "| what | in one process | HTTP / that | gRPC / that |\n|---|---|---|---|")
    for name, passes in (("resnet50_pq", 1), ("mobilenet_v1_025_128_u8", 40)):
        model, recipe = SHARED / f"models/{name}.onnx", SHARED / f"models/recipes/{name}.yaml"
        data = (SHARED / "images", "--recipe", recipe, "--no-files", "--batch", 8, "--repeat-data", passes)
        local, ratios = [], {HTTP: [], GRPC: []}
        with Server("--model-repository", model):
            for _ in range(ROUNDS):
                local.append(run(model, *data)["throughput_images_per_s"])
                for url in ratios:
                    ratios[url].append(run(f"{url}/{name}", *data)["throughput_images_per_s"] / local[-1])
        print(f"| {name} | {statistics.median(local):.4g} | {told(ratios[HTTP])} | {told(ratios[GRPC])} |", flush=True)
        for url in ratios:
            bars.check("remote", f"{name}, {url[:4]}", statistics.median(ratios[url]))


def pictures():
    """1,000 made pictures at 224 pixels, as files."""
    compare.made()
    WORK.mkdir(parents=True, exist_ok=True)
    return compare.WORK / "jpeg224"


def batching():
    data = pictures()
    print(f"\n32 callers of one row each against explicit batches, images/s, medians of {ROUNDS} interleaved rounds\n\n"
          "| model | explicit batches | callers / that |\n|---|---|---|")
    cases = [("emulated, 4 ms + 1 ms a picture, batches to 8, delay 500 us",
              emulated("batched", "emulated:base=4ms,per_item=1ms", "[ 3, 224, 224 ]", "[ 1000 ]", 8,
                       "dynamic_batching { max_queue_delay_microseconds: 500 }\n"), "batched", 8, (data, "--repeat-data", 4)),
             ("emulated, 4 ms + 1 ms a picture, batches to 32",
              emulated("wide", "emulated:base=4ms,per_item=1ms", "[ 3, 224, 224 ]", "[ 1000 ]", 32, "dynamic_batching { }\n"), "wide", 32, (data, "--repeat-data", 4))]
    if SHARED.is_dir():
        folder = WORK / "models/mobilenet"
        (folder / "1").mkdir(parents=True, exist_ok=True)
        (folder / "1/model.onnx").write_bytes((SHARED / "models/mobilenet_v1_025_128_u8.onnx").read_bytes())
        recipe = (SHARED / "models/recipes/mobilenet_v1_025_128_u8.yaml").read_text().splitlines()
        (folder / "recipe.yaml").write_text("\n".join(line for line in recipe if not line.startswith("labels")) + "\n")
        (folder / "config.pbtxt").write_text('backend: "onnxruntime"\nmax_batch_size: 8\ndynamic_batching { max_queue_delay_microseconds: 500 }\n')
        cases.append(("mobilenet_v1_025_128_u8, ONNX Runtime, batches to 8, delay 500 us", folder, "mobilenet", 8, (SHARED / "images", "--repeat-data", 16)))
    for what, folder, name, batch, source in cases:
        explicit, ratios = [], []
        with Server("--model-repository", folder):
            for _ in range(ROUNDS):
                common = (*source, "--no-files")
                explicit.append(run(f"{GRPC}/{name}", *common, "--batch", batch)["throughput_images_per_s"])
                ratios.append(run(f"{GRPC}/{name}", *common, "--batch", 1, "--in-flight", 32)["throughput_images_per_s"] / explicit[-1])
        print(f"| {what} | {statistics.median(explicit):.4g} | {told(ratios)} |", flush=True)
        bars.check("batching", what, statistics.median(ratios))


class Triton:
    """What WEIR_TRITON_WAITING starts, on core 0, for one accelerator."""

    def __init__(self, per_item_us):
        WORK.mkdir(parents=True, exist_ok=True)
        self.log = open(WORK / "triton.log", "w")
        self.process = subprocess.Popen(["taskset", "-c", "0", *shlex.split(os.environ["WEIR_TRITON_WAITING"])], stdout=self.log, stderr=self.log,
                                        env=os.environ | {"WEIR_PER_ITEM_US": f"{per_item_us:.4f}"})
        until = time.monotonic() + 60
        while True:
            try:
                return socket.create_connection(("127.0.0.1", 18001), 1).close()
            except OSError:
                if self.process.poll() is not None or time.monotonic() > until:
                    sys.exit(f"remote: Triton did not start: see {WORK}/triton.log")
                time.sleep(0.05)

    __enter__, __exit__ = Server.__enter__, Server.__exit__


def breakaway():
    data = pictures()

    def weir(payload):
        def kept(rate):
            emulated("accelerated", f"emulated:base=0ms,per_item={1e6 / rate:.4f}us", "[ 3, 224, 224 ]", "[ 1000 ]")
            with Server("--model-repository", WORK / "models/accelerated", core=0):
                return reached(GRPC, rate, "--payload", payload)
        return kept

    def triton(rate):
        with Triton(1e6 / rate):
            return reached("grpc://127.0.0.1:18001", rate, "--recipe", compare.WORK / "224.yaml")

    def reached(url, rate, *options):
        passes = max(1, min(20, int(2.5 * rate / 1000)))
        got = run(f"{url}/accelerated", data, "--no-files", *options, "--batch", 8, "--repeat-data", passes, core=1)
        return got["throughput_images_per_s"] / rate

    print("\nThe fastest accelerator kept at 0.97, client and server on a core each, gRPC, async, batches of 8\n\n"
          "| server | payload | images/s |\n|---|---|---|")
    servers = [("weir", "tensor", weir("tensor")), ("weir", "pixels", weir("pixels"))]
    if "WEIR_TRITON_WAITING" in os.environ:
        servers.insert(1, ("Triton", "tensor", triton))
    for name, payload, kept in servers:
        print(f"| {name} | {payload} | {compare.highest_kept(kept, 200):.0f} |", flush=True)


def memory():
    data = pictures()
    payload = 8 * 602112
    folder = emulated("slow", "emulated:base=20ms", "[ 3, 224, 224 ]", "[ 1000 ]", 8)
    print(f"\nMemory over that of one call in flight, in payloads ({payload:,} bytes) for each further call\n\n"
          "| protocol | in flight | server | client |\n|---|---|---|---|")
    for url in (HTTP, GRPC):
        base = None
        for depth in (1, 8, 32, 128, 512):
            with Server("--model-repository", folder, "--max-queue", 1024, "--max-in-flight-mb", 8192) as server:
                client = run(f"{url}/slow", data, "--batch", 8, "--in-flight", depth, "--repeat-data", max(1, depth // 30))["peak_bytes"]
                peak = server.memory("VmHWM")
            if base is None:
                base = (peak, client)
                continue
            print(f"| {url[:4]} | {depth} | {(peak - base[0]) / payload / (depth - 1):.2f} | {(client - base[1]) / payload / (depth - 1):.2f} |", flush=True)
            for side, bytes_more in (("server", peak - base[0]), ("client", client - base[1])):
                bars.check("memory", f"{url[:4]}, {depth} in flight, {side}", bytes_more / payload / (depth - 1))


async def call(reader, writer, request):
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")).split(b":")[1])
    await reader.readexactly(length)
    return int(head.split()[1])


async def offer(rate, seconds, body):
    """An open loop: one request every 1 / rate seconds, each on a free connection or a new one."""
    request = (f"POST /v2/models/busy/infer HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n").encode() + body
    idle, answers, begin = [], [], time.monotonic()

    async def one():
        connection = idle.pop() if idle else await asyncio.open_connection("127.0.0.1", 17200)
        sent = time.monotonic()
        status = await call(*connection, request)
        answers.append((status, time.monotonic() - sent, sent - begin))
        idle.append(connection)

    tasks = []
    for number in range(int(rate * seconds)):
        await asyncio.sleep(max(0, begin + number / rate - time.monotonic()))
        tasks.append(asyncio.ensure_future(one()))
    await asyncio.gather(*tasks)
    return answers


def overload():
    capacity, queue = 200, 64
    folder = emulated("busy", "emulated:base=5ms", "[ 4 ]", "[ 4 ]", 1,
                      f"dynamic_batching {{ default_queue_policy {{ max_queue_size: {queue} }} }}\n")
    body = json.dumps({"inputs": [{"name": "input", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}]}).encode()
    with Server("--model-repository", folder) as server:
        asyncio.run(offer(capacity, 2, body))
        before = server.memory("VmRSS")
        answers = asyncio.run(offer(3 * capacity, SECONDS, body))
        after = server.memory("VmRSS")
    good = sorted(took for status, took, _ in answers if status == 200)
    refused = sorted(took for status, took, _ in answers if status == 503)
    wall = max(at + took for _, took, at in answers)
    print(f"\n{3 * capacity} requests/s for {SECONDS} s at a model of {capacity}/s with {queue} places\n\n| what | |\n|---|---|")
    print(f"| good answers | {len(good) / wall / capacity:.3f} of capacity |")
    bars.check("overload", "good answers", len(good) / wall / capacity)
    print(f"| p99 of the accepted | {good[int(len(good) * 0.99)] * 1e3:.0f} ms; queue length x service time {(queue + 1) * 1000 / capacity:.0f} ms |")
    print(f"| refused | {len(refused)} of {len(answers)}, in {refused[len(refused) // 2] * 1e3:.2f} ms (p99 {refused[int(len(refused) * 0.99)] * 1e3:.1f}) |")
    print(f"| neither | {len(answers) - len(good) - len(refused)} |\n| memory | {before / 1e6:.1f} MB before, {after / 1e6:.1f} MB after |", flush=True)


if __name__ == "__main__":
    parts = {"throughput": throughput, "batching": batching, "breakaway": breakaway, "memory": memory, "overload": overload}
    for name in sys.argv[1:] or parts:
        parts[name]()
    sys.exit(bars.exit_status())
