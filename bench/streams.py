#!/usr/bin/env python3
"""Compares the CPU time that a decoded and scaled frame costs in weir watch, ffmpeg and GStreamer.

    apt-get install ffmpeg gstreamer1.0-tools gstreamer1.0-libav gstreamer1.0-plugins-good gstreamer1.0-plugins-bad
    bench/streams.py VIDEO.mp4 [--rounds 5]

Each decodes H.264 with one thread a stream and scales to 224x224 RGB. weir watch plays the video behind an emulated model that takes no
CPU, --speed times as fast as its time stamps say; ffmpeg and GStreamer decode it as fast as they can. At the video's own pace the caches
are cold at each frame, which costs each program more. All take turns, so that a busy machine slows all of them; the figures are CPU time,
and the ratios are medians over rounds. The start of ffmpeg and GStreamer is left out: it is the difference of a long and a short run.
GStreamer's default filter reads two pixels a row and column, and aliases; its bilinear2 antialiases as the others do, so the bar is for it.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import bars

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("video", type=pathlib.Path)
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--copies", type=int, default=1, help="streams of weir watch")
parser.add_argument("--speed", type=float, default=20, help="of the video in weir watch, times its own pace")
parser.add_argument("--seconds", type=int, default=100, help="of the video, in each round")
parser.add_argument("--fps", type=float, default=10, help="frames a second of the video")
parser.add_argument("--flags", default="bicubic", help="of ffmpeg's scaler; its own default is bicubic. fast_bilinear is cheaper and does not antialias")
parser.add_argument("--weir", default=str(pathlib.Path(__file__).resolve().parent.parent / "build/release/weir"))
options = parser.parse_args()
folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-streams-"))
subprocess.run([options.weir, "model", "make", "identity", "-o", folder], check=True, stdout=subprocess.DEVNULL)
model = folder / "model"
model.mkdir()
(model / "config.pbtxt").write_text(
    'backend: "emulated"\nmax_batch_size: 8\ninput { name: "x" data_type: TYPE_UINT8 dims: [224, 224, 3] }\n'
    'output { name: "e" data_type: TYPE_FP32 dims: [8] }\nparameters { key: "engine" value: { string_value: "emulated:base=0ms" } }\n')
fast = folder / "fast.mp4"
subprocess.run(["ffmpeg", "-nostdin", "-v", "error", "-itsscale", str(1 / options.speed), "-t", str(options.seconds / options.speed), "-i", options.video, "-an", "-c", "copy", fast], check=True)
(model / "recipe.yaml").write_text("resize: {width: 224, height: 224}\nlayout: NHWC\ndatatype: UINT8\nchannels: RGB\n")


def cpu_s(*command):
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"failed: {' '.join(map(str, command))}")
    return usage.ru_utime + usage.ru_stime


def weir():
    done = subprocess.run([options.weir, "watch", *[str(fast)] * options.copies, "--classify", str(model), "--deadline", "5s", "--drop", "none", "--json", "-"], capture_output=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr.decode())
    return json.loads(done.stdout)["cpu_ms_per_frame"]


def slope(command):
    """CPU milliseconds a frame: of the seconds between a short and a long run."""
    short, long = 2, 2 + options.seconds
    return 1e3 * (cpu_s(*command(long)) - cpu_s(*command(short))) / ((long - short) * options.fps)


def ffmpeg(seconds):
    return ["ffmpeg", "-nostdin", "-threads", 1, "-t", seconds, "-i", options.video, "-an", "-vf", f"scale=224:224:flags={options.flags}", "-pix_fmt", "rgb24", "-f", "null", "-"]


def gstreamer(seconds, method="bilinear2"):
    return ["gst-launch-1.0", "-q", "filesrc", f"location={options.video}", "!", "qtdemux", "!", "h264parse", "!", "avdec_h264", "max-threads=1", "!",
            "videoscale", f"method={method}", "!", "videoconvert", "!", "video/x-raw,format=RGB,width=224,height=224", "!", "identity", f"eos-after={int(seconds * options.fps)}", "!",
            "fakesink", "sync=false"]


def gstreamer_two_taps(seconds):
    return gstreamer(seconds, "bilinear")


rounds = [(weir(), slope(ffmpeg), slope(gstreamer), slope(gstreamer_two_taps)) for _ in range(options.rounds)]
print(f"CPU ms a frame, {options.rounds} rounds, load {os.getloadavg()[0]:.1f}")
for name, values in zip(("weir watch", "ffmpeg -f null", "GStreamer", "GStreamer, two taps"), zip(*rounds)):
    print(f"{name:20}{statistics.median(values):8.2f}   {min(values):.2f} to {max(values):.2f}")
for name, peer in (("ffmpeg", 1), ("GStreamer", 2), ("GStreamer, two taps", 3)):
    ratio = statistics.median(each[0] / each[peer] for each in rounds)
    print(f"weir watch over {name}: {ratio:.3f}")
    if peer != 3:
        bars.check(f"decode: {name}", "CPU time a frame", ratio)
sys.exit(bars.exit_status())
