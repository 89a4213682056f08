#!/usr/bin/env python3
"""Ratios that the project answers for, measured side by side and interleaved: ./dev bench [NAME ...]

  engines    weir run --no-files against the engines' own: OpenVINO's benchmark_app, ONNX Runtime's Python API
  pipeline   files to answers against 2 / (CPU time of loading + CPU time of inference)
  prepare    CPU time a picture of weir prepare against Pillow
  workers    weir prepare with two workers on all cores against one on one core
  breakaway  an emulated accelerator's rate kept: at 458 images/s, and the highest of which 0.97 is kept

WEIR_SHARED names the folder of models and photos (beside the checkout otherwise); what needs it is skipped without it. WEIR_PILLOW names a Python
that has the Pillow to measure against (/usr/bin/python3 otherwise).
"""
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import time

import bars

ROOT = pathlib.Path(__file__).resolve().parent.parent
WEIR = ROOT / "build/release/weir"
WORK = ROOT / "build/bench"
SHARED = pathlib.Path(os.environ.get("WEIR_SHARED", ROOT.parent / "shared")) / "data"
ROUNDS = int(os.environ.get("WEIR_BENCH_ROUNDS", "5"))
ENGINES = f"{ROOT}/.deps/onnxruntime:{ROOT}/.deps/openvino"


def weir(*arguments, launcher=()):
    done = subprocess.run([*launcher, WEIR, *map(str, arguments), "--json", "-"], capture_output=True, check=True)
    return json.loads(done.stdout)


def own_python(code):
    environment = dict(os.environ, PYTHONPATH=ENGINES)
    return subprocess.run(["/usr/bin/python3", "-c", code], capture_output=True, check=True, text=True, env=environment).stdout


def benchmark_app(model, batch, streams, threads, seconds):
    out = own_python(
        "import sys; from openvino.tools.benchmark.main import main\n"
        f"sys.argv = ['benchmark_app', '-m', '{model}', '-d', 'CPU', '-t', '{seconds}', '-nstreams', '{streams}', '-nthreads', '{threads}',"
        f" '-hint', 'none', '-infer_precision', 'f32', '-b', '{batch}']; main()")
    return float(next(line for line in out.splitlines() if "Throughput" in line).split()[-2])


def onnxruntime_python(model, shape, dtype, threads, seconds):
    return float(own_python(
        "import time, numpy, onnxruntime as ort\n"
        "options = ort.SessionOptions(); options.intra_op_num_threads = " + str(threads) + "\n"
        f"session = ort.InferenceSession('{model}', options, providers=['CPUExecutionProvider'])\n"
        f"name = session.get_inputs()[0].name; x = numpy.random.rand(*{shape}).astype('{dtype}')\n"
        "session.run(None, {name: x}); n = 0; begin = time.perf_counter()\n"
        f"while time.perf_counter() - begin < {seconds}: session.run(None, {{name: x}}); n += 1\n"
        f"print(n * {shape[0]} / (time.perf_counter() - begin))"))


def row(bar, name, ours, theirs):
    """Prints the medians and their ratio. `bar` names the limit of the ratio in bars.py; None: there is none."""
    ratios = sorted(a / b for a, b in zip(ours, theirs))
    print(f"| {name} | {statistics.median(ours):.4g} | {statistics.median(theirs):.4g} | "
          f"{statistics.median(ratios):.3f} ({ratios[0]:.3f}-{ratios[-1]:.3f}) |", flush=True)
    if bar:
        bars.check(bar, name, statistics.median(ratios))


def engines():
    if not SHARED.is_dir():
        return print(f"engines: skipped, no models at {SHARED}")
    print(f"\nInference alone, images/s, medians of {ROUNDS} interleaved rounds\n\n| what | weir | the engine's own | ratio (range) |\n|---|---|---|---|")
    models = SHARED / "models"
    cases = [("resnet50_pq", 8, 3, [8, 3, 224, 224], "float32"), ("mobilenet_v2_qdq", 8, 20, [8, 3, 224, 224], "float32"),
             ("resnet50_pq", 1, 3, [1, 3, 224, 224], "float32")]
    for model, batch, passes, shape, dtype in cases:
        file, recipe = models / f"{model}.onnx", models / f"recipes/{model}.yaml"
        for engine in ("openvino", "onnxruntime"):
            ours, theirs = [], []
            for _ in range(ROUNDS):
                if engine == "openvino":
                    theirs.append(benchmark_app(file, batch, 1, 2, 6))
                else:
                    theirs.append(onnxruntime_python(file, shape, dtype, 2, 6))
                run = weir("run", file, SHARED / "images", "--recipe", recipe, "--no-files", "--engine", engine, "--streams", 1, "--threads", 2,
                           "--batch", batch, "--repeat-data", max(1, passes // 3))
                ours.append(run["throughput_images_per_s"])
            row("engines", f"{model}, {engine}, f32, batch {batch}, 1 stream of 2 threads", ours, theirs)


RECIPE = "layout: NCHW\ndatatype: FP32\nresize: {short_side: 256, filter: bilinear}\ncrop: {width: 224, height: 224}\nscale: 0.00392156862745098\n"


def made():
    WORK.mkdir(parents=True, exist_ok=True)
    if not (WORK / "tiny").is_dir():
        weir("model", "make", "tiny", "-o", WORK)
    recipe = WORK / "224.yaml"
    recipe.write_text(RECIPE)
    sets = {"jpeg500": ("--make", 1000), "jpeg224": (WORK / "jpeg500", "--recipe", recipe), "raw224": (WORK / "jpeg500", "--recipe", recipe, "--format", "raw")}
    for name, arguments in sets.items():
        if not (WORK / name / "set.json").is_file():
            subprocess.run(["rm", "-rf", WORK / name], check=True)
            weir("prepare", *arguments, "-o", WORK / name)
    model = WORK / "accelerated"
    if not model.is_dir():
        model.mkdir()
        (model / "config.pbtxt").write_text(
            'name: "accelerated"\nbackend: "emulated"\nmax_batch_size: 128\n'
            'input { name: "input" data_type: TYPE_FP32 dims: [ 3, 224, 224 ] }\noutput { name: "logits" data_type: TYPE_FP32 dims: [ 1000 ] }\n'
            'parameters { key: "engine" value: { string_value: "emulated:base=1ms" } }\n')
        (model / "recipe.yaml").write_text(recipe.read_text())
    return model


def pipeline():
    print(f"\nFiles to answers on two cores, images/s, medians of {ROUNDS} rounds\n\n| what | throughput | 2 / (CPU of loading + CPU of inference) | ratio (range) |\n"
          "|---|---|---|---|")
    made()
    cases = [("tiny, made JPEG 500x375", WORK / "tiny", WORK / "jpeg500", (), 3)]
    if SHARED.is_dir():
        for name, passes in (("resnet50_pq", 3), ("mobilenet_v2_qdq", 6), ("mobilenet_v1_025_128_u8", 20)):
            cases.append((f"{name}, photos", SHARED / f"models/{name}.onnx", SHARED / "images", ("--recipe", SHARED / f"models/recipes/{name}.yaml"), passes))
    for name, model, data, options, passes in cases:
        ours, bounds = [], []
        for _ in range(ROUNDS):
            # The parts alone: loading over an engine that takes no time, inference over data in memory.
            load = weir("run", model, data, *options, "--engine", "emulated:base=0ms", "--repeat-data", passes)["cpu_ms_per_image"]["load_prepare"]
            infer = weir("run", model, data, *options, "--no-files", "--repeat-data", passes)["cpu_ms_per_image"]["infer"]
            ours.append(weir("run", model, data, *options, "--repeat-data", passes)["throughput_images_per_s"])
            bounds.append(2000 / (load + infer))
        row("pipeline", name, ours, bounds)


# Short side to 256, the middle 224 by 224: milliseconds of CPU a picture, from memory; with a second argument by `draft`.
PILLOW = """
import io, pathlib, sys, time
from PIL import Image
blobs = [path.read_bytes() for path in sorted(pathlib.Path(sys.argv[1]).iterdir()) if path.suffix in ('.JPEG', '.jpg')]
begin = time.process_time()
for blob in blobs:
    picture = Image.open(io.BytesIO(blob))
    if len(sys.argv) > 2:
        picture.draft('RGB', (256, 256))
    picture = picture.convert('RGB')
    width, height = picture.size
    size = (256, height * 256 // width) if width < height else (width * 256 // height, 256)
    left, top = round((size[0] - 224) / 2), round((size[1] - 224) / 2)
    picture.resize(size, Image.BILINEAR).crop((left, top, left + 224, top + 224)).tobytes()
print(1000 * (time.process_time() - begin) / len(blobs))
"""
# Photos enlarged to 12 megapixels, with grain, so that they need as many bytes as a camera's.
ENLARGE = """
import pathlib, sys
from PIL import Image
for path in sorted(pathlib.Path(sys.argv[1]).glob('*.JPEG'))[:6]:
    picture = Image.open(path).convert('RGB').resize((4000, 3000), Image.BICUBIC)
    Image.blend(picture, Image.effect_noise((4000, 3000), 60).convert('RGB'), 0.12).save(f'{sys.argv[2]}/{path.stem}.jpg', quality=88)
"""


def pillow(code, *arguments):
    python = os.environ.get("WEIR_PILLOW", "/usr/bin/python3")
    return subprocess.run([python, "-c", code, *map(str, arguments)], capture_output=True, check=True, text=True).stdout


def prepared(source, times, *options, workers=1, launcher=()):
    """One preparation to raw records, started by `launcher`: milliseconds of CPU a picture, and pictures a second."""
    (WORK / "224.yaml").write_text(RECIPE)
    shutil.rmtree(WORK / "prepared", ignore_errors=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = weir("prepare", *[source] * times, "--recipe", WORK / "224.yaml", "--format", "raw", "--workers", workers, *options, "-o", WORK / "prepared",
                  launcher=launcher)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return 1000 * seconds / result["images"], result["images_per_s"]


def prepare():
    if not SHARED.is_dir():
        return print(f"prepare: skipped, no photos at {SHARED}")
    large = WORK / "12-megapixel"
    if not large.is_dir():
        large.mkdir(parents=True)
        pillow(ENLARGE, SHARED / "images", large)
    print(f"\nPictures to 224x224 raw, medians of {ROUNDS} interleaved rounds; ours with reading, hashes, manifest and writing, Pillow's from memory\n\n"
          "| ms of CPU a picture | Pillow | weir | Pillow / weir (range) |\n|---|---|---|---|")
    cases = [("photos", SHARED / "images", 4, (), ()), ("12 megapixels", large, 3, (), ()), ("12 megapixels, draft against --shrink", large, 3, ("--shrink",), ("draft",))]
    for name, source, times, options, draft in cases:
        ours, theirs = [], []
        for _ in range(ROUNDS):
            theirs.append(float(pillow(PILLOW, source, *draft)))
            ours.append(prepared(source, times, *options)[0])
        row("prepare", name, theirs, ours)


def workers():
    if not SHARED.is_dir():
        return print(f"workers: skipped, no photos at {SHARED}")
    print(f"\nPhotos to 224x224 raw, two workers on all cores and one on one core, medians of {ROUNDS} interleaved rounds\n\n"
          "| what | two workers | one | ratio (range) |\n|---|---|---|---|")
    two, one = [], []
    for _ in range(ROUNDS):
        two.append(prepared(SHARED / "images", 16, workers=2))
        one.append(prepared(SHARED / "images", 16, workers=1, launcher=("taskset", "-c", "0")))
    for i, (name, bar) in enumerate((("ms of CPU a picture", "workers"), ("images/s", None))):
        row(bar, name, [run[i] for run in two], [run[i] for run in one])


def highest_kept(kept, low):
    """The highest rate, within 3 %, of which `kept(rate)`, the share of it that is reached, is 0.97 in the median of three tries."""
    def holds(rate):
        shares = [kept(rate), kept(rate)]
        if min(shares) < 0.97 <= max(shares):
            shares.append(kept(rate))
        return statistics.median(shares) >= 0.97 if len(shares) == 3 else min(shares) >= 0.97

    high = low
    while holds(high) and high < 200_000:
        low, high = high, high * 2
    while high / low > 1.03:
        middle = (low * high) ** 0.5
        if holds(middle):
            low = middle
        else:
            high = middle
    return low


def breakaway():
    model = made()
    print("\nAn emulated accelerator behind the pipeline, async, batch 8, 224-pixel pictures\n\n| data | rate kept at 458 images/s | break-away rate (0.97 kept) |\n|---|---|---|")
    for name, data, options in (("JPEG 500x375", WORK / "jpeg500", ()), ("JPEG 224x224", WORK / "jpeg224", ()), ("prepared raw", WORK / "raw224", ()),
                                ("tensors in memory", WORK / "jpeg224", ("--no-files",))):
        def kept(rate):
            passes = max(1, min(20, int(2.5 * rate / 1000)))
            run = weir("run", model, data, *options, "--engine", f"emulated:base=0ms,per_item={1e6 / rate:.4f}us", "--repeat-data", passes)
            return run["throughput_images_per_s"] / rate
        at_458 = statistics.median(kept(458) for _ in range(3))
        low = highest_kept(kept, 458)
        print(f"| {name} | {at_458:.4f} | {low:.0f} images/s |", flush=True)
        bars.check("breakaway", name, at_458)


if __name__ == "__main__":
    names = sys.argv[1:] or ["engines", "pipeline", "prepare", "workers", "breakaway"]
    version = subprocess.run([WEIR, "--version"], capture_output=True, check=True, text=True).stdout.strip()
    print(f"{time.strftime('%Y-%m-%d')}, {version}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}")
    for name in names:
        {"engines": engines, "pipeline": pipeline, "prepare": prepare, "workers": workers, "breakaway": breakaway}[name]()
    sys.exit(bars.exit_status())
