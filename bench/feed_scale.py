#!/usr/bin/env python3
"""Measures what a long training asks of the feed: start, resume, memory, the call of next(), other Python threads.

    python3 bench/feed_scale.py [--samples 1000000] [--data build/feed-scale] [--only start,memory,next,loop,thread,train]

The sets are made once, below --data: 1.5 GB for a million samples. Times are medians of interleaved pairs.
- start: from weir.Feed to the first batch, of a set of --samples; and the same with a state at 90 % of an epoch.
- memory: resident memory after the sixth epoch over that after the first.
- next: CPU time of one next() whose batch is ready, raw 224, batch 64: of four calls one after the other, and of
  the first after a sleep, whose code and data other programs have driven out of the processor's caches.
- loop: samples a CPU-second of a Python loop over `weir feed --bench`, raw 224.
- thread: rate of a Python thread that counts, beside the loader over alone. The time in which the machine had no
  core for the thread is left out, so other programs disturb it less.
- train: examples/train_tiny.py to 95 % of accuracy, killed twice, against the run without a kill.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import bars  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = os.environ.get("WEIR_PROGRAM", str(ROOT / "build/release/weir"))
PACKAGE = os.environ.get("WEIR_PYTHON", str(ROOT / "build/release/python"))
RAW = {"batch": 64, "seed": 1, "threads": 1, "crop": "none", "flip": 0}


def run(*words, **kwargs):
    return subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True, **kwargs)


def python(code, *words):
    """Runs a snippet with the package in a new process. Returns what it printed, as JSON."""
    return json.loads(run(sys.executable, "-c", code, *words, env=os.environ | {"PYTHONPATH": PACKAGE}).stdout)


def made(path, make):
    """Makes a set once, whole or not at all."""
    if not path.exists():
        part = path.with_suffix(".part")
        subprocess.run(["rm", "-rf", part], check=True)
        make(part)
        part.rename(path)
    return path


START = """
import json, sys, time
import weir
state = json.loads(sys.argv[2])
begin = time.monotonic()
feed = weir.Feed(sys.argv[1], batch=64, seed=1, threads=2, size=(32, 32))
if state:
    feed.load_state_dict(state)
next(iter(feed))
print(json.dumps({"first_s": time.monotonic() - begin, "state": feed.state_dict()}))
"""


def start(arguments):
    data = arguments.data
    small = made(data / "small", lambda out: run(PROGRAM, "prepare", "--make", 500, "--seed", 3, "-o", out))
    recipe = data / "small.yaml"
    recipe.write_text("layout: NHWC\ndatatype: UINT8\nresize: {width: 32, height: 32}\n")
    folder = made(data / f"tfrecord-{arguments.samples}", lambda out: run(PROGRAM, "prepare", small, "--recipe", recipe, "--format", "tfrecord", "--replicate", arguments.samples, "-o", out))
    state = python(START, folder, "null")["state"]
    state["position"] = int(0.9 * arguments.samples) // 64 * 64
    pairs = [(python(START, folder, "null")["first_s"], python(START, folder, json.dumps(state))["first_s"]) for _ in range(arguments.pairs)]
    first = statistics.median(cold for cold, _ in pairs)
    ratio = statistics.median(resumed / cold for cold, resumed in pairs)
    print(f"start   first batch of {arguments.samples:,} samples after {first:.3f} s; at 90 % of an epoch {ratio:.2f} times that")
    bars.check("feed: first batch", f"{arguments.samples} samples", first)
    bars.check("feed: resume", "at 90 %", ratio)


MEMORY = """
import json, sys
import weir
def resident():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))
feed = weir.Feed(sys.argv[1], batch=64, seed=1, threads=2, brightness=0.4, hue=0.1)
sizes = []
for epoch in range(6):
    for batch in feed:
        pass
    sizes.append(resident())
print(json.dumps(sizes))
"""


def memory(arguments):
    folder = made(arguments.data / "pictures", lambda out: run(PROGRAM, "prepare", "--make", 2000, "--seed", 5, "-o", out))
    sizes = python(MEMORY, folder)
    print(f"memory  {sizes[0] / 1024:.1f} MiB after one epoch of 2,000, {sizes[-1] / 1024:.1f} MiB after six")
    bars.check("feed: memory", "five epochs", sizes[-1] / sizes[0])


def raw_set(arguments):
    pictures = made(arguments.data / "pictures", lambda out: run(PROGRAM, "prepare", "--make", 2000, "--seed", 5, "-o", out))
    recipe = arguments.data / "raw.yaml"
    recipe.write_text("layout: NHWC\ndatatype: UINT8\nresize: {width: 224, height: 224}\n")
    return made(arguments.data / "raw", lambda out: run(PROGRAM, "prepare", pictures, "--recipe", recipe, "--format", "raw", "-o", out))


NEXT = """
import json, sys, time
import numpy as np
import weir
def forever():
    while True:
        yield from feed
def cpu(call):
    begin = time.thread_time_ns()
    got = call()
    return got, (time.thread_time_ns() - begin) / 1e3
feed = weir.Feed(sys.argv[1], prefetch=8, **json.loads(sys.argv[2]))
batches = forever()
later, first, empty, same = [], [], [], True
for _ in range(60):
    time.sleep(0.1)  # the threads fill the queue
    kept = []
    for place in range(5):
        batch, us = cpu(lambda: next(batches))
        (later if place > 0 else first).append(us)
        same = same and np.asarray(batch["image"]).ctypes.data == batch["image"].ctypes.data
        kept.append(batch)
    time.sleep(0.1)
    empty.append(cpu(lambda: np.empty(5))[1])
median = lambda values: sorted(values)[len(values) // 2]
print(json.dumps({"later_us": median(later), "first_us": median(first), "empty_us": median(empty), "same": same}))
"""


def next_call(arguments):
    got = python(NEXT, raw_set(arguments), json.dumps(RAW))
    print(f"next    {got['later_us']:.1f} us of CPU; after 0.1 s of sleep {got['first_us']:.1f} us, where numpy.empty(5) takes {got['empty_us']:.1f} us; same address: {got['same']}")
    bars.check("feed: next", "CPU time of one call", got["later_us"])
    if not got["same"]:
        bars.missed.append("feed: numpy has another address")


LOOP = """
import json, sys, time
import weir
feed = weir.Feed(sys.argv[1], **json.loads(sys.argv[2]))
rows, begin, cpu = 0, time.monotonic(), time.process_time()
while time.monotonic() - begin < 3:
    for batch in feed:
        rows += batch["count"]
print(json.dumps({"per_s": rows / (time.monotonic() - begin), "per_cpu_s": rows / (time.process_time() - cpu)}))
"""


def loop(arguments):
    folder, ratios, rates = raw_set(arguments), [], []
    for _ in range(arguments.pairs):
        ours = python(LOOP, folder, json.dumps(RAW))
        result = json.loads(run(PROGRAM, "feed", folder, "--bench", "--crop", "none", "--flip", 0, "--threads", 1, "--batch", 64, "--seed", 1, "--duration", 3, "--json", "-").stdout)
        ratios.append(ours["per_cpu_s"] * result["cpu_us_per_sample"] / 1e6)
        rates.append(ours["per_s"] / result["samples_per_s"])
    print(f"loop    Python has {statistics.median(ratios):.3f} of the samples a CPU-second of the C++ loop ({min(ratios):.3f} to {max(ratios):.3f}), {statistics.median(rates):.3f} of its rate")
    bars.check("feed: loop", "Python over C++", statistics.median(ratios))


THREAD = """
import json, sys, threading, time
import weir
feed = weir.Feed(sys.argv[1], process=json.loads(sys.argv[3]), **json.loads(sys.argv[2]))
counted, ended = 0, False
def count():
    global counted
    while not ended:
        counted += 1
thread = threading.Thread(target=count)
thread.start()
def delay():  # seconds that the thread was ready and had no core
    with open(f"/proc/self/task/{thread.native_id}/schedstat") as file:
        return int(file.read().split()[1]) / 1e9
def rate(seconds, batches):
    begin, first, waited = time.perf_counter(), counted, delay()
    while time.perf_counter() - begin < seconds:
        if batches is None:
            time.sleep(0.01)
        else:
            next(batches)
            time.sleep(0.01)  # the trainer's step
    return (counted - first) / (time.perf_counter() - begin - (delay() - waited))
def forever():
    while True:
        yield from feed
batches = forever()
next(batches)
pairs = [(rate(0.4, None), rate(0.4, batches)) for _ in range(15)]
ended = True
thread.join()
ratios = sorted(beside / alone for alone, beside in pairs)
print(json.dumps(ratios[len(ratios) // 2]))
"""


def thread(arguments):
    for process in ("false", "true"):
        ratio = python(THREAD, raw_set(arguments), json.dumps(RAW), process)
        print(f"thread  a Python thread keeps {ratio:.3f} of its rate beside the loader ({'a process' if process == 'true' else 'a thread'} of its own)")
        bars.check("feed: thread", f"process={process}", ratio)


def train(arguments):
    folder = made(arguments.data / "train", lambda out: run(PROGRAM, "prepare", "--make", 1500, "--seed", 8, "-o", out))

    def once(checkpoint, *words):
        path = arguments.data / checkpoint
        return subprocess.run([sys.executable, ROOT / "examples/train_tiny.py", folder, "--checkpoint", path, "--epochs", str(arguments.epochs), "--model", arguments.model, *map(str, words)],
                              env=os.environ | {"PYTHONPATH": PACKAGE}, capture_output=True, text=True, check=False)

    for name in ("whole", "killed"):
        (arguments.data / name).unlink(missing_ok=True)
    whole = once("whole").stdout.splitlines()
    killed = [once("killed", "--stop-after", 37).returncode, once("killed", "--stop-after", 111, "--threads", 3).returncode]
    resumed = once("killed", "--threads", 1).stdout.splitlines()
    accuracy = float(whole[-2].split()[1])
    print(f"train   accuracy {accuracy:.3f} after {arguments.epochs} epochs; killed twice {killed == [9, 9]}; same weights: {whole[-1] == resumed[-1]}")
    bars.check("feed: training", "accuracy", accuracy)
    if whole[-1] != resumed[-1] or killed != [9, 9]:
        bars.missed.append("feed: the killed training has other weights")


def main():
    parts = {"start": start, "memory": memory, "next": next_call, "loop": loop, "thread": thread, "train": train}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--data", type=pathlib.Path, default=ROOT / "build/feed-scale")
    parser.add_argument("--only", default=",".join(parts))
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--model", choices=["auto", "torch", "numpy"], default="numpy")
    arguments = parser.parse_args()
    arguments.data.mkdir(parents=True, exist_ok=True)
    for name in arguments.only.split(","):
        parts[name](arguments)
        sys.stdout.flush()
    return bars.exit_status()


if __name__ == "__main__":
    sys.exit(main())
