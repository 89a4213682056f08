"""weir probe storage on a storage that fails: each fault is named, nothing hangs beyond its timeout, the rest is measured."""
import json
import math
import os
import time

import fault_fs
import pytest

RUN = {"--batch": 2, "--step-ms": 1, "--steps": 25, "--repeats": 1, "--threads": 4, "--least-utilisation": 1, "--limit-s": 10}
FILES, BYTES = 20, 20000


@pytest.fixture(scope="session")
def faultfs(tmp_path_factory):
    return fault_fs.build(tmp_path_factory.mktemp("faultfs"))


@pytest.fixture
def pictures(tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    for i in range(FILES):
        (folder / f"f{i:02}.bin").write_bytes(os.urandom(BYTES))
    return folder


def flags(*more):
    """Returns RUN with the flags given, each of which has a value."""
    return [word for flag in (RUN | dict(zip(more[::2], more[1::2]))).items() for word in flag]


def probe(weir, mount, *more):
    return weir.json("probe", "storage", mount, "--set", mount, *flags(*more), status=None)


FAULTS = [("eio=f07", "Input/output error"), ("short=f07", "10000 bytes read of 20000"), ("vanish=f07", "No such file")]


@pytest.mark.parametrize("access", ["pool", "io_uring"])
@pytest.mark.parametrize("rule, words", FAULTS, ids=["eio", "short", "vanished"])
def test_a_fault_is_named_and_the_rest_is_measured(weir, faultfs, pictures, tmp_path, rule, words, access):
    with fault_fs.mounted(faultfs, pictures, tmp_path / "mount", rule) as mount:
        result = probe(weir, mount, "--access", access)
    assert result["verdict"] == "INVALID" and "errors" in {reason["reason"] for reason in result["reasons"]}
    assert result["errors"] >= 2 and all("f07.bin" in error and words in error for error in result["first_errors"])
    assert result["read_us"]["count"] >= 40 and result["runs"][0]["steps"] == 25


@pytest.mark.parametrize("phase", ["train", "infer", "stream"])
def test_a_read_that_hangs_is_named_within_its_timeout(weir, faultfs, pictures, tmp_path, phase):
    with fault_fs.mounted(faultfs, pictures, tmp_path / "mount", "hang=f07") as mount:
        begin = time.monotonic()
        result = probe(weir, mount, "--timeout-s", 1, "--phase", phase, "--limit-s", 2, "--streams", 2)
        took = time.monotonic() - begin
    assert any("f07.bin" in name for name in result["hung"]) and "hung" in {reason["reason"] for reason in result["reasons"]}
    assert result["verdict"] == "INVALID" and result["read_us"]["count"] > 15
    assert took < 30


def test_a_hung_original_does_not_stop_the_preparation(weir, faultfs, made, tmp_path):
    with fault_fs.mounted(faultfs, made[1], tmp_path / "mount", "hang=000003") as mount:
        (tmp_path / "out").mkdir()
        result = weir.json("probe", "storage", tmp_path / "out", "--set", mount, "--phase", "etl", "--repeats", 1, "--timeout-s", 1, "--threads", 2, status=None)
    assert any("000003" in name for name in result["hung"]) and result["verdict"] == "INVALID"
    assert result["runs"][0]["rejected"] >= 1 and result["runs"][0]["images"] > 1
    assert not list((tmp_path / "out").iterdir())


def test_a_full_disk_is_named_and_nothing_stays(weir, faultfs, tmp_path):
    (tmp_path / "files").mkdir()
    with fault_fs.mounted(faultfs, tmp_path / "files", tmp_path / "mount", "enospc=100000") as mount:
        done = weir.run("probe", "storage", mount, "--samples", 50, "--sample-bytes", 10000, *flags(), status=1)
        assert b"No space left on device" in done.stderr and b"weir-probe." in done.stderr
        assert not list(mount.iterdir())


def test_a_write_that_hangs_is_named_within_its_timeout(weir, faultfs, made, tmp_path):
    """Of the set and of the preparation; what cannot be removed then is removed by the next probe."""
    (tmp_path / "files").mkdir()
    with fault_fs.mounted(faultfs, tmp_path / "files", tmp_path / "mount", "stuck=s0000000") as mount:
        begin = time.monotonic()
        done = weir.run("probe", "storage", mount, "--samples", 5, "--sample-bytes", 10000, "--timeout-s", 1, *flags(), status=None)
        assert time.monotonic() - begin < 10
        assert done.returncode not in (0, 3) and b"a write did not end within 1 s" in done.stderr
    weir.run("probe", "storage", tmp_path / "files", "--samples", 5, "--sample-bytes", 10000, *flags(), status=None)
    assert not list((tmp_path / "files").iterdir())
    with fault_fs.mounted(faultfs, tmp_path / "files", tmp_path / "mount", "stuck=p0000") as mount:
        begin = time.monotonic()
        result = weir.json("probe", "storage", mount, "--set", made[1], "--phase", "etl", "--repeats", 1, "--timeout-s", 1, "--threads", 2, status=3)
        assert time.monotonic() - begin < 15
    assert result["verdict"] == "INVALID" and any(reason["reason"] == "hung" and "p0000" in reason["evidence"] for reason in result["reasons"])


@pytest.mark.timing
def test_a_stall_of_a_second_is_visible(weir, faultfs, pictures, tmp_path):
    with fault_fs.mounted(faultfs, pictures, tmp_path / "mount", "stall=30:1000") as mount:
        result = probe(weir, mount, "--step-ms", 20)
    assert 1e6 <= result["read_us"]["max"] < 1.2e6 and result["read_us"]["p50"] < 1e5
    assert 0.8e6 <= result["stall_us"]["read"]["max"] < 1.2e6 and result["stall_s"]["read"] > 0.8
    assert result["bottleneck"]["stage"] == "read"


@pytest.mark.timing
def test_percentiles_of_a_disk_of_known_latencies_are_within_one_percent(weir, faultfs, pictures, tmp_path):
    mean_us, steps = 100_000, 250
    with fault_fs.mounted(faultfs, pictures, tmp_path / "mount", f"exp={mean_us}") as mount:
        result = probe(weir, mount, "--steps", steps, "--threads", 16, "--depth", 8, "--batch", 4, "--limit-s", 30, "--timeout-s", 5)
    # Reads in flight at the end of the run are missing, so quantiles beyond the 90th of 1,000 are not compared.
    for name, p in (("p50", 0.5), ("p90", 0.9)):
        wanted = -mean_us * math.log(1 - p)
        assert abs(result["read_us"][name] / wanted - 1) < 0.01 + 300 / wanted, (name, result["read_us"], wanted)


def test_the_result_of_a_failing_disk_is_json(weir, faultfs, pictures, tmp_path):
    with fault_fs.mounted(faultfs, pictures, tmp_path / "mount", "eio=f") as mount:
        out = tmp_path / "result.json"
        weir.run("probe", "storage", mount, "--set", mount, *flags(), "--json", out, "--html", tmp_path / "r.html", status=3)
    assert json.loads(out.read_text())["errors"] > 0 and "Input/output error" in (tmp_path / "r.html").read_text()
