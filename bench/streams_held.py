#!/usr/bin/env python3
"""Compares how many streams hold a deadline in weir watch, in an OpenCV loop and in GStreamer with leaky queues.

    apt-get install python3-gi gir1.2-gst-plugins-base-1.0 gstreamer1.0-libav gstreamer1.0-plugins-good
    bench/streams_held.py VIDEO.mp4 fastestdet.onnx [--deadline 0.1] [--fps 10]

Each tool plays copies of the video at its own pace and runs the same detection model in ONNX Runtime. A stream's frame
counts from the moment at which its time stamp is due. The number doubles until fewer than 99 % of the due frames are answered within the
deadline, then it is bisected, and confirmed --confirm times. The tools take turns at each step. The OpenCV loop reads, scales and infers
one frame after the other, for all streams in turn, and gives each call of the model all cores; with --opencv-threads N it is N loops that
share the streams and the cores. GStreamer decodes in its own threads; queues and sinks hold
one frame and drop the older one; Python threads, one a core, infer with one thread a call, as weir watch does. Both peers leave out what follows the model; weir finds the boxes.

Answers count against real time, so a busy machine lowers all three. CPU time a frame, at --cpu-streams streams, is steadier: its inverse
bounds the streams that a machine can hold. On the first run the script makes a virtual environment with the peers (--venv).
"""
import argparse
import importlib.util
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time

PEERS = ["opencv-python-headless==5.0.0.93", "onnxruntime==1.31.1", "numpy"]
SIDE = 352  # of the model's input

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("video", type=pathlib.Path)
parser.add_argument("model", type=pathlib.Path, help="a detector for BGR of 352x352 in 0 to 1, as FastestDet")
parser.add_argument("--fps", type=float, default=10, help="frames a second of the video")
parser.add_argument("--deadline", type=float, default=0.1, help="seconds")
parser.add_argument("--seconds", type=float, default=8, help="of a trial")
parser.add_argument("--most", type=int, default=64, help="streams at which the search ends")
parser.add_argument("--confirm", type=int, default=2, help="trials at the number found that must hold")
parser.add_argument("--cpu-streams", type=int, default=2)
parser.add_argument("--opencv-threads", type=int, default=1, help="loops of the OpenCV peer")
parser.add_argument("--rounds", type=int, default=3, help="of the comparison of CPU time")
parser.add_argument("--no-search", action="store_true", help="compare the CPU time alone")
parser.add_argument("--weir", default=str(pathlib.Path(__file__).resolve().parent.parent / "build/release/weir"))
parser.add_argument("--venv", default=os.path.expanduser("~/.cache/weir-bench/streams"), help="virtual environment with the peers")
parser.add_argument("--peer", choices=["opencv", "gstreamer"], help=argparse.SUPPRESS)
parser.add_argument("--streams", type=int, help=argparse.SUPPRESS)
options = parser.parse_args()
if any(importlib.util.find_spec(name) is None for name in ("numpy", "cv2", "onnxruntime")):
    python = pathlib.Path(options.venv, "bin/python")
    if pathlib.Path(sys.prefix).resolve() == pathlib.Path(options.venv).resolve():
        sys.exit(f"{options.venv} lacks a peer: remove it and run again")
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", options.venv], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *PEERS], check=True)
    os.execv(python, [str(python), *sys.argv])


class Model:
    def __init__(self, threads=1):
        import numpy
        import onnxruntime
        self.numpy = numpy
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = threads
        self.session = onnxruntime.InferenceSession(str(options.model), settings, providers=["CPUExecutionProvider"])
        self.name = self.session.get_inputs()[0].name
        self.infer(numpy.zeros((SIDE, SIDE, 3), "u1"))

    def infer(self, picture):
        values = self.numpy.ascontiguousarray(picture.transpose(2, 0, 1), dtype="f4")[None]
        values *= 1 / 255
        self.session.run(None, {self.name: values})


class Account:
    def __init__(self):
        self.due = int(options.seconds * options.fps) * options.streams
        self.lock, self.answered, self.in_time, self.cpu = threading.Lock(), 0, 0, time.process_time()

    def answer(self, latency):
        with self.lock:
            self.answered += 1
            self.in_time += latency <= options.deadline

    def print(self):
        cpu = time.process_time() - self.cpu
        print(json.dumps({"held": 100 * self.in_time / self.due, "cpu_ms": 1e3 * cpu / max(1, self.answered)}))


def cores():
    return len(os.sched_getaffinity(0))


def share_out(work, most):
    threads = [threading.Thread(target=work, args=(range(i, options.streams, most),)) for i in range(min(most, options.streams))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def opencv():
    import cv2
    cv2.setNumThreads(1)
    model = Model(max(1, cores() // options.opencv_threads))
    captures = [cv2.VideoCapture(str(options.video), cv2.CAP_FFMPEG, [cv2.CAP_PROP_N_THREADS, 1]) for _ in range(options.streams)]
    account, begin = Account(), time.monotonic() + 0.2

    def loop(mine):
        for number in range(int(options.seconds * options.fps)):
            due = begin + number / options.fps
            for i in mine:
                time.sleep(max(0, due - time.monotonic()))
                found, picture = captures[i].read()
                if not found:
                    sys.exit("the video is too short for --seconds")
                model.infer(cv2.resize(picture, (SIDE, SIDE), interpolation=cv2.INTER_LINEAR))
                account.answer(time.monotonic() - due)
                if time.monotonic() > begin + 2 * options.seconds:
                    return

    share_out(loop, options.opencv_threads)
    account.print()


def gstreamer():
    sys.path.append("/usr/lib/python3/dist-packages")
    import gi
    gi.require_version("Gst", "1.0")
    gi.require_version("GstApp", "1.0")
    from gi.repository import Gst, GstApp  # noqa: F401: GstApp gives the sink its methods
    Gst.init(None)
    model = Model()
    queue = "queue leaky=downstream max-size-buffers=1 max-size-bytes=0 max-size-time=0"
    branch = (f'filesrc location="{options.video}" ! qtdemux ! h264parse ! avdec_h264 max-threads=1 ! identity sync=true ! {queue} ! videoscale ! videoconvert ! '
              f"video/x-raw,format=BGR,width={SIDE},height={SIDE} ! appsink name=sink%d sync=false max-buffers=1 drop=true")
    pipeline = Gst.parse_launch("  ".join(branch % i for i in range(options.streams)))
    sinks = [pipeline.get_by_name(f"sink{i}") for i in range(options.streams)]
    account = Account()
    pipeline.set_state(Gst.State.PLAYING)
    if pipeline.get_state(30 * Gst.SECOND)[0] != Gst.StateChangeReturn.SUCCESS:
        sys.exit("GStreamer does not play the video")

    def running():
        return (pipeline.get_clock().get_time() - pipeline.get_base_time()) / 1e9

    def loop(mine):
        while running() < options.seconds:
            idle = True
            for i in mine:
                sample = sinks[i].try_pull_sample(0)
                if sample is None:
                    continue
                idle = False
                buffer = sample.get_buffer()
                due = sample.get_segment().to_running_time(Gst.Format.TIME, buffer.pts) / 1e9
                found, memory = buffer.map(Gst.MapFlags.READ)
                model.infer(model.numpy.frombuffer(memory.data, "u1").reshape(SIDE, SIDE, 3))
                buffer.unmap(memory)
                account.answer(running() - due)
            if idle:
                time.sleep(0.001)

    share_out(loop, cores())
    pipeline.set_state(Gst.State.NULL)
    account.print()


if options.peer:
    {"opencv": opencv, "gstreamer": gstreamer}[options.peer]()
    sys.exit()

import bars  # noqa: E402: the peers do without it

recipe = pathlib.Path(tempfile.mkdtemp(prefix="weir-streams-held-"), "recipe.yaml")
recipe.write_text(f"channels: BGR\nresize: {{width: {SIDE}, height: {SIDE}}}\nscale: {1 / 255}\n")


def weir(streams):
    done = subprocess.run([options.weir, "watch", *[str(options.video)] * streams, "--detect", str(options.model), "--detect-recipe", str(recipe), "--engine", "onnxruntime",
                           "--threads", "1", "--deadline", f"{options.deadline * 1e3:g}ms", "--duration", f"{options.seconds:g}s", "--json", "-"], capture_output=True, check=False)
    if done.returncode:
        sys.exit(done.stderr.decode())
    result = json.loads(done.stdout)
    frames = result["frames"]
    ended = frames["dropped"].get("stopped", 0)
    return {"held": 100 * frames["in_time"] / (frames["captured"] - ended), "cpu_ms": result["cpu_ms_per_frame"] * frames["captured"] / max(1, frames["answered"])}


def peer(name):
    def play(streams):
        done = subprocess.run([sys.executable, *sys.argv, "--peer", name, "--streams", str(streams)], capture_output=True, check=False)
        if done.returncode:
            sys.exit(f"{name}: {done.stderr.decode()}")
        return json.loads(done.stdout.splitlines()[-1])
    return play


class Search:
    """Doubles until a trial does not hold, bisects, confirms; a confirmation that fails lowers the number."""

    def __init__(self, play):
        self.play, self.held, self.failed, self.confirmed = play, 0, None, 0

    def over(self):
        return self.held >= options.most or (self.failed == self.held + 1 and (self.held == 0 or self.confirmed >= options.confirm))

    def step(self):
        bisected = self.failed == self.held + 1
        at = self.held if bisected else max(1, 2 * self.held) if self.failed is None else (self.held + self.failed) // 2
        if self.play(at)["held"] >= 99:
            self.held, self.confirmed = at, self.confirmed + 1 if bisected else 1
        elif bisected:
            self.held, self.failed, self.confirmed = at - 1, at, 0
        else:
            self.failed = at


tools = {"weir watch": weir, "OpenCV loop": peer("opencv"), "GStreamer, leaky queues": peer("gstreamer")}
rounds = {name: [] for name in tools}
for _ in range(options.rounds):
    for name, play in tools.items():
        rounds[name].append(play(options.cpu_streams)["cpu_ms"])
print(f"CPU ms an answered frame, {options.cpu_streams} streams, {options.rounds} rounds, load {os.getloadavg()[0]:.1f}")
for name, values in rounds.items():
    print(f"{name:26}{statistics.median(values):7.2f}   {min(values):.2f} to {max(values):.2f}")
for name in list(tools)[1:]:
    print(f"{name} over weir watch: {statistics.median(theirs / ours for ours, theirs in zip(rounds['weir watch'], rounds[name])):.2f}")
if options.no_search:
    sys.exit()
searches = {name: Search(play) for name, play in tools.items()}
while not all(search.over() for search in searches.values()):
    for search in searches.values():
        if not search.over():
            search.step()
print(f"streams of {options.fps:g} frames/s of which 99 % hold {options.deadline * 1e3:g} ms, load {os.getloadavg()[0]:.1f}")
for name, search in searches.items():
    print(f"{name:26}{search.held:5}")
ours = searches["weir watch"].held
for name, bar in (("OpenCV loop", "streams: OpenCV"), ("GStreamer, leaky queues", "streams: GStreamer")):
    if searches[name].held:
        bars.check(bar, "streams that hold the deadline", ours / searches[name].held)
sys.exit(bars.exit_status())
