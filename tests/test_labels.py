"""Numbers of classes: the same for a folder's feed, prepared sets, archives, labels files and stores, and those of a numbering in Python."""
import csv
import importlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import types

import conftest
import pytest
from s3_server import S3Server

Image = pytest.importorskip("PIL.Image")
pytest.importorskip("numpy")
PACKAGE = os.environ.get("WEIR_PYTHON", str(conftest.pathlib.Path(conftest.PROGRAM).parent / "python"))
if PACKAGE not in sys.path:
    sys.path.insert(0, PACKAGE)
pytest.importorskip("weir", reason="the extension is not built: ./dev setup, then ./dev build")
PICTURE = (".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".tif", ".tiff", ".gif", ".bmp", ".dib", ".webp")
RECIPE = "layout: NCHW\nresize: {width: 8, height: 8}\n"
FEED = """
import json, sys
import weir
labels = []
feed = weir.Feed(sys.argv[1], batch=1, sampler="sequential", ends="pad", size=(8, 8), crop="centre", short_side=8, threads=1)
for batch in feed:
    labels.append((feed.name(int(batch["index"][0])), int(batch["label"][0])))
json.dump({"labels": labels, "classes": feed.classes}, sys.stdout)
"""


def picture(kind="JPEG", colour=(9, 99, 199)):
    data = io.BytesIO()
    Image.new("RGB", (8, 8), colour).save(data, kind)
    return data.getvalue()


JPEG = picture()


def numbered(texts):
    """text -> class: each whole number is its own, or all texts are counted in byte order."""
    texts = sorted(set(texts), key=os.fsencode)
    if all(re.fullmatch(r"0|[1-9][0-9]*", text) and int(text) < 2**31 for text in texts):
        return {text: int(text) for text in texts}, []
    return {text: k for k, text in enumerate(texts)}, texts


def pictures_of(root):
    """Relative names of files named like pictures and not hidden; links are followed, circles are not."""
    found = []

    def enter(folder, above):
        here = os.path.realpath(folder)
        if here in above:
            return
        for entry in sorted(os.scandir(folder), key=lambda entry: os.fsencode(entry.name)):
            if entry.name.startswith("."):
                continue
            if entry.is_dir():
                enter(entry.path, above | {here})
            elif entry.name.lower().endswith(PICTURE):
                found.append(os.path.relpath(entry.path, root))

    enter(root, frozenset())
    return found


def put(root, *names, contents=JPEG):
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(contents)


def link(root, name, target):
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).symlink_to(target)


def of_classes(*classes):
    return lambda root: put(root, *(f"{name}/{k}.jpg" for name in classes for k in range(2)))


def with_folders(*folders):
    def make(root):
        of_classes("cat", "dog")(root)
        for folder in folders:
            (root / folder).mkdir(parents=True)
    return make


def linked(kind):
    def make(root):
        of_classes("ant", "cat", "dog")(root)
        outside = root.parent / "outside"
        put(outside, "a.jpg", "deep/b.jpg")
        if kind == "outside":
            link(root, "bee", outside)
        elif kind == "twice":
            link(root, "bee", outside)
            link(root, "cow", outside)
        elif kind == "sibling":
            link(root, "bee", root / "dog")
        elif kind == "file":
            link(root, "bee/linked.jpg", root / "dog/0.jpg")
        elif kind == "circle":
            link(root, "bee", root)
            link(root, "cat/loop", root / "cat")
    return make


def also(make, *names, contents=b"no picture"):
    def both(root):
        make(root)
        put(root, *names, contents=contents)
    return both


TREES = {
    "numeric": of_classes("0", "1", "2", "10", "11"),
    "sparse": of_classes("7", "100", "9", "2147483647"),
    "one": of_classes("3"),
    "padded": of_classes("00", "01", "02", "10"),
    "half padded": of_classes("01", "1", "2", "10"),
    "numeric and names": of_classes("1", "10", "2", "cat", "dog", "eel", "fox"),
    "large": of_classes("20231115123456", "20231115123457"),
    "names": of_classes("cat", "Dog", "_x", "\u00e9clair", "z.1", "a b, c", 'q"uote'),
    "back\\slash": of_classes("a\\b", "a/b", "c"),
    "empty": with_folders("ant", "bee/deep", "zoo"),
    "no pictures": also(of_classes("cat", "dog"), "bee/readme.txt", "cow/photo.avif", "0/data.json"),
    "numeric, one empty": lambda root: (of_classes("0", "1", "10")(root), (root / "notes").mkdir(), put(root, "names/list.txt", contents=b"x")),
    "hidden": lambda root: put(root, "cat/a.jpg", "bee/.hidden.jpg", "__MACOSX/._a.jpg", ".git/x/a.jpg", "dog/.x/a.jpg", "eel/b.png"),
    "nested": lambda root: put(root, "cat/a/b/c/1.jpg", "dog/2.jpg", "dog/a/2.jpg", "cat/z/3.JPG", "a.b/c.d/4.jpeg"),
    "picture folders": lambda root: (put(root, "cat/a.jpg", "dog.jpg/b.jpg", "eel/x.png/c.jpg"), (root / "bee/trap.jpg").mkdir(parents=True)),
    "linked outside": linked("outside"),
    "linked twice": linked("twice"),
    "linked sibling": linked("sibling"),
    "linked file": linked("file"),
    "linked circle": linked("circle"),
    "upper case": lambda root: put(root, "B/1.JPG", "a/2.JPEG", "C/3.Png"),
    "beside": also(of_classes("cat", "dog"), "top.jpg", contents=JPEG),
}


def feed(path, environment=None):
    done = subprocess.run([sys.executable, "-c", FEED, str(path)], env=os.environ | {"PYTHONPATH": PACKAGE} | (environment or {}), capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def unescaped(source):
    return source.replace("\\\\", "\\")


def labels_of(folder, prefix=""):
    return {unescaped(line["source"]).removeprefix(prefix): line.get("label") for line in lines(folder / "manifest.jsonl")}


@pytest.fixture(scope="module")
def store():
    with S3Server() as server:
        yield server


def classed(root):
    """Relative name -> text of its class; without those beside the classes."""
    return {name: name.split("/")[0] for name in pictures_of(root) if "/" in name}


@pytest.mark.parametrize("name", TREES)
def test_a_tree_has_one_numbering(weir, store, tmp_path, name):
    root = tmp_path / "tree"
    root.mkdir()
    TREES[name](root)
    (tmp_path / "recipe.yaml").write_text(RECIPE)
    texts = classed(root)
    numbers, classes = numbered(texts.values())
    wanted = {picture_name: numbers[text] for picture_name, text in texts.items()}
    escaped = [text.replace("\\", "\\\\") for text in classes]

    fed = feed(root)
    assert {os.path.relpath(path, root): label for path, label in fed["labels"]} == wanted
    assert fed["classes"] == escaped

    def check_set(folder, prefix=""):
        labels = labels_of(folder, prefix)
        assert {key: label for key, label in labels.items() if label is not None} == wanted
        facts = json.loads((folder / "set.json").read_text())
        assert facts["label_rule"] == ("names" if classes else "numbers") and facts.get("classes", []) == escaped
        from_set = feed(folder)
        assert [label for _, label in from_set["labels"]] == [line.get("label", -1) for line in lines(folder / "manifest.jsonl")]
        assert from_set["classes"] == escaped

    for kind in ("files", "tar", "tfrecord", "raw"):
        weir.run("prepare", root, "--labels", "folders", "--format", kind, "--recipe", tmp_path / "recipe.yaml", "-o", tmp_path / kind)
        check_set(tmp_path / kind)
    weir.run("prepare", tmp_path / "tar", "-o", tmp_path / "again")
    check_set(tmp_path / "again")

    bucket = re.sub("[^a-z]", "-", name)
    for at, folders, files in os.walk(root):
        for file in files:
            store.put(bucket, f"tree/{os.path.relpath(os.path.join(at, file), root)}".replace("/./", "/"), open(os.path.join(at, file), "rb").read())
    for linked_name in texts:  # links to folders, as `aws s3 sync` follows them
        store.put(bucket, f"tree/{linked_name}", (root / linked_name).read_bytes())
    environment = store.environment(tmp_path / "cache")
    stored = feed(f"s3://{bucket}/tree", environment)
    assert {path.split("/tree/", 1)[1]: label for path, label in stored["labels"]} == wanted
    assert stored["classes"] == escaped
    weir.run("prepare", f"s3://{bucket}/tree", "--labels", "folders", "-o", tmp_path / "of-store", env=os.environ | environment)
    check_set(tmp_path / "of-store")

    with tarfile.open(tmp_path / "in.tar", "w") as archive:
        for number, (picture_name, text) in enumerate(texts.items()):
            for member, contents in ((picture_name, JPEG), (os.path.splitext(picture_name)[0] + ".cls", text.encode())):
                facts = tarfile.TarInfo(f"{number}/{member}")
                facts.size = len(contents)
                archive.addfile(facts, io.BytesIO(contents))
    with open(tmp_path / "labels.csv", "w", newline="") as file:
        csv.writer(file).writerows([["filename", "label"], *texts.items()])
    if name == "large":  # as labels numbers of this size are more likely errors than names
        for source in ([tmp_path / "in.tar"], [root, "--labels", tmp_path / "labels.csv"]):
            assert b"is no label" in weir.run("prepare", *source, "-o", tmp_path / "refused", status=2).stderr
        return
    weir.run("prepare", tmp_path / "in.tar", "-o", tmp_path / "of-tar")
    of_tar = {source.split("/", 2)[2]: label for source, label in labels_of(tmp_path / "of-tar").items()}
    assert of_tar == wanted
    weir.run("prepare", root, "--labels", tmp_path / "labels.csv", "-o", tmp_path / "of-csv")
    check_set(tmp_path / "of-csv")


def test_a_set_of_an_older_program_is_refused_with_the_command_that_renumbers_it(weir, made, tmp_path):
    root = tmp_path / "tree"
    of_classes("cat", "dog")(root)
    for kind in ("files", "tar", "tfrecord", "raw"):
        (tmp_path / "recipe.yaml").write_text(RECIPE)
        folder = tmp_path / kind
        weir.run("prepare", root, "--labels", "folders", "--format", kind, "--recipe", tmp_path / "recipe.yaml", "-o", folder)
        facts = json.loads((folder / "set.json").read_text())
        assert facts.pop("label_rule") == "names"
        (folder / "set.json").write_text(json.dumps(facts))
        said = [weir.run("feed", folder, "--bench", "--epochs", 1, "--batch", 2, status=2).stderr]
        if kind != "raw":
            said.append(weir.run("run", made[0], folder, status=2).stderr)
            assert f"weir prepare {folder} -o NEW".encode() in said[0]
            weir.run("prepare", folder, "-o", tmp_path / f"{kind}-new")
            assert labels_of(tmp_path / f"{kind}-new") == {"cat/0.jpg": 0, "cat/1.jpg": 0, "dog/0.jpg": 1, "dog/1.jpg": 1}
            assert json.loads((tmp_path / f"{kind}-new/set.json").read_text())["label_rule"] == "names"
        assert all(b"an older program numbered its classes" in words and b"weir prepare" in words for words in said), said


def test_what_a_source_holds_and_was_not_taken_is_named(weir, tmp_path):
    root = tmp_path / "in"
    put(root, "a.jpg", "b/c.jpg")
    put(root, "b/d.avif", "e.heic", "notes.txt", ".hidden.jpg", "shards.tar", contents=b"no picture")
    result = weir.json("prepare", root, "-o", tmp_path / "set", status=0)
    assert result["images"] == 2 and result["skipped"] == 5
    assert result["rejected"] == {"hidden": 1, "not-a-picture": 1, "unsupported": 3}
    named = {line["source"]: line["reason"] for line in lines(tmp_path / "set/rejects.jsonl")}
    assert named == {".hidden.jpg": "hidden", "b/d.avif": "unsupported", "e.heic": "unsupported", "notes.txt": "not-a-picture", "shards.tar": "unsupported"}
    weir.run("prepare", root, "--strict", "-o", tmp_path / "strict", status=1)
    assert weir.json("prepare", root, "--sample", 1, "-o", tmp_path / "one", status=0)["images"] == 1
    weir.run("prepare", "--verify", tmp_path / "set")
    for part in (1, 2, 3):
        weir.run("prepare", root, "--part", f"{part}/3", "-o", tmp_path / "parts")
    weir.run("prepare", "--join", tmp_path / "parts", "-o", tmp_path / "joined")
    for file in ("set.json", "manifest.jsonl", "rejects.jsonl"):
        assert (tmp_path / "joined" / file).read_bytes() == (tmp_path / "set" / file).read_bytes()
    nothing = tmp_path / "nothing"
    put(nothing, "a.avif", contents=b"no picture")
    assert b"a.avif" in weir.run("prepare", nothing, "-o", tmp_path / "x", status=1).stderr
    put(nothing, "b.jpg", contents=b"no picture")
    assert weir.run("prepare", nothing, "-o", tmp_path / "y", status=1).stdout.startswith(b"0 pictures")


def test_the_archives_that_were_read_wrongly(weir, tmp_path):
    """A link, a second archive behind the first, and names in capitals, by tarfile and GNU's rules."""
    def member(archive, name, contents, **facts):
        info = tarfile.TarInfo(name)
        info.size = 0 if "type" in facts else len(contents)
        for key, value in facts.items():
            setattr(info, key, value)
        archive.addfile(info, None if "type" in facts else io.BytesIO(contents))

    long_name = "x" * 150 + "/" + "y" * 200 + ".jpg"
    for form in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        path = tmp_path / f"{form}.tar"
        with tarfile.open(path, "w", format=form) as archive:
            member(archive, "./one.JPG", picture("JPEG", (1, 2, 3)))
            member(archive, "one.CLS", b"\xef\xbb\xbf3\r\n")
            member(archive, "two.jpg", b"", type=tarfile.LNKTYPE, linkname="./one.JPG")
            member(archive, "two.cls", b"4")
            member(archive, "d/three.jpg", b"", type=tarfile.SYMTYPE, linkname="../one.JPG")
            member(archive, "d/three.cls", b"")
            member(archive, "lost.jpg", b"", type=tarfile.SYMTYPE, linkname="/etc/lost.jpg")
            member(archive, long_name, JPEG)
            member(archive, long_name[:-4] + ".cls", b"nan")
            member(archive, "far.jpg", b"", type=tarfile.LNKTYPE, linkname=long_name)
            member(archive, "far.cls", b"5")
        second = tmp_path / "second.tar"
        with tarfile.open(second, "w", format=form) as archive:
            member(archive, "four.jpg", JPEG)
            member(archive, "four.cls", b"6")
        path.write_bytes(path.read_bytes() + second.read_bytes())
        result = weir.json("prepare", path, "-o", tmp_path / f"set-{form}", status=0)
        assert result["images"] == 6 and result["rejected"] == {"link": 1}
        name = path.name
        assert labels_of(tmp_path / f"set-{form}", f"{name}/") == {"one.JPG": 3, "two.jpg": 4, "d/three.jpg": None, long_name: None, "far.jpg": 5, "four.jpg": 6}
        with tarfile.open(path, ignore_zeros=True) as archive:
            for line in lines(tmp_path / f"set-{form}/manifest.jsonl"):
                member_name = line["source"].removeprefix(f"{name}/")
                expected = archive.extractfile("./one.JPG" if member_name == "one.JPG" else member_name).read()
                assert (tmp_path / f"set-{form}" / line["path"]).read_bytes() == expected


def test_found_sources(weir, shared, tmp_path):
    """Inputs that were read wrongly once: the right labels, or an error."""
    found = shared / "data/found"
    if not (found / "tar").is_dir():
        pytest.skip(f"{found} is not there")
    for name, wanted in {"frames": [0, 1, 2, 0, 1, 2], "coarse_after": [1], "apart": [0, 1], "concat": [0, 1, 2, 3, 4], "upper": [0, 1], "gnuhard": [None, None]}.items():
        weir.run("prepare", found / f"tar/{name}.tar", "-o", tmp_path / name)
        assert list(labels_of(tmp_path / name).values()) == wanted, name


class FakeTorch(types.ModuleType):
    """What weir.torch uses of torch, with arrays of numpy as tensors."""

    def __init__(self):
        super().__init__("torch")
        self.uint8, self.float16, self.float32 = "uint8", "float16", "float32"
        self.from_numpy = lambda array: array
        self.cuda = types.SimpleNamespace(is_available=lambda: False)
        self.distributed = types.SimpleNamespace(is_available=lambda: False)


@pytest.fixture
def loader(monkeypatch):
    try:
        importlib.import_module("torch")
    except ImportError:
        monkeypatch.setitem(sys.modules, "torch", FakeTorch())
        monkeypatch.delitem(sys.modules, "weir.torch", raising=False)
    return importlib.import_module("weir.torch").Loader


@pytest.fixture(scope="module")
def set_of_24(weir, tmp_path_factory):
    folder = tmp_path_factory.mktemp("loader") / "set"
    weir.run("prepare", "--make", 24, "--seed", 3, "-o", folder)
    return folder


SMALL = {"size": (8, 8), "num_workers": 1, "seed": 1}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("world", [2, 3])
def test_all_ranks_take_the_same_steps(set_of_24, loader, world):
    for samples in range(1, 2 * world * 3 + 2):  # every remainder of a global batch
        for drop_last in (False, True):
            options = SMALL | {"batch_size": 3, "shuffle": True, "drop_last": drop_last, "subset": range(samples), "world": world}
            if drop_last and samples < 3 * world:
                with pytest.raises(ValueError, match="no whole batch"):
                    loader(set_of_24, rank=0, **options)
                continue
            loaders = [loader(set_of_24, rank=rank, **options) for rank in range(world)]
            steps = -(-samples // (3 * world)) if not drop_last else samples // (3 * world)
            for _ in range(2):
                epochs = [[len(labels) for _, labels in one] for one in loaders]
                assert epochs == [[3] * steps] * world
            assert {len(one) for one in loaders} == {steps}
            assert loaders[0].repeats == (0 if drop_last else steps * 3 * world - samples)


def test_repeats_are_told_once(set_of_24, loader):
    options = SMALL | {"batch_size": 7, "world": 2}
    with pytest.warns(UserWarning, match="24 samples do not fill 2 batches of 2 x 7: 4 are repeated"):
        loader(set_of_24, rank=0, **options)
    assert loader(set_of_24, rank=1, **options).repeats == 4
    assert [len(labels) for _, labels in loader(set_of_24, **SMALL, batch_size=7)] == [7, 7, 7, 3]


def test_a_look_and_a_break_leave_the_next_epoch_whole(set_of_24, loader):
    def labels_of_epoch(one):
        return [tuple(labels.tolist()) for _, labels in one]

    options = SMALL | {"batch_size": 4, "shuffle": True}
    reference = loader(set_of_24, **options)
    epochs = [labels_of_epoch(reference) for _ in range(4)]
    assert len({tuple(epoch) for epoch in epochs}) == 4
    one = loader(set_of_24, **options)
    assert tuple(next(iter(one))[1].tolist()) == epochs[0][0]
    assert tuple(next(iter(one))[1].tolist()) == epochs[0][0]
    assert labels_of_epoch(one) == epochs[0]  # a look uses nothing up
    for step, _ in enumerate(one):
        if step == 2:
            break
    assert labels_of_epoch(one) == epochs[2] and len(one) == 6
    for step, _ in enumerate(one):  # to the last batch, and not to the end
        if step == 5:
            break
    one.set_epoch(3)
    assert labels_of_epoch(one) == epochs[3]
    resumed = loader(set_of_24, **options)
    batches = iter(resumed)
    taken = [tuple(next(batches)[1].tolist()) for _ in range(2)]
    other = loader(set_of_24, **options)
    other.load_state_dict(resumed.state_dict())
    assert taken + labels_of_epoch(other) == epochs[0]
    first, second = iter(one), iter(one)
    next(second)
    with pytest.raises(RuntimeError, match="another iteration"):
        next(first)


def test_arguments_of_a_data_loader_are_taken_or_refused_with_the_reason(set_of_24, loader):
    options = {key: value for key, value in SMALL.items() if key != "seed"} | {"batch_size": 4, "shuffle": True}
    generator = types.SimpleNamespace(initial_seed=lambda: 1)
    one = loader(set_of_24, generator=generator, persistent_workers=True, timeout=0, collate_fn=None, prefetch_factor=None, **options)
    same = loader(set_of_24, seed=1, **options)
    assert [labels.tolist() for _, labels in one] == [labels.tolist() for _, labels in same]
    for refused, reason in (({"collate_fn": list}, "collate"), ({"timeout": 3}, "given up"), ({"worker_init_fn": print}, "threads"),
                            ({"generator": generator, "seed": 2}, "both"), ({"generator": generator, "rank": 0, "world": 2}, "one order"),
                            ({"bad": "skip", "rank": 0, "world": 2}, "fewer batches"), ({"sampler": object()}, "sampler"), ({"batch_sampler": [1]}, "batch_size")):
        with pytest.raises(ValueError, match=reason):
            loader(set_of_24, **(options | refused))
