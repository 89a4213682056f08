"""Odd, broken and hostile files: each is answered for, none stops the run."""
import csv
import io
import os
import resource
import shutil
import struct
import subprocess
import zlib

import conftest
import pytest


@pytest.fixture
def bad(shared, tmp_path):
    folder = tmp_path / "bad"
    shutil.copytree(shared / "data/bad-images", folder)
    os.chmod(folder, 0o755)
    return folder


def run(weir, answers_of, shared, folder, tmp_path, *options):
    models = shared / "data/models"
    path = tmp_path / "answers.csv"
    result = weir.json("run", models / "mobilenet_v2_qdq.onnx", folder, "--recipe", models / "recipes/mobilenet_v2_qdq.yaml",
                       "--answers", path, *options)
    return result, {os.path.relpath(os.fsencode(k), os.fsencode(str(folder))): v for k, v in answers_of(path).items()}


def test_each_file_gets_the_verdict_of_its_manifest(weir, answers_of, shared, bad, tmp_path):
    result, answers = run(weir, answers_of, shared, bad, tmp_path)
    with open(shared / "data/bad-images/manifest.csv", newline="", encoding="utf-8") as file:
        manifest = list(csv.DictReader(file))
    assert len(manifest) == 72
    faults = []
    for row in manifest:
        name = os.fsencode(row["file"])
        if row["file"].startswith("."):
            if name in answers:
                faults.append((row["file"], "hidden, but answered"))
            continue
        if name not in answers:
            faults.append((row["file"], "lost"))
            continue
        status = answers[name][0]["status"]
        whole = row["kind"] in ("valid", "placeholder") or row["file"] == "partial_no_end_marker.jpg"  # nothing of its scans is missing
        if status != ("ok" if whole else "rejected"):
            faults.append((row["file"], row["kind"], status, answers[name][0]["reason"]))
        same = row["same_picture_as_good_baseline"].startswith("yes")
        if status == "ok" and same and answers[name][0]["class"] != "19":
            faults.append((row["file"], "class", answers[name][0]["class"]))
    assert not faults
    assert result["images"] + result["rejected"] == len(answers)
    assert result["skipped"] == 3  # the hidden picture, README.md and manifest.csv


def test_special_files_are_answered_for_one_by_one(weir, answers_of, shared, tmp_path):
    folder = tmp_path / "special"
    folder.mkdir()
    good = (shared / "data/bad-images/good_baseline.jpg").read_bytes()
    (folder / "plain.jpg").write_bytes(good)
    (folder / "folder.jpg").mkdir()
    (folder / "folder.jpg" / "inside.jpg").write_bytes(good)
    os.symlink("loop_a.jpg", folder / "loop_b.jpg")
    os.symlink("loop_b.jpg", folder / "loop_a.jpg")
    (folder / "d").mkdir()
    os.symlink("..", folder / "d" / "up")
    os.symlink("/nonexistent", folder / "gone.jpg")
    os.symlink("plain.jpg", folder / "linked.jpg")
    os.mkfifo(folder / "pipe.jpg")
    (folder / "two\nlines.jpg").write_bytes(good)
    with open(os.fsencode(folder) + b"/caf\xe9.jpg", "wb") as file:
        file.write(good)
    (folder / ("x" * 251 + ".jpg")).write_bytes(good)
    with open(folder / "huge.jpg", "wb") as file:
        file.truncate(2 << 30)
    result, answers = run(weir, answers_of, shared, folder, tmp_path, "--top", "1")
    ok = {name for name, rows in answers.items() if rows[0]["status"] == "ok"}
    assert ok == {b"plain.jpg", b"folder.jpg/inside.jpg", b"linked.jpg", b"two\nlines.jpg", b"caf\xe9.jpg", b"x" * 251 + b".jpg"}
    reasons = {name: rows[0]["reason"].split(":")[0] for name, rows in answers.items() if rows[0]["status"] == "rejected"}
    assert reasons == {b"folder.jpg": "not-a-file", b"loop_a.jpg": "unreadable", b"loop_b.jpg": "unreadable", b"gone.jpg": "unreadable",
                       b"pipe.jpg": "not-a-file", b"huge.jpg": "too-many-bytes"}


@pytest.mark.skipif(conftest.SANITIZED, reason="the sanitizer's own memory is counted too")
def test_bombs_do_not_blow_up_the_memory(shared, bad, tmp_path):
    models = shared / "data/models"
    command = [conftest.PROGRAM, "run", str(models / "mobilenet_v1_025_128_u8.onnx"), str(bad), "--recipe",
               str(models / "recipes/mobilenet_v1_025_128_u8.yaml"), "--decode-threads", "2"]
    with open(os.devnull, "wb") as quiet:
        child = subprocess.Popen(command, stdout=quiet)
        _, status, usage = os.wait4(child.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert usage.ru_maxrss < 600 * 1024


def test_tolerated_damage_is_let_through(weir, answers_of, shared, bad, tmp_path):
    _, strict = run(weir, answers_of, shared, bad, tmp_path)
    _, tolerant = run(weir, answers_of, shared, bad, tmp_path, "--tolerate-damage")
    name = b"partial_truncated_half.jpg"
    assert strict[name][0]["status"] == "rejected" and strict[name][0]["reason"].startswith("damaged")
    assert tolerant[name][0]["status"] == "ok"
    assert tolerant[b"bomb_declares_2e9.png"][0]["reason"].startswith("too-many-pixels")


def upright(weir, folder, name, data, size=(56, 40)):
    """The pixels that `weir prepare` gives of a picture, by whether its size is turned, or None where it is rejected."""
    numpy = pytest.importorskip("numpy")
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(data)
    width, height = size
    sizes = {}
    for turned in (False, True):
        w, h = (height, width) if turned else (width, height)
        (folder / "recipe.yaml").write_text(f"layout: NHWC\nresize: {{width: {w}, height: {h}}}\n")
        result = weir.json("prepare", folder / name, "--format", "raw", "--recipe", folder / "recipe.yaml", "-o", folder / f"{name}-{turned}", status=(0, 1))
        if result["images"] == 0:
            return None
        shard = (folder / f"{name}-{turned}/shards/000000.raw").read_bytes()
        sizes[turned] = numpy.frombuffer(shard[4096:4096 + 3 * w * h], numpy.uint8).reshape(h, w, 3)
    return sizes


def noise(numpy, image, height=40, width=56):
    return image.fromarray(numpy.random.default_rng(1).integers(0, 256, (height // 8, width // 8, 3), dtype=numpy.uint8)).resize((width, height), image.BICUBIC)


def test_what_lies_outside_of_a_jpegs_scans_is_no_damage(weir, tmp_path):
    numpy, image = pytest.importorskip("numpy"), pytest.importorskip("PIL.Image")
    for number, options in enumerate(({}, {"progressive": True}, {"subsampling": 0}, {"optimize": True})):
        data = io.BytesIO()
        noise(numpy, image).save(data, "JPEG", **options)
        good = data.getvalue()
        assert good.endswith(b"\xff\xd9")
        scans, end = good[:-2], good[-2:]
        wanted = numpy.asarray(image.open(io.BytesIO(good)).convert("RGB"))
        odd = {"junk": scans + b"\x7f" + end, "zeros": scans + bytes(64) + end, "no-end": scans, "half-end": scans + b"\xff", "fill": scans + b"\xff\xff" + end,
               "behind": good + b"some words", "twice": good + end, "header": good.replace(b"\xff\xdb", b"\x12\xff\xdb", 1)}
        for name, data in odd.items():
            pixels = upright(weir, tmp_path / f"{number}", f"{name}.jpg", data)
            assert pixels is not None and numpy.array_equal(pixels[False], wanted), (number, name)
        bad = {"rest": scans + bytes(range(1, 60)) + end, "cut": scans[:-3] + end, "cut-no-end": scans[:-3], "half": good[: len(good) * 2 // 3], "half-ended": good[: len(good) * 2 // 3] + end}
        for name, data in bad.items():
            assert upright(weir, tmp_path / f"{number}", f"{name}.jpg", data) is None, (number, name)
        if "progressive" in options:  # whole scans, and not all of them
            for at in [i for i in range(len(good)) if good[i:i + 2] == b"\xff\xda"][1:]:
                assert upright(weir, tmp_path / f"{number}", f"scan{at}.jpg", good[:at]) is None, at


def test_found_pictures_are_read(weir, shared, tmp_path):
    numpy, image = pytest.importorskip("numpy"), pytest.importorskip("PIL.Image")
    if not (shared / "data/found/pictures").is_dir():
        pytest.skip("the pictures are not there")
    junk, no_end = ((shared / f"data/found/pictures/{name}.jpg").read_bytes() for name in ("junk_before_eoi", "no_eoi"))
    wanted = numpy.asarray(image.open(io.BytesIO(no_end + b"\xff\xd9")).convert("RGB"))
    for name, data in (("junk", junk), ("no-end", no_end)):
        assert numpy.array_equal(upright(weir, tmp_path / name, "a.jpg", data, wanted.shape[1::-1])[False], wanted)


def test_a_feed_may_tolerate_damage(weir, tmp_path):
    numpy, image = pytest.importorskip("numpy"), pytest.importorskip("PIL.Image")
    for name in "ab":
        (tmp_path / "in" / name).mkdir(parents=True)
        data = io.BytesIO()
        noise(numpy, image).save(data, "JPEG")
        (tmp_path / f"in/{name}/1.jpg").write_bytes(data.getvalue()[: 600 if name == "b" else None])
    command = ["feed", tmp_path / "in", "--bench", "--epochs", 1, "--batch", 1, "--bad", "skip", "--threads", 1]
    assert weir.json(*command)["bad"] == {"damaged": 1}
    assert weir.json(*command, "--tolerate-damage")["bad"] == {}


def png_chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def test_orientation_in_xmp_and_in_text_chunks(weir, tmp_path):
    """The values 1 to 8 by Pillow's transpose; where EXIF tells one, XMP does not count."""
    numpy, image = pytest.importorskip("numpy"), pytest.importorskip("PIL.Image")
    turns = {2: "FLIP_LEFT_RIGHT", 3: "ROTATE_180", 4: "FLIP_TOP_BOTTOM", 5: "TRANSPOSE", 6: "ROTATE_270", 7: "TRANSVERSE", 8: "ROTATE_90"}
    picture = noise(numpy, image)
    data = io.BytesIO()
    picture.save(data, "PNG")
    png = data.getvalue()
    data = io.BytesIO()
    picture.save(data, "JPEG", quality=95)
    jpeg = data.getvalue()
    stored = image.open(io.BytesIO(jpeg)).convert("RGB")
    for value in (3, 6, 7, 8):
        exif = b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0" + bytes([value]) + b"\0\0\0\0\0\0"
        digits = "\n".join(exif.hex()[i:i + 72] for i in range(0, 2 * len(exif), 72))
        profile = f"\nexif\n{len(exif):8}\n{digits}\n".encode()
        xmp = f'<x:xmpmeta><rdf:Description tiff:Orientation="{value}"/></x:xmpmeta>'.encode()
        other = xmp.replace(b'"%d"' % value, b'"2"')
        chunks = {"profile": png_chunk(b"tEXt", b"Raw profile type exif\0" + profile), "packed": png_chunk(b"zTXt", b"Raw profile type exif\0\0" + zlib.compress(profile)),
                  "xmp": png_chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + xmp), "packed-xmp": png_chunk(b"iTXt", b"XML:com.adobe.xmp\0\x01\0\0\0" + zlib.compress(xmp)),
                  "both": png_chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + other) + png_chunk(b"zTXt", b"Raw profile type exif\0\0" + zlib.compress(profile))}
        files = {f"{name}.png": (png[:33] + chunk + png[33:], picture) for name, chunk in chunks.items()}

        def app1(text):
            return b"\xff\xe1" + struct.pack(">H", len(text) + 2) + text

        files["xmp.jpg"] = (jpeg[:2] + app1(b"http://ns.adobe.com/xap/1.0/\0" + xmp) + jpeg[2:], stored)
        files["both.jpg"] = (jpeg[:2] + app1(b"http://ns.adobe.com/xap/1.0/\0" + other) + app1(exif) + jpeg[2:], stored)
        for name, (contents, shown) in files.items():
            wanted = numpy.asarray(shown.transpose(getattr(image, turns[value])))
            pixels = upright(weir, tmp_path / f"{value}", name, contents)
            assert numpy.array_equal(pixels[value > 4], wanted), (value, name)
