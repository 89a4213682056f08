"""The scripts of deploy/ as they run: Slurm's own programs are played by small stand-ins, the rest is real."""
import json
import os
import signal
import socket
import subprocess
import time

import pytest
from conftest import PROGRAM, ROOT

SLURM = ROOT / "deploy/slurm"

# `srun` starts its command here; `scontrol show hostnames` names one host twice.
STAND_INS = {
    "srun": '#!/bin/bash\nwhile [[ ${1:-} == --* ]]; do shift; done\nexec "$@"\n',
    "scontrol": "#!/bin/bash\nprintf 'localhost\\nlocalhost\\n'\n",
}


@pytest.fixture
def slurm(tmp_path):
    """The environment of a job."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in STAND_INS.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "WEIR": PROGRAM, "SLURM_JOB_NODELIST": "localhost"}


def task(slurm, number, count, *arguments):
    return {"args": ["bash", SLURM / "prepare.slurm", *map(str, arguments)],
            "env": {**slurm, "SLURM_ARRAY_TASK_ID": str(number), "SLURM_ARRAY_TASK_MIN": "1", "SLURM_ARRAY_TASK_STEP": "1", "SLURM_ARRAY_TASK_COUNT": str(count), "SLURM_CPUS_ON_NODE": "1"}}


def contents(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_an_array_with_two_tasks_killed_and_requeued_equals_one_run(weir, slurm, made, tmp_path):
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("layout: NCHW\nresize: {width: 64, height: 64}\n")
    pictures, parts = made[1] / "pictures", tmp_path / "parts"
    arguments = [pictures, recipe, parts, "--format", "tar"]
    for number in range(1, 9):
        running = subprocess.Popen(**task(slurm, number, 8, *arguments), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if number in (3, 6):
            # In the middle of its work, as far as the machine lets it come.
            part = parts / f"part-{number}-of-8"
            end = time.monotonic() + 30
            while not part.exists() and running.poll() is None and time.monotonic() < end:
                time.sleep(0.001)
            running.send_signal(signal.SIGKILL)
            running.wait()
            running = subprocess.Popen(**task(slurm, number, 8, *arguments), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        said = running.communicate(timeout=120)[1]
        assert running.returncode == 0, said
    weir.run("prepare", "--join", parts, "-o", tmp_path / "joined")
    weir.run("prepare", pictures, "--recipe", recipe, "--format", "tar", "-o", tmp_path / "whole")
    assert contents(tmp_path / "joined") == contents(tmp_path / "whole")


def free_ports():
    """The first of three ports in a row that nobody uses."""
    while True:
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
        try:
            for other in (port, port + 1, port + 2):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", other))
            return port
        except (OSError, OverflowError):
            continue


def test_a_server_and_its_load_are_two_steps_of_one_job(slurm, made, tmp_path):
    result = tmp_path / "result.json"
    job = ["bash", SLURM / "serve-and-load.slurm", made[0].parent, "tiny", result, "--request-count", "50"]
    done = subprocess.run(job, env={**slurm, "WEIR_PORT": str(free_ports())}, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode in (0, 3), done.stderr  # 3: so short a run proves nothing
    assert json.loads(result.read_text())["levels"][0]["throughput_per_s"] > 0
    # Nothing of the job is left.
    assert subprocess.run(["pgrep", "-f", f"serve --model-repository {made[0].parent} "], capture_output=True, check=False).returncode == 1


def test_a_server_that_cannot_start_ends_the_job(slurm, tmp_path):
    job = ["bash", SLURM / "serve-and-load.slurm", tmp_path / "none", "tiny", tmp_path / "result.json"]
    done = subprocess.run(job, env={**slurm, "WEIR_PORT": str(free_ports())}, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1 and "ended before it was ready" in done.stderr
