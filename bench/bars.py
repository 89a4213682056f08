"""The limits that ./dev bench holds its figures against. A benchmark calls check(), and ends with exit_status().

A limit leaves room for the noise of a machine that is shared with others: docs/performance.md has the figures.
"""
import sys

# Name, sign and limit, and what the figure is.
BARS = {
    "engines": (">=", 0.90, "throughput of inference over the engine's own program"),
    "pipeline": (">=", 0.93, "throughput from files over the bound of its parts"),
    "prepare": (">=", 1.5, "CPU time of Pillow over weir prepare"),
    "workers": ("<=", 1.08, "CPU time a picture of two workers over one"),
    "breakaway": (">=", 0.97, "share kept of an accelerator of 458 images/s"),
    "serving: Triton": ("<=", 0.80, "CPU time of weir serve over Triton"),
    "serving: hello-world": ("<=", 1.5, "CPU time of weir serve over a hello-world on gRPC"),
    "remote": (">=", 0.90, "throughput over a server on loopback over one process"),
    "batching": (">=", 0.80, "throughput of single rows over explicit batches"),
    "overload": (">=", 0.95, "good answers under overload, of the capacity"),
    "memory": ("<=", 1.6, "payloads of memory for each further call in flight"),
    "probe: fio": ("<=", 1.0, "difference of weir probe from fio over the 90th percentile of fio's from itself"),
    "probe: files": (">=", 0.95, "warm whole files over a bare open-read-close loop"),
    "probe: overhead": ("<=", 12, "us a file over the same loop"),
    "probe: copy": (">=", 0.8, "throughput from memory over memcpy"),
    "probe: 3.5 ms": (">=", 99, "percent of an accelerator used, from memory"),
    "probe: 0.4 ms": (">=", 98, "percent of an accelerator used, from memory"),
    "probe: 0.4 ms, 8": (">=", 95, "percent of eight accelerators used, from memory"),
    "elasticity: cost": ("<=", 0.80, "replica-hours under the policy over those of the most replicas"),
    "elasticity: lost": ("<=", 0.001, "requests without an answer while replicas came and went"),
    "object: rate": (">=", 0.90, "objects a second over h2load"),
    "object: CPU": ("<=", 1.5, "CPU time a GET over h2load"),
    "object: signing": ("<=", 15, "microseconds of a signature"),
    "object: delay": (">=", 0.90, "rate over depth / latency of a slow store"),
    "feed: torch": (">=", 2.5, "images a CPU-second over torch's DataLoader"),
    "feed: webdataset": (">=", 2.0, "images a CPU-second over WebDataset"),
    "feed: streaming": (">=", 2.0, "images a CPU-second over MosaicML Streaming"),
    "feed: dali": (">=", 1.6, "images a CPU-second over DALI on CPU"),
    "feed: ffcv": (">=", 1.3, "images a CPU-second over FFCV"),
    "feed: first batch": ("<=", 0.5, "seconds to the first batch of a million samples"),
    "feed: resume": ("<=", 1.1, "start at 90 % of an epoch over a cold start"),
    "feed: memory": ("<=", 1.02, "resident memory after six epochs over one"),
    "feed: next": ("<=", 20, "microseconds of next()"),
    "feed: loop": (">=", 0.95, "samples a CPU-second of a Python loop over the C++ loop"),
    "feed: thread": (">=", 0.97, "rate of a Python thread beside the loader over alone"),
    "feed: training": (">=", 0.95, "accuracy of the training that is killed twice"),
    "gpu: top-1 f32": (">=", 1.0, "share of pictures with the CPU's top-1"),
    "gpu: scores f32": ("<=", 1e-3, "greatest difference of a score from the CPU's"),
    "gpu: top-1 reduced": (">=", 148 / 150, "share of pictures with the CPU's top-1"),
    "gpu: over torch": (">=", 0.90, "throughput over torch eager at equal precision"),
    "gpu: graph over torch": (">=", 1.1, "throughput with CUDA graphs over torch eager"),
    "gpu: application over engine": (">=", 0.95, "throughput of the application over the engine alone"),
    "gpu: busy in gRPC": (">=", 0.95, "share of the time in which the GPU had a batch"),
    "gpu: uint8 bytes": ("<=", 0.3, "bytes over PCIe of uint8 over float"),
    "gpu: events against GPM": ("<=", 3, "points between event-busy and GPM's graphics activity"),
    "gpu: energy": ("<=", 0.03, "energy against mean power times time"),
    "gpu: emulated": ("<=", 0.10, "rate with the emulated accelerator of this card against the real one's, off by"),
    "gpu: host cores": ("<=", 0.2, "cores of the engine's host side"),
    "load": ("<=", 1.5, "CPU time of weir load over wrk or h2load"),
    "enrolling": ("<=", 1.2, "p99 of a look-up while 1,000 a second are enrolled, over idle"),
    "decode: ffmpeg": ("<=", 1.05, "CPU time a frame of weir watch over ffmpeg -f null"),
    "decode: GStreamer": ("<=", 0.95, "CPU time a frame of weir watch over GStreamer"),
    "streams: OpenCV": (">=", 1.5, "streams of weir watch that hold the deadline, over those of an OpenCV loop"),
    "streams: GStreamer": (">=", 1.15, "streams of weir watch that hold the deadline, over those of GStreamer with leaky queues"),
    "network": (">=", 0.97, "agreement of weir probe network with iperf3"),
    "barrier": ("<=", 150, "us in the median of the two messages of a step, over namespaces of one host"),
    "request": ("<=", 1.05, "median time of a 602 KB message over the line's own time"),
    "generators": ("<=", 1.03, "median response time of two generators over one"),
}
missed = []
checked = 0


def check(bar, what, value):
    """Holds one figure against its bar. Says on standard error when it misses."""
    global checked
    sign, limit, meaning = BARS[bar]
    checked += 1
    if value < limit if sign == ">=" else value > limit:
        missed.append(f"{bar}: {what}: {value:.3f}; the bar is {sign} {limit} ({meaning})")
        print(f"bar missed: {missed[-1]}", file=sys.stderr, flush=True)


def exit_status():
    """Prints the account of all bars. Returns 1 if one was missed."""
    print(f"\nbars: {checked - len(missed)} of {checked} held", flush=True)
    return int(bool(missed))
