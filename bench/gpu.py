"""Figures of a GPU against their limits: python3 bench/gpu.py [--device cuda:0]

Needs a GPU, the engine (./dev setup --cuda), made/resnet50 and made/pictures (./dev demo), and the photos of WEIR_SHARED where they
are there. torch, where Python has it, is the anchor: the same network in eager mode, in the same run. Ends with 1 where a bar is missed
and with 2 without a GPU. What cannot be measured here is printed as such and counts neither way.
"""
import argparse
import csv
import json
import os
import pathlib
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
    if done.returncode:
        raise RuntimeError(f"weir {' '.join(map(str, arguments))}\n{done.stderr}")
    return json.loads(done.stdout)


def top1(path):
    with open(path, newline="", encoding="utf-8") as file:
        return {row["file"]: row["class"] for row in csv.DictReader(file) if row["rank"] == "1"}


def accuracy(model, photos, device):
    """Top-1 on the device against the CPU's, at each precision."""
    with tempfile.TemporaryDirectory() as folder:
        def answers(name, *flags):
            path = pathlib.Path(folder, name)
            weir("run", model, photos, "--batch", 8, "--answers", path, *flags)
            return top1(path)
        reference = answers("cpu")
        for precision in ("f32", "tf32", "f16"):
            found = answers(precision, "--device", device, "--precision", precision)
            share = sum(found.get(file) == best for file, best in reference.items()) / len(reference)
            held("gpu: top-1 f32" if precision == "f32" else "gpu: top-1 reduced", f"{precision}: share of {len(reference)} pictures with the CPU's top-1", share)


def load(model, device, batch, *flags, seconds=10):
    result = weir("load", model, "--device", device, "--batch-size", batch, "--concurrency-range", 2, "--duration", seconds, "--pool", 4, *flags)
    return result


def rate(result):
    return result["levels"][0]["rows_per_s"]


def torch_rate(batch, seconds=10):
    """Images a second of torch's eager ResNet-50 in f32 without TF32, NCHW, data on the host and pinned; None where torch is not here."""
    try:
        import torch
        import torchvision
    except ImportError:
        return None
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    network = torchvision.models.resnet50().eval().cuda()
    data = torch.rand(batch, 3, 224, 224).pin_memory()
    with torch.inference_mode():
        for _ in range(20):
            network(data.cuda(non_blocking=True)).cpu()
        torch.cuda.synchronize()
        begin, count = time.monotonic(), 0
        while time.monotonic() - begin < seconds:
            network(data.cuda(non_blocking=True)).cpu()
            count += 1
    return batch * count / (time.monotonic() - begin)


def against_torch(model, device):
    for batch, flags in ((1, ["--cuda-graph"]), (32, []), (128, [])):
        anchor = torch_rate(batch)
        own = rate(load(model, device, batch, *flags))
        say(f"batch {batch}: {own:.0f} images/s{'' if anchor is None else f', torch eager {anchor:.0f}'}")
        if anchor is None:
            say("  not compared: Python has no torch and torchvision")
        else:
            held("gpu: graph over torch" if batch == 1 else "gpu: over torch", f"batch {batch} over torch eager, f32", own / anchor)


def application(model, pictures, device):
    """The application over the engine alone, data in memory, and what the card did meanwhile."""
    alone = rate(load(model, device, 32))
    result = weir("run", model, pictures, "--device", device, "--batch", 32, "--no-files", "--repeat-data", 20)
    held("gpu: application over engine", "the application over the engine alone, data in memory", result["throughput_images_per_s"] / alone)
    use = result["resources"]
    if "recogniser_cpu" in use:
        held("gpu: host cores", "cores of the engine's host side", use["recogniser_cpu"]["mean"])
    if "gpu_graphics_percent" in use:
        difference = abs(use["gpu_event_busy_percent"]["mean"] - use["gpu_graphics_percent"]["mean"])
        held("gpu: events against GPM", "event-busy against GPM's graphics activity, points", difference)
    else:
        say("event-busy against GPM: this card has no GPM (Hopper or newer)")
    if "gpu_energy_j" in use and "gpu_power_watts" in use:
        # Power by the device's own samples, in a run of its own: the mean of gpu_power_watts is the counter's.
        say(f"energy {use['gpu_energy_j']:.0f} J in {use['wall_s']:.1f} s")
        power = sampled_power(lambda: weir("run", model, pictures, "--device", device, "--batch", 32, "--no-files", "--repeat-data", 20))
        if power:
            mean, used = power
            held("gpu: energy", "energy over mean power times time, off by", abs(used["gpu_energy_j"] / (mean * used["wall_s"]) - 1))
    uint8 = weir("run", model, pictures, "--device", device, "--preprocess", "gpu", "--batch", 32, "--no-files", "--repeat-data", 20)
    say(f"--preprocess gpu: {uint8['throughput_images_per_s'] / result['throughput_images_per_s']:.3f} of the rate with --preprocess cpu")
    if "gpu_pcie_received_mib_s" in uint8["resources"]:
        def bytes_each(r):
            return r["resources"]["gpu_pcie_received_mib_s"]["mean"] * 2**20 / r["throughput_images_per_s"]
        held("gpu: uint8 bytes", "bytes a picture over PCIe, uint8 over float", bytes_each(uint8) / bytes_each(result))


def sampled_power(work):
    sampler = subprocess.Popen(["nvidia-smi", "--query-gpu=power.draw.instant", "--format=csv,noheader,nounits", "-lms", "100"], stdout=subprocess.PIPE, text=True)
    try:
        result = work()
    finally:
        sampler.terminate()
        text = sampler.communicate()[0]
    values = [float(line) for line in text.split() if line.replace(".", "").isdigit()]
    busy = values[len(values) // 4: -len(values) // 8 or None]
    return (sum(busy) / len(busy), result) if busy else None


def served(model, device):
    """Event-busy of a server under the asynchronous client over gRPC; the paper has 75 to 80 percent."""
    server = subprocess.Popen([PROGRAM, "serve", "--model-repository", str(model), "--device", device, "--http-port", "0", "--grpc-port", "0", "--metrics-port", "0",
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
        name = pathlib.Path(model).name

        def busy():
            with urllib.request.urlopen(f"http://{urllib.parse.urlparse(place['metrics']['url']).netloc}/metrics") as page:
                lines = page.read().decode().splitlines()
            return sum(float(line.split()[-1]) for line in lines if line.startswith("weir_accelerator_busy_seconds") and f'model="{name}"' in line)
        client = subprocess.Popen([PROGRAM, "load", f"{place['grpc']['url']}/{name}", "--batch-size", "32", "--concurrency-range", "8", "--pool", "4", "--duration", "12"],
                                  stdout=subprocess.DEVNULL)
        time.sleep(4)  # its requests are made, and the first answers are there
        before, begin = busy(), time.monotonic()
        time.sleep(6)
        held("gpu: busy in gRPC", "event-busy in async gRPC", (busy() - before) / (time.monotonic() - begin))
    finally:
        for process in (client, server):
            if process is not None:
                process.terminate()
                process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--model", default="made/resnet50")
    parser.add_argument("--pictures", default="made/pictures")
    asked = parser.parse_args()
    found = subprocess.run([PROGRAM, "run", asked.model, asked.pictures, "--device", asked.device, "--batch", "1"], capture_output=True, text=True, check=False)
    if found.returncode == 2:
        print(f"gpu: no figure: {found.stderr.strip()}", file=sys.stderr)
        return 2
    photos = pathlib.Path(os.environ.get("WEIR_SHARED", ROOT.parent / "shared")) / "data/photos"
    accuracy(asked.model, photos if photos.is_dir() else asked.pictures, asked.device)
    against_torch(asked.model, asked.device)
    application(asked.model, asked.pictures, asked.device)
    served(asked.model, asked.device)
    say("not measured here: the emulated accelerator fitted from a prediction (weir fit, weir predict)")
    return exit_status()


if __name__ == "__main__":
    sys.exit(main())
