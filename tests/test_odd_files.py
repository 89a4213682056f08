"""Odd, broken and hostile files: each is answered for, none stops the run."""
import csv
import os
import resource
import shutil
import subprocess

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
        if status != ("ok" if row["kind"] in ("valid", "placeholder") else "rejected"):
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
