"""weir probe storage through the program."""
import json
import os
import signal
import subprocess
import time

import conftest
import pytest

SMALL = ("--samples", 60, "--sample-bytes", 20000, "--batch", 2, "--step-ms", 2, "--steps", 30, "--repeats", 2, "--threads", 4, "--least-utilisation", 1)


def test_a_written_set_is_read_judged_and_removed(weir, tmp_path):
    result = weir.json("probe", "storage", tmp_path, *SMALL, "--accelerators", "1:2", status=None)
    assert result["accelerators"]["value"] == 2 and result["accelerators"]["more_may_be_fed"]
    assert result["open_us"]["count"] >= 2 * 29 * 2
    assert {run["accelerators"] for run in result["runs"]} <= {1, 2} and len(result["runs"]) >= 2
    assert result["set"]["samples"] == 60 and result["set"]["bytes"] == 60 * 20000
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("form", ["files", "tar", "tfrecord", "raw"])
@pytest.mark.parametrize("access", ["pool", "io_uring", "mmap"])
def test_every_form_is_read_as_it_was_written(weir, tmp_path, form, access):
    done = weir.run("probe", "storage", tmp_path, *SMALL, "--format", form, "--access", access, "--shard-mb", 1, "--ring-depth", 4, "--verify",
                    "--json", tmp_path / "result.json", status=None)
    if b"use --access pool" in done.stderr:
        pytest.skip(done.stderr.decode())
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["errors"] == 0 and result["set"]["samples"] == 60
    assert result["read_us"]["count"] >= 2 * 29
    # A shard stays open; a file of its own is opened for each read.
    assert (result["open_us"]["count"] >= 2 * 29) == (form == "files")
    assert set(result["stall_us"]) == {"queue", "open", "read", "close", "decode", "augment", "hosts"}
    assert [entry.name for entry in tmp_path.iterdir()] == ["result.json"]


def test_changed_bytes_are_found(weir, tmp_path):
    probe = subprocess.Popen([conftest.PROGRAM, "probe", "storage", tmp_path, "--samples", "20", "--sample-bytes", "20000", "--step-ms", "5",
                              "--steps", "2000", "--limit-s", "20", "--repeats", "1", "--verify", "--json", "-"], stdout=subprocess.PIPE)
    until = time.monotonic() + 20
    while len(files := [file for file in tmp_path.rglob("*") if file.is_file() and file.stat().st_size == 20000]) < 20:
        assert time.monotonic() < until and probe.poll() is None
        time.sleep(0.01)
    with open(files[7], "r+b") as file:
        file.seek(1000)
        file.write(bytes(64))
    result = json.loads(probe.communicate(timeout=60)[0])
    assert result["errors"] > 0 and files[7].name in result["first_errors"][0]
    assert "are not the ones that were written" in result["first_errors"][0]


def test_a_users_folder_is_only_read(weir, tmp_path):
    for i in range(10):
        (tmp_path / f"{i}.bin").write_bytes(os.urandom(5000))
    before = sorted((p.name, p.read_bytes()) for p in tmp_path.iterdir())
    result = weir.json("probe", "storage", tmp_path, "--set", tmp_path, "--batch", 2, "--step-ms", 1, "--steps", 30, "--repeats", 1, status=None)
    assert sorted((p.name, p.read_bytes()) for p in tmp_path.iterdir()) == before
    assert result["set"]["samples"] == 10


def test_holes_are_refused(weir, tmp_path):
    with open(tmp_path / "hole", "wb") as file:
        file.truncate(1 << 20)
    result = weir.json("probe", "storage", tmp_path, "--set", tmp_path, "--step-ms", 1, "--steps", 25, "--repeats", 1, status=None)
    reasons = {reason["reason"] for reason in result["reasons"]}
    assert "unwritten" in reasons
    if result["set"]["files_without_extents"] == 0:
        assert result["verdict"] == "INVALID" and result["set"]["unwritten_bytes"] == 1 << 20


def test_a_set_in_the_page_cache_is_reported(weir, tmp_path):
    (tmp_path / "a").write_bytes(os.urandom(1 << 20))
    with open(tmp_path / "a", "rb") as file:
        result = weir.json("probe", "storage", tmp_path, "--set", tmp_path, "--warm", "--step-ms", 1, "--steps", 25, "--repeats", 1, status=None)
        file.read(1)
    if "cached_share" in result:
        assert result["cached_share"] > 0.9


def test_memory_feeds_an_accelerator(weir, tmp_path):
    result = weir.json("probe", "storage", tmp_path, *SMALL, "--source", "memory", status=None)
    assert result["accelerators"]["value"] == 1
    assert "bytes_per_s" in result and result["set"]["unwritten_bytes"] == 0
    assert not list(tmp_path.iterdir())


@pytest.mark.long
def test_added_latency_shows_in_the_reads_but_not_in_the_ceiling(weir, tmp_path):
    result = weir.json("probe", "storage", tmp_path, *SMALL, "--add-latency", "20ms", status=None)
    assert result["read_us"]["p50"] >= 20000
    assert result["ceiling_samples_per_s"] > 1000
    assert result["utilisation_percent"] < 90 and result["bottleneck"]["stage"] in ("read", "queue")


def test_too_little_space_is_told_before_a_byte_is_written(weir, tmp_path):
    done = weir.run("probe", "storage", tmp_path, "--samples", 1000, "--sample-bytes", 1e12, status=None)
    assert done.returncode != 0 and b"--samples" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("arguments", [("--accelerators", "4:1"), ("--add-latency", "3h"), ("--profile", "abacus"), ("--direct", "--access", "mmap"),
                                       ("--format", "raw", "--sample-bytes", 1000, "--sample-deviation", 100), ("--verify", "--source", "memory"),
                                       ("--phase", "stream", "--access", "io_uring"), ("--phase", "mix", "--format", "tar")])
def test_bad_flags_are_refused(weir, tmp_path, arguments):
    weir.run("probe", "storage", tmp_path, *arguments, status=2)
    assert not list(tmp_path.iterdir())


def test_what_a_killed_run_left_is_removed_by_the_next(weir, tmp_path):
    with subprocess.Popen([conftest.PROGRAM, "probe", "storage", tmp_path, "--samples", "2000", "--sample-bytes", "50000", "--max-rate", "5"], stderr=subprocess.DEVNULL) as process:
        until = time.monotonic() + 30
        while not list(tmp_path.glob("*.set/d0000/*")) and time.monotonic() < until:
            time.sleep(0.02)
        live = weir.json("probe", "storage", tmp_path, *SMALL, status=None)
        assert live["set"]["samples"] == 60
        assert len(list(tmp_path.glob("*.set"))) == 1, "a live set was taken for an orphan"
        process.send_signal(signal.SIGKILL)
    assert list(tmp_path.glob("*.set"))
    weir.json("probe", "storage", tmp_path, *SMALL, status=None)
    assert not list(tmp_path.iterdir())


FEW = ("--samples", 40, "--sample-bytes", 20000, "--threads", 4, "--repeats", 1, "--limit-s", 0.5)


def test_streams_of_frames_are_answered(weir, tmp_path):
    result = weir.json("probe", "storage", tmp_path, *FEW, "--phase", "infer", "--streams", 4, "--frame-rate", 50, "--record-bytes", 4096, status=None)
    frames = result["frames"]
    assert frames["planned"] == frames["answered"] == 100 and frames["response_us"]["count"] == 100
    assert result["errors"] == 0 and not list(tmp_path.iterdir())


def test_an_added_second_makes_frames_late(weir, tmp_path):
    result = weir.json("probe", "storage", tmp_path, *FEW, "--phase", "infer", "--streams", 1, "--frame-rate", 10, "--add-latency", "300ms", status=None)
    assert result["frames"]["in_time"] == 0 and result["bottleneck"]["stage"] == "read"


def test_files_are_streamed(weir, tmp_path):
    result = weir.json("probe", "storage", tmp_path, *FEW, "--phase", "stream", "--block-bytes", 8192, status=None)
    assert result["bytes_per_s"] > 0 and result["read_us"]["count"] > result["open_us"]["count"]


def test_phases_at_once_are_compared_with_each_alone(weir, tmp_path):
    result = weir.json("probe", "storage", tmp_path, *FEW, "--phase", "mix", "--step-ms", 2, "--steps", 30, status=None)
    assert set(result["together_over_alone"]) == {"train_samples_per_s", "stream_bytes_per_s", "infer_p99_response"}


def test_phases_refuse_flags_that_they_do_not_have(weir, tmp_path):
    weir.run("probe", "storage", tmp_path, "--phase", "stream", "--access", "mmap", status=2)
    weir.run("probe", "storage", tmp_path, "--phase", "mix", "--add-latency", "1ms", status=2)
    weir.run("probe", "network", status=2)


def test_the_host_is_measured(weir):
    result = weir.json("probe", "host", "--budget-ms", 20, "--threads", 1)
    assert result["multiply_adds_per_s"]["f32"]["one_thread"] > 1e6
    assert result["loopback_us"]["p99"] >= result["loopback_us"]["p50"] > 0


def test_added_storages_are_compared_with_their_share(weir, tmp_path):
    for name in "ab":
        (tmp_path / name).mkdir()
    result = weir.json("probe", "storage", tmp_path / "a", tmp_path / "b", *SMALL, "--limit-s", 0.3, status=None)
    first, second = result["units"]
    assert first["path"].endswith("a") and "share" not in first and first["samples_per_s"]["value"] > 0
    assert second["path"].endswith("b") and second["share"]["low"] <= second["share"]["value"] <= second["share"]["high"]
    assert result["set"]["samples"] == 120 and not list(tmp_path.glob("*/*"))
    weir.run("probe", "storage", tmp_path / "a", tmp_path / "a", *SMALL, status=2)


def test_latency_is_answered_with_the_reads_in_flight(weir, tmp_path):
    result = weir.json("probe", "storage", tmp_path, "--samples", 60, "--sample-bytes", 20000, "--batch", 2, "--step-ms", 10, "--steps", 25, "--repeats", 1,
                       "--threads", 4, "--limit-s", 0.4, "--add-latency", "8ms", status=None)
    latency = result["latency"]
    assert latency["added_us"] == 8000 and latency["levels"][0]["reads_in_flight"] == 1
    # 2 samples in 10 ms: one read of 8 ms in flight is too few, eight are enough.
    assert latency["levels"][0]["kept"]["value"] < 0.95
    assert 2 <= latency["reads_in_flight_enough"] <= 64


def test_all_phases_stand_side_by_side_in_the_report(weir, tmp_path):
    (tmp_path / "pool").mkdir()
    result = weir.json("probe", "storage", tmp_path / "pool", "--phase", "all", "--samples", 30, "--decode", "--decode-size", 64, "--step-ms", 5, "--steps", 25,
                       "--repeats", 1, "--threads", 2, "--limit-s", 1, "--html", tmp_path / "report.html", status=None)
    etl, train, infer = result["phases"]
    assert (etl["phase"], train["phase"], infer["phase"]) == ("etl", "train", "infer")
    assert etl["runs"][0]["images"] == 30 and etl["runs"][0]["bytes_out"] > 0 and etl["errors"] == 0
    assert train["decoded"] and train["decode_us"]["count"] >= 20 and train["stall_us"]["decode"]["count"] >= 0
    assert infer["frames"]["answered"] > 0
    page = (tmp_path / "report.html").read_text()
    assert all(word in page for word in ("Preparation", "Training", "Inference", "side by side"))
    assert not list((tmp_path / "pool").iterdir())


def test_pictures_that_are_none_are_named_when_they_are_decoded(weir, tmp_path):
    (tmp_path / "a.jpg").write_bytes(b"no picture" * 100)
    result = weir.json("probe", "storage", tmp_path, "--set", tmp_path, "--decode", "--step-ms", 1, "--steps", 25, "--repeats", 1, status=None)
    assert result["verdict"] == "INVALID" and "a.jpg" in result["first_errors"][0]


def test_the_demand_is_that_of_the_users_model(weir, made, tmp_path):
    result = weir.json("probe", "storage", tmp_path, "--profile-from", made[0], "--engine", "emulated:base=20ms", "--batch", 4, "--samples", 40,
                       "--sample-bytes", 5000, "--steps", 25, "--repeats", 1, status=None)
    assert result["profile"] == "model" and result["batch"] == 4
    assert 20 <= result["step_ms"] < 40 and abs(result["demand_samples_per_s"] - 4000 / result["step_ms"]) < 1


def test_records_of_large_files_are_read_in_any_order(weir, tmp_path):
    (tmp_path / "large").write_bytes(os.urandom(1 << 20))
    result = weir.json("probe", "storage", tmp_path, "--set", tmp_path, "--record-bytes", 4096, "--batch", 64, "--step-ms", 0, "--steps", 40, "--repeats", 1, status=None)
    assert result["errors"] == 0 and result["open_us"]["count"] <= 16
    assert result["read_us"]["count"] >= 39 * 64 and "utilisation_percent" not in result
    weir.run("probe", "storage", tmp_path, "--set", tmp_path, "--record-bytes", 1 << 21, status=2)


def test_bytes_and_free_space_are_printed_before_the_first_write(weir, tmp_path):
    done = weir.run("probe", "storage", tmp_path, *SMALL, status=None)
    assert b"writes 1.4" in done.stderr and b"free; removed at the end" in done.stderr


@pytest.mark.timing
def test_the_rate_of_writing_holds(weir, tmp_path):
    begin = time.monotonic()
    with subprocess.Popen([conftest.PROGRAM, "probe", "storage", tmp_path, "--samples", "200", "--sample-bytes", "100000", "--max-rate", "5"], stderr=subprocess.DEVNULL) as process:
        time.sleep(1.5)
        written = sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file())
        elapsed = time.monotonic() - begin
        process.kill()
    assert written <= 5e6 * elapsed * 1.02 + 1e6


def test_a_named_card_takes_its_published_step(weir, tmp_path):
    memory = ("--source", "memory", "--samples", 40, "--sample-bytes", 1000, "--steps", 4, "--repeats", 1, "--threads", 2)
    done = weir.run("probe", "storage", tmp_path, *memory, "--profile", "resnet50", "--accelerators", "1:2xH100", "--batch", 4, "--json", tmp_path / "r.json", status=None)
    assert b"a step of resnet50-h100 takes 224 ms for 400 samples (MLPerf Storage v2)" in done.stderr
    assert json.loads((tmp_path / "r.json").read_text())["step_ms"] == pytest.approx(2.24)
    for flags, words in ((["--profile", "resnet50", "--accelerators", "2xb200"], "there are a100, h100"), (["--accelerators", "2xh100"], "--profile resnet50"),
                         (["--profile", "resnet50-a100", "--accelerators", "h100"], "of another card"), (["--accelerators", "8x"], "8xh100")):
        assert words in weir.run("probe", "storage", tmp_path, *memory, *flags, status=2).stderr.decode()


def test_the_table_of_published_steps_is_the_programs(weir, tmp_path):
    page = (conftest.ROOT / "docs/how-to/probe.md").read_text()
    rows = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in page.splitlines() if line.endswith("| MLPerf Storage v2 |") or line.endswith("| MLPerf Storage v3 |")]
    refused = weir.run("probe", "storage", tmp_path, "--profile", "none-x", status=2).stderr.decode()
    assert [row[0] for row in rows] == refused.split("there are ")[1].strip().rstrip(".").split(", ")
    for name, samples, step, *_, source in rows:
        workload, card = name.rsplit("-", 1)
        done = weir.run("probe", "storage", tmp_path, "--source", "memory", "--samples", 2, "--sample-bytes", 100, "--batch", 1, "--steps", 2, "--repeats", 1,
                        "--profile", workload, "--accelerators", card, status=None)
        assert f"a step of {name} takes {step} ms for {samples} samples ({source})" in done.stderr.decode()
