"""`weir prepare` through the built program: its sets read by others' rules, kills, parts, sources, refusals."""
import hashlib
import http.server
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import socketserver
import struct
import subprocess
import sys
import tarfile
import threading

import pytest

from conftest import PROGRAM, SANITIZED

FORMATS = ["files", "tar", "tfrecord", "raw"]
KILLS = int(os.environ.get("WEIR_KILLS", "4"))  # of each format; more of them want their time
RECIPE = "resize: {short_side: 64, filter: bilinear}\ncrop: {width: 56, height: 48}\n"


def read_tree(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(pathlib.Path(folder).rglob("*")) if path.is_file()}


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture(scope="module")
def pictures(made, tmp_path_factory):
    """A folder of 200 made pictures in two folders, one of them cut and one empty."""
    folder = tmp_path_factory.mktemp("pictures")
    for i, path in enumerate(sorted((made[1] / "pictures").rglob("*.jpg"))):
        target = folder / ("even" if i % 2 == 0 else "odd") / path.name
        target.parent.mkdir(exist_ok=True)
        shutil.copy(path, target)
    all_of_them = sorted(folder.rglob("*.jpg"))
    all_of_them[17].write_bytes(all_of_them[17].read_bytes()[:-500])
    all_of_them[40].write_bytes(b"")
    return folder


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    path = tmp_path_factory.mktemp("recipe") / "small.yaml"
    path.write_text(RECIPE)
    return path


@pytest.fixture(scope="module")
def whole(weir, pictures, recipe, tmp_path_factory):
    """format -> a set made in one go by one worker."""
    folder = tmp_path_factory.mktemp("whole")
    for name in FORMATS:
        weir.run("prepare", pictures, "--recipe", recipe, "--labels", "folders", "--format", name, "--shard-bytes", 300_000, "--workers", 1, "-o", folder / name)
    return folder


def arguments(pictures, recipe, name):
    return ["prepare", pictures, "--recipe", recipe, "--labels", "folders", "--format", name, "--shard-bytes", 300_000]


def test_rejects_and_set_say_what_happened(whole):
    facts = json.loads((whole / "tar/set.json").read_text())
    assert facts["images"] == 198 and facts["rejected"] == {"damaged": 1, "empty": 1} and facts["classes"] == ["even", "odd"]
    assert {line["reason"] for line in lines(whole / "tar/rejects.jsonl")} == {"damaged", "empty"}
    manifest = lines(whole / "tar/manifest.jsonl")
    assert [line["record"] for line in manifest] == list(range(198))
    assert all(line["label"] == (0 if line["source"].startswith("even/") else 1) for line in manifest)


def test_tar_is_read_by_tarfile_with_the_members_of_a_key_together(whole):
    manifest = lines(whole / "tar/manifest.jsonl")
    seen = []
    for shard in sorted((whole / "tar/shards").iterdir()):
        assert shard.suffix == ".tar" and shard.stat().st_size <= 300_000
        with tarfile.open(shard) as archive:
            members = archive.getmembers()
            assert len(members) % 3 == 0
            for picture, label, about in zip(members[0::3], members[1::3], members[2::3]):
                key = picture.name.split(".")[0]
                assert [picture.name, label.name, about.name] == [f"{key}.jpg", f"{key}.cls", f"{key}.json"]
                line = manifest[int(key)]
                assert line["offset"] == picture.offset_data and line["bytes"] == picture.size and line["path"] == f"shards/{shard.name}"
                assert int(archive.extractfile(label).read()) == line["label"]
                assert json.loads(archive.extractfile(about).read())["source"] == line["source"]
                assert archive.extractfile(picture).read()[:3] == b"\xff\xd8\xff"
                seen.append(int(key))
    assert seen == list(range(198))


def crc32c_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = crc32c_table()


def masked_crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ TABLE[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not data[at - 1] & 0x80:
            return value, at


def fields(data):
    """The length-delimited fields of a protobuf message: (number, bytes)."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        assert tag & 7 == 2
        size, at = varint(data, at)
        yield tag >> 3, data[at:at + size]
        at += size
    assert at == len(data)


def features(example):
    (number, body), = fields(example)
    assert number == 1
    result = {}
    for number, entry in fields(body):
        assert number == 1
        parts = dict(fields(entry))
        (kind, values), = fields(parts[2])
        (_, value), = fields(values)
        result[parts[1].decode()] = value if kind == 1 else varint(value, 0)[0]
    return result


def test_tfrecord_is_read_by_its_own_rules_with_every_crc(whole):
    manifest, record = lines(whole / "tfrecord/manifest.jsonl"), 0
    for shard in sorted((whole / "tfrecord/shards").iterdir()):
        data, at = shard.read_bytes(), 0
        while at < len(data):
            size, crc = struct.unpack_from("<QI", data, at)
            assert crc == masked_crc32c(data[at:at + 8])
            body = data[at + 12:at + 12 + size]
            assert struct.unpack_from("<I", data, at + 12 + size)[0] == masked_crc32c(body)
            feature, line = features(body), manifest[record]
            assert feature["image/encoded"] == data[line["offset"]:line["offset"] + line["bytes"]]
            assert feature["image/format"] == b"JPEG" and feature["image/class/label"] == line["label"]
            assert feature["image/class/text"] == [b"even", b"odd"][line["label"]]
            assert (feature["image/width"], feature["image/height"]) == (56, 48) and feature["image/filename"].decode() == line["source"]
            record, at = record + 1, at + 16 + size
    assert record == 198


def test_raw_is_a_matrix_of_one_stride_with_an_index(whole):
    manifest, record = lines(whole / "raw/manifest.jsonl"), 0
    facts = json.loads((whole / "raw/set.json").read_text())
    index = (whole / "raw/index.bin").read_bytes()
    assert index[:8] == b"WEIRIDX1" and struct.unpack_from("<II", index, 8) == (64, 32) and len(index) == 64 + 32 * 198
    for number, shard in enumerate(sorted((whole / "raw/shards").iterdir())):
        data = shard.read_bytes()
        width, height, channels, header, stride, records, first = struct.unpack_from("<4I3Q", data, 8)
        assert data[:8] == b"WEIRRAW1" and (width, height, channels, header, first) == (56, 48, 3, 4096, record)
        assert stride == facts["record_stride"] and stride % 4096 == 0 and len(data) == header + stride * records
        for i in range(records):
            line = manifest[record]
            assert line["offset"] == header + stride * i and line["bytes"] == 56 * 48 * 3
            in_shard, label, offset, size, half = struct.unpack_from("<IiQQQ", index, 64 + 32 * record)
            assert (in_shard, label, offset, size, f"{half:016x}") == (number, line["label"], line["offset"], line["bytes"], line["hash"][:16])
            record += 1
    assert record == 198


def test_pixels_are_pillows_and_equal_in_every_lossless_format(weir, whole, pictures, recipe, tmp_path):
    image = pytest.importorskip("PIL.Image", reason="Pillow is not here: apt-get install python3-pil")
    weir.run(*arguments(pictures, recipe, "tar"), "--encoding", "png", "-o", tmp_path / "png")
    manifest = lines(whole / "raw/manifest.jsonl")
    archives = {path.name: path.read_bytes() for path in (tmp_path / "png/shards").iterdir()}
    for line, png in zip(manifest[:40], lines(tmp_path / "png/manifest.jsonl")):
        data = (whole / "raw" / line["path"]).read_bytes()
        pixels = data[line["offset"]:line["offset"] + line["bytes"]]
        import io
        encoded = archives[pathlib.Path(png["path"]).name][png["offset"]:png["offset"] + png["bytes"]]
        assert image.open(io.BytesIO(encoded)).tobytes() == pixels
        picture = image.open(pictures / line["source"]).convert("RGB")
        width, height = picture.size
        size = (64, height * 64 // width) if width <= height else (width * 64 // height, 64)
        picture = picture.resize(size, image.BILINEAR)
        left, top = round((size[0] - 56) / 2), round((size[1] - 48) / 2)
        wanted = picture.crop((left, top, left + 56, top + 48)).tobytes()
        differences = [abs(a - b) for a, b in zip(wanted, pixels)]
        assert max(differences) <= 1 and sum(differences) / len(differences) < 0.1


def test_webdataset_and_numpy_read_them(whole):
    numpy = pytest.importorskip("numpy", reason="numpy is not here: apt-get install python3-numpy")
    manifest = lines(whole / "raw/manifest.jsonl")
    shard = sorted((whole / "raw/shards").iterdir())[0]
    stride = json.loads((whole / "raw/set.json").read_text())["record_stride"]
    records = numpy.memmap(shard, numpy.uint8, "r", offset=4096).reshape(-1, stride)[:, :56 * 48 * 3].reshape(-1, 48, 56, 3)
    data = shard.read_bytes()
    for i, record in enumerate(records):
        assert record.tobytes() == data[manifest[i]["offset"]:manifest[i]["offset"] + manifest[i]["bytes"]]
    webdataset = pytest.importorskip("webdataset", reason="webdataset is not here: pip install webdataset")
    manifest = lines(whole / "tar/manifest.jsonl")
    shards = [str(path) for path in sorted((whole / "tar/shards").iterdir())]
    samples = list(webdataset.WebDataset(shards, shardshuffle=False))
    assert len(samples) == 198
    for sample, line in zip(samples, manifest):
        assert int(sample["cls"]) == line["label"] and len(sample["jpg"]) == line["bytes"]


@pytest.mark.parametrize("name", FORMATS)
def test_workers_and_parts_give_the_same_bytes(weir, whole, pictures, recipe, tmp_path, name):
    wanted = read_tree(whole / name)
    weir.run(*arguments(pictures, recipe, name), "--workers", 2, "-o", tmp_path / "two")
    assert read_tree(tmp_path / "two") == wanted
    for task in (2, 4, 3):
        environment = os.environ | {"SLURM_ARRAY_TASK_ID": str(task), "SLURM_ARRAY_TASK_MIN": "2", "SLURM_ARRAY_TASK_COUNT": "3"}
        weir.run(*arguments(pictures, recipe, name), "--part", "auto", "-o", tmp_path / "parts", env=environment)
    result = weir.json("prepare", "--join", tmp_path / "parts", "-o", tmp_path / "joined")
    assert result["images"] == 198 and result["format"] == name
    assert read_tree(tmp_path / "joined") == wanted
    said = weir.run("prepare", "--verify", tmp_path / "joined").stdout
    assert b"as the manifest says" in said


@pytest.mark.parametrize("name", FORMATS)
def test_kill_9_at_any_moment_and_the_same_command_again(weir, whole, pictures, recipe, tmp_path, name):
    wanted, chance = read_tree(whole / name), random.Random(7)
    command = [PROGRAM, *map(str, arguments(pictures, recipe, name)), "--workers", "2", "-o", str(tmp_path / "set")]
    takes, broken = 60.0, 0  # seconds; a whole run that ends before it is killed tells how long one is just now
    for _ in range(50 * KILLS):
        if broken == KILLS:
            break
        began, whole_run = os.times().elapsed, not (tmp_path / "set").exists()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            _, said = process.communicate(timeout=chance.uniform(0, takes))
            assert process.returncode == 0, said
            takes = os.times().elapsed - began if whole_run else takes
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            broken += 1
            assert not any(path.suffix in (".tar", ".tfrecord", ".raw") and path.stat().st_size == 0 for path in (tmp_path / "set").rglob("*"))
        if chance.random() < 0.5 or (tmp_path / "set/set.json").exists():
            weir.run(*command[1:])
            assert read_tree(tmp_path / "set") == wanted
            shutil.rmtree(tmp_path / "set")
    assert broken == KILLS
    weir.run(*command[1:])
    assert read_tree(tmp_path / "set") == wanted


def test_other_arguments_on_a_set_are_refused_and_the_same_do_nothing(weir, pictures, recipe, tmp_path):
    weir.run(*arguments(pictures, recipe, "tar"), "-o", tmp_path / "set")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "set").rglob("*")}
    result = weir.json(*arguments(pictures, recipe, "tar"), "-o", tmp_path / "set")
    assert result["was_finished"] and result["images"] == 198
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "set").rglob("*")} == before
    for more in (["--quality", 91], ["--min-bytes", 1], ["--no-duplicates"], ["--sample", 20]):
        said = weir.run(*arguments(pictures, recipe, "tar"), *more, "-o", tmp_path / "set", status=2).stderr
        assert b"made with other arguments" in said, said
    said = weir.run("prepare", pictures, "-o", tmp_path / "set", status=2).stderr
    assert b"other arguments" in said


def test_a_full_disk_is_an_error_and_room_heals_it(weir, whole, pictures, recipe, tmp_path):
    def little_room():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    for name in ("raw", "tar", "tfrecord"):
        said = weir.run(*arguments(pictures, recipe, name), "-o", tmp_path / name, status=1, preexec_fn=little_room).stderr
        assert b"File too large" in said
        assert not (tmp_path / name / "set.json").exists() and not list((tmp_path / name / "shards").glob("*." + name))
        weir.run(*arguments(pictures, recipe, name), "-o", tmp_path / name)
        assert read_tree(tmp_path / name) == read_tree(whole / name)


def test_a_target_that_cannot_be_written_is_an_error(weir, pictures):
    said = weir.run("prepare", pictures, "-o", "/sys/nothing/here", status=1).stderr
    assert b"/sys/nothing" in said


def test_a_source_that_grows_is_an_error_and_then_taken_up(weir, pictures, recipe, tmp_path):
    """The list of a pipe holds the program up, so that the folder can grow between its listing and its end."""
    source = tmp_path / "in"
    shutil.copytree(pictures, source)
    extra = sorted(source.rglob("*.jpg"))[3]
    os.mkfifo(tmp_path / "pipe")
    command = [PROGRAM, "prepare", str(source), "--list", str(tmp_path / "pipe"), "--recipe", str(recipe), "-o", str(tmp_path / "set")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with open(tmp_path / "pipe", "w") as pipe:  # opens once the folders have been listed
        shutil.copy(extra, source / "zzz.jpg")
        pipe.write("")
    _, said = process.communicate(timeout=300)
    assert process.returncode == 1 and b"now hold 201" in said, said
    assert not (tmp_path / "set/set.json").exists()
    (tmp_path / "pipe").unlink()
    (tmp_path / "pipe").write_text("")
    result = weir.json(*command[1:])
    assert result["begun_at"] == 200 and result["images"] == 199


def test_lists_from_standard_input_with_labels(weir, pictures, tmp_path):
    names = sorted(pictures.rglob("*.jpg"))[:5]
    text = "".join(f"{name}\t{'cat' if i % 2 else 'dog'}\n" for i, name in enumerate(names)) + f"{tmp_path}/none.jpg\tcat\n"
    weir.run("prepare", "--list", "-", "-o", tmp_path / "set", input=text.encode())
    facts = json.loads((tmp_path / "set/set.json").read_text())
    assert facts["classes"] == ["cat", "dog"] and facts["rejected"] == {"missing": 1}
    assert [line["label"] for line in lines(tmp_path / "set/manifest.jsonl")] == [1, 0, 1, 0, 1]


def test_urls_are_fetched_with_retries(weir, pictures, tmp_path):
    picture = sorted(pictures.rglob("*.jpg"))[0].read_bytes()
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            busy = self.path == "/busy.jpg" and asked.count(self.path) == 1
            status = 503 if busy else 404 if self.path == "/none.jpg" else 302 if self.path == "/moved.jpg" else 200
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "/a.jpg")
            body = picture if status == 200 else b"no"
            if self.path == "/large.jpg":
                body = picture + b"x" * 200_000
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{server.server_address[1]}"
        text = "".join(f"{base}/{name}\t3\n" for name in ("a.jpg", "busy.jpg", "none.jpg", "moved.jpg", "large.jpg"))
        result = weir.json("prepare", "--list", "-", "--workers", 1, "--max-file-bytes", 150_000, "-o", tmp_path / "set", input=text.encode())
        server.shutdown()
    assert result["images"] == 3 and result["rejected"] == {"too-many-bytes": 1, "unreachable": 1}
    assert asked.count("/busy.jpg") == 2 and asked.count("/none.jpg") == 1
    assert {line["label"] for line in lines(tmp_path / "set/manifest.jsonl")} == {3}


def test_tar_sets_are_sources(weir, whole, tmp_path):
    shards = sorted((whole / "tar/shards").iterdir())
    result = weir.json("prepare", *shards, "-o", tmp_path / "set")
    assert result["images"] == 198
    again = lines(tmp_path / "set/manifest.jsonl")
    before = lines(whole / "tar/manifest.jsonl")
    assert [(line["hash"], line["label"]) for line in again] == [(line["hash"], line["label"]) for line in before]


def test_selection_and_copies(weir, pictures, tmp_path):
    result = weir.json("prepare", pictures, pictures, "--no-duplicates", "-o", tmp_path / "once")
    assert result["images"] == 198 and result["rejected"]["duplicate"] == 198
    result = weir.json("prepare", pictures, "--sample", 50, "--seed", 3, "--replicate", 120, "--format", "tar", "-o", tmp_path / "some")
    assert result["images"] == 120
    manifest = lines(tmp_path / "some/manifest.jsonl")
    assert len({line["source"] for line in manifest}) == 50 - sum(result["rejected"].values())
    weir.run("prepare", "--verify", tmp_path / "some")


def test_a_model_judges(weir, made, pictures, tmp_path):
    strict = weir.json("prepare", pictures, "--recognise", made[0], "--min-score", 1e9, "-o", tmp_path / "none", status=1)
    assert strict["images"] == 0 and strict["rejected"]["unrecognised"] == 198
    lenient = weir.json("prepare", pictures, "--recognise", made[0], "--min-score", -1e9, "-o", tmp_path / "all")
    assert lenient["images"] == 198
    tolerant = weir.json("prepare", pictures, "--recognise", made[0], "--min-score", -1e9, "--tolerate-damage", "-o", tmp_path / "damaged")
    assert tolerant["images"] == 199 and tolerant["rejected"] == {"empty": 1}


def test_variations_are_made_of_one_decode(weir, pictures, recipe, whole, tmp_path):
    other = tmp_path / "tiny.yaml"
    other.write_text("resize: {width: 20, height: 20}\nchannels: GRAY\n")
    weir.run("prepare", pictures, "--recipe", f"{recipe},{other}", "--labels", "folders", "--format", "raw", "--shard-bytes", 300_000, "-o", tmp_path / "both")
    assert read_tree(tmp_path / "both/small") == read_tree(whole / "raw")
    assert json.loads((tmp_path / "both/tiny/set.json").read_text())["channels"] == 1
    weir.run("prepare", "--verify", tmp_path / "both")


def test_run_takes_every_format(weir, made, pictures, tmp_path):
    answers = {}
    for name in FORMATS:
        encoding = ["--encoding", "png"] if name != "raw" else []
        weir.run("prepare", pictures, "--recipe", made[0] / "recipe.yaml", "--format", name, *encoding, "-o", tmp_path / name)
        result = weir.json("run", made[0], tmp_path / name, "--answers", tmp_path / f"{name}.csv")
        assert result["images"] == 198 and result["rejected"] == 0
        answers[name] = [line.split(",")[1:] for line in (tmp_path / f"{name}.csv").read_text().splitlines()[1:]]
    assert all(rows == answers["files"] for rows in answers.values())


def test_verify_finds_a_changed_byte(weir, whole, tmp_path):
    for name in FORMATS:
        shutil.copytree(whole / name, tmp_path / name)
        victim = sorted(path for path in (tmp_path / name).rglob("*") if path.suffix in (".tar", ".tfrecord", ".raw", ".jpg"))[0]
        data = bytearray(victim.read_bytes())
        data[len(data) // 2] ^= 1
        victim.write_bytes(data)
        result = weir.json("prepare", "--verify", tmp_path / name, status=1)
        assert result["faults"] >= 1 and result["sets"][0]["examples"]
    weir.run("prepare", "--verify", tmp_path / "none", status=2)


def test_what_a_way_of_working_does_not_look_at_is_refused(weir, pictures, recipe, tmp_path):
    for flags in (["--verify", tmp_path, "-o", tmp_path / "x"], ["--verify", tmp_path, "--recipe", recipe], ["--verify", tmp_path, "--strict"],
                  ["--verify", tmp_path, "--preview", tmp_path / "sheet.jpg"], ["--verify", tmp_path, "--labels", "folders"],
                  ["--join", tmp_path, "-o", tmp_path / "x", "--format", "tar"], ["--join", tmp_path, "-o", tmp_path / "x", "--quality", 80],
                  ["--join", tmp_path, "-o", tmp_path / "x", "--part", "1/2"], ["--make", 3, "-o", tmp_path / "x", "--labels", "folders"],
                  ["--make", 3, "-o", tmp_path / "x", "--fetch-retries", 1]):
        said = weir.run("prepare", *flags, status=2).stderr.decode()
        assert f"{flags[-2] if flags[-1] != '--strict' else '--strict'} is not applicable" in said.replace("--output", "-o"), said
    assert not (tmp_path / "x").exists()


def test_what_is_no_picture_is_counted(weir, pictures, tmp_path):
    source = tmp_path / "in"
    shutil.copytree(pictures / "even", source)
    (source / "notes.txt").write_text("no picture")
    (source / ".hidden.jpg").write_text("hidden")
    result = weir.json("prepare", source, "-o", tmp_path / "set")
    assert result["skipped"] == 2 and result["format"] == "files"
    assert b"not taken: 2" in weir.run("prepare", source, "-o", tmp_path / "other").stdout


def test_sha256_is_that_of_the_files(weir, pictures, tmp_path):
    weir.run("prepare", pictures, "--sha256", "-o", tmp_path / "set")
    for line in lines(tmp_path / "set/manifest.jsonl")[:20]:
        source, result = (pictures / line["source"]).read_bytes(), (tmp_path / "set" / line["path"]).read_bytes()
        assert line["source_sha256"] == hashlib.sha256(source).hexdigest() and line["sha256"] == hashlib.sha256(result).hexdigest()
        assert line["source_bytes"] == len(source) and line["bytes"] == len(result)


def test_a_preview_is_a_picture(weir, pictures, recipe, tmp_path):
    weir.run("prepare", pictures, "--recipe", recipe, "--preview", tmp_path / "sheet.jpg", "-o", tmp_path / "set")
    assert (tmp_path / "sheet.jpg").read_bytes()[:3] == b"\xff\xd8\xff"


def test_planted_damage_is_found(weir, shared, recipe, tmp_path):
    """Of each photo a cut one, one with 8 wrong bits in its second half, and one with 4 KiB of zeros in its middle."""
    chance = random.Random(11)
    photos = [path for path in sorted((shared / "data/images").iterdir()) if path.suffix in (".JPEG", ".jpg") and path.stat().st_size >= 8192]
    for kind in ("cut", "flipped", "zeroed"):
        (tmp_path / "in" / kind).mkdir(parents=True)
    for photo in photos:
        good = photo.read_bytes()
        flipped = bytearray(good)
        for _ in range(8):
            bit = chance.randrange(len(good) * 4, len(good) * 8)
            flipped[bit // 8] ^= 1 << bit % 8
        middle = len(good) // 2
        zeroed = good[:middle - 2048] + bytes(4096) + good[middle + 2048:]
        for kind, data in (("cut", good[:chance.randrange(len(good))]), ("flipped", flipped), ("zeroed", zeroed)):
            (tmp_path / "in" / kind / f"{photo.stem}.jpg").write_bytes(data)
    weir.run("prepare", tmp_path / "in", "--recipe", recipe, "--format", "raw", "-o", tmp_path / "set")
    found = [line["source"].split("/")[0] for line in lines(tmp_path / "set/rejects.jsonl")]
    assert found.count("cut") == len(photos) and found.count("flipped") >= 0.60 * len(photos) and found.count("zeroed") >= 0.98 * len(photos)
    clean = weir.json("prepare", *photos, "--recipe", recipe, "--format", "raw", "-o", tmp_path / "clean")
    assert clean["images"] == len(photos)


@pytest.mark.skipif(SANITIZED, reason="the sanitizer's own memory is counted too")
def test_long_lists_need_little_memory(weir, tmp_path):
    with open(tmp_path / "list", "w", encoding="utf-8") as file:
        for i in range(200_000):
            file.write(f"/nowhere/a-folder-of-some-length/with-another/picture-{i:09}.jpg\t{i % 1000}\n")
    # Between the two stands a small process: what starts another leaves it its own peak.
    script = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    command = [PROGRAM, "prepare", "--list", str(tmp_path / "list"), "-o", str(tmp_path / "set")]
    done = subprocess.run([sys.executable, "-c", script, *command], check=True, capture_output=True, text=True)
    assert int(done.stdout.splitlines()[-1]) < 120_000  # KiB
    assert json.loads((tmp_path / "set/set.json").read_text())["rejected"] == {"missing": 200_000}


def test_what_says_nothing_or_could_never_end_is_refused(weir, made, tmp_path):
    _, pictures = made
    folder = tmp_path / "pictures"
    folder.mkdir()
    (folder / "a.jpg").write_bytes(next(pictures.rglob("*.jpg")).read_bytes())
    assert b"lies within its own source" in weir.run("prepare", folder, "-o", folder / "set", status=2).stderr
    assert sorted(os.listdir(folder)) == ["a.jpg"]
    assert b"--encoding" in weir.run("prepare", folder, "-o", tmp_path / "set", "--encoding", "png", status=2).stderr
    assert b"--min-score" in weir.run("prepare", folder, "-o", tmp_path / "set", "--min-score", 1, status=2).stderr
