#!/usr/bin/env python3
"""weir probe storage against fio, bare loops and memcpy, side by side: ./dev bench probe [--pairs N] [--seconds S] [--folder DIR] [PART...].

Parts: fio (direct random reads: psync and io_uring, 4 KiB and 128 KiB, depth 1 and 16), files (warm whole files against a bare
open-read-close loop in C), copy (the program from memory against memcpy), steps (emulated accelerators on an infinitely fast storage).
Each trial of weir stands between two of the peer, so that the peer is also compared with itself.
"""
import argparse
import json
import math
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile

import bars

ROOT = pathlib.Path(__file__).resolve().parent.parent
WEIR = os.environ.get("WEIR_PROGRAM", str(ROOT / "build/release/weir"))
FILE_BYTES = 115_000


def probe(folder, *arguments):
    command = [WEIR, "probe", "storage", folder, "--repeats", "1", "--json", "-", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode not in (0, 3):
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stderr.decode()}")
    return json.loads(done.stdout)


def median_log(pairs):
    return statistics.median(math.log(a / b) for a, b in pairs)


def against(peer, weir, pairs):
    """Returns the figures of peer, weir, peer, weir, ... by name: lists of (weir, peer before it, peer after it)."""
    found = {}
    before = peer()
    for _ in range(pairs):
        ours, after = weir(), peer()
        for name, value in ours.items():
            found.setdefault(name, []).append((value, before[name], after[name]))
        before = after
    return found


def loops(folder):
    program = folder / "probe_loops"
    subprocess.run(["cc", "-O2", ROOT / "bench/probe_loops.c", "-o", program, "-lpthread"], check=True)
    return lambda *arguments: float(subprocess.run([program, *map(str, arguments)], capture_output=True, check=True).stdout)


def write_noise(path, size):
    with open(path, "wb") as file:
        for _ in range(size >> 20):
            file.write(os.urandom(1 << 20))
        os.fsync(file.fileno())


def bench_fio(folder, options):
    if shutil.which("fio") is None:
        print("fio is missing: apt-get install fio", file=sys.stderr)
        return
    data = folder / "fio"
    data.mkdir()
    write_noise(data / "data", options.megabytes << 20)
    for engine in ("psync", "io_uring"):
        for size in (4096, 131072):
            for depth in (1, 16):
                threads, ring = (depth, 1) if engine == "psync" else (1, depth)

                def fio(engine=engine, size=size, threads=threads, ring=ring):
                    command = ["fio", "--name=x", f"--filename={data / 'data'}", "--rw=randread", f"--bs={size}", "--direct=1", f"--ioengine={engine}",
                               f"--numjobs={threads}", "--thread", f"--iodepth={ring}", "--group_reporting", "--time_based", f"--runtime={options.seconds}",
                               "--norandommap", "--randrepeat=0", "--lat_percentiles=1", "--clat_percentiles=0", "--output-format=json"]
                    read = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["jobs"][0]["read"]
                    times = read["lat_ns"]["percentile"]  # with the submission, as weir counts a read
                    return {"reads/s": read["iops"], "p50": times["50.000000"] / 1e3, "p99": times["99.000000"] / 1e3}

                def weir(engine=engine, size=size, threads=threads, ring=ring):
                    result = probe(folder, "--set", data, "--record-bytes", size, "--direct", "--access", "pool" if engine == "psync" else "io_uring",
                                   "--threads", threads, "--ring-depth", ring, "--batch", 16, "--depth", 16, "--step-ms", 0, "--steps", 1 << 29,
                                   "--limit-s", options.seconds)
                    return {"reads/s": result["samples_per_s"], "p50": result["read_us"]["p50"], "p99": result["read_us"]["p99"]}

                for name, rows in against(fio, weir, options.pairs).items():
                    ours = median_log([(w, math.sqrt(a * b)) for w, a, b in rows])
                    itself = sorted(abs(math.log(a / b)) for _, a, b in rows)
                    spread = itself[min(len(itself) - 1, math.ceil(0.9 * len(itself)) - 1)]
                    print(f"{engine:9}{size:7} depth {depth:2} {name:8} weir over fio {math.exp(ours):.3f}; fio over itself within {math.exp(spread):.3f}", flush=True)
                    bars.check("probe: fio", f"{engine} {size} depth {depth} {name}", abs(ours) / max(spread, 0.01))


def bench_files(folder, options):
    run = loops(folder)
    data = folder / "files"
    data.mkdir()
    names = []
    for i in range(2000):
        names.append(data / f"{i:05}.bin")
        names[-1].write_bytes(os.urandom(FILE_BYTES))
    random.Random(1).shuffle(names)
    (folder / "list").write_text("".join(f"{name}\n" for name in names))

    def weir():
        return {"files/s": probe(folder, "--set", data, "--warm", "--threads", 1, "--batch", 16, "--depth", 16, "--step-ms", 0, "--steps", 1 << 29,
                                 "--limit-s", options.seconds)["samples_per_s"]}

    rows = against(lambda: {"files/s": run("files", options.seconds, folder / "list")}, weir, options.pairs)["files/s"]
    ratio = math.exp(median_log([(w, math.sqrt(a * b)) for w, a, b in rows]))
    overhead = statistics.median(1e6 / w - 1e6 / math.sqrt(a * b) for w, a, b in rows)
    print(f"warm files: weir over a bare loop {ratio:.3f}; {overhead:.2f} us more for a file of {FILE_BYTES} bytes", flush=True)
    bars.check("probe: files", "warm whole files", ratio)
    bars.check("probe: overhead", "warm whole files", overhead)


def bench_copy(folder, options):
    run = loops(folder)
    for threads in sorted({1, min(2, os.cpu_count())}):
        def weir(threads=threads):
            return {"bytes/s": probe(folder, "--source", "memory", "--samples", 1000, "--sample-bytes", FILE_BYTES, "--threads", threads, "--batch", 16,
                                     "--depth", 16, "--step-ms", 0, "--steps", 1 << 29, "--limit-s", options.seconds)["bytes_per_s"]}

        rows = against(lambda threads=threads: {"bytes/s": run("copy", options.seconds, FILE_BYTES, threads)}, weir, options.pairs)["bytes/s"]
        ratio = math.exp(median_log([(w, math.sqrt(a * b)) for w, a, b in rows]))
        print(f"memory, {threads} threads: weir over memcpy {ratio:.3f}", flush=True)
        bars.check("probe: copy", f"{threads} threads", ratio)


def bench_steps(folder, options):
    for step_ms, accelerators, bar in ((3.5, 1, "probe: 3.5 ms"), (0.4, 1, "probe: 0.4 ms"), (0.4, 8, "probe: 0.4 ms, 8")):
        values = [probe(folder, "--source", "memory", "--samples", 500, "--sample-bytes", 20000, "--step-ms", step_ms, "--accelerators", accelerators,
                        "--steps", int(1000 * options.seconds / step_ms))["utilisation_percent"] for _ in range(options.pairs)]
        print(f"steps of {step_ms} ms, {accelerators} accelerators: {statistics.median(values):.2f} % used (from {min(values):.2f} to {max(values):.2f})", flush=True)
        bars.check(bar, "null source", statistics.median(values))


PARTS = {"steps": bench_steps, "copy": bench_copy, "files": bench_files, "fio": bench_fio}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--megabytes", type=int, default=2048, help="size of fio's file")
    parser.add_argument("--folder", default=str(ROOT / "build"), help="on the disk to be measured")
    parser.add_argument("part", nargs="*", metavar="PART", help=", ".join(PARTS))
    options = parser.parse_args()
    if unknown := set(options.part) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="probe-bench.") as folder:
        for part in options.part or PARTS:
            PARTS[part](pathlib.Path(folder), options)
    return bars.exit_status()


if __name__ == "__main__":
    sys.exit(main())
