#!/usr/bin/env python3
"""Compares weir's feed with the loaders that people use.

    python3 bench/feed.py SET_FOLDER [--pairs 9] [--seconds 4] [--only NAME,...] [--venvs DIR]

SET_FOLDER is a folder with a folder of JPEGs for each class. Each loader makes random resized crops of 224 x 224 with
flips, uint8, batch 64, from warm files, in a process of its own that may use two cores. The pairs are interleaved:
weir, then one peer, again and again. The figure is images per CPU-second (of the process and its workers).

The peers live in virtual environments below DIR (default build/feed-venvs), which are made on the first run: some GB.
What cannot be installed is left out, and named. Sets in the peers' own formats are made once, beside the environments.
"""
import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import bars  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
BATCH = 64
TORCH = ["torch", "torchvision", "pillow", "numpy"]
# Environment: packages, and pip's further arguments. DALI's wheel names the GPU libraries that its CPU operators do without.
ENVIRONMENTS = {
    "torch": (TORCH + ["webdataset", "mosaicml-streaming"], []),
    "dali": (["nvidia-dali-cuda120", "nvidia-nvimgcodec-cu12", "numpy", "six", "astunparse", "gast", "dm-tree", "wheel", "packaging", "attrs", "absl-py", "wrapt", "makefun", "optree", "typing_extensions"], ["--no-deps"]),
    "ffcv": (TORCH + ["ffcv", "numba", "opencv-python-headless"], []),
}
PEERS = {"torch": "torch", "webdataset": "torch", "streaming": "torch", "dali": "dali", "ffcv": "ffcv"}


def weir_batches(folder):
    import weir
    feed = weir.Feed(folder, batch=BATCH, seed=1, threads=2, orientation="ignore")
    while True:
        for batch in feed:
            yield len(batch["image"])


def _torch_steps():
    import numpy as np
    import torch
    from torchvision import transforms
    torch.set_num_threads(1)
    return torch, transforms.Compose([transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), np.asarray])


def torch_batches(folder):
    torch, steps = _torch_steps()
    from torchvision.datasets import ImageFolder
    loader = torch.utils.data.DataLoader(ImageFolder(folder, steps), BATCH, shuffle=True, num_workers=2, drop_last=True, persistent_workers=True)
    while True:
        for images, _ in loader:
            yield len(images)


def webdataset_batches(folder):
    torch, steps = _torch_steps()
    import webdataset
    shards = sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".tar"))
    data = webdataset.WebDataset(shards * 1000, shardshuffle=100).shuffle(1000).decode("pil").to_tuple("jpg", "cls").map_tuple(steps, int)
    loader = torch.utils.data.DataLoader(data, BATCH, num_workers=2)
    for images, _ in loader:
        yield len(images)


def streaming_batches(folder):
    torch, steps = _torch_steps()
    from streaming import StreamingDataset

    class Pictures(StreamingDataset):
        def __getitem__(self, index):
            sample = super().__getitem__(index)
            return steps(sample["image"]), sample["class"]

    data = Pictures(local=folder, shuffle=True, batch_size=BATCH)
    loader = torch.utils.data.DataLoader(data, BATCH, num_workers=2, drop_last=True)
    while True:
        for images, _ in loader:
            yield len(images)


def dali_batches(folder):
    from nvidia.dali import fn, pipeline_def, types

    @pipeline_def(batch_size=BATCH, num_threads=2, device_id=None)
    def pipeline():
        encoded, _ = fn.readers.file(file_root=folder, random_shuffle=True)
        pictures = fn.decoders.image_random_crop(encoded, device="cpu", random_area=[0.08, 1.0], random_aspect_ratio=[0.75, 4 / 3])
        pictures = fn.resize(pictures, size=[224, 224], interp_type=types.INTERP_LINEAR, antialias=True)
        return fn.flip(pictures, horizontal=fn.random.coin_flip())

    made = pipeline()
    made.build()
    while True:
        yield len(made.run()[0])


def ffcv_batches(folder):
    import numpy as np
    from ffcv.fields.rgb_image import RandomResizedCropRGBImageDecoder
    from ffcv.loader import Loader, OrderOption
    from ffcv.transforms import RandomHorizontalFlip
    loader = Loader(os.path.join(folder, "set.beton"), batch_size=BATCH, num_workers=2, order=OrderOption.RANDOM, os_cache=True, drop_last=True,
                    pipelines={"image": [RandomResizedCropRGBImageDecoder((224, 224)), RandomHorizontalFlip()], "label": None})
    while True:
        for images in loader:
            yield len(np.asarray(images[0]))


def make_webdataset(folder, out):
    import tarfile
    import io
    samples = list(_samples(folder))
    for shard in range(0, len(samples), 500):
        with tarfile.open(os.path.join(out, f"{shard // 500:05}.tar"), "w") as archive:
            for number, (path, label) in enumerate(samples[shard:shard + 500], shard):
                for ending, content in (("jpg", pathlib.Path(path).read_bytes()), ("cls", str(label).encode())):
                    member = tarfile.TarInfo(f"{number:08}.{ending}")
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))


def make_streaming(folder, out):
    from streaming import MDSWriter
    from PIL import Image
    with MDSWriter(out=out, columns={"image": "jpeg", "class": "int"}, compression=None) as writer:
        for path, label in _samples(folder):
            writer.write({"image": Image.open(path), "class": label})


def make_ffcv(folder, out):
    from ffcv.fields import IntField, RGBImageField
    from ffcv.writer import DatasetWriter
    from torchvision.datasets import ImageFolder
    DatasetWriter(os.path.join(out, "set.beton"), {"image": RGBImageField(write_mode="jpg"), "label": IntField()}, num_workers=2).from_indexed_dataset(ImageFolder(folder))


def _samples(folder):
    for label, name in enumerate(sorted(entry for entry in os.listdir(folder) if os.path.isdir(os.path.join(folder, entry)))):
        for path in sorted(pathlib.Path(folder, name).rglob("*.[jJ][pP]*[gG]")):
            yield str(path), label


LOADERS = {"weir": weir_batches, "torch": torch_batches, "webdataset": webdataset_batches, "streaming": streaming_batches, "dali": dali_batches, "ffcv": ffcv_batches}
MAKERS = {"webdataset": make_webdataset, "streaming": make_streaming, "ffcv": make_ffcv}


def all_cpu():
    """CPU seconds of this process and of its workers, also of those that still run."""
    total = sum(use.ru_utime + use.ru_stime for use in (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))
    for pid in os.listdir("/proc"):
        if not pid.isdigit():
            continue
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                fields = file.read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid():
            total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def measure(name, folder, seconds):
    """Prints images per CPU-second, and images per second, of one loader."""
    batches = LOADERS[name](folder)
    for _ in range(6):  # start-up and warm files
        next(batches)
    begin, cpu, images = time.monotonic(), all_cpu(), 0
    while time.monotonic() - begin < seconds:
        images += next(batches)
    print(json.dumps({"per_cpu_s": images / (all_cpu() - cpu), "per_s": images / (time.monotonic() - begin)}), flush=True)
    os._exit(0)


def environment(name, venvs):
    """Returns the Python of an environment, which is made if it is missing; None if it cannot be."""
    packages, arguments = ENVIRONMENTS[name]
    folder = venvs / name
    python, mark = folder / "bin/python", folder / "made.json"
    wanted = json.dumps([packages, arguments])
    if mark.is_file() and mark.read_text() == wanted:
        return python
    print(f"{name}: installing {' '.join(packages)}", file=sys.stderr)
    with open(venvs / f"{name}.log", "w", encoding="utf-8") as log:
        done = subprocess.run(["/usr/bin/python3", "-m", "venv", folder], stdout=log, stderr=log, check=False).returncode == 0
        done = done and subprocess.run([folder / "bin/pip", "install", "-q", *arguments, *packages], stdout=log, stderr=log, check=False).returncode == 0
    if not done:
        print(f"{name}: left out, not installable here: {venvs / f'{name}.log'}", file=sys.stderr)
        return None
    mark.write_text(wanted)
    return python


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--only", default=",".join(PEERS))
    parser.add_argument("--venvs", type=pathlib.Path, default=ROOT / "build/feed-venvs")
    parser.add_argument("--measure", choices=LOADERS, help=argparse.SUPPRESS)
    parser.add_argument("--make", help=argparse.SUPPRESS)
    parser.add_argument("--json", default="-")
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.measure, arguments.folder, arguments.seconds)
    if arguments.make:
        return MAKERS[arguments.only](arguments.folder, arguments.make)
    arguments.venvs.mkdir(parents=True, exist_ok=True)
    package = os.environ.get("WEIR_PYTHON", str(ROOT / "build/release/python"))

    def run(python, *words):
        return subprocess.run([str(python), __file__, *map(str, words)], capture_output=True, text=True, check=False, timeout=900, env=os.environ | {"PYTHONPATH": package})

    def own_set(peer, python):
        """The set in the peer's format."""
        if peer not in MAKERS:
            return arguments.folder
        out = arguments.venvs / f"set-{peer}"
        if not out.is_dir():
            part = arguments.venvs / f"set-{peer}.part"
            subprocess.run(["rm", "-rf", part], check=True)
            part.mkdir()
            made = run(python, os.path.abspath(arguments.folder), "--only", peer, "--make", part)
            if made.returncode != 0:
                raise RuntimeError(made.stderr[-2000:])
            part.rename(out)
        return out

    def one(name, python, folder):
        done = run(python, folder, "--measure", name, "--seconds", arguments.seconds)
        if done.returncode != 0:
            raise RuntimeError(done.stderr[-2000:])
        return json.loads(done.stdout.splitlines()[-1])

    result = {}
    for peer in arguments.only.split(","):
        python = environment(PEERS[peer], arguments.venvs)
        if python is None:
            continue
        try:
            folder = own_set(peer, python)
            pairs = [(one("weir", "/usr/bin/python3", arguments.folder), one(peer, python, folder)) for _ in range(arguments.pairs)]
        except RuntimeError as error:
            print(f"{peer}: left out, it fails here: {error}", file=sys.stderr)
            continue
        ratios = sorted(ours["per_cpu_s"] / theirs["per_cpu_s"] for ours, theirs in pairs)
        result[peer] = {"ratio_median": statistics.median(ratios), "ratio_low": ratios[0], "ratio_high": ratios[-1], "pairs": len(pairs),
                        "weir_per_cpu_s": statistics.median(ours["per_cpu_s"] for ours, _ in pairs), "peer_per_cpu_s": statistics.median(theirs["per_cpu_s"] for _, theirs in pairs),
                        "weir_per_s": statistics.median(ours["per_s"] for ours, _ in pairs), "peer_per_s": statistics.median(theirs["per_s"] for _, theirs in pairs)}
        print(f"{peer}: weir has {result[peer]['ratio_median']:.2f} times its images per CPU-second ({ratios[0]:.2f} to {ratios[-1]:.2f})", file=sys.stderr)
        bars.check(f"feed: {peer}", peer, result[peer]["ratio_median"])
    text = json.dumps(result, indent=2) + "\n"
    if arguments.json == "-":
        print(text, end="")
    else:
        with open(arguments.json, "w", encoding="utf-8") as file:
            file.write(text)
    return bars.exit_status()


if __name__ == "__main__":
    sys.exit(main())
