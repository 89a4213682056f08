"""weir study as somebody new to it meets it: files beside the study, what this machine cannot do, a journal that somebody has damaged."""
import json
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.request

import pytest

from conftest import PROGRAM
from test_study import journal

STUDY = """
study: first
model: models/tiny
data: pictures
factors: {{architecture: [{architectures}], batch: [1, 8]}}
fixed: {{engine: "emulated:base=0ms,per_item=0ms", in_flight: 4}}
repeats: 1
trial: {{images: 40}}
"""


@pytest.fixture
def place(made, tmp_path):
    """A folder with a model and pictures, and a study that names both from there."""
    folder = tmp_path / "place"
    (folder / "models").mkdir(parents=True)
    shutil.copytree(made[0], folder / "models/tiny")
    shutil.copytree(made[1], folder / "pictures")

    def write(architectures="in-process"):
        (folder / "study.yaml").write_text(STUDY.format(architectures=architectures))
        return folder / "study.yaml"

    return write


def verdicts(folder):
    return [entry["record"]["verdict"]["verdict"] for entry in journal(folder)]


def test_model_and_data_are_found_beside_the_study_file(weir, place, tmp_path):
    study, out = place(), tmp_path / "out"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    weir.run("study", "--no-replay", study, "-o", out, cwd=elsewhere, status=None)
    assert "failed" not in verdicts(out) and "skipped" not in verdicts(out)
    resolved = json.loads((out / "provenance.json").read_text())["resolved"]
    assert resolved == {"models": {"models/tiny": str(study.parent / "models/tiny")}, "data": str(study.parent / "pictures")}
    assert json.loads((out / "journal.jsonl").read_text().splitlines()[0])["provenance"]["resolved"] == resolved
    # The same files by another way are the same study.
    before = (out / "journal.jsonl").read_bytes()
    weir.run("study", "--no-replay", "study.yaml", "-o", out, "--resume", cwd=study.parent, status=None)
    assert (out / "journal.jsonl").read_bytes() == before


def test_what_is_in_neither_place_is_named_with_both(weir, place, tmp_path):
    study = place()
    shutil.rmtree(study.parent / "models")
    said = weir.run("study", "--no-replay", study, "-o", tmp_path / "out", cwd=tmp_path, status=2).stderr.decode()
    assert f"models/tiny is neither beside the study file ({study.parent}) nor in the working folder ({tmp_path})" in said
    assert not (tmp_path / "out/journal.jsonl").exists()


def test_what_this_machine_cannot_do_is_said_once_before_the_first_trial(weir, place, tmp_path):
    study, out = place("in-process, microservice"), tmp_path / "out"
    done = weir.run("study", "--no-replay", study, "-o", out, "--image", "localhost/no-such-image", status=None)
    said = done.stderr.decode()
    why = "no container of localhost/no-such-image can be started here"
    assert said.count(why) == 1
    told, after = said.split(why)
    assert "2 of 4 configurations cannot be played here" in told
    assert "trials" not in told, "it is said before the first trial"
    assert "tools/container.sh" in after and "--resume" in after
    assert verdicts(out).count("skipped") == 2
    before = (out / "journal.jsonl").read_bytes()
    again = weir.run("study", "--no-replay", study, "-o", out, "--image", "localhost/no-such-image", "--resume", status=None).stderr.decode()
    assert again.count(why) == 1
    assert (out / "journal.jsonl").read_bytes() == before, "nothing new is known of them"
    tried = weir.run("study", "--no-replay", study, "-o", out, "--image", "localhost/another", "--resume", status=None).stderr.decode()
    assert "no container of localhost/another" in tried, "they are tried again"
    assert verdicts(out).count("skipped") == 4 and len(journal(out)) == len(before.splitlines()) - 1 + 2
    shown = weir.run("study", "--no-replay", study, "--dry-run", "--image", "localhost/no-such-image", status=None).stderr.decode()
    assert shown.count(why) == 1


def test_a_page_shows_the_study_while_it_runs(place, tmp_path):
    command = [PROGRAM, "study", "--no-replay", str(place()), "-o", str(tmp_path / "out"), "--live", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as running:
        url = next(line.split()[-1] for line in running.stderr if "the study's page" in line)
        pages = []
        for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
            with pytest.raises(urllib.error.HTTPError, match="403"):
                urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=5)
        while running.poll() is None:
            try:
                pages.append(urllib.request.urlopen(url, timeout=5).read().decode())
            except OSError:
                break  # it ended between
            time.sleep(0.05)
        running.stderr.read()
    assert running.returncode == 0
    assert any("of 5 trials" in page and "Now: " in page for page in pages), pages[-1:]
    assert any("images/s" in page and "batch" in page for page in pages)


def test_an_address_for_the_page_that_is_none_is_named(place, tmp_path):
    said = subprocess.run([PROGRAM, "study", str(place()), "-o", str(tmp_path / "out"), "--live", "8080"], capture_output=True, text=True)
    assert said.returncode == 2 and "HOST:PORT" in said.stderr


def test_a_damaged_last_line_is_named_and_not_cut_off(weir, place, tmp_path):
    study, out = place(), tmp_path / "out"
    weir.run("study", "--no-replay", study, "-o", out, status=None)
    text = (out / "journal.jsonl").read_text()
    last = len(text.splitlines())
    damaged = text[:-2] + "\n"  # without its last brace, with its newline: no write that was cut short leaves that
    (out / "journal.jsonl").write_text(damaged)
    for command in (["study", "--no-replay", study, "-o", out, "--resume"], ["report", out]):
        said = weir.run(*command, status=2).stderr.decode()
        assert f"line {last}: not JSON" in said and "delete it" in said
        assert (out / "journal.jsonl").read_text() == damaged
    (out / "journal.jsonl").write_text(text[:-1])  # torn: it lacks the newline
    weir.run("study", "--no-replay", study, "-o", out, "--resume", status=None)
    assert len(journal(out)) == last - 1


@pytest.mark.skipif(os.geteuid() != 0, reason="links want root")
def test_an_unshaped_link_has_no_rate(weir, place, tmp_path):
    study, out = place("distributed"), tmp_path / "out"
    weir.run("study", "--no-replay", study, "-o", out, status=None)
    entries = journal(out)
    if any(entry["record"]["verdict"]["verdict"] == "skipped" for entry in entries):
        pytest.skip(entries[0]["record"]["verdict"]["message"])
    for entry in entries:
        link = entry["record"]["metrics"]["link"]
        assert "gbit_per_s" not in link and link["to_server_bytes"] > 0 and link["from_server_bytes"] > 0
