"""weir feed --bench through the built program."""
import json
import shutil
import signal
import subprocess
import time

import conftest
import pytest

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
