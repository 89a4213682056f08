"""weir study: every trial accounted for, also after kill -9, and nothing that was launched outlives what launched it."""
import collections
import csv
import json
import os
import pathlib
import signal
import statistics
import subprocess
import time

import pytest

from conftest import PROGRAM

STUDY = """
study: small
model: {model}
data: {data}
factors:
  architecture: [in-process, microservice, distributed]
  protocol: [http, grpc]
  batch: [1, 8]
fixed: {{engine: "emulated:base=0ms,per_item=0.5ms", in_flight: 4, mode: async}}
network: {{rate_gbit_per_s: 5}}
repeats: {repeats}
trial: {{images: {images}}}
seed: 7
"""


def marked(owner):
    """The processes that process `owner` has started."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if f"WEIR_OWNER={owner}-".encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:
            pass
    return found


def links(owner):
    listed = json.loads(subprocess.run(["ip", "-j", "link"], capture_output=True, check=True).stdout)
    return [link["ifname"] for link in listed if link["ifname"].startswith(f"weir{owner:x}.")]


def containers(owner):
    try:
        listed = subprocess.run(["podman", "ps", "--all", f"--filter=name=weir-{owner}-", "--format={{.Names}}"], capture_output=True, text=True)
    except FileNotFoundError:
        return []
    return listed.stdout.split()


def gone(check, seconds=30):
    until = time.monotonic() + seconds
    while check():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def write(folder, made, repeats=2, images=60, text=STUDY):
    path = folder / "study.yaml"
    path.write_text(text.format(model=made[0], data=made[1], repeats=repeats, images=images))
    return path


def journal(folder):
    """The tries of trials, without the first line, which says what is studied."""
    return [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()[1:]]


@pytest.fixture(scope="module")
def played(weir, made, container_image, tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    result = weir.json("study", write(folder, made), "-o", folder / "out", "--image", container_image.name)
    return result, folder / "out"


@pytest.fixture(scope="module")
def here(played):
    """Why an architecture is not here, or None."""
    why = {}
    for entry in journal(played[1]):
        verdict = entry["record"]["verdict"]
        why.setdefault(entry["record"]["factors"]["architecture"], verdict.get("message") if verdict["verdict"] == "skipped" else None)
    return why


def test_every_configuration_is_played_or_says_why_not(played, here):
    result, folder = played
    assert len(result["configurations"]) == 2 + 4 + 4
    assert here["in-process"] is None
    assert here["microservice"] is None or "no container of" in here["microservice"]
    assert here["distributed"] is None or "a network " in here["distributed"]
    for one in result["configurations"]:
        trials = one["trials"]
        assert trials["failed"] == 0, one
        if here[one["factors"]["architecture"]]:
            continue
        assert trials["valid"] + trials["suspect"] == 2, one
        assert one["metrics"]["throughput_images_per_s"]["n"] == 2
        assert one["metrics"]["resources.app_cpu.mean"]["mean"] > 0
        assert one["metrics"]["resources.gpu_percent.mean"]["mean"] > 10
        if one["factors"]["architecture"] != "in-process":
            assert one["metrics"]["resources.recogniser_cpu.mean"]["mean"] > 0
    differ = [entry["record"]["metrics"].get("answers_differ") for entry in journal(folder) if entry["record"]["verdict"]["verdict"] in ("VALID", "SUSPECT")]
    assert differ and set(differ) == {0}


def test_a_block_holds_every_configuration_once_and_the_reference_three_times(played):
    result, folder = played
    blocks = collections.defaultdict(list)
    for entry in journal(folder):
        blocks[entry["block"]].append(entry)
    assert len(blocks) == 2
    for trials in blocks.values():
        assert sorted(trial["configuration"] for trial in trials if trial["role"] == "trial") == list(range(10))
        assert [trial["role"] for trial in sorted(trials, key=lambda t: t["position"]) if trial["role"] != "trial"] == \
            ["reference-start", "reference-middle", "reference-end"]


def test_the_report_says_what_the_rows_say(played):
    result, folder = played
    for name in ("report.html", "report.md", "report.json", "results.csv", "summary.csv", "study.yaml", "provenance.json"):
        assert (folder / name).stat().st_size > 0, name
    rows = list(csv.DictReader((folder / "results.csv").open(newline="")))
    assert len(rows) == 2 * (10 + 3)
    summary = {row["label"]: row for row in csv.DictReader((folder / "summary.csv").open(newline=""))}
    by_label = collections.defaultdict(list)
    for row in rows:
        if row["role"] == "trial" and row["verdict"] in ("VALID", "SUSPECT"):
            by_label[row["label"]].append(float(row["throughput_images_per_s"]))
    for label, values in by_label.items():
        assert float(summary[label]["throughput_images_per_s:mean"]) == pytest.approx(statistics.fmean(values), rel=1e-9)
        assert float(summary[label]["throughput_images_per_s:standard_error"]) == pytest.approx(statistics.stdev(values) / len(values) ** 0.5, rel=1e-9)
    html = (folder / "report.html").read_text()
    assert "<script" not in html and "http://" not in html.replace("http://www.w3.org", "").replace("http://127", "").replace("http://198", "")


def test_the_report_is_written_again_alone_and_beside_another(weir, played):
    result, folder = played
    (folder / "report.html").unlink()
    assert weir.json("report", folder)["configurations"] == result["configurations"]
    assert (folder / "report.html").exists()
    assert "compared" in weir.json("report", folder, folder)
    assert b"holds no study" in weir.run("report", folder.parent / "none", status=2).stderr


def test_a_finished_study_is_not_begun_again_but_resumed_without_a_trial(weir, made, container_image, played):
    _, folder = played
    before = (folder / "journal.jsonl").read_bytes()
    study = folder.parent / "study.yaml"
    assert b"--resume" in weir.run("study", study, "-o", folder, "--image", container_image.name, status=2).stderr
    weir.run("study", study, "-o", folder, "--image", container_image.name, "--resume")
    assert (folder / "journal.jsonl").read_bytes() == before
    study.write_text(study.read_text().replace("in_flight: 4", "in_flight: 5"))
    assert b"in_flight" in weir.run("study", study, "-o", folder, "--image", container_image.name, "--resume", status=2).stderr
    study.write_text(study.read_text().replace("in_flight: 5", "in_flight: 4"))


def test_a_dry_run_shows_the_trials_and_the_time_and_keeps_nothing(weir, made, container_image, tmp_path):
    result = weir.json("study", write(tmp_path, made, images=20), "--dry-run", "--image", container_image.name)
    assert len(result["configurations"]) == 10 and result["needed_s"] > 0
    assert sorted(os.listdir(tmp_path)) == ["study.yaml"]


def test_faults_of_the_file_are_named_with_their_line(weir, made, tmp_path):
    path = write(tmp_path, made, text=STUDY.replace("grpc]", "gprc]"))
    error = weir.run("study", path, "-o", tmp_path / "out", status=2).stderr
    assert b"line 7" in error and b"grpc" in error and not (tmp_path / "out").exists()


@pytest.mark.parametrize("launched, architecture", [(containers, "microservice"), (marked, "distributed")])
def test_a_study_that_is_killed_leaves_nothing_and_goes_on(weir, made, container_image, here, tmp_path, launched, architecture):
    if here[architecture]:
        pytest.skip(here[architecture])
    study = write(tmp_path, made, repeats=3, images=200, text=STUDY.replace("[in-process, microservice, distributed]", f"[{architecture}]"))
    out = tmp_path / "out"
    command = ["study", study, "-o", out, "--image", container_image.name]
    for attempt in range(2):
        running = subprocess.Popen([PROGRAM, *map(str, command), *(["--resume"] if attempt else [])], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   start_new_session=True)
        try:
            assert gone(lambda: not (launched(running.pid) and (out / "journal.jsonl").exists()) and running.poll() is None, 120), "it launched nothing"
            time.sleep(0.3 * (attempt + 1))
            assert running.poll() is None, "it ended before it was killed"
        finally:
            running.send_signal(signal.SIGKILL)
            running.wait()
        if not gone(lambda: containers(running.pid), 10):  # killed while podman was making one: the next start finds it
            weir.run("study", "/no-such-study", status=None)
        assert gone(lambda: marked(running.pid)), f"left running: {marked(running.pid)}"
        assert gone(lambda: links(running.pid)), f"left behind: {links(running.pid)}"
    result = weir.json(*command, "--resume")
    assert not containers(running.pid)
    ids = [entry["id"] for entry in journal(out) if entry["attempt"] == 1]
    assert len(ids) == len(set(ids)) == 3 * (len(result["configurations"]) + 3)
