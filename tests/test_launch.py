"""What is launched never outlives what launched it: also after kill -9, also containers and network links."""
import json
import os
import pathlib
import signal
import subprocess
import time

import pytest

from conftest import PROGRAM


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


@pytest.fixture(scope="module")
def comparison(weir, made, container_image, tmp_path_factory):
    out = tmp_path_factory.mktemp("comparison") / "result.json"
    weir.run("compare", made[0], made[1], "--repeats", 1, "--seconds", "0.1", "--image", container_image.name, "--json", out)
    return json.loads(out.read_text())


@pytest.fixture(scope="module")
def here(comparison):
    """Why an architecture is not here, or None."""
    return {row["architecture"]: row.get("fault") for row in comparison["rows"]}


def test_three_architectures_give_the_same_answers_or_say_why_they_are_not_here(comparison, here):
    assert comparison["answers_equal"]
    assert len(comparison["rows"]) == 10
    assert here["in-process"] is None
    assert here["microservice"] is None or "no container of" in here["microservice"]
    assert here["distributed"] is None or "a network " in here["distributed"]
    for row in comparison["rows"]:
        if "fault" in row:
            assert row["n"] == 0
            continue
        assert row["n"] == 1
        assert row["throughput_images_per_s"]["mean"] > 0
        assert row["client_cpu_ms_per_image"]["mean"] > 0
        assert ("server_cpu_ms_per_image" in row) == (row["architecture"] != "in-process")


@pytest.mark.parametrize("launched, architecture", [(containers, "microservice"), (marked, "distributed")])
def test_nothing_outlives_a_comparison_that_is_killed(weir, made, container_image, here, launched, architecture):
    if here[architecture]:
        pytest.skip(here[architecture])
    running = subprocess.Popen([PROGRAM, "compare", made[0], made[1], "--repeats", "50", "--seconds", "1", "--image", container_image.name],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        assert gone(lambda: not launched(running.pid) and running.poll() is None, 120), "it launched nothing"
        assert running.poll() is None, "it ended before it was killed"
    finally:
        running.send_signal(signal.SIGKILL)
        running.wait()
    if not gone(lambda: containers(running.pid), 10):  # killed while podman was making one: the next start finds it
        weir.run("compare", made[0], "/no-such-pictures", status=None)
    assert not containers(running.pid)
    assert gone(lambda: marked(running.pid)), f"left running: {marked(running.pid)}"
    assert gone(lambda: links(running.pid)), f"left behind: {links(running.pid)}"
