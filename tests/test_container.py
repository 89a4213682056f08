"""The container image: what is in it, how it starts, says that it is well, and ends. Needs podman; skipped where it starts nothing."""
import json
import os
import resource
import subprocess
import time

import pytest

from conftest import PROGRAM, ROOT


def podman(*arguments, check=True, timeout=120):
    done = subprocess.run(["podman", *map(str, arguments)], capture_output=True, text=True, timeout=timeout)
    assert not check or done.returncode == 0, f"podman {arguments}: {done.stderr}"
    return done


@pytest.fixture(scope="module")
def image(container_image):
    if container_image.missing:
        pytest.skip(container_image.missing)
    return container_image.name


@pytest.fixture(scope="module")
def limits(image):
    """Options with which podman starts containers here."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    for options in ([], [f"--ulimit=nofile={files}:{files}", "--ulimit=nproc=4096:4096"]):
        tried = podman("run", "--rm", "--network=none", "--no-healthcheck", *options, "--entrypoint=/no-such-program", image, check=False)
        if tried.returncode == 127:
            return options
    pytest.skip(f"podman starts no container here: {tried.stderr.strip()}")


def test_the_image_is_small_and_holds_no_root_shell_or_python(image, limits):
    about = json.loads(podman("image", "inspect", image).stdout)[0]
    assert about["Size"] < 200e6
    assert about["Config"]["User"] == "65532:65532"
    assert about["Config"]["Entrypoint"] == ["/usr/bin/weir", "serve"]
    assert about["Healthcheck"]["Test"] == ["CMD", "/usr/bin/weir", "health", "http://127.0.0.1:8000"]
    for program in ("/bin/sh", "/usr/bin/sh", "/usr/bin/python3", "/bin/bash"):
        tried = podman("run", "--rm", "--network=none", "--no-healthcheck", *limits, f"--entrypoint={program}", image, check=False)
        assert tried.returncode == 127, f"{program} is in the image"


def test_the_same_program_gives_the_same_image(image):
    first = podman("image", "inspect", "--format={{.Id}}", image).stdout
    subprocess.run([ROOT / "tools/container.sh", image], check=True, capture_output=True, timeout=300,
                   env=os.environ | {"WEIR_PROGRAM": PROGRAM})
    assert podman("image", "inspect", "--format={{.Id}}", image).stdout == first


def test_a_container_serves_says_that_it_is_well_and_ends_when_told(image, limits, made):
    name = f"weir-test-{os.getpid()}"
    begin = time.monotonic()
    podman("run", "--detach", "--network=none", "--no-healthcheck", *limits, "--name", name, f"--volume={made[0]}:/models/tiny:ro", image)
    try:
        health = ["exec", name, "/usr/bin/weir", "health", "http://127.0.0.1:8000"]
        while podman(*health, check=False).returncode != 0:
            state = json.loads(podman("inspect", name).stdout)[0]["State"]
            assert state["Running"], podman("logs", name).stderr
            assert time.monotonic() - begin < 60, podman("logs", name).stderr
            time.sleep(0.05)
        podman("stop", "--time=30", name)
        assert json.loads(podman("inspect", name).stdout)[0]["State"]["ExitCode"] == 0
    finally:
        podman("rm", "--force", "--time=0", name, check=False)
