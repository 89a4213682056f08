#!/usr/bin/env python3
"""Compares the time of a look-up while another process enrols with the time while nobody does.

    bench/enrolling.py [--rows 200000] [--rate 1000] [--rounds 5]

The index holds made vectors of 512 values. Rounds with and without enrolment take turns. Each round looks up the same mates, one at a
time; the enrolment sends --rate vectors a second through `weir identities enrol DIR -`, whose batches are durable before they are
acknowledged. A rate that is not reached is said.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import bars

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("--rows", type=int, default=200_000)
parser.add_argument("--dimension", type=int, default=512)
parser.add_argument("--rate", type=int, default=1000)
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--mates", type=int, default=2000, help="look-ups of a round")
parser.add_argument("--weir", default=str(pathlib.Path(__file__).resolve().parent.parent / "build/release/weir"))
options = parser.parse_args()
folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-enrolling-")) / "people"


def weir(*arguments):
    done = subprocess.run([options.weir, "identities", *map(str, arguments), "--json", "-"], capture_output=True, check=False)
    if done.returncode:
        sys.exit(done.stderr.decode())
    return json.loads(done.stdout)


weir("build", folder, "--make", options.rows, "--dimension", options.dimension)
line = json.dumps({"name": "NAME", "embedding": [round((i * 37 % 101 - 50) / 50, 2) for i in range(options.dimension)]})


class Enrolment:
    """Writes the lines at their moments; the acknowledgements say how many became durable."""

    def __enter__(self):
        self.process = subprocess.Popen([options.weir, "identities", "enrol", folder, "-", "--batch", "100"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ending, self.sent, self.begin = False, 0, time.monotonic()
        self.thread = threading.Thread(target=self.write)
        self.thread.start()
        return self

    def write(self):
        while not self.ending:
            due = int((time.monotonic() - self.begin) * options.rate)
            self.process.stdin.write("".join(line.replace("NAME", f"new{os.getpid()}-{i}") + "\n" for i in range(self.sent, due)))
            self.process.stdin.flush()
            self.sent = max(self.sent, due)
            time.sleep(0.02)

    def __exit__(self, *_):
        self.ending = True
        self.thread.join()
        took = time.monotonic() - self.begin
        self.process.stdin.close()
        said = self.process.stdout.read()
        if self.process.wait() != 0 or f"enrolled {self.sent}\n" not in said:
            sys.exit("the enrolment failed")
        self.rate = self.sent / took


def look_up():
    us = weir("evaluate", folder, "--made-mates", options.mates, "--threshold", 0, "--threads", 1)["search_us"]
    return us["p50"], us["p99"]


idle, busy, rates = [], [], []
look_up()
for _ in range(options.rounds):
    idle.append(look_up())
    with Enrolment() as enrolment:
        busy.append(look_up())
    rates.append(enrolment.rate)
print(f"{options.rows} rows, {options.dimension} values, {options.mates} look-ups a round, load {os.getloadavg()[0]:.1f}; {statistics.median(rates):.0f} enrolled a second")
for i, name in enumerate(("p50", "p99")):
    ratio = statistics.median(b[i] / a[i] for a, b in zip(idle, busy))
    print(f"{name}: {statistics.median(a[i] for a in idle):.0f} us idle, {statistics.median(b[i] for b in busy):.0f} us while enrolling, ratio {ratio:.2f}")
    if name == "p99":
        bars.check("enrolling", "p99 of a look-up", ratio)
sys.exit(bars.exit_status())
