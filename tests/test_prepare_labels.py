"""`weir prepare`: labels that match nothing, lists, names of pictures, rates and stages, through the built program."""
import fcntl
import http.server
import json
import os
import pathlib
import random
import shutil
import signal
import socketserver
import subprocess
import threading

import pytest

from conftest import PROGRAM


def lines(path):
    return [json.loads(line) for line in path.read_text().split("\n") if line]


def read_tree(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(pathlib.Path(folder).rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def pictures(made, tmp_path_factory):
    """Forty pictures in two folders, one of them empty, one of them there twice."""
    folder = tmp_path_factory.mktemp("pictures")
    for i, path in enumerate(sorted((made[1] / "pictures").rglob("*.jpg"))[:40]):
        target = folder / ("even" if i % 2 == 0 else "odd") / path.name
        target.parent.mkdir(exist_ok=True)
        shutil.copy(path, target)
    everything = sorted(folder.rglob("*.jpg"))
    everything[7].write_bytes(b"")
    shutil.copy(everything[3], everything[30])
    return folder


def stopped(command, folder):
    """Runs the command until its journal has a checkpoint, and ends it with SIGKILL."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    journal = folder / ".weir-prepare.jsonl"
    while process.poll() is None:
        if journal.exists() and journal.read_bytes().count(b"\n") >= 2:
            process.kill()
            break
    _, said = process.communicate()
    assert process.returncode == -signal.SIGKILL, said
    return json.loads(journal.read_text().split("\n")[1])["next"]


class Slow:
    """A server of one picture under the names 0.jpg, 1.jpg and so on; from `wait_from` on each takes longer than checkpoints are apart, until `free`."""

    def __init__(self, body, wait_from):
        slow = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                if int(self.path.strip("/").split(".")[0]) >= wait_from and not slow.free.is_set():
                    slow.free.wait(0.7)
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.free = threading.Event()
        socketserver.ThreadingTCPServer.daemon_threads = True
        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self.server.handle_error = lambda *_: None  # a client that was killed
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.base = f"http://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.free.set()
        self.server.shutdown()
        self.server.server_close()


def test_a_killed_run_is_not_gone_on_with_under_other_labels(weir, pictures, tmp_path):
    picture = sorted(pictures.rglob("*.jpg"))[0].read_bytes()
    with Slow(picture, wait_from=10) as slow:
        names = [f"{slow.base}/{i}.jpg" for i in range(20)]
        (tmp_path / "list").write_text("".join(name + "\n" for name in names))
        for name, label in (("one", 1), ("two", 2)):
            (tmp_path / f"{name}.csv").write_text("".join(f"{i}.jpg,{label}\n" for i in range(20)))
        command = [PROGRAM, "prepare", "--list", str(tmp_path / "list"), "--workers", "1", "--seed", "1", "-o", str(tmp_path / "set")]
        done = stopped([*command, "--labels", str(tmp_path / "one.csv")], tmp_path / "set")
        assert done > 0
        before = read_tree(tmp_path / "set")
        for other in (["--labels", str(tmp_path / "two.csv")], [], ["--labels", str(tmp_path / "one.csv"), "--sample", "5"]):
            said = weir.run(*command[1:], *other, status=2).stderr
            assert b"begun with other arguments" in said and (b"labels: " in said or b"sample: " in said), said
            assert read_tree(tmp_path / "set") == before
        slow.free.set()
        (tmp_path / "same.csv").write_bytes((tmp_path / "one.csv").read_bytes())  # the name of the file does not matter
        result = weir.json(*command[1:], "--labels", tmp_path / "same.csv")
        assert result["begun_at"] >= done and result["made_again"] == 0 and result["images"] == 20
        assert {line["label"] for line in lines(tmp_path / "set/manifest.jsonl")} == {1}
        assert b"labels: " in weir.run(*command[1:], "--labels", tmp_path / "two.csv", status=2).stderr


def test_what_is_done_again_is_told(weir, pictures, tmp_path):
    picture = sorted(pictures.rglob("*.jpg"))[0].read_bytes()
    with Slow(picture, wait_from=10) as slow:
        names = [f"{slow.base}/{i}.jpg" for i in range(20)]
        (tmp_path / "list").write_text("".join(name + "\n" for name in names))
        command = [PROGRAM, "prepare", "--list", str(tmp_path / "list"), "--workers", "1", "-o", str(tmp_path / "set")]
        done = stopped(command, tmp_path / "set")
        slow.free.set()
        (tmp_path / "list").write_text("".join(name + "\n" for name in names[1:]))
        result = weir.run(*command[1:])
        assert f"made again: {done} that were done before".encode() in result.stdout


def test_labels_and_pictures_that_do_not_meet_are_told(weir, pictures, tmp_path):
    names = [path.name for path in sorted(pictures.rglob("*.jpg"))]
    (tmp_path / "labels.csv").write_text("".join(f"{name},cat\n" for name in names[:37]) + "nobody.jpg,dog\n=1+1.jpg,dog\n\"two\nlines.jpg\",dog\n")
    command = ["prepare", pictures, "--labels", tmp_path / "labels.csv"]
    done = weir.run(*command, "-o", tmp_path / "set")
    assert f"pictures without a label: 3 ({', '.join('odd/' + name for name in names[37:])})".encode() in done.stdout or b"pictures without a label: 3 (" in done.stdout
    assert rb"labels that match no picture: 3 (nobody.jpg, =1+1.jpg, two\nlines.jpg)" in done.stdout, done.stdout
    result = weir.json(*command, "-o", tmp_path / "set")
    assert result["labels"] == {"labelled": 37, "unlabelled": 3, "unlabelled_examples": result["labels"]["unlabelled_examples"], "unused": 3,
                                "unused_examples": ["nobody.jpg", "=1+1.jpg", "two\nlines.jpg"]}
    assert {os.path.basename(name) for name in result["labels"]["unlabelled_examples"]} == set(names[37:])
    assert "labels" not in weir.json("prepare", pictures, "-o", tmp_path / "plain")


def test_the_rate_counts_accepted_pictures(weir, pictures, tmp_path):
    (tmp_path / "list").write_text("".join(f"{path}\n" for path in sorted(pictures.rglob("*.jpg"))) + f"{tmp_path}/missing.jpg\n" * 500)
    result = weir.json("prepare", "--list", tmp_path / "list", "--replicate", 100, "-o", tmp_path / "set")
    assert result["images"] == 100 and result["rejected"] == {"empty": 1, "missing": 500}
    assert abs(result["images_per_s"] * result["wall_s"] - 39) < 1e-6


def test_urls_are_the_network_and_not_the_disk(weir, pictures, tmp_path):
    picture = sorted(pictures.rglob("*.jpg"))[0].read_bytes()
    with Slow(picture, wait_from=100) as slow:
        (tmp_path / "list").write_text("".join(f"{slow.base}/{i}.jpg\n" for i in range(20)))
        result = weir.json("prepare", "--list", tmp_path / "list", "-o", tmp_path / "set")
        assert result["stages_s"]["network"] > 0 and result["stages_s"]["read"] == 0
        done = weir.run("prepare", "--list", tmp_path / "list", "-o", tmp_path / "again").stdout
        assert b"network" in done and b"disk read" not in done
    local = weir.json("prepare", pictures, "-o", tmp_path / "local")
    assert local["stages_s"]["network"] == 0 and local["stages_s"]["read"] > 0


def test_find_print0(weir, pictures, tmp_path):
    source = tmp_path / "in"
    for name in (b"plain.jpg", b"new\nline.jpg", b"tab\there.jpg", b"caf\xe9.jpg", b"back\\slash.jpg", b"\x1b[31mred.jpg"):
        os.makedirs(source, exist_ok=True)
        shutil.copy(sorted(pictures.rglob("*.jpg"))[0], os.path.join(os.fsencode(source), name))
    found = subprocess.run(["find", "in", "-type", "f", "-print0"], cwd=tmp_path, capture_output=True, check=True).stdout
    result = weir.json("prepare", "--list", "-", "-o", tmp_path / "set", input=found, cwd=tmp_path)
    assert result["images"] == 6 and result["rejected"] == {}
    wanted = {"in/plain.jpg", "in/new\nline.jpg", "in/tab\there.jpg", "in/caf\\xE9.jpg", "in/back\\\\slash.jpg", "in/\x1b[31mred.jpg"}
    assert {line["source"] for line in lines(tmp_path / "set/manifest.jsonl")} == wanted
    said = weir.run("prepare", "--list", "-", "-o", tmp_path / "other", input=b"a.jpg\0\0", status=2).stderr
    assert b"name 2 is empty" in said
    assert b"is empty" in weir.run("prepare", "--list", "/dev/zero", "-o", tmp_path / "other", status=2, timeout=60).stderr


def test_the_manifest_keeps_the_first_names(weir, pictures, tmp_path):
    weir.run("prepare", pictures, "--format", "tar", "-o", tmp_path / "first")
    weir.run("prepare", tmp_path / "first", "--labels", "folders", "-o", tmp_path / "second")
    first, second = lines(tmp_path / "first/manifest.jsonl"), lines(tmp_path / "second/manifest.jsonl")
    assert [line["source"] for line in first] == [line["source"] for line in second] and first[0]["source"].startswith("even/")
    assert json.loads((tmp_path / "second/set.json").read_text())["classes"] == ["even", "odd"]


def test_a_duplicate_names_its_twin(weir, pictures, tmp_path):
    weir.run("prepare", pictures, "--no-duplicates", "-o", tmp_path / "set")
    duplicate, = [line for line in lines(tmp_path / "set/rejects.jsonl") if line["reason"] == "duplicate"]
    twin, = [line for line in lines(tmp_path / "set/manifest.jsonl") if line["input"] == duplicate["twin_input"]]
    assert duplicate["twin"] == twin["source"] and twin["source"] in duplicate["detail"]
    assert (pictures / twin["source"]).read_bytes() == (pictures / duplicate["source"]).read_bytes()


def test_parts_have_the_names_of_the_document(weir, pictures, tmp_path):
    document = (pathlib.Path(__file__).parent.parent / "docs/prepare.md").read_text()
    assert "DIR/part-I-of-N" in document
    for part in (1, 2):
        weir.run("prepare", pictures, "--part", f"{part}/2", "-o", tmp_path / "parts")
    assert sorted(os.listdir(tmp_path / "parts")) == ["part-1-of-2", "part-2-of-2"]
    weir.run("prepare", "--join", tmp_path / "parts", "-o", tmp_path / "joined")
    weir.run("prepare", pictures, "-o", tmp_path / "whole")
    assert read_tree(tmp_path / "joined") == read_tree(tmp_path / "whole")


def test_another_version_of_a_set_is_a_clear_error(weir, pictures, tmp_path):
    weir.run("prepare", pictures, "-o", tmp_path / "set")
    text = (tmp_path / "set/set.json").read_text()
    for version, remedy in ((2, b"newer"), (0, b"prepare the set again")):
        (tmp_path / "set/set.json").write_text(text.replace('"weir_set": 1', f'"weir_set": {version}'))
        for command in (["prepare", tmp_path / "set", "-o", tmp_path / "x"], ["prepare", "--verify", tmp_path / "set"], ["prepare", pictures, "-o", tmp_path / "set"],
                        ["prepare", "--join", tmp_path / "set", "-o", tmp_path / "x"]):
            said = weir.run(*command, status=2).stderr
            assert b"version %d of a prepared set" % version in said and remedy in said, said


def test_names_that_are_not_utf_8_are_escaped_everywhere(weir, pictures, tmp_path):
    source = os.fsencode(tmp_path / "in")
    os.makedirs(source)
    photos = sorted(pictures.rglob("*.jpg"))
    shutil.copy(photos[0], os.path.join(source, b"\xff\xfe=1+1.jpg"))
    shutil.copy(photos[0], os.path.join(source, b"zz\xff.jpg"))
    with open(os.path.join(source, b"cut\x80.jpg"), "wb") as file:
        file.write(photos[1].read_bytes()[:-400])
    result = weir.json("prepare", os.fsdecode(source), "--no-duplicates", "--format", "tfrecord", "-o", tmp_path / "set")
    assert result["rejected"] == {"damaged": 1, "duplicate": 1}
    for name in ("manifest.jsonl", "rejects.jsonl"):
        (tmp_path / "set" / name).read_bytes().decode("utf-8")
    rejects = {line["reason"]: line for line in lines(tmp_path / "set/rejects.jsonl")}
    assert rejects["damaged"]["source"] == "cut\\x80.jpg" and rejects["duplicate"]["source"] == "\\xFF\\xFE=1+1.jpg"
    assert rejects["duplicate"]["twin"] == "zz\\xFF.jpg"
    assert lines(tmp_path / "set/manifest.jsonl")[0]["source"] == "zz\\xFF.jpg"


def test_what_could_block_is_an_error_or_a_reject(weir, pictures, tmp_path):
    source = tmp_path / "in"
    shutil.copytree(pictures / "even", source)
    os.mkfifo(source / "pipe.jpg")
    os.symlink("loop.jpg", source / "loop.jpg")
    os.symlink(".", source / "again")
    os.symlink("/dev/zero", source / "zero.jpg")
    result = weir.json("prepare", source, "-o", tmp_path / "set", timeout=120)
    assert result["rejected"] == {"empty": 1, "not-a-file": 2, "unreadable": 1} or result["rejected"] == {"not-a-file": 2, "unreadable": 1}
    os.mkfifo(tmp_path / "pipe.tar")
    assert b"not a regular file" in weir.run("prepare", tmp_path / "pipe.tar", "-o", tmp_path / "x", status=2, timeout=60).stderr


def test_two_runs_at_once_make_one_set(weir, pictures, tmp_path):
    weir.run("prepare", pictures, "-o", tmp_path / "wanted")
    wanted, chance = read_tree(tmp_path / "wanted"), random.Random(3)
    for _ in range(6):
        command = [PROGRAM, "prepare", str(pictures), "--workers", str(chance.randint(1, 3)), "-o", str(tmp_path / "set")]
        both = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for _ in range(3)]
        said = [process.communicate(timeout=120)[1] for process in both]
        assert 0 in [process.returncode for process in both], said
        for process, words in zip(both, said):
            assert process.returncode == 0 or b"another run" in words or b"not an empty folder" in words or b"finished" in words, words
        assert read_tree(tmp_path / "set") == wanted
        shutil.rmtree(tmp_path / "set")


def test_a_run_that_is_locked_out_leaves_the_other_alone(weir, pictures, tmp_path):
    picture = sorted(pictures.rglob("*.jpg"))[0].read_bytes()
    with Slow(picture, wait_from=10) as slow:
        (tmp_path / "list").write_text("".join(f"{slow.base}/{i}.jpg\n" for i in range(20)))
        command = [PROGRAM, "prepare", "--list", str(tmp_path / "list"), "--workers", "1", "-o", str(tmp_path / "set")]
        stopped(command, tmp_path / "set")
        before = read_tree(tmp_path / "set")
        with open(tmp_path / "set/.weir-prepare.jsonl", "rb") as journal:
            fcntl.flock(journal, fcntl.LOCK_EX)
            assert b"another run is writing" in weir.run(*command[1:], status=1).stderr
        assert read_tree(tmp_path / "set") == before
