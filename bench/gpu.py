"""Figures of a GPU against their limits: python3 bench/gpu.py [--device cuda:0]

On a machine without a GPU it says which steps it would run, and the bars of each.

Needs a GPU, the engine (./dev setup --cuda), made/resnet50 and made/pictures (./dev demo), and the photos of WEIR_SHARED where they
are there. torch, where Python has it, is the anchor: the same network in eager mode, in the same run. Ends with 1 where a bar is missed
and with 2 without a GPU. What cannot be measured here is printed as such and counts neither way.
"""
import argparse
import csv
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from bars import BARS, check, exit_status  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = os.environ.get("WEIR_PROGRAM", str(ROOT / "build/release/weir"))


def say(text):
    print(text, flush=True)


def held(bar, what, value):
    sign, limit, _ = BARS[bar]
    say(f"{what:60} {value:10.4g}   bar {sign} {limit}")
    check(bar, what, value)


def weir(*arguments, **kwargs):
    done = subprocess.run([PROGRAM, *map(str, arguments), "--json", "-"], capture_output=True, text=True, check=False, **kwargs)
    if done.returncode and not done.stdout.startswith("{"):  # a result that is not VALID is one all the same
        raise RuntimeError(f"weir {' '.join(map(str, arguments))}\n{done.stderr}")
    return json.loads(done.stdout)


def answers_of(path):
    """The score of each class among the best, by picture."""
    found = {}
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["rank"]:
                found.setdefault(row["file"], {})[row["class"]] = float(row["score"])
    return found


def top1(answers):
    return {file: max(scores, key=scores.get) for file, scores in answers.items()}


def accuracy(asked):
    """Top-1 and scores on the device against the CPU's, at each precision."""
    with tempfile.TemporaryDirectory() as folder:
        def answers(name, *flags):
            path = pathlib.Path(folder, name)
            weir("run", asked.model, asked.photos, "--batch", 8, "--answers", path, *flags)
            return answers_of(path)
        reference = answers("cpu")
        best = top1(reference)
        for precision in ("f32", "tf32", "f16"):
            found = answers(precision, "--device", asked.device, "--precision", precision)
            own = top1(found)
            share = sum(own.get(file) == each for file, each in best.items()) / len(best)
            held("gpu: top-1 f32" if precision == "f32" else "gpu: top-1 reduced", f"{precision}: share of {len(best)} pictures with the CPU's top-1", share)
            if precision == "f32":
                off = max(abs(score - found[file][each]) for file, scores in reference.items() for each, score in scores.items() if each in found.get(file, {}))
                held("gpu: scores f32", "f32: greatest difference of a score", off)


def engine_rate(asked, batch, *flags, in_flight=2):
    """Images a second of the engine alone: tensors in memory, two batches in flight."""
    result = weir("load", asked.model, "--device", asked.device, "--batch-size", batch, "--concurrency-range", in_flight, "--duration", asked.seconds, "--pool", 4, *flags)
    return result["levels"][0]["rows_per_s"]


def torch_rate(batch, precision, seconds):
    """Images a second of torch's eager ResNet-50, TF32 off, NCHW, data on the host and pinned; None where torch is not here."""
    try:
        import torch
        import torchvision
    except ImportError:
        return None
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    kind = torch.float16 if precision == "f16" else torch.float32
    network = torchvision.models.resnet50().eval().cuda().to(kind)
    data = torch.rand(batch, 3, 224, 224).pin_memory()
    with torch.inference_mode():
        def step():
            return network(data.cuda(non_blocking=True).to(kind)).cpu()
        for _ in range(20):
            step()
        torch.cuda.synchronize()
        begin, count = time.monotonic(), 0
        while time.monotonic() - begin < seconds:
            step()
            count += 1
    return batch * count / (time.monotonic() - begin)


def against_torch(asked):
    for batch, precision, flags in ((1, "f32", ["--cuda-graph"]), (32, "f32", []), (128, "f32", []), (32, "f16", []), (128, "f16", [])):
        anchor = torch_rate(batch, precision, asked.seconds)
        own = engine_rate(asked, batch, "--precision", precision, *flags)
        say(f"batch {batch}, {precision}: {own:.0f} images/s{'' if anchor is None else f', torch eager {anchor:.0f}'}")
        if anchor is None:
            say("  not compared: Python has no torch and torchvision")
        else:
            held("gpu: graph over torch" if batch == 1 else "gpu: over torch", f"batch {batch} over torch eager, {precision}", own / anchor)


def run(asked, *flags, seconds=None):
    """The application with its data in memory, for about so many seconds; the mode is asynchronous."""
    words = ["run", asked.model, asked.pictures, "--batch", 32, "--no-files", *flags]
    once = weir(*words)
    passes = max(1, round((seconds or asked.seconds) * once["throughput_images_per_s"] / max(1, once["images"])))
    return weir(*words, "--repeat-data", passes)


def application(asked):
    """The application over the engine alone, data in memory, and what the card did meanwhile."""
    alone = engine_rate(asked, 32)
    result = run(asked, "--device", asked.device, seconds=max(asked.seconds, 10))
    held("gpu: application over engine", "the application over the engine alone, data in memory", result["throughput_images_per_s"] / alone)
    stages = result["stages_ms"]["device"]
    say("  by events, ms a picture: " + ", ".join(f"{name} {time / result['images']:.4f}" for name, time in stages.items()))
    use = result["resources"]
    if "recogniser_cpu" in use:
        held("gpu: host cores", "cores of the engine's host side", use["recogniser_cpu"]["mean"])
    if "gpu_graphics_percent" in use:
        events, graphics = (use[f"gpu_{name}_percent"]["mean"] for name in ("event_busy", "graphics"))
        difference = abs(events - graphics)
        say(f"{result['throughput_images_per_s']:.0f} images/s; event-busy {events:.1f} %, GPM's graphics activity {graphics:.1f} %")
        held("gpu: events against GPM", f"event-busy against GPM's graphics activity over {use['wall_s']:.0f} s, points", difference)
    else:
        say("event-busy against GPM: this card has no GPM (Hopper or newer)")
    energy(asked)
    uint8 = run(asked, "--device", asked.device, "--preprocess", "gpu")
    say(f"--preprocess gpu: {uint8['throughput_images_per_s'] / result['throughput_images_per_s']:.3f} of the rate with --preprocess cpu")
    if "gpu_pcie_received_mib_s" in uint8["resources"]:
        def bytes_each(r):
            return r["resources"]["gpu_pcie_received_mib_s"]["mean"] * 2**20 / r["throughput_images_per_s"]
        say(f"bytes a picture over PCIe: float {bytes_each(result):.0f}, uint8 {bytes_each(uint8):.0f}")
        held("gpu: uint8 bytes", "bytes a picture over PCIe, uint8 over float", bytes_each(uint8) / bytes_each(result))
    else:
        say("bytes over PCIe: this card does not count them")


def energy(asked):
    """The counter's joules against the mean of the device's own power samples, in one run."""
    if shutil.which("nvidia-smi") is None:
        return say("energy: nvidia-smi is not here")
    power = sampled_power(lambda: run(asked, "--device", asked.device, seconds=max(asked.seconds, 10)))
    if power is None or "gpu_energy_j" not in power[1]["resources"]:
        return say("energy: this card counts none")
    use = power[1]["resources"]
    mean = mean_over(power[0], use["wall_s"])
    say(f"energy {use['gpu_energy_j']:.0f} J in {use['wall_s']:.1f} s")
    return held("gpu: energy", "energy over mean power times time, off by", abs(use["gpu_energy_j"] / (mean * use["wall_s"]) - 1))


def sampled_power(work):
    sampler = subprocess.Popen(["nvidia-smi", "--query-gpu=power.draw.instant", "--format=csv,noheader,nounits", "-lms", "100"], stdout=subprocess.PIPE, text=True)
    try:
        result = work()
    finally:
        sampler.terminate()
        text = sampler.communicate()[0]
    values = [float(line) for line in text.split() if line.replace(".", "").isdigit()]
    return (values, result) if values else None


def mean_over(samples, wall_s):
    """The mean of the samples, 100 ms apart, over the measured part of a run: the part of its length with the most power."""
    count = min(len(samples), max(1, round(wall_s / 0.1)))
    return max(sum(samples[at:at + count]) / count for at in range(len(samples) - count + 1))


def served(asked):
    """Event-busy of a server under the asynchronous client over gRPC; the paper has 75 to 80 percent."""
    server = subprocess.Popen([PROGRAM, "serve", "--model-repository", str(asked.model), "--device", asked.device, "--http-port", "0", "--grpc-port", "0", "--metrics-port", "0",
                               "--json", "-"], stdout=subprocess.PIPE, text=True)
    client = None
    try:
        text = ""
        for line in server.stdout:
            text += line
            try:
                place = json.loads(text)
                break
            except json.JSONDecodeError:
                continue
        name = pathlib.Path(asked.model).name

        def busy():
            with urllib.request.urlopen(f"http://{urllib.parse.urlparse(place['metrics']['url']).netloc}/metrics") as page:
                lines = page.read().decode().splitlines()
            return sum(float(line.split()[-1]) for line in lines if line.startswith("weir_accelerator_busy_seconds") and f'model="{name}"' in line)
        client = subprocess.Popen([PROGRAM, "load", f"{place['grpc']['url']}/{name}", "--batch-size", "32", "--concurrency-range", "8", "--pool", "4", "--duration", str(asked.seconds + 6)],
                                  stdout=subprocess.DEVNULL)
        time.sleep(4)  # its requests are made, and the first answers are there
        before, begin = busy(), time.monotonic()
        time.sleep(asked.seconds)
        held("gpu: busy in gRPC", "event-busy in async gRPC", (busy() - before) / (time.monotonic() - begin))
    finally:
        for process in (client, server):
            if process is not None:
                process.terminate()
                process.wait()


def emulated(asked):
    """The application from files with the card, and with the emulated accelerator that the card's times, or a prediction, describe."""
    if asked.predictor:
        answer = weir("predict", asked.predictor, "--gpu", asked.gpu, "--network", "resnet50", "--batch", 1, 32, 128, "--as-engine")
        engine = answer["engines"][0]["engine"]
        say(f"emulated by the prediction of {asked.predictor}: {engine}")
    else:
        times = {batch: batch / engine_rate(asked, batch, in_flight=1) for batch in (1, 8, 32, 128)}
        per_item = (times[128] - times[8]) / 120
        engine = f"emulated:base={max(0, times[32] - 32 * per_item) * 1e3:.4f}ms,per_item={per_item * 1e3:.5f}ms"
        say(f"emulated by the card's own times: {engine}; --predictor FILE --gpu NAME takes a prediction instead")
    words = ["run", asked.model, asked.pictures, "--batch", 32]
    ratios = []
    for _ in range(3):
        real, made = (weir(*words, *flags)["throughput_images_per_s"] for flags in (["--device", asked.device], ["--engine", engine]))
        ratios.append(made / real)
    held("gpu: emulated", "rate with the emulated accelerator over the real one's, off by", abs(sorted(ratios)[1] - 1))


# What is measured, the bars that it is held against, and how, for a machine that cannot run it.
STEPS = {
    "accuracy": (accuracy, ["gpu: top-1 f32", "gpu: scores f32", "gpu: top-1 reduced"], "weir run MODEL PHOTOS --device D --precision f32, tf32 and f16, against the answers of the CPU"),
    "torch": (against_torch, ["gpu: over torch", "gpu: graph over torch"],
              "weir load MODEL --device D at batches 32 and 128 in f32 and f16, and at batch 1 with --cuda-graph, against torch in eager mode in the same run"),
    "application": (application, ["gpu: application over engine", "gpu: host cores", "gpu: events against GPM", "gpu: energy", "gpu: uint8 bytes"],
                    "weir run MODEL PICTURES --device D --no-files for 10 s, against weir load; with --preprocess gpu; beside nvidia-smi's power"),
    "served": (served, ["gpu: busy in gRPC"], "weir serve --device D under weir load grpc://... with 8 batches of 32 in flight"),
    "emulated": (emulated, ["gpu: emulated"], "weir run MODEL PICTURES --device D against --engine emulated:... by the card's own times, or by weir predict --as-engine"),
}


def plan(why, asked):
    print(f"gpu: no figure: {why}", file=sys.stderr)
    say(f"On a machine with a GPU, `python3 bench/gpu.py --device {asked.device}` would run:")
    for name, (_, bars, what) in STEPS.items():
        say(f"\n{name}: {what}")
        for bar in bars:
            sign, limit, meaning = BARS[bar]
            say(f"  {bar:30} {sign} {limit:<8.4g} {meaning}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--model", default="made/resnet50")
    parser.add_argument("--pictures", default="made/pictures")
    parser.add_argument("--only", choices=list(STEPS), action="append", help="a step; may be given again (default: all)")
    parser.add_argument("--seconds", type=float, default=10, help="of each measurement")
    parser.add_argument("--predictor", help="of weir fit -o, for the step emulated")
    parser.add_argument("--gpu", help="this card's name in the predictor's table")
    asked = parser.parse_args()
    if bool(asked.predictor) != bool(asked.gpu):
        parser.error("--predictor and --gpu go together")
    photos = pathlib.Path(os.environ.get("WEIR_SHARED", ROOT.parent / "shared")) / "data/images"
    asked.photos = photos if photos.is_dir() else asked.pictures
    found = subprocess.run([PROGRAM, "run", asked.model, asked.pictures, "--device", asked.device, "--batch", "1"], capture_output=True, text=True, check=False)
    if found.returncode == 2:
        plan(found.stderr.strip(), asked)
        return 2
    for name in asked.only or STEPS:
        say(f"\n{name}")
        STEPS[name][0](asked)
    return exit_status()


if __name__ == "__main__":
    sys.exit(main())
