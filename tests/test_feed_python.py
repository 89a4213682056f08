"""The Python package weir: the built extension against numpy, Pillow and, where it is there, torch."""
import gc
import io
import json
import multiprocessing
import os
import pickle
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
import types

import conftest
import pytest

np = pytest.importorskip("numpy")
Image = pytest.importorskip("PIL.Image")
PILLOW = pytest.importorskip("PIL").__version__
PACKAGE = os.environ.get("WEIR_PYTHON", str(conftest.pathlib.Path(conftest.PROGRAM).parent / "python"))
if PACKAGE not in sys.path:
    sys.path.insert(0, PACKAGE)
weir_package = pytest.importorskip("weir", reason="the extension is not built: ./dev setup, then ./dev build")
ENVIRONMENT = os.environ | {"PYTHONPATH": PACKAGE}
OPTIONS = {"batch": 8, "seed": 5, "size": (32, 24), "threads": 2}


@pytest.fixture(scope="module")
def pictures(weir, tmp_path_factory):
    folder = tmp_path_factory.mktemp("feed_python") / "set"
    weir.run("prepare", "--make", 60, "--seed", 3, "-o", folder)
    return folder


def contents(feed, epochs=1):
    return [(batch["image"].tobytes(), batch["label"].tobytes(), batch["count"]) for _ in range(epochs) for batch in feed]


def run(code, *arguments, environment=None):
    return subprocess.run([sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)], env=ENVIRONMENT | (environment or {}), capture_output=True, text=True, timeout=120, check=False)


def test_batches_are_arrays_with_labels(pictures):
    feed = weir_package.Feed(pictures, ends="pad", **OPTIONS)
    assert len(feed) == feed.batches_per_epoch == 8 and feed.images == 60
    seen = []
    for batch in feed:
        assert batch["image"].shape == (8, 24, 32, 3) and batch["image"].dtype == np.uint8 and batch["image"].flags.writeable
        assert batch["label"].dtype == np.int64
        seen += list(batch["index"][: batch["count"]])
        for label in batch["label"][: batch["count"]]:
            assert 0 <= label < len(feed.classes)
    assert sorted(seen) == list(range(60))
    assert feed.epoch == 1 and feed.name(0).endswith(".jpg")
    assert feed.stats()["rows"] == 60


def test_types_and_layouts(pictures):
    mean, std = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])
    pixels = next(iter(weir_package.Feed(pictures, **OPTIONS)))["image"]
    wanted = (pixels.astype(np.float32) / np.float32(255) - mean) / std
    floats = next(iter(weir_package.Feed(pictures, dtype="float32", layout="NCHW", **OPTIONS)))["image"]
    assert floats.shape == (8, 3, 24, 32)
    assert np.array_equal(floats, wanted.transpose(0, 3, 1, 2))
    halves = next(iter(weir_package.Feed(pictures, dtype="float16", **OPTIONS)))["image"]
    assert halves.dtype == np.float16 and np.array_equal(halves, wanted.astype(np.float16))


def noise(width, height, seed=0, **save):
    rng = np.random.default_rng(seed)
    small = Image.fromarray(rng.integers(0, 256, (height // 8 + 1, width // 8 + 1, 3), dtype=np.uint8))
    data = io.BytesIO()
    small.resize((width, height), Image.BICUBIC).save(data, **({"format": "JPEG", "quality": 90} | save))
    return data.getvalue()


def test_crops_are_pillows_to_the_bit():
    for seed, (width, height) in enumerate([(500, 375), (333, 500), (224, 224), (90, 70), (1200, 800)]):
        for save in ({"format": "JPEG", "quality": 90}, {"format": "PNG"}):
            encoded = noise(width, height, seed, **save)
            # Pillow's own JPEG library may round otherwise than ours, so both begin with the same pixels.
            whole = Image.fromarray(weir_package.augment(encoded, crop="none", size=(width, height), flip=0))
            if save["format"] == "PNG":
                assert np.array_equal(np.asarray(whole), np.asarray(Image.open(io.BytesIO(encoded)).convert("RGB")))
            for sample in range(8):
                ours = weir_package.augment(encoded, seed=1, sample=sample, flip=0)
                x, y, w, h = weir_package.draws(width, height, sample, seed=1)["box"][0]
                theirs = np.asarray(whole.resize((224, 224), Image.BILINEAR, box=(x, y, x + w, y + h)))
                # Pillow 13 resizes pictures that are higher than wide along their columns first, and rounds between.
                other_way = int(PILLOW.split(".")[0]) >= 13 and height > width
                assert np.abs(ours.astype(int) - theirs).max() <= (1 if other_way else 0), (width, height, sample)


@pytest.mark.parametrize("size", [(65535, 1), (1, 65535), (1, 1)])
def test_pictures_of_one_row_or_column_are_cropped_too(size):
    encoded = noise(*size, format="PNG")
    for options in ({}, {"crop": "centre", "short_side": 256}, {"rotation": 30, "flip": 0}):
        made = weir_package.augment(encoded, seed=1, size=(24, 16), **options)
        assert made.shape == (16, 24, 3) and (options.get("rotation") or made.max() > 0)


def test_colours_are_pillows_to_the_bit():
    from PIL import ImageEnhance
    encoded = noise(300, 200, 7, format="PNG")
    whole = Image.open(io.BytesIO(encoded)).convert("RGB")
    options = {"brightness": 0.4, "contrast": 0.5, "saturation": 0.6, "hue": 0.2, "flip": 0, "size": (300, 200), "crop": "none"}
    for sample in range(24):
        ours = weir_package.augment(encoded, sample=sample, **options)
        draws = weir_package.draws(300, 200, sample, **options)
        brightness, contrast, saturation, hue = draws["factors"][0]
        picture = whole
        for step in draws["order"][0]:
            if step < 3:
                enhance = (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color)[step]
                picture = enhance(picture).enhance((brightness, contrast, saturation)[step])
            else:
                h, s, v = picture.convert("HSV").split()
                turned = (np.asarray(h).astype(np.int64) + int(hue * 255)) % 256
                picture = Image.merge("HSV", (Image.fromarray(turned.astype(np.uint8), "L"), s, v)).convert("RGB")
        assert np.array_equal(ours, np.asarray(picture)), sample


def test_rotation_is_close_to_pillows():
    encoded = noise(64, 48, 3, format="PNG")
    whole = Image.open(io.BytesIO(encoded)).convert("RGB")
    options = {"rotation": 30, "flip": 0, "size": (64, 48), "crop": "none"}
    for sample in range(6):
        ours = weir_package.augment(encoded, sample=sample, **options).astype(int)
        angle = weir_package.draws(64, 48, sample, **options)["angle"][0]
        theirs = np.asarray(whole.rotate(angle, Image.BILINEAR)).astype(int)
        inner = (slice(12, -12), slice(16, -16))
        assert np.abs(ours[inner] - theirs[inner]).max() <= 2, angle


def test_a_state_resumes_in_the_middle_with_other_threads(pictures):
    expected = contents(weir_package.Feed(pictures, **OPTIONS), 2)
    chance = random.Random(1)
    for _ in range(50):
        seen, state = [], None
        while len(seen) < len(expected):
            with weir_package.Feed(pictures, **OPTIONS | {"threads": chance.choice([1, 2, 3, 7]), "prefetch": chance.randint(1, 6)}) as feed:
                if state:
                    feed.load_state_dict(json.loads(state))
                stop = chance.randint(1, 12)
                while stop > 0 and len(seen) < len(expected):
                    for batch in feed:
                        seen.append((batch["image"].tobytes(), batch["label"].tobytes(), batch["count"]))
                        stop -= 1
                        if stop == 0 or len(seen) == len(expected):
                            break
                state = json.dumps(feed.state_dict())
                assert len(state) < 1024
        assert seen == expected


def test_ranks_merge_to_one(pictures):
    one = [batch["index"] for batch in weir_package.Feed(pictures, ends="wrap", **OPTIONS)]
    for world in (2, 4):
        ranks = [weir_package.Feed(pictures, ends="wrap", rank=rank, world=world, **OPTIONS | {"batch": 8 // world}) for rank in range(world)]
        merged = [np.concatenate([batch["index"] for batch in batches]) for batches in zip(*ranks)]
        assert all(np.array_equal(a, b) for a, b in zip(one, merged)) and len(one) == len(merged)


def test_memory_is_shared_and_outlives_the_feed(pictures):
    feed = weir_package.Feed(pictures, **OPTIONS)
    batch = next(iter(feed))
    view, copy = batch["image"][2:4], batch["image"].copy()
    address = batch["image"].ctypes.data
    assert np.asarray(batch["image"]).ctypes.data == address
    feed.close()
    del feed, batch
    gc.collect()
    assert np.array_equal(view, copy[2:4])
    with pytest.raises(RuntimeError, match="closed"):
        closed = weir_package.Feed(pictures, **OPTIONS)
        closed.close()
        next(iter(closed))


def test_a_second_iterator_takes_over(pictures):
    feed = weir_package.Feed(pictures, **OPTIONS)
    first, second = iter(feed), None
    next(first)
    second = iter(feed)
    next(second)
    with pytest.raises(RuntimeError, match="another iteration"):
        next(first)
    assert len(list(second)) == 5


def test_two_threads_may_not_wait_at_once(pictures):
    feed = weir_package.Feed(pictures, **OPTIONS | {"size": (800, 600), "batch": 60, "threads": 1})
    faults = []

    def take():
        try:
            feed._feed.next()
        except RuntimeError as error:
            faults.append(str(error))

    threads = [threading.Thread(target=take) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all("another thread" in fault for fault in faults) and len(faults) <= 1


def test_wrong_options_are_named(pictures, tmp_path):
    for options, kind, words in (({"ends": "stop"}, ValueError, "give one of drop, pad, wrap"), ({"sizes": 3}, TypeError, "sizes"), ({"batch": "many"}, ValueError, "batch"),
                                 ({"std": (0, 1, 1)}, ValueError, "std"), ({"mean": (float("nan"), 0, 0)}, ValueError, "mean"), ({"subset": [99]}, ValueError, "sample 99"),
                                 ({"sampler": "weighted", "weights": [1.0]}, ValueError, "1 weights for 60"), ({"batch": 100}, ValueError, "pad or wrap"), ({"area": (0.5, 0.1)}, ValueError, "area")):
        with pytest.raises(kind, match=words):
            weir_package.Feed(pictures, **{**OPTIONS, **options})
    with pytest.raises(FileNotFoundError):
        weir_package.Feed(tmp_path / "none")
    with pytest.raises(ValueError, match="another set|seed"):
        weir_package.Feed(pictures, **OPTIONS).load_state_dict(weir_package.Feed(pictures, **OPTIONS | {"seed": 6}).state_dict())


def test_samplers(pictures):
    balanced = weir_package.Feed(pictures, **OPTIONS | {"sampler": "balanced"})
    counts = np.bincount(np.concatenate([batch["label"] for batch in balanced]))
    assert counts.max() - counts.min() <= 4
    weights = np.zeros(60)
    weights[[3, 9]] = 1
    weighted = weir_package.Feed(pictures, sampler="weighted", weights=weights, **OPTIONS)
    assert {int(i) for batch in weighted for i in batch["index"]} == {3, 9}
    subset = weir_package.Feed(pictures, sampler="sequential", subset=np.arange(10, 26), **OPTIONS)
    assert np.concatenate([batch["index"] for batch in subset]).tolist() == list(range(10, 26))


def test_a_pickled_feed_goes_on_in_another_process(pictures):
    feed = weir_package.Feed(pictures, **OPTIONS)
    next(iter(feed))
    rest = [batch["index"].tolist() for batch in pickle.loads(pickle.dumps(feed))]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(_indexes, (feed,)) == rest
    assert [batch["index"].tolist() for batch in feed] == rest


def _indexes(feed):
    return [batch["index"].tolist() for batch in feed]


def test_a_process_of_its_own_gives_the_same(pictures):
    expected = contents(weir_package.Feed(pictures, **OPTIONS), 3)
    with weir_package.Feed(pictures, process=True, **OPTIONS) as feed:
        assert contents(feed, 3) == expected
        feed.set_epoch(1)
        assert contents(feed) == expected[7:14]
        feed.set_epoch(0)
        for _, batch in zip(range(2), feed):
            last = batch["image"]
        assert last.tobytes() == expected[1][0] and len(feed) == 5
        state = feed.state_dict()
        kept = [batch["image"] for batch in feed]  # more than there are slots
        assert [image.tobytes() for image in kept] == [entry[0] for entry in expected[2:7]]
        assert feed.name(0).endswith(".jpg") and feed.images == 60 and feed.stats()["samples"] > 0
        feed.load_state_dict(state)
        assert [entry[0] for entry in contents(feed)] == [image.tobytes() for image in kept]
    assert [image.tobytes() for image in kept] == [entry[0] for entry in expected[2:7]]  # also after the end
    with weir_package.Feed(pictures, **OPTIONS) as threads:
        threads.load_state_dict(state)
        assert contents(threads) == expected[2:7]


def test_errors_of_the_process_are_those_of_the_feed(pictures, tmp_path):
    with pytest.raises(FileNotFoundError):
        weir_package.Feed(tmp_path / "none", process=True)
    with pytest.raises(ValueError, match="pad or wrap"):
        weir_package.Feed(pictures, process=True, batch=100)
    feed = weir_package.Feed(pictures, process=True, **OPTIONS)
    with pytest.raises(ValueError, match="seed"):
        feed.load_state_dict(feed.state_dict() | {"seed": 99})
    os.kill(feed._feed._child.pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match="process ended"):
        list(feed)
    feed.close()


def test_the_process_ends_with_its_parent(pictures):
    code = """
        import sys, time, weir
        feed = weir.Feed(sys.argv[1], batch=4, size=(64, 64), process=True)
        next(iter(feed))
        print(feed._feed._child.pid, flush=True)
        time.sleep(600)
        """
    before = _shared_memory()
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(code), str(pictures)], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as process:
        child = int(process.stdout.readline())
        process.kill()
        process.wait()
    until = time.monotonic() + 20
    while time.monotonic() < until and _is_running(child):
        time.sleep(0.05)
    assert not _is_running(child)
    assert _shared_memory() <= before


def _shared_memory():
    """Named memory of this program, or of Python's multiprocessing; other programs of the machine have theirs."""
    return {name for name in os.listdir("/dev/shm") if name.startswith(("weir", "psm_"))}


def _is_running(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize("process", [False, True])
def test_a_fork_is_found(pictures, process):
    done = run("""
        import os, sys, weir
        feed = weir.Feed(sys.argv[1], batch=4, size=(16, 16), threads=2, process=sys.argv[2] == "True")
        batches = iter(feed)
        next(batches)
        child = os.fork()
        if child == 0:
            try:
                next(batches)
            except RuntimeError as error:
                os._exit(0 if "before a fork" in str(error) else 1)
            os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
        next(batches)
        child = os.fork()
        if child == 0:
            sys.exit(0)  # the feed is closed on the way: nothing hangs
        assert os.waitpid(child, 0)[1] == 0
        """, pictures, process)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("process", [False, True])
def test_the_interpreter_may_end_at_any_time(pictures, process):
    done = run("""
        import sys, weir
        process = sys.argv[2] == "True"
        feed = weir.Feed(sys.argv[1], batch=4, size=(300, 300), threads=3, process=process)
        kept = [batch["image"] for batch, _ in zip(feed, range(3))]
        other = weir.Feed(sys.argv[1], batch=4, threads=3, process=process)
        next(iter(other))
        """, pictures, process)
    assert done.returncode == 0 and done.stderr == "", done.stderr


@pytest.mark.parametrize("process", [False, True])
def test_ctrl_c_is_heard_while_a_batch_is_awaited(pictures, process):
    code = """
        import signal, sys, weir
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored in the background
        feed = weir.Feed(sys.argv[1], batch=3000, ends="wrap", size=(500, 500), threads=1, prefetch=1, process=sys.argv[2] == "True")
        print("waiting", flush=True)
        try:
            next(iter(feed))
        except KeyboardInterrupt:
            print("heard", flush=True)
            import os
            os._exit(7)
        """
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(code), str(pictures), str(process)], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as trainer:
        assert trainer.stdout.readline() == "waiting\n"
        time.sleep(0.5)
        trainer.send_signal(signal.SIGINT)
        assert trainer.stdout.readline() == "heard\n"
        assert trainer.wait(timeout=60) == 7


def test_torch_loader(pictures):
    torch = pytest.importorskip("torch")
    from weir.torch import Loader
    if not torch.cuda.is_available():
        with pytest.warns(UserWarning, match="finds no GPU"):
            Loader(pictures, batch_size=16, pin_memory=True)
    loader = Loader(pictures, batch_size=16, shuffle=True, num_workers=2, size=(32, 32), seed=4)
    assert len(loader) == 4
    shapes = [(tuple(images.shape), images.dtype, tuple(labels.shape)) for images, labels in loader]
    assert shapes == [((16, 3, 32, 32), torch.float32, (16,))] * 3 + [((12, 3, 32, 32), torch.float32, (12,))]
    batch = next(iter(loader.feed))["image"]
    assert torch.from_numpy(batch).data_ptr() == batch.ctypes.data
    state = loader.state_dict()
    other = Loader(pictures, batch_size=16, shuffle=True, num_workers=1, size=(32, 32), seed=4)
    other.load_state_dict(state)
    assert all(torch.equal(a[0], b[0]) for a, b in zip(loader, other))


def test_a_training_that_is_killed_ends_with_the_same_weights(weir, tmp_path):
    weir.run("prepare", "--make", 300, "--seed", 8, "-o", tmp_path / "set")
    example = conftest.ROOT / "examples/train_tiny.py"

    def train(checkpoint, *more):
        return subprocess.run([sys.executable, example, tmp_path / "set", "--checkpoint", tmp_path / checkpoint, "--epochs", "4", "--model", "numpy", *map(str, more)],
                              env=ENVIRONMENT, capture_output=True, text=True, timeout=300, check=False)

    whole = train("whole")
    assert whole.returncode == 0, whole.stderr
    accuracy, weights = whole.stdout.splitlines()[-2:]
    assert float(accuracy.split()[1]) > 0.2  # of ten classes, in a few steps
    assert train("killed", "--stop-after", 13).returncode == 9
    assert train("killed", "--stop-after", 11, "--threads", 3).returncode == 9
    resumed = train("killed", "--threads", 1)
    assert "goes on after" in resumed.stdout and resumed.stdout.splitlines()[-1] == weights, resumed.stderr


def write_pairs(folder, count=20):
    """Pictures whose red channel is ten times their mask, in two folders."""
    rng = np.random.default_rng(4)
    for number in range(count):
        mask = rng.integers(0, 20, (3, 4), dtype=np.uint8).repeat(24, axis=0).repeat(24, axis=1)
        name = f"class {number % 2}/{number:03}"
        for kind in ("images", "masks"):
            (folder / kind / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.stack([mask * 10] * 3, axis=2)).save(folder / "images" / f"{name}.bmp")
        indexed = Image.fromarray(mask, "P")
        indexed.putpalette(list(rng.integers(0, 256, 768)))
        indexed.save(folder / "masks" / f"{name}.png")


@pytest.mark.parametrize("process", [False, True])
def test_masks_follow_their_pictures(tmp_path, process):
    write_pairs(tmp_path)
    options = {"batch": 5, "size": (48, 40), "area": (0.3, 1), "rotation": 15, "vertical_flip": 0.5, "seed": 2, "masks": tmp_path / "masks"}
    with weir_package.Feed(tmp_path / "images", process=process, **options) as feed:
        batches = [(batch["image"].copy(), batch["mask"].copy()) for batch in feed]
    assert len(batches) == 4
    for image, mask in batches:
        assert mask.shape == (5, 40, 48) and mask.dtype == np.uint8
        # Where a neighbourhood of the mask is of one class, the picture has its colour.
        same = np.ones(mask.shape, bool)
        for axis in (1, 2):
            for step in (-2, -1, 1, 2):
                same &= np.roll(mask, step, axis) == mask
        same[:, :3] = same[:, -3:] = False
        same[:, :, :3] = same[:, :, -3:] = False
        assert same.mean() > 0.1 and (mask > 0).any()
        inside = same & (image[..., 0] > 0)
        apart = np.abs(image[..., 0][inside].astype(int) - 10 * mask[inside].astype(int))
        assert (apart > 2).mean() < 0.01  # corners alone
    (tmp_path / "masks/class 0/000.png").unlink()
    with pytest.raises(FileNotFoundError, match="no mask for class 0/000.bmp"):
        weir_package.Feed(tmp_path / "images", **options)


def test_masks_are_pillows_nearest(tmp_path):
    write_pairs(tmp_path, 6)
    options = {"size": (31, 17), "flip": 0, "seed": 3}
    feed = weir_package.Feed(tmp_path / "images", batch=6, masks=tmp_path / "masks", **options)
    batch = next(iter(feed))
    for index, mask in zip(batch["index"], batch["mask"]):
        path = tmp_path / "masks" / os.path.relpath(feed.name(int(index)), tmp_path / "images").replace(".bmp", ".png")
        x, y, w, h = weir_package.draws(96, 72, int(index), **options)["box"][0]
        assert np.array_equal(mask, np.asarray(Image.open(path).resize((31, 17), Image.NEAREST, box=(x, y, x + w, y + h))))


@pytest.mark.parametrize("process", [False, True])
def test_arrays_are_records(tmp_path, process):
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(100, 3, 5)).astype(np.float32)
    for part in range(2):
        np.save(tmp_path / f"{part}.npy", rows[60 * part:60 * part + 60])
        np.save(tmp_path / f"{part}.labels.npy", np.arange(100, dtype=np.int16)[60 * part:60 * part + 60] % 7)
    for reads in (0, 8):
        with weir_package.Feed(tmp_path, batch=8, ends="pad", seed=1, reads=reads, process=process) as feed:
            assert feed.images == 100
            seen = []
            for batch in feed:
                assert batch["data"].dtype == np.float32 and batch["data"].shape == (8, 3, 5)
                for row, index, label in zip(batch["data"][:batch["count"]], batch["index"], batch["label"]):
                    assert np.array_equal(row, rows[index]) and label == index % 7
                    seen.append(int(index))
            assert sorted(seen) == list(range(100)) and seen != sorted(seen)
    np.save(tmp_path / "2.npy", rows.astype(np.float64))
    with pytest.raises(ValueError, match="another type or shape"):
        weir_package.Feed(tmp_path)
    (tmp_path / "cut.npy").write_bytes((tmp_path / "0.npy").read_bytes()[:-1])
    with pytest.raises(RuntimeError, match="cut"):
        weir_package.Feed(tmp_path / "cut.npy")


def test_caches_and_reads_ahead_change_nothing(pictures, tmp_path):
    expected = contents(weir_package.Feed(pictures, **OPTIONS), 2)
    for options in ({"cache_bytes": 1 << 30}, {"cache_bytes": 50_000}, {"cache_bytes": 1 << 30, "cache_decoded": True}, {"reads": 16}, {"reads": 16, "cache_bytes": 1 << 30},
                    {"cache_bytes": 1 << 30, "cache_folder": tmp_path / "encoded"}, {"cache_bytes": 1 << 30, "cache_folder": tmp_path / "decoded", "cache_decoded": True}):
        with weir_package.Feed(pictures, **OPTIONS, **options) as feed:
            assert contents(feed, 2) == expected, options
            assert (feed.stats()["cached"] > 0) == (options.get("cache_bytes") == 1 << 30)
    with weir_package.Feed(pictures, cache_bytes=1 << 30, cache_folder=tmp_path / "decoded", cache_decoded=True, **OPTIONS) as feed:
        assert contents(feed, 1) == expected[:7]
        assert feed.stats()["cached"] == feed.stats()["samples"]  # of an earlier run


def test_prepare_makes_sets(weir, pictures, tmp_path):
    summary = weir_package.prepare(pictures, tmp_path / "tar", format="tar", shard_bytes=200_000)
    assert summary["images"] == 60
    assert contents(weir_package.Feed(tmp_path / "tar", **OPTIONS)) == contents(weir_package.Feed(pictures, **OPTIONS))
    with pytest.raises(FileNotFoundError):
        weir_package.prepare(tmp_path / "none", tmp_path / "out")
    with pytest.raises(ValueError, match="files, tar, tfrecord, raw"):
        weir_package.prepare(pictures, tmp_path / "out", format="zip")


FAKES = conftest.pathlib.Path(conftest.PROGRAM).parent / "fakes"
PINNED = """
    import ctypes, json, sys, weir

    class Device(ctypes.Structure):
        _fields_ = [("name", ctypes.c_char_p), ("first", ctypes.c_ubyte), ("version", ctypes.c_int * 2), ("memory", ctypes.c_size_t * 3)]

    class State(ctypes.Structure):  # FakeCudaState
        _fields_ = [("begin", ctypes.c_int * 3), ("devices", Device * 4), ("stuck", ctypes.c_int * 2), ("times", ctypes.c_double * 2), ("moved", ctypes.c_size_t * 2),
                    ("work", ctypes.c_int * 2), ("streams", ctypes.c_int), ("events", ctypes.c_int), ("modules", ctypes.c_int), ("blocks", ctypes.c_int), ("contexts", ctypes.c_int)]

    cuda = ctypes.CDLL("libcuda.so.1").FakeCuda
    cuda.restype = ctypes.POINTER(State)
    options = json.loads(sys.argv[2])
    feed, plain = weir.Feed(sys.argv[1], pin_memory="cuda:1", **options), weir.Feed(sys.argv[1], **options)
    kept = None
    for ours, theirs in zip(feed, plain, strict=True):
        assert (ours["image"] == theirs["image"]).all() and (ours["label"] == theirs["label"]).all()
        kept = ours["image"]
    assert cuda().contents.blocks >= 2, cuda().contents.blocks  # buffers of the feed, each from the driver
    feed.close()
    del feed, ours
    assert cuda().contents.blocks == 1 and cuda().contents.contexts == 1  # the batch that is kept
    assert kept.sum() > 0
    del kept
    assert cuda().contents.blocks == 0 and cuda().contents.contexts == 0
    try:
        weir.Feed(sys.argv[1], pin_memory="cuda:2", **options)
    except ValueError as error:
        assert "there is no cuda:2: the driver has 2 GPUs" in str(error), error
    else:
        raise AssertionError
    """


def test_pinned_batches_are_memory_of_the_driver(pictures):
    if not (FAKES / "libcuda.so.1").exists():
        pytest.skip("the fake driver is built beside the program's tests")
    done = run(PINNED, pictures, json.dumps(OPTIONS), environment={"LD_LIBRARY_PATH": str(FAKES), "WEIR_FAKE_CUDA": "count=2"})
    assert done.returncode == 0, done.stderr


def test_pinned_memory_without_a_gpu_is_refused(pictures):
    code = """
        import sys, weir
        try:
            weir.Feed(sys.argv[1], pin_memory=True)
        except (FileNotFoundError, RuntimeError) as error:
            print(error)
        """
    done = run(code, pictures)
    if done.stdout == "":
        pytest.skip("this machine has a GPU")
    assert done.stdout.startswith("pin_memory: ") and "libcuda.so.1" in done.stdout, done.stdout + done.stderr
    for pin_memory, process, words in (("cuda", False, "give True, False or cuda:N"), (True, True, "process of its own")):
        with pytest.raises(ValueError, match=words):
            weir_package.Feed(pictures, pin_memory=pin_memory, process=process)


class FakeSession:
    """A session of onnxruntime whose scores are the sums of four parts of each picture's values."""

    def __init__(self, path, options, providers):
        self.path, self.options, self.providers, self.fed = path, options, providers, None

    def get_inputs(self):
        return [types.SimpleNamespace(name="pixels")]

    def get_outputs(self):
        return [types.SimpleNamespace(name="scores"), types.SimpleNamespace(name="other")]

    def run(self, outputs, inputs):
        assert outputs == ["scores"]
        self.fed = inputs["pixels"]
        return [self.fed.reshape(len(self.fed), 4, -1).astype(np.float64).mean(axis=2)]


@pytest.fixture
def model_folder(tmp_path, monkeypatch):
    """A folder of two versions with a recipe, and a stand-in for onnxruntime."""
    monkeypatch.setitem(sys.modules, "onnxruntime", types.SimpleNamespace(InferenceSession=FakeSession, SessionOptions=types.SimpleNamespace))
    for version in ("2", "10"):
        (tmp_path / "model" / version).mkdir(parents=True)
        (tmp_path / "model" / version / "model.onnx").touch()
    (tmp_path / "model/recipe.yaml").write_text("layout: NHWC\ndatatype: UINT8\nresize: {width: 32, height: 24}\noutput: scores\nsoftmax: true\nfirst_class: 1\nlabels: labels.txt\n")
    (tmp_path / "model/labels.txt").write_text("cat\ndog\nfox\n")
    return tmp_path / "model"


def test_a_model_gets_pixels_and_gives_named_classes(model_folder, tmp_path):
    model = weir_package.Model(model_folder, threads=3)
    assert model._session.path == str(model_folder / "10/model.onnx") and model._session.options.intra_op_num_threads == 3 and model._session.providers == ["CPUExecutionProvider"]
    pictures = [noise(300, 200, seed, format="PNG") for seed in range(3)]
    (tmp_path / "0.png").write_bytes(pictures[0])
    tensor = model.prepare([tmp_path / "0.png", *pictures[1:]])
    wanted = [np.asarray(Image.open(io.BytesIO(picture)).convert("RGB").resize((32, 24), Image.BILINEAR)) for picture in pictures]
    assert tensor.dtype == np.uint8 and np.array_equal(tensor, wanted)
    scores = model(pictures)
    raw = np.stack(wanted).reshape(3, 4, -1).mean(axis=2)
    assert np.array_equal(model._session.fed, tensor) and scores.shape == (3, 4)
    assert np.allclose(scores, np.exp(raw) / np.exp(raw).sum(axis=1, keepdims=True))
    best = model.classify(pictures, top=2)
    for row, answers in zip(scores[:, 1:], best):
        order = np.argsort(-row, kind="stable")[:2]
        assert answers == [(["cat", "dog", "fox"][k], row[k]) for k in order]


def test_a_model_says_what_is_wrong(model_folder, monkeypatch):
    recipe = model_folder / "recipe.yaml"
    model = weir_package.Model(model_folder / "2/model.onnx", recipe=recipe)
    with pytest.raises(ValueError, match="picture 1"):
        model([noise(30, 20), b"no picture"])
    with pytest.raises(FileNotFoundError):
        model([model_folder / "none.jpg"])
    with pytest.raises(FileNotFoundError, match="no recipe"):
        weir_package.Model(model_folder / "2/model.onnx")
    with pytest.raises(FileNotFoundError, match="no model is there"):
        weir_package.Model(model_folder / "3")
    with pytest.raises(FileNotFoundError, match="N/model.onnx"):
        weir_package.Model(model_folder / "2")
    recipe.write_text(recipe.read_text().replace("output: scores", "output: none"))
    with pytest.raises(ValueError, match="has no output 'none': it has scores, other"):
        weir_package.Model(model_folder)
    recipe.write_text(recipe.read_text().replace("output: none", ""))
    with pytest.raises(ValueError, match="2 outputs: name one in the recipe"):
        weir_package.Model(model_folder)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ImportError, match="pip install onnxruntime"):
        weir_package.Model(model_folder)


def test_load_gives_rows(tmp_path):
    path = tmp_path / "load.json"
    path.write_text(json.dumps({"schema_version": 1, "levels": [{"concurrency": 1, "response_ms": {"p50": 2.5}}]}))
    assert weir_package.load(path) == [{"concurrency": 1, "response_ms.p50": 2.5}]
    path.write_text(json.dumps({"schema_version": 1, "images": 3, "stages_ms": {"decode": 1}}))
    assert weir_package.load(path) == [{"images": 3, "schema_version": 1, "stages_ms.decode": 1}]
    (tmp_path / "results.csv").write_text("trial,batch,rate,note\n1,8,2.5,\n2,16,3e2,slow\n")
    rows = [{"trial": 1, "batch": 8, "rate": 2.5, "note": None}, {"trial": 2, "batch": 16, "rate": 300.0, "note": "slow"}]
    assert weir_package.load(tmp_path) == weir_package.load(tmp_path / "results.csv") == rows
    for text in ("{}", "[]", "no"):
        path.write_text(text)
        with pytest.raises(ValueError, match="not a result|not JSON"):
            weir_package.load(path)
