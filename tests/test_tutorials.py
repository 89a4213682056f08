"""Runs every command of docs/tutorials, in the order of the tutorials, in one folder."""
import re
import shutil
import signal
import subprocess

import pytest

from conftest import PROGRAM, ROOT

TUTORIALS = ROOT / "docs/tutorials"


def blocks(tutorial):
    """Yields (kind, text, file name) of each fenced block; the name is the one that the line before it says to save as."""
    name = None
    text = (TUTORIALS / tutorial).read_text(encoding="utf-8")
    for match in re.finditer(r"Save this as `([^`]+)`|^```(\w+)\n(.*?)^```", text, re.S | re.M):
        if match[1]:
            name = match[1]
        else:
            yield match[2], match[3], name


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("tutorial")
    (place / "build/release").mkdir(parents=True)
    (place / "build/release/weir").symlink_to(PROGRAM)
    return place


def run(folder, text):
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", text], cwd=folder, capture_output=True, text=True, timeout=300)
    # On a busy machine the verdict of `weir load` may be INVALID, which is status 3.
    allowed = (0, 3) if "weir load" in text else (0,)
    assert done.returncode in allowed, f"{text}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def play(folder, tutorial):
    """Runs the commands and writes the files of a tutorial. A `weir serve` runs until the tutorial's end."""
    server, outputs = None, []
    try:
        for kind, text, name in blocks(tutorial):
            if kind == "yaml":
                (folder / name).write_text(text, encoding="utf-8")
            elif "./dev demo" in text:
                continue  # the demo has a run of its own
            elif "weir serve" in text:
                server = subprocess.Popen(text.split(), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
                ready = ["curl", "-sf", "--retry", "60", "--retry-delay", "1", "--retry-connrefused", "localhost:8000/v2/health/ready"]
                subprocess.run(ready, check=True, timeout=90)
            else:
                outputs.append(run(folder, text))
    finally:
        if server:
            server.send_signal(signal.SIGTERM)
            server.communicate(timeout=60)
    return outputs


def port_is_taken(port):
    return subprocess.run(["bash", "-c", f"exec 3<>/dev/tcp/127.0.0.1/{port}"], capture_output=True).returncode == 0


def test_first_run(folder):
    # The last step uses the reader's own model and pictures.
    made = folder / "own"
    run(folder, f"{PROGRAM} model make tiny --seed 1 -o {made} && {PROGRAM} prepare --make 20 --seed 3 -o {made}/set")
    shutil.copy(made / "tiny/1/model.onnx", folder / "model.onnx")
    for file in (made / "tiny").glob("*.*"):
        shutil.copy(file, folder)
    (folder / "pictures").symlink_to(made / "set/pictures")
    play(folder, "first-run.md")
    assert (folder / "answers.csv").is_file() and (folder / "result.json").is_file()


def test_serve_and_call(folder):
    if any(port_is_taken(port) for port in (8000, 8001, 8002)):
        pytest.skip("the tutorial's ports 8000 to 8002 are in use here")
    if not (folder / "made/pictures").exists():
        run(folder, f"{PROGRAM} prepare --make 200 --seed 2 -o made/pictures")
        run(folder, f"{PROGRAM} model make tiny --seed 1 -o made")
    outputs = play(folder, "serve-and-call.md")
    assert any(output.startswith("200") for output in outputs)


def test_first_study_and_its_prediction(folder):
    for name in ("made", "first"):
        shutil.rmtree(folder / name, ignore_errors=True)
    play(folder, "first-study.md")
    assert (folder / "first/report.html").is_file()
    outputs = play(folder, "predict-a-job.md")
    assert "inside" in outputs[-1]
