"""weir feed --bench through the built program."""
import functools
import http.server
import json
import os
import shutil
import signal
import subprocess
import threading
import time

import conftest
import pytest
from s3_server import S3Server

SMALL = ("--width", 32, "--height", 24, "--batch", 8, "--seed", 5)


def feed(weir, folder, *more, **kwargs):
    return weir.json("feed", folder, "--bench", *SMALL, *more, **kwargs)


@pytest.fixture(scope="module")
def pictures(weir, tmp_path_factory):
    """60 made pictures in every format of a prepared set."""
    folder = tmp_path_factory.mktemp("feed")
    weir.run("prepare", "--make", 60, "--seed", 3, "-o", folder / "files")
    recipe = folder / "recipe.yaml"
    recipe.write_text("resize: {width: 48, height: 40}\n")
    sets = {"files": folder / "files"}
    for name in ("tar", "tfrecord"):
        sets[name] = folder / name
        weir.run("prepare", folder / "files", "--format", name, "-o", folder / name, "--shard-bytes", 200_000)
    sets["raw"] = folder / "raw"
    weir.run("prepare", folder / "files", "--format", "raw", "--recipe", recipe, "-o", folder / "raw")
    return sets


def test_the_figures_of_a_feed(weir, pictures):
    result = feed(weir, pictures["tar"], "--duration", 0.5, "--step", "2ms", "--threads", 2)
    assert result["images"] == 60 and result["classes"] > 1
    assert result["samples"] == 8 * result["batches"] > 0
    assert result["samples_per_s"] == pytest.approx(result["samples"] / result["wall_s"])
    assert result["cpu_us_per_sample"] > 0
    assert result["stages_ms"]["decode"] > 0 and result["stages_ms"]["read"] > 0
    assert result["trainer"]["step_ms"] == pytest.approx(2)
    assert result["bottleneck"]["stage"] in ("trainer", "read", "decode", "augment")
    assert result["verdict"] in ("VALID", "SUSPECT", "INVALID")
    assert abs(result["mixing"]["serial_correlation"]) < 0.5


def test_the_pixels_do_not_depend_on_threads_prefetch_or_format(weir, pictures):
    expected = feed(weir, pictures["files"], "--epochs", 3, "--hash", "--threads", 1)["epoch_hashes"]
    assert len(set(expected)) == 3
    for name, threads, prefetch in (("files", 7, 8), ("tar", 2, 1), ("tfrecord", 2, 8)):
        assert feed(weir, pictures[name], "--epochs", 3, "--hash", "--threads", threads, "--prefetch", prefetch)["epoch_hashes"] == expected
    raw = [feed(weir, pictures["raw"], "--epochs", 2, "--hash", "--threads", threads)["epoch_hashes"] for threads in (1, 3)]
    assert raw[0] == raw[1] != expected[:2]


def test_a_folder_by_classes_with_an_index(weir, pictures, tmp_path):
    for number, picture in enumerate(sorted((pictures["files"] / "pictures").rglob("*.jpg"))):
        target = tmp_path / "set" / f"class {number % 3}" / picture.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(picture, target)
    first, again = (feed(weir, tmp_path / "set", "--epochs", 1, "--hash", "--index", tmp_path / "index") for _ in range(2))
    assert first["classes"] == 3 and first["images"] == 60
    assert first["epoch_hashes"] == again["epoch_hashes"]


def test_a_state_goes_on_where_the_last_run_ended(weir, pictures, tmp_path):
    everything = feed(weir, pictures["tar"], "--epochs", 3, "--hash")["epoch_hashes"]
    state = tmp_path / "state.json"
    feed(weir, pictures["tar"], "--epochs", 1, "--state", state)
    assert len(state.read_bytes()) < 1024
    assert feed(weir, pictures["tar"], "--epochs", 2, "--hash", "--state", state, "--threads", 3)["epoch_hashes"] == everything[1:]
    refused = weir.run("feed", pictures["files"], "--bench", "--state", state, *SMALL[:-1], 6, status=2)
    assert b"state" in refused.stderr


def test_bad_pictures_are_replaced_skipped_or_stop_the_feed(weir, pictures, tmp_path):
    folder = tmp_path / "set"
    shutil.copytree(pictures["files"] / "pictures", folder)
    victim = sorted(folder.rglob("*.jpg"))[7]
    victim.write_bytes(victim.read_bytes()[:300])
    replaced = feed(weir, folder, "--epochs", 1, "--ends", "pad")
    assert replaced["samples"] == 60 and replaced["rejected"]["damaged"] >= 1
    assert replaced["rejected_examples"][0]["name"].endswith(victim.name)
    skipped = feed(weir, folder, "--epochs", 1, "--ends", "pad", "--bad", "skip")
    assert skipped["samples"] == 59 and skipped["rejected"] == {"damaged": 1}
    feed(weir, folder, "--epochs", 1, "--ends", "pad", "--bad", "skip", "--strict", status=1)
    stopped = weir.run("feed", folder, "--bench", *SMALL, "--epochs", 1, "--ends", "pad", "--bad", "stop", status=2)
    assert victim.name.encode() in stopped.stderr
    for picture in folder.rglob("*.jpg"):
        picture.write_bytes(b"\xff\xd8\xff")
    for policy, words in (("replace", b"are bad as well"), ("skip", b"no sample of the epoch could be used")):
        assert words in weir.run("feed", folder, "--bench", *SMALL, "--epochs", 2, "--bad", policy, status=2, timeout=60).stderr


def test_wrong_sets_and_flags_are_named(weir, pictures, tmp_path):
    def refusal(*arguments):
        return weir.run("feed", *arguments, status=2).stderr.decode()

    assert "--bench" in refusal(pictures["tar"])
    assert "No such file" in refusal(tmp_path / "none", "--bench")
    (tmp_path / "empty").mkdir()
    assert "holds no pictures" in refusal(tmp_path / "empty", "--bench")
    assert "pad or wrap" in refusal(pictures["tar"], "--bench", "--batch", 61)
    assert "rank 2" in refusal(pictures["tar"], "--bench", "--rank", 2, "--world", 2, "--batch", 2)
    assert "no time of a step" in refusal(pictures["tar"], "--bench", "--step", "fast")
    assert "48x40" in refusal(pictures["raw"], "--bench", "--crop", "none", "--batch", 8)
    archive = sorted((pictures["tar"] / "shards").iterdir())[0]
    assert f"weir prepare {archive} --format tar" in refusal(archive, "--bench")
    broken = tmp_path / "broken"
    shutil.copytree(pictures["tfrecord"], broken)
    shard = sorted((broken / "shards").iterdir())[-1]
    shard.write_bytes(shard.read_bytes()[:-2000])
    assert "is cut" in refusal(broken, "--bench", "--batch", 8)
    (broken / "index.bin").write_bytes((broken / "index.bin").read_bytes()[:-32])
    assert "another set" in refusal(broken, "--bench", "--batch", 8)


def test_a_replaced_record_is_found(weir, pictures, tmp_path):
    folder = tmp_path / "set"
    shutil.copytree(pictures["tar"], folder)
    shard = sorted((folder / "shards").iterdir())[0]
    content = bytearray(shard.read_bytes())
    content[1000] ^= 1  # in the first picture's bytes
    shard.write_bytes(content)
    result = feed(weir, folder, "--epochs", 1, "--ends", "pad", "--bad", "skip")
    assert result["rejected"] == {"damaged": 1} and "replaced or damaged" in result["rejected_examples"][0]["detail"]


def test_ctrl_c_keeps_the_state(weir, pictures, tmp_path):
    state = tmp_path / "state.json"
    command = [conftest.PROGRAM, "feed", pictures["tar"], "--bench", *SMALL, "--duration", "600", "--step", "20ms", "--state", state, "--json", tmp_path / "out.json"]
    with subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 130
    assert json.loads(state.read_text())["position"] >= 0
    assert json.loads((tmp_path / "out.json").read_text())["interrupted"] is True


@pytest.fixture
def store(tmp_path):
    with S3Server() as server:
        environment = {**{k: v for k, v in os.environ.items() if not k.startswith("AWS_")}, **server.environment(tmp_path / "cache")}
        yield server, environment


def test_sets_in_a_store_give_the_same_pixels(weir, pictures, store, tmp_path):
    server, environment = store
    expected = feed(weir, pictures["files"], "--epochs", 2, "--hash")["epoch_hashes"]
    for name in ("files", "tar", "tfrecord"):
        server.put_folder("bucket", f"{name}/", pictures[name])
        result = feed(weir, f"s3://bucket/{name}", "--epochs", 2, "--hash", "--threads", 2, env=environment)
        assert result["epoch_hashes"] == expected and result["images"] == 60
    server.put_folder("bucket", "raw/", pictures["raw"])
    assert feed(weir, "s3://bucket/raw/", "--epochs", 1, "--hash", env=environment)["epoch_hashes"] == feed(weir, pictures["raw"], "--epochs", 1, "--hash")["epoch_hashes"]
    # A cache in a folder reads each object once, also over two runs.
    cache = ("--cache-bytes", 1 << 30, "--cache-folder", tmp_path / "kept", "--ends", "pad")
    first = feed(weir, "s3://bucket/tar", "--epochs", 2, *cache, env=environment)
    again = feed(weir, "s3://bucket/tar", "--epochs", 1, *cache, env=environment)
    assert first["bytes_read"] > 0 and again["bytes_read"] == 0


def test_a_store_by_classes_is_a_folder_by_classes(weir, pictures, store, tmp_path):
    server, environment = store
    folder = tmp_path / "set"
    for number, picture in enumerate(sorted((pictures["files"] / "pictures").rglob("*.jpg"))):
        target = folder / f"class {number % 3}" / ("deep" if number % 2 else "") / picture.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(picture, target)
    server.put_folder("bucket", "photos/", folder)
    local, remote = feed(weir, folder, "--epochs", 1, "--hash"), feed(weir, "s3://bucket/photos", "--epochs", 1, "--hash", env=environment)
    assert local["epoch_hashes"] == remote["epoch_hashes"] and remote["classes"] == 3
    assert b"no object is there" in weir.run("feed", "s3://bucket/none", "--bench", status=2, env=environment).stderr


def test_a_set_on_a_web_server(weir, pictures):
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=pictures["files"])) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        assert feed(weir, url, "--epochs", 1, "--hash")["epoch_hashes"] == feed(weir, pictures["files"], "--epochs", 1, "--hash")["epoch_hashes"]
        assert b"give a prepared set" in weir.run("feed", url + "/pictures", "--bench", status=2).stderr
        server.shutdown()


def test_a_store_that_fails_ends_the_feed_under_any_policy(weir, pictures, store):
    server, environment = store
    server.put_folder("bucket", "files/", pictures["files"])
    server.fault = lambda number, method, path: "503" if path.endswith(".jpg") else None
    for policy in ("replace", "skip"):
        done = weir.run("feed", "s3://bucket/files", "--bench", *SMALL, "--epochs", 1, "--bad", policy, status=1, env=environment | {"AWS_MAX_ATTEMPTS": "2"}, timeout=60)
        assert b"unreachable" in done.stderr and b".jpg" in done.stderr


def test_reads_ahead_of_files_give_the_same(weir, pictures):
    for name in ("files", "tar", "raw"):
        plain, ahead = (feed(weir, pictures[name], "--epochs", 2, "--hash", "--reads", reads) for reads in (0, 32))
        assert plain["epoch_hashes"] == ahead["epoch_hashes"]


def test_small_and_odd_sets_have_a_defined_end(weir, pictures, tmp_path):
    one = tmp_path / "one"
    one.mkdir()
    shutil.copy(next((pictures["files"] / "pictures").rglob("*.jpg")), one / "a.jpg")
    for world in (1, 4):
        result = feed(weir, one, "--epochs", 1, "--ends", "wrap", "--world", world, "--rank", world - 1)
        assert result["samples"] == 8
    padded = weir.json("feed", one, "--bench", "--batch", 1, "--epochs", 1, "--ends", "pad", "--world", 4, "--rank", 3)
    assert padded["samples"] == 0
    assert b"pad or wrap" in weir.run("feed", one, "--bench", "--world", 4, "--batch", 1, status=2).stderr
    state = tmp_path / "state.json"
    feed(weir, pictures["tar"], "--epochs", 1, "--state", state)
    newer = json.loads(state.read_text()) | {"weir_feed_state": 2}
    state.write_text(json.dumps(newer))
    assert b"of version 2" in weir.run("feed", pictures["tar"], "--bench", *SMALL, "--state", state, status=2).stderr
